"""A run is a folder of JSON and safetensors, which survives reload, stop and crash. Torch-free.

RUN/config.json        RunConfig
RUN/facts.jsonl        the facts with their own scores and tiers
RUN/run.json           name of the set, its hash, notes, tiers, library versions
RUN/model.json         which weights it began with: see `adapop.runs.weights`
RUN/prompting.json     how a real model is asked: see `adapop.probes.prompting`
RUN/betas.json         exponent of each forget fact as used (shuffled or inverted scores show here)
RUN/events.jsonl       the run's events, append-only
RUN/frames.jsonl       how likely each answer is, over time: see `adapop.training.frames`
RUN/sha256.txt         hashes of the other files, compared when they are read: see `adapop.sums`
RUN/epoch-K/           a checkpoint: adapter (peft, safetensors), optimiser, controller row
RUN/probes.jsonl       the results of probing one epoch; the first line names it
RUN/questions.jsonl    questions of one's own with the replies: see `adapop.runs.questions`
RUN/ways.jsonl         facts asked in all ways with the replies: see there
RUN/recovery-NAME.json the result of a recovery probe, and its epoch
RUN/lock               held by the process that works on the run, until it ends
RUN/queued             held by the app in whose queue the run waits
RUN/stop               exists once a stop was requested
RUN/shared             exists if the run is shown to every visitor; it cannot be stopped then
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from adapop import sums
from adapop.assets import as_kind, parse_json
from adapop.config.run import RunConfig
from adapop.errors import RunError
from adapop.facts.fact import FactSet
from adapop.facts.tiers import ON_SCALE
from adapop.probes.prompting import Prompting
from adapop.probes.prompts import NotApplicable, ProbeRow
from adapop.runs import files, lock
from adapop.runs.inputs import ABOUT, BETAS, CONFIG, FACTS, About, write_inputs
from adapop.runs.log import events_of, frames_of
from adapop.runs.rows import table_of
from adapop.training.events import (
    TERMINAL,
    EpochDone,
    Event,
    Measured,
    RunFailed,
    StepDone,
    full_measurement,
    to_json,
)
from adapop.training.frames import Frame

FRAMES, PROMPTING = "frames.jsonl", "prompting.json"
EPOCH = re.compile("epoch-([0-9]{1,9})")
# Bounded, because it is searched for in texts of any length.
RUN_ID = re.compile("[a-z-]{1,40}-[0-9a-f]{16}")


def runs_root() -> Path:
    """Where runs live unless told otherwise: $ADAPOP_RUNS, or .adapop/runs in the home folder."""
    return Path(os.environ.get("ADAPOP_RUNS") or Path.home() / ".adapop" / "runs")


@dataclass(frozen=True)
class _Recovery:
    epoch: int | None
    result: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run's folder. Everything is read from the files; only parsed events are kept in memory.

    Every property and method raises RunError if a file is missing or damaged; `config` raises
    ConfigError if its text is invalid."""

    folder: Path
    """Where its files lie; the folder's name is the run's id."""

    @property
    def id(self) -> str:
        """The folder's name, unguessable."""
        return self.folder.name

    @property
    def config(self) -> RunConfig:
        path = self.folder / CONFIG
        with files.reading(path):
            if not path.exists():
                reason = f"{self.folder} is not a run: it has no {CONFIG}."
                raise RunError(reason, "`adapop runs` lists the runs.")
            return RunConfig.from_json(path.read_text(encoding="utf-8"), str(path))

    @property
    def about(self) -> About:
        """The inputs settled when the run was prepared."""
        return files.read_json(self.folder / ABOUT, About)

    @property
    def facts(self) -> FactSet:
        """The facts with their own scores, without facts left out as unknown; see also `betas`."""
        return prompting.facts_of(self.given) if (prompting := self.prompting) else self.given

    @property
    def given(self) -> FactSet:
        """The facts that the run was prepared with."""
        about = self.about
        with files.reading(self.folder / FACTS):
            # Older runs have no tiers: theirs were on the scale.
            tiers = about.tiers or ON_SCALE
            return FactSet.load(self.folder / FACTS, about.facts, about.notes, tiers)

    @property
    def prompting(self) -> Prompting | None:
        """How the model is asked; None for shipped models, and before it is decided."""
        path = self.folder / PROMPTING
        with files.reading(path):
            return Prompting.from_json(sums.checked(path)) if path.exists() else None

    @property
    def reply_tokens(self) -> int:
        """The limit of a reply in tokens."""
        prompting = self.prompting
        return prompting.reply_tokens if prompting else self.config.max_new_tokens

    @property
    def versions(self) -> dict[str, str]:
        """The versions of Python and of each library, as they were when the run was prepared."""
        return self.about.versions

    @property
    def betas(self) -> dict[str, float] | None:
        """Exponent by fact id, None for a method that uses none."""
        path = self.folder / BETAS
        return files.read_json(path, dict[str, float]) if path.exists() else None

    @property
    def last_epoch(self) -> int | None:
        """The newest complete checkpoint, None before the first."""
        names = [path.name for path in self.folder.glob("epoch-*") if path.is_dir()]
        return max((int(name[6:]) for name in names if EPOCH.fullmatch(name)), default=None)

    @property
    def chosen_epoch(self) -> int | None:
        """The epoch whose adapter is the result: the last saved epoch or, if the best is kept, the
        epoch measured in full, once there is one. None before the first."""
        best = self.measured() if self.config.keep == "best" else None
        return best.epoch if best and self.checkpoint(best.epoch).is_dir() else self.last_epoch

    @property
    def state(self) -> str:
        """queued, running, stopping, done, stopped, failed; or interrupted: left by its process."""
        log = self.events()
        if not log:
            return "queued"
        if isinstance(log[-1], TERMINAL):
            return log[-1].kind.removeprefix("run_")
        if not self.locked:
            return "interrupted"
        return "stopping" if self.stop_requested else "running"

    @property
    def stop_requested(self) -> bool:
        return (self.folder / "stop").exists()

    @property
    def locked(self) -> bool:
        """Whether a process of this machine, this one included, works on the run now."""
        return lock.is_held(self.folder)

    @property
    def shared(self) -> bool:
        """Whether the run is shown to every visitor, as an example is."""
        return (self.folder / "shared").exists()

    def share(self) -> None:
        """Shows the run to every visitor from now on."""
        (self.folder / "shared").touch()

    def checkpoint(self, epoch: int) -> Path:
        """Folder of an epoch's checkpoint."""
        return self.folder / f"epoch-{epoch}"

    def events(self) -> list[Event]:
        """The run's events, as one uninterrupted run would have them: see `adapop.runs.log`."""
        return list(events_of(self.folder / "events.jsonl"))

    def frames(self) -> tuple[Frame, ...]:
        """The run's frames so far, in order; empty for a run that records none."""
        return frames_of(self.folder / FRAMES)

    def rows(self, name: str) -> pd.DataFrame:
        """Results as a DataFrame: "steps" (losses, in nats per answer token), "epochs" (the
        controller), "frames" (each fact's probability and rank over time, and the reply where an
        epoch ends), "measured" (means by epoch, group, tier and form), "facts" (each fact with its
        exponent, its recall before and after) or "probes" (each prompt with both replies)."""
        return table_of(self, name)

    def measured(self, before: bool = False) -> Measured | None:
        """The full measurement of the result, or of the original; None until the run is done."""
        return full_measurement(self.events(), before)

    def epochs(self) -> list[EpochDone]:
        """The events with the controller's rows, one per epoch."""
        return [event for event in self.events() if isinstance(event, EpochDone)]

    def append(self, event: Event) -> Event:
        """Writes an event to the log, stamped with the time, and returns it. Raises RunError: the
        event cannot be written; an incomplete line is ignored later."""
        stamped = replace(event, time=time.time())
        # Holders of a link read this too, and must not learn the run's id.
        if isinstance(stamped, RunFailed):
            message, fix = (text.replace(self.id, "RUN") for text in (stamped.message, stamped.fix))
            stamped = replace(stamped, message=message, fix=fix)
        # An epoch's events must be on the disk before its checkpoint.
        synced = not isinstance(event, StepDone)
        files.append(self.folder / "events.jsonl", to_json(stamped), synced)
        return stamped

    def save_probes(
        self, rows: Iterable[ProbeRow | NotApplicable], epoch: int | None = None
    ) -> None:
        """Saves probes in place of older ones, whole or not at all. epoch: the one that was probed,
        as another process may have resumed the run since; None for the result's."""
        content = [{"epoch": epoch or self.chosen_epoch}, *map(asdict, rows)]
        lines = [json.dumps(item, ensure_ascii=False, allow_nan=False) for item in content]
        files.keep(self.folder / "probes.jsonl", "\n".join(lines) + "\n")

    def probes(self) -> list[ProbeRow | NotApplicable] | None:
        """The probe results; None if there are none, or the run has since finished another epoch.
        Raises RunError: the file was written by another version."""
        path = self.folder / "probes.jsonl"
        if not path.exists():
            return None
        with files.reading(path, "Probe the run again with this version."):
            lines = sums.checked(path).decode().rstrip("\n").split("\n")
            first, *rows = map(parse_json, lines)
            if not self._is_of_result(first["epoch"]):
                return None
            return [
                as_kind(row, NotApplicable) if "reason" in row else as_kind(row, ProbeRow)
                for row in rows
            ]

    @property
    def probed_at(self) -> int | None:
        """When probe results were last saved, in ns; None if never."""
        path = self.folder / "probes.jsonl"
        return path.stat().st_mtime_ns if path.exists() else None

    def _is_of_result(self, epoch: int | None) -> bool:
        """Whether a probe of an epoch is about the result."""
        return self.chosen_epoch in (None, epoch)  # None: the run came without its checkpoints

    def request_stop(self) -> None:
        """Asks the run to stop after its current step. A second request changes nothing. Raises
        RunError: the run is shown to others too, or its folder cannot be written to."""
        if self.shared:
            reason = f"Run {self.id} is shown to every visitor: nobody can stop it."
            raise RunError(reason, "Start a run of your own.")
        with files.writing(self.folder / "stop"):
            (self.folder / "stop").touch()

    def clear_stop(self) -> None:
        """Withdraws a request to stop, for resuming. Raises RunError: it cannot be deleted."""
        with files.writing(self.folder / "stop"):
            (self.folder / "stop").unlink(missing_ok=True)

    def save_recovery(self, name: str, result: Mapping[str, Any], epoch: int | None = None) -> None:
        """Saves the result of a recovery probe, as `save_probes` does."""
        content = {"epoch": epoch or self.chosen_epoch, "result": result}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        files.keep(self.folder / f"recovery-{name}.json", text)

    def recovery(self) -> dict[str, dict[str, Any]]:
        """Results by the recovery probe's name; not those of another epoch."""
        results = {}
        for path in sorted(self.folder.glob("recovery-*.json")):
            saved = files.read_json(path, _Recovery)
            if self._is_of_result(saved.epoch):
                results[path.stem.removeprefix("recovery-")] = saved.result
        return results


def create_run(
    config: RunConfig,
    facts: FactSet,
    betas: dict | None,
    root: Path | None = None,
    versions: dict | None = None,
) -> Run:
    """A new run folder that holds everything that decides the run's numbers, whole or not at all.
    betas: fact id -> exponent. Raises RunError: the disk is full, or its folder cannot be written
    to."""
    method = re.sub("[^a-z]+", "-", config.method.rpartition(":")[2].lower()).strip("-")[:40]
    folder = (root or runs_root()) / f"{method or 'own'}-{secrets.token_hex(8)}"
    part = folder.with_name(f"{files.UNFINISHED}{folder.name}")
    try:
        write_inputs(part, config, facts, betas, versions or {})
        with files.writing(folder):
            files.move_into_place(part, folder)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            files.clear(part)
        raise
    return Run(folder)


def find_run(name: str, root: Path | None = None) -> Run:
    """A run by id under the root, or by its folder. Raises RunError: there is none, or it holds
    more than files."""
    root = root or runs_root()
    for folder in (root / name, Path(name)):
        if os.path.isfile(folder / CONFIG):  # unlike Path.exists, false for a name no file can have
            files.check_kinds(folder)
            return Run(folder)
    fix = "`python -m adapop runs` lists the runs."
    raise RunError(f"There is no run {name!r} in {root}.", fix)
