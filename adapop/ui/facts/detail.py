"""One fact's score: the scores of every proxy asked so far, and an input to set it by hand."""

from collections.abc import Sequence
from dataclasses import replace

import gradio as gr

from adapop.facts.fact import Fact, FactSet
from adapop.facts.scale import EDITED, with_tiers
from adapop.popularity.base import Score, Scoring
from adapop.ui.parts import html
from adapop.ui.session import Session, check_shown
from adapop.ui.wiring import EACH_IN_TURN, IN_TURN, QUIET, toast


def build(session: Session, table: gr.Dataframe) -> None:
    """Lays the panel out, hidden until a row of the table is clicked."""
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
        return gr.skip() if value is None else session.changed(_edited(facts, chosen, value))

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
    lines += [f"Private parts, each of which gives the answer away: {parts}."] * bool(parts)
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
    return lines + [f"· {name}: {_plain(content)}" for name, content in score.raw.items()]


def _plain(content: object) -> str:
    """A JSON value as short text."""
    if isinstance(content, dict):
        return ", ".join(f"{name} {_plain(value)}" for name, value in content.items())
    if isinstance(content, list):
        more = [f"… {len(content) - 5} more"] if len(content) > 5 else []
        return "; ".join([*map(_plain, content[:5]), *more])
    return f"{content:,}" if type(content) is int else str(content)


def _edited(facts: FactSet, chosen: str, value: float) -> FactSet:
    """The set with a new score for the chosen fact. Raises gr.Error: negative, infinite or NaN."""
    if not 0 <= value < float("inf"):
        raise toast("A score is a finite number of at least 0.")
    new = dict(score=float(value), score_source=EDITED)
    forget = (replace(fact, **new) if fact.id == chosen else fact for fact in facts.forget)
    return with_tiers(replace(facts, forget=tuple(forget)), anew=True)
