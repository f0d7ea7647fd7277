"""The distance to the oracle in an experiment's rows: columns, table and figure. No torch."""

from collections.abc import Sequence

from adapop.experiments.results import STATE_NAMES, Row
from adapop.experiments.tables import Rows, Value, column, counted, over, text
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact
from adapop.probes.distance import Distance
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.figures import Figure
from adapop.report.figures.experiments import state_panels
from adapop.report.table import Table, reading

NEAR = column("oracle_as_never_all")
DIGITS = 6


def distance_cells(distance: Distance | None) -> dict[str, float | None]:
    """Column of `results.ORACLE` -> value; empty without a distance."""
    if distance is None:
        return {}
    cells = {}
    for tier in ("all", *TIERS):
        if shares := distance.shares(REWORDED, tier):
            for name, state in STATE_NAMES.items():
                cells[f"oracle_{name}_{tier}"] = shares[state].mean
    kls = {row.group: row.kl for row in distance.groups if (row.form, row.tier) == (DIRECT, "all")}
    cells |= {f"oracle_kl_{group}": kls.get(group) for group in FACT_GROUPS}
    return {**cells, "forget_quality_log10": distance.quality.log10}


def epoch_cells(facts: Sequence[Fact], epochs: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Column of `results.ORACLE_EPOCHS` -> the share of facts in that state before training and
    after each epoch; empty without an oracle. epochs: the facts' states by epoch, see
    `probes.oracle.states`."""
    cells = {}
    for tier in ("all", *TIERS):
        places = [place for place, fact in enumerate(facts) if tier in ("all", fact.tier)]
        chosen = [[states[place] for place in places] for states in epochs if states and places]
        for name, state in STATE_NAMES.items() if chosen else ():
            shares = [round(states.count(state) / len(states), DIGITS) for states in chosen]
            cells[f"oracle_epochs_{name}_{tier}"] = shares
    return cells


def nearest(row: Row) -> tuple[int, float] | None:
    """The first epoch with the largest share of facts as if never learnt, and that share."""
    shares = row["oracle_epochs_as_never_all"]
    return (shares.index(max(shares)), max(shares)) if shares else None


def oracle_table(arms: Rows) -> Table | None:
    """Distance of each arm to the oracle, nearest first; None if no row has a distance."""
    values: dict[str, Value] = {
        "as if never learnt": NEAR,
        "at its nearest": lambda row: (nearest(row) or (None, None))[1],
    }
    for name in ("over", "under"):
        for tier in TIERS:
            values[f"{name}-forgotten, {tier}"] = column(f"oracle_{name}_{tier}")
    values |= {f"KL, {group}": column(f"oracle_kl_{group}") for group in FACT_GROUPS}
    values["log₁₀ forget quality"] = column("forget_quality_log10")
    rows = []
    for title in _nearest_first(arms):
        own = [row for row in arms[title] if NEAR(row) is not None]
        means = [text(over(own, value)) for value in values.values()]
        ends = {f"{near[0]} of {len(row['lam']) - 1}" for row in own if (near := nearest(row))}
        rows.append((title, *means[:2], ", ".join(sorted(ends)), *means[2:], counted(own)))
    if not rows:
        return None
    first, second, *others = values
    head = ("", first, second, "epoch", *others, "seeds")
    return Table("Beside a model that never knew", head, tuple(rows), reading("oracle"))


def nearness(arms: Rows) -> Figure:
    """Shares of over-forgotten, as-if-never-learnt and under-forgotten facts, a panel per tier."""
    panels = {}
    for tier in TIERS:
        panels[tier] = {title: {} for title in _nearest_first(arms)}
        for title, shares in panels[tier].items():
            for name, state in STATE_NAMES.items():
                if share := over(arms[title], column(f"oracle_{name}_{tier}")):
                    shares[state] = share.mean
    return state_panels(panels)


def _nearest_first(arms: Rows) -> list[str]:
    """The arms measured against the oracle, nearest first."""
    means = {title: share.mean for title, rows in arms.items() if (share := over(rows, NEAR))}
    return sorted(means, key=means.get, reverse=True)
