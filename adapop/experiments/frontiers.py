"""Real models where equally much is forgotten: what is left of rare and popular facts, and kept.

`bench real` chooses a rate for each method, so its methods stop at different amounts. Here every
method runs at the same rates, and is read where the same share of the facts is still answered.
Written down before any of these runs was made:

- **Question.** Where a real model has forgotten equally much, does a score from outside leave less
  of the popular facts, or only more of the rare ones, and what do other facts pay?
- **Runs.** `ARMS` on the cities that ship, asked as text after examples, at `RATES` and `SEEDS`,
  five epochs. Only cities that the original answers as trained are forgotten and counted. All but
  AltPO are AdaPop with its dual α: with the population of the city; with the same populations in
  the order of the model's own confidence in its answer, or shuffled by seed; and with β = 1, which
  is the loss of WGA.
- **Measure.** A fact is answered if every token of the answer is the first guess, given those
  before. Facts to forget count by the share of their rewordings that are answered, retained and
  held-out facts as trained. All are read where `AMOUNTS` of the trained questions are still
  answered, between neighbouring rates; rate 0 is the original. A run that does not come down to an
  amount is left out there.
- **Rule**, at `DECIDES`, by 95% intervals of paired differences (a bootstrap over countries and
  seeds): the scores matter if AdaPop's gap minus the shuffled one's lies below 0; they help to
  forget popular facts if AdaPop's popular recall minus that with β = 1 lies below 0; they only keep
  the rare ones if that does not, but AdaPop's rare recall minus that with β = 1 lies above 0; a
  score from outside says more than confidence if the difference of absolute gaps lies below 0.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from adapop.config.presets import make_config
from adapop.errors import DataError
from adapop.experiments.plans import facts_for
from adapop.experiments.real import AS_TEXT, RATES, UNWATCHED
from adapop.experiments.results import append_line, read_lines
from adapop.experiments.run import Engine, completed
from adapop.experiments.survival import Asked
from adapop.facts.catalog import load_facts
from adapop.facts.fact import TIERS, Fact, FactSet
from adapop.paths import commit
from adapop.popularity.calibration import auto_anchors
from adapop.report.table import Table

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

SET = "cities"
ORIGINAL = "original"
ARMS = {
    "adapop": "AdaPop",
    "confidence": "AdaPop, β by confidence",
    "shuffled": "AdaPop, scores shuffled",
    "wga": "AdaPop, β = 1 (WGA)",
    "altpo": "AltPO",
}
SEEDS = (1, 2, 3, 4)
EPOCHS, QUICK_EPOCHS = 5, 1
AMOUNTS, DECIDES = (0.7, 0.5, 0.3), 0.5
DRAWS = 2000
FILE = "frontiers.jsonl"
MEASURES = ("left", *TIERS, "retain", "holdout", "gap")


@dataclass(frozen=True)
class Outcome:
    """One run, a line of `FILE`; each list in the order of the set's facts."""

    model: str
    arm: str
    rate: float
    """0 for the original."""
    seed: int
    quick: bool
    facts: str
    """sha256 of the set."""
    commit: str
    trained: tuple[int, ...]
    """Of each fact to forget whether its trained question is answered, 0 or 1."""
    reworded: tuple[float, ...]
    """The share of its rewordings that are answered."""
    retain: tuple[int, ...]
    holdout: tuple[int, ...]


def run(
    folder: Path,
    seeds: Sequence[int],
    engine: Engine,
    quick: bool,
    report: Callable[[str], None],
    model: str,
) -> dict[str, str]:
    """Makes the runs on a model that `folder` lacks and appends a line each as they end. Returns
    title of a failed run -> reason. Raises DataError: the file is damaged."""
    path = folder / FILE
    done = {(one.model, one.arm, one.rate, one.seed, one.quick) for one in rows(path)}
    keys = [(model, ORIGINAL, 0.0, 0)]
    keys += [(model, arm, rate, seed) for seed, rate, arm in product(seeds, RATES, ARMS)]
    wanted = [key for key in keys if (*key, quick) not in done]
    result_of, append = partial(_run, quick=quick), partial(append_line, path)
    return completed(wanted, result_of, engine, len(done), _title, append, report)


def _title(key: tuple[str, str, float, int]) -> str:
    model, arm, rate, seed = key
    return f"{model}, {ARMS.get(arm, arm)} at {rate:g}, seed {seed}"


def rows(path: Path) -> list[Outcome]:
    """All lines of a file, see `read_lines`."""
    return read_lines(path, _outcome)


def _outcome(content: dict) -> Outcome:
    lists = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
    return Outcome(**content | lists)


def _run(key: tuple[str, str, float, int], quick: bool) -> Outcome:
    """One run, on one core. key: model, arm, rate and seed."""
    import torch

    from adapop.model.loading import adapted_model
    from adapop.objectives.alternates import by_second_choice
    from adapop.runs.known import ready_to_ask, settle
    from adapop.training.trainer import Trainer

    torch.set_num_threads(1)
    name, arm, rate, seed = key
    facts = facts_for(quick, load_facts(SET, name))
    about = (*key, quick, facts.sha256, commit())
    other = {"arguments": {"source": "second"}, **UNWATCHED} if arm == "altpo" else {}
    config = make_config(
        "altpo" if arm == "altpo" else "adapop",
        model=name,
        facts=SET,
        learning_rate=rate or RATES[0],
        epochs=QUICK_EPOCHS if quick else EPOCHS,
        seed=seed,
        **AS_TEXT,
        **other,
    )
    config, asked = ready_to_ask(config, facts)
    model = adapted_model(config)
    settle(model, asked, config)
    before = list(Asked(model, asked.forget).by_fact())
    pressed = [
        (fact, wordings) for fact, wordings in zip(asked.forget, before) if wordings[0][1] == 1
    ]
    if arm != ORIGINAL:
        forget, sure = [fact for fact, _ in pressed], [-wordings[0][0] for _, wordings in pressed]
        betas = None if arm == "altpo" else betas_by(arm, forget, sure, seed)
        if arm == "altpo":  # each fact's wrong answer: the second guess of the original
            forget = by_second_choice(forget, model)
        for _ in Trainer("frontiers", config, model, forget, asked.retain, betas).train():
            pass
    return Outcome(*about, **_answered(model, asked))


def betas_by(arm: str, facts: Sequence[Fact], sure: Sequence[float], seed: int) -> list[float]:
    """The exponent of each fact. sure: mean log p of each answer before training."""
    if arm == "wga":
        return [1.0] * len(facts)
    scores = [fact.score for fact in facts]
    curve = auto_anchors(FactSet(SET, tuple(facts))).beta
    if arm == "shuffled":
        random.Random(seed).shuffle(scores)
    if arm == "confidence":  # the same scores, the highest to the surest
        scores = [sorted(scores)[place] for place in np.argsort(np.argsort(sure, kind="stable"))]
    return [curve(score) for score in scores]


def _answered(model: AdaptedModel, facts: FactSet) -> dict[str, tuple]:
    """What the model answers now, by field of `Outcome`."""

    def first(members: Sequence[Fact]) -> list[list[int]]:
        """Of each question of each fact, whether its answer is the first guess."""
        return [
            [int(rank == 1) for _, rank in wordings] for wordings in Asked(model, members).by_fact()
        ]

    asked = first(facts.forget)
    answered = {
        "trained": tuple(wordings[0] for wordings in asked),
        "reworded": tuple(round(fmean(wordings[1:]), 4) for wordings in asked),
    }
    for group in ("retain", "holdout"):
        as_trained = [replace(fact, paraphrases=()) for fact in getattr(facts, group)]
        answered[group] = tuple(wordings[0] for wordings in first(as_trained))
    return answered


@dataclass(frozen=True)
class Runs:
    """All runs of one model as numbers. values: arm x seed x rate x question, NaN for a missing
    run; only questions that the original answers. counted: measure x question, 1 where a question
    counts. country: number of each question's answer."""

    seeds: tuple[int, ...]
    values: np.ndarray
    counted: np.ndarray
    country: np.ndarray

    def at(self, amount: float, weights: np.ndarray | None = None) -> np.ndarray:
        """arm x seed x measure where so much of the trained questions is left; NaN for a run that
        does not come down to it. weights: of each country, by default equal."""
        counted = self.counted if weights is None else self.counted * weights[self.country]
        with np.errstate(invalid="ignore"):  # a draw may hold no fact of a tier
            means = self.values @ counted.T / counted.sum(1)
        crossed = np.full((*means.shape[:2], means.shape[3]), np.nan)
        for place in np.ndindex(means.shape[:2]):
            crossed[place] = _crossed(means[place], amount)
        rare, popular = (crossed[..., MEASURES.index(tier)] for tier in ("rare", "popular"))
        return np.concatenate([crossed, (popular - rare)[..., None]], axis=-1)


def _crossed(means: np.ndarray, amount: float) -> np.ndarray:
    """Measures of one arm and seed, between the first neighbouring rates whose shares left hold the
    amount. means: rate x measure, the share left first."""
    measured = means[~np.isnan(means[:, 0])]
    for above, below in pairwise(measured):
        if above[0] >= amount >= below[0] and above[0] > below[0]:
            return above + (above[0] - amount) / (above[0] - below[0]) * (below - above)
    return np.full(means.shape[1], np.nan)


def runs_of(outcomes: Sequence[Outcome]) -> Runs:
    """The runs of one model. Raises DataError: the original's row is missing, or they are of other
    facts than those that ship."""
    name = outcomes[0].model
    facts = load_facts(SET, name)
    begun = [one for one in outcomes if one.arm == ORIGINAL]
    if not begun or {one.facts for one in outcomes} != {facts.sha256}:
        message = f"The rows of {name} lack the original, or are of other facts."
        raise DataError(message, "Make the runs again, in another folder.")
    seeds = tuple(sorted({one.seed for one in outcomes} - {begun[0].seed}))
    known = np.concatenate([begun[0].trained] * 2 + [begun[0].retain, begun[0].holdout]) == 1
    asked = (*facts.forget, *facts.forget, *facts.retain, *facts.holdout)
    parts = np.repeat(range(4), [len(facts.forget)] * 2 + [len(facts.retain), len(facts.holdout)])
    tiers = np.array([fact.tier for fact in asked])
    counted = [
        parts == 0,
        *((parts == 1) & (tiers == tier) for tier in TIERS),
        parts == 2,
        parts == 3,
    ]
    _, country = np.unique([fact.answer for fact in asked], return_inverse=True)
    values = np.full((len(ARMS), len(seeds), 1 + len(RATES), len(asked)), np.nan)
    for one in outcomes:
        answers = np.concatenate([one.trained, one.reworded, one.retain, one.holdout])
        if one.arm == ORIGINAL:
            values[:, :, 0] = answers
        else:
            place = list(ARMS).index(one.arm), seeds.index(one.seed), 1 + RATES.index(one.rate)
            values[place] = answers
    return Runs(
        seeds, values[..., known], np.array(counted)[:, known].astype(float), country[known]
    )


def drawn(runs: Runs, amount: float) -> np.ndarray:
    """draw x arm x seed x measure, as `Runs.at`: countries and seeds drawn with replacement, the
    same for all arms."""
    random_numbers = np.random.default_rng(0)
    countries, seeds = runs.country.max() + 1, len(runs.seeds)
    draws = []
    for _ in range(DRAWS):
        weights = random_numbers.multinomial(countries, np.full(countries, 1 / countries))
        draws.append(runs.at(amount, weights)[:, random_numbers.integers(seeds, size=seeds)])
    return np.array(draws)


def interval(values: np.ndarray, draws: np.ndarray) -> tuple[float, float, float] | None:
    """(mean over seeds, low, high): the percentiles of the draws' means. None if no run comes down
    to the amount. values: by seed. draws: draw x seed."""
    if np.isnan(values).all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a draw in which no seed has a value
        low, high = np.nanpercentile(np.nanmean(draws, axis=1), (2.5, 97.5))
    return float(np.nanmean(values)), float(low), float(high)


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """What is left and kept at each amount, and what the rule says, model by model."""
    shown = []
    for name in dict.fromkeys(one.model for one in outcomes):
        runs = runs_of([one for one in outcomes if one.model == name and not one.quick])
        draws = {amount: drawn(runs, amount) for amount in AMOUNTS}
        shown += [_amount_table(name, runs, amount, draws[amount]) for amount in AMOUNTS]
        shown.append(_rule_table(name, runs, draws[DECIDES]))
    return shown


def _amount_table(name: str, runs: Runs, amount: float, draws: np.ndarray) -> Table:
    """draws: of `drawn`, at this amount."""
    values, lines = runs.at(amount), []
    for arm, title in enumerate(ARMS.values()):
        cells = (
            _text(interval(values[arm, :, place], draws[:, arm, :, place]))
            for place in range(1, len(MEASURES))
        )
        count = np.isfinite(values[arm, :, 0]).sum()
        lines.append((title, *cells, str(count)))
    note = (
        "Facts to forget in other words, by tier; retained and held-out facts as trained. Of facts "
        "that the original answers as trained. Mean over seeds whose runs reach this amount, "
        "with a 95% interval over countries and seeds (bootstrap)."
    )
    head = ("", *MEASURES[1:], "seeds")
    return Table(f"{name}: where {amount:.0%} is left", head, tuple(lines), note)


def _rule_table(name: str, runs: Runs, draws: np.ndarray) -> Table:
    """draws: of `drawn`, at `DECIDES`."""
    values, lines = runs.at(DECIDES), []
    for other in ("shuffled", "wga", "confidence", "altpo"):
        cells = [
            _text(interval(*(difference(numbers, other, measure) for numbers in (values, draws))))
            for measure in (*TIERS, "gap", "absolute gap", "retain", "holdout")
        ]
        lines.append((ARMS[other], *cells))
    head = ("AdaPop minus", *TIERS, "gap", "absolute gap", "retain", "holdout")
    note = "Paired by seed. The rule stands in `adapop/experiments/frontiers.py`."
    return Table(f"{name}: differences where {DECIDES:.0%} is left", head, tuple(lines), note)


def difference(values: np.ndarray, other: str, measure: str, arm: str = "adapop") -> np.ndarray:
    """An arm minus another, by seed. values: ... x arm x seed x measure."""
    place = MEASURES.index(measure.removeprefix("absolute "))
    arms = list(ARMS)
    own, beside = (values[..., arms.index(one), :, place] for one in (arm, other))
    return abs(own) - abs(beside) if measure.startswith("absolute") else own - beside


def _text(bounds: tuple[float, float, float] | None) -> str:
    if bounds is None:
        return ""
    rounded = [round(bound, 2) + 0.0 for bound in bounds]  # + 0.0: nothing becomes "-0.00"
    return "{:.2f} ({:.2f} to {:.2f})".format(*rounded)
