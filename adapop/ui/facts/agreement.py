"""Compares two proxies on the same facts: where they disagree, and the effect on beta."""

import gradio as gr

from adapop.errors import DataError
from adapop.facts.fact import FactSet
from adapop.popularity.agreement import agreement, remarks_of
from adapop.popularity.base import Scoring
from adapop.remark import sentences
from adapop.report import figures
from adapop.report.table import percent
from adapop.ui.parts import html
from adapop.ui.parts.chart import chart
from adapop.ui.session import Session, curve_of
from adapop.ui.wiring import LAST_STAYS, QUIET

AGREEMENT_ABOUT = (
    "Two proxies that disagree on which facts are popular give different pressures. Look both "
    "up, then compare. *Two distant clusters of scores alone give a high Pearson correlation, so "
    "read Spearman, and the facts that disagree.*"
)
AGREEMENT_KNOWN = " (the model knows it: {share})"
AGREEMENT_EMPTY = "This needs two different scorings of the set: look popularity up above."
AGREEMENT_TABLE = (
    "Both scores plus one, for the facts on which the proxies agree and for those on which they "
    "do not."
)

NAMED = 8


def build(session: Session) -> None:
    """Lays out the comparison; its choices become usable once two scorings exist."""
    with gr.Accordion("Do two proxies agree?", open=False, elem_id="agreement"):
        gr.Markdown(AGREEMENT_ABOUT)
        with gr.Row():
            # Gradio would refuse a value sent before the choices changed
            options = dict(choices=[], min_width=160, allow_custom_value=True)
            first = gr.Dropdown(label="One", **options)
            second = gr.Dropdown(label="against", **options)
        words = html.lines("agreement-words", html.listed([AGREEMENT_EMPTY]))
        empty = figures.empty(AGREEMENT_EMPTY)
        scatter = chart(empty, "agreement-chart", "", AGREEMENT_TABLE)

    def compared(*values):
        lines, figure = _compared(*values)
        return {words: html.listed(lines), **scatter.updates(figure)}

    chosen = [session.facts, session.anchors, session.scorings, first, second, session.known]
    session.scorings.change(_choices, session.scorings, [first, second], **QUIET).then(
        compared, chosen, [words, *scatter.parts], **QUIET, concurrency_limit=1
    )
    again = [one.change for one in (session.anchors, session.facts, session.known)]
    again = [first.input, second.input, *again]
    gr.on(again, compared, chosen, [words, *scatter.parts], **LAST_STAYS)


def _choices(scorings: tuple[Scoring, ...]):
    """Updates of both inputs: the scorings that hold a score; the last two are chosen."""
    titles = [scoring.title for scoring in scorings if scoring.scores]
    last = ([None, None, *titles])[-2:]
    return gr.Dropdown(titles, value=last[0]), gr.Dropdown(titles, value=last[1])


def _compared(
    facts: FactSet | None, anchors, scorings: tuple[Scoring, ...], first: str, second: str, recall
):
    """Two scorings' agreement in sentences and as a figure. recall: of the original, by fact id."""
    by_title = {scoring.title: scoring for scoring in scorings}
    if facts is None or first not in by_title or second not in by_title or first == second:
        return [AGREEMENT_EMPTY], figures.empty(AGREEMENT_EMPTY)
    scores = [by_title[title].values(facts.forget) for title in (first, second)]
    try:
        result = agreement(*scores, curve_of(facts, anchors))
    except DataError as error:
        return [str(error)], figures.empty(AGREEMENT_EMPTY)
    lines = sentences(remarks_of(result, first, second))
    if result.discordant:
        names = {fact.id: fact.title[:40] for fact in facts.forget}
        shares = {name: percent(share) for name, share in (recall or {}).items()}
        known = {name: AGREEMENT_KNOWN.format(share=of) for name, of in shares.items()}
        worst = ", ".join(names[fact] + known.get(fact, "") for fact in result.discordant[:NAMED])
        lines.append(f"They disagree on {len(result.discordant):,}, most on: {worst}.")
    named = (first, second), result.discordant
    return lines, figures.agreement_scatter(facts.forget, *scores, *named)
