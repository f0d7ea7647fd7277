"""A link to a question: what the address says of Probe, and the same view opened from it.

The address names the fact, the prompt, the right answer, the beginning of the answer, the earlier
turns, the columns, the epoch, how samples were drawn and the strength: `questionLink` of
`assets/page.js` writes them, `questionRead` reads them. What was recorded is replayed; anything
else is asked again, and said so.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import partial

import gradio as gr

from adapop.errors import ConfigError
from adapop.probes.inspection import ORACLE
from adapop.runs import questions
from adapop.runs.run import Run
from adapop.service.links import linked
from adapop.service.worker import Worker
from adapop.ui.access import link_to, probed_run
from adapop.ui.parts import html
from adapop.ui.probe import answers as cards
from adapop.ui.probe.asking import ask_both
from adapop.ui.probe.choices import (
    columns_offered,
    epochs_offered,
    fact_of,
    first_fact,
    forms_of,
    group_of,
    kept_names,
)
from adapop.ui.probe.more import More, drawing_of, is_strength, sample, walk
from adapop.ui.wiring import EACH, QUIET, Components, offload

REPLAYED = "Recorded when it was asked"
ASKED_AGAIN = "Asked again just now"
NOT_RECORDED = "This question was not recorded. Whoever made the run can ask it again."
NOT_DRAWN = "Samples are not recorded. Whoever made the run can draw them again."
NO_CHANGE = gr.skip(), gr.skip()
NOT_WALKED = "Strengths are not recorded. Whoever made the run can move the slider."
ASKING = "This question was not recorded. Both models are asked again …"

LONGEST = 2_000  # characters of one value of an address


@dataclass(frozen=True)
class View:
    """What an address says of a question. run: the name in it, "" without one. pin: the place of a
    fact to forget that was pinned on Run, None without one. draw: the values of a `Drawing`, ()
    without samples. strength: how many times the unlearning counts, None if it was not moved."""

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
    strength: float | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether the address names no question and no fact."""
        return not self.ask and not self.fact and self.pin is None

    @property
    def epoch(self) -> str:
        """The epoch as `epoch_choices` has it."""
        return "" if self.at is None else str(self.at)

    @property
    def inputs(self) -> tuple:
        """What is asked: prompt, right answer, beginning of the answer, earlier turns, columns
        beside the two, epoch."""
        return self.ask, self.gold, self.begun, self.earlier, list(self.beside), self.epoch


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
    draw, strength = (), None
    with suppress(ValueError, TypeError, ConfigError):
        draw = astuple(drawing_of(*map(float, text("draw").split(","))))
    with suppress(ValueError):
        strength = float(text("strength"))
    strength = strength if is_strength(strength) else None
    numbers = {"at": number("at"), "pin": number("pin"), "strength": strength}
    return View(**words, **numbers, beside=beside, draw=draw)


@dataclass(frozen=True)
class Parts(Components):
    """The components of the question that Probe shows, which a view fills in.

    group, fact, form: its choices. begun, earlier: the beginning of the answer and the earlier
    turns. beside: the columns beside the two. answers: of all columns. fold: holds `more`.

    Hidden ones: filled: (run, fact, form) for which the prompt was filled in; later typing is kept.
    default: the fact that was selected for the visitor, or empty; another run replaces it, but not
    the visitor's choice. seen: which view was filled in last, empty without one. sent: when the
    page sent the event that filled in last, by the page's clock. wanted: what the address says, if
    something of it is still to be asked; None else. pressed: the beginning of the shown answers
    where a token was pressed, with its question behind it. A text box, not a State, where an event
    sends its value together with the fact's."""

    group: gr.Dropdown
    fact: gr.Dropdown
    form: gr.Dropdown
    prompt: gr.Textbox
    gold: gr.Textbox
    begun: gr.Textbox
    earlier: gr.Textbox
    beside: gr.Dropdown
    epoch: gr.Dropdown
    answers: gr.HTML
    fold: gr.Accordion
    more: More
    filled: gr.State
    default: gr.Textbox
    seen: gr.State
    sent: gr.Textbox
    wanted: gr.JSON
    pressed: gr.Textbox

    @staticmethod
    def hidden() -> dict[str, gr.Component]:
        """Lays out the hidden ones, by name."""
        texts = {name: gr.Textbox(visible="hidden") for name in ("default", "sent", "pressed")}
        return {
            **texts,
            "filled": gr.State(()),
            "seen": gr.State(""),
            "wanted": gr.JSON(visible=False),
        }

    @property
    def texts(self) -> list[gr.Textbox]:
        """What is typed, in the order of `QUESTION_FIELDS` of the page's script."""
        return [self.prompt, self.gold, self.begun, self.earlier]

    @property
    def inputs(self) -> list[gr.Component]:
        """What is asked, in the order of `View.inputs`."""
        return [*self.texts, self.beside, self.epoch]

    @property
    def question(self) -> list[gr.Component]:
        """What a link is made of, in the order of `questionLink`."""
        return [self.fact, *self.inputs, self.more.used, self.pressed, self.more.walked]


def pressed_of(answers: dict) -> str:
    """The beginning that a pressed token gave the shown answers, with the question behind it, as
    `questionLink` puts it into an address; "" for others."""
    question = answers.get("question", {})
    begun = question.get("begun", "").strip()
    return f"{begun}|{question['prompt']}" if begun else ""


def updates_of(worker: Worker, name: str, view: View, stored: object, parts: Parts) -> dict:
    """Updates that fill a view in; empty if it says nothing, is of another run, or only names a
    fact that the run has not."""
    run = probed_run(worker, name)
    if view.says_nothing or (view.run and view.run != name):
        return {}
    fact, group = _fact(run, view)
    if fact is None and not view.ask:
        return {}
    if fact is None:  # a question of one's own
        fact, group = first_fact(worker, name, "forget"), "forget"
    filled = {parts.group: group, parts.fact: fact, parts.default: ""}
    prompts = forms_of(run, fact)
    prompt = view.ask or (prompts[0].text if prompts else "")
    gold = view.gold if view.ask else prompts[0].gold if prompts else ""
    form = next((one.text for one in prompts if one.text == prompt), "")
    offered = columns_offered(worker, stored, name, view.beside)
    beside = [one for one in view.beside if one in dict(map(reversed, offered))]
    words = {parts.prompt: prompt, parts.gold: gold, parts.begun: view.begun}
    words |= {parts.earlier: view.earlier, parts.filled: (name, fact, form)}
    words[parts.beside] = gr.Dropdown(offered, value=beside, multiselect=True)
    words[parts.epoch] = gr.update(choices=epochs_offered(run), value=view.epoch)
    if view.draw or view.strength is not None:
        words[parts.fold] = gr.Accordion(open=True)
    words |= dict(zip(parts.more.numbers, view.draw))
    words |= {} if view.strength is None else {parts.more.strength: view.strength}
    return filled | words


def _fact(run: Run, view: View) -> tuple[str | None, str]:
    """(id, group) of the fact that a view names; (None, "") without one."""
    forget = run.facts.forget
    if not view.fact and view.pin is not None:
        return (forget[view.pin].id, "forget") if view.pin < len(forget) else (None, "")
    group = group_of(run, view.fact)
    return (view.fact, group) if group else (None, "")


def recorded(worker: Worker, name: str, view: View) -> dict | None:
    """The recorded answers of a view, or those of a question that was kept; None without them."""
    run = probed_run(worker, name)
    if not (view.begun or view.earlier or view.beside) and view.at is None:  # as a probing asks
        prompts = forms_of(run, fact_of(run, _fact(run, view)[0]))
        chosen = next((one for one in prompts if not view.ask or one.text == view.ask), None)
        if (answers := cards.recorded_answers(run, chosen)) != cards.NO_ANSWERS:
            return answers
    beside = kept_names(worker, run, view.beside)
    went_on = max((event.time for event in run.events()), default=0.0)  # with another result, since
    stored = [one for one in questions.read(run) if one.epoch is not None or one.time >= went_on]
    matching = (one for one in reversed(stored) if _is_asked(one, view, beside))
    own = linked(name, worker.root) is None
    return next((cards.kept(one, REPLAYED, own) for one in matching), None)


def followed(
    worker: Worker, name: str, stored: object, values: object, last: str, parts: Parts
) -> dict:
    """Updates that fill in what an address says, with the answers that were recorded. Empty if it
    says nothing, or what `last` said. In one event: what a visitor types or asks after it stays."""
    view = view_of(values)
    # without the run, which leaves the address when another run is shown
    name_of_view = hashlib.sha256(repr(replace(view, run="")).encode()).hexdigest()[:16]
    if name_of_view == last:
        return {}
    changes = updates_of(worker, name, view, stored, parts)
    if not changes:
        return {}
    replayed = recorded(worker, name, view)
    left = view.ask and (replayed is None or view.draw or view.strength is not None)
    empty = {"empty": ASKING} if view.ask else cards.NO_ANSWERS
    answers = {parts.answers: replayed or empty, parts.wanted: values if left else None}
    return changes | answers | {parts.seen: name_of_view}


def sent_at(values: object) -> str:
    """When the page sent an event, in milliseconds of its clock; "" if it does not say."""
    at = values.get("sent") if isinstance(values, dict) else None
    return str(at) if isinstance(at, (int, float)) else ""


async def asked_again(worker: Worker, name: str, view: View) -> AsyncIterator[dict]:
    """The answers of a view that were not recorded, which is said. Answers that were recorded
    meanwhile are shown as they are."""
    replayed = await offload(worker.usage, recorded, worker, name, view)
    if replayed is not None:
        yield replayed
        return
    if linked(name, worker.root):
        yield {"empty": NOT_RECORDED}
        return
    async for value in ask_both(worker, name, *view.inputs):
        if "about" in value:
            value["about"] = f"{ASKED_AGAIN} · {value['about']}"
        yield value


async def drawn_again(worker: Worker, name: str, view: View) -> tuple[dict, str]:
    """(samples of a view, as they were drawn, and what its link says of them)."""
    if linked(name, worker.root):
        return html.values({"empty": NOT_DRAWN}), ""
    return await sample(worker, name, *view.inputs, *view.draw)


async def walked_again(worker: Worker, name: str, view: View) -> tuple[dict, str]:
    """(what a view's strength shows, and what its link says of it)."""
    if linked(name, worker.root):
        return html.values({"empty": NOT_WALKED}), ""
    return await walk(worker, name, view.fact, view.strength)


def _is_asked(record: questions.Question, view: View, beside: tuple[str, ...]) -> bool:
    """Whether a kept question is the view's, of its epoch. beside: names of its further columns."""
    if record.sampling or (record.way and not record.begun and not record.earlier):
        return False  # an older version kept the way without its words
    turns = tuple(line.strip() for line in view.earlier.splitlines() if line.strip())
    expected = view.ask.strip(), view.gold.strip(), view.begun.strip(), turns, view.at, beside
    others = beside and tuple(reply.model for reply in record.replies[2:])
    actual = record.prompt, record.gold, record.begun, record.earlier, record.epoch, others
    return actual == expected


def link_names(worker: Worker, name: str, beside: object) -> tuple[str, list[str]]:
    """The names in a read-only link of the page's run, and of the columns beside it: nobody's
    id."""
    others = beside if isinstance(beside, list) else []
    named = [one if one == ORACLE else link_to(worker, one) for one in others]
    # a page without a run shows an example, and whoever opens the link may have another run
    return link_to(worker, name) or probed_run(worker, name).id, [one for one in named if one]


def wire(worker: Worker, name: gr.Component, parts: Parts, after: object, copy: gr.Button) -> None:
    """Wires the link. name: the page's run. after: the event that fills in what an address says.
    copy: its button."""
    place, columns, more = gr.Textbox(visible=False), gr.JSON(visible=False), parts.more

    async def ask(name: str, values: object):
        view = await offload(worker.usage, view_of, values)
        if view.ask:
            async for value in asked_again(worker, name, view):
                yield value

    async def draw(name: str, values: object):
        view = await offload(worker.usage, view_of, values)
        return await drawn_again(worker, name, view) if view.ask and view.draw else NO_CHANGE

    async def walk_again(name: str, values: object):
        view = await offload(worker.usage, view_of, values)
        no_strength = view.strength is None
        return NO_CHANGE if no_strength else await walked_again(worker, name, view)

    # each reads anew what is wanted: nothing, once another run or fact was picked
    inputs = [name, parts.wanted]
    asked = after.then(ask, inputs, parts.answers, **EACH)
    drawn = asked.then(draw, inputs, [more.shown, more.used], **EACH)
    drawn.then(walk_again, inputs, [more.strengths, more.walked], **EACH)
    open_names = partial(link_names, worker)
    made = copy.click(open_names, [name, parts.beside], [place, columns], **QUIET)
    link_inputs = [columns if one is parts.beside else one for one in parts.question]
    made.success(None, [place, *link_inputs], copy, js="adapop.questionLink", **QUIET)
