"""Rows of an experiment on disk: a CSV file, a line per run, appended as runs end. No torch."""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from adapop.assets import as_kind, parse_json
from adapop.errors import DataError, truncated
from adapop.experiments.plans import SPLITS
from adapop.facts.fact import FACT_GROUPS, TIERS
from adapop.facts.formulas import escaped, plain
from adapop.probes.distance import STATE_NAMES
from adapop.probes.prompts import DIRECT, KINDS, REWORDED
from adapop.report.tables import INTERNAL
from adapop.runs.files import cut_torn_line

TRACES = ("lam", "alpha", "drift", "retain_loss")
# Column -> place of a final recall in the run's full measurement.
RECALLS = {
    "_".join(place): place for place in product(FACT_GROUPS, (DIRECT, REWORDED), ("all", *TIERS))
} | {"utility": ("utility", DIRECT, "all")}
NEIGHBOURS = {f"neighbours_{form}_all": ("neighbours", form, "all") for form in (DIRECT, REWORDED)}
INTERNALS = {
    "_".join(place): place for place in product(FACT_GROUPS, ("all", "rare", "popular"), INTERNAL)
}
# MiniLM cosine by column, if a run measures it.
COSINES = {f"{group}_cosine": (group, DIRECT, "all") for group in FACT_GROUPS}
EPOCHS = tuple(f"epochs_{form}_{tier}" for form in (DIRECT, REWORDED) for tier in ("all", *TIERS))
# Columns of final results on one split of rewordings, holdout facts and utility questions.
ON_SPLIT = (
    *(f"forget_{what}_{tier}" for what in (REWORDED, "top2", "rank") for tier in ("all", *TIERS)),
    *("holdout_direct_all", "holdout_reworded_all", "utility"),
)
BY_SPLIT = tuple(f"{split}_{name}" for split in SPLITS for name in ON_SPLIT)
# Columns of the recovery checks, for items with `recovery` only.
ATTACK_KINDS = tuple(kind for kind in KINDS if kind not in (DIRECT, REWORDED))
ALL_ATTACKS = "attacks"  # name of the form that combines all attacks, see `cells.shares`
RECOVERY_CHECKS = (
    *(f"attack {kind}" for kind in ATTACK_KINDS),
    *"relearn_before relearn_after relearn_control rounded sampled sampled_control".split(),
)
# Columns of the comparison with the oracle, if there is one: shares of the facts to forget, asked
# in other words, in each state, and distances.
ORACLE = (
    *(f"oracle_{name}_{tier}" for name in STATE_NAMES for tier in ("all", *TIERS)),
    *("oracle_kl_forget", "oracle_kl_retain", "oracle_kl_holdout", "forget_quality_log10"),
)
# Columns of the same shares after each epoch, the first before training.
ORACLE_EPOCHS = tuple(
    f"oracle_epochs_{name}_{tier}" for name in STATE_NAMES for tier in ("all", *TIERS)
)
# Column of the retained facts' recall after each epoch, the first before training.
RETAINED = "epochs_retain_direct_all"
LISTS = (*TRACES, *EPOCHS, *ORACLE_EPOCHS, RETAINED, "levels", "levels_direct", "levels_reworded")
JSON_COLUMNS = dict.fromkeys(LISTS, list[float]) | {
    "versions": dict[str, str],
    "shares": dict[str, tuple[float, float, float]],
    "metrics": dict[str, dict[str, dict[str, list[float]]]],
}
ALWAYS = ("quick", "seed", "rate", "seconds", "peak_mb")  # columns filled in for failed runs, too
WHOLE = ("quick", "seed", "peak_mb")  # whole numbers
TEXTS = "key arm method preset scores anchors world failed facts commit config".split()
COLUMNS = (
    *"key arm method preset scores anchors world quick seed rate failed".split(),
    *RECALLS,
    *INTERNALS,
    *TRACES,
    *EPOCHS,
    *"levels levels_direct levels_reworded".split(),
    *"seconds peak_mb facts commit config versions".split(),
    *BY_SPLIT,
    *NEIGHBOURS,
    *RECOVERY_CHECKS,
    "shares",  # for a real model, see `cells.shares`
    *COSINES,
    *ORACLE,
    *ORACLE_EPOCHS,
    "metrics",  # every metric's values of the facts to forget, see `cells.known`
    RETAINED,
)

Row = dict[str, Any]


class Results:
    """The rows of one CSV file by key; if a key occurs twice, the last row counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> dict[str, Row]:
        """All complete rows by key; an incomplete last line is ignored. Empty cells are None,
        in columns of texts "", in columns of JSON []. Raises DataError: the file has other
        columns, or a line is damaged."""
        head, *lines = self._lines()
        if head != [*COLUMNS]:
            message = f"{self.path} was written by another version."
            raise DataError(message, "Move it away, or choose another --out.")
        rows = {}
        for number, line in enumerate(lines, 2):
            with self._line(number):
                rows[line[0]] = _row(line)
        return rows

    def _lines(self) -> list[list[str]]:
        """The cells of all complete lines, the header first. Every line is a row."""
        text = self.path.read_bytes() if self.path.exists() else b""
        whole, lines = text.rpartition(b"\n")[0], []
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            with self._line(number):
                lines += csv.reader([line.decode()])
        return lines or [[*COLUMNS]]

    @contextmanager
    def _line(self, number: int) -> Iterator[None]:
        """A context that turns an error of a line into a DataError with its number, from 1."""
        try:
            yield
        except (ValueError, csv.Error) as error:
            fix = "Delete the line: without --table its run is made again."
            raise DataError(f"{self.path}, line {number} is damaged ({error}).", fix) from None

    def append(self, row: Mapping[str, Any]) -> None:
        """Adds a row; other processes can read it when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        cut_torn_line(self.path)
        line = [_cell(row.get(name, "")) for name in COLUMNS]
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            lines = [line] if file.tell() else [COLUMNS, line]
            csv.writer(file, lineterminator="\n").writerows(lines)


Outcome = TypeVar("Outcome")


def read_lines(path: Path, outcome_of: Callable[[dict], Outcome]) -> list[Outcome]:
    """All complete lines of a study's file, in their order; none if there is no file. outcome_of:
    makes an outcome of a line's JSON. Raises DataError: a line is damaged."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    outcomes = []
    for number, line in enumerate(lines, 1):
        try:
            outcomes.append(outcome_of(parse_json(line)))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            fix = "Delete the line: its run is made again."
            raise DataError(f"{path}, line {number}, is damaged ({error}).", fix) from None
    return outcomes


def append_line(path: Path, outcome: object) -> None:
    """Adds an outcome, a dataclass, to a study's file, after its last complete line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_torn_line(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(outcome, default=vars) + "\n")


def _cell(value: object) -> object:
    """A value as one line of text, since every line is a row."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return " ".join(value.split()) if isinstance(value, str) else escaped(value)


def _row(line: list[str]) -> Row:
    """A CSV line as typed values; for empty cells see `rows`. Raises ValueError: it has too few
    cells or too many, or a cell of another kind than its column."""
    if len(line) != len(COLUMNS):
        raise ValueError(f"it has {len(line)} cells")
    row: Row = {}
    for name, text in zip(COLUMNS, line):
        try:
            row[name] = _value(name, text)
        except (ValueError, OverflowError):
            raise ValueError(f"{name} is {truncated(text)!r}") from None
    return row


def _value(name: str, text: str) -> object:
    if name == "config":
        as_kind(parse_json(plain(text)), dict)
    if name in TEXTS:
        return plain(text)
    if name in JSON_COLUMNS:
        return as_kind(parse_json(text), JSON_COLUMNS[name]) if text else []
    if not text and name not in ALWAYS:
        return None
    number = float(text)
    if not math.isfinite(number) or (name in RECALLS and not 0 <= number <= 1):
        raise ValueError
    return int(number) if name in WHOLE else number
