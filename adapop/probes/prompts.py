"""One prompt to a fact with the answer that counts, and the rule that a prompt never gives that answer away.

`attacks` and `paraphrase` make them, from facts alone: no model is needed.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from adapop.facts import Fact
from adapop.sandbox import language
from adapop.sandbox.world import WorldFact, world

DIRECT, REWORDED, CHOICE = "direct", "reworded", "multiple choice"
KINDS = (DIRECT, REWORDED, *language.WRAPPERS)
# Thai, Burmese, Korean (whose endings stick to a name), Khmer, Japanese and Chinese put no space after a word
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class Prompt:
    """One way to ask for a fact.

    kind: one of `KINDS`. gold: the answer that counts; the subject for "reverse query". accepted: other answers that
    count too: translations, or the letter of the right option, which counts only where a reply begins with it.
    options: of a multiple choice, in the order shown. chance: how often a blind guess among them is right.
    """

    fact_id: str
    kind: str
    text: str
    gold: str
    accepted: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    chance: float = 0.0


@dataclass(frozen=True)
class NotApplicable:
    """Why a fact cannot be asked in one way."""

    fact_id: str
    kind: str
    reason: str


def direct(fact: Fact) -> Prompt:
    """The question as it was trained on."""
    return Prompt(fact.id, DIRECT, fact.question, fact.answer)


def checked(prompt: Prompt) -> Prompt | NotApplicable:
    """The prompt, unless it contains an answer that counts. A multiple choice has to, and passes."""
    if prompt.kind != CHOICE and any(mentions(prompt.text, answer) for answer in (prompt.gold, *prompt.accepted)):
        return NotApplicable(prompt.fact_id, prompt.kind, "the prompt would contain the answer")
    return prompt


def mentions(text: str, words: str) -> bool:
    """Whether the words stand in the text as whole words, whatever the case, accents and spacing.

    In scripts without spaces between words (Chinese, Thai ...) any place counts.
    """
    text, words = folded(text), folded(words)
    if words not in text or not words:
        return False
    return bool(UNSPACED.search(words) or re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text))


def folded(text: str) -> str:
    """The text without case, accents and extra space, to compare by; recall ignores them too."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(text.casefold().split())


def world_fact(fact: Fact) -> WorldFact | None:
    """The fact of the sandbox world that this is, if it is one: another set may use the same ids."""
    found = _world().get(fact.id)
    same = found and (fact.question, fact.answer) == (language.question(found), found.answer)
    return found if same else None


@cache
def _world() -> dict[str, WorldFact]:
    return {fact.id: fact for fact in world()}
