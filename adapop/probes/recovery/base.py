"""Shared by the recovery probes: restoring the model, recall by form and tier, wrong answers as
controls.

Controls search for, or train on, wrong answers of the right kind instead of right ones.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from adapop.errors import DataError, RunError
from adapop.facts.fact import Fact
from adapop.facts.pool import relation_of
from adapop.facts.text import normalized
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens, Row
from adapop.probes.judge import known_recall
from adapop.probes.measure import DIRECT, REWORDED, recall_by_fact
from adapop.probes.plan import in_tiers
from adapop.probes.recall import KNOWN_FROM
from adapop.progress import Progress

BOTH_MODELS = ("original", "unlearned")
Recall = dict[str, dict[str, float]]  # form -> fact id -> recall
Scores = Mapping[str, float]  # fact id -> score, [0, 1]
# Called with the facts, those with wrong answers and the progress: what it finds of both, by fact.
Find = Callable[[Sequence[Fact], Sequence[Fact], Progress], tuple[list, list]]


@dataclass(frozen=True)
class Found:
    """What a probe finds of one fact's answer in both models. control: of a wrong answer in the
    unlearned one; None where the facts have none."""

    id: str
    original: Any
    unlearned: Any
    control: Any


def as_model(model: AdaptedModel, name: str) -> AbstractContextManager[None]:
    """A context in which the model is one of BOTH_MODELS: adapter off or on."""
    return model.original() if name == "original" else nullcontext()


@contextmanager
def untouched(model: AdaptedModel) -> Iterator[None]:
    """A context that restores adapter, gradients and mode bit by bit, even after an error. It does
    not restore base weights: code that changes them must."""
    parameters, training = model.parameters, model.network.training
    before = [(parameter.detach().clone(), parameter.grad) for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        yield
    finally:
        with torch.no_grad():
            for parameter, (value, gradient) in zip(parameters, before):
                parameter.copy_(value)
                parameter.grad = gradient
        model.network.train(training)


def found_in_both(
    model: AdaptedModel, facts: Sequence[Fact], seed: int, progress: Progress, find: Find
) -> tuple[Found, ...]:
    """What `find` finds in each of BOTH_MODELS, which stay untouched. seed: of wrong answers."""
    wrong, results = wrong_answers(facts, facts, seed), []
    others = with_answers(facts, wrong)
    with untouched(model):
        for part, name in enumerate(BOTH_MODELS, start=1):
            doing = f"{name.capitalize()} model ({part} of 2)"
            with as_model(model, name):
                results.append(find(facts, others, within(progress, doing)))
    (original, _), (unlearned, control) = results
    controls = (None if answer is None else one for one, answer in zip(control, wrong))
    ids = (fact.id for fact in facts)
    return tuple(map(Found, ids, original, unlearned, controls))


def sides_by_tier(
    facts: Sequence[Fact], records: Sequence[Any], names: Sequence[str] = (*BOTH_MODELS, "control")
) -> Iterator[tuple[str, int, list[list]]]:
    """For each tier: its name, its number of facts, and the values of each side that are not None.
    records: one per fact. names: the fields of a record that are the sides; by default the
    original, the unlearned model and wrong answers."""
    for tier, members in in_tiers(facts, records).items():
        sides = [[getattr(record, side) for record in members] for side in names]
        yield tier, len(members), [[value for value in side if value is not None] for side in sides]


def check(model: AdaptedModel, facts: Sequence[Fact]) -> None:
    """Raises DataError: no fact. RunError: a weight is not finite, which looks like forgetting."""
    if not facts:
        raise DataError("There is no fact to probe.", "Choose at least one.")
    if not all(parameter.isfinite().all() for parameter in model.parameters):
        fix = "Probe an earlier epoch of the run."
        raise RunError("The adapter holds weights that are not finite.", fix)


def within(progress: Progress, doing: str) -> Progress:
    """Progress of a part of the work: its lines begin with `doing`, it stops with `progress`."""
    return Progress(lambda line: progress.say(f"{doing}. {line}"))


def recall_by_form(
    model: AdaptedModel, facts: Sequence[Fact], max_new_tokens: int, progress: Progress
) -> Recall:
    """Form -> fact id -> recall, for each fact's question and its first rewording, if any."""
    reworded = [replace(fact, question=fact.paraphrases[0]) for fact in facts if fact.paraphrases]
    return {
        DIRECT: recall_by_fact(model, facts, max_new_tokens, progress, known_recall),
        REWORDED: recall_by_fact(model, reworded, max_new_tokens, progress, known_recall),
    }


def came_back(
    facts: Sequence[Fact], before: Scores, after: Scores, control: Scores | None = None
) -> tuple[str, ...]:
    """Ids of the facts not answered before, answered after, and not in the control."""
    gained = [fact.id for fact in facts if before[fact.id] < KNOWN_FROM <= after[fact.id]]
    return tuple(name for name in gained if control is None or control[name] < KNOWN_FROM)


def check_logits(logits: Tensor) -> None:
    """Raises RunError if a logit is NaN: every comparison is false then, and all would rank 1."""
    if logits.isnan().any():
        fix = "Probe an earlier epoch of the run."
        raise RunError("The model's logits are not numbers: it is destroyed.", fix)


def openings(model: AdaptedModel, facts: Sequence[Fact]) -> list[Row]:
    """Each fact's question with only the first token of its answer."""
    return [replace(row, answer=row.answer[:1]) for row in model.rows(facts)]


def opening_batches(
    model: AdaptedModel,
    facts: Sequence[Fact],
    others: Sequence[Fact],
    progress: Progress,
    size: int,
    done: str = "Read",
) -> Iterator[tuple[AnswerTokens, AnswerTokens]]:
    """The `openings` of the facts and of the same facts with other answers, in batches of at most
    `size`, for a model that neither drops nor learns. done: what was done to earlier ones."""
    rows = [openings(model, part) for part in (facts, others)]
    model.network.eval()
    for start in range(0, len(facts), size):
        progress.say(f"{done} {start:,} of {len(facts):,} questions.")
        batch, other = (model.batch(part[start : start + size]) for part in rows)
        yield batch, other


def wrong_answers(facts: Sequence[Fact], pool: Sequence[Fact], seed: int) -> list[str | None]:
    """A wrong answer for each fact: the facts' own answers, exchanged among subjects of the same
    relation, so that wrong answers are as common as right ones. Where no exchange is possible,
    another answer of the relation in the pool; None if all of them are right. All answers that the
    pool has for a subject are right. Case and white space are ignored."""
    rng = random.Random(seed)
    right: dict[str, set[str]] = defaultdict(set)
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for fact in pool:
        right[normalized(fact.subject)].update(map(normalized, fact.answers))
        answers[_relation(fact)].setdefault(normalized(fact.answer), fact.answer)
    chosen: list[str | None] = [None] * len(facts)
    for members in _by_relation(facts, rng):
        # With facts sorted by answer, rotating by the most frequent answer's count changes all.
        turn = max(len(same) for same in members)
        order = [i for same in members for i in same]
        for i, other in zip(order, order[turn:] + order[:turn]):
            fact = facts[i]
            known = set(map(normalized, fact.answers))
            known |= right[normalized(fact.subject)] if fact.subject else set()
            wrong = [answer for key, answer in answers[_relation(fact)].items() if key not in known]
            if normalized(facts[other].answer) not in known:
                chosen[i] = facts[other].answer
            elif wrong:
                chosen[i] = rng.choice(wrong)
    return chosen


def _relation(fact: Fact) -> str:
    """The relation within which answers are exchanged; without one a fact is alone."""
    return relation_of(fact) or fact.id


def _by_relation(facts: Sequence[Fact], rng: random.Random) -> list[list[list[int]]]:
    """Indices of the facts: by relation, then by answer, the answers in random order."""
    relations: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, fact in enumerate(facts):
        relations[_relation(fact)][normalized(fact.answer)].append(i)
    return [rng.sample(list(same.values()), len(same)) for same in relations.values()]


def with_answers(facts: Sequence[Fact], answers: Sequence[str | None]) -> list[Fact]:
    """The facts with these as their only answers; a fact keeps its own where the answer is None."""
    return [
        fact if answer is None else replace(fact, answer=answer, accepted=(), parts=())
        for fact, answer in zip(facts, answers)
    ]
