"""Renders chat templates: without thinking, on a fixed date, contents in the form that each reads.

Its flags are found by parsing it; its content form and an open thought by rendering it with a
character that texts do not contain.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import Environment, TemplateError, meta
from transformers import PreTrainedTokenizerBase as Tokenizer

from adapop.errors import ModelError, truncated
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

    def render(self, tokenizer: Tokenizer, turns: Turns, **options: bool) -> str | list[int]:
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
def manner(tokenizer: Tokenizer, template: str) -> Manner:
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


def notes(tokenizer: Tokenizer) -> tuple[Remark, ...]:
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


def _trial(tokenizer: Tokenizer, way: Manner, turns: Turns) -> str:
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
