"""Open a model pair: a model that was unlearned elsewhere, beside its original, as a run."""

from dataclasses import replace

import gradio as gr

from adapop.errors import ConfigError, number_of
from adapop.facts.fact import FactSet
from adapop.facts.world import sandbox_facts
from adapop.limits import is_public
from adapop.runs.adopted import adopted_config
from adapop.service.worker import Worker
from adapop.service.zerogpu import public_models
from adapop.ui import texts
from adapop.ui.access import may_control, refusing
from adapop.ui.parts import html
from adapop.ui.run.launch import following
from adapop.ui.run.screen import Follower
from adapop.ui.run.state import seen_of
from adapop.ui.session import Session, check_shown
from adapop.ui.wiring import EACH_IN_TURN, QUIET, toast

TITLE = "Open a model pair"
ABOUT = (
    "Ask a model that was unlearned elsewhere beside its original. Both are measured on the facts "
    "chosen on Facts; nothing is trained. The pair becomes one of your runs: probe it here, "
    "compare it, download its report."
)
PLACES = "A folder, a Hub id, a GGUF file, or an adapter"


def build(worker: Worker, session: Session, follower: Follower, opened: gr.State) -> None:
    """Lays out the folded form. The opened pair becomes the page's run. opened: changes whenever
    the tab is opened."""
    with gr.Accordion(TITLE, open=False, elem_id="pair-fold"):
        gr.Markdown(ABOUT)
        with gr.Row():
            wide = dict(min_width=240, scale=1)
            words = "Empty: the adapter's own base"
            original = _place("Original model", words, "pair-original", **wide)
            unlearned = _place("Unlearned model", PLACES, "pair-unlearned", **wide)
            words = "Optional: a model that never learned the facts"
            oracle = _place("Oracle", words, "pair-oracle", **wide)
        with gr.Row(elem_classes=["beside", "line"]):
            press = dict(variant="primary", scale=0, min_width=160, elem_id="open-pair")
            button = gr.Button("Open the pair", **press)
            first = facts_of_pair(sandbox_facts())  # until the page has another set
            asked_about = html.lines("pair-facts", first, min_width=180)

    def open_it(name: str, identity: str, facts: FactSet | None, *places: str | None):
        return open_pair(worker, name, check_shown(facts, identity), *places)

    asked = [follower.run_id, session.shown_hash, session.facts, original, unlearned, oracle]
    follows = [follower.run_id, follower.position, follower.timer]
    pressed = gr.on([button.click, unlearned.submit], open_it, asked, follows, **QUIET)
    session.look_whether_lost(pressed)
    # how far the measurement is stands at the head of the page
    pressed.success(None, None, None, js="() => scrollTo({ top: 0 })", **QUIET)
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


def open_pair(
    worker: Worker, name: str | None, facts: FactSet, *places: str | None
) -> tuple[str, tuple, gr.Timer]:
    """Queues the adopted run of (original, unlearned, oracle) on the page's facts; returns
    `following` it. name: the page's run so far, which must be over. Raises gr.Error."""
    original, unlearned, oracle = (str(place or "").strip() for place in places)
    if may_control(worker, name) and not seen_of(worker, name, "ready")[0].can_start:
        raise toast("A run of this page is under way. Wait for its end, or press Stop.")
    with refusing():
        if is_public() and not {original, unlearned, oracle} <= {*public_models(), ""}:
            message = "This public page opens only models that its Run tab offers."
            raise ConfigError(message, "Run the app yourself for other models.")
        config = adopted_config(original, unlearned, oracle)
        run = worker.submit(replace(config, facts=facts.name), facts)
    return following(run.id)


def _place(label: str, words: str, name: str, **size) -> gr.Textbox:
    return gr.Textbox(label=label, info=words, lines=1, max_length=400, elem_id=name, **size)
