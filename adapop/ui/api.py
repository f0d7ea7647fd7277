"""The app's API for programs: eleven named endpoints, no others. They report what the page shows.

Facts come as the name of a set (as sandbox or duet) or as a list of rows like an upload's:
{"question": ..., "answer": ..., "score": 120, "id": ..., "group": "forget" | "retain" | "holdout",
...}. They are never a path or an address. A run is named by its id, which cannot be guessed and
gives its sender the owner's rights. `status`, `frames` and `report` also take a read-only link;
these three, `probe`, `tokens` and `samples` also take a shipped run, such as "example-wga". These
docstrings are the documentation on the page.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import asdict
from itertools import accumulate
from math import inf
from typing import Any

import gradio as gr

from adapop.errors import ConfigError, DataError, RunError
from adapop.facts.fact import FACT_GROUPS, SANDBOX
from adapop.limits import PROMPT
from adapop.popularity.calibration import AUTO
from adapop.probes.inspection import ORACLE, Chosen, Drawing, Question
from adapop.probes.verdict import verdict
from adapop.remark import sentences
from adapop.report.record import described_run
from adapop.runs.columns import columns_of
from adapop.runs.examples import example_of
from adapop.runs.pace import left_of
from adapop.runs.preflight import preflight
from adapop.runs.run import Run
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.training.events import ComparedToOracle, EpochDone, Measured, RunDone
from adapop.ui.access import known_run, shown_run
from adapop.ui.api_scores import beta, score
from adapop.ui.api_values import (
    answering,
    config_and_facts,
    parameters_of,
    quoted,
    text_of,
    whole_of,
)
from adapop.ui.parts.download import MOST_TITLE, REPORTS_AT_ONCE, archive_of
from adapop.ui.run.state import seen_of
from adapop.ui.wiring import answered, offload, over

NUMBERS = 20_000  # values of p and rank in one answer of `frames`
AT_ONCE = {"score": 6, "report": REPORTS_AT_ONCE}  # calls at work, of all callers together


def endpoints(worker: Worker) -> tuple[Callable, ...]:
    """All endpoints over a worker."""
    api = Api(worker)
    running = (api.status, api.frames, api.stop, api.probe, api.tokens, api.samples, api.report)
    return score, beta, api.check, api.start_run, *running


def build(worker: Worker, demo: gr.Blocks) -> None:
    """Adds the endpoints to the current app, with a description of each parameter in `/info`."""
    for endpoint in endpoints(worker):
        added = gr.api(
            answering(endpoint),
            api_name=endpoint.__name__,
            api_description=" ".join(inspect.getdoc(endpoint).split()),
            concurrency_limit=AT_ONCE.get(endpoint.__name__, "default"),
        )
        for part, words in zip(added["inputs"], parameters_of(endpoint).values()):
            # the first as JSON schemas have it, the second as "Use via API" shows it
            demo.blocks[part].api_info().update(description=words, additional_description=words)


class Api:
    """The endpoints, over one worker. They raise `AdaPopError`, whose message the caller gets."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def start_run(
        self,
        facts: str | list[dict] = SANDBOX,
        method: str = "adapop",
        preset: str = "paper",
        learning_rate: float | None = None,
        epochs: int = 5,
        seed: int = 0,
        anchors: str = AUTO,
        missing_score: str = "error",
        retain: str = "own",
        model: str = "",
        settings: dict | None = None,
        columns: dict | None = None,
    ) -> dict:
        """Queues a run that unlearns the facts from a model, and returns at once.

        Args:
            facts: the name of a set, or a list of rows with question, answer and score.
            method: adapop, wga, npo and the others of the page.
            preset: for adapop, its settings (paper, gentle, stress ...).
            learning_rate: per step; null takes the method's own.
            epochs: passes over the facts, at least 1.
            seed: a whole number of at least 0.
            anchors: as in beta.
            missing_score: error, drop (leave such facts out) or uniform (beta = 1).
            retain: which facts must survive: own (the set's rows, or included ones if it has
                none), sandbox (the sandbox's), neighbours (those of them most like the facts) or
                split (every third of the facts).
            model: sandbox, people, or another that the page offers; empty for the one the facts
                belong to.
            settings: other settings of a run by name, and arguments of the method, such as
                {"batch": 8}, or for a real model {"asking": "chat", "answers": "own-words",
                "unknown": "keep"}.
            columns: what the rows call the fields, such as {"question": "prompt"}.

        Gives {run, ahead, notes}: the id for the other calls, how many runs are before it, and
        notes on the rows.

        Errors: bad rows, a setting that does not exist or is out of range, scores that are missing,
        too many runs at once.
        """
        training = facts, method, preset, learning_rate, epochs, seed
        others = anchors, missing_score, retain, model, settings, columns
        config, read = config_and_facts(*training, *others)
        preflight(read, config).check("program")
        run = self.worker.submit(config, read)
        notes = sentences(read.notes, "program")
        return {"run": run.id, "ahead": self.worker.ahead_of(run), "notes": notes}

    async def check(self, *chosen) -> dict:
        """Checks the parameters of start_run without starting a run: asks the model and times a
        step.

        Args: as in start_run.

        Gives {forget, retain, holdout, notes, dropped, known, recall, prompting, impossible, tiers,
        anchors, betas, pace, seconds, device, gpu_bytes, problems, doubts, lines}: how many facts
        there are; notes on the rows, such as questions asked twice with different answers; known,
        {form, tier, asked, recall} of the original model; recall by the id of each fact asked (0 to
        1); prompting, the best way to ask a real model and what it replies, or null; impossible,
        for each form that suits no fact, the reason; tiers, their source and [lowest, highest]
        score; anchors, those chosen and why, or null; betas by id; seconds, the run's expected
        duration, null where a step fails, and its parts (pace); gpu_bytes that a step took, null
        without a GPU; problems, which make the run useless; doubts; lines, all this in sentences.

        Errors: as start_run; too many questions at once; a model that needs a lent GPU.
        """
        usage = self.worker.usage
        read = await offload(usage, config_and_facts, *chosen)
        future, _ = await offload(usage, self.worker.look, jobs.check_facts, *read)
        await over(future)
        return await offload(usage, lambda: future.result().as_json())

    # gradio and agents read the parameters here: the same as those of start_run
    check.__signature__ = inspect.signature(start_run)
    check.__annotations__ = start_run.__annotations__
    check.__doc__ = check.__doc__.replace(
        "Args: as in start_run.\n\n", re.search(r"Args:.*?\n\n", start_run.__doc__, re.DOTALL)[0]
    )

    def status(self, run: str) -> dict:
        """A run's progress, and its measurements so far.

        Args:
            run: its id, or its link.

        Gives {run, state, label, detail, percent, left, ahead, wait_seconds, wait_at_least, epochs,
        recall, measured, gap, by_fact, distance, notes}. state is queued, starting, running,
        measuring, stopping, elsewhere (in another process), done, stopped, interrupted or failed;
        label and detail say it in words; percent is 0 to 100. left: {seconds, covers, text}, the
        remaining time, estimated from the third step on, else null; covers: steps (training alone)
        or epochs (all but the full tables). ahead: runs before it, null if not in the queue;
        wait_seconds: how long those take, or null; wait_at_least: whether this is only a lower
        bound. epochs: a row per epoch with retain_loss (nats), drift, lam, alpha. recall: {epoch,
        rows} of the last finished epoch, rows by group, form and tier, recall 0 to 1. measured:
        {before, after}, the full tables of the original and the unlearned model, null until the run
        is done. gap: {mean, low, high}, recall of popular minus rare facts in all held-out
        rewordings with its 95% interval, -1 to 1, null until then or where a tier is missing;
        by_fact: each fact's recall in these rewordings (0 to 1, null if it was not asked).
        distance: to a model that never read the facts, if there is one, else null. notes: its
        remarks once it is done.

        Errors: no such run (a public Space deletes old ones).
        """
        its_run = self._run(run, shown_run)
        now, _, events = seen_of(self.worker, run, "ready")
        # a run's last event is written shortly before its place in the queue is free
        waiting = None if now.state == "done" else self.worker.wait_of(its_run)
        left = left_of(events) if now.state in ("running", "elsewhere") else None
        measured = [event for event in events if isinstance(event, Measured)]
        quick = [event for event in measured if not event.full]
        full = [event for event in measured if event.full]
        after = full[-1] if len(full) > 1 else None
        done = [event for event in events if isinstance(event, RunDone)]
        compared = [event for event in events if isinstance(event, ComparedToOracle)]
        return {
            "run": run,
            "state": now.state,
            "label": now.label,
            "detail": now.detail,
            "percent": now.percent,
            "left": {**asdict(left), "text": left.text} if left else None,
            "ahead": waiting.ahead if waiting else None,
            "wait_seconds": waiting.seconds if waiting else None,
            "wait_at_least": waiting.at_least if waiting else False,
            "epochs": [asdict(event.row) for event in events if isinstance(event, EpochDone)],
            "recall": {"epoch": quick[-1].epoch, "rows": list(quick[-1].rows)} if quick else None,
            "measured": {"before": full[0].rows, "after": after.rows} if after else None,
            "gap": asdict(after.gap) if after and after.gap else None,
            "by_fact": after.by_fact if after else (),
            "distance": asdict(compared[0].distance) if compared else None,
            "notes": [note for event in done for note in sentences(event.notes, "program")],
        }

    def frames(self, run: str, after: int = -1) -> dict:
        """Snapshots of each fact while the model forgets: about ten frames in a run of the sandbox,
        available while it runs.

        Args:
            run: its id, or its link.
            after: the last step already received; -1 begins with the first frame.

        Gives {facts, frames, more}: facts are the ids of the facts to forget, retain and holdout,
        in the order of all other lists. A frame is {step, epoch, scores, answers}: step counts
        optimiser steps, 0 is before training. scores: by group, {p, rank}: the probability of each
        right answer (0 to 1) and the rank of its first token (1 is best); forget in every frame; in
        frame 0 and at an epoch's end also reworded (the facts to forget in other words), retain and
        holdout. answers: in these frames, the first 80 characters of the reply to each fact to
        forget (null if it was not asked); in others []. more: whether further frames exist; then
        call again with the last step.

        Errors: no such run.
        """
        its_run, last = self._run(run, shown_run), whole_of("after", after)
        facts, newer = its_run.facts, [frame for frame in its_run.frames() if frame.step > last]
        sizes = (sum(2 * len(one.p) for one in frame.scores.values()) for frame in newer)
        totals = zip(newer, accumulate(sizes))
        sent = [asdict(one) for one, size in totals if size <= NUMBERS or one == newer[0]]
        ids = {group: [fact.id for fact in getattr(facts, group)] for group in FACT_GROUPS}
        return {"facts": ids, "frames": sent, "more": len(sent) < len(newer)}

    def stop(self, run: str) -> dict:
        """Asks a run to stop after its current step; its last finished epoch is kept. Has no effect
        when repeated or when the run has ended.

        Args:
            run: its id.

        Gives {run, stopping}: whether there was something to stop.

        Errors: no such run, or an active one that is shown to everybody.
        """
        its_run = self._run(run)
        if stopping := seen_of(self.worker, its_run.id, "ready")[0].ticking:
            its_run.request_stop()
        return {"run": its_run.id, "stopping": stopping}

    async def probe(self, run: str, prompt: str, gold: str = "") -> dict:
        """Asks the original and the unlearned model one prompt, greedily. Waits while another run
        trains.

        Args:
            run: its id; it must have finished an epoch.
            prompt: at most 400 characters.
            gold: the right answer if known.

        Gives {prompt, gold, sent, original, unlearned, verdict}: sent is the exact text with the
        chat template; each model has text, top (its likeliest first tokens with their probability)
        and, if a gold answer was given, recall (0 to 1), gold_rank (of the first gold token, 1 is
        best), gold_ranks (of each gold token, given the previous ones) and gold_logprob (nats, the
        whole answer); verdict interprets both replies in words, null without a gold answer.

        Errors: no such run, no finished epoch, an empty or too long prompt, too many questions at
        once.
        """
        usage = self.worker.usage
        its_run, prompt, gold = await offload(usage, self._asked, run, prompt, gold)
        asking = self.worker.ask, its_run, jobs.ask_models, [prompt], [gold]
        (result,) = await answered(usage, *asking)
        return {**asdict(result), "verdict": verdict(result).text if result.gold else None}

    def _asked(self, run: str, prompt: str, gold: str) -> tuple[Run, str, str]:
        """The run that is asked, prompt and right answer. Raises AdaPopError: as `probe`."""
        prompt, gold = text_of("prompt", prompt, inf).strip(), text_of("gold", gold, inf).strip()
        PROMPT.check(max(len(prompt), len(gold)))  # its message names the limit's variable
        its_run = example_of(run) or self._run(run)
        if its_run.last_epoch is None:
            message = "The run has not finished an epoch yet."
            raise RunError(message, "Ask again when its status shows one.")
        if not prompt:
            raise DataError("There is no prompt.", "Type one.")
        return its_run, prompt, gold

    async def tokens(
        self,
        run: str,
        prompt: str,
        gold: str = "",
        begun: str = "",
        earlier: list | None = None,
        beside: list | None = None,
        epoch: int | None = None,
    ) -> dict:
        """Asks several models one question and reads their greedy replies token by token. Waits
        while another run trains.

        Args:
            run: its id; it must have finished an epoch.
            prompt: at most 400 characters.
            gold: the right answer if known.
            begun: the beginning of the answer, which every model continues.
            earlier: the user's earlier turns, each a text, which every model answers first.
            beside: further columns, up to four, ids of runs or "oracle" for a model that never read
                the facts.
            epoch: whose adapter is asked; null for the run's result.

        Gives {prompt, columns}: a column each for the original, the unlearned model and those
        beside, with name, text (the whole reply), begun (how many of its steps were given), said
        (its replies to the earlier turns), gold, verdict (null for the original, or without a gold
        answer), recall, gold_rank, gold_logprob as in probe, and steps, one a token: {token,
        likely, right, parted}. token: {id, text, shares, end}; its share is its probability (0 to
        1) in each column, in their order, null where the vocabulary is another. likely: the
        likeliest tokens there, in the same form. right: in each column the probability that the
        right answer's first token comes next. parted: whether the models part here.

        Errors: as probe; no such epoch, no oracle, a run beside that is not yours.
        """
        inputs = run, prompt, gold, begun, earlier, beside, epoch
        text, inspection = await self._of_columns(jobs.inspect_columns, inputs)
        return {"prompt": text, "columns": inspection.rows}

    async def samples(
        self,
        run: str,
        prompt: str,
        gold: str = "",
        begun: str = "",
        earlier: list | None = None,
        beside: list | None = None,
        epoch: int | None = None,
        count: int = Drawing.count,
        temperature: float = Drawing.temperature,
        top_p: float = Drawing.top_p,
        seed: int = Drawing.seed,
        length: int = Drawing.most,
    ) -> dict:
        """Draws several replies of several models to one question. Waits while another run trains.

        Args:
            run: its id; it must have finished an epoch.
            prompt: at most 400 characters.
            gold: the right answer if known.
            begun: the beginning of the answer, which every model continues.
            earlier: the user's earlier turns, as in tokens.
            beside: further columns, as in tokens.
            epoch: whose adapter is asked; null for the run's result.
            count: replies of each model, 1 to 64.
            temperature: divides the logits, above 0 up to 5.
            top_p: samples come from the likeliest tokens that together reach it, above 0 up to 1.
            seed: the same for every model.
            length: most tokens of a reply, 1 to 256.

        Gives {prompt, columns}: a column each as in tokens, with name, greedy (the likeliest
        reply), greedy_gave_away, texts, gave_away (whether each text gives the answer away, [] and
        null without a gold answer) and share, {mean, low, high} of those that do with its 95%
        interval, or null.

        Errors: as tokens; a number out of its range.
        """
        numbers = [whole_of("count", count), temperature, top_p]
        numbers += [whole_of("seed", seed), whole_of("length", length)]
        for name, value in (("temperature", temperature), ("top_p", top_p)):
            if type(value) not in (int, float):
                raise ConfigError(f"{name} is {quoted(value)}.", "It must be a number.")
        inputs = run, prompt, gold, begun, earlier, beside, epoch
        text, drawn = await self._of_columns(jobs.sample_columns, inputs, Drawing(*numbers))
        return {"prompt": text, "columns": [one.row for one in drawn]}

    async def _of_columns(self, job: Callable, inputs: tuple, *more: Drawing) -> tuple[str, Any]:
        """The prompt, and what a job gives for it. inputs: as for `_columns`."""
        usage = self.worker.usage
        its_run, question, chosen = await offload(usage, self._columns, *inputs)
        asking = self.worker.ask, its_run, job, question, chosen, *more
        return question.prompt, await answered(usage, *asking, beside=chosen)

    def _columns(
        self, run: str, prompt: str, gold: str, begun: str, earlier: object, beside: object, epoch
    ) -> tuple[Run, Question, tuple[Chosen, ...]]:
        """The run that is asked, the question and its columns, from an endpoint's values."""
        its_run, prompt, gold = self._asked(run, prompt, gold)
        lists = {"earlier": earlier or [], "beside": beside or []}
        for name, value in lists.items():
            if not isinstance(value, list):
                raise ConfigError(f"{name} is {quoted(value)}.", "It must be a list of texts.")
        turns = [text_of("an earlier turn", turn, inf).strip() for turn in lists["earlier"]]
        begun = text_of("begun", begun, inf).strip()
        PROMPT.check(max(len(begun), len("".join(turns))))
        others = []
        for other in lists["beside"]:
            if other == ORACLE:
                others.append(("Never knew", None))
                continue
            other_run = example_of(other) or self._run(other)
            others.append((described_run(other_run), other_run))
        at = None if epoch is None else whole_of("epoch", epoch)
        question = Question(prompt, gold, begun, earlier=tuple(filter(None, turns)))
        return its_run, question, columns_of(its_run, others, at)

    def report(
        self, run: str, title: str = "", redacted: bool = False, by: str = ""
    ) -> gr.FileData:
        """The run as a zip file: a report that opens offline, its tables as CSV, its frames, the
        configuration, the facts, the command that repeats the run, and the resulting adapter.

        Args:
            run: its id, or its link; it must have finished an epoch.
            title: of the report.
            redacted: facts by salted hashes, no text of theirs, no prompt and no reply; without the
                adapter and the command that repeats the run.
            by: who made the run, a line of the report.

        Gives a file.

        Errors: no such run, no finished epoch, or a title or name that says a redacted text.
        """
        its_run = self._run(run, shown_run)
        if its_run.last_epoch is None:
            raise RunError("There is nothing to report yet.", "Let the run finish its first epoch.")
        if not isinstance(redacted, bool):
            raise ConfigError(f"redacted is {quoted(redacted)}.", "It must be true or false.")
        title, by = text_of("title", title, MOST_TITLE), text_of("by", by, MOST_TITLE)
        out = archive_of(its_run, title, redacted, by)
        file = gr.FileData(path=str(out), orig_name=out.name, mime_type="application/zip")
        return file.model_dump()

    def _run(self, name: object, access: Callable[[Worker, object], Run | None] = known_run) -> Run:
        run = access(self.worker, name)
        if run is None:
            message = f"There is no run {quoted(name)} here."
            raise RunError(message, "Start one; old runs are deleted after a while.")
        return run
