"""What the rows of `survival` say: Cox models, survival curves, and pairs that began alike.

statsmodels fits Cox's models, lifelines the rest (the extra `bench`). Every interval but that of
the accelerated-failure model, which has no such errors, is over facts and clustered by answer,
because two facts with one answer are not independent and each fact occurs once a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from adapop.config.methods import METHODS
from adapop.errors import ConfigError
from adapop.experiments.survival import Survival, facts_of
from adapop.facts.fact import TIERS, Fact
from adapop.report.figures import Figure, look
from adapop.report.table import Table

ENDPOINTS = {
    "reworded": "first rewording",
    "half": "half of all rewordings",
    "top2": "first two guesses",
    "direct": "trained question",
}
EXPOSURES, CONFIDENCE = "log exposures", ["nll, as trained", "nll, reworded"]
ALIKE = 0.05  # nats: the most by which the two facts of a matched pair differ in both wordings
DRAWS, SEED = 2000, 0  # of the bootstrap over answers


@dataclass(frozen=True)
class Coefficient:
    """A Cox coefficient per standard deviation: below 0, more of it means a longer life."""

    value: float
    low: float
    high: float
    concordance: float
    """How well the fitted risk ranks survival, [0, 1], over all facts; 0.5 is chance."""

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({self.low:+.2f}, {self.high:+.2f})"


def package(name: str) -> Any:
    """A package of the extra `bench`. Raises ConfigError: it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        message = f"The tables of `bench survival` need {name}, which is not installed."
        raise ConfigError(message, "pip install lifelines statsmodels") from None


def frame_of(rows: Sequence[Survival], endpoint: str = "reworded") -> pd.DataFrame:
    """A line for each fact and run of one world and method, of those held before training.

    Columns: fact, answer, group (what has a baseline hazard of its own: the answer, or in the
    people world the relation), seed, tier, time in epochs, lost, `EXPOSURES` and `CONFIDENCE`, both
    per standard deviation over the world's facts, and the raw nlls as `direct` and `reworded`."""
    world = rows[0].world
    columns = {
        fact.id: {
            "answer": fact.answer,
            "group": fact.relation if world == "people" else fact.answer,
            "tier": fact.tier,
            EXPOSURES: math.log(fact.score or math.nan),
        }
        for fact in facts_of(world).forget
    }
    frame = lives(rows, lambda row: facts_of(world, row.quick).forget, endpoint)
    frame = frame.join(pd.DataFrame.from_dict(columns, orient="index"), on="fact")
    frame["direct"], frame["reworded"] = frame[CONFIDENCE[0]], frame[CONFIDENCE[1]]
    for name in (EXPOSURES, *CONFIDENCE):
        once = frame.drop_duplicates("fact")[name]
        frame[name] = (frame[name] - once.mean()) / once.std()
    return frame


def lives(
    rows: Sequence[Survival],
    asked: Callable[[Survival], Sequence[Fact]],
    endpoint: str,
) -> pd.DataFrame:
    """A line for each fact and run, of those held before training: fact, seed, time in epochs, lost
    and `CONFIDENCE`. asked: the facts to forget of a run. endpoint: a field of `Lost`."""
    lines = []
    for row in rows:
        most, lost = row.epochs * row.looks, getattr(row.lost, endpoint)
        of_facts = zip(asked(row), lost, row.nll, row.nll_reworded, strict=True)
        for fact, last, direct, reworded in of_facts:
            if last != 0:
                time = (most if last is None else last) / row.looks
                lines.append((fact.id, row.seed, time, last is not None, direct, reworded))
    return pd.DataFrame(lines, columns=["fact", "seed", "time", "lost", *CONFIDENCE])


def coefficient(frame: pd.DataFrame, covariates: Sequence[str], within: bool) -> Coefficient:
    """The coefficient of the first covariate, with errors clustered by answer, and the concordance
    of the risk of all of them, which ranks facts across groups too. within: every group and seed
    has a baseline hazard of its own, so that only facts of one group are compared."""
    strata = ["group", "seed"] if within else ["seed"]
    # a stratum without a loss says nothing, and leaves the errors undefined
    informative = frame[frame.groupby(strata)["lost"].transform("any")]
    model = package("statsmodels.api").PHReg(
        informative["time"].to_numpy(),
        informative[[*covariates]].to_numpy(),
        status=informative["lost"].to_numpy().astype(int),
        strata=informative.groupby(strata).ngroup().to_numpy(),
        ties="efron",
    )
    groups = informative.groupby("answer").ngroup().to_numpy()
    fitted = model.fit(groups=groups, method="bfgs", disp=0)  # Newton's first step can be too far
    low, high = fitted.conf_int()[0]
    risk = frame[[*covariates]].to_numpy() @ fitted.params
    index = package("lifelines.utils").concordance_index
    ranked = [
        index(part["time"], -risk[part.index], part["lost"])
        for _, part in frame.groupby("seed")
        if part["time"].nunique() > 1  # facts that were all lost at one look cannot be ranked
    ]
    return Coefficient(float(fitted.params[0]), float(low), float(high), fmean(ranked))


def tables(rows: Sequence[Survival]) -> list[Table]:
    return [life_table(rows), coefficient_table(rows), endpoint_table(rows), check_table(rows)]


def life_table(rows: Sequence[Survival]) -> Table:
    """How long the facts of each tier are held, in epochs."""
    head = ("", "seeds", "facts held before", "lost in the end", *TIERS)
    lines = []
    for title, frame, own in by_arm(rows, frame_of):
        means = (frame[frame["tier"] == tier]["time"].mean() for tier in TIERS)
        held = frame["fact"].nunique()
        of = len(own[0].nll)
        lost = f"{frame['lost'].mean():.0%}"
        lines.append((title, str(len(own)), f"{held} of {of}", lost, *(f"{m:.1f}" for m in means)))
    note = "Mean epochs until the answer to the first rewording is lost for good, at most 16."
    return Table("How long facts survive equal pressure", head, tuple(lines), note)


def coefficient_table(rows: Sequence[Survival]) -> Table:
    """The coefficient of exposures alone and given confidence, and how well each ranks survival."""
    head = (
        "", "exposures alone", "exposures given confidence",
        "given confidence, within answer (people: relation)", "concordance: exposures",
        "confidence", "both",
    )  # fmt: skip
    lines = []
    for title, frame, _ in by_arm(rows, frame_of):
        alone, both, *ranks = beside_confidence(frame, EXPOSURES, within=False)
        within = coefficient(frame, [EXPOSURES, *CONFIDENCE], within=True)
        lines.append((title, alone, both, str(within), *ranks))
    note = (
        "Cox coefficients per standard deviation of the logarithm of exposures, with 95% intervals "
        "clustered by answer: below 0, facts that were shown more often live longer. Confidence is "
        "the negative log-likelihood before training, as trained and reworded."
    )
    title = "Does exposure tell how long a fact survives?"
    return Table(title, head, tuple(lines), note)


def beside_confidence(frame: pd.DataFrame, name: str, within: bool) -> tuple[str, ...]:
    """The coefficient of a covariate alone and given confidence, and how well it, confidence and
    both rank survival."""
    sets = [name], CONFIDENCE, [name, *CONFIDENCE]
    alone, sure, both = (coefficient(frame, covariates, within) for covariates in sets)
    return str(alone), str(both), *(f"{one.concordance:.3f}" for one in (alone, sure, both))


def endpoint_table(rows: Sequence[Survival]) -> Table:
    """The coefficient of exposures given confidence, within groups, by what counts as lost."""
    lines: dict[str, list[str]] = {}
    for endpoint in ENDPOINTS:
        for title, frame, _ in by_arm(rows, partial(frame_of, endpoint=endpoint)):
            cell = str(coefficient(frame, [EXPOSURES, *CONFIDENCE], within=True))
            lines.setdefault(title, []).append(cell)
    body = tuple((title, *cells) for title, cells in lines.items())
    note = "Exposures given confidence, within answer (people: relation), as in the table above."
    return Table("By what counts as lost", ("", *ENDPOINTS.values()), body, note)


def check_table(rows: Sequence[Survival]) -> Table:
    """Early and late losses apart, an accelerated-failure model, and pairs that began alike."""
    head = (
        "", "earlier half of losses", "later half", "accelerated failure: log time per SD",
        "pairs that began alike", "the more shown one lives longer",
    )  # fmt: skip
    lifelines, names, lines = package("lifelines"), [EXPOSURES, *CONFIDENCE], []
    for title, frame, _ in by_arm(rows, frame_of):
        apart = (str(coefficient(half, names, within=True)) for half in halves(frame))
        aft = lifelines.LogNormalAFTFitter()
        aft.fit(frame[[*names, "time", "lost"]], "time", "lost", robust=True)
        low, high = aft.confidence_intervals_.loc[("mu_", EXPOSURES)]
        value = aft.params_.loc[("mu_", EXPOSURES)]
        count, share = matched(frame)
        accelerated = f"{value:+.2f} ({low:+.2f}, {high:+.2f})"
        lines.append((title, *apart, accelerated, str(count), share))
    note = (
        "Exposures given confidence, within answer (people: relation), up to the median time of "
        "loss and after it: equal if hazards are proportional. Above 0 in the accelerated-failure "
        "model, facts that were shown more often live longer; its interval takes a fact's seeds "
        "for independent and is too narrow. "
        f"A pair shares its answer and differs by at most {ALIKE} nats before, in both wordings; "
        "pairs that are lost at the same look, or never, count half. Interval: bootstrap over "
        "answers."
    )
    return Table("Checks", head, tuple(lines), note)


def halves(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A frame up to the median time of loss, at which whoever still lives is censored, and of those
    who live longer. Cox's model assumes one coefficient for both; a test of Schoenfeld's residuals
    against the rank of time would have to be made stratum by stratum."""
    middle = frame.loc[frame["lost"], "time"].median()
    early = frame.assign(
        lost=frame["lost"] & (frame["time"] <= middle), time=frame["time"].clip(upper=middle)
    )
    return early, frame[frame["time"] > middle].reset_index(drop=True)


def matched(frame: pd.DataFrame) -> tuple[int, str]:
    """(number of pairs of facts that share an answer and began alike, how often the one that
    pretraining showed more often lives longer, with its interval over answers)."""
    shares: dict[str, list[float]] = {}
    pairs = set()
    for (answer, _), part in frame.groupby(["answer", "seed"]):
        if len(part) != 2:
            continue
        less, more = part.sort_values(EXPOSURES).to_dict("records")
        apart = max(abs(less[name] - more[name]) for name in ("direct", "reworded"))
        if apart > ALIKE or less[EXPOSURES] == more[EXPOSURES]:
            continue
        pairs.add(answer)
        later = (more["time"], not more["lost"]), (less["time"], not less["lost"])
        won = 0.5 if later[0] == later[1] else float(later[0] > later[1])
        shares.setdefault(answer, []).append(won)
    if not shares:
        return 0, "-"
    means = np.array([fmean(values) for values in shares.values()])
    drawn = np.random.default_rng(SEED).choice(means, (DRAWS, len(means))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return len(pairs), f"{means.mean():.0%} ({low:.0%} to {high:.0%})"


def curves(
    rows: Sequence[Survival],
    frame_of: Callable[[Sequence[Survival]], pd.DataFrame] = frame_of,
) -> Figure:
    """The share of facts that are still held, by tier, with its 95% interval over facts (bootstrap
    over answers), a row of panels for each world or model and a column for each method."""
    arms = by_arm(rows, frame_of)
    across = len({row.method for row in rows})
    down = math.ceil(len(arms) / across)
    figure = look.panels(
        110 + 250 * down, rows=down, cols=across, shared_xaxes="all", shared_yaxes="all",
        subplot_titles=[title for title, _, _ in arms], vertical_spacing=60 / (250 * down),
        horizontal_spacing=0.04,
    )  # fmt: skip
    for place, (_, frame, own) in enumerate(arms):
        epochs = np.arange(own[0].epochs * own[0].looks + 1) / own[0].looks
        panel = {"row": place // across + 1, "col": place % across + 1}
        for tier in TIERS:
            # nothing is censored before the last look, so the share is Kaplan and Meier's estimate
            lost = frame["lost"].to_numpy()[:, None] & (frame["time"].to_numpy()[:, None] <= epochs)
            held, draws = resampled(frame, ~lost, frame["tier"] == tier)
            ends = np.quantile(draws, [0.025, 0.975], axis=0)
            step = {"mode": "lines", "x": epochs, **panel}
            red, green, blue = (int(look.TIER_COLOR[tier][i : i + 2], 16) for i in (1, 3, 5))
            shade = f"rgba({red},{green},{blue},0.16)"
            for end, fill in zip(ends, (None, "tonexty")):
                line = {"width": 0, "shape": "hv"}
                figure.add_scatter(
                    y=end, line=line, fill=fill, fillcolor=shade, **look.UNLISTED, **step
                )
            figure.add_scatter(
                y=held,
                line=dict(color=look.TIER_COLOR[tier], width=2, shape="hv"),
                name=tier,
                legendgroup=tier,
                showlegend=place == 0,
                hovertemplate=f"{tier}, epoch %{{x}}: %{{y:.0%}}<extra></extra>",
                **step,
            )
    figure.update_xaxes(showticklabels=True)
    figure.update_xaxes(title="epoch", row=down)
    figure.update_yaxes(range=[-0.03, 1.05], tickformat=".0%")
    figure.update_yaxes(title="facts still held", col=1)
    legend = dict(yref="container", y=1, yanchor="top")
    return figure.update_layout(margin=dict(t=64), legend=legend)


def resampled(
    frame: pd.DataFrame, values: np.ndarray, chosen: pd.Series
) -> tuple[np.ndarray, np.ndarray]:
    """(means of the values over the chosen lines, the same in each of `DRAWS` bootstraps over
    answers). values: a line for each of the frame, any number of columns."""
    answers, chosen = frame["answer"].to_numpy(), chosen.to_numpy()
    sums = pd.DataFrame(values * chosen[:, None]).groupby(answers).sum().to_numpy()
    of = pd.Series(chosen).groupby(answers).sum().to_numpy()
    drawn = np.random.default_rng(SEED).multinomial(len(of), [1 / len(of)] * len(of), DRAWS)
    return sums.sum(0) / of.sum(), (drawn @ sums) / (drawn @ of)[:, None]


def by_arm(
    rows: Sequence[Survival], frame_of: Callable[[Sequence[Survival]], pd.DataFrame]
) -> list[tuple[str, pd.DataFrame, list[Survival]]]:
    """(title, frame, rows) of each world or model and method, in the order of the rows. frame_of:
    makes a frame of the rows of one of them."""
    arms: dict[tuple[str, str], list[Survival]] = {}
    for row in rows:
        arms.setdefault((row.world, row.method), []).append(row)
    worlds = list(dict.fromkeys(world for world, _ in arms))
    ordered = sorted(arms.items(), key=lambda arm: worlds.index(arm[0][0]))
    return [
        (f"{world}: {METHODS[method].title}", frame_of(own), own)
        for (world, method), own in ordered
    ]
