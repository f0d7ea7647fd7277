"""Looks up scores: asks a proxy for every fact; the page shows the progress and can stop it. And
compares two proxies on the same facts: where they disagree, and the effect on beta."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import gradio as gr

from adapop.errors import AdaPopError, DataError, Stopped, number_of
from adapop.facts.fact import FactSet
from adapop.facts.scale import with_tiers
from adapop.online.cache import Cache
from adapop.popularity.agreement import agreement, remarks_of
from adapop.popularity.base import AS_GIVEN, Proxy, Score, Scoring, forecast, given
from adapop.popularity.infinigram import INDEXES
from adapop.popularity.sources import SOURCES, Choices
from adapop.progress import Progress, started
from adapop.remark import sentences
from adapop.report import figures
from adapop.report.table import percent
from adapop.service.worker import Worker
from adapop.ui.parts import html
from adapop.ui.parts.chart import chart
from adapop.ui.session import Scorings, Session, check_shown, curve_of
from adapop.ui.wiring import IN_TURN, LAST_STAYS, QUIET, StartStop, error_of, followed, offload

FORMULA_CHOICES = [
    ("sitelinks + statements", "sitelinks+statements"),
    ("sitelinks alone", "sitelinks"),
]
COMBINE_CHOICES = [
    ("subject + answer", "subject+object"),
    ("subject alone", "subject"),
    ("answer alone", "object"),
    ("subject and answer in the same passage", "both"),
]
AGREEMENT_ABOUT = (
    "Two sources of scores that disagree on which facts are popular give different pressures. Look "
    "both up, then compare. *Two distant clusters of scores are enough to make the Pearson "
    "correlation high, so look at Spearman, and at the facts on which the sources disagree.*"
)
AGREEMENT_KNOWN = " (the model's recall: {share})"
AGREEMENT_EMPTY = "This needs scores from two sources. Use “Look popularity up” above."
AGREEMENT_NAME = "Two scores of each fact"
AGREEMENT_TABLE = (
    "1 + score by either source, for the facts on which the sources agree and for those on which "
    "they do not."
)
MOST_NAMED = 8  # facts on which two proxies disagree
REASONS_SHOWN = 4
GIVEN = "given"

Result = tuple[FactSet, Scoring] | None  # scores from a look-up, and the set they belong to


@dataclass(frozen=True)
class LookUp:
    """The components of a look-up. result: its scores, until they are put into the set."""

    session: Session
    status: gr.HTML
    work: StartStop
    result: gr.State

    async def scored(
        self, worker: Worker, identity: str, facts: FactSet | None, scorings, proxy: str, *choices
    ):
        """Asks the proxy; yields the progress, then the result. identity: see `Session`. choices:
        formula, language, year, index, combine and text."""
        usage = worker.usage
        facts = await offload(usage, check_shown, facts, identity)
        if proxy == GIVEN:
            as_given = (scoring for scoring in scorings if scoring.title == AS_GIVEN)
            came = next(as_given, given(facts.forget))
            lines = ["The scores that came with the set."]
            yield self._over(lines, "calm", (facts, came))
            return
        try:
            make = await offload(usage, _maker, facts, proxy, *choices)
            cost = await offload(usage, cost_line, make, facts)
        except AdaPopError as error:
            yield self._over([str(error)], "bad", None)
            return
        scores: dict[str, Score] = {}

        def work(progress: Progress) -> None:
            for score in make(progress).scores(facts.forget):
                scores[score.fact_id] = score

        future, progress = started(work)
        async for line in followed(future, progress, "Beginning …"):
            done = f"{len(scores):,} of {number_of(len(facts.forget), 'fact')} done."
            lines = html.listed([*cost, line, done])
            yield {self.status: lines, **self.work.busy(progress), self.result: None}
        error, summary = error_of(future), await offload(usage, summary_lines, facts, scores)
        lines = [str(error), *summary] if error else summary
        if not any(score.value is not None for score in scores.values()):
            kind = "warn" if isinstance(error, Stopped) else "bad"
            yield self._over([*lines, "The scores of the set are left as they were."], kind, None)
            return
        scoring = Scoring(next(iter(scores.values())).source, scores)
        yield self._over(lines, "warn" if error else "calm", (facts, scoring))

    def apply(self, facts: FactSet | None, scorings: Scorings, result: Result) -> dict:
        """Updates that replace the set's scores by the result, unless the set has changed."""
        if result is None:
            return gr.skip()
        (then, scoring), session = result, self.session
        if None in (facts, then, scoring) or not asked_about(then, facts):
            return {self.result: None}
        others = (other for other in scorings if other.title != scoring.title)
        values, known = scoring.values(facts.forget), scoring.scores.values()
        sources = {score.fact_id: score.source for score in known if score.value is not None}
        scored = tuple(
            replace(fact, score=values[fact.id], score_source=sources.get(fact.id, ""))
            for fact in facts.forget
        )
        changed = session.changed(with_tiers(replace(facts, forget=scored), anew=True))
        return {**changed, session.scorings: Scorings((*others, scoring)), self.result: None}

    def _over(self, lines: list[str], kind: str, result: Result) -> dict:
        return {self.status: html.listed(lines, kind), **self.work.idle(), self.result: result}


def build(worker: Worker, session: Session) -> gr.HTML:
    """Lays out the choice of a proxy, its settings and buttons. Returns the box of the last
    look-up's message."""
    with gr.Accordion("Look popularity up", open=False, elem_id="scores"):
        named = dict(label="Where scores come from", elem_id="proxy")
        proxy = gr.Dropdown(_choices(), value="wikidata", **named)
        about = gr.Markdown(SOURCES["wikidata"].about)
        choices = _inputs()
        with gr.Row():
            start = gr.Button("Look up", variant="primary", min_width=120, elem_id="look-up")
            stop = gr.Button("Stop", min_width=90, elem_id="stop-look-up", visible=False)
        status = html.lines("look-up-status")

    work = StartStop(start, stop, session.at_work)
    result = gr.State(None)
    look_up = LookUp(session, status, work, result)
    proxy.change(_input_updates, proxy, [about, *choices], **QUIET)
    inputs = [session.shown_hash, session.facts, session.scorings, proxy, *choices]
    outputs = [status, *work.all, result]
    ended = start.click(partial(look_up.scored, worker), inputs, outputs, **QUIET)
    session.look_whether_lost(ended)
    now = [session.facts, session.scorings, result]
    ended.then(look_up.apply, now, [*now, session.shown_hash], **IN_TURN)
    work.wire_stop()
    return status


def _inputs() -> list[gr.Component]:
    """Lays out the settings of all proxies, in the order of `Choices`."""
    named = dict(value="sitelinks+statements", label="Entity popularity")
    formula = gr.Dropdown(FORMULA_CHOICES, **named)
    with gr.Row():
        named = dict(label="Language of the names, such as en", max_length=30, max_lines=1)
        language = gr.Textbox("en", **named)
        year = gr.Number(None, label="Year; empty: the last whole year", precision=0, visible=False)
    corpora = [(", ".join(corpus), name) for name, corpus in INDEXES.items()]
    index = gr.Dropdown(corpora, label="Corpus", visible=False, value=corpora[0][1])
    unseen = dict(value="subject+object", label="Fact popularity", visible=False)
    combine = gr.Dropdown(COMBINE_CHOICES, **unseen)
    unseen = dict(file_types=[".txt", ".md", ".csv", ".jsonl"], visible=False, height=120)
    text = gr.File(label="A text, one document a line", **unseen)
    return [formula, language, year, index, combine, text]


def _choices() -> list[tuple[str, str]]:
    """The proxies available here; the judge only if its model is configured."""
    model = os.environ.get("ADAPOP_JUDGE_MODEL")
    named = [(source.title, name) for name, source in SOURCES.items() if name != "judge"]
    named.append(("The scores that came with the set", GIVEN))
    return [*named, *([(f"{SOURCES['judge'].title}: {model}", "judge")] if model else [])]


def _input_updates(proxy: str):
    """Updates: a proxy's description, and which of `_inputs` it shows."""
    if proxy == GIVEN:
        about, reads = "This restores the scores that came with the set.", ()
    else:
        about, reads = SOURCES[proxy].about, SOURCES[proxy].reads
    return about, *(gr.update(visible=item.name in reads) for item in fields(Choices))


def _maker(facts: FactSet, proxy: str, *values) -> Callable[[Progress], Proxy]:
    """A function that makes the chosen proxy, for the thread that uses it. values: of `_inputs`."""
    formula, language, year, index, combine, text = values
    when, path = None if year is None else int(year), Path(text) if text else None
    chosen = Choices(formula, (language or "").strip(), when, index, combine, path)
    return lambda progress: SOURCES[proxy].make(facts, chosen, progress, Cache())


def cost_line(make: Callable[[Progress], Proxy], facts: FactSet) -> list[str]:
    """The possible cost of the look-up, as a line; empty where no request is needed."""
    cost = forecast(make(Progress()), facts.forget)
    if not cost.requests:
        return []
    minutes = "less than a minute" if cost.minutes < 1 else number_of(round(cost.minutes), "minute")
    pace = "at the pace of the AdaPop paper's look-ups"
    return [f"About {number_of(cost.requests, 'request')}: {minutes} {pace}."]


def asked_about(then: FactSet, now: FactSet) -> bool:
    """Whether a look-up of the set `then` covered the facts to forget of `now`. Ids alone may
    belong to another file, so questions are compared too."""
    questions = {fact.id: fact.question for fact in then.forget}
    return all(questions.get(fact.id) == fact.question for fact in now.forget)


def summary_lines(facts: FactSet, scores: dict[str, Score]) -> list[str]:
    """How many facts were scored, and why others were not, the most common reason first."""
    scored = sum(score.value is not None for score in scores.values())
    lines = [f"{scored:,} of {number_of(len(facts.forget), 'fact')} have a score."]
    if unreached := len(facts.forget) - len(scores):
        lines.append(f"Not reached: {unreached:,}. Look up again to go on where it stopped.")
    reasons: dict[str, list[str]] = {}
    names = {fact.id: fact.title for fact in facts.forget}
    for score in scores.values():
        if score.value is None:
            reasons.setdefault(score.reason, []).append(names[score.fact_id])
    for reason, subjects in sorted(reasons.items(), key=lambda item: -len(item[1]))[:REASONS_SHOWN]:
        more = ["…"] if len(subjects) > 3 else []
        named = ", ".join([*(subject[:40] for subject in subjects[:3]), *more])
        lines.append(f"Unknown ({len(subjects):,}): {reason.rstrip('.')} ({named}).")
    return lines


def build_agreement(session: Session) -> None:
    """Lays out the comparison; its choices become usable once two scorings exist."""
    with gr.Accordion("Do two sources agree?", open=False, elem_id="agreement"):
        gr.Markdown(AGREEMENT_ABOUT)
        with gr.Row():
            # Gradio would refuse a value sent before the choices changed
            options = dict(choices=[], min_width=160, allow_custom_value=True)
            first = gr.Dropdown(label="First source", **options)
            second = gr.Dropdown(label="Second source", **options)
        words = html.lines("agreement-words", html.listed([AGREEMENT_EMPTY]))
        empty = figures.empty(AGREEMENT_EMPTY)
        scatter = chart(empty, "agreement-chart", AGREEMENT_NAME, AGREEMENT_TABLE)

    def compared(*values):
        lines, figure = _compared(*values)
        return {words: html.listed(lines), **scatter.updates(figure)}

    chosen = [session.facts, session.anchors, session.scorings, first, second, session.known]
    session.scorings.change(_scorings_offered, session.scorings, [first, second], **QUIET).then(
        compared, chosen, [words, *scatter.all], **QUIET, concurrency_limit=1
    )
    again = [one.change for one in (session.anchors, session.facts, session.known)]
    again = [first.input, second.input, *again]
    gr.on(again, compared, chosen, [words, *scatter.all], **LAST_STAYS)


def _scorings_offered(scorings: Scorings):
    """Updates of both inputs: the scorings that hold a score; the last two are chosen."""
    titles = [scoring.title for scoring in scorings if scoring.scores]
    last = ([None, None, *titles])[-2:]
    return gr.Dropdown(titles, value=last[0]), gr.Dropdown(titles, value=last[1])


def _compared(facts: FactSet | None, anchors, scorings: Scorings, first: str, second: str, recall):
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
        worst = ", ".join(
            names[fact] + known.get(fact, "") for fact in result.discordant[:MOST_NAMED]
        )
        lines.append(f"They disagree on {len(result.discordant):,}, most on: {worst}.")
    named = (first, second), result.discordant
    return lines, figures.agreement_scatter(facts.forget, *scores, *named)
