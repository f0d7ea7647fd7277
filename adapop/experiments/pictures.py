"""An experiment's figures. Bars are 95% intervals over seeds; a single seed has none."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from operator import itemgetter
from string import ascii_uppercase

from adapop.experiments import tables
from adapop.experiments.plans import TEST
from adapop.experiments.results import RETAINED
from adapop.experiments.sweep import KEPT, TRAINED
from adapop.experiments.tables import OUTCOMES, Rows, Value, along, column, over
from adapop.facts.fact import FACT_GROUPS, TIERS
from adapop.probes.distance import STATE_NAMES
from adapop.probes.intervals import Interval, Summary
from adapop.probes.prompts import REWORDED
from adapop.report.figures import Figure, as_html, numbers_of
from adapop.report.figures import experiments as panels_of
from adapop.report.figures.compare import compare_runs
from adapop.report.figures.outcomes import Outcome
from adapop.report.figures.scatter import forget_against_holdout
from adapop.report.real import AT
from adapop.report.recorded import SHARE
from adapop.report.table import Table

SWEPT = {
    "forget": OUTCOMES["all"],
    "forget, as trained": column(TRAINED),
    "retain": column(KEPT),
    **{name: OUTCOMES[name] for name in ("holdout", "forget, cosine", "retain, cosine")},
}
NATS = {"Δ log p": "Δ log p, nats", "KL": "KL, nats"}  # metrics with a unit
INSIDE = {NATS.get(name, name): metric for name, metric in tables.INSIDE.items()}
Draw = Callable[[Rows], Figure]


def tiers(arms: Rows) -> Figure:
    """Recall by tier, a row per arm: the gap."""
    return compare_runs(_outcomes(arms))


def cost(arms: Rows) -> Figure:
    """Scatter of what was forgotten against recall of held-out facts."""
    return forget_against_holdout(_outcomes(arms), "asked in other words")


def differences(base: str) -> Draw:
    """Differences of each arm to the base arm, paired by seed."""

    def draw(arms: Rows) -> Figure:
        panels = {}
        for name in ("rare", "popular", "holdout"):
            panels[name] = []
            for title, rows in arms.items():
                pair = tables.paired_by_seed(rows, arms.get(base, ()), OUTCOMES[name])
                if pair and title != base:
                    panels[name].append((title, pair.within()))
        return panels_of.difference_panels(panels, base)

    return draw


def inside(arms: Rows) -> Figure:
    """Metrics from inside the model against the original, by group, a row per arm."""
    panels: dict[str, dict[str, list[tuple[str, Interval]]]] = {}
    for metric, name in INSIDE.items():
        marks = panels.setdefault(metric, {})
        for group in FACT_GROUPS:
            value = column(f"{group}_all_{name}")
            means = [(title, over(rows, value)) for title, rows in arms.items()]
            marks[group] = [(title, mean.within()) for title, mean in means if mean]
    return panels_of.mark_panels(panels)


def guesses(arms: Rows) -> Figure:
    """Recall by tier beside the second guess, which shows a gap where recall is near 0 in all
    tiers; a row per arm."""
    values = {
        "recall, in other words": {tier: OUTCOMES[tier] for tier in TIERS},
        "second guess (top 2)": {tier: column(f"{TEST}_forget_top2_{tier}") for tier in TIERS},
    }
    panels: dict[str, dict[str, list[tuple[str, Interval]]]] = {}
    for name, by_tier in values.items():
        for tier, value in by_tier.items():
            means = [(title, over(rows, value)) for title, rows in arms.items()]
            marks = [(title, share(mean)) for title, mean in means if mean]
            panels.setdefault(name, {})[tier] = marks
    return panels_of.mark_panels(panels).update_xaxes(range=[-0.03, 1.05])


def nearness(arms: Rows) -> Figure:
    """Shares of over-forgotten, as-if-never-learnt and under-forgotten facts, a panel per tier."""
    panels = {}
    for tier in TIERS:
        panels[tier] = {title: {} for title in tables.nearest_first(arms)}
        for title, shares in panels[tier].items():
            for name, state in STATE_NAMES.items():
                if share := over(arms[title], column(f"oracle_{name}_{tier}")):
                    shares[state] = share.mean
    return panels_of.state_panels(panels)


def rates(arms: Rows) -> Figure:
    """Recall of each method over learning rates."""
    return _over_rates(arms, SWEPT, "recall")


def rates_by_tier(arms: Rows) -> Figure:
    """Recall of each method over learning rates, a line per tier."""
    return _over_rates(arms, {tier: OUTCOMES[tier] for tier in TIERS}, "recall, in other words")


def arms_over_rates(arms: Rows) -> Figure:
    """Recall of each arm over learning rates, for facts to forget and to keep."""
    values = {name: OUTCOMES[name] for name in (*TIERS, "retain", "holdout")}
    return _over_rates(arms, values, "recall, forgotten ones in other words")


def _over_rates(arms: Rows, values: Mapping[str, Value], y_title: str) -> Figure:
    panels: dict[str, dict[str, list[tuple[float, Interval]]]] = {}
    for title, rows in arms.items():
        for name, value in values.items():
            if recall := over(rows, value):
                line = panels.setdefault(title.partition(AT)[0], {}).setdefault(name, [])
                line.append((rows[0]["rate"], share(recall)))
    for lines in panels.values():
        for line in lines.values():
            line.sort(key=itemgetter(0))  # the plan lists the usual rate first
    return panels_of.line_panels(panels, "learning rate", y_title, log_x=True)


def levels(arms: Rows) -> Figure:
    """Recall by exposure, asked as trained and in other words."""
    panels = {}
    lines = {"in other words": "levels_reworded", "as trained": "levels_direct"}
    for title, rows in arms.items():
        scores = next((row["levels"] for row in rows if row["levels"]), [])
        recalls = {name: map(share, along(rows, place)) for name, place in lines.items()}
        panels[title] = {name: list(zip(scores, values)) for name, values in recalls.items()}
    return panels_of.line_panels(panels, "popularity score", "recall", log_x=True)


def epochs(arms: Rows) -> Figure:
    """Recall by tier after each epoch and, if recorded, of the retained facts as trained."""
    lines = {**{tier: f"epochs_reworded_{tier}" for tier in TIERS}, "retained": RETAINED}
    panels = {}
    for title, rows in arms.items():
        recalls = {name: map(share, along(rows, place)) for name, place in lines.items()}
        panels[title] = {name: list(enumerate(values)) for name, values in recalls.items()}
    return panels_of.line_panels(panels, "epoch", "recall")


def page(title: str, figures: Sequence[Figure]) -> str:
    """An HTML page of figures that opens offline, with each figure's numbers as a table."""
    parts = [f"{as_html(one, library=i == 0)}{_numbers(one)}" for i, one in enumerate(figures)]
    name, start = escape(title), '<!doctype html><html lang="en">'
    head = f'<head><meta charset="utf-8"><title>{name}</title></head>'
    return f"{start}{head}<body><h1>{name}</h1>{''.join(parts)}</body></html>"


def _numbers(figure: Figure) -> str:
    numbers = numbers_of(figure)
    if not numbers.rows:  # unnamed points
        return ""
    table = Table("Numbers", numbers.columns, numbers.rows)
    return f"<details><summary>{table.title}</summary>{table.as_html()}</details>"


def share(recall: Summary) -> Interval:
    """The interval of a recall, clipped to 0 and 1."""
    return recall.within(*SHARE)


def _outcomes(arms: Rows) -> list[Outcome]:
    outcomes = []
    for place, (title, rows) in enumerate(arms.items()):
        mark = ascii_uppercase[place] if place < len(ascii_uppercase) else str(place)
        recalls = {tier: over(rows, OUTCOMES[tier]) for tier in TIERS}
        recall = {REWORDED: {tier: share(value) for tier, value in recalls.items() if value}}
        forget, holdout = over(rows, OUTCOMES["all"]), over(rows, OUTCOMES["holdout"])
        sides = forget and share(forget), holdout and share(holdout)
        outcomes.append(Outcome(mark, title, recall, *sides))
    return outcomes
