"""The facts in a user's file, with columns found by their usual names or named by the user.

`read_facts` refuses a file that is no table of facts (`DataError`) and otherwise keeps every good row; each bad one is
a `Problem` with row, column, value and fix.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from adapop.errors import ConfigError, DataError, ScoresError, shown
from adapop.facts.fact import GROUPS, WRITTEN, Fact, FactSet, Problem, separated
from adapop.facts.repeats import repeats
from adapop.facts.rows import fact_of, id_of
from adapop.facts.tables import rows_of
from adapop.facts.text import UNSEEN
from adapop.facts.turns import has_system, unfolded
from adapop.limits import is_public, max_facts

COLUMNS_SHOWN = 12
COLUMNS = {
    "id": ("id", "fact_id", "uid"),
    "question": ("question", "query", "prompt"),
    "answer": ("answer", "completion", "label", "object", "objectlabel"),
    "subject": ("subject", "subjectlabel"),
    "relation": ("relation", "property"),
    "object": ("object", "objectlabel"),
    "score": ("score", "popularity", "pop_sum"),
    "score_source": ("score_source",),
    "group": ("group", "split"),
    "paraphrases": ("paraphrases", "paraphrase", "rewordings", "paraphrased_question"),
    "alternates": ("alternates", "alternate", "perturbed_answer"),
}
NAMES = frozenset(name for names in COLUMNS.values() for name in names)


def guessed(columns: Iterable[str]) -> dict[str, str]:
    """Our field -> its column, found by the usual names in any case; fields without a column are left out."""
    present = {str(name).strip().lower(): name for name in columns}
    return {
        field: next(present[name] for name in names if name in present)
        for field, names in COLUMNS.items()
        if any(name in present for name in names)
    }


@dataclass(frozen=True)
class FileTable:
    """A file that was read once: its columns can be looked at, and its facts made under one choice and another."""

    path: Path
    rows: tuple[tuple[int, Mapping[str, object]], ...]
    """The readable rows, with their numbers as in a spreadsheet."""
    problems: tuple[Problem, ...]
    """Of the rows that cannot be read."""
    header: tuple[str, ...]
    """Names of the columns in lower case, each as often as a CSV or Parquet has it; empty for JSON."""
    notes: tuple[str, ...] = ()
    """What of the file is not read, in sentences for the user."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order; for JSON, every key of any object."""
        return [name for name in dict.fromkeys(name for _, row in self.rows for name in row) if name.strip()]

    def check_once(self, names: Iterable[str]) -> None:
        """Refuses two columns of one of these names, in any case: which of them is meant cannot be known.

        Raises:
            DataError: there are two.
        """
        for name in (name.strip().lower() for name in names):
            if self.header.count(name) > 1:
                raise DataError(f"{self.path.name} has two columns called {name!r}.", "Rename or delete one of them.")

    def facts(
        self, name: str = "", columns: Mapping[str, str] | None = None, group: str = "forget", drop_bad: bool = True
    ) -> FactSet:
        """The facts, by group: as `read_facts`."""
        chosen = self._chosen(columns) if self.rows else {}
        problems = list(self.problems)
        groups: dict[str, list[Fact]] = {name: [] for name in WRITTEN}
        seen: dict[str, int] = {}
        for number, row in self.rows:
            read = fact_of(number, row, chosen)
            if isinstance(read, Problem):
                problems.append(read)
                continue
            own, fact = read
            if fact.id in seen:
                message = f"is already the id of row {seen[fact.id]}"
                problems.append(Problem(number, chosen.get("id", "id"), fact.id, message, "Make ids unique."))
                continue
            seen[fact.id] = number
            groups[group if own in ("", "forget") else own].append(fact)
        facts = FactSet(name or self.path.stem, **{name: tuple(members) for name, members in groups.items()})
        facts = separated(facts, seen, chosen.get("question", ""))
        problems = sorted((*problems, *facts.problems), key=lambda problem: problem.row)
        if not groups[group]:
            raise DataError(
                f"{self.path.name} has no usable fact to {group}.",
                "Mend the rows listed below." if problems else f"Give some rows the group {group!r}.",
                tuple(problems),
            )
        unscored = tuple(problem for problem in problems if problem.column == chosen.get("score"))
        if unscored and not drop_bad:
            raise ScoresError(
                f"{self.path.name}: scores below 0 or no number: {len(unscored):,}. Their facts would be left out.",
                "Mend the rows listed below, or leave those facts out with --drop-bad (drop_bad=True).",
                unscored,
            )
        twice = *repeats(facts.forget, seen), *(f"To retain: {said}" for said in repeats(facts.retain, seen))
        notes = (*self.notes, *self._unscored(chosen), *_unseen(facts, seen), *_attacks(facts), *twice)
        return replace(facts, problems=tuple(problems), notes=notes)

    def _unscored(self, chosen: Mapping[str, str]) -> tuple[str, ...]:
        """A note on columns that are not read, where scores may be in one of them."""
        unread = [repr(shown(name)) for name in self.columns if name not in chosen.values()][:COLUMNS_SHOWN]
        if "score" in chosen or not unread:
            return ()
        return (
            f"No column of scores was found. Not read: {', '.join(unread)}. If one holds them, choose it as score.",
        )

    def others(self, columns: Mapping[str, str] | None = None) -> dict[str, dict[str, object]]:
        """The cells that become no part of a fact, by fact id: for who writes the facts again. columns: as for
        `facts`."""
        chosen = self._chosen(columns)
        used = {column for field, column in chosen.items() if field != "score"}
        return {
            id_of(number, row, chosen): {name: cell for name, cell in row.items() if name not in used and name.strip()}
            for number, row in self.rows
        }

    def _chosen(self, columns: Mapping[str, str] | None) -> dict[str, str]:
        """Our field -> the file's column: as given in `columns`, or a guess if that is None.

        Raises:
            DataError: an unknown field, a column that the file lacks or has twice, or no question or answer column.
        """
        self.check_once((columns or {}).values())
        present = self.columns
        found = ", ".join(repr(shown(name)) for name in present[:COLUMNS_SHOWN]) or "none"
        found += ", …" if len(present) > COLUMNS_SHOWN else ""
        for field, column in (columns or {}).items():
            if field not in COLUMNS:
                raise DataError(f"There is no field {field!r}.", f"Fields are {', '.join(COLUMNS)}.")
            if column not in present:
                raise DataError(
                    f"{self.path.name} has no column {shown(column)!r} to read the {field} from "
                    f"(its columns: {found}).",
                    "Choose another column.",
                )
        guess = guessed(present)
        chosen = guess if columns is None else dict(columns)
        if chosen.get("score") != guess.get("score") and chosen.get("score_source") == guess.get("score_source"):
            chosen.pop("score_source", None)  # the guessed column names the source of another score column
        for field in ("question", "answer"):
            if field not in chosen:
                fix = f"Name one of them {' or '.join(map(repr, COLUMNS[field]))}"
                raise DataError(
                    f"{self.path.name} has no {field} column (its columns: {found}).", f"{fix}, or choose it."
                )
        return chosen


def read_table(path: Path) -> FileTable:
    """The file's rows.

    Raises:
        DataError: the file is empty, too large, not UTF-8, of an unknown kind, or has two columns of a name we know.
    """
    most, header = max_facts(), []
    read = list(islice(rows_of(path, header), most + 1))
    if not read:
        raise DataError(f"{path.name} has no rows.", "Add a header and at least one fact: question,answer,score.")
    if len(read) > most:
        reader = "this public Space reads" if is_public() else "are read"
        own = ", or run the app on a machine of your own" if is_public() else ""
        raise DataError(f"{path.name} has more than {most:,} rows, the most that {reader}.", f"Split the file{own}.")
    system = sum(has_system(row[1]) for row in read if not isinstance(row, Problem))
    notes = (f"System prompts in the rows are not read: {system:,}. A run's own is one for all.",) if system else ()
    read = [row if isinstance(row, Problem) else _unfolded(*row) for row in read]
    problems = tuple(row for row in read if isinstance(row, Problem))
    rows = tuple(row for row in read if not isinstance(row, Problem))
    table = FileTable(path, rows, problems, tuple(name.strip().lower() for name in header), notes)
    table.check_once(NAMES)
    return table


def read_facts(
    path: Path, name: str = "", columns: Mapping[str, str] | None = None, group: str = "forget", drop_bad: bool = True
) -> FactSet:
    """The facts of a file, by group.

    columns: field -> column, instead of a guess; a field left out is not read. group: the group that the file is for,
    and of rows that name none. In a file for "retain", rows that say forget are retained as well. drop_bad: whether a
    fact whose score cannot be read is dropped, with a problem that says so, or the file is refused.

    Raises:
        DataError: the file is empty, too large, not UTF-8, of an unknown kind, lacks a question, an answer or a named
            column, or has no usable row. `problems` then says what was wrong with each row.
    """
    return read_table(path).facts(name, columns, group, drop_bad)


def named_columns(text: str) -> dict[str, str]:
    """Field -> column of "question=prompt,answer=label".

    Raises:
        ConfigError: a part is no field with its column.
    """
    pairs = [part.partition("=") for part in text.split(",")]
    if bad := [field for field, _, column in pairs if field.strip() not in COLUMNS or not column.strip()]:
        raise ConfigError(
            f"--columns {text!r} does not say which column holds {bad[0].strip()!r}.",
            f"Write question=COLUMN,answer=COLUMN; fields are {', '.join(COLUMNS)}.",
        )
    return {field.strip(): column.strip() for field, _, column in pairs}


def _unfolded(number: int, row: Mapping[str, object]) -> tuple[int, Mapping[str, object]] | Problem:
    read = unfolded(number, row)
    return read if isinstance(read, Problem) else (number, read)


def _attacks(facts: FactSet) -> tuple[str, ...]:
    """A note on prompts that are not trained on."""
    count = len(facts.attacks)
    return (f"Attack prompts (RWKU's level 3): {count:,}. They are kept to probe with, not trained on.",) * bool(count)


def _unseen(facts: FactSet, rows: Mapping[str, int]) -> tuple[str, ...]:
    """A note on rows with invisible characters, which a model reads all the same. They are not changed."""
    found = {
        rows[fact.id]: UNSEEN.findall(text)
        for group in GROUPS
        for fact in getattr(facts, group)
        if UNSEEN.search(text := " ".join((*_texts_of(fact), *fact.paraphrases, *fact.alternates)))
    }
    if not found:
        return ()
    codes = sorted({f"U+{ord(letter):04X}" for letters in found.values() for letter in letters})
    more = ", …" if len(codes) > COLUMNS_SHOWN else ""
    return (
        f"Rows with characters that cannot be seen ({', '.join(codes[:COLUMNS_SHOWN])}{more}): {len(found):,}, the "
        f"first is row {min(found)}. They are kept: the model reads them.",
    )


def _texts_of(fact: Fact) -> tuple[str, ...]:
    return fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.object
