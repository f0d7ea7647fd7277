"""The Story's tab: a component that plays recorded runs in the browser, can start a run with the
curve it shows, and ends with links to the other tabs."""

from dataclasses import replace
from functools import partial

import gradio as gr

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, ConfigError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.calibration import anchored
from adapop.probes.wording import from_templates
from adapop.runs import states
from adapop.runs.amount import ENOUGH_STEPS, with_steps
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui.access import known_run, public_words
from adapop.ui.facts.upload import typed_file
from adapop.ui.parts import download, field, html
from adapop.ui.run.launch import check_over, following
from adapop.ui.run.screen import Follower
from adapop.ui.run.state import seen_of
from adapop.ui.story import words
from adapop.ui.story.content import content_of, story
from adapop.ui.wiring import QUIET

REPORTED = "example-adapop"


def build(worker: Worker, follower: Follower, timer: gr.Timer) -> None:
    """Lays the Story out in the current tab. follower: of the page's run; a run started here
    becomes it. timer: active until that run ends."""
    page = html.drawn(story(), "story", "story", "story")
    live = html.drawn({}, "", "story-live", "storyLive")
    started, reported = gr.State(""), gr.State(REPORTED)
    with gr.Column(elem_id="story-report"):
        download.build(worker, reported, reported, "story-report")
    changed = [*follower.follows, started, timer]

    def pressed(name: str | None, event: gr.EventData):  # gradio gives no event to a partial
        return start(worker, name, event)

    page.release(pressed, follower.run_id, [*changed, live], **QUIET)
    timer.tick(partial(progress, worker), started, [live, timer], **QUIET)


def start(worker: Worker, name: str | None, event: gr.EventData):
    """Queues a sandbox run with the β of the Story's curve, or on facts typed there. name: the
    page's run so far. Returns the new id, the number of its events seen, the running timer, the id
    again, the Story's own running timer, and a message."""
    try:
        check_over(worker, name)
        if typed := getattr(event, "typed", None):
            run = worker.submit(*own_facts(typed, getattr(event, "method", None)))
        else:
            values = (getattr(event, name, None) for name in ("rare", "popular", "epochs"))
            run = worker.submit(config_of(*values), sandbox_facts())
    except AdaPopError as error:
        rows = " ".join(map(str, getattr(error, "problems", ())[:1]))
        return *[gr.skip()] * 5, {"text": f"{public_words(error)} {rows}".strip(), "over": True}
    words = {"text": "Your run waits for its turn …"}
    return *following(run.id), run.id, gr.Timer(active=True), words


def config_of(rare: object, popular: object, epochs: object = states.EPOCHS) -> RunConfig:
    """The configuration of a run with β through two points and this number of epochs, all sent by a
    browser. Raises ConfigError: no curve fits them, or the Story shows no such number of epochs."""
    try:
        (rare_score, rare_beta), (popular_score, popular_beta) = rare, popular
        points = (float(rare_score), float(rare_beta)), (float(popular_score), float(popular_beta))
    except (TypeError, ValueError, OverflowError):
        message = "The curve's two points did not arrive."
        raise ConfigError(message, "Drag an orange diamond and press again.") from None
    if epochs not in range(1, max(states.LENGTHS["adapop"]) + 1):
        message = "The length of the run did not arrive."
        raise ConfigError(message, "Move the slider and press again.")
    return make_config("adapop", beta=anchored(*points), epochs=int(epochs))


def own_facts(typed: object, method: object) -> tuple[RunConfig, FactSet]:
    """The configuration of a run on typed facts, and these, with rewordings where the sandbox's
    templates have some. Raises ConfigError: the Story offers no such method. DataError: the text is
    no table of facts."""
    if method not in words.OWN_METHODS:
        raise ConfigError("The method did not arrive.", "Choose one and press again.")
    facts = load_facts(typed_file(typed))
    forget = (
        replace(fact, paraphrases=fact.paraphrases or from_templates(fact)) for fact in facts.forget
    )
    facts = replace(facts, forget=tuple(forget))
    return with_steps(len(facts.forget), make_config(method), ENOUGH_STEPS), facts


def own_clouds(run: Run) -> dict | None:
    """Both clouds of a run on typed facts, before and after, in the format of `story`; None if its
    gap was not measured."""
    both = run.measured(before=True), run.measured()
    if any(one is None or one.gap is None or None in one.by_fact for one in both):
        return None
    names, lengths = ("original", run.config.method), (0, run.config.epochs)
    ends = (states.state_of(*of, None, one) for of, one in zip(zip(names, lengths), both))
    counts = {len(fact.paraphrases) for fact in run.facts.forget}
    return {
        "facts": field.dots(run.facts.forget),
        "held": field.dots(run.facts.holdout),
        "states": [content_of(one) for one in ends],
        "wordings": counts.pop() if len(counts) == 1 else 0,
    }


def progress(worker: Worker, started: str):
    """The progress of the run that the Story started; after its end, its final state. Returns the
    text and the timer, which the end stops."""
    rests = gr.Timer(active=False)
    run = known_run(worker, started)
    if run is None:
        return {"text": "Your run was deleted.", "over": True}, rests
    now, _, _ = seen_of(worker, started, "ready")
    if now.ticking:
        return {"text": f"Your run, live: {now.label}. {now.detail}"}, gr.skip()
    after = run.measured()
    if run.facts.forget != sandbox_facts().forget:
        return {"text": f"{now.label}. {now.detail}", "over": True, "own": own_clouds(run)}, rests
    if after is None or not after.by_fact or None in after.by_fact:
        return {"text": f"Your run: {now.label}. {now.detail}", "over": True}, rests
    beta = run.config.beta
    state = states.state_of("adapop", run.config.epochs, (beta(100.0), beta(3000.0)), after)
    words = "This is your own run, measured on this machine: it replaces the estimate."
    return {"text": words, "over": True, "state": content_of(state)}, rests
