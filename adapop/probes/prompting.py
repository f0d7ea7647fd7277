"""How a run asks its model, settled before training. No torch, so that a page can show it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from adapop.assets import as_kind, parse_json
from adapop.facts.fact import FactSet, OwnAnswer
from adapop.remark import Remark

FORM_OF_WAY = {
    "chat": "in chat",
    "chat-examples": "in chat, examples first",
    "text-examples": "as text, examples first",
}
"""Another way of asking -> its name as a form of question in tables."""
HOW = {
    "chat": "in chat",
    "chat-examples": "in chat after three examples",
    "text-examples": "as text after three examples",
}


@dataclass(frozen=True)
class Way:
    """How the original model replies when asked in one way."""

    asking: str
    """As `RunConfig.asking`, but not "auto"."""
    asked: int
    """How many facts were asked."""
    answered: int
    """Number of replies that contain the right answer."""
    at_once: int
    """Number of replies that begin with the right answer."""
    words_before: float | None
    """Median number of words before the answer; None if no reply contains it."""


@dataclass(frozen=True)
class Prompting:
    """How a run asks both models, in every form of a question; settled before training."""

    asking: str
    """As `Way.asking`."""
    examples: tuple[tuple[str, str], ...]
    """(question, answer) pairs that may stand before a question."""
    own_words: bool
    """Whether answers are scored where the model says them, not right behind the question."""
    reply_tokens: int
    """Most tokens of a reply."""
    asked: int
    """Facts to forget that were asked."""
    unknown: tuple[str, ...]
    """Ids of the facts to forget that the original does not answer."""
    drops: bool
    """Whether the unknown facts are left out of the run."""
    cut: int
    """How many of the original's replies were cut before they ended."""
    spoken: dict[str, OwnAnswer]
    """Fact id -> the model's own wording; empty if answers are scored as given."""
    tried: tuple[Way, ...]
    """The ways that were compared; empty where the settings name one."""
    empty: int = 0
    """How many of the original's replies had no word."""

    def facts_of(self, facts: FactSet) -> FactSet:
        """The set as the run uses it: without unknown facts to forget, if the run drops those."""
        if not self.drops:
            return facts
        left_out = {*self.unknown}
        remaining = tuple(fact for fact in facts.forget if fact.id not in left_out)
        return replace(facts, forget=remaining)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Prompting:
        """Parses what `to_json` wrote. Raises ValueError: the text is something else."""
        return as_kind(parse_json(text), cls)


def remarks_of(prompting: Prompting | None) -> list[Remark]:
    """Remarks on how the model is asked and why; empty for a shipped model."""
    if prompting is None:
        return []
    compared = []
    for way in prompting.tried:
        compared += [f"{HOW[way.asking]} {way.answered} of {way.asked} ({way.at_once} right away)"]
    known, unknown = prompting.asked - len(prompting.unknown), len(prompting.unknown)
    how = {"how": HOW[prompting.asking]}
    values = {"answered": known, "facts": prompting.asked, "most": prompting.reply_tokens}
    values_by_kind = {
        "ways_compared": compared and {"ways": ", ".join(compared)},
        "asked_so": how | values,
        "unknown_left_out": prompting.drops and unknown and {"facts": unknown},
        "none_known": not known and {"facts": prompting.asked},
        "own_words": prompting.own_words and how,
        "empty_replies": prompting.empty and {"count": prompting.empty},
        "cut_replies": prompting.cut and {"count": prompting.cut},
    }
    return [Remark(kind, one) for kind, one in values_by_kind.items() if one]
