"""Screen 4, Probe: both models, one prompt, side by side, with where the right answer stands in each."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import gradio as gr

from adapop.facts.fact import FACT_GROUPS, Fact
from adapop.limits import PROMPT
from adapop.paths import SHIPPED
from adapop.probes.attacks import attack_prompts
from adapop.probes.prompts import DIRECT, REWORDED, Prompt, direct
from adapop.probes.rewordings import reworded
from adapop.probes.verdict import verdict
from adapop.report.record import described
from adapop.runs.examples import COMMAND, example_of
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import ASK_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import probed_run, refusing, run_to_question
from adapop.ui.parts import download, html
from adapop.ui.probe import leaks, recovery
from adapop.ui.wiring import EACH, QUIET, over

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

NO_ANSWERS = html.values({"empty": texts.PROBE_EMPTY})
TO_RUN = "() => [...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent.includes('Run'))?.click()"
WORD, BORDER = re.compile(r"\w+"), re.compile(r"(\W+)")


@dataclass(frozen=True)
class ProbeScreen:
    """The components of one question. group, fact, form: which one. prompt, gold: the question and its answer. answers:
    of both models. filled: (run, fact, form) that the prompt was filled in for; what the visitor typed since stays."""

    group: gr.Dropdown
    fact: gr.Dropdown
    form: gr.Dropdown
    prompt: gr.Textbox
    gold: gr.Textbox
    answers: gr.HTML
    filled: gr.State

    def wire(self, worker: Worker, run_id: gr.BrowserState, tab: gr.Tab) -> None:
        """Wires the choice of a fact and of a form, which fill the prompt in."""

        def fill(name: str, *values):
            return self.fill(probed_run(worker, name), name, *values)

        for event in (tab.select, self.group.change):
            event(partial(fact_choices, worker), [run_id, self.group, self.fact], self.fact, **QUIET)
        ways = partial(form_choices, worker)
        self.fact.change(ways, [run_id, self.fact, self.prompt, self.filled], self.form, **QUIET)
        asking = [run_id, self.fact, self.form, self.prompt, self.filled]
        self.form.change(fill, asking, [self.prompt, self.gold, self.answers, self.filled], **QUIET)
        # what another run answered must not stand here
        run_id.change(
            lambda name, filled: NO_ANSWERS if filled and filled[0] != name else gr.skip(),
            [run_id, self.filled],
            self.answers,
            **EACH,
        )

    def fill(self, run: Run | None, name: str, wanted: str | None, form: str, text: str, filled: tuple) -> dict:
        """Updates for another fact or form: its prompt and right answer, and no answers, which were to another
        question. form: the prompt that was chosen, empty for one's own. text: what the prompt is now."""
        now = name, wanted, form
        if filled == now:
            return gr.skip()
        prompts = forms_of(run, wanted)
        chosen = next((prompt for prompt in prompts if form and prompt.text == form), None)
        typed = text and text not in {prompt.text for prompt in prompts}
        if text == form or (chosen is None and typed):  # it is in the box already, perhaps with its answers below
            return {self.filled: now}
        prompt = gr.Textbox("", placeholder="Type a question") if chosen is None else chosen.text
        gold = "" if chosen is None else chosen.gold
        return {self.prompt: prompt, self.gold: gold, self.answers: NO_ANSWERS, self.filled: now}


def build(worker: Worker, run_id: gr.BrowserState, tab: gr.Tab) -> ProbeScreen:
    """Lays the screen out inside the current tab."""
    gr.Markdown(texts.PROBE_ABOUT)
    with gr.Row(visible=False) as example_row:
        recorded = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="probe-recorded", scale=6)
        yourself = gr.Button(texts.RUN_YOURSELF, min_width=140, scale=1, elem_id="probe-yourself")
        yourself.click(None, None, None, js=TO_RUN, **QUIET)
    with gr.Row():
        group = gr.Dropdown(leaks.GROUPS, value="forget", label="From", min_width=150, scale=1)
        fact = gr.Dropdown([], label="Fact, rarest first", min_width=260, scale=3, elem_id="fact")
        form = gr.Dropdown(
            [texts.DIRECT_FORM], value=texts.DIRECT_FORM, label="Asked as", min_width=220, scale=2, elem_id="form"
        )
    with gr.Row():
        prompt = gr.Textbox(
            label="Prompt", max_length=PROMPT.value(), lines=1, scale=4, min_width=260, elem_id="prompt"
        )
        gold = gr.Textbox(label="Right answer", max_length=PROMPT.value(), scale=2, min_width=160, elem_id="gold")
        button = gr.Button("Ask both", variant="primary", scale=1, min_width=120, elem_id="ask", elem_classes="tall")
    if worker.is_lent:
        gr.Markdown(cost_of_asking(ASK_SECONDS))
    limits = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="model-limits")
    answers = gr.HTML(NO_ANSWERS, html_template=html.ANSWERS, elem_id="answers")

    screen = ProbeScreen(group, fact, form, prompt, gold, answers, gr.State(()))
    screen.wire(worker, run_id, tab)
    asked, events = [run_id, prompt, gold], [button.click, prompt.submit, gold.submit]
    gr.on(events, partial(ask_both, worker), asked, answers, api_visibility="private")
    start, (inside, instead) = leaks.build(worker, run_id, tab, fact, group), recovery.build(worker, run_id, tab)

    def looked(name: str) -> dict:
        run = probed_run(worker, name)
        shipped = example_of(run.id) is not None
        said = {limits: limits_of(run), example_row: gr.Row(visible=shipped), recorded: recorded_of(run)}
        own = {start: gr.Button(interactive=not shipped), inside: gr.Column(visible=not shipped)}
        return said | own | {instead: gr.Markdown(visible=shipped)}  # what the probes find is kept in the run

    changed = [limits, example_row, recorded, start, inside, instead]
    gr.on([tab.select, run_id.change], looked, run_id, changed, **EACH)
    download.build(worker, run_id)
    return screen


def fact_choices(worker: Worker, name: str, group: str, current: str | None) -> gr.Dropdown:
    """The facts of a run's group to pick from, the current one chosen if it is among them."""
    members = getattr(probed_run(worker, name).facts, group) if group in FACT_GROUPS else ()
    facts = sorted(members, key=lambda fact: (fact.score is None, fact.score or 0, fact.id))
    ids = [fact.id for fact in facts]
    # first the most famous: a fact one would expect to survive
    value = current if current in ids else ids[-1] if ids else None
    return gr.Dropdown([(_label(fact), fact.id) for fact in facts], value=value)


def form_choices(worker: Worker, name: str, wanted: str | None, text: str, filled: tuple = ()) -> gr.Dropdown:
    """The ways to ask a fact of a run. The trained question is chosen, unless the text asks for this fact already, or
    the prompt was filled in for it, as `ProbeScreen.filled` says."""
    prompts = forms_of(probed_run(worker, name), wanted)
    asked = [prompt.text for prompt in prompts]
    value = text if text in asked else asked[0] if asked else ""
    value = filled[2] if filled[:2] == (name, wanted) else value
    return gr.Dropdown([*((_form(prompt), prompt.text) for prompt in prompts), (texts.OWN_FORM, "")], value=value)


def forms_of(run: Run | None, wanted: str | None) -> list[Prompt]:
    """Every prompt that asks for a fact of the run: directly, reworded, and under the attacks that apply."""
    facts = [fact for group in FACT_GROUPS for fact in getattr(run.facts, group)] if run else []
    chosen = next((fact for fact in facts if fact.id == wanted), None)
    if chosen is None:
        return []
    found = [direct(chosen), *reworded(chosen), *attack_prompts(chosen, facts, run.config.seed)]
    return [prompt for prompt in found if isinstance(prompt, Prompt)]


def _form(prompt: Prompt) -> str:
    """What a prompt is called in the list."""
    if prompt.kind == DIRECT:
        return texts.DIRECT_FORM
    return f"{prompt.kind.capitalize()}: {prompt.text}" if prompt.kind == REWORDED else prompt.kind.capitalize()


async def ask_both(worker: Worker, name: str, text: str, right: str) -> dict:
    """Both models' answers to a prompt, as values of the answer cards. Waits while a run uses the accelerator."""
    run = run_to_question(worker, name) or probed_run(worker, name)
    if run.last_epoch is None:
        return html.values({"empty": "The run has not finished an epoch yet. Ask again in a moment."})
    text, right = (text or "").strip(), (right or "").strip()
    if not text:
        return html.values({"empty": "Type a prompt, or pick a fact."})
    with refusing():
        PROMPT.check(max(len(text), len(right)))
        await over(asked := worker.ask(run, [text], [right]))
        (result,) = asked.result()
    return answers_of(result, described(run.config) + (f", recorded by {COMMAND}" if example_of(run.id) else ""))


def recorded_of(run: Run) -> dict:
    """Which example is asked and what made it, as values of `LINES`; hidden for other runs."""
    shipped = example_of(run.id) is not None
    said = [texts.PROBE_RECORDED.format(run=described(run.config), command=COMMAND)] if shipped else []
    return html.listed(said, "calm" if shipped else "hidden")


def limits_of(run: Run) -> dict:
    """What a shipped model can be asked, as values of `LINES`; hidden for a real model."""
    toy = run.config.model in SHIPPED
    return html.listed([texts.PROBE_LIMITS] if toy else [], "calm" if toy else "hidden")


def answers_of(result: Asked, about: str = "") -> dict:
    """What both models said, as values of the answer cards. about: which run unlearned."""
    right = result.gold
    word, kind = verdict(result) if right else ("", "")
    sides = [
        _side("Original", "●", result.original, right, "", ""),
        _side("Unlearned", "◆", result.unlearned, right, word, kind),
    ]
    return html.values({"original": True, "sides": sides, "sent": result.sent, "about": about})


def marked(answer: str, gold: str) -> list[dict[str, str | bool]]:
    """The answer in pieces, each with whether it is a word of the right answer; together they are the answer."""
    wanted = {word.casefold() for word in WORD.findall(gold)}
    pieces = [piece for piece in BORDER.split(answer) if piece]
    return [{"text": piece, "gold": piece.casefold() in wanted} for piece in pieces]


def _side(name: str, mark: str, answer, right: str, word: str, kind: str) -> dict:
    """One model's answer card. right: the right answer. word, kind: of the verdict."""
    known = answer.gold_rank is not None
    return {
        "name": name,
        "kind": name.lower(),
        "mark": mark,
        "parts": marked(answer.text or "(says nothing)", right),
        "right": known and answer.recall == 1.0,
        "verdict": word,
        "verdict_kind": kind,
        "measured": known,
        "rank": ", ".join(map(str, answer.gold_ranks)),
        "logprob": f"{answer.gold_logprob:.2f} nats" if known else "",
        "probability": _percent(math.exp(answer.gold_logprob)) if known else "",
        "top": [{"token": token, "percent": round(100 * p), "shown": _percent(p)} for token, p in answer.top],
    }


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %" if p >= 0.001 else "< 0.1 %"


def _label(fact: Fact) -> str:
    score = "score unknown" if fact.score is None else f"{fact.tier}, score {fact.score:g}"
    return f"{fact.title} → {fact.answer} ({score})"
