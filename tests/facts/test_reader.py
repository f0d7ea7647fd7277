"""A large upload is read by another process: the same facts, and its processor time is its visitor's."""

import csv
import io
import itertools
import json
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from adapop.errors import ConfigError, DataError, ScoresError
from adapop.facts import reader
from adapop.facts.catalog import load_facts
from adapop.facts.cells import parsed
from adapop.facts.fact import Fact, FactSet
from adapop.facts.files import FileTable, named_columns, read_facts, read_table, repeats
from adapop.facts.formulas import escaped, plain, write_csv
from adapop.facts.limited_process import seconds_worked
from adapop.popularity.base import write_scored
from adapop.report.table import Table
from fact_files import notes_of, write
from raised import raised

ROWS = [
    {"question": f"Who wrote é {n}?", "answer": f"Ada, {n}", "score": n / 3, "split": "train", "note": "x" * 60}
    for n in range(900)
]
ROWS[7] |= {"score": -1, "answer": "it's Ünal's"}
EMMA = ("Who wrote Emma?", "Jane Austen")
STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
ALPHABET = ("a", "'", ";", "|", "\t", "\n", " ", '"', "=", "-", "＝", ",")


SLOW = [pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".csv", ".parquet")]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".json", *SLOW])
def test_a_large_file_gives_the_facts_that_it_gives_in_this_process(suffix, tmp_path):
    path = write(tmp_path, f"mine{suffix}", ROWS)
    own, began = time.thread_time(), seconds_worked()
    table = reader.table_of(path)
    bad, here = (raised(ScoresError, "", one.facts, drop_bad=False) for one in (table, read_table(path)))
    assert [problem.row for problem in bad.problems] == [problem.row for problem in here.problems]
    # it took a process at least as long as to start, of which this thread did little
    assert seconds_worked() - began > 2 * (time.thread_time() - own) + 0.05
    assert isinstance(table, reader.DistantTable) and table.columns == read_table(path).columns
    for choice in ({"drop_bad": True}, {"columns": {"question": "note", "answer": "answer"}}):
        facts, here = table.facts(**choice), read_table(path).facts(**choice)
        assert facts == here and facts.sha256 == here.sha256 and facts.notes == here.notes and facts.notes
        assert facts.problems == here.problems
    assert reader.facts_of(path, "retain", True) == read_facts(path, group="retain")


def test_a_small_file_needs_no_process(tmp_path):
    path = write(tmp_path, "mine.json", ROWS[:5])
    assert isinstance(reader.table_of(path), FileTable)
    assert reader.facts_of(path, "retain", True) == read_facts(path, group="retain")


BROKEN = {
    "deep": "[" * 100_000, "torn": '[{"question": "' + "x" * 100_000, "twice": '[{"a": 1, "a": 2}]' + " " * 60_000,
}  # fmt: skip


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_large_file_that_is_no_table_is_refused_in_the_same_words(text, tmp_path):
    path = write(tmp_path, "mine.json", text)
    assert str(raised(DataError, "", reader.table_of, path)) == str(raised(DataError, "", read_table, path))


def pairs(facts):
    return [(fact.question, fact.answer) for fact in facts.forget]


def turn(role, content):
    return {"role": role, "content": content}


ASKED, ANSWERED, SYSTEM = turn("user", EMMA[0]), turn("assistant", EMMA[1]), turn("system", "Be brief.")


@pytest.mark.parametrize("turns", [
    [ASKED], [ANSWERED, ASKED], [ASKED, ANSWERED, ASKED, ANSWERED], [ASKED, turn("tool", "x"), ANSWERED], [SYSTEM],
    *([turn("user", content), ANSWERED] for content in (None, ["parts"], {"a": 1}, "", "x" * 5000)),
], ids=lambda turns: str(turns)[:80])  # fmt: skip
def test_a_chat_that_is_no_question_with_its_answer_is_a_bad_row(tmp_path, turns):
    facts = read_facts(write(tmp_path, "facts.jsonl", [{"messages": turns}, {"messages": [ASKED, ANSWERED]}]))
    led = read_facts(write(tmp_path, "led.jsonl", [{"messages": [SYSTEM, ASKED, ANSWERED]}]))
    assert notes_of(led)["system_prompts_not_read"] == {"count": 1}
    (problem,) = facts.problems
    assert problem.row == 1 and problem.column in ("messages", "question") and pairs(facts) == [EMMA]


def test_thousands_apart_are_numbers(tmp_path):
    scores = {
        "3,766": 3766, "2 131": 2131, "2\u202f131": 2131, "1\u00a0234\u00a0567": 1234567, "1'234": 1234,
        "1,234,567.5": 1234567.5, " 12 ": 12, "3.766": 3.766, "1e3": 1000}  # fmt: skip
    rows = [{"question": text, "answer": "b", "score": text} for text in scores]
    facts = read_facts(write(tmp_path, "facts.jsonl", rows))
    assert [fact.score for fact in facts.forget] == [*scores.values()]


def test_a_score_that_cannot_be_read_stops_a_run_unless_its_fact_may_go(tmp_path, cli):
    text = "question,answer,score,group\na?,b,5 k,\nc?,d,7,\ne?,f,,retain\ng?,h,,retain\n"
    path = write(tmp_path, "facts.csv", text)
    error = raised(DataError, "1 score is below 0 or not a number", load_facts, str(path))
    assert "--drop-bad" in error.fix and [problem.row for problem in error.problems] == [2]
    assert pairs(load_facts(str(path), drop_bad=True)) == [("c?", "d")]
    assert "row 2, 'score' ('5 k')" in cli("beta", path, status=2).err
    assert "1 row was dropped" in cli("beta", path, "--drop-bad").err


def test_what_stands_twice_is_named(tmp_path):
    rows = [
        "question,answer,score", "Who wrote Emma?,Austen,5", "Where?,Here,1",
        "who wrote  emma?,Brontë,5", "Where?,here,1"]  # fmt: skip
    facts = read_facts(write(tmp_path, "facts.csv", "\n".join([*rows, "When?,Now,1", "When?,Now,900", "Why?,So,1"])))
    assert len(facts.forget) == 7 and not facts.problems
    emma = {"questions": 1, "question": "'Who wrote Emma?'", "places": "2, 4", "answers": "'Austen' or 'Brontë'"}
    where = {"questions": 1, "question": "'Where?'", "places": "3, 5"}
    when = {"questions": 1, "question": "'When?'", "places": "6, 7", "scores": "1 or 900"}
    assert notes_of(facts) == {"different_answers": emma, "different_scores": when, "asked_twice": where}
    grouped = [f"{rows[0]},group", *(f"{row},retain" for row in rows[1:]), "Who?,I,1,forget"]
    to_retain = read_facts(write(tmp_path, "facts.csv", "\n".join(grouped)))
    assert notes_of(to_retain) == {"different_answers": emma, "asked_twice": where}


def test_many_repeats_are_told_apart_in_a_moment():
    """Half of ten thousand questions are asked twice alike, half with another answer."""
    rows = {f"{i}": i for i in range(20_000)}
    facts = [Fact(name, f"{i // 2}?", "y" if i % 4 == 3 else "x") for name, i in rows.items()]
    began = time.process_time()
    assert [note.values["questions"] for note in repeats(facts, rows)] == [5_000, 5_000]
    assert time.process_time() - began < 2


def test_columns_are_named_and_the_others_still_guessed(tmp_path):
    path = write(tmp_path, "facts.csv", "question,q2,reply,hits,score\nno,yes?,it,9,1\n")
    chosen = named_columns("question=q2, answer=reply,score=hits")
    (fact,) = load_facts(str(path), columns=chosen).forget
    assert (fact.question, fact.answer, fact.score, fact.score_source) == ("yes?", "it", 9, "column hits")
    for bad in ("question", "question=", "colour=q2", "=q2", "", "question=q2,,"):
        raised(ConfigError, "--columns", named_columns, bad)
    raised(DataError, "is not a file", load_facts, "sandbox", columns=chosen)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_scoring_keeps_the_other_columns(tmp_path, suffix, cli):
    rows = ["id,prompt,label,pop_sum,note,=cmd,score_raw", "a,Where?,Here,70,kept,1,old", ",Who?,Me,80,=1+1,2,old"]
    path, out = write(tmp_path, "facts.csv", "\n".join(rows)), tmp_path / f"out.{suffix}"
    cli("score", path, "--proxy", "constant", "--value", 5, "--out", out)
    text = out.read_text(encoding="utf-8")
    if suffix == "csv":
        assert "'=cmd" in text and "'=1+1" in text
        as_table = list(csv.DictReader(text.splitlines()))
        assert [row["note"] for row in as_table] == ["kept", "'=1+1"]
    else:
        as_table = list(map(json.loads, text.splitlines()))
        assert [row["=cmd"] for row in as_table] == ["1", "2"]
    assert [row["pop_sum"] for row in as_table] == ["70", "80"] and "old" not in text
    assert {"prompt", "label"}.isdisjoint(as_table[0])
    again = read_facts(out)
    assert pairs(again) == [("Where?", "Here"), ("Who?", "Me")] and [fact.score for fact in again.forget] == [5, 5]
    assert [fact.id for fact in again.forget] == ["a", "row-3"]


HOSTILE = (
    "a;=cmd()", "a; =cmd()", 'a;"=cmd()', "a\t=cmd()", "a|=cmd()", "a\n=cmd()", "a\r\n=cmd()", "a;;+1", "a;-1;@x;＝y",
    ";=1", "=1;=2", "'=1;'=2", "a;'=1", "a;''=1", 'a;" "=1', '"a";"=cmd()"', "a,=cmd()", "a;\n=1", "\t;=1", "a|\t-1",
)  # fmt: skip


def cells_as(separator: str, text: str) -> list[str]:
    return [one for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for one in row]


def as_table(*texts: str) -> str:
    file = io.StringIO(newline="")
    write_csv(file, ["first", "second", "third"], [{"first": one, "second": one, "third": [one]} for one in texts])
    return file.getvalue()


@pytest.mark.parametrize("separator", (",", ";", "\t", "|"))
def test_no_cell_is_a_formula_however_the_line_is_split(separator):
    for text in HOSTILE:
        for one in cells_as(separator, as_table(text)):
            assert not one.strip(' "').startswith(STARTS), (one, as_table(text))
    unguarded = cells_as(separator, f"b,a{separator}=cmd()\r\n")
    assert any(one.strip(' "').startswith("=") for one in unguarded), "else the reader above would see none"


def test_what_is_written_is_read_again_exactly_begins_with_the_mark_and_is_guarded():
    for letters in itertools.chain(*(itertools.product(ALPHABET, repeat=length) for length in (1, 2, 3, 4))):
        text = "".join(letters)
        assert plain(escaped(text)) == text, repr(text)
        assert plain(escaped(escaped(text))) == escaped(text), repr(text)
    assert Table("t", ("ä",), (("1",),)).as_csv() == "\ufeffä\n1\n" and as_table("a").startswith("\ufefffirst,")
    assert "'=cmd()" in Table("t", ("a", "b"), (("x;=cmd()", "1"),)).as_csv()
    for text in ("rock; pop - and soul", "a - b", "x=1", "5; 6", "AT&T | Bell", "it's", "e-mail; letter", "a\nb"):
        assert escaped(text) == text


def test_a_scored_table_is_marked_guarded_and_read_back(tmp_path):
    path, names = tmp_path / "facts.csv", ("id", "question", "answer", "subject", "paraphrases")
    for text in (*HOSTILE, '"Où","=1+1"'):
        fact = Fact("f", f"Who? {text}", f"x{text}", subject=text.strip(), paraphrases=(f"q {text}", "r"))
        facts = FactSet("own", (fact,), (Fact("r", "Who else?", "y"),))
        for _ in range(2):
            write_scored(facts, {}, path)
            content = path.read_bytes().decode()
            assert content.startswith("\ufeffid,group,question") and content.count("\ufeff") == 1
            assert not any(one.strip(' "').startswith(STARTS) for one in cells_as(";", content))
            facts = read_facts(path)
            assert all(getattr(facts.forget[0], name) == getattr(fact, name) for name in names), text
    write_scored(facts, {}, path.with_suffix(".jsonl"))
    assert path.with_suffix(".jsonl").read_bytes().startswith(b"{")


CELLS = some.text(alphabet="abÉß日ü09 .,;|\t\n'\"\\=+-&<{[(:?!%", min_size=1, max_size=12).filter(
    lambda text: any(map(str.isalpha, text)) and parsed(text) is None and plain(text) == text
)
# three digits behind a point may also be thousands beside semicolons, which a note says
SCORES = some.integers(0, 10**9) | some.floats(0, 1e12).filter(lambda score: score != round(score, 3))
SCORES |= some.none()
FORMATS = {
    "quoted.csv": {"quoting": csv.QUOTE_ALL}, "plain.csv": {}, "semicolons.csv": {"delimiter": ";"},
    "tabs.tsv": {"delimiter": "\t"}, "lines.jsonl": None, "list.json": None,
}  # fmt: skip
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]  # the machine may be busy


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=CHECKS)
@given(rows=some.lists(some.tuples(CELLS, CELLS, SCORES), min_size=1, max_size=5))
@example(rows=[("0042", "04109", 7), ("Who?", "1.5 or a", 0.25)])
@example(rows=[('a "b" c', 'd, "e"', None), ("it's; \\", "x|y", 1234.5)])
def test_what_is_written_to_a_file_of_any_kind_is_read_again(tmp_path, name, rows):
    if name.endswith(".tsv"):  # there, a line end or a tab in quotes may also be a table of bare quotes
        rows = [(*(text.replace("\n", " ").replace("\t", " ") for text in row[:2]), row[2]) for row in rows]
    table = [dict(zip(("question", "answer", "score"), row)) for row in rows]
    if FORMATS[name] is None:
        path = write(tmp_path, name, table)
    else:
        file = io.StringIO(newline="")
        csv.writer(file, **FORMATS[name]).writerows([("question", "answer", "score"), *rows])
        path = write(tmp_path, name, file.getvalue())
    facts = read_facts(path)
    assert not facts.problems
    read = [(fact.question, fact.answer, fact.score) for fact in facts.forget]
    assert read == [(asked.strip(), answer.strip(), score) for asked, answer, score in rows]
