"""Our recorded results (several seeds per method), shown beside a user's runs. No torch.

`python -m adapop bench main` wrote the rows, a run a line. Only runs on the sandbox under a preset
as it is count: a row with any other setting, other scores or another world is left out. `bench
tuned` wrote those of every method at the settings that its search chose. Where a row has the test
half of the questions, that half is shown.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from adapop.config.methods import METHODS
from adapop.config.presets import TUNED
from adapop.config.run import RunConfig
from adapop.errors import number_of
from adapop.paths import ASSETS
from adapop.probes.distance import STATE_NAMES
from adapop.probes.intervals import Interval, summary
from adapop.probes.prompts import CHOICE, REWORDED
from adapop.report.record import Attack, title_of
from adapop.report.settings import changed

FILE = ASSETS / "recorded" / "main.csv"
TUNED_FILE, PEOPLE_FILE = FILE.with_name("tuned.csv"), FILE.with_name("tuned-people.csv")
COMMAND, TUNED_COMMAND = "python -m adapop bench main", "python -m adapop bench tuned"
ATTACK = "attack "  # before the name of an attack: the column of its recall
TEST = "test_"  # before the name of a column: of the half of the questions that chose no setting
UNTOUCHED = {"scores": "given", "anchors": "paper", "world": "", "quick": "0"}
# bounds of a recall, of a difference of two recalls, and of any number
SHARE, SIGNED, ANY = (0.0, 1.0), (-1.0, 1.0), (-math.inf, math.inf)
# bounds of other metrics; changes have none
LIMITS = {"kl": (0.0, math.inf), "hidden_cosine": SIGNED}

Row = Mapping[str, str]


@dataclass(frozen=True)
class Recorded:
    """Runs of a method under a preset that differ only by seed. rows: finished runs. failed: how
    many did not finish. A missing column was not measured."""

    method: str
    preset: str
    rows: tuple[Row, ...]
    failed: int = 0

    @property
    def title(self) -> str:
        """The method with its preset, in a few words."""
        return title_of(self.method, self.preset)

    @property
    def command(self) -> str:
        """What made it."""
        return TUNED_COMMAND if self.preset == TUNED else COMMAND

    @property
    def configs(self) -> list[RunConfig]:
        """The settings of each of its runs."""
        return [RunConfig.from_json(row["config"]) for row in self.rows]

    @property
    def seeds(self) -> str:
        """How many seeds there are, in words."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{number_of(len(self.rows), 'seed')}{failed}"

    def recall(self, group: str, form: str, tier: str) -> Interval | None:
        """Final recall over seeds, its interval cut at 0 and 1. None where nobody measured it."""
        name = "utility" if group == "utility" else f"{group}_{form}_{tier}"
        return _interval([_cell(row, name) for row in self.rows], SHARE)

    @property
    def gap(self) -> Interval | None:
        """The gap over seeds, as `Measured.gap` has it of a run; None without both tiers. Where
        half of the rewordings chose settings, the other half alone is held out."""
        return self.lead(REWORDED)

    def lead(self, form: str) -> Interval | None:
        """Recall of popular minus rare facts in one form, seed by seed; None without both tiers."""
        leads = []
        for row in self.rows:
            ends = [_cell(row, f"forget_{form}_{tier}") for tier in ("popular", "rare")]
            leads += [float(ends[0]) - float(ends[1])] if all(ends) else []
        return _interval(leads, SIGNED)

    def worst_attack(self, tier: str) -> Attack | None:
        """The attack that gets most facts to forget out, over seeds: of all tiers together, which
        rows of `bench tuned` alone have, else None. A multiple choice is none: it can be
        guessed."""
        attacks = []
        for name in self.rows[0] if self.rows and tier == "all" else ():
            kind = name.removeprefix(ATTACK)
            if kind not in (name, CHOICE):
                recall = _interval([row.get(name) for row in self.rows], SHARE)
                attacks += [Attack(kind, recall)] if recall else []
        return max(attacks, key=lambda one: one.recall.mean, default=None)

    def standing(self, state: str, tier: str) -> Interval | None:
        """The share of a tier's facts to forget in a state of `distance.STATES`, asked in other
        words, over the seeds that were measured against the oracle; None without one."""
        (name,) = (name for name, named in STATE_NAMES.items() if named == state)
        return _interval([row.get(f"oracle_{name}_{tier}") for row in self.rows], SHARE)

    def second_guess(self, tier: str) -> Interval | None:
        """The share of facts to forget whose right answer is the first or second guess, over seeds;
        None where nobody measured it."""
        return _interval([row.get(f"{TEST}forget_top2_{tier}") for row in self.rows], SHARE)

    def value(self, group: str, field: str) -> Interval | None:
        """Another metric of a group's trained questions, over seeds."""
        values = [row.get(f"{group}_all_{field}") for row in self.rows]
        return _interval(values, LIMITS.get(field, ANY))


@lru_cache(maxsize=1)
def results() -> tuple[Recorded, ...]:
    """Recorded results of unchanged presets, in the order of the file. Raises ConfigError: a row
    was written by a version with settings that this one does not know."""
    return _grouped([row for row in rows_of(FILE) if _untouched(row)])


@lru_cache(maxsize=1)
def tuned() -> tuple[Recorded, ...]:
    """Recorded results of each method's searched settings, in the order of the file."""
    rows = _tuned_rows(TUNED_FILE)
    return _grouped([row for row in rows if row["arm"] == METHODS[row["method"]].title])


@lru_cache(maxsize=2)
def tuned_arms(arms: tuple[str, ...], path: Path = TUNED_FILE) -> tuple[Recorded, ...]:
    """Arms of those searches by name, including variants, in that order."""
    rows = _tuned_rows(path)
    return tuple(_grouped([row for row in rows if row["arm"] == arm])[0] for arm in arms)


def _tuned_rows(path: Path) -> list[Row]:
    return [{**row, "preset": TUNED} for row in rows_of(path) if row["quick"] == "0"]


def rows_of(path: Path) -> list[Row]:
    """Rows of a file; later ones replace earlier ones of the same key."""
    with open(path, encoding="utf-8", newline="") as file:
        return list({row["key"]: row for row in csv.DictReader(file)}.values())


def _grouped(rows: Sequence[Row]) -> tuple[Recorded, ...]:
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["method"], row["preset"]), []).append(row)
    results = []
    for key, own in grouped.items():
        finished = tuple(row for row in own if not row["failed"])
        results.append(Recorded(*key, finished, len(own) - len(finished)))
    return tuple(results)


def _cell(row: Row, name: str) -> str | None:
    """A cell, on the test half where the row has it."""
    return row.get(TEST + name) or row.get(name)


def commits(results: Sequence[Recorded]) -> list[str]:
    """Commits that measured these results, without duplicates."""
    return sorted({row["commit"] for one in results for row in one.rows})


def sets(results: Sequence[Recorded]) -> set[str]:
    """The first half of the hashes of the facts these were measured on."""
    return {row["facts"] for one in results for row in one.rows}


def is_untouched(config: RunConfig) -> bool:
    """Whether a run has its preset's settings. Seed, handling of missing scores, measuring, frames
    and the last step (full anyway: 256 facts by 16) may differ."""
    return set(changed(config)) <= {"seed", "missing_score", "frames", "measure", "last_step"}


def _untouched(row: Row) -> bool:
    plain = all(row[name] == value for name, value in UNTOUCHED.items())
    return plain and is_untouched(RunConfig.from_json(row["config"]))


def _interval(
    values: Sequence[str | float | None], limits: tuple[float, float] = ANY
) -> Interval | None:
    """Mean and 95 % interval of Student's t over seeds; a single seed has no interval."""
    interval = summary([float(value) for value in values if value not in (None, "")])
    return interval and interval.within(*limits)
