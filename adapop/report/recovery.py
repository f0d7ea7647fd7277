"""The tables of the recovery probes: what came back of forgotten facts, beside each probe's control."""

from collections.abc import Mapping
from typing import Any

from adapop.report.record import GROUP_NAMES
from adapop.report.table import Table, number

SIDES = ("unlearned", "control", "original")
Result = Mapping[str, Any]  # a probe's result as `Run.recovery` reads it


def recovery_tables(results: Mapping[str, Result]) -> list[Table]:
    """A table for each probe that was run. results: by the probe's name."""
    return [recovery_table(name, results[name]) for name in SHOWN if name in results]


def recovery_table(name: str, result: Result) -> Table:
    """What one probe found, by popularity; its note says how to read it and how many facts came back."""
    title, about, head, cells = SHOWN[name]
    note = [about.format(**result, count=len(result.get("trained", ())))]
    if "returned" in result:
        note.append(f"Facts it brought back: {len(result['returned']):,}.")
    note.append(f"It took {result['seconds']:.1f} s.")
    rows = [(first, f"{row['facts']:,}", *rest) for row in result["rows"] for first, *rest in [cells(row)]]
    return Table(title, (head[0], "facts", *head[1:]), tuple(rows), " ".join(note))


def _relearned(row: Result) -> tuple[str, ...]:
    hidden = row["after"] - max(row["before"], row["control"])
    recalls = (f"{row[name]:.2f}" for name in ("before", "after", "control"))
    return (f"{row['tier']}, {row['form']}", *recalls, f"{hidden:+.2f}")


def _quantised(row: Result) -> tuple[str, ...]:
    changes = (f"{row[side]:.2f} → {row[f'{side}_rounded']:.2f}" for side in ("unlearned", "original"))
    return (f"{row['bits']} bits, {GROUP_NAMES[row['group']]}, {row['tier']}", *changes)


def _sampled(row: Result) -> tuple[str, ...]:
    return (f"{row['tier']}, {row['place']}", *(number(row[side]) for side in SIDES))


def _read_by_layer(row: Result) -> tuple[str, ...]:
    leads = ("" if row[side] is None else f"{row[side]:.2f}\nrank {number(row[f'{side}_rank'])}" for side in SIDES)
    return (f"{row['layer']}, {row['tier']}", *leads)


SHOWN = {  # title, note with names of the result in braces, head, and what makes the cells of a row of the result
    "relearn": (
        "Relearning",
        "The unlearned model was trained for {steps} steps on {count} forgotten facts, and asked for the others. The "
        "control was trained on as many invented facts. “Hidden” is what true facts brought back beyond both: it was "
        "not erased. That is a lower bound, for invented facts may bring something back as well; below 0 it is harm.",
        ("", "before", "after", "control", "hidden"),
        _relearned,
    ),
    "quantise": (
        "Rounding the weights",
        "All linear weights were rounded to a few bits, as one does to make a model small. The original model, rounded "
        "alike, is the control, and so are the retained facts: recall as it is → rounded.",
        ("", "unlearned", "original"),
        _quantised,
    ),
    "sampling": (
        "Drawing many answers",
        "Each question was answered {samples} times at temperature {temperature:g}, and the right answer's first token "
        "was looked for among the likeliest. A wrong answer of the same kind, looked for in the same places, is the "
        "control: what guessing finds. Shares of facts.",
        ("", *SIDES),
        _sampled,
    ),
    "lens": (
        "Looking through the layers",
        "What leaves each layer was read as if it were the last: the share of facts whose answer is the likeliest "
        "there, with the median rank of its first token. A wrong answer of the same kind in the unlearned model is the "
        "control.",
        ("layer", *SIDES),
        _read_by_layer,
    ),
}
