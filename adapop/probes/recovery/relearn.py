"""Relearning: whether training on some forgotten facts brings others back (Deeb and Roger 2024,
arXiv 2410.08827).

The facts trained on do not contain the others' answers, so an erased answer can only be guessed.
The control measures guessing and the effect of any training of this form: the same training on
invented facts, the same questions with the same answers exchanged among subjects. Answers that true
facts bring back beyond the control were hidden, not erased. This is a lower bound, because training
on wrong answers may also bring facts back. It may also do damage and leave the control below the
model before training; that difference is not counted as recovered.

If there is unrelated text, a third trial trains on that: answers that it brings back needed no hint
at all (Lucki et al. 2024, arXiv 2409.18025).
"""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from statistics import fmean

import torch

from adapop.errors import ConfigError, DataError, RunError
from adapop.facts.fact import Fact
from adapop.facts.text import normalized
from adapop.model.adapted import AdaptedModel
from adapop.probes.measure import DIRECT
from adapop.probes.recovery import base
from adapop.progress import Progress

COUNT, STEPS = 16, 10
# On the sandbox (WGA, AdaPop, seed 0) 10 steps teach true facts, and invented ones do no damage.
LEARNING_RATE = 5e-4
MICRO_BATCH = 16
CLIP = 1.0


@dataclass(frozen=True)
class RelearnRow:
    """Mean recall, [0, 1], of the facts of a tier, or of "all", that were not trained on, asked in
    one form.

    before: the unlearned model. after: trained on some of the other facts. control: trained on
    invented facts instead. unrelated: trained on questions that have nothing to do with the facts;
    None if there were none."""

    tier: str
    form: str
    facts: int
    before: float
    after: float
    control: float
    unrelated: float | None = None


@dataclass(frozen=True)
class Relearned:
    """The result of relearning.

    returned: ids of the facts not trained on that came back, asked directly, and not under the
    control. trained: ids of the facts trained on. nll: their mean -log p after the last step, nats
    per answer token: whether they were learnt. nll_control: the same for the invented facts."""

    rows: tuple[RelearnRow, ...]
    returned: tuple[str, ...]
    trained: tuple[str, ...]
    steps: int
    learning_rate: float
    nll: float
    nll_control: float


def relearn(
    model: AdaptedModel,
    facts: Sequence[Fact],
    max_new_tokens: int,
    progress: Progress,
    count: int = COUNT,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    seed: int = 0,
    unrelated: Sequence[Fact] = (),
) -> Relearned:
    """The recall of forgotten facts after training the adapter on `count` others. The adapter is
    restored. unrelated: questions that have nothing to do with the facts, `count` of which are
    trained on in another trial.

    AdamW without weight decay at a constant rate; every step uses all facts trained on, the loss is
    the mean nll of their answers' content tokens, and gradients are clipped to norm 1. Facts with
    the same question as one trained on, or the same subject and answer, are not measured. Raises
    DataError: too few facts have a wrong answer of the same relation, or none is left to ask.
    ConfigError: count, steps or learning_rate is not above 0."""
    if min(count, steps) < 1 or not learning_rate > 0:
        what = f"{count} facts for {steps} steps at rate {learning_rate}"
        raise ConfigError(f"Relearning cannot train on {what}.", "All three must be above 0.")
    base.check(model, facts)
    taught, others = split(facts, count, seed)
    invented = base.with_answers(taught, base.wrong_answers(taught, facts, seed))

    def trained_on(chosen: Sequence[Fact], telling: Progress) -> tuple[float, base.Recall]:
        with base.untouched(model):
            nll = teach(model, chosen, learning_rate, steps, telling)
            return nll, base.recall_by_form(model, others, max_new_tokens, telling)

    trials = {"Relearning": taught, "Control": invented}
    if unrelated:
        trials["Unrelated"] = random.Random(seed).sample(unrelated, min(count, len(unrelated)))
    with base.untouched(model):
        before = base.recall_by_form(model, others, max_new_tokens, base.within(progress, "Before"))
        done = [trained_on(rows, base.within(progress, name)) for name, rows in trials.items()]
    (nll, after), (nll_control, control) = done[:2]
    return Relearned(
        rows=_rows(others, before, *(recall for _, recall in done)),
        returned=base.came_back(others, before[DIRECT], after[DIRECT], control[DIRECT]),
        trained=tuple(fact.id for fact in taught),
        steps=steps,
        learning_rate=learning_rate,
        nll=nll,
        nll_control=nll_control,
    )


def split(facts: Sequence[Fact], count: int, seed: int) -> tuple[list[Fact], list[Fact]]:
    """(facts to train on, facts to ask), see `relearn`. The former have a wrong answer and are
    taken from the tiers in turn. Raises DataError: too few."""
    rng, wrong = random.Random(seed), base.wrong_answers(facts, facts, seed)
    able = [fact for fact, answer in zip(facts, wrong) if answer is not None]
    tiers: dict[str, list[Fact]] = defaultdict(list)
    for fact in rng.sample(able, len(able)):
        tiers[fact.tier].append(fact)
    in_turn = chain.from_iterable(zip_longest(*(tiers[tier] for tier in sorted(tiers))))
    taught = [fact for fact in in_turn if fact is not None][:count]
    questions = {normalized(fact.question) for fact in taught}
    pairs = {_subject_and_answer(fact) for fact in taught if fact.subject}
    others = [fact for fact in facts if normalized(fact.question) not in questions]
    others = [fact for fact in others if _subject_and_answer(fact) not in pairs]
    if len(taught) < count or not others:
        usable = f"{len(able)} of these {len(facts)} can be trained on"
        raise DataError(
            f"Relearning needs {count} facts to train on and others to ask about, but {usable}: "
            "their relation must have several answers.",
            "Use more facts.",
        )
    return taught, others


def _subject_and_answer(fact: Fact) -> tuple[str, str]:
    return normalized(fact.subject), normalized(fact.answer)


def teach(
    model: AdaptedModel, facts: Sequence[Fact], rate: float, steps: int, progress: Progress
) -> float:
    """Trains on all facts each step. Returns their mean nll afterwards, nats per answer token."""
    rows = model.rows(facts)
    chunks = [rows[start : start + MICRO_BATCH] for start in range(0, len(rows), MICRO_BATCH)]
    batches = [model.batch(chunk) for chunk in chunks]
    tokens = sum(batch.count for batch in batches)
    optimizer = torch.optim.AdamW(model.parameters, lr=rate, weight_decay=0.0)
    model.network.train()
    for step in range(steps):
        progress.say(f"Training step {step + 1} of {steps}.")
        optimizer.zero_grad(set_to_none=True)
        for batch in batches:
            (model.score(batch).nll.sum() / tokens).backward()
        _finite(torch.nn.utils.clip_grad_norm_(model.parameters, CLIP).item(), "gradient")
        optimizer.step()
    model.network.eval()
    with torch.no_grad():
        nll = sum(model.score(batch).nll.sum().item() for batch in batches) / tokens
        return _finite(nll, "loss")


def _finite(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise RunError(f"Relearning: the {name} is not finite.", "Lower the learning rate.")
    return value


def _rows(others: Sequence[Fact], *measured: base.Recall) -> tuple[RelearnRow, ...]:
    rows = []
    for form in measured[0]:
        members = [fact for fact in others if fact.id in measured[0][form]]
        for tier, ids in base.in_tiers(members, [fact.id for fact in members]).items():
            means = [fmean(recall[form][name] for name in ids) for recall in measured]
            rows.append(RelearnRow(tier, form, len(ids), *means))
    return tuple(rows)
