"""The recovery probes: what came back of forgotten facts beside each probe's control, as a sentence, picture and
table."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapop.errors import number_of
from adapop.facts.fact import TIERS
from adapop.probes.intervals import difference, wilson
from adapop.report import figures
from adapop.report.figures import Figure
from adapop.report.record import GROUP_NAMES
from adapop.report.table import Table, number, percent

SIDES = ("unlearned", "control", "original")
Result = Mapping[str, Any]  # a probe's result as `Run.recovery` reads it
NAMED = 8
MARKS = {  # the marks of a row of a probe's picture, and the field of each: what it began with, found, and its control
    "relearn": {"before": "before", "relearnt": "after", "control": "control"},
    "quantise": {"before": "unlearned", "rounded": "unlearned_rounded"},
    "sampling": {"found": "unlearned", "a wrong answer": "control"},
    "lens": {"found": "unlearned", "a wrong answer": "control"},
}


def recovery_tables(results: Mapping[str, Result]) -> list[Table]:
    """A table for each probe that was run. results: by the probe's name."""
    return [recovery_table(name, results[name]) for name in SHOWN if name in results]


def recovery_sentence(name: str, result: Result) -> str:
    """What one probe found, in a sentence with its control."""
    of_all = [row for row in result["rows"] if row["tier"] == "all" and row.get("group", "forget") == "forget"]
    if not of_all:
        return "No fact could be asked."
    if name == "relearn":
        row = of_all[-1]
        found, most = row["after"], max(row["before"], row["control"])
        said = f"{percent(row['before'])} → {percent(found)} after relearning, {percent(row['control'])} in the control"
    elif name == "quantise":
        row = min(of_all, key=lambda row: row["bits"])
        found, most = row["unlearned_rounded"], row["unlearned"]
        said = f"{percent(most)} → {percent(found)} when rounded to {row['bits']} bits"
    else:
        row = max(of_all, key=lambda row: row["unlearned"] - (row["control"] or 0.0))
        found, most = row["unlearned"], row["control"] or 0.0
        where = f"after layer {row['layer']}" if name == "lens" else row["place"]
        said = f"{percent(found)} of the answers are found ({where}), {percent(most)} of wrong ones"
    if difference(wilson(found, row["facts"]), wilson(most, row["facts"])).low > 0:
        meaning = "some of it was hidden, not erased"
    else:
        meaning = "no more than chance may find"
    return f"{said} ({number_of(row['facts'], 'fact')}): {meaning}."


def came_back(result: Result, facts: Sequence) -> str:
    """Which of these facts a probe brought back, in a sentence; empty for a probe that looks at no single fact."""
    if "returned" not in result:
        return ""
    names = [fact.title for fact in facts if fact.id in set(result["returned"])]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"Came back: {', '.join(names[:NAMED])}{more}." if names else "No single fact came back."


def recovery_figure(name: str, result: Result) -> Figure:
    """What one probe found by popularity, a row per tier: found, and what the control finds."""
    rows = [row for row in result["rows"] if row.get("group", "forget") == "forget"]
    kind = {"relearn": "form", "quantise": "bits", "sampling": "place", "lens": "layer"}[name]
    last = rows[-1][kind] if rows else None
    shown = {row["tier"]: row for row in rows if row[kind] == last}
    tiers = [tier for tier in (*TIERS, "all") if tier in shown]
    marks = {word: [shown[tier].get(field) for tier in tiers] for word, field in MARKS[name].items()}
    return figures.control_rows(tiers, marks, recovery_sentence(name, result))


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
    recalls = (percent(row[name]) for name in ("before", "after", "control"))
    return (f"{row['tier']}, {row['form']}", *recalls, f"{100 * hidden:+.0f} points")


def _quantised(row: Result) -> tuple[str, ...]:
    changes = (f"{percent(row[side])} → {percent(row[f'{side}_rounded'])}" for side in ("unlearned", "original"))
    return (f"{row['bits']} bits, {GROUP_NAMES[row['group']]}, {row['tier']}", *changes)


def _sampled(row: Result) -> tuple[str, ...]:
    return (f"{row['tier']}, {row['place']}", *("" if row[side] is None else percent(row[side]) for side in SIDES))


def _read_by_layer(row: Result) -> tuple[str, ...]:
    leads = ("" if row[side] is None else f"{percent(row[side])}\nrank {number(row[f'{side}_rank'])}" for side in SIDES)
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
