"""The questions that Probe asks: one fact in every form, or one prompt, to both models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import Future
from textwrap import shorten
from typing import TYPE_CHECKING

import gradio as gr

from adapop.errors import AdaPopError, DataError, RunError
from adapop.limits import PROMPT
from adapop.report.record import described_run
from adapop.runs.examples import COMMAND, example_of
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import probed_run, public_words, run_to_question
from adapop.ui.parts import html
from adapop.ui.probe import answers as cards
from adapop.ui.probe import every_way
from adapop.ui.probe.choices import fact_of, forms_of
from adapop.ui.wiring import offload, over

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

SHOWN_QUESTION = 100  # most characters of the question above its answers
PATIENCE = 1.0  # seconds before a page is told that its question waits


def ways_of(worker: Worker, name: str, fact_id: str | None) -> dict:
    """The last probing's replies to every form of a fact, or a note that there are none yet."""
    run = probed_run(worker, name)
    prompts = forms_of(run, fact_of(run, fact_id))
    if fact_id and not prompts:
        return every_way.message_table(texts.NO_SUCH_FACT)
    rows = cards.recorded(run, prompts)
    return every_way.table_of(run, prompts, rows) if rows else every_way.waiting(run, len(prompts))


async def ask_every_way(worker: Worker, name: str, fact_id: str | None) -> AsyncIterator[dict]:
    """Both models' replies to every form of a fact. Waits for the run under way, and says so."""

    def begun():
        run, epoch = _run_and_epoch(worker, name)
        if epoch is None:
            raise RunError(texts.NOT_YET)
        if not (prompts := forms_of(run, fact_of(run, fact_id))):
            raise DataError(texts.NO_SUCH_FACT)
        golds = [prompt.gold for prompt in prompts]
        return run, prompts, worker.ask(run, [prompt.text for prompt in prompts], golds)

    try:
        run, prompts, future = await offload(worker.usage, begun)
        if await _waits(future):
            yield every_way.message_table(texts.ASKED_LATER)
        await over(future)
        replies = future.result()
    except AdaPopError as error:  # shown in place of the answers
        yield every_way.message_table(public_words(error))
    else:
        yield await offload(worker.usage, every_way.table_of, run, prompts, replies)


def way_chosen(worker: Worker, name: str, fact_id: str | None, event: gr.EventData):
    """The question of the chosen row as the prompt, to be edited; its right answer; the recorded
    answers."""
    run, place = probed_run(worker, name), getattr(event, "way", None)  # it comes from the browser
    prompts = forms_of(run, fact_of(run, fact_id))
    if type(place) is not int or not 0 <= place < len(prompts):
        return gr.skip(), gr.skip(), gr.skip()
    return prompts[place].text, prompts[place].gold, cards.recorded_answers(run, prompts[place])


async def ask_both(worker: Worker, name: str, text: str, right: str) -> AsyncIterator[dict]:
    """Both models' answers to a prompt, as `answers_of`. Waits for the run at work and says so."""
    run, epoch = await offload(worker.usage, _run_and_epoch, worker, name)
    text, right = (text or "").strip(), (right or "").strip()
    if epoch is None or not text:
        missing = texts.NOT_YET if epoch is None else "Type a prompt, or pick a fact."
        yield html.values({"empty": missing})
        return
    try:
        PROMPT.check(max(len(text), len(right)))
        future = await offload(worker.usage, worker.ask, run, [text], [right])
        if await _waits(future):
            yield html.values({"empty": texts.ASKED_LATER})
        await over(future)
        (result,) = future.result()
    except AdaPopError as error:  # in place of the answers to another question
        yield html.values({"empty": public_words(error)})
    else:
        yield await offload(worker.usage, _answers, run, text, result)


async def _waits(future: Future) -> bool:
    """Whether a question still waits for its turn after `PATIENCE`."""
    await over(future, PATIENCE)
    return not future.running() and not future.done()


def _run_and_epoch(worker: Worker, name: str) -> tuple[Run, int | None]:
    """The run whose models are asked, and the epoch of its result."""
    run = run_to_question(worker, name) or probed_run(worker, name)
    return run, run.chosen_epoch


def _answers(run: Run, text: str, result: Asked) -> dict:
    """Values of the answer cards."""
    shipped = f", recorded by {COMMAND}" if example_of(run.id) else ""
    # the input may hold another question by now
    question = shorten(text, SHOWN_QUESTION, placeholder=" …")
    return cards.answers_of(result, f"{question} · Unlearned by {described_run(run)}{shipped}")
