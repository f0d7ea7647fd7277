"""A question in the model's own chat template, as token ids, in which no text of a user becomes a control token.

transformers' `apply_chat_template(sanitize_control_tokens=True)` reads a user's `<|eot_id|>` as letters. Three things
it leaves to us. It knows a control token by its letters alone, so one that the tokenizer's normaliser makes of others
(of a full-width ＜s＞) gets through: a chat with a control token that its template did not write is refused. It reads
no text without a template, and gives no offsets: answers are read by a copy of the tokenizer that knows no control
tokens. And it takes several times as long, so it gets only the texts that hold one.
"""

import copy
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateError
from tokenizers import AddedToken, Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase

from adapop.errors import DataError, ModelError, shown

DATE = "10 Apr 2025"  # the paper's; Llama 3's templates would write today's date, and every number would change daily
FIXED_CLOCK = "{% macro strftime_now(format) %}" + DATE + "{% endmacro %}"
PROMPTS = 8_192  # remembered: a run asks the same questions at each measurement
ANSWER = "\ufdd3"  # a dummy answer: a Unicode noncharacter, which texts do not contain
# lone surrogates, noncharacters, and the two private characters that transformers takes out of a user's text
UNREADABLE = re.compile("[\ud800-\udfff\ufdd0-\ufdef\U000f0000\U000f0001]")
SIGN = re.compile(r"[^\w\s/]")  # control tokens have some; a slash stays, for templates that obey "/no_think"
NO_TEMPLATE = (
    "Pick an instruction-tuned model, or put a chat_template.jinja into a model's folder, for example: "
    "Question: {{ messages[0]['content'] }}\\nAnswer:"
)
# what an expression in a template may raise beside TemplateError
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
Turns = Sequence[Mapping[str, str]]


def encode_prompt(tokenizer: PreTrainedTokenizerBase, question: str, system: str | None = "") -> tuple[int, ...]:
    """Token ids of the chat prompt, up to the assistant's turn.

    Where the template refuses or leaves out a system prompt, it becomes a paragraph before the question.

    Raises:
        ModelError: the tokenizer has no chat template, one that fails, or no tokenizer.json.
        DataError: the text has an invalid character, or cannot be read as plain text.
    """
    _check(tokenizer, question, system or "")
    return _prompt(tokenizer, tokenizer.get_chat_template(), question, system or "")


def plain(tokenizer: PreTrainedTokenizerBase, text: str) -> Encoding:
    """Ids and offsets of a text by itself, such as an answer, without special tokens.

    Raises:
        ModelError, DataError: as for `encode_prompt`.
    """
    _check(tokenizer, text)
    control = _control(tokenizer, tokenizer.get_chat_template())
    encoded = control.letters.encode(text, add_special_tokens=False)
    control.check(encoded.ids, text)
    return encoded


def turn_end(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Ids of what the chat template writes after an answer, with the end-of-sequence token last.

    The AdaPop paper's code trains on these tokens. Llama: <|eot_id|>; Gemma: <end_of_turn>, newline, <eos>.
    """
    _check(tokenizer)
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    tail = ()
    try:
        before, _, after = _applied(tokenizer, turns, add_generation_prompt=False).rpartition(ANSWER)
        tail = tuple(tokenizer.encode(after, add_special_tokens=False)) if before else ()
    except TemplateError:  # a template for a single question has no place for an answer
        pass
    end = tokenizer.eos_token_id
    return tail if end is None or tail[-1:] == (end,) else (*tail, end)


@dataclass(frozen=True)
class _Control:
    """A tokenizer's control tokens: those marked special, and those that its template writes, but not Gemma's line ends
    and single letters."""

    names: Mapping[int, str]
    """Without the unknown token, which any odd letter may become."""
    written: re.Pattern
    """Matches any of them in a text."""
    backend: Tokenizer
    """Reads them as tokens."""
    letters: Tokenizer
    """Reads them as plain text."""

    def check(self, ids: Sequence[int], text: str, chat: str = "") -> None:
        """Refuses a control token that a user's text became. chat: has those that may be among the ids.

        Raises:
            DataError: there is another one. Some tokenizers (Unigram, whole words) find it in plain text as well.
        """
        due = self.backend.encode(chat, add_special_tokens=False).ids
        for token in Counter(filter(self.names.get, ids)) - Counter(due):
            raise _not_plain(text, self.names[token])


@lru_cache(maxsize=PROMPTS)
def _prompt(tokenizer: PreTrainedTokenizerBase, template: str, question: str, system: str) -> tuple[int, ...]:
    """The ids that `encode_prompt` returns. template: the tokenizer's, which may be set anew."""
    turns = [{"role": "user", "content": question}]
    if system:
        told = [{"role": "system", "content": system}, *turns]
        try:
            chat = _applied(tokenizer, told)
        except TemplateError:
            chat = ""
        if system.strip() in chat and question.strip() in chat:
            return _ids(tokenizer, told, chat)
        turns = [{"role": "user", "content": f"{system}\n\n{question}"}]
    try:
        chat = _applied(tokenizer, turns)
    except TemplateError as error:
        raise ModelError(f"The model's chat template cannot show a question: {error}", NO_TEMPLATE) from error
    if question.strip() not in chat:
        raise ModelError("The model's chat template leaves the question out.", NO_TEMPLATE)
    return _ids(tokenizer, turns, chat)


def _ids(tokenizer: PreTrainedTokenizerBase, turns: Turns, chat: str) -> tuple[int, ...]:
    """Ids of the turns. chat: them as text."""
    control = _control(tokenizer, tokenizer.get_chat_template())
    text = "\n".join(turn["content"] for turn in turns)
    if hostile := control.written.search(text):
        try:
            ids = _applied(tokenizer, turns, tokenize=True, sanitize_control_tokens=True, return_dict=False)
        except ValueError:
            raise _not_plain(text, hostile[0]) from None
    else:
        ids = control.backend.encode(chat, add_special_tokens=False).ids
    innocent = [{**turn, "content": SIGN.sub("x", turn["content"])} for turn in turns]
    control.check(ids, text, _applied(tokenizer, innocent))
    return tuple(ids)


def _applied(tokenizer: PreTrainedTokenizerBase, turns: Turns, **options: bool) -> str | list[int]:
    """What the chat template makes of the turns: text, unless told to tokenize.

    Without thinking, where the template can leave it out (Qwen3): an answer is scored where it is given.

    Raises:
        TemplateError: the template refuses these turns, or fails.
        ValueError: told to sanitize control tokens, the tokenizer cannot. The template has not failed on turns that it
            took before.
    """
    template = tokenizer.get_chat_template()
    template = FIXED_CLOCK + template if "strftime_now" in template else template
    options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False, **options}
    try:
        return tokenizer.apply_chat_template(list(turns), chat_template=template, date_string=DATE, **options)
    except FAULTS as error:
        if isinstance(error, ValueError) and "sanitize_control_tokens" in options:
            raise
        raise TemplateError(": ".join(filter(None, (type(error).__name__, str(error))))) from error


def _check(tokenizer: PreTrainedTokenizerBase, *texts: str) -> None:
    if tokenizer.chat_template is None:
        raise ModelError("The model's tokenizer has no chat template.", NO_TEMPLATE)
    if not tokenizer.is_fast:
        raise ModelError("The model's tokenizer has no tokenizer.json.", "Pick a model that has one.")
    for found in filter(None, map(UNREADABLE.search, texts)):
        where = f"U+{ord(found[0]):04X} at character {found.start() + 1:,}"
        raise DataError(f"A text has {where}, which is no character.", "Remove it.")


def _not_plain(text: str, name: str) -> DataError:
    message = f"{shown(text)!r} contains {name}, which this model's tokenizer cannot read as plain text."
    return DataError(message, "Remove it.")


@lru_cache(maxsize=4)
def _control(tokenizer: PreTrainedTokenizerBase, template: str) -> _Control:
    names = {
        number: token.content
        for number, token in tokenizer.added_tokens_decoder.items()
        if len(token.content.strip()) > 1 and (token.special or token.content in template)
    }
    backend = copy.deepcopy(tokenizer.backend_tokenizer)
    backend.no_truncation()
    backend.no_padding()
    letters = copy.deepcopy(backend)
    letters.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names.values()])
    letters.encode_special_tokens = True  # reads them as plain text
    longest_first = sorted(names.values(), key=len, reverse=True)
    written = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    names.pop(tokenizer.unk_token_id, None)
    return _Control(names, written, backend, letters)
