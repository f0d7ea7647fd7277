"""Screen 4, Probe: one prompt to both models, side by side, with the right answer's rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import gradio as gr

from adapop.runs.columns import MOST_BESIDE
from adapop.runs.examples import example_of
from adapop.runs.run import Run
from adapop.service.links import linked
from adapop.service.worker import Worker
from adapop.service.zerogpu import ASK_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import known_run, probed_run, shown_run
from adapop.ui.parts import download, html
from adapop.ui.probe import answers as cards
from adapop.ui.probe import choices, every_way, leaks, link, more, pair, recovery
from adapop.ui.probe.asking import ask_both, ask_every_way, go_on, way_chosen, ways_of
from adapop.ui.run import mine
from adapop.ui.run.outcome import run_again
from adapop.ui.run.screen import Follower
from adapop.ui.session import Session
from adapop.ui.wiring import EACH, EACH_IN_TURN, QUIET

LOOK_ONLY = (
    "Opened by a read-only link. Only the person who started this run can ask its models; here "
    "is what was recorded. To ask questions, choose an example above or start a run of your own."
)
MORE_ASKING = "Beginning of the answer, earlier turns, more models"
MORE_ABOUT = "Samples, strength, layers"
EARLIER_ABOUT = "Every model answers them first, in its own words."

# events that set the fact or its prompt, or that ask: one after the other
BY_TURNS = QUIET | {"concurrency_id": "probe", "concurrency_limit": 1}
TO_PROMPT = "() => document.querySelector('#prompt textarea, #prompt input')?.focus()"


@dataclass(frozen=True)
class ProbeScreen:
    """The components of one question. group, fact, form: its choices. prompt, gold: its text and
    its answer. answers: of both models. filled: (run, fact, form) for which the prompt was filled
    in; later typing is kept. default: the fact that was selected for the visitor, or empty; another
    run replaces it, but not the visitor's choice. A hidden text box, not a State: an event sends
    its value together with the fact's."""

    group: gr.Dropdown
    fact: gr.Dropdown
    form: gr.Dropdown
    prompt: gr.Textbox
    gold: gr.Textbox
    answers: gr.HTML
    filled: gr.State
    default: gr.Textbox

    def wire(
        self,
        worker: Worker,
        follower: Follower,
        tab: gr.Tab,
        my_runs: gr.BrowserState,
        view: link.Parts,
    ) -> tuple[object, Callable]:
        """Wires the choices of a fact and a form, which fill in the prompt. view: what an address
        fills in. Returns the event that fills in the first fact, or what the address says, and a
        function that wires one more event by which the visitor picks group and fact."""
        inputs = [follower.run_id, self.group, self.fact, self.default, self.prompt, self.filled]
        inputs += [my_runs, view.seen, view.wanted]
        outputs = [self.form, *view.filled_in]
        # not `change`: what an event has filled in is not the visitor's choice
        placed = [tab.select, follower.another.change]
        choose = partial(self.choose, worker, view)
        chosen = gr.on(placed, choose, inputs, outputs, js="adapop.questionRead", **EACH | BY_TURNS)
        view.keep_typed(chosen.then)

        def wire_pick(picked: Callable, by: str = "fact") -> None:
            pick = partial(self.choose, worker, view, by=by)
            filled = picked(pick, inputs, outputs, js="adapop.questionSent", **EACH | BY_TURNS)
            view.keep_typed(filled.then)
            question_inputs = [self.fact, self.prompt, view.beside, view.epoch]
            filled.then(None, question_inputs, None, js="adapop.factPicked", **QUIET)

        wire_pick(self.fact.input)
        wire_pick(self.group.input, by="group")
        inputs_of_form = [follower.run_id, self.fact, self.form, self.prompt, self.filled]
        formed = self.form.input(
            partial(self.fill_form, worker, view),
            [*inputs_of_form, view.wanted],
            [self.prompt, self.gold, self.answers, self.filled, view.sent],
            js="adapop.questionSent",
            **EACH | BY_TURNS,
        )
        view.keep_typed(formed.then)
        return chosen, wire_pick

    def choose(
        self,
        worker: Worker,
        view: link.Parts,
        name: str,
        group: str,
        fact_id: str | None,
        last: str | None,
        text: str,
        filled: tuple,
        stored: object,
        last_view: str,
        view_values: object,
        by: str = "",
    ) -> dict:
        """Updates when the run or the group of facts changed, or the tab was opened: what the
        address says, or fact, form and prompt. In one event: a question asked in between would be
        replaced. stored: the kept runs; last_view, view_values: `Parts.seen` and `Parts.wanted`.
        by: what the visitor chose, "fact" (or typed its name) or "group"; empty for none."""
        picked = by == "fact"
        linked = {} if by else link.followed(worker, name, stored, view_values, last_view, view)
        group, fact_id = linked.get(self.group, group), linked.get(self.fact, fact_id)
        text, filled = linked.get(self.prompt, text), linked.get(self.filled, filled)
        run = probed_run(worker, name)
        if not linked and not by and filled[:1] == (name,) and fact_id != filled[1]:
            # what was filled in for this run is on its way to the page, which shows another fact
            fact_id, group = filled[1], choices.group_of(run, filled[1]) or group
        match = None
        if picked:  # a name that was typed may be of another group
            match = choices.fact_of(run, fact_id, (group,)) or choices.fact_of(run, fact_id)
            group = choices.group_of(run, match) or group
        last = None if linked or picked else last
        facts, selected, default = choices.fact_choices(worker, name, group, match or fact_id, last)
        if picked and not match:  # what was typed stays: the table of forms says that it is no fact
            facts, selected, default = fact_id, fact_id, None
        forms, form = choices.form_choices(worker, name, selected, text, filled)
        filling = linked or self.fill(run, name, selected, form, text, filled)
        changes = {self.group: group, self.default: default}
        # to leave the fact's box picks nothing anew
        if not picked or filled[:2] != (name, selected):
            changes[view.wanted] = None
        changes |= filling  # a link says what is wanted
        if not linked and filled and filled[0] != name:
            changes[view.epoch] = ""  # an epoch was chosen for another run
        changes |= {self.fact: facts, self.form: forms, view.sent: link.sent_at(view_values)}
        return self.as_allowed(worker, name, changes)

    def fill_form(
        self,
        worker: Worker,
        view: link.Parts,
        name: str,
        fact_id: str | None,
        form: str | None,
        text: str,
        filled: tuple,
        view_values: object,
    ) -> dict:
        """Updates for another form: see `fill`."""
        filling = self.fill(probed_run(worker, name), name, fact_id, form, text, filled)
        return self.as_allowed(worker, name, {**filling, view.sent: link.sent_at(view_values)})

    def fill_way(
        self,
        worker: Worker,
        view: link.Parts,
        name: str,
        fact_id: str | None,
        view_values: object,
        event: gr.EventData,
    ) -> dict:
        """Updates for the chosen row of the table of forms; none for a row that it has not."""
        run = probed_run(worker, name)
        fact_id = choices.fact_of(run, fact_id)
        forms = choices.forms_of(run, fact_id)
        sent = {view.sent: link.sent_at(view_values)}
        chosen = way_chosen(run, fact_id, forms, event)
        if chosen is None:
            return sent
        form = chosen.text if chosen in forms else ""  # a chain of clues is none
        filled = {self.form: form, self.filled: (name, fact_id, form)}
        filled |= {self.prompt: chosen.text, self.gold: chosen.gold}
        changes = sent | filled | {self.answers: cards.recorded_answers(run, chosen)}
        return self.as_allowed(worker, name, changes)

    def as_allowed(self, worker: Worker, name: str, changes: dict) -> dict:
        """The updates; by a read-only link, what was not recorded is not to be asked either."""
        waits = changes.get(self.answers) in (cards.NO_ANSWERS, {"empty": link.ASKING})
        if waits and linked(name, worker.root):
            return {**changes, self.answers: {"empty": link.NOT_RECORDED}}
        return changes

    def fill(
        self,
        run: Run | None,
        name: str,
        fact_id: str | None,
        form: str | None,
        text: str,
        filled: tuple,
    ) -> dict:
        """Updates for another fact, form or run: the prompt, its right answer and recorded answers.
        form: the chosen prompt, empty for one's own. text: the current prompt."""
        now = name, fact_id, form
        # what was typed before anything was filled in stays, with its answers
        if filled == now or (text and (not filled or filled[1:] == (None, None))):
            return {self.filled: now}
        prompts = choices.forms_of(run, fact_id)
        chosen = next((prompt for prompt in prompts if form and prompt.text == form), None)
        typed = text and text not in {prompt.text for prompt in prompts}
        another_run = bool(filled) and filled[0] != name
        if typed and another_run and text != filled[2]:  # the visitor's own question stays
            return {self.filled: now, self.answers: cards.NO_ANSWERS}
        stays = chosen is None and typed
        if stays and not another_run:  # it is shown, perhaps with answers
            return {self.filled: now}
        changes = {self.filled: now, self.answers: cards.recorded_answers(run, chosen)}
        # of the same run it is filled in though it is the current prompt: one that was chosen in
        # between, and is on its way to the page, would stay
        if stays or (another_run and text == form):
            return changes
        prompt = gr.Textbox("", placeholder="Type a question") if chosen is None else chosen.text
        return {**changes, self.prompt: prompt, self.gold: "" if chosen is None else chosen.gold}


def build(
    worker: Worker,
    session: Session,
    follower: Follower,
    my_runs: gr.BrowserState,
    tab: gr.Tab,
    brief: gr.HTML,
) -> None:
    """Lays the screen out inside the current tab. my_runs: see `MyRuns.entries`. brief: of
    `outcome.Card`."""
    run_id, follows = follower.run_id, follower.follows
    run, fact, every, yourself, group, form = _lay_out_choices(worker, follows)
    brief.render()
    with gr.Row(equal_height=True):
        with gr.Column(scale=3, min_width=320, elem_id="ways-side"):
            table = dict(
                html_template=every_way.TABLE, js_on_load=html.on_load("ways"), elem_id="every-way"
            )
            ways = gr.HTML(every_way.message_table(every_way.OPENING, every_way.ABOUT), **table)
        with gr.Column(scale=2, min_width=300, elem_id="own-question"):
            notice, texts_of, ask, beside, epoch, answers, copy, notes = _lay_out_question(worker)
    prompt, gold, *_ = texts_of
    default, filled, opened = gr.Textbox(visible="hidden"), gr.State(()), gr.State(0)
    screen = ProbeScreen(group, fact, form, prompt, gold, answers, filled, default)
    last_view, sent, pressed = gr.State(""), *(gr.Textbox(visible="hidden") for _ in range(2))
    last = last_view, sent, gr.JSON(visible=False), pressed
    with gr.Row(elem_classes="folds"):
        with gr.Accordion(MORE_ABOUT, open=False, elem_id="more-fold") as fold:
            further = more.build()
            inputs = group, fact, *texts_of, beside, epoch
            view = link.Parts(*inputs, filled, default, answers, fold, further, *last)
            # listeners of a press are sent one by one, each when the last is answered; those of a
            # changed state all at once. So the question comes first, then everything else together
            chosen, wire_pick = screen.wire(worker, follower, tab, my_runs, view)
            tab.select(lambda times: times + 1, opened, opened, **EACH)
            further.wire(worker, follower, opened, [*texts_of, beside, epoch], fact)
            more.build_kept(worker, follower, opened, answers)
        with gr.Accordion("Many facts, asked in all ways", open=False, elem_id="leaks-fold"):
            own, probed = leaks.build(worker, follower, opened, (group, fact), wire_pick)
        with gr.Accordion("From inside: hidden or gone?", open=False, elem_id="recovery-fold"):
            owned = [own, recovery.build(worker, follower, opened)]
            with gr.Row(visible=False, elem_classes="beside") as instead:
                gr.Markdown("These probes need a run of your own.", elem_id="probe-own-only")
                run_yourself(worker, follows, "probe-own", scale=0, min_width=150)
        pair.build(worker, session, follower, opened)
    link.wire(worker, run_id, view, chosen, copy)
    _wire_asking(worker, follower, screen, view, (ask, every, ways), probed)
    _wire_choices(worker, follower, opened, my_runs, (run, beside, epoch))
    run.input(mine.picked, [run, run_id], follows, **QUIET)
    with gr.Column(visible=False, elem_classes="advanced-only") as home:
        download.build(worker, run_id, follower.another)
    _wire_visible(worker, follower, opened, notes, (yourself, instead, home, notice), owned)
    asks = ask, every, *texts_of, further.draw, further.strength, further.see
    _wire_allowed(worker, follower, opened, asks)


def _lay_out_choices(worker: Worker, follows: list[gr.Component]) -> tuple[gr.Component, ...]:
    """Lays out the choices of run and fact, the button that asks in all ways, the one that runs an
    example again, and under Advanced the group of facts and the way of asking. follows: see
    `run_yourself`. Returns them in this order."""
    # Gradio would refuse a value sent before the choices changed
    listed = {"choices": [], "allow_custom_value": True}
    with gr.Row(elem_id="probe-row"):
        run = gr.Dropdown(**listed, label="Run", min_width=240, scale=3, elem_id="probe-run")
        wide = dict(min_width=260, scale=4, elem_id="fact")
        fact = gr.Dropdown(**listed, label="Fact, rarest first", **wide)
        high = dict(scale=0, min_width=170, elem_classes="tall")
        every = gr.Button("Ask in all ways", variant="primary", elem_id="ask-every-way", **high)
        yourself = run_yourself(worker, follows, "probe-yourself", visible=False, **high)
    with gr.Row(elem_classes="advanced-only"):
        group = gr.Dropdown(leaks.GROUPS, value="forget", label="Group", min_width=150, scale=1)
        form = gr.Dropdown(**listed, label="Way of asking", min_width=220, scale=2, elem_id="form")
    return run, fact, every, yourself, group, form


def _lay_out_question(worker: Worker) -> tuple:
    """Lays out a question of one's own: its texts (prompt, right answer, beginning of the answer,
    earlier turns), the button that asks, the columns beside the two, the epoch, the answers, the
    button that copies a link, and notes. Returns them in this order, after what is said where
    nothing can be asked."""
    notice = gr.Markdown(LOOK_ONLY, visible=False, elem_id="asks-nothing")
    prompt = gr.Textbox(label="Your own question", lines=1, elem_id="prompt")
    with gr.Row(elem_classes="beside"):
        gold = gr.Textbox(label="Right answer", scale=2, min_width=150, elem_id="gold")
        ask = gr.Button(
            "Ask both models", scale=0, min_width=180, elem_classes="tall", elem_id="ask"
        )
    if worker.is_lent:
        gr.Markdown(cost_of_asking(ASK_SECONDS))
    with gr.Accordion(MORE_ASKING, open=False, elem_id="more-asking"):
        begun = gr.Textbox(label="Begin the answer with", lines=1, elem_id="begun")
        words = dict(label="Earlier turns, one a line", info=EARLIER_ABOUT)
        earlier = gr.Textbox(**words, lines=2, elem_id="earlier")
        several = dict(multiselect=True, max_choices=MOST_BESIDE, value=[])
        beside = gr.Dropdown([], label="Further models", elem_id="beside-two", **several)
        one = dict(choices=[(texts.ITS_RESULT, "")], value="", elem_id="probe-epoch")
        epoch = gr.Dropdown(label="Epoch to ask", allow_custom_value=True, **one)
    answers = html.drawn(cards.OPENING, "strips", "answers", "strip")
    with gr.Row(elem_classes=["beside", "line"]):
        small = dict(size="sm", scale=0, min_width=120, elem_id="copy-question")
        copy = gr.Button("Copy link", **small)
        notes = html.lines("probe-notes", min_width=180)
    return notice, (prompt, gold, begun, earlier), ask, beside, epoch, answers, copy, notes


def _wire_choices(
    worker: Worker,
    follower: Follower,
    opened: gr.State,
    my_runs: gr.BrowserState,
    offered: tuple[gr.Dropdown, gr.Dropdown, gr.Dropdown],
) -> None:
    """Wires what can be chosen: the run, the columns beside it and its epoch. opened: changes
    whenever the tab is opened."""
    run_id, another = follower.run_id, follower.another.change
    run, beside, epoch = offered
    state = follower.phase.change  # a run that goes on has another result, and further epochs
    looked = [opened.change, another, my_runs.change, state]
    gr.on(looked, partial(choices.run_choices, worker), [my_runs, run_id], run, **EACH_IN_TURN)
    epochs = partial(choices.epoch_choices, worker)
    gr.on([opened.change, another, state], epochs, [run_id, epoch], epoch, **EACH_IN_TURN)
    inputs = [my_runs, run_id, beside]
    gr.on(looked, partial(choices.column_choices, worker), inputs, beside, **EACH_IN_TURN)


def _wire_visible(
    worker: Worker,
    follower: Follower,
    opened: gr.State,
    notes: gr.HTML,
    places: tuple[gr.Component, ...],
    owned: list[gr.Component],
) -> None:
    """Wires what is visible of a run. notes: about it. places: what an example has, what stands
    instead of an own run's parts, the report, and what is said where nothing can be asked. owned:
    what only an own run has."""
    yourself, instead, home, notice = places

    def looked_at(name: str) -> dict:
        run, own = probed_run(worker, name), known_run(worker, name) is not None
        there = {yourself: example_of(run.id) is not None, instead: not own}
        there |= dict.fromkeys(owned, own)
        # for the page's run, not for the example shown without one
        there[home] = shown_run(worker, name) is not None
        there[notice] = linked(name, worker.root) is not None
        updates = {place: gr.update(visible=visible) for place, visible in there.items()}
        return updates | {notes: cards.notes_of(run)}

    changed = [notes, *places, *owned]
    when = [opened.change, follower.another.change]
    gr.on(when, looked_at, follower.run_id, changed, **EACH_IN_TURN)


def _wire_allowed(
    worker: Worker, follower: Follower, opened: gr.State, asks: tuple[gr.Component, ...]
) -> None:
    """Wires what cannot be used where the run was opened by a read-only link. asks: whatever asks a
    model, and what it asks."""

    def allowed(name: str) -> dict:
        may = linked(name, worker.root) is None
        return {one: gr.update(interactive=may) for one in asks}

    when = [opened.change, follower.another.change]
    gr.on(when, allowed, follower.run_id, list(asks), **EACH_IN_TURN)


def _wire_asking(
    worker: Worker,
    follower: Follower,
    screen: ProbeScreen,
    view: link.Parts,
    pressed: tuple[gr.Button, gr.Button, gr.HTML],
    probed: Callable,
) -> None:
    """Wires the questions. view: all parts of a question. pressed: the button of one prompt, that
    of all forms, and their table, whose rows can be put into the prompt. probed: wires what follows
    after all facts were asked."""
    run_id, fact, prompt = follower.run_id, screen.fact, screen.prompt
    (ask, every, ways), beside, epoch = pressed, view.beside, view.epoch
    inputs = [run_id, prompt, screen.gold, view.begun, beside, view.earlier, epoch]
    events = [ask.click, prompt.submit, screen.gold.submit, view.begun.submit]
    # a pending change of the fact runs before the question: later, it would remove the answers
    own, all_forms = (
        gr.on(trigger, lambda: ("", ""), None, [screen.default, view.pressed], **EACH | BY_TURNS)
        for trigger in (events, every.click)
    )
    # of questions asked meanwhile, only the last is answered
    newest = {"trigger_mode": "always_last", "api_visibility": "private"}
    asked_one = own.then(partial(ask_both, worker), inputs, screen.answers, **newest)
    named = "(...question) => adapop.questionLink(null, ...question)"
    own.then(None, view.question, None, js=named, **QUIET)
    of_fact, in_columns = [run_id, fact], [run_id, fact, beside, epoch]
    _wire_ways(worker, follower, in_columns, ways, probed)
    every_form = partial(ask_every_way, worker)
    asked_all = all_forms.then(every_form, in_columns, ways, **newest)

    # gradio gives no event to a partial
    def choose(name: str, fact_id: str | None, view_values: object, event: gr.EventData):
        return screen.fill_way(worker, view, name, fact_id, view_values, event)

    async def from_here(name: str, others: object, at: object, event: gr.EventData):
        async for answers in go_on(worker, name, others, at, event):
            yield answers, link.pressed_of(answers)

    gone_on = [screen.answers, view.pressed]
    from_token = screen.answers.select(from_here, [run_id, beside, epoch], gone_on, **QUIET)
    # an answer of the run before it would stand beside another run's name
    at_work = [asked_one, asked_all, from_token]
    follower.another.change(None, None, None, cancels=at_work, **QUIET)
    from_token.then(None, view.question, None, js=named, **QUIET)
    chosen = ways.select(
        choose,
        [*of_fact, view.wanted],
        [prompt, screen.gold, screen.answers, screen.form, screen.filled, view.sent],
        js="adapop.questionSent",
        **EACH | BY_TURNS,
    )
    view.keep_typed(chosen.then)
    chosen.then(None, None, None, js=TO_PROMPT, **QUIET)


def _wire_ways(
    worker: Worker, follower: Follower, in_columns: list, ways: gr.HTML, probed: Callable
) -> None:
    """Wires the table of all forms. in_columns: run, fact, columns beside the two, and epoch.
    probed: as for `_wire_asking`."""
    _, fact, beside, epoch = in_columns
    another = [fact.change, beside.change, epoch.change, follower.another.change]
    in_turn = EACH_IN_TURN | {"concurrency_id": "ways"}  # all that draws the table
    look = dict(fn=partial(ways_of, worker), inputs=in_columns, outputs=ways, **in_turn)
    # until it is answered, the replies of the fact before are faint
    looked = gr.on(another, js="adapop.waysSent", **look)
    looked.then(None, None, None, js="adapop.waysCame", **QUIET)
    probed(**look)

    def of_result(phase: tuple, *columns: object) -> dict:
        """The table anew once the run is over: what it shows is of an earlier epoch."""
        return ways_of(worker, *columns) if phase[1] in ("done", "stopped") else gr.skip()

    gr.on(follower.phase.change, of_result, [follower.phase, *in_columns], ways, **in_turn)


def run_yourself(worker: Worker, follows: list[gr.Component], name: str, **options) -> gr.Button:
    """Lays out the button that starts the probed run again as the visitor's own. follows: the
    page's run, the number of its events seen, and the timer. name: of the element."""
    button = gr.Button(texts.RUN_YOURSELF, elem_id=name, **options)

    def again(name: str):
        return run_again(worker, probed_run(worker, name))

    begun = button.click(again, follows[0], follows, **QUIET)
    begun.success(None, None, None, js="() => adapop.toTab('Run')", **QUIET)
    return button
