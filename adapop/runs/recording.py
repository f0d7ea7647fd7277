"""Writes a run's frames while it trains: how likely each right answer is (`training.frames`).

Scores and replies that training or an epoch's measurement already has are reused. Nothing random is
drawn and no weight is touched, so a run's numbers are the same without frames. The processes of a
run share the reading, and the first writes.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from adapop.facts.fact import FactSet
from adapop.model.tokens import Row
from adapop.probes.measure import Quick, confidence
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.runs import files
from adapop.runs.run import FRAMES, Run
from adapop.sums import sealed
from adapop.training import frames
from adapop.training.events import EpochDone, StepDone
from adapop.training.frames import Frame, Scores
from adapop.training.processes import shared
from adapop.training.trainer import Trainer


class Recording:
    """The frames of a run, from one epoch's checkpoint on."""

    def __init__(
        self, run: Run, trainer: Trainer, facts: FactSet, epoch: int, measured: bool = True
    ) -> None:
        """epoch: the run resumes from its checkpoint, 0 for a new run; later frames are dropped.
        measured: whether that epoch's end was recorded; if not, it is recorded again. Raises
        RunError: a frame cannot be written, or earlier frames cannot be read."""
        self.path, self.trainer, earlier = run.folder / FRAMES, trainer, ()
        if epoch:
            earlier = frames.until(run.frames(), epoch * trainer.steps - (not measured))
        if trainer.ranks.first and (earlier or self.path.exists()):
            lines = (f"{sealed(frames.to_json(frame))}\n" for frame in earlier)
            files.write_text(self.path, "".join(lines))
        per_epoch = trainer.config.frames if earlier or not epoch else 0
        self.due = frames.due(trainer.steps, per_epoch)
        self.forget = [fact.id for fact in facts.forget]
        self.rows: dict[str, Sequence[Row]] = {}
        if self.due:
            # Otherwise a frame would score more facts than the measurement does.
            wide = not trainer.config.measure_per_tier
            reworded_facts = [fact for fact in facts.forget if fact.paraphrases] if wide else []
            whole = len(reworded_facts) == len(facts.forget)
            reworded = [replace(fact, question=fact.paraphrases[0]) for fact in reworded_facts]
            rows = trainer.model.rows
            self.rows = {
                "forget": trainer.forget.rows,
                "reworded": rows(reworded if whole else ()),
                "retain": trainer.retain,
                "holdout": rows(facts.holdout if wide else ()),
            }

    def after_step(self, event: StepDone) -> None:
        """Records the facts to forget in the middle of an epoch, if a frame is due at this step."""
        if event.step in self.due and event.step < self.trainer.steps:
            step = (event.epoch - 1) * self.trainer.steps + event.step
            self._write(step, self._scores(["forget"]))

    def after_epoch(self, event: EpochDone, measured: Quick | None) -> None:
        """Records all facts. measured: the epoch's measurement of facts to forget, if any."""
        if self.due:
            replies = measured.answers if measured else {}
            whole = len(replies) == len(self.forget)
            confidence = measured.confidence if whole else {}
            known = {"forget": confidence.get(DIRECT), "reworded": confidence.get(REWORDED)}
            scores = self._scores(list(self.rows), **known, retain=self.trainer.retained)
            first = {name: text[: frames.FIRST] for name, text in replies.items()}
            answers = tuple(map(first.get, self.forget)) if first else ()
            self._write(event.epoch * self.trainer.steps, scores, answers)
            # The frame must be on the disk before the log says that the epoch is saved.
            self.trainer.ranks.led(lambda: files.sync(self.path))

    def _scores(
        self, names: Sequence[str], **known: Sequence[tuple[float, int] | None] | None
    ) -> dict[str, Scores]:
        """The scores of each group that has members. Unknown ones are computed, all together."""
        present = {name: self.rows[name] for name in names if self.rows[name]}
        table = {name: list(known.get(name) or [None] * len(own)) for name, own in present.items()}
        places = [(name, place) for name, rows in present.items() for place in range(len(rows))]
        unknown = [(name, place) for name, place in places if table[name][place] is None]
        with shared(self.trainer.ranks, self.trainer.model):
            read = confidence(self.trainer.model, [present[name][i] for name, i in unknown])
        for (name, place), one in zip(unknown, read):
            table[name][place] = one
        return {name: Scores(*zip(*rows)) for name, rows in table.items()}

    def _write(
        self, step: int, scores: dict[str, Scores], answers: tuple[str | None, ...] = ()
    ) -> None:
        if not all(math.isfinite(p) for group in scores.values() for p in group.p):
            return  # the model is destroyed, which the trainer reports
        line = frames.to_json(Frame(step, step / self.trainer.steps, scores, answers))
        self.trainer.ranks.led(lambda: files.append(self.path, line, synced=False))
