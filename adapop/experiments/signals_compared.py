"""Which signal should set β? AdaPop with β by exposures, by what the model tells, and by none.

Written down before any of its runs was made:

- **Question.** AdaPop takes its scores from outside the model. Does that say more than what the
  model tells by itself?
- **Runs.** AdaPop on the sandbox, α by dual ascent, five epochs, at three rates, seeds 0 to 9. A
  signal only decides *which* fact gets which β: the scores themselves, and so all values of β, are
  the same for every signal but `none`, for which each fact has the mean β.
- **Signals.** *exposures*: how often pretraining showed the fact; *confidence*: the mean log p of
  the answer, as trained; *margin*: log p of the answer's first token minus that of the likeliest
  other; *gradient*: the norm of the gradient of the fact's nll by the adapter, before the first
  step (the smaller, the higher the score); *pilot*: how much the nll of the answer grew in one
  epoch of WGA at its own rate and the same seed (the less, the higher the score); *shuffled*: the
  exposures dealt at random by seed; *none*.
- **Measure.** Popular minus rare facts to forget, in the rewordings of the test split: recall, top
  2 (the right answer is the first guess or the best of its relation's others), and rank; and what
  is kept of the held-out facts. All are read where 70, 50 and 30% of the trained questions are
  still answered, between neighbouring rates; a run that does not cross an amount is left out there.
- **Rule.** A score from outside says more than a signal if at 50% the gap of recall under
  exposures is nearer to 0 than under that signal: the 95% interval over seeds (Student's t,
  paired) of the difference of absolute gaps lies below 0. It says less if the interval lies above
  0. Else they cannot be told apart. How much a signal does alone is its share of the way from
  `none` to exposures, on means.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adapop.config.presets import SANDBOX_RATES, make_config
from adapop.errors import DataError
from adapop.experiments.plans import TEST, by_tier, facts_for, questions_of
from adapop.experiments.run import Engine, completed
from adapop.facts.fact import TIERS, FactSet, scores_of
from adapop.paths import commit
from adapop.popularity.beta import BetaMap
from adapop.probes.intervals import summary
from adapop.report.table import Table

if TYPE_CHECKING:
    from adapop.config.run import RunConfig
    from adapop.model.adapted import AdaptedModel

SIGNALS = {
    "exposures": "exposures",
    "confidence": "confidence",
    "margin": "margin to the next guess",
    "gradient": "gradient at the start",
    "pilot": "speed in a pilot epoch",
    "shuffled": "exposures, shuffled",
    "none": "none (the mean β)",
}
RATES = (5e-4, 1e-3, 2e-3)
SEEDS = tuple(range(10))
AMOUNTS = (0.7, 0.5, 0.3)
DECIDES = 0.5
FILE = "signals.csv"
GAPS = {"gap": "recall", "gap_top2": "top 2", "gap_rank": "rank"}


@dataclass(frozen=True)
class Outcome:
    """One run, a line of `FILE`."""

    signal: str
    rate: float
    seed: int
    quick: bool
    commit: str
    left: float
    """Recall of the trained questions of the facts to forget, [0, 1]."""
    all: float
    rare: float
    middle: float
    popular: float
    """Recall of the facts to forget in the test split's rewordings: of all, and by tier."""
    top2_rare: float
    top2_popular: float
    rank_rare: float
    rank_popular: float
    """Mean rank of the right answer among its relation's, from 1."""
    holdout: float
    """Recall of the test split's held-out facts."""


def run(
    folder: Path,
    seeds: Sequence[int],
    engine: Engine,
    quick: bool,
    report: Callable[[str], None],
) -> dict[str, str]:
    """Makes the runs that `folder` lacks and appends a line each as they end. Returns title of a
    failed run -> reason. Raises DataError: the file is damaged."""
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    done = {(one.signal, one.rate, one.seed, one.quick) for one in rows(path)}
    keys = ((signal, rate, seed) for seed, rate, signal in product(seeds, RATES, SIGNALS))
    missing = [key for key in keys if (*key, quick) not in done]

    def append(outcome: Outcome) -> None:
        line = pd.DataFrame([vars(outcome)])
        line.to_csv(path, mode="a", header=not path.exists(), index=False)

    result_of = partial(_run, quick=quick)
    return completed(missing, result_of, engine, len(done), _title, append, report)


def _title(key: tuple[str, float, int]) -> str:
    signal, rate, seed = key
    return f"{SIGNALS[signal]} at {rate:g}, seed {seed}"


def rows(path: Path) -> list[Outcome]:
    """All lines of a file; none if there is no file. Raises DataError."""
    if not path.exists():
        return []
    try:
        return [Outcome(**line) for line in pd.read_csv(path).to_dict("records")]
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged ({error}).", "Delete its last line.") from None


def _run(key: tuple[str, float, int], quick: bool) -> Outcome:
    """One run, on one core. key: signal, rate and seed."""
    import torch

    from adapop.model.loading import adapted_model

    torch.set_num_threads(1)
    signal, rate, seed = key
    facts = facts_for(quick)
    scores = scores_by(signal, seed, facts)
    curve = BetaMap()
    betas = [curve(scores[fact.id]) for fact in facts.forget]
    if signal == "none":
        betas = [fmean(betas)] * len(betas)
    config = _config("adapop", rate, seed)
    model = adapted_model(config)
    _train(config, model, facts, betas)
    measured = _measured(model, facts, config.max_new_tokens)
    return Outcome(signal, rate, seed, quick, commit(), **measured)


def _config(method: str, rate: float, seed: int) -> RunConfig:
    config = make_config(method, learning_rate=rate, seed=seed, measure="off", frames=0)
    return config if config.beta else replace(config, beta=BetaMap())


def _train(
    config: RunConfig, model: AdaptedModel, facts: FactSet, betas: Sequence[float] | None
) -> None:
    from adapop.training.trainer import Trainer

    for _ in Trainer("signals", config, model, facts.forget, facts.retain, betas).train():
        pass


def _measured(model: AdaptedModel, facts: FactSet, reply_tokens: int) -> dict[str, float]:
    from adapop.experiments.cells import recalls
    from adapop.probes.metrics import second_guesses

    part = questions_of(facts, TEST)
    trained = [(fact, (fact.question,)) for fact in facts.forget]
    questions = [*trained, *part["forget_reworded"], *part["holdout_direct"]]
    recall = recalls(model, questions, reply_tokens)
    guesses = second_guesses(model, facts.forget)
    reworded = by_tier(part["forget_reworded"], recall)
    values = {"left": by_tier(trained, recall)["all"]}
    values |= {tier: reworded[tier] for tier in ("all", *TIERS)}
    for name, by_question in guesses.items():
        tiers = by_tier(part["forget_reworded"], by_question)
        values |= {f"{name}_{tier}": tiers[tier] for tier in ("rare", "popular")}
    values["holdout"] = by_tier(part["holdout_direct"], recall)["all"]
    return {name: round(value, 6) for name, value in values.items()}


def scores_by(signal: str, seed: int, facts: FactSet) -> dict[str, float]:
    """Fact id -> score, of the facts to forget: the exposures, dealt in the order of a signal."""
    given = scores_of(facts.forget)
    if signal in ("exposures", "none"):
        return given
    ids = list(given)
    if signal == "shuffled":
        random.Random(seed).shuffle(ids)
        return dict(zip(ids, given.values()))
    strengths = _PER_FACT[signal](facts, seed)
    lowest_first = [ids[i] for i in np.argsort(strengths, kind="stable")]
    return dict(zip(lowest_first, sorted(given.values())))


def _confidence(facts: FactSet, seed: int) -> list[float]:
    return [-nll for nll in _nlls(_original(seed), facts)]


def _margin(facts: FactSet, seed: int) -> list[float]:
    import torch

    from adapop.probes.measure import by_row

    model = _original(seed)

    @torch.no_grad()
    def margins(rows: Sequence) -> list[float]:
        batch = model.batch(rows)
        logits = model.score(batch, logits=True).logits[batch.place == 0].float()
        gold = torch.tensor([row.answer[0] for row in rows]).unsqueeze(1)
        own = logits.gather(1, gold).squeeze(1)
        return (own - logits.scatter(1, gold, -torch.inf).amax(1)).tolist()

    return by_row(model, model.rows(facts.forget), margins)


def _gradient(facts: FactSet, seed: int) -> list[float]:
    model, norms = _original(seed), []
    model.network.eval()
    for row in model.rows(facts.forget):
        batch = model.batch([row])
        scored = model.score(batch)
        scored.row_mean(scored.nll, batch.content).sum().backward()
        squares = (p.grad.float().square().sum() for p in model.parameters if p.grad is not None)
        norms.append(sum(squares).sqrt().item())
        model.network.zero_grad(set_to_none=True)
    return [-norm for norm in norms]


def _pilot(facts: FactSet, seed: int) -> list[float]:
    config = replace(_config("wga", SANDBOX_RATES["wga"], seed), epochs=1)
    model = _original(seed)
    before = _nlls(model, facts)
    _train(config, model, facts, None)
    return [start - end for start, end in zip(before, _nlls(model, facts))]


def _original(seed: int) -> AdaptedModel:
    from adapop.model.loading import adapted_model

    return adapted_model(_config("wga", SANDBOX_RATES["wga"], seed))


def _nlls(model: AdaptedModel, facts: FactSet) -> list[float]:
    from adapop.probes.metrics import nlls

    return nlls(model, model.rows(facts.forget))


# the higher, the more a fact should count as popular
_PER_FACT: Mapping[str, Callable[[FactSet, int], list[float]]] = {
    "confidence": _confidence,
    "margin": _margin,
    "gradient": _gradient,
    "pilot": _pilot,
}


def frame_of(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """A line a run, with its gaps."""
    frame = pd.DataFrame([vars(one) for one in outcomes])
    frame = frame[~frame["quick"]]
    return frame.assign(
        gap=frame["popular"] - frame["rare"],
        gap_top2=frame["top2_popular"] - frame["top2_rare"],
        gap_rank=frame["rank_rare"] - frame["rank_popular"],
    )


def at_left(frame: pd.DataFrame, signal: str, left: float, measure: str) -> pd.Series:
    """As `crossed`, for the runs of a signal."""
    return crossed(frame[frame["signal"] == signal], left, measure)


def crossed(runs: pd.DataFrame, left: float, measure: str) -> pd.Series:
    """A measure by seed where a share of the trained questions is left, between neighbouring rates;
    without seeds whose runs do not cross it. runs: of one arm, with seed, rate and left."""
    crossings = {}
    for seed, own in runs.groupby("seed"):
        own = own.sort_values("rate").drop_duplicates("rate")
        shares, values = own["left"].to_numpy(), own[measure].to_numpy()
        for i in range(len(own) - 1):
            if shares[i] >= left >= shares[i + 1] and shares[i] > shares[i + 1]:
                crossings[seed] = np.interp(-left, -shares[i : i + 2], values[i : i + 2])
                break
    return pd.Series(crossings, dtype=float)


def nearer(frame: pd.DataFrame, signal: str, left: float, measure: str = "gap") -> pd.Series:
    """By seed, the absolute gap under exposures minus that under a signal: below 0, exposures leave
    less of a gap."""
    own = at_left(frame, "exposures", left, measure).abs()
    return (own - at_left(frame, signal, left, measure).abs()).dropna()


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """The gaps at each amount, what is kept, and what the rule says."""
    frame, all_tables = frame_of(outcomes), []
    for left in AMOUNTS:
        lines = []
        for signal, title in SIGNALS.items():
            cells = [
                _interval(at_left(frame, signal, left, name)) for name in (*GAPS, "all", "holdout")
            ]
            lines.append((title, *cells))
        head = ("β by", *(f"gap: {what}" for what in GAPS.values()), "in other words", "held out")
        note = "Mean over seeds with its 95% interval (Student's t). Gap: popular minus rare."
        all_tables.append(Table(f"Where {left:.0%} is left", head, tuple(lines), note))
    lines = []
    for signal, title in SIGNALS.items():
        if signal != "exposures":
            differences = [nearer(frame, signal, DECIDES, name) for name in GAPS]
            ruled = verdict(differences[0]), share(frame, signal)
            lines.append((title, *map(_interval, differences), *ruled))
    head = ("beside", *GAPS.values(), "a score from outside", "share of the effect of exposures")
    note = "Absolute gap under exposures minus that under the signal, paired by seed."
    all_tables.append(Table(f"The rule, where {DECIDES:.0%} is left", head, tuple(lines), note))
    return all_tables


def _interval(values: pd.Series) -> str:
    one = summary(list(values))
    if one is None or one.low is None:
        return ""
    return f"{one.mean:+.2f} ({one.low:+.2f} to {one.high:+.2f})"


def verdict(differences: pd.Series) -> str:
    """What the rule says of a score from outside. differences: of `nearer`."""
    one = summary(list(differences))
    if one is None or one.low is None or one.low <= 0 <= one.high:
        return "cannot be told apart"
    return "says more" if one.high < 0 else "says less"


def share(frame: pd.DataFrame, signal: str) -> str:
    """How far a signal leads on the way from none to exposures, by mean gaps, in percent."""
    none, own, outside = (
        at_left(frame, name, DECIDES, "gap").mean() for name in ("none", signal, "exposures")
    )
    return f"{(none - own) / (none - outside):.0%}"
