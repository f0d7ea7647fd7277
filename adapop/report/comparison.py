"""Several runs side by side: in which settings they differ, and what each came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapop.events import Measured
from adapop.facts import TIERS
from adapop.figures import Outcome
from adapop.probes.matrix import Interval
from adapop.report.record import GROUP_NAMES, Record
from adapop.report.settings import differences
from adapop.report.tables import METRICS, Table, number

INTERNAL = ("delta_logprob", "delta_rank", "hidden_cosine", "kl")


@dataclass(frozen=True)
class Comparison:
    """settings: in what the runs differ. results: every metric, a column a run. warnings: what not to conclude."""

    names: tuple[str, ...]
    settings: Table
    results: Table
    warnings: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


def comparison(records: Sequence[Record]) -> Comparison:
    """Compares runs, in the order given."""
    names = tuple(f"{place} {record.title}" for place, record in enumerate(records, start=1))
    hashes = [record.facts.sha256[:12] for record in records]
    rows = [(name, *values) for name, values in differences([record.config for record in records])]
    rows += [("data (hash)", *hashes)] if len(set(hashes)) > 1 else []
    return Comparison(
        names,
        Table(("setting", *names), tuple(rows)),
        Table(("", *names), tuple(_results(records))),
        tuple(_warnings(records, hashes)),
        tuple(_outcomes(records)),
    )


def _warnings(records: Sequence[Record], hashes: Sequence[str]) -> list[str]:
    said = []
    if len(set(hashes)) > 1:
        said.append("These runs did not work on the same facts, so their numbers do not compare.")
    scored = any(record.config.method == "adapop" and record.config.beta.b for record in records)
    if scored and not any(record.config.scores == "shuffled" for record in records):
        said.append(
            "No run here had its scores shuffled. Without that control a difference is no evidence that popularity "
            "is what made it: python -m adapop run --preset shuffled"
        )
    if unmeasured := [str(place) for place, one in enumerate(records, start=1) if one.after is None]:
        said.append(f"Not measured at their end, because they never came to it: {', '.join(unmeasured)}.")
    if unprobed := [str(place) for place, one in enumerate(records, start=1) if not one.matrix.cells]:
        said.append(f"Not probed, so without attacks and intervals: {', '.join(unprobed)}.")
    return said


def _results(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """A row a metric, its arrow saying which way is better, with intervals where a run was probed."""
    rows = []
    for group, form, arrow in (
        ("forget", "direct", "↓"),
        ("forget", "reworded", "↓"),
        ("retain", "direct", "↑"),
        ("holdout", "direct", "↑"),
        ("holdout", "reworded", "↑"),
        ("utility", "direct", "↑"),
    ):
        for tier in (*TIERS, "all") if group == "forget" else ("all",):
            cells = [_recall(record, group, form, tier) for record in records]
            rows.append((f"{arrow} {GROUP_NAMES[group]}, {form}, {tier}", *cells))
        if group == "forget":
            rows.append((f"→0 {form}, popular − rare", *(_gap(record, form) for record in records)))
    for tier in (*TIERS, "all"):
        rows.append((f"↓ worst attack, {tier}", *(_attacked(record, tier) for record in records)))
    for metric in METRICS:
        if metric.field in INTERNAL:
            for group, arrow in (("forget", metric.forget), ("holdout", metric.others)):
                cells = [_internal(record.after, group, metric.field) for record in records]
                rows.append((f"{arrow} {metric.title}, {GROUP_NAMES[group]}", *cells))
    return [row for row in rows if any(row[1:])]


def _recall(record: Record, group: str, form: str, tier: str) -> str:
    recall = record.after.recall(group, form, tier) if record.after else None
    if recall is None:
        return ""
    return f"{recall:.2f}{_range(record.interval(group, form, tier))}"


def _gap(record: Record, form: str) -> str:
    if record.after is None:
        return ""
    rare, popular = (record.after.recall("forget", form, tier) for tier in ("rare", "popular"))
    return "" if rare is None or popular is None else f"{popular - rare:+.2f}"


def _attacked(record: Record, tier: str) -> str:
    worst = record.worst_attack(tier)
    return "" if worst is None else f"{worst.unlearned.recall.mean:.2f}{_range(worst.unlearned.recall)}\n{worst.kind}"


def _internal(after: Measured | None, group: str, field: str) -> str:
    wanted = (group, "direct", "all")
    rows = after.rows if after else ()
    return next((number(row[field]) for row in rows if (row["group"], row["form"], row["tier"]) == wanted), "")


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f"\n{interval.low:.2f} to {interval.high:.2f}"


def _outcomes(records: Sequence[Record]) -> list[Outcome]:
    """What is drawn: the original of the first measured run without a mark, and every measured run."""
    measured = [(str(place), record) for place, record in enumerate(records, start=1) if record.after is not None]
    outcomes = []
    for mark, record in measured:
        attacks = {tier: worst for tier in TIERS if (worst := record.worst_attack(tier))}
        direct = {tier: record.after.recall("forget", "direct", tier) for tier in TIERS}
        outcomes.append(
            Outcome(
                mark=mark,
                name=record.title,
                direct={tier: recall for tier, recall in direct.items() if recall is not None},
                attacked={tier: worst.unlearned.recall for tier, worst in attacks.items()},
                forget=record.after.recall("forget"),
                holdout=record.after.recall("holdout"),
            )
        )
    for _, record in measured[:1]:
        before = record.before
        outcomes.append(Outcome("", "original", {}, {}, before.recall("forget"), before.recall("holdout")))
    return outcomes
