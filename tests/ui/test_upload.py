"""A file is read once a request, whatever is asked of it."""

import json

import pytest

from adapop.cli import scores
from adapop.facts import files
from adapop.progress import Progress
from adapop.ui.facts.upload import FIELDS, NONE, _arrived, _read

ROWS = [{"Frage": f"{i}?", "Antwort": f"answer {i}", "Punkte": i, "Notiz": "x"} for i in range(20)]
OWN = ("Frage", "Antwort", NONE, NONE, NONE, "Punkte", NONE, NONE)


@pytest.fixture
def read(monkeypatch):
    """The names of the files that were read, one for each time."""
    found, rows_of = [], files.rows_of
    monkeypatch.setattr(files, "rows_of", lambda path, *more: (found.append(path.name), rows_of(path, *more))[1])
    return found


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(ROWS), encoding="utf-8")
    return str(path)


def test_a_file_that_arrives_is_read_once(read, table, tmp_path):
    other = tmp_path / "known.json"
    other.write_text(json.dumps([{"question": row["Frage"], "answer": row["Antwort"]} for row in ROWS]))
    accordion, *dropdowns, _, facts, _, _ = _arrived(str(other), "neighbours", None)
    assert accordion.visible and len(dropdowns) == len(FIELDS) and read == ["known.json"]
    assert facts is None, "none of the sandbox's relations"
    read.clear()
    accordion, question, *_ = _arrived(table, "own", None)
    assert accordion.open and question.choices[1] == ("Frage", "Frage") and read == ["mine.json"]


def test_other_columns_are_read_from_the_file_once(read, table):
    _, facts, _, _ = _read(table, "sandbox", None, *OWN)
    assert [fact.score for fact in facts.forget] == list(range(20))
    assert read == ["mine.json"]


def test_facts_to_retain_are_another_file_that_is_read_once(read, table, tmp_path):
    more = tmp_path / "more.json"
    more.write_text(json.dumps([{"question": f"more {i}?", "answer": "x"} for i in range(10)]))
    _, facts, _, _ = _read(table, "upload", str(more), *OWN)
    assert len(facts.forget) == 20 and len(facts.retain) == 7
    assert read == ["mine.json", "more.json"]


def test_the_command_line_reads_it_once(read, table):
    with open(table, encoding="utf-8") as file:
        rows = [
            {"question": row["Frage"], "answer": row["Antwort"], "Punkte": row["Punkte"]} for row in json.load(file)
        ]
    with open(table, "w", encoding="utf-8") as file:
        json.dump(rows, file)
    assert [fact.score for fact in scores.facts_of(table, Progress(), "Punkte").forget] == list(range(20))
    assert read == ["mine.json"]


def test_one_table_gives_facts_under_one_choice_and_another(read, table, tmp_path):
    found = files.read_table(tmp_path / "mine.json")
    first, second = (found.facts(columns={"question": one, "answer": "Notiz"}) for one in ("Frage", "Antwort"))
    assert found.columns == ["Frage", "Antwort", "Punkte", "Notiz"] and read == ["mine.json"]
    assert (first.forget[0].question, second.forget[0].question) == ("0?", "answer 0")
    assert found.facts(columns={"question": "Frage", "answer": "Notiz"}) == first
