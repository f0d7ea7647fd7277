"""A user's table, read in a `limited_process` where it is large. That process prints JSON lines:
the column names, the set or the error, then each fact."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Semaphore

from adapop.assets import as_kind
from adapop.errors import DataError, ScoresError
from adapop.facts import limited_process
from adapop.facts.fact import FactSet, Problem
from adapop.facts.files import FileTable, read_table
from adapop.facts.forms import guessed
from adapop.facts.tables import PARQUET, ZIP
from adapop.facts.tiers import Tiers
from adapop.remark import Remark

SMALL = 50_000  # bytes of a text that is read in less time than a process takes to start
MEGABYTES, SECONDS = 1_024, 30
# processes at once: each may take `MEGABYTES`, and a visitor may have two events at work
READERS = Semaphore(4)
MOST_BYTES = 256_000_000  # most that a reader may print
ERRORS = {kind.__name__: kind for kind in (DataError, ScoresError)}


@dataclass(frozen=True)
class DistantTable:
    """A file read by another process, which built the facts with guessed columns."""

    path: Path
    columns: Sequence[str]
    guessed: FactSet | DataError
    """Its facts with guessed columns, or the error."""

    def facts(
        self,
        name: str = "",
        columns: Mapping[str, str] | None = None,
        group: str = "forget",
        drop_bad: bool = True,
    ) -> FactSet:
        """The facts, by group: as `read_facts`. Reads the file again for other arguments."""
        usual = columns in (None, guessed(self.columns))
        as_guessed = usual and (group, drop_bad) == ("forget", False)
        result = self.guessed if as_guessed else _parse(self.path, columns, group, drop_bad)[1]
        if isinstance(result, DataError):
            raise result.with_traceback(None)
        return replace(result, name=name) if name else result


Table = FileTable | DistantTable


def table_of(path: Path) -> Table:
    """The table in a file. Raises as `read_table`, and DataError: too much memory or time."""
    if _is_small(path):
        return read_table(path)
    return DistantTable(path, *_parse(path, None, "forget", False))


def facts_of(path: Path, group: str, drop_bad: bool) -> FactSet:
    """The facts in a file. group, drop_bad: see `read_facts`. Raises as `read_facts` and
    `table_of`."""
    if _is_small(path):
        return read_table(path).facts(group=group, drop_bad=drop_bad)
    return DistantTable(path, (), DataError("")).facts(group=group, drop_bad=drop_bad)


def _is_small(path: Path) -> bool:
    if not path.is_file():  # which `read_table` refuses
        return True
    with path.open("rb") as file:
        return path.stat().st_size <= SMALL and file.read(len(ZIP)) not in (PARQUET, ZIP)


def _parse(
    path: Path, columns: Mapping[str, str] | None, group: str, drop_bad: bool
) -> tuple[list[str], FactSet | DataError]:
    """(column names, the facts or the error). Raises as `table_of`."""
    failed = DataError(f"{path.name} cannot be read.", "Save it again as CSV in UTF-8.")
    options = json.dumps([columns, group, drop_bad])
    with READERS:
        lines = limited_process.lines_of("adapop.facts.reader", path, [options], MOST_BYTES, failed)
        names, about, *rows = lines
    names, about = json.loads(names), json.loads(about)
    problems = tuple(Problem(**problem) for problem in about["problems"])
    if kind := about.get("error"):
        error = ERRORS[kind](about["message"], about["fix"], problems)
        if names is None:
            raise error
        return names, error
    tiers = as_kind(about["tiers"], Tiers)
    notes = as_kind(about["notes"], tuple[Remark, ...])
    facts = FactSet.of_lines(rows, path, about["name"], notes, tiers)
    return names, replace(facts, problems=problems)


def main(path: Path, columns: Mapping[str, str] | None, group: str, drop_bad: bool) -> None:
    """The reader process: prints the lines described at the head of this file."""
    limited_process.limit(MEGABYTES, SECONDS)
    names = None
    try:
        table = read_table(path)
        names = table.columns
        facts = table.facts(columns=columns, group=group, drop_bad=drop_bad)
        notes = [asdict(note) for note in facts.notes]
        about = {"name": facts.name, "notes": notes, "tiers": asdict(facts.tiers)}
        problems, lines = facts.problems, facts.lines()
    except DataError as error:
        about = {"error": type(error).__name__, "message": error.message, "fix": error.fix}
        problems, lines = error.problems, ()
    except MemoryError:
        sys.exit(limited_process.TOO_MUCH)
    about["problems"] = list(map(asdict, problems))
    for line in (json.dumps(names), json.dumps(about), *lines):
        print(line)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *json.loads(sys.argv[2]))
