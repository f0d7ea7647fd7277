"""`bench metrics`: which metric of forgetting can be trusted, separately for rare and popular
facts. No torch.

A metric is faithful if it tells models that know the facts from models that never read them, and
robust if its value on an unlearned model holds after the model was trained on other facts, or its
weights were rounded: otherwise it reported facts as forgotten that were still there. After the
meta-evaluation of open-unlearning (Dorna et al. 2025, arXiv 2506.12618), which has one number for
all facts. Its ratios of differences have no bound; here differences are shares of the distance
between the two kinds of model.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from statistics import fmean

from adapop.experiments.plans import KNOWS, NEVER_READ
from adapop.experiments.results import Row
from adapop.experiments.tables import Rows, text
from adapop.facts.fact import TIERS
from adapop.probes.distance import auc
from adapop.probes.intervals import Interval, Summary, summary
from adapop.report.figures import Figure
from adapop.report.figures.experiments import mark_panels
from adapop.report.table import Table

FAITHFULNESS_NOTE = (
    "AUC: how often a metric is higher for a fact in a model that knows it than for a fact of the "
    "same tier in a model that never read it; ties count half. AUC, models: the same for the means "
    "of models. The last columns show these means. The models: the sandbox's and its oracle, each "
    "as pretrained and after training on the retain set alone."
)
ROBUSTNESS_NOTE = (
    "Facts to forget in unlearned models ({unlearned}), on a scale from the oracle (0) to the "
    "original (1): what is left; how much that changes when other facts to forget are taught for "
    "ten steps; the same for models that never read them (control); and the change with weights "
    "rounded to 4 bits. Mean ± standard deviation over runs. Empty: the metric does not tell "
    "oracle and original apart."
)
EVERY_METRIC_NOTE = (
    "What is left, as above, of rare / popular facts; metrics that do not tell oracle and original "
    "apart are left out."
)

KINDS = (KNOWS.title, NEVER_READ.title)  # arms of the two kinds of model to be told apart
BEFORE, AFTER, RELEARNED, ROUNDED = STATES = ("before", "after", "relearned", "rounded")
ENDS = TIERS[0], TIERS[-1]
FAITHFUL = 0.9  # least AUC, rare and popular; the figure omits robustness of other metrics
LEAST = 0.01  # least difference between both kinds of model for `left` to be computed
# Values of a fact in [0, 1], higher if it is known: recall; the share of rewordings whose right
# answer is first or second guess; probability, a geometric mean over tokens; 1 minus TOFU's truth
# ratio (`closer_to_1`); metrics of `memorised`; attacks, as the share of held-out facts that look
# less trained on; and the share of layers from which the lens or patching (`still_read`) reads the
# answer.
METRICS = (
    "recall, reworded", "recall, as trained", "top 2, reworded", "probability, reworded",
    "probability", "truth ratio", "exact memorisation", "extraction strength", "mia_loss",
    "mia_min_k", "mia_min_k_plus_plus", "mia_zlib", "logit-lens depth", "patching depth",
)  # fmt: skip


def values_of(row: Row, state: str, metric: str, tier: str) -> list[float]:
    """A metric's values for the facts of a tier: one per fact, or their mean alone."""
    return row["metrics"][state][metric][tier]


def mean_of(row: Row, state: str, metric: str, tier: str) -> float:
    return fmean(values_of(row, state, metric, tier))


def separation(knows: Sequence[float], never: Sequence[float]) -> float:
    """The share of pairs with the higher value in `knows` (ties count half), [0, 1]."""
    return fmean(auc([-value for value in knows], [-value for value in never]))


def aucs(arms: Rows, metric: str, tier: str) -> list[float]:
    """How well a metric separates models that know the facts from models that never read them:
    `separation` for each pair of models, untrained ones included."""
    knows, never = (_models(arms, kind, metric, tier) for kind in KINDS)
    return [separation(one, other) for one, other in product(knows, never)]


def left(arms: Rows, row: Row, state: str, metric: str, tier: str) -> float | None:
    """How much of a tier's knowledge is left by a metric: 0 as in the oracle, 1 as in the original.
    None if the metric hardly separates these two. The tier must have facts."""
    ends = (next(_rows(arms, (kind,))) for kind in KINDS)
    knows, never = (mean_of(end, BEFORE, metric, tier) for end in ends)
    if knows - never < LEAST:
        return None
    return (mean_of(row, state, metric, tier) - never) / (knows - never)


def changes(arms: Rows, state: str, metric: str, tier: str, never: bool = False) -> Summary | None:
    """How much `left` changes from the end of a run to `state`, over the unlearned models. never:
    instead over the models that never read the facts, as a control."""
    differences = []
    for row in _rows(arms, (NEVER_READ.title,) if never else _unlearned(arms)):
        after, then = (left(arms, row, one, metric, tier) for one in (AFTER, state))
        differences += [] if after is None else [then - after]
    return summary(differences)


def faithfulness_table(arms: Rows) -> Table | None:
    """Each metric's faithfulness by tier; None without rows of both kinds of model."""
    if not _complete(arms):
        return None
    rows = []
    for metric in METRICS:
        cells = [fmean(aucs(arms, metric, tier)) for tier in TIERS]
        means = [
            [list(map(fmean, _models(arms, kind, metric, tier))) for kind in KINDS] for tier in ENDS
        ]
        cells += [separation(knows, never) for knows, never in means]
        cells += [fmean(values) for both in means for values in both]
        rows.append((metric, *(f"{cell:.2f}" for cell in cells)))
    head = (
        "", *(f"AUC, {tier} facts" for tier in TIERS), *(f"AUC, models, {tier}" for tier in ENDS),
        *(f"{tier}: {label}" for tier in ENDS for label in ("known", "never read")),
    )  # fmt: skip
    return Table("Faithfulness", head, tuple(rows), FAITHFULNESS_NOTE)


def robustness_table(arms: Rows) -> Table | None:
    """How much is left by each metric, and how that changes, by tier; None without such rows."""
    if not _complete(arms):
        return None
    rows = []
    for metric in METRICS:
        cells = [_left(arms, metric, tier) for tier in ENDS]
        for never in (False, True):
            cells += [changes(arms, RELEARNED, metric, tier, never) for tier in ENDS]
        cells += [changes(arms, ROUNDED, metric, tier) for tier in ENDS]
        rows.append((metric, *map(text, cells)))
    parts = ("left", "taught others", "the same of the oracle", "rounded")
    head = ("", *(f"{part}, {tier}" for part in parts for tier in ENDS))
    note = ROBUSTNESS_NOTE.format(unlearned=", ".join(_unlearned(arms)))
    return Table("Robustness", head, tuple(rows), note)


def method_table(arms: Rows) -> Table | None:
    """How much is left in each unlearned model, by metric; None without such rows."""
    if not _complete(arms):
        return None
    complete = [metric for metric in METRICS if all(_left(arms, metric, tier) for tier in ENDS)]
    rows = []
    for title in _unlearned(arms):
        pairs = ([text(_left(arms, name, tier, [title])) for tier in ENDS] for name in complete)
        rows.append((title, *map(" / ".join, pairs)))
    return Table("Every metric by method", ("", *complete), tuple(rows), EVERY_METRIC_NOTE)


def marks(arms: Rows) -> Figure:
    """Faithfulness and, for faithful metrics, robustness: a row per metric, a mark each for rare
    and popular facts. Bars: of an AUC the range over pairs of models, else 95% intervals."""
    if not _complete(arms):
        return mark_panels({})
    aucs_of = {tier: {name: aucs(arms, name, tier) for name in METRICS} for tier in ENDS}
    trusted = [
        name for name in METRICS if all(fmean(of[name]) >= FAITHFUL for of in aucs_of.values())
    ]
    measures = {
        "left of the unlearned": partial(_left, arms),
        "change, taught others": partial(changes, arms, RELEARNED),
        "change, rounded": partial(changes, arms, ROUNDED),
    }
    separated = {
        tier: [(name, Interval(fmean(of), min(of), max(of))) for name, of in by_name.items()]
        for tier, by_name in aucs_of.items()
    }
    panels = {"AUC, knows or never read": separated}
    for panel, measure in measures.items():
        panels[panel] = {}
        for tier in ENDS:
            means = [(name, measure(name, tier)) for name in trusted]
            panels[panel][tier] = [(name, mean.within()) for name, mean in means if mean]
    return mark_panels(panels)


def _left(arms: Rows, metric: str, tier: str, titles: Sequence[str] = ()) -> Summary | None:
    rows = _rows(arms, titles or _unlearned(arms))
    values = [left(arms, row, AFTER, metric, tier) for row in rows]
    return summary([value for value in values if value is not None])


def _models(arms: Rows, arm: str, metric: str, tier: str) -> list[list[float]]:
    """One list of the facts' values per model: an arm's untrained model, then its trained ones."""
    rows = [*_rows(arms, (arm,))]
    first = [values_of(row, BEFORE, metric, tier) for row in rows[:1]]
    return first + [values_of(row, AFTER, metric, tier) for row in rows]


def _rows(arms: Rows, titles: Sequence[str]) -> Iterator[Row]:
    return (row for title in titles for row in arms[title] if not row["failed"])


def _unlearned(arms: Rows) -> list[str]:
    return [title for title in arms if title not in KINDS]


def _complete(arms: Rows) -> bool:
    """Whether there are models of both kinds, and unlearned ones."""
    known = all(kind in arms and any(_rows(arms, [kind])) for kind in KINDS)
    return known and any(_rows(arms, _unlearned(arms)))
