"""Our recorded results (several seeds per method), shown beside a user's runs. No torch.

`python -m adapop bench main` wrote the rows, one per run; two files have three seeds each. Only
runs on the sandbox under an unchanged preset count: rows with another setting, other scores or
another world are left out. `bench tuned` prints the rows of every method with the settings that its
search chose, which commit 1e770910 made. If a row has results on the test split of the questions,
these are shown."""

import csv
import json
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

FOLDER = ASSETS / "recorded"
FILES = FOLDER / "main.csv", FOLDER / "again" / "main.csv"  # three seeds each
TUNED_FILE, PEOPLE_FILE = FOLDER / "tuned.csv", FOLDER / "tuned-people.csv"
COMMAND = "python -m adapop bench main --seeds 6"
TUNED_COMMAND = "python -m adapop bench tuned"
ATTACK = "attack "  # prefix of a column: recall under the attack of this name
TEST = "test_"  # prefix of a column: results on the test split, which chose no setting
# The arm of `bench tuned` that preset "tuned" is, where that is not the method's own: with α moving
# AdaPop's search found nothing good.
TUNED_ARMS = {"adapop": "AdaPop, α fixed"}
UNTOUCHED = {"scores": "given", "anchors": "paper", "world": "", "quick": "0"}
# Bounds of a recall, of a difference of two recalls, and of any number.
SHARE, SIGNED, ANY = (0.0, 1.0), (-1.0, 1.0), (-math.inf, math.inf)
# Bounds of other metrics; changes have none.
LIMITS = {"kl": (0.0, math.inf), "hidden_cosine": SIGNED}

Row = Mapping[str, str]


@dataclass(frozen=True)
class Recorded:
    """Runs of a method under a preset that differ only in their seed. rows: of the finished runs; a
    missing column was not measured. failed: how many runs did not finish."""

    method: str
    preset: str
    rows: tuple[Row, ...]
    failed: int = 0

    @property
    def title(self) -> str:
        return title_of(self.method, self.preset)

    @property
    def command(self) -> str:
        return TUNED_COMMAND if self.preset == TUNED else COMMAND

    @property
    def configs(self) -> list[RunConfig]:
        return [RunConfig.from_json(row["config"]) for row in self.rows]

    @property
    def seeds(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{number_of(len(self.rows), 'seed')}{failed}"

    def recall(self, group: str, form: str, tier: str) -> Interval | None:
        """Final recall over seeds, its interval clipped to [0, 1]. None if not measured."""
        name = "utility" if group == "utility" else f"{group}_{form}_{tier}"
        return _interval([_cell(row, name) for row in self.rows], SHARE)

    @property
    def gap(self) -> Interval | None:
        """The gap over seeds, see `Measured.gap`; on the test split alone, if there is one."""
        return self.lead(REWORDED)

    def lead(self, form: str) -> Interval | None:
        """Recall of popular minus rare facts in one form, paired by seed, [-1, 1]; None without
        both tiers."""
        leads = []
        for row in self.rows:
            ends = [_cell(row, f"forget_{form}_{tier}") for tier in ("popular", "rare")]
            leads += [float(ends[0]) - float(ends[1])] if all(ends) else []
        return _interval(leads, SIGNED)

    def worst_attack(self, tier: str) -> Attack | None:
        """The attack with the highest mean recall over seeds of the facts to forget, without
        multiple choice; None for a single tier, and for rows without attacks (only `bench tuned`
        has them)."""
        attacks = []
        for name in self.rows[0] if self.rows and tier == "all" else ():
            kind = name.removeprefix(ATTACK)
            if kind not in (name, CHOICE):
                recall = _interval([row.get(name) for row in self.rows], SHARE)
                attacks += [Attack(kind, recall)] if recall else []
        return max(attacks, key=lambda one: one.recall.mean, default=None)

    def standing(self, state: str, tier: str) -> Interval | None:
        """The share of a tier's facts to forget in a state of `distance.STATES`, asked in other
        words, over the seeds that were measured against the oracle; None without such seeds."""
        (name,) = (name for name, named in STATE_NAMES.items() if named == state)
        return _interval([row.get(f"oracle_{name}_{tier}") for row in self.rows], SHARE)

    def second_guess(self, tier: str) -> Interval | None:
        """The share of facts to forget with the right answer as first or second guess."""
        return _interval([row.get(f"{TEST}forget_top2_{tier}") for row in self.rows], SHARE)

    def value(self, group: str, field: str) -> Interval | None:
        """Another metric of a group's trained questions, over seeds."""
        values = [row.get(f"{group}_all_{field}") for row in self.rows]
        return _interval(values, LIMITS.get(field, ANY))


@lru_cache(maxsize=1)
def results() -> tuple[Recorded, ...]:
    """Recorded results of unchanged presets, in the order of the first file, with the seeds of all
    files. Raises ConfigError: a row was written by a version with settings that this one does not
    know."""
    rows = []
    for row in (row for path in FILES for row in rows_of(path)):
        plain = all(row[name] == value for name, value in UNTOUCHED.items())
        if plain and _is_preset(json.dumps(json.loads(row["config"]) | {"seed": 0})):
            rows.append(row)
    return _grouped(rows)


@lru_cache(maxsize=1)
def tuned() -> tuple[Recorded, ...]:
    """Recorded results of each method with the settings of its search, in the order of the file."""
    titles = {name: method.title for name, method in METHODS.items()} | TUNED_ARMS
    return _grouped([row for row in _tuned_rows(TUNED_FILE) if row["arm"] == titles[row["method"]]])


@lru_cache(maxsize=2)
def tuned_arms(arms: tuple[str, ...], path: Path = TUNED_FILE) -> tuple[Recorded, ...]:
    """The arms of the searches with these names, variants included, in this order."""
    rows = _tuned_rows(path)
    return tuple(_grouped([row for row in rows if row["arm"] == arm])[0] for arm in arms)


def _tuned_rows(path: Path) -> list[Row]:
    return [{**row, "preset": TUNED} for row in rows_of(path) if row["quick"] == "0"]


def rows_of(path: Path) -> list[Row]:
    """Rows of a file; of rows with the same key only the last is returned."""
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
    """A cell, from the test split if the row has it."""
    return row.get(TEST + name) or row.get(name)


def commits(results: Sequence[Recorded]) -> list[str]:
    """The commits that made these results, without duplicates."""
    return sorted({row["commit"] for one in results for row in one.rows})


def sets(results: Sequence[Recorded]) -> set[str]:
    """The first 16 hex digits of the SHA-256 of each set on which the results were measured."""
    return {row["facts"] for one in results for row in one.rows}


def is_untouched(config: RunConfig) -> bool:
    """Whether a run has its preset's settings. Ignores seed, missing scores, measuring, frames, and
    `last_step`: with 256 facts and a batch of 16 the last step is full."""
    return set(changed(config)) <= {"seed", "missing_score", "frames", "measure", "last_step"}


@lru_cache
def _is_preset(config: str) -> bool:
    """`is_untouched`, of a configuration as JSON; hundreds of rows have one of a few dozen."""
    return is_untouched(RunConfig.from_json(config))


def _interval(
    values: Sequence[str | float | None], limits: tuple[float, float] = ANY
) -> Interval | None:
    """Mean over seeds with its 95% interval (Student's t, if several), clipped to the limits."""
    interval = summary([float(value) for value in values if value not in (None, "")])
    return interval and interval.within(*limits)
