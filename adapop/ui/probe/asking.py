"""The questions that Probe asks: one fact in every form, or one prompt, to both models."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING

import gradio as gr

from adapop.errors import AdaPopError, DataError, RunError
from adapop.limits import PROMPT
from adapop.report.record import described
from adapop.runs.examples import COMMAND, example_of
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import probed_run, public_words, run_to_question
from adapop.ui.parts import html
from adapop.ui.probe import answers as cards
from adapop.ui.probe import every_way
from adapop.ui.probe.choices import fact_of, forms_of
from adapop.ui.wiring import aside, over

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

SHOWN_QUESTION = 100  # characters of it, above its answers


def ways_of(worker: Worker, name: str, fact_id: str | None) -> dict:
    """The last probing's replies to every form of a fact, or a note that there are none yet."""
    run = probed_run(worker, name)
    prompts = forms_of(run, fact_of(run, fact_id))
    if fact_id and not prompts:
        return every_way.message_table(texts.NO_SUCH_FACT)
    heard = cards.recorded(run, prompts)
    return (
        every_way.table_of(run, prompts, heard) if heard else every_way.waiting(run, len(prompts))
    )


async def ask_every_way(worker: Worker, name: str, fact_id: str | None) -> dict:
    """Both models' replies to every form of a fact. Waits while a run uses the accelerator."""

    def begun():
        run, epoch = _run_and_epoch(worker, name)
        if epoch is None:
            raise RunError(texts.NOT_YET)
        if not (prompts := forms_of(run, fact_of(run, fact_id))):
            raise DataError(texts.NO_SUCH_FACT)
        golds = [prompt.gold for prompt in prompts]
        return run, prompts, worker.ask(run, [prompt.text for prompt in prompts], golds)

    try:
        run, prompts, future = await aside(worker.ledger, begun)
        await over(future)
        replies = future.result()
    except AdaPopError as error:  # where the answers would stand
        return every_way.message_table(public_words(error))
    return await aside(worker.ledger, every_way.table_of, run, prompts, replies)


def way_chosen(worker: Worker, name: str, fact_id: str | None, event: gr.EventData):
    """The question of the chosen row as the prompt, to be edited and asked, with its right
    answer."""
    run, place = probed_run(worker, name), getattr(event, "way", None)  # it comes from the browser
    prompts = forms_of(run, fact_of(run, fact_id))
    if type(place) is not int or not 0 <= place < len(prompts):
        return gr.skip(), gr.skip(), gr.skip()
    return prompts[place].text, prompts[place].gold, cards.recorded_answers(run, prompts[place])


async def ask_both(worker: Worker, name: str, text: str, right: str) -> dict:
    """Both models' answers to a prompt, as values of the answer cards. Waits while a run uses the
    accelerator."""
    run, epoch = await aside(worker.ledger, _run_and_epoch, worker, name)
    if epoch is None:
        return html.values({"empty": texts.NOT_YET})
    text, right = (text or "").strip(), (right or "").strip()
    if not text:
        return html.values({"empty": "Type a prompt, or pick a fact."})
    try:
        PROMPT.check(max(len(text), len(right)))
        await over(future := await aside(worker.ledger, worker.ask, run, [text], [right]))
        (result,) = future.result()
    except AdaPopError as error:  # in place of the answers to another question
        return html.values({"empty": public_words(error)})
    return await aside(worker.ledger, _answers, run, text, result)


def _run_and_epoch(worker: Worker, name: str) -> tuple[Run, int | None]:
    """The run whose models are asked, and the epoch of its result."""
    run = run_to_question(worker, name) or probed_run(worker, name)
    return run, run.chosen_epoch


def _answers(run: Run, text: str, result: Asked) -> dict:
    """Values of the answer cards."""
    shipped = f", recorded by {COMMAND}" if example_of(run.id) else ""
    # another one may stand in the box by now
    question = shorten(text, SHOWN_QUESTION, placeholder=" …")
    return cards.answers_of(result, f"{question} · Unlearned by {described(run.config)}{shipped}")
