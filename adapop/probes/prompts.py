"""One prompt to a fact with the answer that counts, and the rule that a prompt never gives that answer away.

`attacks` and `paraphrase` make them, from facts alone: no model is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from adapop.facts.fact import Fact
from adapop.facts.text import mentions
from adapop.facts.world import language
from adapop.facts.world.world import WorldFact, world

DIRECT, REWORDED, CHOICE = "direct", "reworded", "multiple choice"
KINDS = (DIRECT, REWORDED, *language.WRAPPERS)


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


def world_fact(fact: Fact) -> WorldFact | None:
    """The fact of the sandbox world that this is, if it is one: another set may use the same ids."""
    found = _world().get(fact.id)
    same = found and (fact.question, fact.answer) == (language.question(found), found.answer)
    return found if same else None


@cache
def _world() -> dict[str, WorldFact]:
    return {fact.id: fact for fact in world()}


@dataclass(frozen=True)
class Reply:
    """One model's answer to one prompt.

    text: the greedy answer. recall: best ROUGE-L recall over the answers that count, accents folded, [0, 1]; strict:
    the same as `rouge_score` computes it. gold_rank: of the first gold token, 1 is best. gold_logprob: of the whole
    gold answer, nats. words: length of the answer. repetition: share of its word pairs that came before, [0, 1].
    cosine: MiniLM cosine with the gold answer, None where it was not measured.
    """

    text: str
    recall: float
    strict: float
    gold_rank: int
    gold_logprob: float
    words: int
    repetition: float
    cosine: float | None = None


@dataclass(frozen=True)
class ProbeRow:
    """One prompt to both models.

    group: forget, retain, holdout or utility. tier: of the fact's score. kind: one of `prompts.KINDS`. score: of the
    fact, None if unknown. chance: recall of a blind guess. delta_rank, hidden_cosine, kl: teacher-forced on the gold
    answer's content tokens, unlearned against original (METHODS 3.3).
    """

    fact_id: str
    group: str
    tier: str
    kind: str
    prompt: str
    gold: str
    original: Reply
    unlearned: Reply
    score: float | None = None
    chance: float = 0.0
    delta_rank: float = 0.0
    hidden_cosine: float = 1.0
    kl: float = 0.0
