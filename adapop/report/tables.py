"""The tables of one run, as text in cells; the page only puts tags around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapop.facts.fact import GROUPS, TIERS
from adapop.probes.matrix import Cell
from adapop.probes.prompts import KINDS
from adapop.report.record import GROUP_NAMES, Record
from adapop.training.events import Measured

FORMS = ("direct", "reworded")
COLUMNS = (*TIERS, "all")
DOWN, UP, LEVEL = "↓", "↑", "→0"


@dataclass(frozen=True)
class Table:
    """A head and rows; the first cell of a row names it. A cell may have several lines."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Metric:
    """A measured number. field: of `Measurement`. forget, others: which way is better for facts to forget and for all
    others: down, up, or that it should stay (0)."""

    field: str
    title: str
    forget: str
    others: str
    meaning: str


METRICS = (
    Metric("recall", "recall", DOWN, UP, "ROUGE-L recall of the greedy answer: how much of the right one it says, 0–1"),
    Metric("cosine", "cosine", DOWN, UP, "cosine of MiniLM embeddings of the answer and the right one"),
    Metric("delta_logprob", "Δ log p", DOWN, LEVEL, "change of the right answer's log-probability, nats per answer"),
    Metric("delta_rank", "Δ rank", UP, LEVEL, "mean change of the rank of the right answer's tokens among all tokens"),
    Metric("hidden_cosine", "hidden cosine", DOWN, UP, "cosine with the original's hidden states, last four layers"),
    Metric("kl", "KL", UP, DOWN, "KL divergence from the original's distribution over tokens, nats per token"),
)


def recall_table(before: Measured, after: Measured) -> Table:
    """Recall before and after, a row a group and form, a column a tier."""
    rows = []
    for group in GROUPS:
        for form in FORMS:
            found = [_row(after, group, form, tier) for tier in COLUMNS]
            if not any(found):
                continue
            cells = [
                "" if row is None else f"{before.recall(group, form, row['tier']):.2f} → {row['recall']:.2f}"
                for row in found
            ]
            rows.append((f"{GROUP_NAMES[group]}, {form}", f"{found[-1]['facts']:,}", *cells))
    return Table(("", "facts", *COLUMNS), tuple(rows))


def metrics_table(after: Measured) -> Table:
    """The other metrics of the trained questions, a row a group and tier. What was not measured has no column."""
    found = [row for row in after.rows if row["form"] == "direct"]
    shown = [metric for metric in METRICS[1:] if any(row[metric.field] is not None for row in found)]
    head = [f"{metric.title} {metric.forget}/{metric.others}" for metric in shown]
    order = {(group, tier): place for place, (group, tier) in enumerate((g, t) for g in GROUPS for t in COLUMNS)}
    found.sort(key=lambda row: order[row["group"], row["tier"]])
    rows = [
        (
            f"{GROUP_NAMES[row['group']]}, {row['tier']}",
            f"{row['facts']:,}",
            *(number(row[metric.field]) for metric in shown),
            f"{row['words']:.1f}",
        )
        for row in found
    ]
    return Table(("", "facts", *head, "words"), tuple(rows))


def leak_table(record: Record) -> Table:
    """Recall under every form: facts to forget by tier, and as a whole those that were to stay."""
    columns = [("forget", tier, tier) for tier in COLUMNS]
    columns += [(group, "all", GROUP_NAMES[group]) for group in ("retain", "holdout")]
    cells = {(cell.group, cell.tier, cell.kind): cell for cell in record.matrix.cells}
    used = [(group, tier, name) for group, tier, name in columns if any(key[:2] == (group, tier) for key in cells)]
    rows = [
        (kind, *(_leak(cells.get((group, tier, kind))) for group, tier, _ in used))
        for kind in KINDS
        if any(key[2] == kind for key in cells)
    ]
    return Table(("", *(name for *_, name in used)), tuple(rows))


def verdict_table(record: Record) -> Table:
    """How many facts have which verdict, a row a verdict."""
    counts = record.verdict_counts()
    names = list(dict.fromkeys(name for verdicts in counts.values() for name in verdicts))
    rows = [(name, *(f"{found[name]:,}" if name in found else "" for found in counts.values())) for name in names]
    totals = ("facts", *(f"{sum(found.values()):,}" for found in counts.values()))
    return Table(("", *counts), (*rows, totals))


def not_asked_table(record: Record) -> Table:
    """What was not asked, of how many facts, and why."""
    rows = [(left_out.kind, f"{left_out.facts:,}", left_out.reason) for left_out in record.matrix.not_asked]
    return Table(("form", "facts", "why"), tuple(rows))


def number(value: float | None) -> str:
    """A number with as many digits as it deserves; nothing for what was not measured."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _row(measured: Measured, group: str, form: str, tier: str) -> dict | None:
    return next((row for row in measured.rows if (row["group"], row["form"], row["tier"]) == (group, form, tier)), None)


def _leak(cell: Cell | None) -> str:
    if cell is None:
        return "not asked"
    before, after = cell.original.recall, cell.unlearned.recall
    asked = f"{cell.facts:,} fact{'' if cell.facts == 1 else 's'}"
    if not cell.measurable:
        return f"not measurable\n({before.mean:.2f} → {after.mean:.2f})\n{asked}"
    guess = f"\na guess: {cell.chance:.2f}" if cell.chance else ""
    return f"{before.mean:.2f} → {after.mean:.2f}\n{after.low:.2f} to {after.high:.2f}\n{asked}{guess}"


ABOUT = {
    "relearn": (
        "Relearning",
        "The unlearned model was trained for {steps} steps on {count} forgotten facts, and asked for the others. The "
        "control was trained on as many invented facts. “Hidden” is what true facts brought back beyond both: it was "
        "not erased. That is a lower bound, for invented facts may lift the lid as well; below 0 it is harm.",
    ),
    "quantise": (
        "Rounding the weights",
        "All linear weights were rounded to a few bits, as one does to make a model small. The original model, rounded "
        "alike, is the control, and so are the retained facts: recall as it is → rounded.",
    ),
    "sampling": (
        "Drawing many answers",
        "Each question was answered {samples} times at temperature {temperature:g}, and the right answer's first token "
        "was looked for among the likeliest. A wrong answer of the same kind, looked for in the same places, is the "
        "control: what guessing finds. Shares of facts.",
    ),
    "lens": (
        "Looking through the layers",
        "What leaves each layer was read as if it were the last: the share of facts whose answer leads there, with the "
        "median rank of its first token. A wrong answer of the same kind in the unlearned model is the control.",
    ),
}


@dataclass(frozen=True)
class Recovered:
    """One recovery probe: title, how to read it, its table, and how many facts it brought back, if it says so."""

    title: str
    about: str
    table: Table
    returned: int | None


def recovered_by(results: Mapping[str, Mapping[str, Any]]) -> list[Recovered]:
    """The probes that were run, in our order."""
    found = []
    for name, (title, about) in ABOUT.items():
        if result := results.get(name):
            words = about.format(
                steps=result.get("steps"),
                count=len(result.get("trained", ())),
                samples=result.get("samples"),
                temperature=result.get("temperature", 0.0),
            )
            returned = len(result["returned"]) if "returned" in result else None
            found.append(Recovered(title, words, TABLES[name](result["rows"]), returned))
    return found


def _relearned(rows: list[dict]) -> Table:
    head = ("", "facts", "before", "after", "control", "hidden")
    return Table(
        head,
        tuple(
            (
                f"{row['tier']}, {row['form']}",
                f"{row['facts']:,}",
                *(f"{row[name]:.2f}" for name in ("before", "after", "control")),
                f"{row['after'] - max(row['before'], row['control']):+.2f}",
            )
            for row in rows
        ),
    )


def _quantised(rows: list[dict]) -> Table:
    return Table(
        ("", "facts", "unlearned", "original"),
        tuple(
            (
                f"{row['bits']} bits, {GROUP_NAMES[row['group']]}, {row['tier']}",
                f"{row['facts']:,}",
                f"{row['unlearned']:.2f} → {row['unlearned_rounded']:.2f}",
                f"{row['original']:.2f} → {row['original_rounded']:.2f}",
            )
            for row in rows
        ),
    )


def _sampled(rows: list[dict]) -> Table:
    return Table(
        ("", "facts", "unlearned", "control", "original"),
        tuple(
            (
                f"{row['tier']}, {row['place']}",
                f"{row['facts']:,}",
                *(number(row[name]) for name in ("unlearned", "control", "original")),
            )
            for row in rows
        ),
    )


def _lensed(rows: list[dict]) -> Table:
    def leads(row: dict, name: str) -> str:
        return "" if row[name] is None else f"{row[name]:.2f}\nrank {number(row[f'{name}_rank'])}"

    return Table(
        ("layer", "facts", "unlearned", "control", "original"),
        tuple(
            (
                f"{row['layer']}, {row['tier']}",
                f"{row['facts']:,}",
                *(leads(row, name) for name in ("unlearned", "control", "original")),
            )
            for row in rows
        ),
    )


TABLES = {"relearn": _relearned, "quantise": _quantised, "sampling": _sampled, "lens": _lensed}
