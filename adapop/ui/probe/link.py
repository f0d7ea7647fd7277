"""A link to a question: what the address says of Probe, and the same view opened from it.

The address names the fact, the prompt, the right answer, the beginning of the answer, the earlier
turns, the columns, the epoch and how samples were drawn: `assets/question-link.js` writes them,
`question-read.js` reads them. What was recorded is replayed; anything else is asked again, and said
so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial

import gradio as gr

from adapop.errors import ConfigError
from adapop.facts.fact import FACT_GROUPS
from adapop.paths import ASSETS
from adapop.runs import questions
from adapop.runs.run import Run
from adapop.service.links import linked
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import link_to, probed_run
from adapop.ui.parts import html
from adapop.ui.probe import answers as cards
from adapop.ui.probe.asking import ask_both
from adapop.ui.probe.choices import columns_offered, fact_of, first_fact, forms_of
from adapop.ui.probe.more import Sampling, drawing_of, sample, used_for
from adapop.ui.wiring import EACH, QUIET, offload

LINK, READ = ((ASSETS / f"question-{name}.js").read_text("utf-8") for name in ("link", "read"))
LONGEST = 2_000  # characters of one value of an address


@dataclass(frozen=True)
class View:
    """What an address says of a question. run: the name in it, "" without one. pin: the place of a
    fact to forget that was pinned on Run, None without one. draw: the values of a `Drawing`, ()
    without samples."""

    run: str = ""
    fact: str = ""
    ask: str = ""
    gold: str = ""
    begun: str = ""
    earlier: str = ""
    beside: tuple[str, ...] = ()
    at: int | None = None
    pin: int | None = None
    draw: tuple[float, ...] = ()

    @property
    def says_nothing(self) -> bool:
        """Whether the address names no question and no fact."""
        return not self.ask and not self.fact and self.pin is None


def view_of(values: object) -> View:
    """The view that the browser sent, which may be anything."""
    values = values if isinstance(values, dict) else {}

    def text(name: str) -> str:
        value = values.get(name)
        return value[:LONGEST] if isinstance(value, str) else ""

    def number(name: str) -> int | None:
        value = text(name)
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 9 else None

    beside = tuple(name for name in text("with").split(",") if name)
    words = {name: text(name) for name in ("run", "fact", "ask", "gold", "begun", "earlier")}
    draw = ()
    with suppress(ValueError, TypeError, ConfigError):
        draw = astuple(drawing_of(*map(float, text("draw").split(","))))
    return View(**words, beside=beside, at=number("at"), pin=number("pin"), draw=draw)


@dataclass(frozen=True)
class Parts:
    """The components that a view fills in."""

    group: gr.Dropdown
    fact: gr.Dropdown
    prompt: gr.Textbox
    gold: gr.Textbox
    begun: gr.Textbox
    earlier: gr.Textbox
    beside: gr.Dropdown
    epoch: gr.Dropdown
    filled: gr.State
    default: gr.Textbox
    answers: gr.HTML
    fold: gr.Accordion
    sampling: Sampling

    @property
    def question(self) -> list[gr.Component]:
        """What a link is made of, in the order of `question-link.js`."""
        asked = [self.fact, self.prompt, self.gold, self.begun, self.earlier]
        return [*asked, self.beside, self.epoch, self.sampling.used]


def updates_of(worker: Worker, name: str, view: View, stored: object, parts: Parts) -> dict:
    """Updates that fill a view in; empty if it says nothing, or is of another run or fact."""
    run = probed_run(worker, name)
    if view.says_nothing or (view.run and view.run != name):
        return {}
    fact, group = _fact(run, view)
    if (view.fact or view.pin is not None) and fact is None:
        return {}
    if fact is None:  # a question of one's own
        fact, group = first_fact(worker, name, "forget"), "forget"
    filled = {parts.group: group, parts.fact: fact, parts.default: ""}
    prompts = forms_of(run, fact)
    prompt = view.ask or (prompts[0].text if prompts else "")
    gold = view.gold if view.ask else prompts[0].gold if prompts else ""
    form = next((one.text for one in prompts if one.text == prompt), "")
    offered = columns_offered(worker, stored, name)
    beside = [one for one in view.beside if one in dict(map(reversed, offered))]
    words = {parts.prompt: prompt, parts.gold: gold, parts.begun: view.begun}
    words |= {parts.earlier: view.earlier, parts.filled: (name, fact, form)}
    words[parts.beside] = gr.Dropdown(offered, value=beside, multiselect=True)
    words[parts.epoch] = "" if view.at is None else str(view.at)
    if view.draw:
        words |= {parts.fold: gr.Accordion(open=True)} | dict(
            zip(parts.sampling.numbers, view.draw)
        )
    return filled | words


def _fact(run: Run, view: View) -> tuple[str | None, str]:
    """(id, group) of the fact that a view names; (None, "") without one."""
    forget = run.facts.forget
    if not view.fact and view.pin is not None:
        return (forget[view.pin].id, "forget") if view.pin < len(forget) else (None, "")
    for group in FACT_GROUPS:
        if any(fact.id == view.fact for fact in getattr(run.facts, group)):
            return view.fact, group
    return None, ""


async def replayed(worker: Worker, name: str, view: View) -> AsyncIterator[dict]:
    """The answers of a view: recorded ones at once, else asked again, which is said."""
    run = probed_run(worker, name)
    fact = fact_of(run, _fact(run, view)[0])
    prompts = forms_of(run, fact)
    chosen = next((one for one in prompts if not view.ask or one.text == view.ask), None)
    alone = not (view.begun or view.earlier or view.beside or view.at is not None)
    shown = cards.recorded_answers(run, chosen) if alone else cards.NO_ANSWERS
    if shown == cards.NO_ANSWERS and alone:
        kept = (one for one in reversed(questions.read(run)) if _is_asked(one, view))
        shown = next((cards.kept(one, texts.REPLAYED) for one in kept), shown)
    if shown != cards.NO_ANSWERS or not view.ask:
        yield shown
    elif linked(name, worker.root):
        yield {"empty": texts.NOT_RECORDED}
    else:
        asked = view.ask, view.gold, view.begun, list(view.beside), view.earlier
        epoch = "" if view.at is None else str(view.at)
        async for value in ask_both(worker, name, *asked, epoch=epoch):
            if "about" in value:
                value["about"] = f"{texts.ASKED_AGAIN} · {value['about']}"
            yield value


async def drawn_again(worker: Worker, name: str, view: View) -> tuple:
    """(samples of a view, as they were drawn, and what its link says of them)."""
    if not (view.draw and view.ask):
        return gr.skip(), gr.skip()
    if linked(name, worker.root):
        return html.values({"empty": texts.NOT_RECORDED}), ""
    at = "" if view.at is None else str(view.at)
    asked = view.ask, view.gold, view.begun, view.earlier, list(view.beside), at
    shown = await sample(worker, name, asked, view.draw)
    return shown, used_for(view.ask, view.draw) if "empty" not in shown else ""


def _is_asked(kept: questions.Question, view: View) -> bool:
    """Whether a kept question is the view's, as it stands and of the run's result."""
    plain = kept.epoch is None and not kept.way and not kept.sampling
    return plain and (kept.prompt, kept.gold) == (view.ask, view.gold)


def wire(
    worker: Worker,
    run_id: gr.Component,
    my_runs: gr.Component,
    parts: Parts,
    after: object,
    copy: gr.Button,
) -> None:
    """Wires the link. after: the event after which an address is followed. copy: its button."""
    viewed, wanted, place = gr.State(""), gr.JSON(visible=False), gr.Textbox(visible=False)

    def follow(name: str, stored: object, values: object, last: str) -> dict:
        view = view_of(values)
        key = repr(view)
        changes = {} if key == last else updates_of(worker, name, view, stored, parts)
        # the answers follow only a view that was filled in just now
        return {viewed: key, wanted: values, **changes} if changes else {wanted: None}

    filled = [viewed, wanted, *parts.question, parts.group, parts.filled, parts.default]
    filled += [parts.fold, *parts.sampling.numbers]
    inputs = [run_id, my_runs, wanted, viewed]
    followed = after.then(follow, inputs, filled, js=READ, **EACH)

    async def answer(name: str, values: object):
        if values is None:
            yield gr.skip()
            return
        async for value in replayed(worker, name, await offload(worker.usage, view_of, values)):
            yield value

    async def draw(name: str, values: object):
        return await drawn_again(worker, name, await offload(worker.usage, view_of, values))

    answered = followed.then(answer, [run_id, wanted], parts.answers, **EACH)
    samples = [parts.sampling.shown, parts.sampling.used]
    answered.then(draw, [run_id, wanted], samples, **EACH)
    made = copy.click(partial(link_to, worker), run_id, place, **QUIET)
    made.success(None, [place, *parts.question], copy, js=LINK, **QUIET)
