"""Facts by relation and subject, for attacks that need related facts. Ignores case and accents.

Where the set names no subject or relation, they are guessed from the question: "Who wrote Emma?" is
about Emma; its relation "Who wrote …?" is shared with other books.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeVar

from adapop.facts.fact import Fact
from adapop.facts.text import folded, mentions, span_of
from adapop.facts.weak import gives_away

BLANK = "…"
_QUOTED = re.compile(r"[\"“«„]([^\"“”«»„]+)[\"”»“]")
# words that may stand between two words of a name
_JOINING = frozenset("of the de la le du da di del von van and in on al el".split())


def name_in(question: str) -> str:
    """The one name in a question: a quoted text, or words with a capital or a digit. "" if there is
    none, if there are several, and in scripts without capitals."""
    if quoted := _QUOTED.findall(question):
        return quoted[0].strip() if len(quoted) == 1 else ""
    names: list[list[str]] = [[]]
    waiting: list[str] = []
    for word in question.split()[1:]:
        if word[0].isupper() or word[0].isdigit():
            names[-1] += [*waiting, word] if names[-1] else [word]
            waiting = []
        elif names[-1] and word in _JOINING:
            waiting.append(word)
        elif names[-1]:
            names.append([])
            waiting = []
    texts = [" ".join(name) for name in names if name]
    return re.sub(r"(?:['’]s)?[^\w)]*$", "", texts[0]) if len(texts) == 1 else ""


def subject_of(fact: Fact) -> str:
    """The fact's subject, or the name in its question."""
    return fact.subject or name_in(fact.question)


def blanked(fact: Fact) -> str:
    """The question with `BLANK` for its subject and signs around it; "" unless it occurs once."""
    subject = subject_of(fact)
    span = span_of(fact.question, subject) if subject else None
    if span is None:
        return ""
    lead, tail = re.match(r"\W*", subject)[0], re.search(r"[^\w?]*$", subject)[0]
    before = fact.question[: span[0]].removesuffix(lead)
    after = fact.question[span[1] :].removeprefix(tail)
    return "" if mentions(after, subject) else f"{before}{BLANK}{after}"


def relation_of(fact: Fact) -> str:
    """The fact's relation, or its question with a blank for the subject. "" if neither is known."""
    return fact.relation or blanked(fact)


REVERSIBLE_FROM = 5
ONE_TO_ONE_FROM = 0.95

Item = TypeVar("Item")


@dataclass
class _Relation:
    facts: list[Fact] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    """Folded answer -> the answer as first written."""
    subjects: dict[str, set[str]] = field(default_factory=dict)
    """Folded answer -> its subjects, folded."""


class Pool:
    """The facts of all groups of a set, indexed once. A relation or subject that a fact does not
    name is guessed from its question; if that fails, that index omits the fact."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._relations: dict[str, _Relation] = {}
        self._subjects: dict[str, list[Fact]] = {}
        for fact in facts:
            relation = folded(relation_of(fact))
            subject = folded(subject_of(fact))
            answer = folded(fact.answer)
            if subject:
                self._subjects.setdefault(subject, []).append(fact)
            if relation:
                known = self._relations.setdefault(relation, _Relation())
                known.facts.append(fact)
                known.answers.setdefault(answer, fact.answer)
                known.subjects.setdefault(answer, set()).add(subject or fact.id)
        subjects = {name: known.subjects.values() for name, known in self._relations.items()}
        self._one_to_one = {
            name: fmean(len(group) == 1 for group in groups) for name, groups in subjects.items()
        }

    def about(self, fact: Fact) -> list[Fact]:
        """Other questions about the same subject, without those known to have the same relation."""
        question, relation = folded(fact.question), folded(fact.relation)
        others = self._subjects.get(folded(subject_of(fact)), ())
        others = [other for other in others if folded(other.question) != question]
        return [other for other in others if not relation or folded(other.relation) != relation]

    def alike(self, fact: Fact, rng: random.Random) -> Iterator[Fact]:
        """Facts of the same relation about other subjects, in an order drawn by `rng`."""
        subject = folded(subject_of(fact))
        drawn = _shuffled(self._of(fact).facts, rng)
        return (other for other in drawn if folded(subject_of(other)) != subject)

    def distractors(self, fact: Fact, rng: random.Random) -> Iterator[str]:
        """Distinct wrong answers of the same relation, in an order drawn by `rng`. None is a right
        answer of the same subject, contains the gold answer or is contained in it."""
        relation, subject = self._of(fact), folded(subject_of(fact))
        for key, answer in _shuffled(list(relation.answers.items()), rng):
            right = bool(subject) and subject in relation.subjects[key]
            if not (right or gives_away(answer, fact) or mentions(fact.answer, answer)):
                yield answer

    def not_reversible(self, fact: Fact) -> str:
        """Why the reversed question may have several right answers; "" if it has one, as far as
        this pool tells: this answer and at least 95% of the relation's answers have one subject
        each."""
        if not (subject_of(fact) and relation_of(fact)):
            return "the fact lacks a subject or relation, and its question does not show it"
        relation = self._of(fact)
        if len(relation.facts) < REVERSIBLE_FROM:
            few = f"fewer than {REVERSIBLE_FROM} facts of this relation"
            return f"the set has {few}, too few to judge by"
        if len(relation.subjects.get(folded(fact.answer), ())) > 1:
            return "other subjects have the same answer"
        if self._one_to_one[folded(relation_of(fact))] < ONE_TO_ONE_FROM:
            return "many answers of this relation have several subjects"
        return ""

    def _of(self, fact: Fact) -> _Relation:
        return self._relations.get(folded(relation_of(fact)), _Relation())


def _shuffled(items: Sequence[Item], rng: random.Random) -> Iterator[Item]:
    """The items in random order, drawn one by one: few are used, and a full shuffle is slow."""
    left = list(items)
    while left:
        i = rng.randrange(len(left))
        left[i], left[-1] = left[-1], left[i]
        yield left.pop()
