"""Events and results as plain text that cannot control a terminal."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from adapop.errors import AdaPopError, DataError, did_you_mean
from adapop.facts.fact import TIERS, FactSet, Problem
from adapop.facts.text import UNSEEN
from adapop.remark import sentences
from adapop.report.distance import distance_sentence
from adapop.report.table import signed
from adapop.report.tables import recall_table
from adapop.runs.pace import Left
from adapop.runs.result import result_of
from adapop.runs.run import Run
from adapop.training import events

if TYPE_CHECKING:
    from adapop.probes.inspection import Samples
    from adapop.probes.prompts import Asked

PROBLEMS_SHOWN = 10
# What a terminal executes or hides: control characters except line end and tab, characters that
# change the direction of text, other line ends, and surrogates, which cannot be printed.
UNSAFE = re.compile(f"{UNSEEN.pattern}|[\r\u2028\u2029\ud800-\udfff]")


class _Help(argparse.HelpFormatter):
    """Names the default of each option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        if action.default in (None, False, "", argparse.SUPPRESS) or "default" in text:
            return text
        return f"{text}; default %(default)s"


class Parser(argparse.ArgumentParser):
    """A parser whose messages are made `visible`, because its errors quote what was typed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, formatter_class=_Help, allow_abbrev=False, **options)

    def parse_known_args(
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse, but an unknown option is refused here, where its command's are known."""
        parsed, rest = super().parse_known_args(args, namespace)
        for word in rest:
            if word.startswith("--") and (
                near := did_you_mean(word.partition("=")[0], self._option_string_actions)
            ):
                self.error(f"unrecognized arguments: {word}. {near.strip()}")
        return parsed, rest

    def _print_message(self, message: str, file: TextIO | None = None) -> None:
        if message:
            say(message, file=file or sys.stderr, end="")


def say(
    *texts: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Prints like `print`, but escapes terminal control characters: the text may quote a fact, a
    model or a file's name. The escapes are JSON's, so a line of JSON keeps its value."""
    print(visible(sep.join(map(str, texts))), end=end, file=file, flush=flush)


def say_json(content: Any) -> None:
    """Prints an object as a line of JSON."""
    say(json.dumps(content, ensure_ascii=False, allow_nan=False), flush=True)


def visible(text: str) -> str:
    """The text, with control and invisible characters escaped as \\uXXXX."""
    return UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def overwritten(text: str, file: TextIO | None = None) -> None:
    """Prints a line, by default to standard error, that the next overwrites on a terminal."""
    file = file or sys.stderr
    if file.isatty():
        print(f"\r{visible(text)}\033[K\r", end="", file=file, flush=True)


def event_text(event: events.Event) -> str | None:
    """An event as one line of text; None if it is of no interest to a reader."""
    if isinstance(event, events.RunStarted):
        again = f", resumed after epoch {event.resumed_from}" if event.resumed_from else ""
        if not event.steps:
            counted = f"{event.forget} facts to forget of {event.facts!r}, {event.retain} to retain"
            return f"run {event.run}\nadopted beside {event.model}: {counted}; nothing is trained"
        places = f"retain {event.retain}, hold out {event.holdout}"
        return (
            f"run {event.run}{again}\n{event.method} on {event.model}: forget {event.forget} facts "
            f"of {event.facts!r}, {places}; {event.epochs} epochs of {event.steps} steps"
        )
    if isinstance(event, events.EpochDone):
        drift = f"drift {event.drift:.3f} (from start {event.drift_from_start:.3f})"
        loss = f"retain loss {event.retain_loss:.3f} nats"
        return f"epoch {event.epoch}  {loss}  {drift}  λ {event.lam:.3f}  α {event.alpha:.3f}"
    if isinstance(event, events.Measured) and not event.full:
        names = {"direct": "as trained", "reworded": "first rewording"}  # the final table has all
        forms = [f"{name} {_tiers(event, 'forget', form)}" for form, name in names.items()]
        recall = event.recall("retain")
        retained = "" if recall is None else f"  retain set {recall:.2f}"
        in_tiers = any(event.recall("forget", tier=tier) is not None for tier in TIERS)
        tiers = "rare/middle/popular  " * in_tiers
        return f"         recall {tiers}{'  '.join(forms)}{retained}"
    if isinstance(event, events.Measuring):
        whose = "the unlearned model" if event.epoch else "the original model"
        return f"measuring {whose}: {event.asked:,} of {event.of:,} questions"
    if isinstance(event, events.Teaching):
        done = f"{event.step:,} of {event.steps:,} steps"
        return f"fine-tuning first: epoch {event.epoch} of {event.epochs}, {done}"
    if isinstance(event, events.Taught):
        return "\n".join(sentences(event.notes, reader="command"))
    if isinstance(event, events.RunStopped):
        why = ": its time was used up" if event.out_of_time else ""
        return f"stopped{why}; epoch {event.epoch} is kept"
    if isinstance(event, events.RunFailed):
        return f"failed: {event.message} {event.fix}"
    if isinstance(event, events.RunDone):
        return f"done in {event.seconds:.1f} s, loading and fine-tuning not counted"
    return None


def step_text(event: events.StepDone, steps: int, left: Left | None = None) -> str:
    """The progress line of a step. left: time that the run still needs, None if unknown."""
    position = f"epoch {event.epoch}  step {event.step}/{steps}  forget nll {event.nll_forget:.2f}"
    return f"{position}  {left.text}" if left else position


def result_text(run: Run) -> str:
    """A run's result: recall before and after, the controller's values, the run's remarks."""
    before, after, epochs = run.measured(before=True), run.measured(), run.epochs()
    done = [event for event in run.events() if isinstance(event, events.RunDone)]
    compared = [event for event in run.events() if isinstance(event, events.ComparedToOracle)]
    result = result_of(run)
    outcome = result.remark if result else None  # stands at the end, and not among the notes too
    remarks = [remark for event in done[-1:] for remark in event.notes if remark != outcome]
    notes = [f"note: {note}" for note in sentences(remarks, reader="command")]
    if before is None or after is None:
        return "\n".join(["This run has no final measurement.", *notes])
    lines = ["", recall_table(before, after).as_text()]
    if after.gap:
        lines.append(f"gap: {signed(after.gap)}, popular minus rare facts, asked in other words")
    lines.append("")
    lines += [f"{distance_sentence(event.distance)}.\n" for event in compared]
    columns = {"λ by epoch:": "lam", "drift by epoch:": "drift", "from start:": "drift_from_start"}
    for name, column in columns.items() if epochs else ():
        values = "  ".join(f"{getattr(row, column):.3f}" for row in epochs)
        lines.append(f"{name:<15} {values}")
    return "\n".join([*lines, *notes, *([f"\nresult: {outcome}"] if outcome else [])])


def asked_text(replies: Asked) -> str:
    """A prompt with both answers."""
    lines = [f"prompt     {replies.prompt}"]
    lines += [f"gold       {replies.gold}"] if replies.gold else []
    for name, answer in (("original", replies.original), ("unlearned", replies.unlearned)):
        stand = ""
        if answer.gold_rank is not None:
            ranks = " ".join(map(str, answer.gold_ranks))
            chance = f"{answer.gold_logprob:.2f} nats"
            stand = f"   recall {answer.recall:.2f}, right answer's rank by token {ranks}, {chance}"
        lines.append(f"{name:<10} {answer.text}{stand}")
    return "\n".join(lines)


def strip_text(row: dict[str, Any]) -> str:
    """One model's reply, a line a token. row: of `Inspection.rows`."""
    verdict = f"   {row['verdict']}" if row["verdict"] else ""
    lines = [f"\n{row['name']}: {row['text']}{verdict}"]
    lines += [f"{'token':<16}{'original, unlearned':<24}{'right answer next':<24}likeliest"]
    for place, step in enumerate(row["steps"]):
        token, likely = step["token"], (one["text"] for one in step["likely"])
        text = "(end)" if token["end"] else token["text"]
        text += " (given)" if place < row["begun"] else " (differ)" if step["parted"] else ""
        shares, right = (_chances(values) for values in (token["shares"], step["right"]))
        lines.append(f"{text:<16}{shares:<24}{right:<24}{' | '.join(likely)}")
    return "\n".join(lines)


def _chances(values: Sequence[float | None]) -> str:
    return "  ".join("–" if value is None else f"{100 * value:.1f}%" for value in values)


def samples_text(samples: Samples) -> str:
    """One model's samples, equal ones counted, after its likeliest reply."""
    leaks, share = dict(zip(samples.texts, samples.gave_away)), samples.share
    counted = Counter(samples.texts).most_common()
    lines = [f"\n{samples.name}: {samples.greedy}"]
    if share:
        lines[0] += f"   {100 * share.mean:.0f}% of {len(samples.texts)} give the answer away (*)"
        lines[0] += f" (95% interval {100 * share.low:.0f}% to {100 * share.high:.0f}%)"
    return "\n".join(
        [*lines, *(f"{count:>4}  {text}{' *' * leaks.get(text, False)}" for text, count in counted)]
    )


def error_text(error: AdaPopError) -> str:
    """An error with its fix and, for a file, its first bad rows."""
    problems = error.problems if isinstance(error, DataError) else ()
    lines = [f"error: {error.message}", *([f"  {error.fix}"] if error.fix else [])]
    return "\n".join([*lines, *problem_lines(problems)])


def ended_early(error: BaseException) -> int:
    """Prints why work with saved results ended early. Returns the exit status."""
    say(f"\nerror: {error or 'interrupted'}", file=sys.stderr)
    return 130 if isinstance(error, KeyboardInterrupt) else 2


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """The first problems of a file, one per line."""
    lines = [f"  {problem}" for problem in problems[:PROBLEMS_SHOWN]]
    hidden = len(problems) - PROBLEMS_SHOWN
    return lines + ([f"  … and {hidden:,} more rows"] if hidden > 0 else [])


def _tiers(measured: events.Measured, group: str, form: str) -> str:
    """Recall of rare, middle and popular facts; of all, where none is in a tier."""
    values = [measured.recall(group, form, tier) for tier in TIERS]
    if values == [None] * len(TIERS):
        values = [measured.recall(group, form)]
    return "/".join("–" if value is None else f"{value:.2f}" for value in values)


def print_notes(facts: FactSet, as_json: bool) -> None:
    """Prints dropped rows and, unless the output is JSON, the notes."""
    if facts.problems:
        count = len(facts.problems)
        say(f"{count:,} row{' was' if count == 1 else 's were'} dropped:", file=sys.stderr)
        say("\n".join(problem_lines(facts.problems)), file=sys.stderr)
    if not as_json:
        for note in sentences(facts.notes, "command"):
            say(f"note: {note}", file=sys.stderr)
