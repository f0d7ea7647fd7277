"""Open a model pair: a model that was unlearned elsewhere, beside its original, as a run."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import monotonic, sleep

import gradio as gr

from adapop.errors import AdaPopError, ConfigError, RunError, number_of
from adapop.facts.fact import FactSet
from adapop.facts.world import sandbox_facts
from adapop.limits import is_public
from adapop.runs.adopted import adopted_config
from adapop.runs.run import Run
from adapop.service.cleanup import delete_run, in_use
from adapop.service.worker import Worker
from adapop.service.zerogpu import public_models
from adapop.training.events import Event, RunFailed, RunStarted
from adapop.ui import texts
from adapop.ui.access import known_run, may_control, public_words, shown_run
from adapop.ui.parts import html
from adapop.ui.run.launch import check_over, following
from adapop.ui.run.screen import Follower
from adapop.ui.session import Session, check_shown
from adapop.ui.wiring import EACH, EACH_IN_TURN, POLL_SECONDS, QUIET, offload

TITLE = "Open a model pair"
ABOUT = (
    "Ask a model that was unlearned elsewhere beside its original. Both are measured on the facts "
    "chosen on Facts; nothing is trained. The pair becomes one of your runs: probe it here, "
    "compare it, download its report."
)
LOADING = "Loading both models …"
# a mistyped name is found out in less, and the page never shows that run; a download takes longer
SOON = 10.0  # seconds
LEAVES_SOON = 0.05  # seconds between looks whether the worker has left a failed pair's folder
# the measurement is followed at the head of the page; the reason why there is none, at the form
TO_FORM = """why => why?.kind === 'bad' &&
  document.querySelector('#pair-not-opened')?.scrollIntoView({ block: 'center' })"""
TO_STRIP_OR_FORM = f"why => why?.kind === 'bad' ? ({TO_FORM})(why) : scrollTo({{ top: 0 }})"
PLACES = (  # name of the field, its label, what is said of it
    ("pair-original", "Original model", "Leave empty for the adapter's own base"),
    ("pair-unlearned", "Unlearned model", "A folder, a Hub id, a GGUF file, or an adapter"),
    ("pair-oracle", "Oracle", "Optional: a model that never learned the facts"),
)
PLACE = dict(lines=1, max_length=400, min_width=240, scale=1)


def build(worker: Worker, session: Session, follower: Follower, opened: gr.State) -> None:
    """Lays out the folded form. The opened pair becomes the page's run; of one that cannot be
    opened only the reason stays, below the form. opened: changes whenever the tab is opened."""
    with gr.Accordion(TITLE, open=False, elem_id="pair-fold") as fold:
        gr.Markdown(ABOUT)
        with gr.Row():
            places = [
                gr.Textbox(label=label, info=about, elem_id=name, **PLACE)
                for name, label, about in PLACES
            ]
        with gr.Row(elem_classes=["beside", "line"]):
            press = dict(variant="primary", scale=0, min_width=160, elem_id="open-pair")
            button = gr.Button("Open the pair", **press)
            first = facts_of_pair(sandbox_facts())  # until the page has another set
            asked_about = html.lines("pair-facts", first, min_width=180)
        why_not, before = html.lines("pair-not-opened"), gr.State("")

    async def open_it(name: str, identity: str, facts: FactSet | None, *places: str | None):
        facts = await offload(worker.usage, check_shown, facts, identity)
        yield {why_not: html.listed([LOADING])}
        try:
            run = await offload(worker.usage, open_pair, worker, name, facts, *places)
            if await failed_soon(worker, run):
                raise await offload(worker.usage, discarded, worker, run)
            shown = dict(zip(follower.follows, following(run.id)))
            yield shown | {why_not: html.listed([]), before: name}
        except AdaPopError as error:
            yield {why_not: html.listed([public_words(error)], "bad")}

    inputs = [follower.run_id, session.shown_hash, session.facts, *places]
    outputs, press = [*follower.follows, why_not], [button.click, places[1].submit]
    pressed = gr.on(press, open_it, inputs, [*outputs, before], **QUIET)
    session.look_whether_lost(pressed)
    pressed.success(None, why_not, None, js=TO_STRIP_OR_FORM, **QUIET)
    phase, put = follower.phase, partial(put_away, worker)
    back = phase.change(put, [phase, follower.run_id, before], [*outputs, fold], **EACH)
    back.then(None, why_not, None, js=TO_FORM, **QUIET)
    when = [opened.change, session.facts.change]
    gr.on(when, facts_of_pair, session.facts, asked_about, **EACH_IN_TURN)


def facts_of_pair(facts: FactSet | None) -> dict:
    """On which facts a pair is measured, for beside its button."""
    if facts is None:
        return html.listed([texts.NO_FACTS], "warn")
    counts = f"{number_of(len(facts.forget), 'fact')} to forget"
    counts += f", {len(facts.holdout):,} held out" if facts.holdout else ""
    known = "A fact that the original does not know counts as neither kept nor forgotten."
    return html.listed([f"Measured on “{facts.name}”, the set on Facts: {counts}.", known])


def open_pair(worker: Worker, name: str | None, facts: FactSet, *places: str | None) -> Run:
    """Queues the adopted run of (original, unlearned, oracle) on the page's facts. name: the page's
    run so far, which must be over. Raises RunError, ConfigError, LimitError, DataError: why it
    cannot be queued."""
    original, unlearned, oracle = (str(place or "").strip() for place in places)
    check_over(worker, name)
    if is_public() and not {original, unlearned, oracle} <= {*public_models(), ""}:
        message = "This public page opens only models that its Run tab offers."
        raise ConfigError(message, "Run the app yourself for other models.")
    config = adopted_config(original, unlearned, oracle)
    return worker.submit(replace(config, facts=facts.name), facts)


async def failed_soon(worker: Worker, run: Run) -> bool:
    """Waits until a pair is loaded, at most `SOON`; returns whether it could not be."""
    until = monotonic() + SOON
    while not (events := await offload(worker.usage, run.events)) and monotonic() < until:
        await asyncio.sleep(POLL_SECONDS)
    return await offload(worker.usage, unopened, run, events)


def unopened(run: Run, events: Sequence[Event]) -> bool:
    """Whether a run is a pair whose models could not be loaded."""
    failed = bool(run.config.unlearned) and bool(events) and isinstance(events[-1], RunFailed)
    return failed and not any(isinstance(event, RunStarted) for event in events)


def discarded(worker: Worker, run: Run) -> RunError:
    """Deletes a pair that could not be opened; returns why it could not."""
    failure, until = run.events()[-1], monotonic() + SOON
    # the worker has written the failure, and leaves the folder next
    while in_use(run.folder) and monotonic() < until:
        sleep(LEAVES_SOON)
    if not in_use(run.folder):  # else the run stays, as a failed one
        delete_run(run, worker.root)
    return RunError(failure.message, failure.fix)


def put_away(worker: Worker, phase: tuple[str, str], current: str, before: str) -> tuple:
    """Discards a pair of which it came out later that it cannot be opened; returns updates that
    show the run before it again, and the reason in the opened form. phase: see `Follower`. current:
    the page's run now, which stays if it is another."""
    name, state = phase
    run = known_run(worker, name) if state == "failed" and may_control(worker, name) else None
    if run is None or not unopened(run, run.events()):
        return (gr.skip(),) * 5
    words = public_words(discarded(worker, run))
    last = before if shown_run(worker, before) else ""
    back = following(last) if current == name else (gr.skip(),) * 3
    return *back, html.listed([words], "bad"), gr.Accordion(open=True)
