"""Screen 1, Facts: pick a set or upload one, see every score, where it came from, and what it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import gradio as gr
import pandas as pd

from adapop import figures
from adapop.beta import BetaMap, regime
from adapop.cache import Cache
from adapop.calibration import anchored, warnings_of
from adapop.catalog import ENTRIES, load_facts
from adapop.config import SANDBOX
from adapop.facts import Fact, FactSet
from adapop.popularity.base import Scoring, given
from adapop.progress import Progress, Task
from adapop.sandbox import sandbox_facts
from adapop.ui import agree, cards, copy, detail, known, scores, upload
from adapop.ui.session import Session
from adapop.worker import Worker

COLUMNS = ["question", "answer", "score", "source", "β", "regime", "knows it", "id"]
KINDS = ["str", "str", "number", "str", "number", "str", "number", "str"]
WIDTHS = [240, 110, 80, 125, 65, 135, 90, 110]
POLL_SECONDS = 0.4
MOST_ROWS = 1_000
OWN = "own"


def build(worker: Worker, session: Session, tab: gr.Tab) -> gr.Radio:
    """Lays the screen out inside its tab. Returns the choice of what to do with facts without a score."""
    first = sandbox_facts()
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            choices = [(entry.title, entry.name) for entry in ENTRIES.values()] + [(copy.OWN_SET, OWN)]
            source = gr.Radio(choices, value=SANDBOX, label="Facts to forget", elem_id="set")
            about = gr.Markdown(ENTRIES[SANDBOX].about)
            own, uploaded = upload.build(session)
            notes = gr.HTML(notes_of(first, BetaMap()), html_template=cards.LINES, elem_id="notes")
            missing = gr.Radio(
                copy.MISSING_CHOICES,
                value="error",
                label="Facts without a score",
                info=copy.MISSING_ABOUT,
                visible=False,
            )
            scores.build(session)
        with gr.Column(scale=5, min_width=320):
            strip = gr.Plot(figures.popularity_strip(first.forget), show_label=False, elem_id="strip-chart")
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
            gr.Markdown(copy.TABLE_ABOUT)
            detail.build(session, table)
            known.build(worker, session)
            agree.build(session)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    reset = [session.facts, session.scorings, session.known]
    source.change(_picked, source, [own, about, notes, session.task, *reset], **quiet)
    uploaded(notes, reset, source)
    shown = [session.facts, session.anchors, session.known, search]
    session.facts.change(_redrawn, [session.facts, session.anchors], [strip, missing, notes, search], **quiet)
    gr.on([session.facts.change, session.known.change, tab.select, search.change], _table, shown, table, **quiet)
    return missing


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


def notes_of(facts: FactSet | None, beta: BetaMap) -> dict:
    """Counts, notes, whether the scores suit the map, and the rows that were dropped."""
    if facts is None:
        return cards.values({"kind": "bad", "lines": ["Upload a table of facts, or pick another set."]})
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
    return cards.values({"kind": kind, "lines": lines})


def fresh(facts: FactSet | None) -> tuple[FactSet | None, tuple[Scoring, ...], dict]:
    """The session's states for a set that has just been picked."""
    return facts, (given(facts.forget),) if facts else (), {}


def _picked(source: str):
    """Switches to a set; those that live elsewhere are fetched, page by page, while the notes say how far it is."""
    if source == OWN:
        yield gr.Group(visible=True), copy.upload_about(), notes_of(None, BetaMap()), None, *fresh(None)
        return
    entry = ENTRIES[source]
    if not entry.online:
        yield gr.Group(visible=False), entry.about, gr.skip(), None, *fresh(load_facts(source))
        return
    task = Task(partial(_fetched, source))
    try:
        while not task.wait(POLL_SECONDS):
            doing = cards.values({"kind": "calm", "lines": [task.progress.text or "Asking for the set …"]})
            yield gr.Group(visible=False), entry.about, doing, task, *fresh(None)
    finally:
        task.stop()
    if task.error:
        refused = cards.values({"kind": "bad", "lines": [str(task.error)]})
        yield gr.skip(), gr.skip(), refused, None, *fresh(None)
    else:
        yield gr.skip(), gr.skip(), gr.skip(), None, *fresh(task.result)


def _fetched(source: str, progress: Progress) -> FactSet:
    return load_facts(source, SANDBOX, progress, Cache())


def _redrawn(facts: FactSet | None, anchors):
    """Strip, the question about unknown scores, the notes, and an empty search, for a set that changed."""
    if facts is None:
        return figures.empty("appears with a set"), gr.Radio(value="error", visible=False), gr.skip(), ""
    # a choice made for another set is not a choice for this one
    missing = gr.Radio(value="error", visible=bool(facts.unknown_scores))
    return figures.popularity_strip(facts.forget), missing, notes_of(facts, anchored(*anchors)), ""


def _table(facts: FactSet | None, anchors, recall: Mapping[str, float], wanted: str):
    members = facts.forget if facts else ()
    label = table_label(len(found(members, wanted)), len(members))
    return gr.Dataframe(fact_table(facts, anchored(*anchors), recall, wanted), label=label)
