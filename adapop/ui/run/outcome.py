"""The result of a finished run, in words and colour, with the button for the next step; and a note
if the results belong to another set than the chosen one."""

from dataclasses import dataclass
from functools import partial

import gradio as gr

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, RunError, number_of
from adapop.facts.fact import SANDBOX, FactSet
from adapop.probes.prompts import DIRECT
from adapop.report.contestants import lead_of
from adapop.report.record import name_of, title_of
from adapop.report.table import percent, signed
from adapop.runs.amount import ENOUGH_STEPS, total_steps, with_steps
from adapop.runs.examples import example_of
from adapop.runs.result import (
    DAMAGED,
    FORGOT,
    NOTHING,
    PARTLY,
    SOME_WAYS,
    UNKNOWN,
    Result,
    diverged,
    result_of,
    retry,
)
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import may_control, refusing, shown_run
from adapop.ui.parts import html
from adapop.ui.run.configuration import check_public
from adapop.ui.run.launch import following
from adapop.ui.session import Session
from adapop.ui.wiring import EACH, QUIET, Components

RESULT_TITLES = {
    "forgot": "Forgot",
    "half": "At least half forgotten",
    "some_ways": "Still known in some ways of asking",
    "partly": "Partly forgotten",
    "nothing": "Nothing happened",
    "damaged": "Damaged",
    "unknown": "Nothing to forget",
}
RESULTS = {
    "forgot": "{after} are still answered{asked}, {before} were before.",
    "nothing": (
        "{steps} at rate {rate} changed hardly any answer: {after} answered, {before} before."
    ),
    "damaged": "Of {group} only {now} are still answered, {was} before.",
    "unknown": (
        "The original model knew too few of these facts to tell: it answered {before} of them. "
        "Teach it these facts first, choose facts that it knows (on Facts), or choose another "
        "model."
    ),
}
RESULT_ALIKE = "The unlearned model still answers {after} of the facts, the original {before}."
RESULT_DIVERGED = "At rate {rate} training failed: its numbers were no longer finite."
RESULT_GAP = "Gap: {gap}."
RESULT_COST = "Held-out facts answered: {after}, {before} before."
RESULT_GAP_TRAINED = (
    "Gap as trained: {gap}. Without rewordings (see Facts), the gap in wordings that were not "
    "trained cannot be measured."
)
RESULT_KEPT = {
    "best_kept": (
        "Epoch {epoch} of {of} is kept: of the epochs that keep 95% of the retain set, it forgot "
        "the most facts."
    ),
    "most_kept": (
        "Epoch {epoch} of {of} is kept, because it keeps the most of the retain set. No epoch "
        "keeps 95% of it."
    ),
}
RESULT_OVERSHOT = (
    "Epoch {epoch} of {of} is kept, although it changed nothing ({before} answered before, {after} "
    "now): later epochs lost too much of the retain set or forgot no more."
)
RESULT_FEW = "The original answered less than half of the forget set; the rest cannot be forgotten."
RESULT_GROUPS = {
    "utility": "other questions",
    "retain": "the retain set",
    "holdout": "the held-out facts",
}
ASKED_FORMS = {
    "direct": " as trained",
    "reworded": " when asked in other words",
}
BRIEF_KINDS = {FORGOT: "calm", DAMAGED: "bad"}  # of the line on Probe; of other results "warn"
TIMES = {
    "2": "Twice",
    "3": "Three times",
    "5": "Five times",
    "10": "Ten times",
}

FEW = 0.5  # share of facts known before; below, the card says that most could not be forgotten
ALMOST_NONE = 0.1  # share of the facts still answered; above, the card says how much is forgotten
CARD, ASIDE = html.template("result"), html.template("aside")


@dataclass(frozen=True)
class Card(Components):
    """The components. note: see `set_note`. card: the result in words. next_run: starts a run that
    may do better. probe: opens Probe to check the result. brief: a pair's result in one line, which
    Probe places, as pairs are opened there."""

    note: gr.HTML
    card: gr.HTML
    next_run: gr.Button
    probe: gr.Button
    brief: gr.HTML

    def updates(self, run: Run | None, owned: bool) -> dict:
        """Updates that show a run's result, if any. owned: whether the next may be started."""
        hidden = {self.next_run: gr.Button(visible=False), self.probe: gr.Button(visible=False)}
        hidden[self.brief] = html.listed([])
        if run is not None and diverged(run):
            again = gr.Button(next_label(run, retry(run, None)), visible=owned)
            about = RESULT_DIVERGED.format(rate=f"{run.config.learning_rate:g}")
            damaged = {"kind": DAMAGED, "title": RESULT_TITLES[DAMAGED], "about": about}
            return {**hidden, self.card: html.values(damaged), self.next_run: again}
        result = result_of(run) if run is not None else None
        if run is None or result is None:
            return {**hidden, self.card: {"kind": ""}}
        again = retry(run, result) if owned else None
        label = next_label(run, again) if again else ""
        return {
            self.brief: brief_of(run, result),
            self.card: card_of(run, result),
            self.next_run: gr.Button(label, visible=again is not None),
            self.probe: gr.Button(visible=result.kind not in (NOTHING, DAMAGED, UNKNOWN)),
        }

    def wire(
        self, worker: Worker, session: Session, inputs: list, another: gr.State, target: list
    ) -> None:
        """Wires the buttons. inputs, target: of `start_next`. another: see `Follower`."""
        changed = [another.change, session.facts.change]
        known = [inputs[0], session.facts, session.stored]
        gr.on(changed, partial(set_note, worker), known, self.note, **EACH)
        begin = partial(start_next, worker)
        started = self.next_run.click(begin, inputs, target, api_visibility="private")
        started.success(None, None, None, js="adapop.toCharts", **QUIET)
        self.probe.click(None, None, None, js="() => adapop.toTab('Probe')", **QUIET)


def build() -> Card:
    """Lays the card out, empty until a run ends."""
    note = gr.HTML({"name": ""}, html_template=ASIDE, elem_id="set-aside")
    with gr.Row(elem_id="result-row", elem_classes="beside"):
        card = gr.HTML({"kind": ""}, html_template=CARD, elem_id="result", min_width=300, scale=5)
        unseen = dict(visible=False, scale=0, min_width=190)
        next_run = gr.Button("", variant="primary", elem_id="mend", **unseen)
        probe = gr.Button("Probe it", elem_id="to-probe", **unseen)
    return Card(note, card, next_run, probe, html.lines("pair-verdict", render=False))


def brief_of(run: Run, result: Result) -> dict:
    """A pair's result in one line, as values of `LINES`; no line of any other run."""
    lines = [f"{_title(run, result)}. {_said(run, result)}"] if run.config.unlearned else []
    return html.listed(lines, BRIEF_KINDS.get(result.kind, "warn"))


def card_of(run: Run, result: Result) -> dict:
    """A run's result, as values of the card."""
    about = _said(run, result)
    if result.kind == DAMAGED and not result.unlearned:
        about += f" {result.brief.text()}"
    if result.best and not result.overshot:
        about += " " + RESULT_KEPT[result.best].format(epoch=result.epoch, of=result.of)
    if result.kind in (FORGOT, SOME_WAYS, PARTLY):
        gap = run.measured().gap
        trained = lead_of([run.measured()], DIRECT) if result.form == DIRECT else None
        if gap:
            about += f" {RESULT_GAP.format(gap=signed(gap, named=True))}"
        elif trained:
            about += f" {RESULT_GAP_TRAINED.format(gap=signed(trained, named=True))}"
        else:
            about += " No gap: it needs both rare and popular facts."
        ends = {"before": run.measured(before=True), "after": run.measured()}
        held = {name: percent(one.recall("holdout")) for name, one in ends.items() if one}
        if all(held.values()):
            about += f" {RESULT_COST.format(**held)}"
        about += f" {RESULT_FEW}" if result.before < FEW else ""
    about = _as_asked(run, about)
    return html.values({"kind": _kind(result), "title": _title(run, result), "about": about})


def _said(run: Run, result: Result) -> str:
    """What a result is, in a sentence or two."""
    values = {"steps": number_of(result.steps, "step"), "rate": f"{result.rate:g}"}
    values |= {"before": percent(result.before), "after": percent(result.after)}
    values |= {"asked": ASKED_FORMS[result.form], "epoch": result.epoch, "of": result.of}
    if result.lost:
        group, was, now = result.lost
        values |= {"group": RESULT_GROUPS[group], "was": percent(was), "now": percent(now)}
    if result.kind in (SOME_WAYS, PARTLY):
        about = result.brief.text()
    else:
        about = RESULT_OVERSHOT if result.overshot else RESULTS[result.kind]
        alike = run.config.unlearned and result.kind == NOTHING
        about = (RESULT_ALIKE if alike else about).format(**values)
    return _as_asked(run, about)


def _as_asked(run: Run, about: str) -> str:
    if not run.config.unlearned:
        return about
    about = about.replace(f"asked {texts.AS_TRAINED}", texts.ASKED_DIRECTLY)
    return about.replace(texts.AS_TRAINED, texts.ASKED_DIRECTLY)


def _kind(result: Result) -> str:
    return "half" if result.kind == FORGOT and result.after > ALMOST_NONE else result.kind


def _title(run: Run, result: Result) -> str:
    """Whose result it is, as the form may hold other settings, and its name."""
    whose = title_of(run.config.method, run.config.preset)
    whose += f" on {name_of(run.config.model)}" if run.config.model != SANDBOX else ""
    if run.config.unlearned:
        whose = f"{name_of(run.config.unlearned)} beside {name_of(run.config.model)}"
    return f"{whose}: {RESULT_TITLES[_kind(result)]}"


def next_label(run: Run, again: RunConfig) -> str:
    """The label of the button for the next run: its changed setting."""
    if again.start != run.config.start:
        return "Teach them first"
    rows, before = len(run.facts.forget), total_steps(len(run.facts.forget), run.config)
    if again.learning_rate != run.config.learning_rate:
        return f"Try rate {again.learning_rate:g}"
    times = round(total_steps(rows, again) / before)
    return f"{TIMES.get(str(times), f'{times} times')} the steps"


def enough_steps(facts: FactSet | None, model: str, method: str, preset: str, epochs, batch, rate):
    """Epochs and batch that give a small set enough steps, and the unchanged rate."""
    if facts is None:
        return gr.skip()
    amount = dict(epochs=int(epochs), batch=int(batch)) | ({"learning_rate": rate} if rate else {})
    with refusing():
        config = make_config(method, preset, model=model, **amount)
    enough = with_steps(len(facts.forget), config, ENOUGH_STEPS)
    return enough.epochs, enough.batch, rate


def start_next(worker: Worker, name: str, *form: str):
    """Starts the next run on the same facts as the page's run. form: model, method, preset. Returns
    its id, the number of its events seen, the timer, and the changed settings, if they are of the
    form's method. Raises gr.Error: there is none."""
    run = shown_run(worker, name)
    with refusing():
        if run is None or not may_control(worker, name):
            raise RunError("There is no run of yours to try again.", "Press Start.")
        result = result_of(run)
        again = retry(run, result) if result or diverged(run) else None
        if again is None:
            message = "There is nothing to fix in this run."
            raise RunError(message, "Change a setting, and press Start.")
        new = worker.submit(again, run.given)
    amount = again.epochs, again.batch, again.learning_rate
    same = form == (again.model, again.method, again.preset)
    return *following(new.id), *(amount if same else [gr.skip()] * 3)


def run_again(worker: Worker, run: Run):
    """Starts a run of somebody else, or an example, as the visitor's own. Returns id, events seen,
    running timer. Raises gr.Error: it may not be started, or is a pair, whose models are others'
    files."""
    with refusing():
        if run.config.unlearned:
            message = "Both models of this pair were made elsewhere: there is nothing to run."
            raise RunError(message, "Whoever has their files can open them as a pair.")
        check_public({"model": run.config.model})
        new = worker.submit(run.config, run.given)
    return following(new.id)


def set_note(worker: Worker, name: str, facts: FactSet | None, stored: object) -> dict:
    """A note, with both names, if the page's own run forgot another set than the chosen one.
    stored: `Session.stored`, empty where none was chosen yet, as where a link is opened."""
    run = shown_run(worker, name)
    unknown = run is None or facts is None or not stored
    if unknown or example_of(name) or not may_control(worker, name):
        return {"name": ""}
    try:
        about, given = run.about, run.given
    except AdaPopError:  # the run strip reports a damaged run
        return {"name": ""}
    then, now = ({(fact.question, fact.answer) for fact in of.forget} for of in (given, facts))
    if about.facts == facts.name and then <= now:
        return {"name": ""}
    return html.values({"name": about.facts, "now": facts.name})
