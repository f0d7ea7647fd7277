"""The facts in a user's file, with columns found by their usual names or named by the user.
A file that is no table is refused (`DataError`); in others, each bad row is a `Problem`."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from adapop.errors import ConfigError, DataError, ScoresError, number_of, truncated
from adapop.facts.cells import (
    FROM_1,
    READINGS,
    UNKNOWN_SCORES,
    Reading,
    choices_of,
    counted_from,
    has_decimal_commas,
    meaning_of_points,
    string,
)
from adapop.facts.fact import GROUPS, LISTS, WRITTEN, Fact, FactSet, Problem, separated
from adapop.facts.forms import (
    COLUMNS,
    LABEL,
    form_of,
    group_of,
    guessed,
    has_system,
    key_of,
    series_of,
    unfolded,
    with_paths,
)
from adapop.facts.objects import rows_in_memory
from adapop.facts.rows import fact_of, id_of, is_right, with_wrong_answers
from adapop.facts.tables import Layout, rows_of
from adapop.facts.text import UNSEEN, normalized
from adapop.facts.tiers import of_column
from adapop.limits import is_public, max_facts
from adapop.remark import Remark

LETTERS_SHOWN = 1_000  # most letters of column names in a message
SEVERAL = ("answer", "choices", *LISTS)  # fields that several columns may hold
Rows = Iterable[Mapping[str, object]] | Mapping[str, object]
"""A table in memory, as `objects.rows_in_memory` takes it."""
Columns = Mapping[str, str | Sequence[str]]
"""Field -> its column, or several, in a list or as "a | b"; "a + b" joins texts."""


@dataclass(frozen=True)
class FileTable:
    """A file, read once, whose facts can be built with different choices of columns."""

    path: Path
    rows: tuple[tuple[int, Mapping[str, object]], ...]
    """The readable rows, with their numbers as in a spreadsheet."""
    problems: tuple[Problem, ...]
    """One for each row that cannot be read."""
    header: tuple[str, ...]
    """Column names of a CSV or Parquet in lower case, with repeated ones; empty for JSON."""
    mark: str = ""
    """The separator of a CSV's cells."""
    notes: tuple[Remark, ...] = ()
    """How the file is read, and which parts are not."""

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns, in order; for JSON, every key of any object."""
        names = dict.fromkeys(chain.from_iterable(row for _, row in self.rows))
        return [name for name in names if name.strip()]

    def check_once(self, names: Iterable[str]) -> None:
        """Raises DataError if two columns have one of these names, ignoring case."""
        for name in (name.strip().lower() for name in names):
            if self.header.count(name) > 1:
                message = f"{self.path.name} has two columns called {name!r}."
                raise DataError(message, "Rename or delete one of them.")

    def facts(
        self,
        name: str = "",
        columns: Columns | None = None,
        group: str = "forget",
        drop_bad: bool = True,
    ) -> FactSet:
        """The facts in groups. Arguments and errors: as in `read_facts`."""
        chosen = self._chosen(columns) if self.rows else {}
        reading = self._reading(chosen)
        groups, row_of, problems = self._read_rows(chosen, reading, group)
        members = {name: tuple(facts) for name, facts in groups.items()}
        facts = FactSet(name or self.path.stem, **members)
        facts = separated(facts, row_of, chosen.get("question", ""))
        problems += (*self.problems, *facts.problems)
        problems.sort(key=lambda problem: problem.row)
        if not groups[group]:
            message = f"{self.path.name} has no usable fact to {group}."
            fix = f"Give some rows the group {group!r}."
            if reading.rows.get("wrong_answers_alone") and not row_of:
                fix = f"The column {chosen['correct']!r} marks every answer as wrong."
            fix = "Correct the rows listed below." if problems else fix
            raise DataError(message, fix, tuple(problems))
        unscored = tuple(problem for problem in problems if problem.column == chosen.get("score"))
        if unscored and not drop_bad:
            count = number_of(len(unscored), "score")
            wrong = (
                "is below 0 or not a number" if len(unscored) == 1 else "are below 0 or not numbers"
            )
            message = f"{self.path.name}: {count} {wrong}. Their facts would be left out."
            fix = "Correct the rows listed below, or leave those out: --drop-bad (drop_bad=True)."
            raise ScoresError(message, fix, unscored)
        notes = [*self.notes, *unread_split(*self._split(columns))]
        notes += [*self._unread_label(chosen), *self._unscored(chosen)]
        notes += [*read_otherwise(reading), *classes(facts, chosen["answer"])]
        notes += unseen(facts, row_of)
        notes += [Remark("attack_prompts", {"count": len(facts.attacks)})] * bool(facts.attacks)
        notes += repeats((*facts.forget, *facts.retain), row_of)
        if "tier" in chosen:
            tiers = of_column((fact.own_tier, fact.score) for fact in facts.forget)
            facts, notes = replace(facts, tiers=tiers), [*notes, tiers.note]
        return replace(facts, problems=tuple(problems), notes=tuple(notes))

    def others(self, columns: Columns | None = None) -> dict[str, dict[str, object]]:
        """Fact id -> the row's cells that no field uses, and the cell of its score. columns: see
        `facts`."""
        chosen = self._chosen(columns)
        used = {column for field, column in chosen.items() if field != "score"}
        used |= {part for column in used for part in column.split(" | ")}
        unused = [name for name in self.columns if not used & {name, key_of(name)}]
        return {
            id_of(number, row, chosen): {name: row[name] for name in unused if name in row}
            for number, row in self.rows
        }

    def parts_of(self, chosen: str | Sequence[str]) -> list[str]:
        """The columns that are chosen for one field."""
        path = self._path(chosen)
        return [path] if path in self.columns else re.split(r" [|+] ", path)

    def _path(self, chosen: str | Sequence[str]) -> str:
        """The name of one column, or the path that joins several."""
        if not isinstance(chosen, str):
            return " | ".join(chosen)
        mark = next((mark for mark in "|+" if mark in chosen), "")
        if not mark or chosen in self.columns:
            return chosen
        return f" {mark} ".join(part.strip() for part in chosen.split(mark))

    def _read_rows(
        self, chosen: Mapping[str, str], reading: Reading, group: str
    ) -> tuple[dict[str, list[Fact]], dict[str, int], list[Problem]]:
        """(group -> facts, fact id -> row number, bad rows). group: of rows that name none."""
        groups: dict[str, list[Fact]] = {name: [] for name in WRITTEN}
        row_of: dict[str, int] = {}
        problems: list[Problem] = []
        wrong: dict[str, list[tuple[int, str]]] = defaultdict(list)
        paths = [path for path in chosen.values() if path not in self.columns]
        for number, row in with_paths(paths, "", self.columns, self.rows):
            read = fact_of(number, row, chosen, reading)
            if isinstance(read, Problem):
                problems.append(read)
                continue
            own, fact = read
            if "correct" in chosen and is_right(row.get(chosen["correct"])) is False:
                wrong[normalized(fact.question)] += [(number, one) for one in fact.answers]
            elif fact.id in row_of:
                about = (f"is already the id of row {row_of[fact.id]}", "Make ids unique.")
                problems.append(Problem(number, chosen.get("id", "id"), fact.id, *about))
            else:
                row_of[fact.id] = number
                groups[group if own in ("", "forget") else own].append(fact)
        if wrong:
            groups = with_wrong_answers(groups, wrong, reading)
        return groups, row_of, problems

    def _reading(self, chosen: Mapping[str, str]) -> Reading:
        """The rules of reading that need all rows at once, such as the decimal mark."""
        base, points, comma, percent = None, "", False, False
        if "choices" in chosen:
            answer, place = chosen["answer"], chosen["choices"]
            read = ((row.get(answer), choices_of(row.get(place))) for _, row in self.rows)
            base = counted_from((cell, choices) for cell, choices in read if choices)
        if "score" in chosen:
            scores = (str(row.get(chosen["score"])).strip() for _, row in self.rows)
            scores = [text for text in scores if text.casefold() not in UNKNOWN_SCORES]
            if percent := any(scores) and all(text.endswith("%") for text in scores if text):
                scores = [text.rstrip("% \u00a0\u202f") for text in scores]
            comma = has_decimal_commas(scores)
            points = meaning_of_points(scores, self.mark, comma)
        return Reading(base, points, percent, comma, self.mark == ";")

    def _chosen(self, given: Columns | None) -> dict[str, str]:
        """Our field -> the file's column, or the path that joins several: from `given`, or guessed
        if that is None. Raises DataError: an unknown field, a missing or repeated column, several
        columns for a field of one, no question or answer."""
        guess = guessed(self.columns)
        chosen = dict(guess) if given is None else self._checked(given)
        # prefer a column that names groups to one that is empty or has splits of another kind
        if "group" in chosen and chosen["group"] == guess.get("group"):
            named = [name for name in self.columns if key_of(name) in COLUMNS["group"]]
            cells = ((name, str(row.get(name)).strip()) for name in named for _, row in self.rows)
            groups = (name for name, cell in cells if group_of(cell))
            chosen["group"] = next(groups, chosen["group"])
        is_guess = "correct" in chosen and chosen["correct"] == guess.get("correct")
        if is_guess and not self._truths(chosen["correct"]):
            del chosen["correct"]
        if "correct" not in chosen and (label := self._label(chosen)):
            truths = self._truths(label)
            # a wrong answer is never a fact; numbers may be classes, so these are only noted
            if truths & {"false", "no"} and not truths & {"0", "1"}:
                chosen["correct"] = label
        other = chosen.get("score") != guess.get("score")
        if other and chosen.get("score_source") == guess.get("score_source"):
            chosen.pop("score_source", None)  # it names the source of another score column
        for field in ("question", "answer"):
            if field not in chosen:
                usual = " or ".join(map(repr, COLUMNS[field][:4]))
                fix = f"Name one of them {usual}, or choose it."
                if self.header and not guess:
                    fix += " If the first row is a fact already, put a row with these names above."
                there = f"(its columns: {named_in_text(self.columns) or 'none'})"
                raise DataError(f"{self.path.name} has no {field} column {there}.", fix)
        if self._split(chosen)[1]:
            del chosen["group"]
        return chosen

    def _checked(self, given: Columns) -> dict[str, str]:
        """The given columns. Raises DataError as `_chosen`."""
        chosen = {field: self._path(columns) for field, columns in given.items()}
        self.check_once(name for path in chosen.values() for name in self.parts_of(path))
        for field, path in chosen.items():
            if field not in COLUMNS:
                message = f"There is no field {field!r}."
                raise DataError(message, f"Fields are {', '.join(COLUMNS)}.")
            missing = (name for name in self.parts_of(path) if name not in self.columns)
            if name := next(missing, ""):
                message = f"{self.path.name} has no column {truncated(name)!r} to read the {field}"
                there = f"(its columns: {named_in_text(self.columns) or 'none'})"
                raise DataError(f"{message} from {there}.", "Choose another column.")
            if path not in self.columns and " | " in path and field not in SEVERAL:
                message = f"The {field} is read from one column, not from {truncated(path)!r}."
                fix = f"Choose one of them. Several may hold {', '.join(SEVERAL)}."
                raise DataError(message, fix)
        return chosen

    def _label(self, chosen: Mapping[str, str]) -> str:
        """A column called label that no field is read from, or ""."""
        label = next((name for name in self.columns if key_of(name) == LABEL), "")
        return "" if label in chosen.values() else label

    def _truths(self, column: str) -> set[str]:
        """The different cells of a column, in lower case, if all say that an answer is right or
        wrong; else none."""
        cells = {string(row.get(column)).casefold() for _, row in self.rows} - {""}
        return cells if all(is_right(cell) is not None for cell in cells) else set()

    def _unread_label(self, chosen: Mapping[str, str]) -> tuple[Remark, ...]:
        """A note on a column called label that has 0 and 1, and is not read."""
        label = self._label(chosen)
        marks = set(map(is_right, self._truths(label))) if label else set()
        return (Remark("label_not_read", {"column": label}),) * (marks == {True, False})

    def _split(self, columns: Columns | None) -> tuple[str, dict[str, int]]:
        """(the split column, value -> count if no value names a group); ("", {}) without any."""
        given = guessed(self.columns) if columns is None else columns
        column = self._path(given.get("group", ""))
        if key_of(column) not in COLUMNS["group"][1:]:
            return "", {}
        values = Counter(str(row.get(column) or "").strip() for _, row in self.rows)
        return column, {} if any(map(group_of, values)) or values.keys() == {""} else values

    def _unscored(self, chosen: Mapping[str, str]) -> tuple[Remark, ...]:
        """A note that names the unread columns, if no column of scores was found."""
        if "score" in chosen:
            return ()
        parts = chain.from_iterable(re.split(r" [+%|] |;", name) for name in chosen.values())
        read = {part.split(".")[0].lower() for part in parts}
        unread = [name for name in self.columns if name not in chosen.values()]
        unread = [name for name in unread if key_of(name) not in read]
        return (Remark("no_score_column", {"columns": named_in_text(unread)}),) * bool(unread)


def named_in_text(names: Iterable[str]) -> str:
    """All names in one text, truncated if there are many."""
    names = list(map(truncated, names))
    most = max(8, LETTERS_SHOWN // max(1, len(names)) - 4)
    if sum(map(len, names)) + 4 * len(names) > LETTERS_SHOWN:
        names = [f"{name[: most - 1]}…" if len(name) > most else name for name in names]
    return ", ".join(map(repr, names))


def read_table(source: str | os.PathLike | Rows) -> FileTable:
    """The rows of a file, or of a table in memory, see `objects.rows_in_memory`. Raises DataError:
    it is empty, too large, not UTF-8, of an unknown kind, or has two columns with the same known
    name."""
    most, layout = max_facts(), Layout()
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        rows = rows_of(path, layout)
    else:
        kind = type(source)
        path = Path("rows" if kind.__module__ == "builtins" else kind.__name__)
        rows = rows_in_memory(source, path.name, most + 1, layout.notes)
    read = list(islice(rows, most + 1))
    if not read:
        head = layout.mark and truncated(layout.mark.join(layout.header))
        message = f"{path.name} has no rows{f' below its header, {head!r}' if head else ''}."
        raise DataError(message, "Add at least one fact below a header: question,answer,score.")
    if len(read) > most:
        reader = "this public Space reads" if is_public() else "are read"
        own = ", or run the app on a machine of your own" if is_public() else ""
        message = f"{path.name} has more than {most:,} rows, the most that {reader}."
        raise DataError(message, f"Split the file{own}.")
    system = sum(has_system(row[1]) for row in read if not isinstance(row, Problem))
    notes = (Remark("system_prompts_not_read", {"count": system}),) * bool(system)
    read = [row if isinstance(row, Problem) else unfolded(*row) for row in read]
    problems = tuple(row for row in read if isinstance(row, Problem))
    rows = tuple(row for row in read if not isinstance(row, Problem))
    header = tuple(name.strip().lower() for name in layout.header)
    table = FileTable(path, rows, problems, header, layout.mark, (*layout.notes, *notes))
    table = _with_form(table)
    table.check_once(guessed(table.columns).values())
    return table


def _with_form(table: FileTable) -> FileTable:
    """The table with a column for each path of its known form and of its numbered columns, and a
    note on those that are read."""
    form, series = form_of(table.columns), series_of(table.columns)
    of_form = form.fields if form else {}
    paths, whole = (*of_form.values(), *series.values()), of_form.get("choices", "")
    rows = tuple(with_paths(paths, whole, table.columns, table.rows))
    table, notes = replace(table, rows=rows), list(table.notes)
    guess = guessed(table.columns)
    for kind, fields in (("known_form", of_form), ("columns_together", series)):
        used = [(field, path) for field, path in fields.items() if guess.get(field) == path]
        used = [f"{field} from {path!r}" for field, path in used]
        named = {"form": form.name} if form and kind == "known_form" else {}
        if used:
            notes.append(Remark(kind, {**named, "fields": ", ".join(used)}))
    return replace(table, notes=tuple(notes))


def read_facts(
    source: str | os.PathLike | Rows,
    name: str = "",
    columns: Columns | None = None,
    group: str = "forget",
    drop_bad: bool = True,
) -> FactSet:
    """The facts of a file, or of a table in memory, by group.

    source: a path; or a DataFrame, a `datasets.Dataset`, a list of dicts, a dict of columns or of
    groups of rows. Rows in memory are numbered from 1.
    columns: field -> column, or several as a list or as "a | b", in place of the guess; a field
    left out is not read. group: of rows that name no group. Rows marked "forget" go there, too.
    drop_bad: whether a fact with an unreadable score is dropped, with a problem, instead of
    refusing the file. Raises DataError: the file is empty, too large, not UTF-8, of an unknown
    kind, lacks a question, an answer or a named column, or has no usable row: `problems` says
    why."""
    return read_table(source).facts(name, columns, group, drop_bad)


def named_columns(text: str) -> dict[str, str]:
    """Field -> column of "question=prompt,answer=label"; a field that is named twice has several
    columns: "a | b". Raises ConfigError for any other part."""
    pairs = [tuple(map(str.strip, part.partition("=")[::2])) for part in text.split(",")]
    if bad := [field for field, column in pairs if field not in COLUMNS or not column]:
        fix = f"Write question=COLUMN,answer=COLUMN; fields are {', '.join(COLUMNS)}."
        raise ConfigError(f"--columns {text!r} does not say which column holds {bad[0]!r}.", fix)
    columns: dict[str, list[str]] = defaultdict(list)
    for field, column in pairs:
        columns[field].append(column)
    return {field: " | ".join(names) for field, names in columns.items()}


CODES_SHOWN, VALUES_SHOWN, ROWS_SHOWN = 12, 5, 5


def read_otherwise(reading: Reading) -> tuple[Remark, ...]:
    """A note for each kind of reading that is not literal, with the number of its rows."""
    rows = {kind: list(dict.fromkeys(reading.rows.get(kind, ()))) for kind in READINGS}
    about = {"answer_points": {"base": int(reading.counted_from == FROM_1)}}
    return tuple(
        Remark(kind, {"rows": len(numbers), "row": numbers[0], **about.get(kind, {})})
        for kind, numbers in rows.items()
        if numbers
    )


def classes(facts: FactSet, column: str) -> tuple[Remark, ...]:
    """A note on a column called label whose answers are all single digits, like class labels."""
    answers = {fact.answer for fact in (*facts.forget, *facts.retain)}
    digits = all(len(answer) == 1 and answer.isdecimal() for answer in answers)
    if column.strip().lower() != "label" or not answers or not digits:
        return ()
    return (Remark("answers_like_classes", {"answers": ", ".join(sorted(answers))}),)


def unread_split(column: str, values: Mapping[str, int]) -> tuple[Remark, ...]:
    """A note on a split column whose values name no group. values: value -> number of rows."""
    counts = [f"{truncated(value)!r} ({count:,})" for value, count in values.items()]
    counts = ", ".join(counts[:VALUES_SHOWN] + ["…"] * (len(counts) > VALUES_SHOWN))
    note = Remark("split_not_read", {"column": truncated(column), "counts": counts})
    return (note,) * bool(values)


def unseen(facts: FactSet, rows: Mapping[str, int]) -> tuple[Remark, ...]:
    """A note on rows with invisible characters, which are kept, because a model reads them."""
    hidden = {}
    for fact in chain.from_iterable(getattr(facts, group) for group in GROUPS):
        cells = fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.object
        cells += fact.two_hop, fact.two_hop_answer, fact.second_hop
        lists = fact.paraphrases, fact.alternates, fact.accepted, fact.subject_aliases
        text = " ".join((*cells, *chain.from_iterable(lists)))
        if not text.isprintable() and (letters := UNSEEN.findall(text)):
            hidden[rows[fact.id]] = letters
    if not hidden:
        return ()
    codes = sorted({f"U+{ord(letter):04X}" for letters in hidden.values() for letter in letters})
    named = ", ".join(codes[:CODES_SHOWN] + ["…"] * (len(codes) > CODES_SHOWN))
    values = {"codes": named, "count": len(hidden), "row": min(hidden)}
    return (Remark("unseen_characters", values),)


def repeats(facts: Sequence[Fact], rows: Mapping[str, int]) -> tuple[Remark, ...]:
    """A note on each kind of repeated question: with different answers, with different scores, or
    identical. rows: fact id -> row number. All rows are kept."""
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        alike[normalized(fact.question)].append(fact)
    twice = [group for group in alike.values() if len(group) > 1]
    split = [group for group in twice if len({normalized(fact.answer) for fact in group}) > 1]
    scored = [group for group in twice if len({fact.score for fact in group}) > 1]
    contradictory = {group[0].id for group in (*split, *scored)}
    same = [group for group in twice if group[0].id not in contradictory]
    notes = []
    if split:
        answers = " or ".join(dict.fromkeys(repr(truncated(fact.answer)) for fact in split[0]))
        notes.append(Remark("different_answers", _first_of(split, rows) | {"answers": answers}))
    if scored:
        scores = dict.fromkeys(fact.score for fact in scored[0])
        scores = " or ".join("none" if score is None else f"{score:,.15g}" for score in scores)
        notes.append(Remark("different_scores", _first_of(scored, rows) | {"scores": scores}))
    if same:
        notes.append(Remark("asked_twice", _first_of(same, rows)))
    return tuple(notes)


def _first_of(groups: Sequence[Sequence[Fact]], rows: Mapping[str, int]) -> dict[str, str | int]:
    """How many questions are repeated, and the first of them with the rows that ask it."""
    places = [str(rows[fact.id]) for fact in groups[0]]
    places = ", ".join(places[:ROWS_SHOWN] + ["…"] * (len(places) > ROWS_SHOWN))
    question = repr(truncated(groups[0][0].question))
    return {"questions": len(groups), "question": question, "places": places}
