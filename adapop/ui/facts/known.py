"""Measures which facts the original model knows: no model can forget what it never knew."""

from collections.abc import Mapping
from dataclasses import dataclass

import gradio as gr

from adapop.config.presets import make_config
from adapop.errors import number_of
from adapop.facts.fact import SANDBOX, FactSet
from adapop.probes.prompting import remarks_of
from adapop.probes.verdict import KNOWN_FROM
from adapop.remark import sentences
from adapop.report.table import percent
from adapop.runs.preflight import without_unknown
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.ui.access import refused, refusing
from adapop.ui.parts import html
from adapop.ui.run.configuration import ADVANCED, VISIBLE, config_of
from adapop.ui.run.settings import Offers, build_offers, offered
from adapop.ui.session import Large, Recall, Session, check_shown
from adapop.ui.wiring import IN_TURN, QUIET, error_of, followed, offload

KNOWN_ABOUT = (
    "A model cannot forget what it never knew. The model is the one chosen on Run. Teach it the "
    "facts first, choose another model, or use facts that it knows."
)
IN_PART = " If partly right answers count in part, as in a run's tables, its recall is {recall}."

PLACES = {name: place for place, name in enumerate((*VISIBLE, *ADVANCED))}
DECISIVE = [PLACES[name] for name in ("model", "asking", "seed")]


@dataclass(frozen=True)
class Answered(Large):
    """The measured answers of an original model."""

    asked_as: tuple[str, ...]
    """See `_asked_as`."""
    recall: Mapping[tuple[str, str], float]
    """(fact id, question) -> recall, [0, 1]."""
    mean: float
    """Mean recall of all facts, [0, 1], as a run's tables give it: answers count in part."""
    prompting: tuple[str, ...]
    """How a real model was asked, in sentences."""


def build(worker: Worker, session: Session, settings: gr.BrowserState) -> Offers:
    """Lays out the check whether Run's original model knows the facts. settings: see `Follower`.
    Returns the buttons that help a model that knows few."""
    with gr.Row():
        ask = gr.Button("Does the model know them?", min_width=160, elem_id="known")
        unseen = dict(min_width=160, visible=False, elem_id="drop-unknown")
        drop = gr.Button("Leave out what it does not know", **unseen)
        offers = build_offers("facts")
    status = html.lines("known-words")
    answers = gr.State(None)

    def begun(identity: str, facts: FactSet | None, values):
        with refusing():
            # the settings are empty before the page has sent them
            config = config_of(values) if values else make_config()
            facts = check_shown(facts, identity)
            return config, *worker.look(jobs.recall_of_original, config, facts)

    async def ask_model(identity: str, facts: FactSet | None, values):
        _, future, progress = await offload(worker.usage, begun, identity, facts, values)
        async for line in followed(future, progress):
            yield {status: html.listed([line]), answers: None}
        if error := error_of(future):
            raise refused(error)
        known = future.result()
        recall = {(fact.id, fact.question): known.recall[fact.id] for fact in facts.forget}
        prompting = tuple(sentences(remarks_of(known.prompting)))
        asked_as = await offload(worker.usage, _asked_as, facts, values)
        yield {answers: Answered(asked_as, recall, known.mean, prompting)}

    asking = [session.shown_hash, session.facts, settings]
    ended = ask.click(ask_model, asking, [status, answers], **QUIET)
    session.look_whether_lost(ended)
    inputs = [session.facts, session.known, answers, settings]
    words = [status, drop, *offers.all]
    recalled = [session.facts, answers, settings]
    summed = ended.then(_recall_now, recalled, session.known, **IN_TURN)
    summed.then(_summary_updates, inputs, words, **QUIET)
    settings.change(_recall_now, recalled, session.known, **IN_TURN)

    def dropped(identity: str, facts: FactSet | None, recall: Mapping[str, float]) -> dict:
        return session.changed(without_unknown(check_shown(facts, identity), recall))

    now = [session.shown_hash, session.facts, session.known]
    ended = drop.click(dropped, now, [session.facts, session.shown_hash], **IN_TURN)
    session.look_whether_lost(ended)
    gr.on([session.facts.change, session.known.change], _summary_updates, inputs, words, **QUIET)
    return offers


def _asked_as(facts: FactSet, values: list) -> tuple[str, ...]:
    """What decides how a model is asked, and so what it answers: model, way and seed from the
    settings that the browser keeps, and the retain set, which lends the examples before a
    question."""
    chosen = [str(values[place]).strip() for place in DECISIVE] if values else [SANDBOX, "chat", ""]
    lent = FactSet("", (), facts.retain, facts.holdout, examples=facts.examples)
    return *chosen, lent.sha256


def _recall_now(facts: FactSet | None, answers: Answered | None, values: list) -> Recall:
    """Recall by id of the set's facts; empty if the model or the way of asking is another now."""
    if facts is None or answers is None or answers.asked_as != _asked_as(facts, values):
        return Recall()
    keys = {fact.id: (fact.id, fact.question) for fact in facts.forget}
    by_id = {name: answers.recall[key] for name, key in keys.items() if key in answers.recall}
    return Recall(by_id)


def _summary_updates(
    facts: FactSet | None, recall: Mapping[str, float], answers: Answered | None, values: list
):
    """Updates: how many facts the model knows, in words, and the button that drops the others."""
    facts_asked = [fact for fact in facts.forget if fact.id in recall] if facts else []
    if not facts_asked:
        return html.listed([]), gr.Button(visible=False), *offered("", False)
    knows = sum(recall[fact.id] >= KNOWN_FROM for fact in facts_asked)
    of = number_of(len(facts_asked), "fact")
    model = str(values[PLACES["model"]]).strip() if values else SANDBOX
    is_taught = bool(values) and values[PLACES["start"]] == "sft"
    when = " before it is fine-tuned" if is_taught else ""
    first = f"Asked directly, the original model ({model}) answers {knows:,} of {of}{when}."
    if is_taught:  # then what it does not know is no reason to leave a fact out
        lines = [first, "A run first fine-tunes it on these facts, as set on Run."]
        return html.listed(lines), gr.Button(visible=False), *offered(model, False)
    if len(facts_asked) == len(answers.recall) and round(100 * answers.mean) != round(
        100 * knows / len(facts_asked)
    ):
        first += IN_PART.format(recall=percent(answers.mean))
    lines, unknown = [first, *answers.prompting], knows < len(facts_asked)
    lines += [KNOWN_ABOUT] * unknown
    drop = gr.Button(visible=bool(knows and unknown))
    return html.listed(lines, "warn" if unknown else "calm"), drop, *offered(model, unknown)
