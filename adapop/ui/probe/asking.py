"""The questions that Probe asks: one fact in every form, or one prompt, to both models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from textwrap import shorten
from time import monotonic
from typing import TYPE_CHECKING

import gradio as gr

from adapop.errors import AdaPopError, DataError, RunError
from adapop.limits import PROMPT
from adapop.probes.inspection import MOST_TOKENS, ORACLE, Question
from adapop.report.record import described_run
from adapop.runs import questions
from adapop.runs.examples import COMMAND, example_of
from adapop.runs.questions import Ways
from adapop.runs.run import Run
from adapop.service import jobs
from adapop.service.links import linked
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import known_run, probed_run, public_words, run_to_question, shown_run
from adapop.ui.probe import answers as cards
from adapop.ui.probe import choices, every_way
from adapop.ui.probe.choices import columns_of, fact_of
from adapop.ui.wiring import offload, over

NO_SUCH_FACT = "No fact has this name. Pick one from the list."
ASKING = "Loading the model if it is not loaded yet, and asking it · {seconds:.0f} s"
ASKED_LATER = "A run is in progress. Your question is asked as soon as it ends or stops."

if TYPE_CHECKING:
    from adapop.probes.inspection import Chosen, Inspection
    from adapop.probes.prompts import Asked, Prompt

SHOWN_QUESTION = 100  # most characters of the question above its answers
PATIENCE = 1.0  # seconds before a page is told that its question waits


def ways_of(
    worker: Worker, name: str, fact_id: str | None, others: object = (), at: object = ""
) -> dict:
    """The replies to every form of a fact that were kept or else probed last, or a note that there
    are none yet. others, at: the columns beside the two and the epoch, see `columns_of`; a probing
    has the run's result, beside other runs that were probed alike."""
    run = probed_run(worker, name)
    fact, epoch = fact_of(run, fact_id), choices.epoch_of(at) or run.chosen_epoch
    ways, chain = choices.ways_to_ask(run, fact)
    prompts = ways[: len(ways) - len(chain)]
    if fact_id and not prompts:
        return every_way.message_table(NO_SUCH_FACT)
    own = linked(name, worker.root) is None
    try:
        recorded = _kept_ways(run, ways, (fact, epoch, choices.kept_names(worker, run, others)))
    except RunError as error:  # a damaged file
        return every_way.message_table(public_words(error))
    if recorded:
        return _table(run, ways, recorded, own, _when("recorded", at))
    rows = cards.recorded(run, prompts) if epoch == run.chosen_epoch else None
    if not rows:
        return every_way.waiting(run, prompts, may_ask=own)
    beside = {}
    for other in others if isinstance(others, list) else ():
        other_run = shown_run(worker, other)
        if other_run and (its_rows := cards.recorded(other_run, prompts)):
            beside[described_run(other_run)] = its_rows
    return every_way.table_of(run, prompts, rows, beside, own)


def _kept_ways(
    run: Run, ways: Sequence[Prompt], sought: tuple[str | None, int | None, tuple[str, ...]]
) -> Ways | None:
    """The last time that a fact was asked in these ways. sought: the fact's id, the epoch, and the
    names of the further columns. None if it never was."""
    prompts = [prompt.text for prompt in ways]
    return next(
        (
            one
            for one in reversed(questions.read_ways(run))
            if (one.fact, one.epoch, tuple(one.beside)) == sought
            and [reply.prompt for reply in one.asked] == prompts
        ),
        None,
    )


def _table(run: Run, prompts: Sequence[Prompt], ways: Ways, own: bool, when: str) -> dict:
    """The table of a fact that was asked in all ways. own: whether the run is the visitor's."""
    beside = {  # under the names that the page gives them
        texts.NEVER_KNEW if name == ORACLE else name: replies
        for name, replies in ways.columns.items()
    }
    return every_way.table_of(run, prompts, ways.asked, beside, own, when)


def _when(when: str, at: object, *further: str) -> str:
    """When a fact was asked in all ways, and of which epoch if not of the run's result."""
    return ", ".join(filter(None, (f"epoch {at}" if at else "", when, *further)))


async def ask_every_way(
    worker: Worker, name: str, fact_id: str | None, others: object = (), at: object = ""
) -> AsyncIterator[dict]:
    """All columns' replies to every form of a fact. Waits for the run under way, and says so.
    others, at: the columns beside the two and the epoch, see `columns_of`."""

    def begun():
        run = asked_run(worker, name, waits=True)
        prompts, earlier = choices.ways_to_ask(run, fact_of(run, fact_id))
        if not prompts:
            raise DataError(NO_SUCH_FACT)
        prompt_texts = [prompt.text for prompt in prompts]
        golds = [prompt.gold for prompt in prompts]
        chosen = columns_of(worker, run, others, at)
        asking = jobs.ask_columns, prompt_texts, golds, chosen, earlier
        return run, prompts, chosen, worker.ask(run, *asking, beside=chosen)

    try:
        run, prompts, chosen, future = await offload(worker.usage, begun)
        async for line in told_meanwhile(future):
            yield every_way.message_table(line)
        columns = future.result()
    except AdaPopError as error:  # shown in place of the answers
        yield every_way.message_table(public_words(error))
    else:
        yield await offload(worker.usage, _kept, worker, name, run, prompts, chosen, columns, at)


def _kept(
    worker: Worker,
    name: str,
    run: Run,
    prompts: Sequence[Prompt],
    chosen: Sequence[Chosen],
    columns: Sequence[Sequence[Asked]],
    at: object,
) -> dict:
    """The table of all columns' replies, which are kept with the run if it is the visitor's own."""
    _, replies, *further = columns
    answers = [tuple(one.unlearned for one in column) for column in further]
    epoch = chosen[1].epoch or run.chosen_epoch
    kinds = tuple(prompt.kind for prompt in prompts)
    beside = dict(zip(_kept_as(chosen), answers))
    ways = Ways(prompts[0].fact_id, epoch, kinds, tuple(replies), beside)
    when = _when("asked just now", at, _keep(worker, name, ways))
    return _table(run, prompts, ways, True, when)


def way_chosen(run: Run, fact_id: str | None, event: gr.EventData) -> Prompt | None:
    """The prompt of the chosen row of the table, None for a row that it has not."""
    place, (rows, _) = getattr(event, "way", None), choices.ways_to_ask(run, fact_id)
    # it comes from the browser
    return rows[place] if type(place) is int and 0 <= place < len(rows) else None


async def ask_both(
    worker: Worker,
    name: str,
    prompt: str,
    gold: str,
    begun: str = "",
    earlier: str = "",
    others: object = (),
    epoch: object = "",
    ids: Sequence[int] = (),
    ids_of: object = 0,
) -> AsyncIterator[dict]:
    """All columns' answers to a prompt, token by token, as values of the cards. Waits for the run
    at work and says so. begun, ids: the beginning of the answer, as text or as tokens of the column
    at `ids_of`. others: columns beside the two, see `columns_of`. earlier: the turns before it, one
    a line. epoch: whose adapter is asked, see `epoch_choices`."""
    try:
        run = await offload(worker.usage, asked_run, worker, name, True)
        if not (prompt or "").strip():
            raise RunError("Type a question, or pick a fact.")
        question = replace(question_of(prompt, gold, begun, earlier), ids=tuple(ids))
        chosen = await offload(worker.usage, columns_of, worker, run, others, epoch)
        if type(ids_of) is int and 0 <= ids_of < len(chosen):  # it comes from the browser
            question = replace(question, ids_of=ids_of)
        asking = worker.ask, run, jobs.inspect_columns, question, chosen
        future = await offload(worker.usage, *asking, beside=chosen)
        async for line in told_meanwhile(future):
            yield {"empty": line}
        inspection = future.result()
    except AdaPopError as error:  # in place of the answers to another question
        yield {"empty": public_words(error)}
    else:
        yield await offload(worker.usage, _answers, worker, run, name, inspection, chosen)


def question_of(
    prompt: str | None, gold: str | None, begun: str | None = "", earlier: str | None = ""
) -> Question:
    """The question that the inputs hold. earlier: the turns before it, one a line. Raises
    LimitError: a text is too long."""
    prompt, gold, begun = ((value or "").strip() for value in (prompt, gold, begun))
    turns = tuple(line.strip() for line in (earlier or "").splitlines() if line.strip())
    PROMPT.check(max(map(len, (prompt, gold, begun, "".join(turns)))))
    return Question(prompt, gold, begun, earlier=turns)


async def go_on(
    worker: Worker, name: str, others: object, epoch: object, event: gr.EventData
) -> AsyncIterator[dict]:
    """`ask_both` from a token that was pressed in a reply: the same question, the tokens before it
    and this one. The event comes from the browser."""
    ids, question = getattr(event, "ids", None), getattr(event, "question", None)
    question = question if isinstance(question, dict) else {}
    earlier = question.get("earlier")
    earlier = earlier if isinstance(earlier, list) else ()
    strings = [question.get("prompt"), question.get("gold"), *earlier]
    whole = isinstance(ids, list) and len(ids) <= MOST_TOKENS
    if whole and all(isinstance(one, str) for one in strings):
        prompt, gold, *turns = strings
        before, by = "\n".join(turns), getattr(event, "by", 0)
        asking = ask_both(worker, name, prompt, gold, "", before, others, epoch, ids, by)
        async for cards_now in asking:
            yield cards_now


async def told_meanwhile(future: Future) -> AsyncIterator[str]:
    """What a page is told of a question until it is answered: once that it waits for its turn, then
    every `PATIENCE` seconds for how long it is being answered. A line told twice could replace what
    the page shows of another run by then."""
    began, last_line = None, ""
    await over(future, PATIENCE)
    while not future.done():
        began = began or (monotonic() - PATIENCE if future.running() else None)
        line = ASKING.format(seconds=monotonic() - began) if began else ASKED_LATER
        if line != last_line:
            yield line
        last_line = line
        await over(future, PATIENCE)


def asked_run(worker: Worker, name: str, waits: bool = False) -> Run:
    """The run whose models are asked. waits: also one without an unlearned model yet, while it is
    under way here: a question is answered behind it. Raises RunError: it has none."""
    run = run_to_question(worker, name) or probed_run(worker, name)
    if run.chosen_epoch is None and waits and worker.ahead_of(run) is not None:
        return run
    if run.chosen_epoch is None and run.state in ("failed", "stopped"):
        message = f"This run {run.state} before it had a model to ask."
        raise RunError(message, "The tab Run says why.")
    if run.chosen_epoch is None and run.config.unlearned:
        raise RunError("Both models are being measured. Ask when that is done.")
    if run.chosen_epoch is None:
        raise RunError("The run has not finished an epoch yet. Ask again in a moment.")
    return run


def _answers(
    worker: Worker,
    run: Run,
    name: str,
    inspection: Inspection,
    chosen: Sequence[Chosen],
) -> dict:
    """Values of the answer cards. Keeps the question with the run, if it is the visitor's own."""
    shipped = f", recorded by {COMMAND}" if example_of(run.id) else ""
    # the input may hold another question by now
    question = shorten(inspection.question.prompt, SHOWN_QUESTION, placeholder=" …")
    by = "Unlearned:" if run.config.unlearned else "Unlearned by"  # a method's name, or a pair's
    about = f"{question} · {by} {described_run(run)}{shipped}"
    others = {column: its.unlearned for column, its in zip(_kept_as(chosen), inspection.asked[2:])}
    strips, earlier = inspection.strips, inspection.question.earlier
    way = "with the answer begun" if strips[0].begun else ""
    way = "after earlier turns" if earlier else way
    record = questions.question_of(inspection.asked[1], chosen[1].epoch, way, others)
    begun = strips[inspection.question.ids_of].beginning.strip()
    record = replace(record, begun=begun, earlier=earlier, strips=strips)
    lost = _keep(worker, name, record)
    return cards.inspected(inspection, chosen, f"{about} · {lost}" if lost else about)


def _kept_as(chosen: Sequence[Chosen]) -> list[str]:
    """The names under which replies of the columns beside the first two are kept."""
    return [ORACLE if one.kind == ORACLE else one.name for one in chosen[2:]]


def _keep(worker: Worker, name: str, record: questions.Question | Ways) -> str:
    """Keeps what was asked with the run, if it is the visitor's own; returns why it could not be
    kept, "" without a reason."""
    own = known_run(worker, name)
    try:
        if own is not None and not own.shared:
            questions.keep(own, record)
    except AdaPopError as error:  # the answer itself is shown all the same
        return f"Not kept: {public_words(error)}"
    return ""
