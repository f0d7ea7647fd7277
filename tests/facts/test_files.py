"""Good files in every format, then bad ones by the dozen: each says row, column and fix, and good rows survive."""

import json
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from adapop.errors import DataError
from adapop.facts import tables
from adapop.facts.fact import FactSet, Problem
from adapop.facts.files import COLUMNS, guessed, read_facts, read_table
from adapop.facts.rows import MAX_CELL, MAX_ITEMS
from adapop.facts.tables import MAX_BYTES, MAX_COLUMNS

GOOD = {"question": "Who wrote Emma?", "answer": "Austen"}
PARQUET = pytest.param(".parquet", marks=pytest.mark.slow)  # for families: each file has a process of its own


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_rows(folder: Path, suffix: str, rows: list[dict]) -> Path:
    """The rows as a file of any format that can hold them."""
    if suffix == ".parquet":
        path = folder / "facts.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    if suffix == ".csv":
        names = list(rows[0])
        lines = [names, *([row[name] for name in names] for row in rows)]
        quoted = [",".join('"' + str("" if c is None else c).replace('"', '""') + '"' for c in line) for line in lines]
        return write(folder, "facts.csv", "\n".join(quoted))
    if suffix == ".jsonl":
        return write(folder, "facts.jsonl", "\n".join(json.dumps(row) for row in rows))
    return write(folder, "facts.json", json.dumps(rows))


def only_problem(facts: FactSet) -> Problem:
    (problem,) = facts.problems
    assert problem.message
    assert problem.fix
    return problem


def refusal(path: Path) -> DataError:
    """What the reader says to a file it refuses."""
    with pytest.raises(DataError) as caught:
        read_facts(path)
    assert caught.value.fix, "a refusal must say what to do"
    assert str(path.parent) not in str(caught.value), "a refusal must not show where the server keeps the file"
    return caught.value


# --- good files


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_facts(tmp_path, suffix):
    rows = [
        {"id": "emma", **GOOD, "subject": "Emma", "relation": "author", "object": "Jane Austen", "score": 12.5},
        {"id": "ulysses", "question": "Who wrote “Ulysses” 🦜?", "answer": 'J. "Jim" Joyce', "subject": "Ulysses",
         "relation": "author", "object": "Joyce", "score": None},
    ]  # fmt: skip
    facts = read_facts(write_rows(tmp_path, suffix, rows), "mine")
    assert facts.name == "mine"
    assert not facts.problems
    for fact, row in zip(facts.forget, rows, strict=True):
        assert {name: getattr(fact, name) for name in row} == row
    assert [fact.score_source for fact in facts.forget] == ["column score", ""]


@pytest.mark.parametrize(("field", "alias"), [(field, alias) for field, names in COLUMNS.items() for alias in names])
@pytest.mark.parametrize("suffix", [".csv", ".json", PARQUET])
def test_every_alias_of_a_column_is_found(tmp_path, field, alias, suffix):
    values = {"score": "7", "group": "forget", "choices": "Austen|Eliot", "tier": "rare"}
    row = {**GOOD, field: values.get(field, "given")}
    row[alias] = row.pop(field)
    row |= {"score": "7"} if field == "score_source" else {}
    facts = read_facts(write_rows(tmp_path, suffix, [row]))
    lists = {field: ("given",) for field in ("paraphrases", "alternates", "accepted", "subject_aliases")}
    expected = {"score": 7.0, "tier": "rare", **lists}.get(field, "given")
    assert not facts.problems
    assert field in ("group", "choices") or getattr(facts.forget[0], field) == expected


def test_a_name_comes_from_the_file_and_a_header_in_any_case(tmp_path):
    assert read_facts(write(tmp_path, "my set.csv", "question,answer\na,b")).name == "my set"
    facts = read_facts(write(tmp_path, "facts.CSV", " Question , ANSWER,sCore \na,b,5\n"))
    assert [(fact.question, fact.answer, fact.score) for fact in facts.forget] == [("a", "b", 5.0)]


@pytest.mark.parametrize("name", ["facts.csv", "facts.json", "facts.jsonl"])
def test_byte_order_mark_is_no_part_of_the_first_column(tmp_path, name):
    text = {
        "csv": "question,answer\na,b",
        "json": '[{"question":"a","answer":"b"}]',
        "jsonl": '{"question":"a","answer":"b"}',
    }
    facts = read_facts(write(tmp_path, name, "\ufeff" + text[name.split(".")[1]]))
    assert facts.forget[0].question == "a"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_a_csv(tmp_path, end):
    facts = read_facts(write(tmp_path, "facts.csv", end.join(["question,answer,score", "a,b,1", "c,d,2", ""])))
    assert [(fact.question, fact.answer, fact.score) for fact in facts.forget] == [("a", "b", 1.0), ("c", "d", 2.0)]


def test_line_ends_of_a_jsonl(tmp_path):
    facts = read_facts(write(tmp_path, "facts.jsonl", json.dumps(GOOD) + "\r\n" + json.dumps(GOOD) + "\r\n"))
    assert [fact.answer for fact in facts.forget] == ["Austen", "Austen"]
    row = {"question": "a\u2028b\u2029c\x85d", "answer": "x"}
    facts = read_facts(write(tmp_path, "facts.jsonl", json.dumps(row, ensure_ascii=False)))
    assert facts.forget[0].question == row["question"]


def test_html_stays_text_and_groups_are_read(tmp_path):
    cell = "<img src=x onerror=alert(1)> & <b>Emma</b>"
    facts = read_facts(write_rows(tmp_path, ".csv", [{"question": cell, "answer": "<i>Austen</i>"}]))
    assert (facts.forget[0].question, facts.forget[0].answer) == (cell, "<i>Austen</i>")
    names = ["forget", "Forget_rare", "", "retain", "neighbor_level1", "holdout", "utility"]
    rows = [{"question": f"{i}?", "answer": "x", "group": name} for i, name in enumerate(names)]
    facts = read_facts(write_rows(tmp_path, ".csv", rows))
    assert (len(facts.forget), len(facts.retain), len(facts.holdout), len(facts.utility)) == (3, 2, 1, 1)


@pytest.mark.parametrize(
    ("cell", "paraphrases"),
    [
        ("one|two | |", ("one", "two")), ('["one", "two, three"]', ("one", "two, three")),
        ("[not json", ("[not json",)), ("", ()),
    ],
)  # fmt: skip
def test_list_cell_of_a_csv(tmp_path, cell, paraphrases):
    facts = read_facts(write_rows(tmp_path, ".csv", [{**GOOD, "paraphrases": cell}]))
    assert facts.forget[0].paraphrases == paraphrases


@pytest.mark.parametrize(("cell", "paraphrases"), [(["one", "two"], ("one", "two")), ([], ()), (None, ())])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_list_cell_of_a_typed_file(tmp_path, suffix, cell, paraphrases):
    facts = read_facts(write_rows(tmp_path, suffix, [{**GOOD, "paraphrases": cell}, {**GOOD, "paraphrases": ["x"]}]))
    assert facts.forget[0].paraphrases == paraphrases


def test_numbers_are_text_in_text_columns(tmp_path):
    facts = read_facts(write(tmp_path, "facts.json", '[{"id": 7, "question": 1945, "answer": 0, "score": 0}]'))
    fact = facts.forget[0]
    assert (fact.id, fact.question, fact.answer, fact.score) == ("7", "1945", "0", 0.0)
    table = pyarrow.table({"id": [2**60 + 1, None], "question": ["a", "b"], "answer": ["c", "d"]})
    pyarrow.parquet.write_table(table, tmp_path / "facts.parquet")
    assert [fact.id for fact in read_facts(tmp_path / "facts.parquet").forget] == [str(2**60 + 1), "row-2"]


# --- missing scores


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_missing_score_stays_missing_and_is_never_zero(tmp_path, suffix):
    rows = [{**GOOD, "score": score} for score in (None, 5.0, 0.0)]
    facts = read_facts(write_rows(tmp_path, suffix, rows))
    assert [fact.score for fact in facts.forget] == [None, 5.0, 0.0]
    assert len(facts.unknown_scores) == 1


def test_missing_scores_and_nan_in_text(tmp_path):
    rows = [{**GOOD, "answer": float("nan")}, {**GOOD, "subject": float("nan")}]
    facts = read_facts(write_rows(tmp_path, ".json", rows))
    assert (only_problem(facts).row, only_problem(facts).column) == (1, "answer")
    assert facts.forget[0].subject == ""
    assert read_facts(write_rows(tmp_path, ".csv", [GOOD])).forget[0].score is None
    facts = read_facts(write_rows(tmp_path, ".csv", [{**GOOD, "group": "forget"}, {**GOOD, "group": "test"}]))
    problem = only_problem(facts)
    assert (problem.row, problem.column, problem.value) == (3, "group", "test")


@pytest.mark.parametrize("score", [1e-12, 1234.1234567890124, 2.0**60])
def test_parquet_scores_are_not_rounded(tmp_path, score):
    assert read_facts(write_rows(tmp_path, ".parquet", [{**GOOD, "score": score}])).forget[0].score == score


# --- bad rows: named, dropped, and the others kept


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("-1", "is not a score"), ("inf", "is not a score"), ("-Infinity", "is not a score"),
        ("1e400", "is not a score"), ("many", "is not a number"), ("1,0000", "is not a number"),
        ("1,000 000", "is not a number"), ("-1,000", "is not a number"),
        ("12 %", "is not a number"),
    ],
)  # fmt: skip
def test_bad_score_in_a_csv(tmp_path, cell, message):
    facts = read_facts(write_rows(tmp_path, ".csv", [{**GOOD, "score": "1"}, {**GOOD, "score": cell}]))
    problem = only_problem(facts)
    assert (problem.row, problem.column, problem.value, problem.message) == (3, "score", cell, message)
    assert "decimal point" in problem.fix or "finite" in problem.fix
    assert len(facts.forget) == 1


@pytest.mark.parametrize("score", [float("inf"), -1.0])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_bad_score_in_a_typed_file(tmp_path, suffix, score):
    facts = read_facts(write_rows(tmp_path, suffix, [{**GOOD, "score": score}, {**GOOD, "score": 1.0}]))
    problem = only_problem(facts)
    assert (problem.row, problem.column) == (1, "score")
    assert float(problem.value) == score
    assert [fact.score for fact in facts.forget] == [1.0]


@pytest.mark.parametrize("score", [True, "10000" * 100])
def test_score_that_is_no_score_in_a_json(tmp_path, score):
    assert only_problem(read_facts(write_rows(tmp_path, ".json", [{**GOOD, "score": score}, GOOD]))).column == "score"


@pytest.mark.parametrize("field", ["question", "answer"])
@pytest.mark.parametrize("cell", ["", "   ", None])
def test_empty_cell(tmp_path, field, cell):
    facts = read_facts(write_rows(tmp_path, ".csv", [GOOD, {**GOOD, field: cell}]))
    problem = only_problem(facts)
    assert (problem.row, problem.column, problem.message) == (3, field, "is empty")
    assert len(facts.forget) == 1


def test_an_id_stands_once(tmp_path):
    rows = [{"id": "a", **GOOD}, {"id": "b", **GOOD}, {"id": " a ", **GOOD}]
    facts = read_facts(write_rows(tmp_path, ".csv", rows))
    problem = only_problem(facts)
    assert (problem.row, problem.column, problem.value) == (4, "id", "a")
    assert "row 2" in problem.message
    assert [fact.id for fact in facts.forget] == ["a", "b"]
    rows = [{"id": "row-3", **GOOD}, {"id": "", **GOOD}]
    facts = read_facts(write_rows(tmp_path, ".csv", rows))
    assert (only_problem(facts).row, only_problem(facts).value) == (3, "row-3")


@pytest.mark.parametrize("field", ["question", "answer", "subject", "id", "paraphrases"])
def test_cell_of_ten_megabytes(tmp_path, field):
    row = {"id": "a", **GOOD, "subject": "", "paraphrases": ""}
    facts = read_facts(write_rows(tmp_path, ".csv", [row | {field: "x" * 10**7}, row | {"id": "b"}]))
    problem = only_problem(facts)
    assert (problem.row, problem.column) == (2, field)
    assert "10,000,000 characters" in problem.message
    assert len(str(problem)) < 300
    assert [fact.id for fact in facts.forget] == ["b"]


def test_as_much_as_is_read(tmp_path):
    facts = read_facts(write_rows(tmp_path, ".csv", [{**GOOD, "question": "x" * MAX_CELL}]))
    assert len(facts.forget[0].question) == MAX_CELL
    assert len(read_facts(write_rows(tmp_path, ".csv", [GOOD] * 20_000)).forget) == 20_000
    rows = [{**GOOD, "paraphrases": "|".join("a" * count)} for count in (MAX_ITEMS, MAX_ITEMS + 1)]
    problem = only_problem(read_facts(write_rows(tmp_path, ".csv", rows)))
    assert (problem.row, problem.message) == (3, "has 101 items; at most 100 are read")


def test_rows_are_counted_and_problems_ordered_as_in_the_file(tmp_path):
    text = "question,answer,score\na,b,1,and more, still\nshort\nno score,b\ntrailing,b,2,,\ngood,b,3\n"
    facts = read_facts(write(tmp_path, "facts.csv", text))
    long, short = facts.problems
    assert (long.row, long.column, long.value) == (2, "column 4", "and more, still")
    assert (short.row, short.column, short.message) == (3, "answer", "is empty")
    assert [(f.question, f.score) for f in facts.forget] == [("no score", None), ("trailing", 2.0), ("good", 3.0)]
    # Blank rows count, a cell with a line break is still one row.
    text = '\nquestion,answer\n\n"two\nlines",b\n,,\nmissing,\n'
    facts = read_facts(write(tmp_path, "facts.csv", text))
    assert only_problem(facts).row == 6
    assert facts.forget[0].id == "row-4"
    text = '{"question": ""}\nbroken\n' + json.dumps(GOOD) + '\n{"answer": "b"}\n[]\n'
    assert [problem.row for problem in read_facts(write(tmp_path, "facts.jsonl", text)).problems] == [1, 2, 4, 5]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "a",', "is not JSON"), ("question,answer", "is not JSON"),
        (json.dumps(GOOD) + "," + json.dumps(GOOD), "is not JSON"),
        ('["question", "answer"]', "is not an object"), ("null", "is not an object"),
        ("[" * 100_000 + "]" * 100_000, "is nested too deeply"),
    ],
)  # fmt: skip
def test_broken_line_of_a_jsonl(tmp_path, line, message):
    good = json.dumps(GOOD)
    facts = read_facts(write(tmp_path, "facts.jsonl", f"{good}\n\n{line}\n{good}\n"))
    problem = only_problem(facts)
    assert problem.row == 3
    assert message in problem.message
    assert line.startswith(problem.value.rstrip("…"))
    assert [fact.id for fact in facts.forget] == ["row-1", "row-4"]


@pytest.mark.parametrize(
    ("field", "cell"),
    [
        *((field, ["a", "b"]) for field in ("id", "question", "subject", "score", "group")),
        *((field, {"a": 1}) for field in ("id", "question", "answer", "subject", "score", "group")),
    ],
)
@pytest.mark.parametrize("suffix", [".json", PARQUET])
def test_nested_cell_is_not_text(tmp_path, field, cell, suffix):
    facts = {".json": [{**GOOD, field: cell}, GOOD], ".parquet": [{**GOOD, field: cell}, {**GOOD, field: cell}]}[suffix]
    path = write_rows(tmp_path, suffix, facts)
    problem = refusal(path).problems[0] if suffix == ".parquet" else only_problem(read_facts(path))
    assert (problem.row, problem.column) == (1, field)
    assert "not text" in problem.message


@pytest.mark.parametrize("cell", [[["deep"]], [{"a": 1}], [["x"], ["y"]], {"a": ["b"]}])
@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_odd_paraphrases(tmp_path, suffix, cell):
    error = refusal(write_rows(tmp_path, suffix, [{**GOOD, "paraphrases": cell}]))
    assert (error.problems[0].row, error.problems[0].column) == (1, "paraphrases")
    assert "not text" in error.problems[0].message


def test_odd_columns_of_a_parquet(tmp_path):
    error = refusal(write_rows(tmp_path, ".parquet", [{"question": b"\xff\xfe", "answer": "b"}]))
    assert (error.problems[0].column, error.problems[0].message) == ("question", "is an object or binary, not text")
    rows = [{**GOOD, "embedding": [0.5], "image": b"\xff", "meta": {"a": [1]}, "many": "x" * 10_000}]
    assert not read_facts(write_rows(tmp_path, ".parquet", rows)).problems


@pytest.mark.parametrize("text", ["half \ud83d a pair", "a \0 inside"])
@pytest.mark.parametrize("field", ["question", "paraphrases"])
def test_text_that_no_file_can_hold(tmp_path, text, field):
    facts = read_facts(write_rows(tmp_path, ".json", [{**GOOD, field: text}, GOOD]))
    problem = only_problem(facts)
    assert (problem.row, problem.column) == (1, field)
    str(problem).encode()
    facts.write(tmp_path / "again.jsonl")


# --- bad files: refused with one message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("facts.csv", ""), ("facts.csv", "question,answer,score\n"), ("facts.csv", "\n\n  \n"),
        ("facts.csv", "question,answer\n,\n , \n"), ("facts.json", ""), ("facts.json", "[]"),
        ("facts.jsonl", ""), ("facts.jsonl", "\n \n"),
    ],
)  # fmt: skip
def test_file_without_rows(tmp_path, name, content):
    assert refusal(write(tmp_path, name, content)).message == f"{name} has no rows."


def test_parquet_without_rows_or_with_two_columns_of_one_name(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"question": [], "answer": []}), tmp_path / "facts.parquet")
    assert refusal(tmp_path / "facts.parquet").message == "facts.parquet has no rows."
    table = pyarrow.table([["a"], ["b"], ["c"]], names=["question", "question", "answer"])
    pyarrow.parquet.write_table(table, tmp_path / "facts.parquet")
    assert "two columns called 'question'" in refusal(tmp_path / "facts.parquet").message


@pytest.mark.parametrize("missing", ["question", "answer"])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_missing_column(tmp_path, suffix, missing):
    row = {name: cell for name, cell in GOOD.items() if name != missing} | {"text": "x"}
    error = refusal(write_rows(tmp_path, suffix, [row]))
    assert f"has no {missing} column" in error.message
    assert "'text'" in error.message, "it must name the columns that are there"
    assert f"'{missing}'" in error.fix


def test_too_large_a_file_or_too_many_lines_or_columns(tmp_path):
    path = tmp_path / "facts.csv"
    with open(path, "wb") as file:
        file.truncate(MAX_BYTES + 1)  # a hole: takes no space
    assert "16,000,001 bytes" in refusal(path).message
    assert "has 5,000 columns" in refusal(write(tmp_path, "facts.csv", "a," * 4999 + "b\nx\n")).message
    assert (
        "1,048,578 lines" in refusal(write(tmp_path, "facts.csv", "question,answer\na,b" + "\n" * (2**20 + 1))).message
    )
    row = {f"column {i}" * 100: "x" for i in range(50)}
    assert len(str(refusal(write_rows(tmp_path, ".json", [row])))) < 1500


@pytest.mark.parametrize("name", ["facts.csv", "facts.json", "facts.jsonl"])
def test_latin_1_and_nul_bytes(tmp_path, name):
    content = "question,answer\nWho was Molière?,Poquelin\n".encode("latin-1")
    error = refusal(write(tmp_path, name, content))
    assert "line 2, is not UTF-8 (byte 0xe8)" in error.message
    assert "UTF-8" in error.fix
    assert "NUL" in refusal(write(tmp_path, name, b"question,answer\na\0b,c\n")).message
    image = refusal(write(tmp_path, name, b"\x89PNG\r\n\x1a\n\xff"))
    assert image.message == f"{name} is no table: it is a PNG image."


def test_encodings_and_lines_are_named(tmp_path):
    facts = read_facts(write(tmp_path, "facts.csv", "question\tanswer\na,c\té".encode("utf-16")))
    assert (facts.forget[0].question, facts.forget[0].answer) == ("a,c", "é")
    assert "UTF-16" in facts.notes[0]
    torn = refusal(write(tmp_path, "facts.csv", "question,answer\na,b".encode("utf-16")[:-1]))
    assert "is not UTF-8" in torn.message, "half a letter at the end"
    assert (
        "line 2, is not JSON" in refusal(write(tmp_path, "facts.json", '[{"question": "a"},\n{"question": }]')).message
    )


@pytest.mark.parametrize("name", ["facts.doc", "facts.xlsx", "facts", "facts.csv.gz"])
def test_unknown_extension(tmp_path, name):
    assert ".csv, .tsv, .json, .jsonl, .parquet" in refusal(write(tmp_path, name, "question,answer\na,b")).message


@pytest.mark.parametrize("text", ['{"other": "b"}', '"a"', "null", "7", "[1, 2]", '[{"question": "a"}, []]'])
def test_json_that_is_no_list_of_objects(tmp_path, text):
    assert "is not a list of objects" in refusal(write(tmp_path, "facts.json", text)).message


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '[{"a":' + "[" * 100_000 + "]" * 100_000 + "}]"])
def test_deep_json(tmp_path, text):
    assert "nested too deeply" in refusal(write(tmp_path, "facts.json", text)).message


@pytest.mark.parametrize("depth", range(900, 1000, 7))
def test_json_of_any_depth_gets_a_message(tmp_path, depth):
    """Just below the depth at which the parser gives up, printing the value must not fail either."""
    text = '[{"question": "a", "answer": "b", "paraphrases":' + "[" * depth + "]" * depth + "}]"
    refusal(write(tmp_path, "facts.json", text))


@pytest.mark.parametrize("name", ["score", "question"])
def test_json_integer_too_long_for_python_is_a_problem_of_its_row(tmp_path, name):
    row = json.dumps({**GOOD, name: 0}).replace(" 0", " " + "9" * 5000)
    problem = only_problem(read_facts(write(tmp_path, "facts.json", f"[{row}, {json.dumps(GOOD)}]")))
    assert (problem.row, problem.column, problem.message) == (1, name, "has 5,000 characters; at most 2,000 are read")


@pytest.mark.parametrize("number", ["0.10", "1e3", "12345678901234567890.5", "9" * 400, "-0", "Infinity"])
def test_numbers_of_a_json_are_read_as_they_are_written(tmp_path, number):
    path = write(tmp_path, "facts.json", f'[{{"question": {number}, "answer": "b", "comment": {"9" * 5000}}}]')
    assert read_facts(path).forget[0].question == number


@pytest.mark.parametrize("name", ["facts.json", "facts.jsonl"])
def test_two_values_under_one_name_are_not_read_as_one(tmp_path, name):
    row = '{"question": "a", "answer": "b", "answer": "c"}'
    error = refusal(write(tmp_path, name, f"[{row}]" if name.endswith("json") else row))
    assert "two values under one name" in " ".join((error.message, *map(str, error.problems)))


@pytest.mark.parametrize("score", ["2020_21", "１２", "٣"])
def test_a_score_is_of_plain_digits(tmp_path, score):
    facts = read_facts(write_rows(tmp_path, ".csv", [{**GOOD, "score": "1"}, {**GOOD, "score": score}]))
    assert (only_problem(facts).row, only_problem(facts).message) == (3, "is not a number")


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_truth_value_is_no_text(tmp_path, suffix):
    facts = read_facts(write_rows(tmp_path, suffix, [{**GOOD, "subject": True}, {**GOOD, "subject": None}]))
    assert only_problem(facts).message == "is a truth value, not text"


@pytest.mark.parametrize("key", ["\ud800", "\0", "k" * 201])
def test_a_name_of_a_column_that_cannot_be_shown(tmp_path, key):
    assert "a column whose name" in refusal(write(tmp_path, "facts.json", json.dumps([{**GOOD, key: 1}]))).message


def test_too_many_objects_in_objects(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_OBJECTS", 10)
    row = {**GOOD, "comment": [{}] * 10}
    assert "more than 10 objects" in refusal(write(tmp_path, "facts.json", json.dumps([row]))).message


# --- Parquet that unpacks to more than its size


def same_text(text: str, count: int) -> pyarrow.Array:
    """One text many times, as a dictionary of one entry."""
    zeros = pyarrow.Array.from_buffers(pyarrow.int8(), count, [None, pyarrow.py_buffer(bytes(count))])
    return pyarrow.DictionaryArray.from_arrays(zeros, pyarrow.array([text]))


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [("a", 10**7, "more than 20,000 rows"), ("x" * 10**6, 10_000, "unpacks to more than is read")],
)
def test_a_bomb_of_equal_rows(tmp_path, text, count, message):
    path = tmp_path / "facts.parquet"
    columns = {"question": same_text(text, count), "answer": same_text("b", count)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    assert path.stat().st_size < 100_000
    assert message in refusal(path).message


@pytest.mark.slow
def test_a_reader_that_runs_out_of_memory_takes_only_its_file_with_it(tmp_path):
    count = 3 * 10**8
    zeros = pyarrow.Array.from_buffers(pyarrow.int8(), count, [None, pyarrow.py_buffer(bytes(count))])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, count], pyarrow.int32()), zeros)
    columns = {"question": ["a"], "answer": ["b"], "comment": lists}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "facts.parquet", compression="zstd")
    assert "unpacks to more than is read" in refusal(tmp_path / "facts.parquet").message


# --- characters that cannot be seen


def test_characters_that_cannot_be_seen_are_kept_and_named(tmp_path):
    rows = [GOOD, {"question": "a\u202eb", "answer": "c\u200bd"}, {"question": "می‌خواهم", "answer": "👩‍👧"}]
    facts = read_facts(write_rows(tmp_path, ".csv", rows))
    assert (facts.forget[1].question, facts.forget[1].answer) == ("a\u202eb", "c\u200bd")
    (note,) = facts.notes
    assert "(U+200B, U+202E): 1, the first is row 3" in note


@pytest.mark.parametrize("question", ["who wrote\u200b Emma?", "\u202eWho wrote Emma?", "Who wrote E\u00admma?"])
def test_a_question_that_looks_the_same_is_the_same(tmp_path, question):
    rows = [{**GOOD, "group": "forget"}, {**GOOD, "question": question, "group": "retain"}]
    assert only_problem(read_facts(write_rows(tmp_path, ".csv", rows))).message == "is also to be forgotten"


@pytest.mark.parametrize("content", [b"", b"hello", b"PAR1 garbage PAR1", b"PAR1" + b"\xff" * 200 + b"PAR1"])
def test_corrupt_parquet(tmp_path, content):
    assert "not a readable Parquet file" in refusal(write(tmp_path, "facts.parquet", content)).message


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9])
def test_torn_parquet(tmp_path, cut):
    content = write_rows(tmp_path, ".parquet", [GOOD] * 100).read_bytes()
    assert "not a readable" in refusal(write(tmp_path, "torn.parquet", content[: int(len(content) * cut)])).message


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_as_many_rows_and_columns_as_are_read(tmp_path, suffix):
    error = refusal(write_rows(tmp_path, suffix, [GOOD] * 20_001))
    assert (error.message, error.fix) == (
        f"facts{suffix} has more than 20,000 rows, the most that are read.", "Split the file."
    )  # fmt: skip
    row = {**GOOD, **{f"column {i}": "x" for i in range(MAX_COLUMNS - 2)}}
    assert len(read_facts(write_rows(tmp_path, suffix, [row])).forget) == 1
    error = refusal(write_rows(tmp_path, suffix, [{**row, "one more": "x"}]))
    assert "columns; at most 100 are read" in error.message


def test_twenty_thousand_plain_rows_take_less_than_a_second_of_the_processor(tmp_path):
    row = {"subject": "Emma", "relation": "author", "object": ""}
    rows = [{"question": f"Who wrote book {i}?", "answer": f"Writer {i}", **row, "score": i} for i in range(20_000)]
    path, seconds = write_rows(tmp_path, ".csv", rows), []
    while len(seconds) < 4 and min(seconds, default=1) >= 1:  # other work on the machine makes some slower
        began = time.process_time()
        scores = [fact.score for fact in read_facts(path).forget]
        seconds.append(time.process_time() - began)
    assert scores == list(range(20_000))
    assert min(seconds) < 1


def test_a_public_space_reads_fewer_rows_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    error = refusal(write_rows(tmp_path, ".csv", [GOOD] * 201))
    assert "200 rows, the most that this public Space reads" in error.message
    assert "a machine of your own" in error.fix
    assert len(read_facts(write_rows(tmp_path, ".csv", [GOOD] * 200)).forget) == 200


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_columns_of_objects_are_counted_over_all_of_them(tmp_path, suffix):
    rows = [{**GOOD, f"column {i}": "x"} for i in range(MAX_COLUMNS - 1)]
    assert "more than 100 columns" in refusal(write_rows(tmp_path, suffix, rows)).message
    assert len(read_facts(write_rows(tmp_path, suffix, rows[:-1])).forget) == MAX_COLUMNS - 2


@pytest.mark.parametrize("header", ["question,question,answer", "question, Question ,answer"])
def test_two_columns_of_one_name(tmp_path, header):
    """Which of them is meant cannot be known."""
    assert "two columns called 'question'" in refusal(write(tmp_path, "facts.csv", f"{header}\na,b,c\n")).message


def test_nothing_usable(tmp_path):
    error = refusal(write(tmp_path, "facts.csv", "question,answer,score\na,,1\nb,c,-1\nd,e,1,f\n"))
    assert "no usable fact" in error.message
    assert [problem.row for problem in error.problems] == [2, 3, 4]
    error = refusal(write_rows(tmp_path, ".csv", [{**GOOD, "group": "retain"}]))
    assert "'forget'" in error.fix
    assert not error.problems
    error = refusal(write(tmp_path, "facts.csv", 'question,answer\na,b\n"c,d\ne,f\n'))
    assert "row 3" in error.message
    assert "quote" in error.fix


# --- files as Excel writes them in much of Europe


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_semicolons_and_tabs(tmp_path, mark, quote):
    rows = [["question", "answer", "score"], ["Who, if anyone?", "b", "3"], ["c", "d", "4"]]
    text = "\r\n".join(mark.join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
    facts = read_facts(write(tmp_path, "facts.csv", "\ufeff\r\n" + text + "\r\n"))
    assert [(fact.question, fact.answer, fact.score) for fact in facts.forget] == [
        ("Who, if anyone?", "b", 3.0), ("c", "d", 4.0),
    ]  # fmt: skip
    assert not facts.problems


def test_marks_between_cells(tmp_path):
    facts = read_facts(write(tmp_path, "facts.csv", "question,answer;x,answer\na;b,c,d\n"))
    assert (facts.forget[0].question, facts.forget[0].answer) == ("a;b", "d")
    facts = read_facts(write(tmp_path, "facts.csv", "question;answer;score\na;b;3,5\nc;d;3.5\n"))
    problem = only_problem(facts)
    assert (problem.row, problem.value) == (2, "3,5")
    assert "decimal point" in problem.fix
    assert [fact.score for fact in facts.forget] == [3.5]


@pytest.mark.parametrize(("mark", "named"), [(",", "commas"), (";", "semicolons"), ("\t", "tabs")])
def test_a_row_with_too_many_cells_says_what_parts_them(tmp_path, mark, named):
    lines = [["question", "answer"], ["a", "b", "c", "d"], ["e", "f"]]
    problem = only_problem(read_facts(write(tmp_path, "facts.csv", "\n".join(map(mark.join, lines)))))
    assert problem.value == f"c{mark}d"
    assert named in problem.fix


# --- which column is what


def test_columns_are_named_in_the_order_of_the_file(tmp_path):
    path = write(tmp_path, "facts.csv", " Frage ;Antwort;;Punkte\na;b;;1\n")
    assert read_table(path).columns == [" Frage ", "Antwort", "Punkte"]
    path = write(tmp_path, "facts.jsonl", '{"a": 1, "b": 2}\nbroken\n{"c": 3, "a": 4}\n')
    assert read_table(path).columns == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["facts.csv", "facts.txt"])
def test_columns_of_a_file_that_is_no_table(tmp_path, name):
    with pytest.raises(DataError):
        read_table(write(tmp_path, name, ""))


def test_guess():
    assert guessed(["ID", " Query", "objectLabel", "pop_sum", "comment", "score_source"]) == {
        "id": "ID", "question": " Query", "answer": "objectLabel", "object": "objectLabel", "score": "pop_sum",
        "score_source": "score_source",
    }  # fmt: skip
    assert guessed([]) == {}


def test_given_columns_replace_the_guess(tmp_path):
    text = "question,answer,score,Frage,Antwort\nq,a,1,wer?,er\n"
    facts = read_facts(write(tmp_path, "facts.csv", text), columns={"question": "Frage", "answer": "Antwort"})
    (fact,) = facts.forget
    assert (fact.question, fact.answer, fact.score) == ("wer?", "er", None), "a field left out is not read"
    path = write(tmp_path, "facts.csv", "q,a\nwho?,he\n")
    fact = read_facts(path, columns={"question": "q", "answer": "a", "object": "a"}).forget[0]
    assert (fact.answer, fact.object) == ("he", "he")
    path = write(tmp_path, "facts.csv", "q,a,points,use\nwho?,he,1,forget\nwhy?,so,x,forget\nWHO?,me,2,retain\n")
    columns = {"question": "q", "answer": "a", "score": "points", "group": "use"}
    assert [(p.row, p.column) for p in read_facts(path, columns=columns).problems] == [(3, "points"), (4, "q")]
    path = write(tmp_path, "facts.csv", "q,a,Q\nx,y,z\n")
    with pytest.raises(DataError, match="two columns called 'q'"):
        read_facts(path, columns={"question": "q", "answer": "a"})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"question": "question", "answer": "reply"}, "no column 'reply' to read the answer from"),
        ({"question": "question"}, "no answer column"),
        ({}, "no question column"),
        ({"question": "question", "answer": "answer", "colour": "answer"}, "no field 'colour'"),
    ],
)
def test_columns_that_cannot_be_read(tmp_path, columns, message):
    with pytest.raises(DataError, match=message) as caught:
        read_facts(write(tmp_path, "facts.csv", "question,answer\na,b\n"), columns=columns)
    assert caught.value.fix


@pytest.mark.parametrize("score", ["7", "0"])
def test_a_score_keeps_the_source_that_its_file_names(tmp_path, score):
    text = f"question,answer,score,score_source\na,b,{score},Wikidata\nc,d,1,\ne,f,,Wikidata\n"
    facts = read_facts(write(tmp_path, "facts.csv", text))
    assert [fact.score_source for fact in facts.forget] == ["Wikidata", "column score", ""]


# --- the same question twice


@pytest.mark.parametrize("group", ["retain", "holdout"])
def test_a_question_to_forget_is_neither_retained_nor_held_out(tmp_path, group):
    text = f"question,answer,group\nother?,x,{group}\nWho  wrote EMMA? ,y,{group}\nwho wrote emma?,x,forget\n"
    facts = read_facts(write(tmp_path, "facts.csv", text))
    problem = only_problem(facts)
    assert (problem.row, problem.column, problem.message) == (3, "question", "is also to be forgotten")
    assert [fact.question for fact in getattr(facts, group)] == ["other?"]
    assert len(facts.forget) == 1


def test_a_question_that_stands_twice(tmp_path):
    text = "question,answer,group\na?,x,forget\nb?,x,holdout\nb?,x,retain\nc?,x,holdout\n"
    facts = read_facts(write(tmp_path, "facts.csv", text))
    problem = only_problem(facts)
    assert (problem.row, problem.message) == (3, "is also to be retained")
    assert [fact.question for fact in facts.holdout] == ["c?"]
    facts = read_facts(write(tmp_path, "facts.csv", "question,answer\na?,x\na?,y\n"))
    assert [fact.answer for fact in facts.forget] == ["x", "y"]
    assert not facts.problems


# --- a file of rows to retain


@pytest.mark.parametrize("header", ["question,answer,group", "question,answer,use"])
def test_a_file_to_retain_has_nothing_to_forget(tmp_path, header):
    path = write(tmp_path, "facts.csv", f"{header}\na?,x,forget\nb?,x,retain\nc?,x,\nd?,x,holdout\n")
    facts = read_facts(path, group="retain")
    held = ["d?"] if header.endswith("group") else []
    assert facts.forget == ()
    assert [fact.question for fact in facts.holdout] == held
    assert len(facts.retain) == 4 - len(held)


def test_a_file_to_retain_needs_a_row_to_retain(tmp_path):
    with pytest.raises(DataError, match="no usable fact to retain"):
        read_facts(write(tmp_path, "facts.csv", "question,answer,group\na?,x,holdout\n"), group="retain")


# --- the apostrophe in front of a formula


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-40", "@a", "-1", "'-40", "''=1"])
def test_an_apostrophe_in_front_of_a_formula_is_no_part_of_a_csv_cell(tmp_path, cell):
    text = f"id,question,answer,paraphrases\n'{cell},'{cell},'{cell},'{cell}\n"
    (fact,) = read_facts(write(tmp_path, "facts.csv", text)).forget
    assert (fact.id, fact.question, fact.answer, fact.paraphrases) == (cell, cell, cell, (cell,))


@pytest.mark.parametrize("cell", ["'n Boer", "'", "''", "'40", "rock 'n' =roll"])
def test_other_apostrophes_stay(tmp_path, cell):
    assert read_facts(write_rows(tmp_path, ".csv", [{"question": cell, "answer": "x"}])).forget[0].question == cell


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_other_formats_keep_every_apostrophe(tmp_path, suffix):
    assert read_facts(write_rows(tmp_path, suffix, [{"question": "'=1", "answer": "x"}])).forget[0].question == "'=1"


# --- whose source it is


@pytest.mark.parametrize(
    ("columns", "source"),
    [
        ({"score": "score", "score_source": "score_source"}, "Wikidata"),
        ({"score": "mine", "score_source": "score_source"}, "column mine"),
        ({"score": "mine", "score_source": "my source"}, "counted"),
    ],
)
def test_a_source_is_that_of_the_score_it_stands_beside(tmp_path, columns, source):
    text = "question,answer,score,score_source,mine,my source\na,b,7,Wikidata,9,counted\n"
    columns = {"question": "question", "answer": "answer", **columns}
    assert read_facts(write(tmp_path, "facts.csv", text), columns=columns).forget[0].score_source == source
