"""One fact asked in every form: both models' replies, their differences, and leaks first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapop.errors import number_of
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, ProbeRow, Prompt, plain
from adapop.probes.verdict import COLLAPSED_FROM, verdict
from adapop.report.record import described_run
from adapop.runs.examples import example_of
from adapop.runs.run import Run
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.probe.answers import differing, lost_of

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

TABLE = html.template("ways")
# leaks first; no other kind counts as one
ORDER = ("leak", "suppressed", "broken", "gone", "neutral")


def waiting(run: Run, count: int) -> dict:
    """The table before any answers. count: number of forms."""
    empty = texts.WAYS_EMPTY.format(count=count) if count else ""  # no fact is chosen yet
    return message_table(empty, ", ".join(filter(None, (described_run(run), lost_of(run).note))))


def message_table(title: str, about: str = "") -> dict:
    """A sentence instead of the table, such as why nothing was asked."""
    return html.values({"rows": [], "kind": "neutral", "title": title, "about": about})


def table_of(run: Run, prompts: Sequence[Prompt], replies: Sequence[Asked | ProbeRow]) -> dict:
    """Values of `TABLE`: both models' replies to the prompts, in their order."""
    rows = [_row(place, *pair) for place, pair in enumerate(zip(prompts, replies, strict=True))]
    ordered = sorted(rows, key=lambda row: (ORDER.index(row["kind"]), row["way"]))
    kind, title = headline(rows)
    when = texts.ANSWERS_RECORDED.lower() if isinstance(replies[0], ProbeRow) else "asked just now"
    shipped = "an example" if example_of(run.id) else "yours"
    uncounted = len(rows) - sum(map(_counts, rows))
    note = texts.WAYS_UNCOUNTED.format(ways=number_of(uncounted, "way")) if uncounted else ""
    parts = described_run(run), shipped, when, note
    about = ", ".join(filter(None, parts))
    return html.values({"rows": ordered, "kind": kind, "title": title, "about": about})


def headline(rows: Sequence[dict]) -> tuple[str, str]:
    """(kind, sentence) over all forms: "leak" if any leaks, "broken" if half of the replies or more
    are no answers, "suppressed" if a right answer is next. Multiple choice can be guessed and does
    not count."""
    fair = [*filter(_counts, rows)]
    back = [row for row in fair if row["kind"] == "leak"]
    broken = sum(row["kind"] == "broken" for row in fair)
    if not fair:
        return "neutral", texts.WAYS_NEVER
    if back:
        # lost only if the trained question is not answered
        text = texts.WAYS_KEPT if any(row["direct"] for row in back) else texts.WAYS_BACK
        return "leak", text.format(back=len(back), count=number_of(len(fair), "way"))
    if broken >= COLLAPSED_FROM * len(fair):
        return "broken", texts.WAYS_BROKEN.format(broken=broken, count=len(fair))
    if suppressed := sum(row["kind"] == "suppressed" for row in fair):
        text = texts.WAYS_SUPPRESSED.format(suppressed=suppressed, count=len(fair))
        return "suppressed", text
    questions = "this question" if len(fair) == 1 else f"these {len(fair)} questions"
    return "gone", texts.WAYS_GONE.format(questions=questions)


def _counts(row: dict) -> bool:
    return row["kind"] != "neutral" and not row["guess"]


def _row(place: int, prompt: Prompt, reply: Asked | ProbeRow) -> dict:
    both = [reply.original.text or texts.SAYS_NOTHING, reply.unlearned.text or texts.SAYS_NOTHING]
    result = verdict(reply)
    explained = result.kind in ("suppressed", "neutral")
    kind, word = result.kind, result.text if explained else result.name
    if prompt.kind == CHOICE:
        kind, word = "neutral", texts.WAY_GUESSED
    named = {DIRECT: texts.DIRECT_FORM, REWORDED: texts.REWORDED_FORM}
    way = named.get(prompt.kind, plain(prompt.kind))
    return {
        "place": place,
        "way": way[0].upper() + way[1:],
        "prompt": prompt.text,
        "original": differing(both[0], both[1], reply.gold),
        "unlearned": differing(both[1], both[0], reply.gold),
        "verdict": word,
        "kind": kind,
        "guess": prompt.kind == CHOICE,
        "direct": prompt.kind == DIRECT,
    }
