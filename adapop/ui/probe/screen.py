"""Screen 4, Probe: both models, one prompt, side by side, with where the right answer stands in each."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import gradio as gr

from adapop.errors import AdaPopError
from adapop.facts.fact import FACT_GROUPS, Fact, FactSet
from adapop.limits import PROMPT
from adapop.probes.attacks import attack_prompts
from adapop.probes.prompts import DIRECT, REWORDED, Prompt, direct
from adapop.probes.rewordings import reworded
from adapop.probes.verdict import verdict
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import ASK_SECONDS, cost_of_asking
from adapop.ui import texts as copy
from adapop.ui.access import refused, shown_run, steered
from adapop.ui.parts import download, html
from adapop.ui.probe import leaks, recovery

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

WORD, BORDER = re.compile(r"\w+"), re.compile(r"(\W+)")


@dataclass(frozen=True)
class ProbeScreen:
    """group, fact, form: which question. prompt, gold: the question and its answer. answers: of both models. filled:
    (run, fact, form) that the prompt was filled in for; what the visitor has made of it since stays."""

    group: gr.Dropdown
    fact: gr.Dropdown
    form: gr.Dropdown
    prompt: gr.Textbox
    gold: gr.Textbox
    answers: gr.HTML
    filled: gr.State


def build(worker: Worker, run_id: gr.BrowserState, tab: gr.Tab) -> ProbeScreen:
    """Lays the screen out inside the current tab."""
    gr.Markdown(copy.PROBE_ABOUT)
    with gr.Row():
        group = gr.Dropdown(
            [("Facts to forget", "forget"), ("Retained facts", "retain"), ("Held-out facts", "holdout")],
            value="forget",
            label="From",
            min_width=150,
            scale=1,
        )
        fact = gr.Dropdown([], label="Fact, rarest first", min_width=260, scale=3, elem_id="fact")
        form = gr.Dropdown(
            [copy.DIRECT_FORM], value=copy.DIRECT_FORM, label="Asked as", min_width=220, scale=2, elem_id="form"
        )
    with gr.Row():
        prompt = gr.Textbox(
            label="Prompt", max_length=PROMPT.value(), lines=1, scale=4, min_width=260, elem_id="prompt"
        )
        gold = gr.Textbox(
            label="Right answer, if you know it", max_length=PROMPT.value(), scale=2, min_width=160, elem_id="gold"
        )
        button = gr.Button("Ask both", variant="primary", scale=1, min_width=120, elem_id="ask", elem_classes="tall")
    if worker.is_lent:
        gr.Markdown(cost_of_asking(ASK_SECONDS))
    answers = gr.HTML(html.values({"empty": copy.PROBE_EMPTY}), html_template=html.ANSWERS, elem_id="answers")

    def choices(name: str, wanted: str, current: str | None):
        return fact_choices(worker, name, wanted, current)

    def forms(name: str, wanted: str | None, text: str, done: tuple):
        return form_choices(worker, name, wanted, text, done)

    nothing = html.values({"empty": copy.PROBE_EMPTY})  # answers to another question must not stand below this one

    def fill(name: str, wanted: str | None, asked: str, text: str, done: tuple):
        now = name, wanted, asked
        if done == now:
            return [gr.skip()] * 4
        prompts = forms_of(shown_run(worker, name), wanted)
        chosen = next((prompt for prompt in prompts if asked and prompt.text == asked), None)
        typed = text and text not in {prompt.text for prompt in prompts}
        if text == asked or (chosen is None and typed):  # it is in the box already, perhaps with its answers below
            return *[gr.skip()] * 3, now
        if chosen is None:
            return gr.Textbox("", placeholder="Type a question"), "", nothing, now
        return chosen.text, chosen.gold, nothing, now

    def ask(name: str, text: str, right: str):
        return asked(worker, name, text, right)

    tab.select(choices, [run_id, group, fact], fact, api_visibility="private", show_progress="hidden")
    group.change(choices, [run_id, group, fact], fact, api_visibility="private", show_progress="hidden")
    filled = gr.State(())
    fact.change(forms, [run_id, fact, prompt, filled], form, api_visibility="private", show_progress="hidden")
    asking = [run_id, fact, form, prompt, filled]
    form.change(fill, asking, [prompt, gold, answers, filled], api_visibility="private", show_progress="hidden")
    # what another run answered must not stand here; the tour brings its answers along with the run
    run_id.change(
        lambda name, done: nothing if done and done[0] != name else gr.skip(),
        [run_id, filled],
        answers,
        trigger_mode="multiple",
        api_visibility="private",
        show_progress="hidden",
    )
    gr.on([button.click, prompt.submit, gold.submit], ask, [run_id, prompt, gold], answers, api_visibility="private")
    leaks.build(worker, run_id, tab, fact, group)
    recovery.build(worker, run_id, tab)
    download.build(worker, run_id)
    return ProbeScreen(group, fact, form, prompt, gold, answers, filled)


def fact_choices(worker: Worker, name: str, group: str, current: str | None) -> gr.Dropdown:
    """The facts of a run's group to pick from, the current one chosen if it is among them."""
    run = shown_run(worker, name)
    facts = _sorted(run.facts, group) if run else []
    ids = [fact.id for fact in facts]
    # first the most famous: a fact one would expect to survive
    value = current if current in ids else ids[-1] if ids else None
    return gr.Dropdown([(_label(fact), fact.id) for fact in facts], value=value)


def form_choices(worker: Worker, name: str, wanted: str | None, text: str, filled: tuple = ()) -> gr.Dropdown:
    """The ways to ask a fact of a run. The trained question is chosen, unless the text asks for this fact already, or
    the prompt was filled in for it, as `ProbeScreen.filled` says."""
    prompts = forms_of(shown_run(worker, name), wanted)
    texts = [prompt.text for prompt in prompts]
    value = text if text in texts else texts[0] if texts else ""
    value = filled[2] if filled[:2] == (name, wanted) else value
    return gr.Dropdown([*((_form(prompt), prompt.text) for prompt in prompts), (copy.OWN_FORM, "")], value=value)


def forms_of(run: Run | None, wanted: str | None) -> list[Prompt]:
    """Every prompt that asks for a fact of the run: directly, reworded, and under the attacks that apply."""
    facts = run.facts if run else None
    chosen = _fact(facts, wanted)
    if chosen is None:
        return []
    found = [direct(chosen), *reworded(chosen), *attack_prompts(chosen, _every(facts), run.config.seed)]
    return [prompt for prompt in found if isinstance(prompt, Prompt)]


def _form(prompt: Prompt) -> str:
    """What a prompt is called in the list."""
    if prompt.kind == DIRECT:
        return copy.DIRECT_FORM
    return f"{prompt.kind.capitalize()}: {prompt.text}" if prompt.kind == REWORDED else prompt.kind.capitalize()


def asked(worker: Worker, name: str, text: str, right: str) -> dict:
    """Both answers to a prompt, as values of the answer cards. Waits for the accelerator if a run holds it."""
    run = steered(worker, name)
    if run is None:
        return html.values({"empty": copy.NO_RUN})
    if run.last_epoch is None:
        return html.values({"empty": "The run has not finished an epoch yet. Ask again in a moment."})
    text, right = (text or "").strip(), (right or "").strip()
    if not text:
        return html.values({"empty": "Type a prompt, or pick a fact."})
    try:
        PROMPT.check(max(len(text), len(right)))
        (result,) = worker.ask(run, [text], [right]).result()
    except AdaPopError as error:
        raise refused(error) from error
    return answers_of(result)


def answers_of(result: Asked) -> dict:
    """What both models said, as values of the answer cards."""
    right = result.gold
    word, kind = verdict(result) if right else ("", "")
    sides = [
        _side("Original", "●", result.original, right, "", ""),
        _side("Unlearned", "◆", result.unlearned, right, word, kind),
    ]
    return html.values({"original": True, "sides": sides, "sent": result.sent})


def marked(answer: str, gold: str) -> list[dict[str, str | bool]]:
    """The answer in pieces, each with whether it is a word of the right answer; together they are the answer."""
    wanted = {word.casefold() for word in WORD.findall(gold)}
    pieces = [piece for piece in BORDER.split(answer) if piece]
    return [{"text": piece, "gold": piece.casefold() in wanted} for piece in pieces]


def _side(name: str, mark: str, answer, right: str, word: str, kind: str) -> dict:
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
        "rank": answer.gold_rank,
        "logprob": f"{answer.gold_logprob:.2f} nats" if known else "",
        "probability": _percent(math.exp(answer.gold_logprob)) if known else "",
        "top": [{"token": token, "percent": round(100 * p), "shown": _percent(p)} for token, p in answer.top],
    }


def _percent(p: float) -> str:
    return f"{p:.1%}" if p >= 0.001 else "< 0.1%"


def _sorted(facts: FactSet, group: str) -> list[Fact]:
    members = getattr(facts, group) if group in FACT_GROUPS else ()
    return sorted(members, key=lambda fact: (fact.score is None, fact.score or 0, fact.id))


def _every(facts: FactSet) -> list[Fact]:
    return [fact for group in FACT_GROUPS for fact in getattr(facts, group)]


def _fact(facts: FactSet | None, wanted: str | None) -> Fact | None:
    return next((fact for fact in _every(facts) if fact.id == wanted), None) if facts else None


def _label(fact: Fact) -> str:
    score = "score unknown" if fact.score is None else f"{fact.tier}, score {fact.score:g}"
    return f"{fact.title} → {fact.answer} ({score})"
