"""The actions of Start, Stop and Resume, the plan shown beside Start, and the check of the model
before a run: which facts it knows, and how long the run takes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import gradio as gr

from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, RunError
from adapop.facts.fact import FactSet
from adapop.popularity.calibration import anchored
from adapop.probes.verdict import KNOWN_FROM
from adapop.remark import Remark, sentences
from adapop.runs.amount import few_facts, few_steps
from adapop.runs.preflight import Preflight, preflight
from adapop.service import jobs
from adapop.service.leases import cost_of_run
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import may_control, refused, refusing, run_to_control
from adapop.ui.facts.rewording import can_reword, reworded
from adapop.ui.parts import html
from adapop.ui.run import configuration
from adapop.ui.run.settings import offered
from adapop.ui.run.state import RunView, seen_of, strip_of
from adapop.ui.session import Anchors, Session, check_shown
from adapop.ui.wiring import QUIET, error_of, followed, offload

NO_REWORDINGS_RUN = (
    "These facts have no rewordings, so the gap is measured with the trained questions. "
)
REWORDED_BY = {
    True: "The Facts screen can add rewordings.",
    False: "To measure it in other words, add a column “paraphrases” to the file.",
}

UNSEEN = ("", -1)


def start_of(now: RunView, owned: bool = True) -> gr.Button:
    """The button Start: the primary one, unless Resume is available too."""
    variant = "secondary" if now.can_resume and owned else "primary"
    return gr.Button(interactive=now.can_start, variant=variant)


def look(
    worker: Worker,
    name: str,
    position: tuple[str | None, int],
    loaded: str,
    stored: list,
    recall: Mapping[str, float],
    facts: FactSet | None,
    missing,
    anchors,
    *values,
):
    """Updates: the plan and costs in words, whether Start is allowed, the settings to store, the
    strip, what helps a model that does not know the facts. name: the run at the request; position
    may name a newer one. position, loaded, stored (`settings`): see `Follower`. recall: see
    `Session`."""
    words, costs, readiness, few = html.listed([texts.NO_FACTS], "warn"), (), "empty", []
    scoreless = unread = False
    if facts is not None:
        try:
            config = config_at(facts, missing, anchors, *values)
            plan = preflight(facts, config, worker.pace_of(config.model))
            kinds = {one.kind for one in plan.problems if isinstance(one, Remark)}
            scoreless = "no_scores" in kinds
            unread = any(one.kind == "not_its_world" for one in plan.doubts)
            few = [] if plan.problems else few_steps(len(facts.forget), config)
            plan = replace(plan, doubts=(*plan.doubts, *few))
            if worker.is_lent:
                plan = replace(plan, costs=(*plan.costs, cost_of_run(config.model)))
        except AdaPopError as error:
            plan = Preflight(problems=(str(error),))
        kind = "bad" if plan.problems else "warn" if plan.doubts else "calm"
        going = [Remark("unknown_go")] if plan.counts and config.unknown != "keep" else []
        if plan.counts:
            going += few_facts(len(facts.forget), _known_of(facts, recall, config))
        counts = [plan.counts, *going] if plan.counts else []
        bare = [] if reworded(facts) else [NO_REWORDINGS_RUN + REWORDED_BY[can_reword(facts)]]
        remarks = (*plan.problems, *plan.doubts, *counts, *bare, *plan.terms)
        words, readiness = html.listed(sentences(remarks), kind), plan.readiness
        costs = sentences([one for one in plan.costs if one not in plan.terms])
    altered = configuration.changed(values, len(facts.forget) if facts else 0)
    name = position[0] or name
    now, _, _ = seen_of(worker, name, readiness)
    return (
        words,
        html.listed(costs),
        html.listed([f"Changed: {line}" for line in altered], "warn"),
        gr.Button(visible=bool(few)),
        gr.Button(visible=scoreless),
        readiness,
        start_of(now, may_control(worker, name)),
        list(values) if loaded else stored,  # gr.skip() would copy the component for each page
        *offered(values[0], unread),
        strip_of(now),
        gr.Button(interactive=now.can_stop and may_control(worker, name)),
        gr.Timer(active=True) if now.ticking else gr.skip(),
    )


def _known_of(facts: FactSet, recall: Mapping[str, float], config: RunConfig) -> int | None:
    """How many facts to forget the model knows; None if it was not asked about all of them, or is
    taught them first."""
    if config.start == "sft" or not all(fact.id in recall for fact in facts.forget):
        return None
    return sum(recall[fact.id] >= KNOWN_FROM for fact in facts.forget)


def start_run(
    worker: Worker,
    name: str | None,
    identity: str,
    facts: FactSet | None,
    missing,
    anchors,
    *values,
):
    """Queues a run with the page's settings; returns `following` it. name: the run so far.
    identity: see `Session`. Raises gr.Error."""
    facts = check_shown(facts, identity)
    with refusing():
        check_over(worker, name)
        config = config_at(facts, missing, anchors, *values)
        preflight(facts, config).check()
        run = worker.submit(config, facts)
    return following(run.id)


def check_over(worker: Worker, name: str | None) -> None:
    """Raises RunError if the page's own run is not over: another would hide it."""
    if may_control(worker, name) and not seen_of(worker, name, "ready")[0].can_start:
        raise RunError("A run is in progress on this page.", "Wait until it ends, or press Stop.")


def following(name: str) -> tuple[str, tuple, gr.Timer]:
    """Updates of `Follower.follows` for a run: its id, no events seen, the running timer."""
    return name, UNSEEN, gr.Timer(active=True)


def config_at(facts: FactSet, missing, anchors, *values) -> RunConfig:
    """The page's settings as a configuration."""
    config = configuration.config_of(values, facts=facts.name, missing_score=missing)
    return at_anchors(config, anchors)


def at_anchors(config: RunConfig, anchors: Anchors | None) -> RunConfig:
    """The configuration with the β of the page's anchors, if chosen and if β follows scores."""
    if anchors and follows_scores(config):
        return replace(config, beta=anchored(*anchors))
    return config


def stop_run(worker: Worker, name: str) -> None:
    """Asks the page's run to stop."""
    if run := run_to_control(worker, name):
        with refusing():
            run.request_stop()


def resume_run(worker: Worker, name: str):
    """Queues the page's run again; it resumes after its last saved epoch. Raises gr.Error."""
    if run := run_to_control(worker, name):
        with refusing():
            if run.shared:
                message = f"Run {run.id} is shown to every visitor."
                raise RunError(message, "Start a run of your own.")
            run.clear_stop()
            worker.enqueue(run)
    return UNSEEN, gr.Timer(active=True)


def build_check(
    worker: Worker,
    session: Session,
    inputs: list,
    configured: Callable[..., RunConfig],
    name: str = "check",
) -> None:
    """Lays out the button Check and its results. configured: called with the facts and the values
    of inputs. name: element id."""
    ask = gr.Button("Check", min_width=160, size="sm", elem_id=name)
    words = html.lines(f"{name}-words")

    def begun(identity: str, facts: FactSet | None, *values):
        with refusing():
            facts = check_shown(facts, identity)
            return worker.look(jobs.check_facts, configured(facts, *values), facts)

    async def looked(identity: str, facts: FactSet | None, *values):
        future, progress = await offload(worker.usage, begun, identity, facts, *values)
        async for line in followed(future, progress):
            yield html.listed([line])
        if error := error_of(future):
            raise refused(error)
        checked = future.result()
        kind = "warn" if checked.waste or checked.preflight.problems else "calm"
        yield html.listed([*sentences(checked.facts.notes), *checked.lines_for("page")], kind)

    given = [session.shown_hash, session.facts, *inputs]
    session.look_whether_lost(question := ask.click(looked, given, words, **QUIET))
    session.facts.change(lambda: html.listed([]), None, words, cancels=[question], **QUIET)
