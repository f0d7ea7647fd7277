"""Screen 4, Probe: both models, one prompt, side by side, with where the right answer stands in each."""

from __future__ import annotations

import math

import gradio as gr

from adapop.errors import AdaPopError
from adapop.facts import Fact, FactSet
from adapop.probes.verdict import verdict
from adapop.runs import Run
from adapop.ui import cards, copy
from adapop.ui.run import known_run, refused
from adapop.worker import Worker

GROUPS = ("forget", "retain", "holdout")


def build(worker: Worker, run_id: gr.BrowserState, tab: gr.Tab) -> None:
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
            label="Prompt", max_length=copy.MAX_PROMPT, lines=1, scale=4, min_width=260, elem_id="prompt"
        )
        gold = gr.Textbox(
            label="Right answer, if you know it", max_length=copy.MAX_PROMPT, scale=2, min_width=160, elem_id="gold"
        )
        button = gr.Button("Ask both", variant="primary", scale=1, min_width=120, elem_id="ask", elem_classes="tall")
    answers = gr.HTML(cards.values({"empty": copy.PROBE_EMPTY}), html_template=cards.ANSWERS, elem_id="answers")

    def choices(name: str, wanted: str):
        run = known_run(worker, name)
        facts = _sorted(run.facts, wanted) if run else []
        # the middle of the famous end: a fact one would expect to survive
        value = facts[-1].id if facts else None
        return gr.Dropdown([(_label(fact), fact.id) for fact in facts], value=value)

    def forms(name: str, wanted: str | None):
        chosen = _fact(known_run(worker, name), wanted)
        rewordings = [(f"Reworded: {text}", text) for text in chosen.paraphrases] if chosen else []
        direct = chosen.question if chosen else copy.DIRECT_FORM
        return gr.Dropdown([(copy.DIRECT_FORM, direct), *rewordings, (copy.OWN_FORM, "")], value=direct)

    def filled(name: str, wanted: str | None, asked: str):
        chosen = _fact(known_run(worker, name), wanted)
        if not asked or chosen is None:
            return gr.Textbox("", placeholder="Type a question"), ""
        return asked, chosen.answer

    def ask(name: str, text: str, right: str):
        return asked(worker, name, text, right)

    tab.select(choices, [run_id, group], fact, api_visibility="private", show_progress="hidden")
    group.change(choices, [run_id, group], fact, api_visibility="private", show_progress="hidden")
    fact.change(forms, [run_id, fact], form, api_visibility="private", show_progress="hidden")
    form.change(filled, [run_id, fact, form], [prompt, gold], api_visibility="private", show_progress="hidden")
    gr.on([button.click, prompt.submit, gold.submit], ask, [run_id, prompt, gold], answers, api_visibility="private")


def asked(worker: Worker, name: str, text: str, right: str) -> dict:
    """Both answers to a prompt, as values of the answer cards. Waits for the accelerator if a run holds it."""
    run = known_run(worker, name)
    if run is None:
        return cards.values({"empty": copy.NO_RUN})
    if run.last_epoch is None:
        return cards.values({"empty": "The run has not finished an epoch yet. Ask again in a moment."})
    text, right = (text or "").strip()[: copy.MAX_PROMPT], (right or "").strip()[: copy.MAX_PROMPT]
    if not text:
        return cards.values({"empty": "Type a prompt, or pick a fact."})
    try:
        (result,) = worker.ask(run, [text], [right]).result()
    except AdaPopError as error:
        raise refused(error) from error
    word, kind = verdict(result) if right else ("", "")
    sides = [
        _side("Original", "●", result.original, "", ""),
        _side("Unlearned", "◆", result.unlearned, word, kind),
    ]
    return cards.values({"original": True, "sides": sides, "sent": result.sent})


def _side(name: str, mark: str, answer, word: str, kind: str) -> dict:
    known = answer.gold_rank is not None
    return {
        "name": name,
        "kind": name.lower(),
        "mark": mark,
        "text": answer.text or "(says nothing)",
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
    members = getattr(facts, group) if group in GROUPS else ()
    return sorted(members, key=lambda fact: (fact.score is None, fact.score or 0, fact.id))


def _fact(run: Run | None, wanted: str | None) -> Fact | None:
    if run is None or not wanted:
        return None
    facts = run.facts
    return next((fact for group in GROUPS for fact in getattr(facts, group) if fact.id == wanted), None)


def _label(fact: Fact) -> str:
    score = "score unknown" if fact.score is None else f"{fact.tier}, score {fact.score:g}"
    return f"{fact.subject or fact.question} → {fact.answer} ({score})"
