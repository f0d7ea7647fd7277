"""How a model is asked: in its chat template, after examples there, or as text after examples.

Each way is a chat template, so that all other code treats them alike. As text:

    Question: In which country is the city of Lyon?
    Answer: France

    Question: In which country is the city of Kano?
    Answer:

Asked as text, the model ends its reply at a line break.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from adapop.errors import DataError, ModelError
from adapop.facts.fact import Fact, OwnAnswer
from adapop.model.chat import ANSWER as DUMMY
from adapop.model.chat import TRIALS, encode_prompt, manner, plain
from adapop.model.tokens import Row, encode_facts

CHAT, CHAT_EXAMPLES, TEXT_EXAMPLES = WAYS = ("chat", "chat-examples", "text-examples")
Examples = Sequence[tuple[str, str]]
TURNS = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ ' ' + message['content'] + '\n\n' }}"
    "{% elif message['role'] == 'user' %}{{ 'Question: ' + message['content'] + '\nAnswer:' }}"
    "{% else %}{{ message['content'] + '\n\n' }}{% endif %}{% endfor %}"
)
# after the system prompt and before the question
INSERTED = (
    "{{% set examples = {examples} %}}{{% if messages[0]['role'] == 'system' %}}"
    "{{% set messages = messages[:1] + examples + messages[1:] %}}{{% else %}}"
    "{{% set messages = examples + messages %}}{{% endif %}}"
)
# a line break in the tokens of a vocabulary: literal, in byte-level BPE, as a byte
LINE_END = ("\n", "Ċ", "<0x0A>")


def template_of(
    tokenizer: PreTrainedTokenizerBase, template: str | None, way: str, examples: Examples
) -> str | None:
    """The chat template that asks in one of `WAYS`. template: the model's own; None if a base model
    has none. examples: (question, answer) pairs without control tokens; only "chat" needs none."""
    if way == CHAT:
        return template
    turns = []
    for question, answer in examples:
        turns.append({"role": "user", "content": question})
        turns.append({"role": "assistant", "content": answer})
    if way == CHAT_EXAMPLES and template:  # contents as parts, where the template reads such lists
        form = manner(tokenizer, template)
        turns = [{**turn, "content": form.content(turn)} for turn in turns]
    # JSON of a list of texts is a Jinja literal too
    inserted = INSERTED.format(examples=json.dumps(turns, ensure_ascii=False))
    if way == CHAT_EXAMPLES:
        return template and inserted + template
    first = tokenizer("a")["input_ids"][:1]
    begins = "{{ bos_token }}" if first == [tokenizer.bos_token_id] else ""
    return inserted + begins + TURNS


class Prompted:
    """A tokenizer with a way to ask: it turns questions and facts into rows of token ids."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, system: str) -> None:
        self.tokenizer, self.system = tokenizer, system
        self.own_template: str | None = getattr(tokenizer, "chat_template", None)
        """The chat template that came with the model; None for a base model."""
        self.way: str = CHAT
        """How it is asked: one of `WAYS`."""
        self.examples: tuple[tuple[str, str], ...] = ()
        """(question, answer) pairs that may stand before a question."""
        self.spoken: Mapping[str, OwnAnswer] = {}
        """Fact id -> the answer in the model's own words."""
        self.converses = False
        """Whether it holds conversations of several turns: a real model that is asked in chat."""

    @property
    def has_template(self) -> bool:
        return self.own_template is not None

    def length(self, text: str) -> int:
        """Number of tokens of a text by itself."""
        return len(plain(self.tokenizer, text))

    @property
    def ways(self) -> tuple[str, ...]:
        """The members of `WAYS` in which the model can be asked."""
        possible = (way for way in WAYS if self._template(way) and (self.examples or way == CHAT))
        return tuple(way for way in possible if way != CHAT_EXAMPLES or self._takes_examples())

    def _takes_examples(self) -> bool:
        """Whether the chat template shows earlier turns and the question, not just the first."""
        template = self._template(CHAT_EXAMPLES)
        try:
            rendered = manner(self.tokenizer, template).render(self.tokenizer, TRIALS["user"])
        except TemplateError:
            return False
        texts = [text.strip() for pair in self.examples for text in pair]
        return DUMMY in rendered and all(text in rendered for text in texts)

    def ask(
        self, way: str, examples: Examples = (), spoken: Mapping[str, OwnAnswer] | None = None
    ) -> None:
        """Sets how the model is asked. spoken: fact id -> the model's own answer, asked this way.
        Raises ModelError: a base model without a chat template is to be asked in chat. DataError:
        there are no examples, and the way needs them."""
        self.examples = tuple(examples)
        if way != CHAT and not self.examples:
            message = f"The way of asking {way!r} needs three examples, and there are none."
            raise DataError(message, "Give three rows the group 'example', or more rows to retain.")
        if not self._template(way):
            message = "The model has no chat template."
            raise ModelError(message, "Ask it as text: --asking text-examples.")
        self.way, self.spoken = way, spoken or {}
        self.tokenizer.chat_template = self._template(way)

    @contextmanager
    def asking_as(self, way: str) -> Iterator[None]:
        """A context in which the model is asked in another way, without use of its own answers."""
        before, spoken = self.way, self.spoken
        self.ask(way, self.examples, spoken if way == before else {})
        try:
            yield
        finally:
            self.ask(before, self.examples, spoken)

    def _template(self, way: str) -> str | None:
        return template_of(self.tokenizer, self.own_template, way, self.examples)

    @property
    def ends(self) -> frozenset[int]:
        """Ids that end a reply, in addition to those that end every text of the model."""
        return self._line_ends if self.way == TEXT_EXAMPLES else frozenset()

    @cached_property
    def _line_ends(self) -> frozenset[int]:
        """Ids of the tokens that hold a line break: they end a reply as text."""
        pieces = self.tokenizer.get_vocab().items()
        ends = [number for piece, number in pieces if any(mark in piece for mark in LINE_END)]
        return frozenset(number for number in ends if "\n" in self.tokenizer.decode([number]))

    def rows(
        self,
        facts: Sequence[Fact],
        questions: Sequence[str] | None = None,
        include_tail: bool = False,
    ) -> list[Row]:
        """The facts as rows, see `tokens.encode_facts`. `ask` has set the way and own answers."""
        setup = (self.system, questions, include_tail, self.spoken)
        return encode_facts(self.tokenizer, facts, *setup)

    def prompts(self, questions: Sequence[str]) -> list[Row]:
        """The questions as rows without an answer, to be replied to."""
        prompts = [encode_prompt(self.tokenizer, question, self.system) for question in questions]
        return [Row(prompt, (), place) for place, prompt in enumerate(prompts)]
