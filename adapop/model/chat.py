"""A question in the model's own chat template, as token ids, in which no text of a user becomes a control token.

transformers renders a chat to text and then tokenises the text, so an `<|eot_id|>` in a question would end the user's
turn. Here (1) a break character is put into the user's control tokens, (2) the template is rendered, (3) the template's
own control tokens are replaced by placeholders, (4) the breaks are removed and the text is tokenised once. An ordinary
question gets the ids of plain `apply_chat_template`; a control token in a question is read as plain letters.
(transformers 5.20 and later does something similar, in several passes, but requires Python 3.11.)
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateError
from tokenizers import AddedToken, Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase

from adapop.errors import DataError, ModelError, shown

DATE = "10 Apr 2025"  # the paper's; Llama 3's templates would write today's date, and every number would change daily
FIXED_CLOCK = "{% macro strftime_now(format) %}" + DATE + "{% endmacro %}"
# Unicode noncharacters, which texts do not contain: the break, the two ends of a placeholder, a dummy answer
BREAK, OPEN, CLOSE, ANSWER = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
UNREADABLE = re.compile("[\ud800-\udfff\ufdd0-\ufdef]")  # lone surrogates and noncharacters
NO_TEMPLATE = (
    "Pick an instruction-tuned model, or put a chat_template.jinja into a model's folder, for example: "
    "Question: {{ messages[0]['content'] }}\\nAnswer:"
)


def encode_prompt(tokenizer: PreTrainedTokenizerBase, question: str, system: str | None = "") -> tuple[int, ...]:
    """Token ids of the chat prompt, up to the assistant's turn.

    Where the template refuses or leaves out a system prompt, it becomes a paragraph before the question.

    Raises:
        ModelError: the tokenizer has no chat template, one that fails, or no tokenizer.json.
        DataError: the text has an invalid character, or cannot be read as plain text.
    """
    reader = _reader(tokenizer)
    asked, told = reader.broken(question), reader.broken(system or "")
    turns = [{"role": "user", "content": asked}]
    if told:
        try:
            text = reader.rendered([{"role": "system", "content": told}, *turns])
        except TemplateError:
            text = ""
        if told.strip() in text and asked.strip() in text:
            return reader.prompt(text)
        turns = [{"role": "user", "content": f"{told}\n\n{asked}"}]
    try:
        text = reader.rendered(turns)
    except TemplateError as error:
        raise ModelError(f"The model's chat template cannot show a question: {error}", NO_TEMPLATE) from error
    if asked.strip() not in text:
        raise ModelError("The model's chat template leaves the question out.", NO_TEMPLATE)
    return reader.prompt(text)


def plain(tokenizer: PreTrainedTokenizerBase, text: str) -> Encoding:
    """Ids and offsets of a text by itself, such as an answer, without special tokens.

    Raises:
        ModelError, DataError: as for `encode_prompt`.
    """
    reader = _reader(tokenizer)
    _check_readable(text)
    return reader.checked(reader.backend.encode(text, add_special_tokens=False), text)


def turn_end(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Ids of what the chat template writes after an answer, with the end-of-sequence token last.

    The AdaPop paper's code trains on these tokens. Llama: <|eot_id|>; Gemma: <end_of_turn>, newline, <eos>.
    """
    reader = _reader(tokenizer)
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    tail = ()
    try:
        before, _, after = reader.rendered(turns, prompt=False).rpartition(ANSWER)
        tail = reader.prompt(after) if before else ()
    except TemplateError:  # a template for a single question has no place for an answer
        pass
    end = tokenizer.eos_token_id
    return tail if end is None or tail[-1:] == (end,) else (*tail, end)


@dataclass(frozen=True)
class _Reader:
    """A tokenizer whose control tokens only a template can write."""

    tokenizer: PreTrainedTokenizerBase
    template: str
    backend: Tokenizer
    """Reads every control token as plain text, and each placeholder as one token."""
    control: re.Pattern
    """Matches any control token."""
    placeholders: Mapping[str, str]
    """Control token -> its placeholder."""
    ids: Mapping[int, int]
    """Id of a placeholder -> id of its control token."""

    def broken(self, text: str) -> str:
        """A user's text, with a break after the first character of each control token in it."""
        _check_readable(text)
        return re.sub(f"(?s)(?={self.control.pattern})(.)", rf"\1{BREAK}", text)

    def rendered(self, turns: Sequence[Mapping[str, str]], prompt: bool = True) -> str:
        """The chat as text. prompt: whether to open the assistant's turn.

        Raises:
            TemplateError: the template refuses these turns.
        """
        return self.tokenizer.apply_chat_template(
            list(turns),
            chat_template=self.template,
            add_generation_prompt=prompt,
            tokenize=False,
            date_string=DATE,
        )

    def prompt(self, text: str) -> tuple[int, ...]:
        """Ids of a rendered chat."""
        replaced = self.control.sub(lambda found: self.placeholders[found[0]], text)
        encoded = self.checked(self.backend.encode(replaced.replace(BREAK, ""), add_special_tokens=False), text)
        return tuple(self.ids.get(token, token) for token in encoded.ids)

    def checked(self, encoded: Encoding, text: str) -> Encoding:
        """The encoding, checked to contain no control token.

        Raises:
            DataError: it does: some tokenizers (Unigram, whole words) find one in plain text as well.
        """
        forbidden = {*self.ids.values()} - {self.tokenizer.unk_token_id}
        if made := forbidden.intersection(encoded.ids):
            name, where = self.tokenizer.convert_ids_to_tokens(made.pop()), shown(text.replace(BREAK, ""))
            raise DataError(
                f"{where!r} contains {name}, which this model's tokenizer cannot read as plain text.", "Remove it."
            )
        return encoded


def _check_readable(text: str) -> None:
    if found := UNREADABLE.search(text):
        raise DataError(
            f"A text has U+{ord(found[0]):04X} at character {found.start() + 1:,}, which is no character.", "Remove it."
        )


def _reader(tokenizer: PreTrainedTokenizerBase) -> _Reader:
    if tokenizer.chat_template is None:
        raise ModelError("The model's tokenizer has no chat template.", NO_TEMPLATE)
    if not tokenizer.is_fast:
        raise ModelError("The model's tokenizer has no tokenizer.json.", "Pick a model that has one.")
    template = tokenizer.get_chat_template()
    return _made(tokenizer, FIXED_CLOCK + template if "strftime_now" in template else template)


@lru_cache(maxsize=4)
def _made(tokenizer: PreTrainedTokenizerBase, template: str) -> _Reader:
    """The reader of a tokenizer and template.

    Control tokens are those marked special and those that the template writes, but not Gemma's runs of spaces.
    """
    control = {
        token.content: (number, token)
        for number, token in tokenizer.added_tokens_decoder.items()
        if len(token.content.strip()) > 1 and (token.special or token.content in template)
    }
    backend = copy.deepcopy(tokenizer.backend_tokenizer)
    backend.no_truncation()
    backend.no_padding()
    backend.add_special_tokens([AddedToken(content, special=True, normalized=False) for content in control])
    backend.encode_special_tokens = True  # reads them as plain text
    placeholders, ids = {}, {}
    for content, (number, token) in control.items():
        placeholders[content] = f"{OPEN}{number}{CLOSE}"
        sides = dict(lstrip=token.lstrip, rstrip=token.rstrip, single_word=token.single_word)
        backend.add_tokens([AddedToken(placeholders[content], special=False, normalized=token.normalized, **sides)])
        ids[backend.token_to_id(placeholders[content])] = number
    longest_first = sorted(control, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    return _Reader(tokenizer, template, backend, pattern, placeholders, ids)
