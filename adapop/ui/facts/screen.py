"""Screen 1, Facts: pick a set or upload one, see every score, where it came from, and what it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gradio as gr
import pandas as pd

from adapop.errors import Stopped
from adapop.facts.catalog import ENTRIES, load_facts
from adapop.facts.fact import SANDBOX, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.online.cache import Cache
from adapop.popularity.base import Scoring, given
from adapop.popularity.beta import BetaMap, regime
from adapop.popularity.calibration import anchored, warnings_of
from adapop.progress import Task
from adapop.report import figures
from adapop.service.worker import Worker
from adapop.ui import saved, texts
from adapop.ui.facts import agreement, detail, known, lookup, upload
from adapop.ui.parts import html
from adapop.ui.parts.chart import chart, drawn
from adapop.ui.saved import OWN
from adapop.ui.session import Session
from adapop.ui.wiring import IN_TURN

COLUMNS = ["question", "answer", "score", "source", "β", "regime", "knows it", "id"]
KINDS = ["str", "str", "number", "str", "number", "str", "number", "str"]
WIDTHS = [240, 110, 80, 125, 65, 135, 90, 110]
POLL_SECONDS = 0.4
MOST_ROWS = 1_000


@dataclass(frozen=True)
class FactsScreen:
    """missing: what to do with facts without a score. source: where the set comes from."""

    missing: gr.Radio
    source: gr.Radio
    search: gr.Textbox
    notes: gr.HTML


def build(worker: Worker, session: Session, tab: gr.Tab) -> FactsScreen:
    """Lays the screen out inside its tab."""
    first = sandbox_facts()
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            choices = [(entry.title, entry.name) for entry in ENTRIES.values()] + [(texts.OWN_SET, OWN)]
            source = gr.Radio(choices, value=SANDBOX, label=texts.SOURCE_LABEL, elem_id="set")
            about = gr.Markdown(ENTRIES[SANDBOX].about)
            own, uploaded = upload.build(session)
            notes = gr.HTML(notes_of(first, BetaMap()), html_template=html.LINES, elem_id="notes")
            missing = gr.Radio(
                texts.MISSING_CHOICES,
                value="error",
                label="Facts without a score",
                info=texts.MISSING_ABOUT,
                visible=False,
            )
            lookup.build(worker, session)
        with gr.Column(scale=5, min_width=320):
            strip, search, table = _table_side(first)
            detail.build(session, table)
            known.build(worker, session)
            agreement.build(session)

    fetched = gr.State(None)
    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    reset = [session.facts, session.scorings, session.known]
    picked = [own, about, session.task, session.restored, *reset]
    source.change(_picked, [source, session.task, session.restored], picked, **quiet, **IN_TURN).then(
        _fetched, [source, session.facts], [notes, session.task, fetched], **quiet
    ).then(_arrived, [source, fetched], reset, **quiet, **IN_TURN)
    uploaded(notes, reset, source, [missing, search])
    saved.build(worker.root, session, source, notes)
    shown = [session.facts, session.anchors, session.known, search]
    session.facts.change(_redrawn, session.facts, [*strip, missing], **quiet)
    gr.on([session.facts.change, session.anchors.change], _noted, [session.facts, session.anchors], notes, **quiet)
    gr.on([session.facts.change, session.known.change, tab.select, search.change], _table, shown, table, **quiet)
    return FactsScreen(missing, source, search, notes)


def _table_side(first: FactSet) -> tuple[tuple[gr.Plot, gr.HTML], gr.Textbox, gr.Dataframe]:
    """The distribution of the scores, the search, and the table."""
    strip = chart(figures.popularity_strip(first.forget), "strip-chart", texts.STRIP_TABLE)
    search = gr.Textbox(
        placeholder="Search the facts", show_label=False, container=False, max_length=200, elem_id="search"
    )
    table = gr.Dataframe(
        fact_table(first, BetaMap(), {}),
        label=table_label(len(first.forget), len(first.forget)),
        datatype=KINDS,
        interactive=False,
        max_height=460,
        max_chars=80,
        column_widths=WIDTHS,
        elem_id="fact-table",
    )
    gr.Markdown(texts.TABLE_ABOUT)
    return strip, search, table


def fact_table(facts: FactSet | None, beta: BetaMap, recall: Mapping[str, float], wanted: str = "") -> pd.DataFrame:
    """The forget facts, rarest first, unknown scores last and empty: missing is not zero.

    recall: what the original model can answer, by fact id; empty cells where it was not asked. wanted: only the facts
    with this text in question, answer or subject. A browser that holds tens of thousands of rows is slow at all else,
    so there are at most `MOST_ROWS`.
    """
    rows = []
    members = found(facts.forget, wanted) if facts else ()
    for fact in sorted(members, key=lambda fact: (fact.score is None, fact.score or 0))[:MOST_ROWS]:
        exponent = None if fact.score is None else beta(fact.score)
        word = "unknown" if exponent is None else regime(exponent)
        rows.append(
            [
                fact.question,
                fact.answer,
                fact.score,
                fact.score_source or "unknown",
                None if exponent is None else round(exponent, 3),
                word,
                recall.get(fact.id),
                fact.id,
            ]
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def found(facts: Sequence[Fact], wanted: str | None) -> list[Fact]:
    """The facts with this text in question, answer or subject, whatever its case."""
    text = (wanted or "").strip().casefold()
    return [fact for fact in facts if text in f"{fact.question}\n{fact.answer}\n{fact.subject}".casefold()]


def table_label(matching: int, every: int) -> str:
    """What the table shows."""
    if matching > MOST_ROWS:
        return f"The {MOST_ROWS:,} rarest of {matching:,} facts; search to see others"
    return "Facts, rarest first" if matching == every else f"{matching:,} of {every:,} facts, rarest first"


def notes_of(facts: FactSet, beta: BetaMap) -> dict:
    """Counts, notes, whether the scores suit the map, and the rows that were dropped."""
    lines = [
        f"{len(facts.forget):,} to forget, {len(facts.retain):,} to retain, {len(facts.holdout):,} held out.",
        *facts.notes,
    ]
    if facts.unknown_scores:
        lines.append(f"Without a score: {len(facts.unknown_scores):,}. Look them up, or decide below what to do.")
    known = [fact.score for fact in facts.forget if fact.score is not None]
    doubts = warnings_of(known, beta)
    lines += doubts + upload.problem_lines(facts.problems)
    kind = "warn" if facts.problems or facts.unknown_scores or doubts else "calm"
    return html.listed(lines, kind)


def fresh(facts: FactSet | None) -> tuple[FactSet | None, tuple[Scoring, ...], dict]:
    """The session's states for a set that has just been picked."""
    return facts, (given(facts.forget),) if facts else (), {}


def _picked(source: str, task: Task | None, restored: tuple[str, FactSet] | None):
    """Switches to a set, or to what a reload brought back of it. What is still being asked or fetched for the last one
    is stopped."""
    if task:
        task.stop()
    back = restored[1] if restored and restored[0] == source else None
    if source == OWN:
        said = texts.upload_about() + (f"\n\n{texts.SET_RESTORED}" if back else "")
        return gr.Group(visible=True), said, None, restored, *[gr.skip()] * 3
    entry = ENTRIES[source]
    facts = back or (None if entry.online else load_facts(source))
    # only a file of one's own cannot be had again by picking it
    left = restored if restored and restored[0] == OWN else None
    return gr.Group(visible=False), entry.about, None, left, *fresh(facts)


def _fetched(source: str, facts: FactSet | None):
    """Fetches a set that lives elsewhere, page by page, and tells how far it is. Yields the set with its name."""
    if source == OWN or not ENTRIES[source].online or facts is not None:
        yield gr.skip(), gr.skip(), None
        return
    task = Task(lambda progress: load_facts(source, SANDBOX, progress, Cache()))
    try:
        while not task.wait(POLL_SECONDS):
            lines = [task.progress.text or "Asking for the set …", "Pick another set to stop."]
            yield html.listed(lines), task, None
    finally:
        task.stop()
    kind = "warn" if isinstance(task.error, Stopped) else "bad"
    said = html.listed([str(task.error)], kind) if task.error else gr.skip()
    yield said, None, (source, task.result)


def _arrived(source: str, fetched: tuple[str, FactSet | None] | None):
    """What was fetched, if it is still what is wanted."""
    if fetched is None or fetched[0] != source or fetched[1] is None:
        return [gr.skip()] * 3
    return fresh(fetched[1])


def _redrawn(facts: FactSet | None):
    """The strip, and whether to ask about unknown scores, of a set that changed."""
    if facts is None:
        return *drawn(figures.empty("appears with a set")), gr.Radio(visible=False)
    return *drawn(figures.popularity_strip(facts.forget), texts.STRIP_TABLE), gr.Radio(
        visible=bool(facts.unknown_scores)
    )


def _noted(facts: FactSet | None, anchors):
    """The notes of a set; those of a missing one are told by who could not bring it."""
    return gr.skip() if facts is None else notes_of(facts, anchored(*anchors))


def _table(facts: FactSet | None, anchors, recall: Mapping[str, float], wanted: str):
    members = facts.forget if facts else ()
    label = table_label(len(found(members, wanted)), len(members))
    return gr.Dataframe(fact_table(facts, anchored(*anchors), recall, wanted), label=label)
