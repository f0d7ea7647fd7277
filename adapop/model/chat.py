"""A question in the model's chat template as token ids: no user's text becomes a control token.

transformers' `apply_chat_template(sanitize_control_tokens=True)` reads a user's `<|eot_id|>` as
letters. That function has three limits. It finds a control token by its letters alone, not one that
the tokenizer's normaliser makes of other letters (a full-width ＜s＞): we refuse chats with control
tokens that the template did not write. It needs a template and gives no offsets: we read answers by
a copy of the tokenizer without control tokens. It takes several times as long: we use it only for
texts that hold the letters of a control token.

Templates are rendered without thinking, on a fixed date, contents in the form that each reads
(`manner`). Its flags are found by parsing it; its content form and an open thought by rendering it
with a character that texts do not contain.
"""

import copy
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import Environment, TemplateError, meta
from tokenizers import AddedToken, Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase

from adapop.errors import DataError, ModelError, truncated
from adapop.remark import Remark

DATE = "10 Apr 2025"  # the paper's; Llama 3 writes today's, with which numbers change daily
FIXED_CLOCK = "{% macro strftime_now(format) %}" + DATE + "{% endmacro %}"
ANSWER = "\ufdd3"  # a dummy answer: a Unicode noncharacter, which texts do not contain
# errors that an expression in a template may raise besides TemplateError
FAULTS = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError
)  # fmt: skip
# variables by which templates let a model think: Qwen3's, DeepSeek's, Granite's, Cohere's
FLAG = re.compile(r"(?P<no>(no|disable|skip)_)?((enable|use)_)?(think(ing)?|thought|reasoning)")
TAG = re.compile(r"(?i)[<\[◁][^\s<>\[\]◁▷]*(think|thought|reason)[^\s<>\[\]◁▷]*[>\]▷]")
NO_THOUGHT = re.compile(r"(?i).\|?/|.*(end[_▁]|no_?think)")  # a closing tag, or a switch
BEGIN = {"START": "END", "BEGIN": "END", "start": "end", "begin": "end"}
GENERATION = re.compile(r"\{%-?\s*(end)?generation\s*-?%\}")  # transformers' own tags
Turns = Sequence[Mapping[str, object]]
TRIALS = {
    "user": [{"role": "user", "content": ANSWER}],
    "system": [{"role": "system", "content": ANSWER}, {"role": "user", "content": "?"}],
    "assistant": [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}],
}


@dataclass(frozen=True)
class Manner:
    """How one chat template is rendered."""

    template: str
    """The template with a fixed date, and with an end for a thought that its prompt leaves open."""
    flags: Mapping[str, bool]
    """Variables of the template that control thinking -> the value that switches it off."""
    closing: str = ""
    """The text that ends an open thought, "" if none is open."""
    parts: frozenset[str] = frozenset()
    """The roles whose content it reads as a list of parts."""

    def render(
        self, tokenizer: PreTrainedTokenizerBase, turns: Turns, **options: bool
    ) -> str | list[int]:
        """The turns with the generation prompt as text; options: as for `apply_chat_template`.
        Raises TemplateError: the template refuses these turns, or fails. ValueError: the tokenizer
        cannot do what the option `sanitize_control_tokens` asks."""
        turns = [{**turn, "content": self.content(turn)} for turn in turns]
        usual = {"tokenize": False, "add_generation_prompt": True, "date_string": DATE}
        options = {**usual, "chat_template": self.template, **self.flags, **options}
        try:
            return tokenizer.apply_chat_template(turns, **options)
        except FAULTS as error:
            if isinstance(error, ValueError) and "sanitize_control_tokens" in options:
                raise
            reason = ": ".join(filter(None, (type(error).__name__, str(error))))
            raise TemplateError(reason) from error

    def content(self, turn: Mapping[str, object]) -> object:
        """The turn's text in the form that the template reads."""
        text = turn["content"]
        return [{"type": "text", "text": text}] if turn["role"] in self.parts else text


@lru_cache(maxsize=8)
def manner(tokenizer: PreTrainedTokenizerBase, template: str) -> Manner:
    """How to render a chat template of the tokenizer. Raises ModelError: its generation prompt
    opens a thought with a tag whose end is not known."""
    clock = FIXED_CLOCK if "strftime_now" in template else ""
    plain = Manner(clock + template, _flags(template))
    for role, turns in TRIALS.items():
        parts = Manner(plain.template, plain.flags, parts=plain.parts | {role})
        as_text, as_parts = (_trial(tokenizer, way, turns) for way in (plain, parts))
        plain = parts if ANSWER in as_parts and ANSWER not in as_text else plain
    prompt = _trial(tokenizer, plain, TRIALS["user"])
    if not (closing := _closing(template, prompt.rpartition(ANSWER)[2])):
        return plain
    # Jinja drops one line end at the end of a template
    whole = re.sub(r"\r?\n\Z", "", plain.template)
    ended = f"{whole}{{{{ {closing!r} if add_generation_prompt else '' }}}}"
    return Manner(ended, plain.flags, closing, plain.parts)


def notes(tokenizer: PreTrainedTokenizerBase) -> tuple[Remark, ...]:
    """How a model that can think was kept from thinking; () for other models."""
    way = manner(tokenizer, tokenizer.get_chat_template())
    flags = (f"{name} is {value}" for name, value in sorted(way.flags.items()))
    ended = [Remark("thought_ended", {"end": repr(way.closing)})] if way.closing else []
    return *(Remark("thinking_off", {"flag": flag}) for flag in flags), *ended


def _flags(template: str) -> dict[str, bool]:
    jinja = Environment(extensions=["jinja2.ext.loopcontrols"])
    try:
        parsed = jinja.parse(GENERATION.sub("", template))
    except TemplateError:  # raised again where it is rendered
        return {}
    matches = map(FLAG.fullmatch, sorted(meta.find_undeclared_variables(parsed)))
    return {match[0]: bool(match["no"]) for match in matches if match}


def _trial(tokenizer: PreTrainedTokenizerBase, way: Manner, turns: Turns) -> str:
    """The rendered turns, with a generation prompt after a user's turn; "" if they are refused."""
    try:
        return way.render(tokenizer, turns, add_generation_prompt=turns[-1]["role"] == "user")
    except TemplateError:
        return ""


def _closing(template: str, ending: str) -> str:
    """The text that ends the thought that a prompt opens; "" if it opens none. ending: the prompt
    after the question. Before the end, the white space behind the opening tag is repeated; behind
    the end stands what the template writes there, else two line ends, as in Qwen3's empty thought.
    Raises ModelError: it has no known end."""
    tag = next(reversed([*TAG.finditer(ending)]), None)
    if tag is None or NO_THOUGHT.match(tag[0]):
        return ""
    begin = next((word for word in BEGIN if word in tag[0]), "")
    if begin:
        end = tag[0].replace(begin, BEGIN[begin], 1)
    elif "|" not in tag[0]:
        end = f"{tag[0][0]}/{tag[0][1:]}"
    else:
        why = "whose end is not known: answers would be scored inside it"
        thought = f"The model's chat template opens a thought with {truncated(tag[0])!r}"
        fix = "Pick a model that answers at once, or end the thought in its chat_template.jinja."
        raise ModelError(f"{thought}, {why}.", fix)
    blanks = re.findall(re.escape(end) + r"((?:\\n|\s)*)", template)
    behind = max((blank.replace("\\n", "\n") for blank in blanks), key=len, default="")
    before = ending[tag.end() :]
    return f"{before if not before.strip() else chr(10)}{end}{behind or chr(10) * 2}"


PROMPTS = 8_192  # in the cache: a run asks the same questions at each measurement
# lone surrogates, U+FDD0 to U+FDEF, and two private characters that transformers removes
UNREADABLE = re.compile("[\ud800-\udfff\ufdd0-\ufdef\U000f0000\U000f0001]")
# every control token has one of these; not the slash, because templates obey "/no_think"
SIGN = re.compile(r"[^\w\s/]")
NO_TEMPLATE = (
    "Pick an instruction-tuned model, or put a chat_template.jinja into a model's folder, for "
    "example: Question: {{ messages[0]['content'] }}\\nAnswer:"
)


def encode_prompt(
    tokenizer: PreTrainedTokenizerBase, question: str, system: str | None = ""
) -> tuple[int, ...]:
    """Token ids of the chat prompt, up to the assistant's turn.

    A system prompt that the template refuses or omits becomes a paragraph before the question.
    Raises ModelError: the tokenizer has no chat template, one that fails, or no tokenizer.json.
    DataError: the text has an invalid character, or cannot be read as plain text."""
    check_template(tokenizer, question, system or "")
    return _prompt(tokenizer, tokenizer.get_chat_template(), question, system or "")[1]


def encode_turns(
    tokenizer: PreTrainedTokenizerBase,
    earlier: Sequence[tuple[str, str]],
    question: str,
    system: str | None = "",
) -> tuple[int, ...]:
    """Token ids of a conversation up to the assistant's next turn. earlier: (question, reply)
    pairs. Raises as `encode_prompt`, also ModelError: the template shows no earlier turns."""
    if not earlier:
        return encode_prompt(tokenizer, question, system)
    texts = [text for pair in earlier for text in pair]
    check_template(tokenizer, question, system or "", *texts)
    turns = []
    for prompt, reply in earlier:
        turns += [{"role": "user", "content": prompt}, {"role": "assistant", "content": reply}]
    turns.append({"role": "user", "content": question})
    forms = [[{"role": "system", "content": system}, *turns]] if system else []
    first = f"{system}\n\n{turns[0]['content']}" if system else turns[0]["content"]
    forms.append([{**turns[0], "content": first}, *turns[1:]])
    for form in forms:
        try:
            chat = _applied(tokenizer, form)
        except TemplateError:
            continue
        if all(turn["content"].strip() in chat for turn in form):
            return _ids(tokenizer, form, chat, system or "")
    message = "The model's chat template cannot show a conversation."
    raise ModelError(message, "Ask one question at a time.")


@dataclass(frozen=True)
class Answered:
    """A question and its answer as token ids."""

    prompt: tuple[int, ...]
    """Ids of all tokens before the answer: chat prompt, the template's text after it, and lead."""
    answer: tuple[int, ...]
    """The tokens that overlap the answer."""
    spans: tuple[tuple[int, int], ...]
    """(start, end) of each answer token in the answer, in characters."""


def encode_answer(
    tokenizer: PreTrainedTokenizerBase,
    question: str,
    answer: str,
    system: str | None = "",
    lead: str = "",
) -> Answered:
    """A question and its answer, tokenised in one piece as the model's template writes them. Every
    token that overlaps the answer belongs to it, so its first token is the one that the model would
    write (" Paris" where a space precedes it).

    They are tokenised separately where a token would span the prompt's end and the answer, which no
    reply can do, and where a text has the letters of a control token. lead: the beginning of a
    reply, up to the answer; without the space before the answer if the tokenizer decodes it so.
    Raises ModelError, DataError: as for `encode_prompt`."""
    check_template(tokenizer, question, system or "", answer, lead)
    template = tokenizer.get_chat_template()
    chat, ids = _prompt(tokenizer, template, question, system or "")
    control = _control(tokenizer, template)
    joint = "" if lead[:1].isspace() else _joint(tokenizer, template)
    if control.written.search(joint):  # before an answer, as in gpt-oss: these are of the prompt
        encoded = control.backend.encode(joint, add_special_tokens=False)
        chat, ids, joint = chat + joint, (*ids, *encoded.ids), ""
    before = joint + lead
    hostile = any(map(control.written.search, (question, system or "", before + answer)))
    encoded = control.backend.encode(chat + before + answer, add_special_tokens=False)
    start, prompt = len(chat) + len(before), ()
    # the model has read the prompt to its end, so no token of an answer may begin before that
    if hostile or tuple(encoded.ids[: len(ids)]) != ids:
        encoded = control.letters.encode(before + answer, add_special_tokens=False)
        start, prompt = len(before), ids
    control.check(encoded.ids, answer, () if prompt else ids)
    overlap = (place for place, (_, end) in enumerate(encoded.offsets) if end > start)
    first = next(overlap, len(encoded.ids))
    spans = tuple((max(0, begin - start), end - start) for begin, end in encoded.offsets[first:])
    return Answered((*prompt, *encoded.ids[:first]), tuple(encoded.ids[first:]), spans)


def control_free(tokenizer: PreTrainedTokenizerBase, text: str) -> bool:
    """Whether a text can become part of a template: it has no letters of a control token."""
    control = _control(tokenizer, tokenizer.chat_template or "")
    return not UNREADABLE.search(text) and not control.written.search(text)


@lru_cache(maxsize=64)
def _joint(tokenizer: PreTrainedTokenizerBase, template: str) -> str:
    """The template's text between the prompt of a question and an answer, such as a space."""
    turns = TRIALS["assistant"]
    try:
        prompt = _applied(tokenizer, turns[:1])
        whole = _applied(tokenizer, turns, add_generation_prompt=False)
    except TemplateError:  # a template for a single question cannot write an answer
        return ""
    before, answered, _ = whole.rpartition(ANSWER)
    return before.removeprefix(prompt) if answered and before.startswith(prompt) else ""


def plain(tokenizer: PreTrainedTokenizerBase, text: str) -> Encoding:
    """Ids and offsets of a text alone, without special tokens. Raises as `encode_prompt`."""
    check_template(tokenizer, text)
    control = _control(tokenizer, tokenizer.get_chat_template())
    encoded = control.letters.encode(text, add_special_tokens=False)
    control.check(encoded.ids, text)
    return encoded


def turn_end(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Ids that the chat template writes after an answer, with the end-of-sequence token last. The
    paper's code trains on these. Llama: <|eot_id|>; Gemma: <end_of_turn>, newline, <eos>."""
    check_template(tokenizer)
    tail = ()
    try:
        whole = _applied(tokenizer, TRIALS["assistant"], add_generation_prompt=False)
        before, _, after = whole.rpartition(ANSWER)
        tail = tuple(tokenizer.encode(after, add_special_tokens=False)) if before else ()
    except TemplateError:  # a template for a single question cannot write an answer
        pass
    end = tokenizer.eos_token_id
    return tail if end is None or tail[-1:] == (end,) else (*tail, end)


@dataclass(frozen=True)
class _Control:
    """A tokenizer's control tokens: those marked special, and those that its template writes,
    except line ends (Gemma) and single letters."""

    names: Mapping[int, str]
    """Id -> token, without the unknown token, to which rare characters may be mapped."""
    written: re.Pattern
    """Matches any control token in a text."""
    backend: Tokenizer
    """Reads control tokens in a text as tokens."""
    letters: Tokenizer
    """Reads control tokens in a text as plain letters."""

    def beyond(self, ids: Iterable[int], due: Iterable[int] = ()) -> Counter[int]:
        """The control tokens that are not in `due`; some tokenizers (Unigram, whole words) read
        one from plain text."""
        return Counter(filter(self.names.get, ids)) - Counter(due)

    def check(self, ids: Iterable[int], text: str, due: Iterable[int] = ()) -> None:
        """Raises DataError: the ids hold a control token that is not in `due`."""
        for token in self.beyond(ids, due):
            raise _not_plain(self, text, self.names[token])


@lru_cache(maxsize=PROMPTS)
def _prompt(
    tokenizer: PreTrainedTokenizerBase, template: str, question: str, system: str
) -> tuple[str, tuple[int, ...]]:
    """(text, ids) of `encode_prompt`'s prompt. template: for the cache's key. Raises ModelError."""
    turns = [{"role": "user", "content": question}]
    if system:
        with_system = [{"role": "system", "content": system}, *turns]
        try:
            chat = _applied(tokenizer, with_system)
        except TemplateError:
            chat = ""
        if system.strip() in chat and question.strip() in chat:
            return chat, _ids(tokenizer, with_system, chat, system)
        turns = [{"role": "user", "content": f"{system}\n\n{question}"}]
    try:
        chat = _applied(tokenizer, turns)
    except TemplateError as error:
        message = f"The model's chat template cannot show a question: {error}"
        raise ModelError(message, NO_TEMPLATE) from error
    if question.strip() not in chat:
        raise ModelError("The model's chat template omits the question.", NO_TEMPLATE)
    return chat, _ids(tokenizer, turns, chat, system)


def _ids(
    tokenizer: PreTrainedTokenizerBase, turns: Turns, chat: str, system: str
) -> tuple[int, ...]:
    """Ids of the turns. chat: their text. system: the system prompt in them, which is blamed if
    only it has a control token. Raises DataError: a control token cannot be escaped."""
    control = _control(tokenizer, tokenizer.get_chat_template())
    text = "\n".join(turn["content"] for turn in turns)
    if hostile := control.written.search(text):
        try:
            options = {"sanitize_control_tokens": True, "return_dict": False}
            ids = _applied(tokenizer, turns, tokenize=True, **options)
        except ValueError:
            raise _not_plain(control, text, hostile[0], system) from None
    else:
        ids = control.backend.encode(chat, add_special_tokens=False).ids
    innocent = [{**turn, "content": SIGN.sub("x", turn["content"])} for turn in turns]
    expected = control.backend.encode(_applied(tokenizer, innocent), add_special_tokens=False)
    for token in control.beyond(ids, expected.ids):
        raise _not_plain(control, text, control.names[token], system)
    return tuple(ids)


def _applied(tokenizer: PreTrainedTokenizerBase, turns: Turns, **options: bool) -> str | list[int]:
    """The result, or error, of `Manner.render` for these turns in the tokenizer's template."""
    return manner(tokenizer, tokenizer.get_chat_template()).render(tokenizer, turns, **options)


def check_template(tokenizer: PreTrainedTokenizerBase, *texts: str) -> None:
    """Checks that a model can be asked these texts in chat. Raises ModelError: it has no chat
    template, or no tokenizer.json. DataError: a text has an invalid character."""
    if tokenizer.chat_template is None:
        raise ModelError("The model's tokenizer has no chat template.", NO_TEMPLATE)
    if not tokenizer.is_fast:
        message = "The model's tokenizer has no tokenizer.json."
        raise ModelError(message, "Pick a model that has one.")
    for match in filter(None, map(UNREADABLE.search, texts)):
        where = f"U+{ord(match[0]):04X} at character {match.start() + 1:,}"
        raise DataError(f"A text has {where}, which is not a valid character.", "Remove it.")


def _not_plain(control: _Control, text: str, name: str, system: str = "") -> DataError:
    """The error that names the text with the control token: the system prompt alone, if the rest
    has none."""
    why = "which this model's tokenizer cannot read as plain text"
    rest = text.replace(system, "", 1) if system else text
    ids = control.backend.encode(rest, add_special_tokens=False).ids
    if system and not control.beyond(ids):
        message = f"The system prompt, {truncated(system)!r}, contains {name}, {why}."
        return DataError(message, "Choose another system prompt; the facts are not the cause.")
    fix = (
        "Remove it. If it is not in your facts, it comes from the way of asking: choose "
        "another one."
    )
    return DataError(f"{truncated(rest.strip())!r} contains {name}, {why}.", fix)


@lru_cache(maxsize=8)
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
    added = [AddedToken(name, special=True, normalized=False) for name in names.values()]
    letters.add_special_tokens(added)
    letters.encode_special_tokens = True  # reads them as plain text
    longest_first = sorted(names.values(), key=len, reverse=True)
    written = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    names.pop(tokenizer.unk_token_id, None)
    return _Control(names, written, backend, letters)
