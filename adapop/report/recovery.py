"""Results of recovery probes with their controls, as sentence, figure and table."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from statistics import fmean
from typing import Any

from adapop.errors import number_of
from adapop.facts.fact import TIERS, Fact
from adapop.probes.inspection import leak_at_k
from adapop.probes.intervals import difference, wilson
from adapop.probes.recovery.choice import RECOVERY
from adapop.report import figures
from adapop.report.figures import Figure
from adapop.report.record import GROUP_NAMES
from adapop.report.table import Table, number, percent
from adapop.runs import files

SIDES = ("unlearned", "control", "original")
Result = Mapping[str, Any]  # a probe's result as `Run.recovery` reads it
NAMED = 8


def _of_a_file(render: Callable) -> Callable:
    """Wraps a function: an incomplete result raises a RunError that names the probe's file."""

    @wraps(render)
    def checked(name: str, result: Result):
        with files.reading(Path(f"recovery-{name}.json")):
            return render(name, result)

    return checked


def recovery_tables(results: Mapping[str, Result]) -> list[Table]:
    """A table for each probe that was run. results: probe's name -> its result."""
    return [recovery_table(name, results[name]) for name in SHOWN if name in results]


@_of_a_file
def recovery_sentence(name: str, result: Result) -> str:
    """A probe's result in a sentence with its control."""
    of_all = [row for row in _forget_rows(result) if row["tier"] == "all"]
    if not of_all:
        return "No fact could be asked."
    row = _row_to_show(name, of_all)
    facts = number_of(row["facts"], "fact")
    if name == "patch":
        return _depth(of_all, row, result.get("never", ""))
    if name == "relearn":
        share, most = row["after"], max(row["before"], row["control"])
        line = f"{percent(row['before'])} → {percent(share)} after relearning, "
        line += f"{percent(row['control'])} in the control"
    elif name == "quantise":
        share, most = row["unlearned_rounded"], row["unlearned"]
        line = f"{percent(most)} → {percent(share)} when rounded to {row['bits']} bits"
    else:
        share, most = row["unlearned"], row["control"]
        where = f"after layer {row['layer']}" if name == "lens" else row["place"]
        line = f"{percent(share)} of the answers are found ({where}"
        if most is None:
            return f"{line}; {facts}). No control: no fact has a wrong answer of its relation."
        # What the last layer, or the likeliest token, says is not hidden.
        reply = next((one for one in of_all if one.get("place") == "top 1"), of_all[-1])
        line += f"), and {percent(most)} of wrong answers (control); "
        line += f"the replies give {percent(reply['unlearned'])}"
        most = min(1.0, most + reply["unlearned"])
    hidden = difference(wilson(share, row["facts"]), wilson(most, row["facts"])).low > 0
    end = "some of it was hidden, not erased" if hidden else "no sign that anything was hidden"
    return f"{line} ({facts}): {end}."


def _row_to_show(name: str, of_all: Sequence[Result]) -> Result:
    """The row of all facts that the sentence and the figure show."""
    if name in ("sampling", "lens"):
        return max(of_all, key=lambda row: row["unlearned"] - (row["control"] or 0.0))
    # After the last layer a patched model is the other model, so the middle layer says more.
    return of_all[of_all[-1]["layer"] // 2 if name == "patch" else -1]


def _forget_rows(result: Result) -> list[Result]:
    return [row for row in result["rows"] if row.get("group", "forget") == "forget"]


def came_back(result: Result, facts: Sequence) -> str:
    """A sentence with the facts that a probe recovered; empty for a probe that names no facts."""
    if "returned" not in result:
        return ""
    names = [fact.title for fact in facts if fact.id in set(result["returned"])]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"Came back: {', '.join(names[:NAMED])}{more}." if names else "No single fact came back."


@_of_a_file
def recovery_figure(name: str, result: Result) -> Figure:
    """A probe's result and control by popularity, a row per tier."""
    rows, kind = _forget_rows(result), RECOVERY[name].place
    of_all = [row for row in rows if row["tier"] == "all"]
    place = _row_to_show(name, of_all)[kind] if of_all else None
    row_of_tier = {row["tier"]: row for row in rows if row[kind] == place}
    tiers = [tier for tier in (*TIERS, "all") if tier in row_of_tier]
    fields = RECOVERY[name].marks.items()
    marks = {word: [row_of_tier[tier].get(field) for tier in tiers] for word, field in fields}
    return figures.control_rows(tiers, marks)


def leak_figure(result: Result, facts: Sequence[Fact]) -> Figure:
    """leak@k of the unlearned model by tier, from the samples of the recovery probe. facts: those
    to forget. Raises RunError: an incomplete result."""
    with files.reading(Path("recovery-sampling.json")):
        count, tier_of = result["samples"], {fact.id: fact.tier for fact in facts}
        tallies: dict[str, list[int]] = {tier: [] for tier in TIERS}
        wrong = []
        for fact in result["facts"]:
            if tier_of.get(fact["id"]) in tallies:
                tallies[tier_of[fact["id"]]].append(fact["unlearned"]["samples"])
            if fact["control"]:
                wrong.append(fact["control"]["samples"])

        def curve(counts: Sequence[int]) -> list[float]:
            ks = range(1, count + 1)
            return [fmean(leak_at_k(one, count, k) for one in counts) for k in ks] if counts else []

        curves = {tier: curve(counts) for tier, counts in tallies.items() if counts}
        return figures.leak_curve(curves, curve(wrong))


@_of_a_file
def recovery_table(name: str, result: Result) -> Table:
    """A probe's result by popularity; the note says how to read it and how many facts came back."""
    head, cells = SHOWN[name]
    note = [NOTES[name].format(**result, count=len(result.get("trained", ())))]
    if "returned" in result:
        note.append(f"Facts it brought back: {len(result['returned']):,}.")
    note.append(f"It took {result['seconds']:.1f} s.")
    rows = []
    for row in result["rows"]:
        first, *rest = cells(row)
        rows.append((first, f"{row['facts']:,}", *rest))
    return Table(RECOVERY[name].title, (head[0], "facts", *head[1:]), tuple(rows), " ".join(note))


def _depth(rows: Sequence[Result], half: Result, source: str) -> str:
    """A sentence on the layers at which answers are lost and return. source: `Patched.never`."""
    known, last = rows[0]["original"], rows[-1]["layer"]
    lost = (row["layer"] for row in rows if row["original"] < known / 2)
    where = next((f"after layer {layer} of {last}" for layer in lost), "after no layer")
    wrong = "" if half["control"] is None else f" (and {percent(half['control'])} of wrong ones)"
    return (
        f"With the unlearned model's states the original loses half of its answers {where}. With "
        f"the original's states after layer {half['layer']} the unlearned model finds "
        f"{percent(half['unlearned'])} of the answers{wrong}, against "
        f"{percent(rows[0]['unlearned'])} without them ({number_of(rows[0]['facts'], 'fact')})."
        f"{_never(half, source)}"
    )


def _never(row: Result, source: str) -> str:
    """A space and a sentence on the control with facts never known; empty if the row lacks it."""
    if "never" not in row:
        return ""
    if (never := row["never"]) is None:
        about = "The original knows all these facts"
        return f" {about}, so there is no control of facts never known."
    if source == "oracle":
        return f" With the states of a model that never read the facts it finds {percent(never)}."
    facts = number_of(row["never_facts"], "fact")
    return f" Of {facts} that the original does not know, it finds {percent(never)}."


def _patched(row: Result) -> tuple[str, ...]:
    layer = f"after layer {row['layer']}" if row["layer"] else "without"
    values = (row.get(side) for side in ("unlearned", "never", "control", "original"))
    return (f"{layer}, {row['tier']}", *map(percent, values))


def _relearned(row: Result) -> tuple[str, ...]:
    hidden = row["after"] - max(row["before"], row["control"])
    recalls = (percent(row[name]) for name in ("before", "after", "control"))
    unrelated = percent(row.get("unrelated"))
    return (f"{row['tier']}, {row['form']}", *recalls, f"{100 * hidden:+.0f} points", unrelated)


def _quantised(row: Result) -> tuple[str, ...]:
    changes = (
        f"{percent(row[side])} → {percent(row[f'{side}_rounded'])}"
        for side in ("unlearned", "original")
    )
    bits = "bfloat16" if row["bits"] == 16 else f"{row['bits']} bits"
    return (f"{bits}, {GROUP_NAMES[row['group']]}, {row['tier']}", *changes)


def _read_by_layer(row: Result) -> tuple[str, ...]:
    leads = (
        "" if row[side] is None else f"{percent(row[side])}\nrank {number(row[f'{side}_rank'])}"
        for side in SIDES
    )
    return (f"{row['layer']}, {row['tier']}", *leads)


def _sampled(row: Result) -> tuple[str, ...]:
    return (f"{row['tier']}, {row['place']}", *(percent(row[side]) for side in SIDES))


# Probe -> head of its table, and the function that makes a row's cells.
SHOWN = {
    "relearn": (("", "before", "after", "control", "hidden", "unrelated"), _relearned),
    "quantise": (("", "unlearned", "original"), _quantised),
    "sampling": (("", *SIDES), _sampled),
    "lens": (("layer", *SIDES), _read_by_layer),
    "patch": (("states", "unlearned", "never known", "control", "original"), _patched),
}
# Probe -> how to read its table, filled with its result.
NOTES = {
    "relearn": (
        "The unlearned model was trained for {steps} steps on {count} forgotten facts, and asked "
        "about the others. The control was trained on as many invented facts. “Hidden” is recall "
        "after relearning minus the higher of recall before and control: this part was not erased. "
        "It is a lower bound, because invented facts may bring something back too. Below 0, "
        "relearning did harm. “Unrelated”: after the same training on other questions, such as "
        "sums, if the set has any."
    ),
    "quantise": (
        "All linear weights were rounded to bfloat16, as in published models, and to fewer bits, "
        "as is done to make models smaller. The controls are the original model, rounded in the "
        "same way, and the retain set. Numbers are recall before → after rounding."
    ),
    "sampling": (
        "Each question was answered {samples} times at temperature {temperature:g}. The table "
        "shows the share of facts whose right answer is among these replies, or whose first token "
        "is among the likeliest. The control is a wrong answer of the same kind in the same "
        "places: it shows what guessing would find."
    ),
    "lens": (
        "The output of each layer was decoded as if it were the last. The table shows the share of "
        "facts whose answer's first token is the likeliest there, and its median rank. A wrong "
        "answer of the same kind in the unlearned model is the control."
    ),
    "patch": (
        "The output of a layer of one model replaced that of the other, at every position of the "
        "question. The table shows the share of facts whose answer's first token is then the "
        "likeliest. Unlearned: with the original's states. Control: a wrong answer of the same "
        "kind. Never known: as “Unlearned”, with the states of a model that never read the "
        "facts, if there is one, or otherwise for facts that the original does not know. Original: "
        "with the unlearned model's states. After the last layer, each has become the other model."
    ),
}
