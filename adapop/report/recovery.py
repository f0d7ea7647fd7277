"""What the recovery probes found, each as a table with its control beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapop.report.record import GROUP_NAMES
from adapop.report.tables import Table, number

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
