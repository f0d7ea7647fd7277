"""The table of the facts to forget; and for a clicked row the scores of every proxy asked so far,
and an input to set the score by hand."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

import gradio as gr
import pandas as pd

from adapop.errors import number_of
from adapop.facts.fact import Fact, FactSet
from adapop.facts.scale import EDITED, with_tiers
from adapop.popularity.base import Score, Scoring
from adapop.popularity.beta import BetaMap, regime
from adapop.ui.parts import html
from adapop.ui.session import Session, check_shown, curve_of
from adapop.ui.wiring import EACH_IN_TURN, IN_TURN, QUIET, toast

COLUMNS = ["question", "answer", "score", "β", "pressure", "known, %", "source", "id"]
KINDS = ["str", "str", "number", "number", "str", "number", "str", "str"]
# pixels; on a phone "assets/style.css" sets the first four. It hides the id, which identifies a
# clicked row.
WIDTHS = [300, 110, 70, 60, 105, 85, 115, 10]
NONE_KNOWN = "none-known"  # a class that hides the column of what the model knows
PUSH = {"self-limiting": "fades early", "uniform": "equal", "pressure-sustaining": "lasts"}
MOST_ROWS, MOST_SHOWN = 1_000, 300  # rows; characters of a cell


def fact_table(
    facts: FactSet | None,
    beta: BetaMap,
    recall: Mapping[str, float],
    text: str = "",
    unscored: bool = False,
) -> pd.DataFrame:
    """The facts to forget that contain the text, rarest first; unknown scores are last and empty,
    because missing is not zero. recall: of the original model, by fact id. unscored: only facts
    without a score. At most `MOST_ROWS`: more rows slow the browser down."""
    rows = []
    members = matching(facts.forget, text, unscored) if facts else ()
    for fact in sorted(members, key=lambda fact: (fact.score is None, fact.score or 0))[:MOST_ROWS]:
        exponent = None if fact.score is None else beta(fact.score)
        push = (None, "unknown")
        if exponent is not None:
            push = round(exponent, 2), PUSH[regime(exponent)]
        known = round(100 * recall[fact.id]) if fact.id in recall else None
        about = fact.question, fact.answer, fact.score
        rows.append([*about, *push, known, fact.score_source or "unknown", fact.id])
    return pd.DataFrame(rows, columns=COLUMNS)


def matching(facts: Sequence[Fact], searched: str | None, unscored: bool = False) -> list[Fact]:
    """Facts with this text in question, answer or subject, in any case; unscored: only those
    without a score."""
    text = _composed((searched or "").strip())
    facts = [fact for fact in facts if fact.score is None] if unscored else facts
    contents = (_composed(f"{fact.question}\n{fact.answer}\n{fact.subject}") for fact in facts)
    return [fact for fact, content in zip(facts, contents) if text in content]


def _composed(text: str) -> str:
    """A text in lower case, its letters in one encoding: files made on a Mac part accents off, and
    `casefold` some."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def table_label(matching: int, every: int) -> str:
    """The table's label: how many facts it shows, and their order."""
    if matching > MOST_ROWS:
        return f"The {MOST_ROWS:,} rarest of {matching:,} facts; search to see others"
    part = "Facts" if matching == every else f"{matching:,} of {number_of(every, 'fact')}"
    return f"{part}, rarest first"


def lay_out(first: FactSet) -> gr.Dataframe:
    """Lays out the table of a set before any measurement."""
    label = table_label(len(first.forget), len(first.forget))
    shape = dict(max_height=460, max_chars=MOST_SHOWN, wrap=True, column_widths=WIDTHS)
    named = dict(label=label, elem_id="fact-table", elem_classes=[NONE_KNOWN])
    rows = fact_table(first, BetaMap(), {})
    return gr.Dataframe(rows, datatype=KINDS, interactive=False, **shape, **named)


def table_of(
    facts: FactSet | None, anchors, recall: Mapping[str, float], text: str, unscored: bool = False
):
    """The table of the facts that match a search and the filter."""
    members = facts.forget if facts else ()
    label = table_label(len(matching(members, text, unscored)), len(members))
    rows = fact_table(facts, curve_of(facts, anchors), recall, text, unscored)
    return gr.Dataframe(rows, label=label, elem_classes=[] if recall else [NONE_KNOWN])


def lay_out_detail(session: Session, table: gr.Dataframe) -> None:
    """Lays out the panel of one fact, hidden until a row of the table is clicked."""
    with gr.Group(visible=False, elem_id="detail") as group:
        detail = html.lines(None)
        with gr.Row():
            number = gr.Number(label="Score", minimum=0, min_width=120)
            save = gr.Button("Set this score", min_width=120, elem_id="set-score")
    chosen = gr.State("")

    def explained(facts: FactSet | None, scorings: tuple[Scoring, ...], event: gr.SelectData):
        # it comes from the browser
        row = event.row_value if isinstance(event.row_value, list) else []
        members = facts.forget if facts and row else ()
        fact = next((fact for fact in members if fact.id == row[-1]), None)
        if fact is None:
            return {group: gr.Group(visible=False), chosen: ""}
        updates = {group: gr.Group(visible=True), detail: html.listed(fact_lines(fact, scorings))}
        return {**updates, number: fact.score, chosen: fact.id}

    def edited(identity: str, facts: FactSet | None, chosen: str, value: float | None):
        facts = check_shown(facts, identity)
        return gr.skip() if value is None else session.changed(_with_score(facts, chosen, value))

    panel = [group, detail, number, chosen]
    table.select(explained, [session.facts, session.scorings], panel, **EACH_IN_TURN)
    now = [session.shown_hash, session.facts, chosen, number]
    saved = save.click(edited, now, [session.facts, session.shown_hash], **IN_TURN)
    session.look_whether_lost(saved)
    session.facts.change(lambda: gr.Group(visible=False), None, group, **QUIET)


def fact_lines(fact: Fact, scorings: Sequence[Scoring]) -> list[str]:
    """A fact and its scores from every proxy asked so far, as lines."""
    lines = [f"{fact.question} → {fact.answer}"]
    lines += [f"Also right: {'; '.join(fact.accepted)}."] * bool(fact.accepted)
    parts = "; ".join(fact.parts)
    lines += [f"Parts of the answer, each of which gives it away: {parts}."] * bool(parts)
    lines += [f"Also called: {'; '.join(fact.subject_aliases)}."] * bool(fact.subject_aliases)
    for scoring in scorings:
        if score := scoring.scores.get(fact.id):
            lines += score_lines(score)
    return lines


def score_lines(score: Score) -> list[str]:
    """One score with its counts, as lines."""
    value = "unknown" if score.value is None else f"{score.value:,.6g}"
    dated = f", {score.date}" if score.date else ""
    lines = [f"Score {value} ({score.source or 'no source named'}{dated}). {score.reason}".strip()]
    return lines + [f"· {name}: {_as_text(content)}" for name, content in score.raw.items()]


def _as_text(content: object) -> str:
    """A JSON value as short text."""
    if isinstance(content, dict):
        return ", ".join(f"{name} {_as_text(value)}" for name, value in content.items())
    if isinstance(content, list):
        more = [f"… {len(content) - 5} more"] if len(content) > 5 else []
        return "; ".join([*map(_as_text, content[:5]), *more])
    return f"{content:,}" if type(content) is int else str(content)


def _with_score(facts: FactSet, chosen: str, value: float) -> FactSet:
    """The set with a new score for the chosen fact. Raises gr.Error: negative, infinite or NaN."""
    if not 0 <= value < float("inf"):
        raise toast("A score is a finite number of at least 0.")
    new = dict(score=float(value), score_source=EDITED)
    forget = (replace(fact, **new) if fact.id == chosen else fact for fact in facts.forget)
    return with_tiers(replace(facts, forget=tuple(forget)), anew=True)
