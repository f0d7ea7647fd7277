"""One fact asked in every form: both models' replies, their differences, and leaks first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapop.errors import number_of
from adapop.facts.text import folded
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, Asked, ProbeRow, Prompt, plain
from adapop.probes.verdict import COLLAPSED_FROM, verdict
from adapop.report.record import described_run
from adapop.runs.examples import example_of
from adapop.runs.run import Run
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.probe.answers import differing, lost_of

WAYS_EMPTY = "{count} to ask about this fact. One press asks them all."
WAYS_UNRECORDED = "{count} to ask about this fact. No reply was recorded."
OPENING = "Opening …"
ABOUT = (
    "Both models, the original and the unlearned one, are asked one fact in every way: a table of "
    "their replies, those that give the fact away first. A question of your own stands beside it."
)
WAYS_KEPT = "Not lost: the model answers it in {back} of {count}"
WAYS_UNCOUNTED = "{ways} not counted ({reasons})"
# whether a right answer may be a guess -> why such a way does not count
UNCOUNTED = {False: "the original fails too", True: "the answer can be guessed"}
WAYS_BACK = "It came back in {back} of {count}"
WAYS_SUPPRESSED = "Never said, but among the likeliest answers in {suppressed} of {count} ways"
WAYS_GONE = "Not brought back by {questions}"
WAYS_BROKEN = "Collapsed: {broken} of {count} replies are broken text"

TABLE = html.template("ways")
# leaks first; no other kind counts as one
ORDER = ("leak", "suppressed", "broken", "gone", "neutral")


def waiting(run: Run, prompts: Sequence[Prompt], may_ask: bool = True) -> dict:
    """The table before any answers: the ways of asking, each of which can be changed and asked.
    may_ask: whether this visitor may."""
    note = lost_of(run).note if run.state == "done" else ""  # while it trains, soon untrue
    about = ", ".join(filter(None, (described_run(run), note)))
    if not prompts:  # no fact is chosen yet
        return message_table("", about)
    title = (WAYS_EMPTY if may_ask else WAYS_UNRECORDED).format(
        count=number_of(len(prompts), "way")
    )
    unasked = [{"text": "not asked yet" if may_ask else "not recorded"}]
    both = {"original": unasked, "unlearned": unasked, "kind": "waiting"}
    rows = [
        {"place": place, "way": _way(prompt, run), "prompt": prompt.text, **both}
        for place, prompt in enumerate(prompts)
    ]
    return html.values({"rows": rows, "kind": "neutral", "title": title, "about": about})


def message_table(title: str, about: str = "") -> dict:
    """A sentence instead of the table, such as why nothing was asked."""
    return html.values({"rows": [], "kind": "neutral", "title": title, "about": about})


def table_of(
    run: Run,
    prompts: Sequence[Prompt],
    replies: Sequence[Asked | ProbeRow],
    beside: Mapping[str, Sequence[Asked | ProbeRow]] | None = None,
    own: bool = True,
    when: str = "recorded",
) -> dict:
    """Values of `TABLE`: both models' replies to the prompts, in their order. beside: name of each
    further column -> its replies, as `unlearned`. own: whether the run is the visitor's. when: they
    were asked, in words."""
    beside = beside or {}
    others = zip(*beside.values(), strict=True) if beside else [()] * len(prompts)
    rows = [
        _row(place, prompt, reply, further) | {"way": _way(prompt, run)}
        for place, (prompt, reply, further) in enumerate(zip(prompts, replies, others, strict=True))
    ]
    ordered = sorted(rows, key=lambda row: (ORDER.index(row["kind"]), row["way"]))
    kind, title = headline(rows)
    shipped = example_of(run.id) is not None
    whose = "an example" if shipped else "yours"
    note = _uncounted([row for row in rows if not _counts(row)])
    parts = described_run(run), whose if own or shipped else "", when, note
    about = ", ".join(filter(None, parts))
    content = {"rows": ordered, "kind": kind, "title": title, "about": about}
    return html.values(content | {"beside": list(beside), "only": "Only where they differ"})


def headline(rows: Sequence[dict]) -> tuple[str, str]:
    """(kind, sentence) over all forms: "leak" if any leaks, "broken" if half of the replies or more
    are no answers, "suppressed" if a right answer is next. Multiple choice can be guessed and does
    not count."""
    fair = [*filter(_counts, rows)]
    back = [row for row in fair if row["kind"] == "leak"]
    broken = sum(row["kind"] == "broken" for row in fair)
    if not fair:
        return "neutral", "The original model answers none of these either"
    if back:
        # lost only if the trained question is not answered
        text = WAYS_KEPT if any(row["direct"] for row in back) else WAYS_BACK
        return "leak", text.format(back=len(back), count=number_of(len(fair), "way"))
    if broken >= COLLAPSED_FROM * len(fair):
        return "broken", WAYS_BROKEN.format(broken=broken, count=len(fair))
    if suppressed := sum(row["kind"] == "suppressed" for row in fair):
        text = WAYS_SUPPRESSED.format(suppressed=suppressed, count=len(fair))
        return "suppressed", text
    questions = "this question" if len(fair) == 1 else f"these {len(fair)} questions"
    return "gone", WAYS_GONE.format(questions=questions)


def _counts(row: dict) -> bool:
    return row["kind"] != "neutral" and not row["guess"]


def _uncounted(rows: Sequence[dict]) -> str:
    """How many rows do not count, and why; empty for none."""
    if not rows:
        return ""
    guesses = {row["guess"] for row in rows}
    reasons = [words for guess, words in UNCOUNTED.items() if guess in guesses]
    return WAYS_UNCOUNTED.format(ways=number_of(len(rows), "way"), reasons=", or ".join(reasons))


def _row(
    place: int, prompt: Prompt, reply: Asked | ProbeRow, further: Sequence[Asked | ProbeRow]
) -> dict:
    """A row of the table. further: the prompt's replies in the columns beside the two."""
    texts_said = [reply.original.text, *(one.unlearned.text for one in (reply, *further))]
    replies = [text or texts.SAYS_NOTHING for text in texts_said]
    kind, word = _word(prompt, reply)
    beside = []
    for text, one in zip(replies[2:], further):
        its_kind, its_word = _word(prompt, one)
        parts = differing(text, replies[0], reply.gold)
        beside.append({"parts": parts, "verdict": its_word, "kind": its_kind})
    return {
        "place": place,
        "prompt": prompt.text,
        "original": differing(replies[0], replies[1], reply.gold),
        "unlearned": differing(replies[1], replies[0], reply.gold),
        "beside": beside,
        "same": len({folded(text).strip() for text in replies}) == 1,
        "verdict": word,
        "kind": kind,
        "guess": prompt.kind == CHOICE,
        "direct": prompt.kind == DIRECT,
    }


def _way(prompt: Prompt, run: Run) -> str:
    """The way of asking a run's models in words, as a heading."""
    own = texts.DIRECT_OF_PAIR if run.config.unlearned else texts.DIRECT_FORM
    named = {DIRECT: own, REWORDED: "In other words"}
    way = named.get(prompt.kind, plain(prompt.kind))
    return way[0].upper() + way[1:]


def _word(prompt: Prompt, reply: Asked | ProbeRow) -> tuple[str, str]:
    """(kind, words) of a reply's verdict."""
    if prompt.kind == CHOICE:
        return "neutral", "Not counted: the answer can be guessed"
    result = verdict(reply)
    explained = result.kind in ("suppressed", "neutral")
    return result.kind, result.text if explained else result.name
