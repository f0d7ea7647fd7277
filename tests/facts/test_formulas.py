"""No cell of a table that we write is a formula, however a spreadsheet splits its lines; and reading is exact."""

import csv
import io
import itertools

import pytest

from adapop.facts.fact import Fact, FactSet
from adapop.facts.files import read_facts
from adapop.facts.formulas import cell, plain, write_csv
from adapop.popularity.scoredfile import write_scored
from adapop.report.table import Table

STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
SEPARATORS = (",", ";", "\t", "|")
HOSTILE = (
    "a;=cmd()", "a; =cmd()", 'a;"=cmd()', "a\t=cmd()", "a|=cmd()", "a\n=cmd()", "a\r\n=cmd()", "a;;+1", "a;-1;@x;＝y",
    ";=1", "=1;=2", "'=1;'=2", "a;'=1", "a;''=1", 'a;" "=1', '"a";"=cmd()"', "a,=cmd()", "a;\n=1", "\t;=1", "a|\t-1",
)  # fmt: skip
ALPHABET = ("a", "'", ";", "|", "\t", "\n", " ", '"', "=", "-", "＝", ",")


def cells_as(separator: str, text: str) -> list[str]:
    """How a spreadsheet with this separator splits a file. It honours quotes only where a cell begins."""
    return [one for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for one in row]


def written(*texts: str) -> str:
    file = io.StringIO(newline="")
    write_csv(file, ["first", "second", "third"], [{"first": one, "second": one, "third": [one]} for one in texts])
    return file.getvalue()


@pytest.mark.parametrize("separator", SEPARATORS)
def test_no_cell_is_a_formula_however_the_line_is_split(separator):
    for text in HOSTILE:
        for one in cells_as(separator, written(text)):
            assert not one.strip(' "').startswith(STARTS), (one, written(text))
    unguarded = cells_as(separator, f"b,a{separator}=cmd()\r\n")
    assert any(one.strip(' "').startswith("=") for one in unguarded), "else the reader above would see none"


def test_what_is_written_is_read_again_exactly():
    for letters in itertools.chain(*(itertools.product(ALPHABET, repeat=length) for length in (1, 2, 3, 4))):
        text = "".join(letters)
        assert plain(cell(text)) == text, repr(text)
        assert plain(cell(cell(text))) == cell(text), repr(text)


def test_facts_survive_a_table(tmp_path):
    path, names = tmp_path / "facts.csv", ("question", "answer", "subject", "paraphrases")
    for text in HOSTILE:
        fact = Fact("f", f"Who? {text}", f"x{text}", subject=text.strip(), paraphrases=(f"q {text}", "r"))
        write_scored(FactSet("own", (fact,), (Fact("r", "Who else?", "y"),)), {}, path)
        assert not any(one.strip(' "').startswith(STARTS) for one in cells_as(";", path.read_text(encoding="utf-8")))
        (again,) = read_facts(path).forget
        assert all(getattr(again, name) == getattr(fact, name) for name in names), text


@pytest.mark.parametrize("question", ["Où est München?", "=1+1", '"a","b"'])
def test_a_spreadsheet_knows_the_encoding_and_our_own_mark_is_read_back(tmp_path, question):
    path = tmp_path / "facts.csv"
    facts = FactSet("own", (Fact("f", question, "Köln"),), (Fact("r", "Who else?", "y"),))
    for _ in range(2):
        write_scored(facts, {}, path)
        content = path.read_bytes()
        assert content.startswith(b"\xef\xbb\xbfid,group,question") and content.count(b"\xef\xbb\xbf") == 1
        facts = read_facts(path)
        assert (facts.forget[0].id, facts.forget[0].question, facts.forget[0].answer) == ("f", question, "Köln")
    write_scored(facts, {}, path.with_suffix(".jsonl"))
    assert path.with_suffix(".jsonl").read_bytes().startswith(b"{")


def test_every_table_for_people_begins_with_the_mark_and_is_guarded():
    assert Table("t", ("ä",), (("1",),)).as_csv() == "\ufeffä\n1\n"
    assert written("a").startswith("\ufefffirst,")
    assert "'=cmd()" in Table("t", ("a", "b"), (("x;=cmd()", "1"),)).as_csv()
    for text in ("rock; pop - and soul", "a - b", "x=1", "5; 6", "AT&T | Bell", "it's", "e-mail; letter", "a\nb"):
        assert cell(text) == text
