"""Where scores come from: ask a proxy for every fact, while the page watches and may stop it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import gradio as gr

from adapop.errors import AdaPopError, Stopped
from adapop.facts.fact import FactSet
from adapop.facts.world import other_facts
from adapop.online.cache import Cache
from adapop.popularity.base import AS_GIVEN, Proxy, Score, Scoring
from adapop.popularity.corpus import CorpusCounts
from adapop.popularity.infinigram import INDEXES, InfiniGram
from adapop.popularity.judge import judge_from_environment
from adapop.popularity.wikidata import Wikidata
from adapop.progress import Progress, Task
from adapop.service.rates import JOB
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.session import Session
from adapop.ui.wiring import IN_TURN

POLL_SECONDS = 0.4
REASONS_SHOWN = 4
GIVEN = "given"


@dataclass(frozen=True, eq=False)
class _Found:
    """A scoring and the set it was asked for. lent: whether that was the tour's."""

    facts: FactSet
    scoring: Scoring
    lent: bool


def build(worker: Worker, session: Session) -> None:
    """Lays out the choice of a proxy, its settings, and the buttons."""
    with gr.Accordion("Look popularity up", open=False, elem_id="scores"):
        proxy = gr.Dropdown(_choices(), value="wikidata", label="Where scores come from", elem_id="proxy")
        about = gr.Markdown(texts.PROXY_ABOUT["wikidata"])
        formula = gr.Dropdown(texts.FORMULA_CHOICES, value="sitelinks+statements", label="Entity popularity")
        index = gr.Dropdown(
            [(title, name) for name, title in INDEXES.items()], label="Corpus", visible=False, value=next(iter(INDEXES))
        )
        combine = gr.Dropdown(texts.COMBINE_CHOICES, value="subject+object", label="Fact popularity", visible=False)
        text = gr.File(
            label="A text, one document a line", file_types=[".txt", ".md", ".csv", ".jsonl"], visible=False, height=120
        )
        with gr.Row():
            start = gr.Button("Look up", variant="primary", min_width=120, elem_id="look-up")
            stop = gr.Button("Stop", min_width=90, elem_id="stop-look-up", interactive=False)
        status = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="look-up-status")

    def scored(*values):
        yield from _scored(worker, *values)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    proxy.change(_suited, proxy, [about, formula, index, combine, text], **quiet)
    asked = [session.lent, session.facts, session.scorings, proxy, formula, index, combine, text]
    found = gr.State(None)
    ended = start.click(scored, asked, [status, start, stop, session.task, found], **quiet)
    now = [session.lent, session.facts, session.scorings, found]
    # what ends during the tour arrives when the visitor's own set is back
    for event in (ended.then, session.lent.change):
        event(_applied, now, [session.facts, session.scorings, found], **quiet, **IN_TURN)
    stop.click(lambda task: task.stop() if task else None, session.task, None, **quiet)


def _choices() -> list[tuple[str, str]]:
    """The proxies that can be asked here; the judge only where its model is set."""
    judge = os.environ.get("ADAPOP_JUDGE_MODEL")
    named = [(f"LLM judge: {judge}", "judge")] if judge else []
    return [*texts.PROXY_CHOICES, *named]


def _suited(proxy: str):
    counts = proxy in ("infinigram", "corpus")
    return (
        texts.PROXY_ABOUT[proxy],
        gr.Dropdown(visible=proxy == "wikidata"),
        gr.Dropdown(visible=proxy == "infinigram"),
        gr.Dropdown(visible=counts),
        gr.File(visible=proxy == "corpus"),
    )


def _maker(
    facts: FactSet, proxy: str, formula: str, index: str, combine: str, text: str | None
) -> Callable[[Progress], Proxy]:
    """What makes the chosen proxy, in the thread that will use it."""
    if proxy == "wikidata":
        return lambda progress: Wikidata(progress, Cache(), formula)
    if proxy == "infinigram":
        return lambda progress: InfiniGram(progress, Cache(), index, combine)
    if proxy == "judge":
        return lambda progress: judge_from_environment(progress, Cache())
    if text is None:
        raise AdaPopError("There is no text to count in.", "Upload one.")
    return lambda progress: CorpusCounts(progress, Path(text), combine, other_facts(facts))


def _scored(worker: Worker, lent: bool, facts: FactSet | None, scorings, proxy, formula, index, combine, text):
    """Asks the proxy, tells how far it is, and yields what it found, to be applied if the set is still the same. lent:
    whether it is the tour's."""
    if facts is None:
        raise gr.Error("There are no facts to score. Pick a set, or mend the upload.", duration=None)
    if proxy == GIVEN:
        came = next(scoring for scoring in scorings if scoring.title == AS_GIVEN)
        yield html.listed(["The scores that came with the set."]), *_idle(), _Found(facts, came, lent)
        return
    try:
        make = _maker(facts, proxy, formula, index, combine, text)
        worker.admission.admit(JOB)
    except AdaPopError as error:
        yield html.listed([str(error)], "bad"), *_idle(), None
        return
    found: dict[str, Score] = {}

    def work(progress: Progress) -> None:
        for score in make(progress).scores(facts.forget):
            found[score.fact_id] = score

    task = Task(work)
    busy = (gr.Button(interactive=False), gr.Button(interactive=True), task)
    try:
        while not task.wait(POLL_SECONDS):
            lines = [task.progress.text or "Beginning …", f"{len(found):,} of {len(facts.forget):,} facts done."]
            yield html.listed(lines), *busy, None
    finally:
        task.stop()
    stopped = isinstance(task.error, Stopped)
    kind = "bad" if task.error and not (found or stopped) else "warn" if task.error else "calm"
    lines = ([str(task.error)] if task.error else []) + summary_lines(facts, found)
    if not any(score.value is not None for score in found.values()):
        lines.append("The scores of the set are left as they were.")
        yield html.listed(lines, "warn" if stopped else "bad"), *_idle(), None
        return
    title = next(iter(found.values())).source
    yield html.listed(lines, kind), *_idle(), _Found(facts, Scoring(title, found), lent)


def _applied(lent: bool, facts: FactSet | None, scorings: tuple[Scoring, ...], found: _Found | None):
    """The set with what was found in the place of its scores; unchanged if it is another set by now. While the tour
    lends its own, what was found for the visitor's is held."""
    if found is None or (lent and not found.lent):
        return [gr.skip()] * 3
    if facts is None or found.lent != lent or not asked_about(found.facts, facts):
        return gr.skip(), gr.skip(), None
    scoring = found.scoring
    kept = tuple(other for other in scorings if other.title != scoring.title)
    scored = tuple(
        replace(fact, score=score.value, score_source=score.source if score.value is not None else "")
        for fact in facts.forget
        for score in [scoring.scores.get(fact.id, Score(fact.id, None, ""))]
    )
    return replace(facts, forget=scored), (*kept, scoring), None


def asked_about(then: FactSet, now: FactSet) -> bool:
    """Whether every fact to forget now was among those asked about then: ids alone may be those of another file."""
    questions = {fact.id: fact.question for fact in then.forget}
    return all(questions.get(fact.id) == fact.question for fact in now.forget)


def summary_lines(facts: FactSet, found: dict[str, Score]) -> list[str]:
    """How many facts were scored, and why the others were not, the commonest reason first."""
    scored = sum(score.value is not None for score in found.values())
    lines = [f"{scored:,} of {len(facts.forget):,} facts have a score."]
    if unreached := len(facts.forget) - len(found):
        lines.append(f"{unreached:,} were not reached: look up again to go on where it stopped.")
    reasons: dict[str, list[str]] = {}
    names = {fact.id: fact.title for fact in facts.forget}
    for score in found.values():
        if score.value is None:
            reasons.setdefault(score.reason, []).append(names[score.fact_id])
    for reason, subjects in sorted(reasons.items(), key=lambda item: -len(item[1]))[:REASONS_SHOWN]:
        shown = ", ".join(subject[:40] for subject in subjects[:3])
        lines.append(f"Unknown: {len(subjects):,}. {reason} ({shown}{', …' if len(subjects) > 3 else ''}).")
    return lines


def _idle():
    return gr.Button(interactive=True), gr.Button(interactive=False), None
