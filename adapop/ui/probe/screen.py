"""Screen 4, Probe: one prompt to both models, side by side, with the right answer's rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Fills the question in. run_id: the page's run. my_runs: see `MyRuns.entries`. parts: of the
    question, whose updates each function below returns."""

    worker: Worker
    run_id: gr.BrowserState
    my_runs: gr.BrowserState
    parts: link.Parts

    def wire(self, follower: Follower, tab: gr.Tab, ways: gr.HTML) -> object:
        """Wires the choices of fact, form and row of the table of forms, which fill in the prompt.
        Returns the event that fills in the first fact, or what the address says."""
        parts = self.parts
        # not `change`: what an event has filled in is not the visitor's choice
        placed = partial(gr.on, [tab.select, follower.another.change])
        chosen = self._wire_filling(placed, self.choose, self._shown, "adapop.questionRead")
        self.wire_pick(parts.fact.input)
        self.wire_pick(parts.group.input, by="group")
        of_form = [parts.fact, parts.form, parts.prompt, parts.filled]
        self._wire_filling(parts.form.input, self.fill_form, of_form)
        row = self._wire_filling(ways.select, self.fill_way, [parts.fact])
        row.then(None, None, None, js=TO_PROMPT, **QUIET)
        return chosen

    def wire_pick(self, picked: Callable, by: str = "fact") -> None:
        """Wires an event by which the visitor picks group and fact. picked: wires it. by: see
        `choose`."""
        parts = self.parts
        filled = self._wire_filling(picked, partial(self.choose, by=by), self._shown)
        inputs = [parts.fact, parts.prompt, parts.beside, parts.epoch]
        filled.then(None, inputs, None, js="adapop.factPicked", **QUIET)

    @property
    def _shown(self) -> list[gr.Component]:
        """What `choose` is told of the page."""
        parts = self.parts
        inputs = [parts.group, parts.fact, parts.default, parts.prompt, parts.filled]
        return [*inputs, self.my_runs, parts.seen]

    def _wire_filling(
        self, begins: Callable, fill: Callable, inputs: Sequence, js: str = "adapop.questionSent"
    ) -> object:
        """Wires an event that fills in. begins: wires it. js: gives it `Parts.wanted` with the time
        of its sending as the last input; text that was typed between that and the answer is put
        back."""
        parts = self.parts
        inputs, outputs = [self.run_id, *inputs, parts.wanted], parts.all
        filled = begins(fill, inputs, outputs, js=js, **EACH | BY_TURNS)
        sent = [parts.sent, *parts.texts]
        filled.then(None, sent, parts.texts, js="adapop.typedAfter", **QUIET)
        return filled

    def choose(
        self,
        name: str,
        group: str,
        fact_id: str | None,
        last: str | None,
        text: str,
        filled: tuple,
        stored: object,
        last_view: str,
        values: object,
        by: str = "",
    ) -> dict:
        """Updates when the run or the group of facts changed, or the tab was opened: what the
        address says, or fact, form and prompt. In one event: a question asked in between would be
        replaced. last: the fact selected by default; stored: the kept runs; last_view, values:
        `Parts.seen` and `Parts.wanted`. by: what the visitor chose, "fact" (or typed its name) or
        "group"; empty for none."""
        worker, parts, picked = self.worker, self.parts, by == "fact"
        linked = {} if by else link.followed(worker, name, stored, values, last_view, parts)
        group, fact_id = linked.get(parts.group, group), linked.get(parts.fact, fact_id)
        text, filled = linked.get(parts.prompt, text), linked.get(parts.filled, filled)
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
        changes = {parts.group: group, parts.default: default}
        # to leave the fact's box picks nothing anew
        if not picked or filled[:2] != (name, selected):
            changes[parts.wanted] = None
        changes |= filling  # a link says what is wanted
        if not linked and filled and filled[0] != name:
            changes[parts.epoch] = ""  # an epoch was chosen for another run
        return self.completed(name, changes | {parts.fact: facts, parts.form: forms}, values)

    def fill_form(
        self,
        name: str,
        fact_id: str | None,
        form: str | None,
        text: str,
        filled: tuple,
        values: object,
    ) -> dict:
        """Updates for another form: see `fill`."""
        filling = self.fill(probed_run(self.worker, name), name, fact_id, form, text, filled)
        return self.completed(name, filling, values)

    def fill_way(self, name: str, fact_id: str | None, values: object, event: gr.EventData) -> dict:
        """Updates for the chosen row of the table of forms; none for a row that it has not."""
        run, parts = probed_run(self.worker, name), self.parts
        fact_id = choices.fact_of(run, fact_id)
        chosen = way_chosen(run, fact_id, event)
        if chosen is None:
            return self.completed(name, {}, values)
        # a chain of clues is no form
        form = chosen.text if chosen in choices.forms_of(run, fact_id) else ""
        changes = {parts.form: form, parts.filled: (name, fact_id, form)}
        changes |= {parts.prompt: chosen.text, parts.gold: chosen.gold}
        changes[parts.answers] = cards.recorded_answers(run, chosen)
        return self.completed(name, changes, values)

    def completed(self, name: str, changes: dict, values: object) -> dict:
        """The updates with the time at which the page sent their event. By a read-only link, what
        was not recorded is not to be asked either."""
        answers = self.parts.answers
        waits = changes.get(answers) in (cards.NO_ANSWERS, {"empty": link.ASKING})
        if waits and linked(name, self.worker.root):
            changes = changes | {answers: {"empty": link.NOT_RECORDED}}
        return {**changes, self.parts.sent: link.sent_at(values)}

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
        parts, now = self.parts, (name, fact_id, form)
        # what was typed before anything was filled in stays, with its answers
        if filled == now or (text and (not filled or filled[1:] == (None, None))):
            return {parts.filled: now}
        prompts = choices.forms_of(run, fact_id)
        chosen = next((prompt for prompt in prompts if prompt.text == form), None)
        typed = text and text not in {prompt.text for prompt in prompts}
        another_run = bool(filled) and filled[0] != name
        # the visitor's own question stays
        if typed and another_run and (chosen is None or text != filled[2]):
            return {parts.filled: now, parts.answers: cards.NO_ANSWERS}
        if typed and chosen is None:  # it is shown, perhaps with answers
            return {parts.filled: now}
        changes = {parts.filled: now, parts.answers: cards.recorded_answers(run, chosen)}
        # of the same run it is filled in though it is the current prompt: one that was chosen in
        # between, and is on its way to the page, would stay
        if another_run and text == form:
            return changes
        prompt = gr.Textbox("", placeholder="Type a question") if chosen is None else chosen.text
        return {**changes, parts.prompt: prompt, parts.gold: "" if chosen is None else chosen.gold}


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
    run, every, yourself, choice = _lay_out_choices(worker, follows)
    brief.render()
    with gr.Row(equal_height=True):
        with gr.Column(scale=3, min_width=320, elem_id="ways-side"):
            table = dict(
                html_template=every_way.TABLE, js_on_load=html.on_load("ways"), elem_id="every-way"
            )
            ways = gr.HTML(every_way.message_table(every_way.OPENING, every_way.ABOUT), **table)
        with gr.Column(scale=2, min_width=300, elem_id="own-question"):
            notice, ask, copy, notes, question = _lay_out_question(worker)
    opened = gr.State(0)
    with gr.Row(elem_classes="folds"):
        with gr.Accordion(MORE_ABOUT, open=False, elem_id="more-fold") as fold:
            asked = [question[name] for name in ("prompt", "gold", "begun", "earlier")]
            columns = question["beside"], question["epoch"]
            further = more.build(worker, follower, opened, choice["fact"], asked, columns)
            parts = link.Parts(**choice, **question, fold=fold, more=further)
            screen = ProbeScreen(worker, run_id, my_runs, parts)
            # listeners of a press are sent one by one, each when the last is answered; those of a
            # changed state all at once. So the question comes first, then everything else together
            chosen = screen.wire(follower, tab, ways)
            tab.select(lambda times: times + 1, opened, opened, **EACH)
            more.build_kept(worker, follower, opened, parts.answers)
        with gr.Accordion("Many facts, asked in all ways", open=False, elem_id="leaks-fold"):
            picked = parts.group, parts.fact
            own, probed = leaks.build(worker, follower, opened, picked, screen.wire_pick)
        with gr.Accordion("From inside: hidden or gone?", open=False, elem_id="recovery-fold"):
            owned = [own, recovery.build(worker, follower, opened)]
            with gr.Row(visible=False, elem_classes="beside") as instead:
                gr.Markdown("These probes need a run of your own.", elem_id="probe-own-only")
                run_yourself(worker, follows, "probe-own", scale=0, min_width=150)
        pair.build(worker, session, follower, opened)
    link.wire(worker, run_id, parts, chosen, copy)
    _wire_asking(screen, follower, (ask, every, ways), probed)
    _wire_choices(screen, follower, opened, run)
    run.input(mine.picked, [run, run_id], follows, **QUIET)
    with gr.Column(visible=False, elem_classes="advanced-only") as home:
        download.build(worker, run_id, follower.another)
    asks = [ask, every, *parts.texts, further.draw, further.strength, further.see]
    _wire_run(worker, follower, opened, notes, (yourself, instead, home, notice), owned, asks)


def _lay_out_choices(worker: Worker, follows: list[gr.Component]) -> tuple:
    """Lays out the choice of a run, the button that asks in all ways, the one that runs an example
    again, and by name those of fact, group and form, the last two under Advanced. follows: see
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
    return run, every, yourself, dict(fact=fact, group=group, form=form)


def _lay_out_question(worker: Worker) -> tuple:
    """Lays out a question of one's own. Returns what is said where nothing can be asked, the button
    that asks, the one that copies a link, notes, and by name the rest of `link.Parts`."""
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
    question = dict(prompt=prompt, gold=gold, begun=begun, earlier=earlier, beside=beside)
    question |= dict(epoch=epoch, answers=answers, **link.Parts.hidden())
    return notice, ask, copy, notes, question


def _wire_choices(
    screen: ProbeScreen, follower: Follower, opened: gr.State, run: gr.Dropdown
) -> None:
    """Wires what can be chosen: the run, the columns beside it and its epoch. opened: changes
    whenever the tab is opened."""
    worker, my_runs = screen.worker, screen.my_runs
    beside, epoch = screen.parts.beside, screen.parts.epoch

    def offered(name: str, stored: object, others: object, at: object) -> dict:
        return {
            run: choices.run_choices(worker, stored, name),
            beside: choices.column_choices(worker, stored, name, others),
            epoch: choices.epoch_choices(worker, name, at),
        }

    # a run that goes on has another result, and further epochs
    of_run = [opened.change, follower.another.change, follower.phase.change]
    inputs = [screen.run_id, my_runs, beside, epoch]
    gr.on([*of_run, my_runs.change], offered, inputs, [run, beside, epoch], **EACH_IN_TURN)


def _wire_run(
    worker: Worker,
    follower: Follower,
    opened: gr.State,
    notes: gr.HTML,
    places: tuple[gr.Component, ...],
    owned: list[gr.Component],
    asks: list[gr.Component],
) -> None:
    """Wires what a run decides. notes: about it. places: what an example has, what stands instead
    of an own run's parts, the report, and what is said where nothing can be asked. owned: what only
    an own run has. asks: whatever asks a model, and what it asks: not by a read-only link."""
    yourself, instead, home, notice = places

    def looked_at(name: str) -> dict:
        run, own = probed_run(worker, name), known_run(worker, name) is not None
        by_link = linked(name, worker.root) is not None
        visible = {yourself: example_of(run.id) is not None, instead: not own, notice: by_link}
        visible |= dict.fromkeys(owned, own)
        # for the page's run, not for the example shown without one
        visible[home] = shown_run(worker, name) is not None
        updates = {place: gr.update(visible=there) for place, there in visible.items()}
        updates |= {one: gr.update(interactive=not by_link) for one in asks}
        return updates | {notes: cards.notes_of(run)}

    changed = [notes, *places, *owned, *asks]
    when = [opened.change, follower.another.change]
    gr.on(when, looked_at, follower.run_id, changed, **EACH_IN_TURN)


def _wire_asking(
    screen: ProbeScreen,
    follower: Follower,
    pressed: tuple[gr.Button, gr.Button, gr.HTML],
    probed: Callable,
) -> None:
    """Wires the questions. pressed: the button of one prompt, that of all forms, and their table.
    probed: wires what follows after all facts were asked."""
    worker, run_id, parts = screen.worker, screen.run_id, screen.parts
    ask, every, ways = pressed
    events = [ask.click, parts.prompt.submit, parts.gold.submit, parts.begun.submit]
    # a pending change of the fact runs before the question: later, it would remove the answers
    own, all_forms = (
        gr.on(trigger, lambda: ("", ""), None, [parts.default, parts.pressed], **EACH | BY_TURNS)
        for trigger in (events, every.click)
    )
    # of questions asked meanwhile, only the last is answered
    newest = {"trigger_mode": "always_last", "api_visibility": "private"}
    inputs = [run_id, *parts.inputs]
    asked_one = own.then(partial(ask_both, worker), inputs, parts.answers, **newest)
    in_columns = [run_id, parts.fact, parts.beside, parts.epoch]
    asked_all = all_forms.then(partial(ask_every_way, worker), in_columns, ways, **newest)
    _wire_ways(worker, follower, in_columns, ways, probed)

    # gradio gives no event to a partial
    async def from_here(name: str, others: object, at: object, event: gr.EventData):
        async for answers in go_on(worker, name, others, at, event):
            yield answers, link.pressed_of(answers)

    inputs, gone_on = [run_id, parts.beside, parts.epoch], [parts.answers, parts.pressed]
    from_token = parts.answers.select(from_here, inputs, gone_on, **QUIET)
    # an answer of the run before it would stand beside another run's name
    at_work = [asked_one, asked_all, from_token]
    follower.another.change(None, None, None, cancels=at_work, **QUIET)
    named = "(...question) => adapop.questionLink(null, ...question)"
    for asked in (own, from_token):
        asked.then(None, parts.question, None, js=named, **QUIET)


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
