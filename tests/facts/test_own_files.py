"""Files as people have them: of chats, of benchmarks, with tabs, with thousands apart, with facts that stand twice."""

import csv
import json

import pytest

from adapop.cli import main
from adapop.errors import ConfigError, DataError
from adapop.facts.catalog import load_facts
from adapop.facts.files import named_columns, read_facts

EMMA = ("Who wrote Emma?", "Jane Austen")


def pairs(facts):
    return [(fact.question, fact.answer) for fact in facts.forget]


def jsonl(folder, *rows):
    path = folder / "facts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def turn(role, content):
    return {"role": role, "content": content}


ASKED, ANSWERED, SYSTEM = turn("user", EMMA[0]), turn("assistant", EMMA[1]), turn("system", "Be brief.")


@pytest.mark.parametrize("turns", [
    [ASKED], [ANSWERED, ASKED], [ASKED, ANSWERED, ASKED, ANSWERED], [ASKED, turn("tool", "x"), ANSWERED], [SYSTEM],
    *([turn("user", content), ANSWERED] for content in (None, ["parts"], {"a": 1}, "", "x" * 5000)),
], ids=lambda turns: str(turns)[:80])  # fmt: skip
def test_a_chat_that_is_no_question_with_its_answer_is_a_bad_row(tmp_path, turns):
    facts = read_facts(jsonl(tmp_path, {"messages": turns}, {"messages": [ASKED, ANSWERED]}))
    assert any(
        "System prompts" in note for note in read_facts(jsonl(tmp_path, {"messages": [SYSTEM, ASKED, ANSWERED]})).notes
    )
    (problem,) = facts.problems
    assert problem.row == 1 and problem.column in ("messages", "question")
    assert pairs(facts) == [EMMA]


def test_a_tsv_is_read_by_tabs_if_it_has_any(tmp_path):
    for text, pair in (
        ("question,answer\na?,b\n", ("a?", "b")),
        ("question\tanswer\nWho, and why?\tA; B\n", ("Who, and why?", "A; B")),
    ):
        (tmp_path / "f.TSV").write_text(text, encoding="utf-8")
        assert pairs(read_facts(tmp_path / "f.TSV")) == [pair]


def test_thousands_apart_are_numbers(tmp_path):
    scores = {
        "3,766": 3766, "2 131": 2131, "2\u202f131": 2131, "1\u00a0234\u00a0567": 1234567, "1'234": 1234,
        "1,234,567.5": 1234567.5, " 12 ": 12, "3.766": 3.766, "1e3": 1000, "0,123": 123}  # fmt: skip
    facts = read_facts(jsonl(tmp_path, *({"question": text, "answer": "b", "score": text} for text in scores)))
    assert [fact.score for fact in facts.forget] == [*scores.values()]


def test_a_score_that_cannot_be_read_stops_a_run_unless_its_fact_may_go(tmp_path, capsys):
    path = tmp_path / "facts.csv"
    path.write_text("question,answer,score,group\na?,b,5 k,\nc?,d,7,\ne?,f,,retain\ng?,h,,retain\n", encoding="utf-8")
    with pytest.raises(DataError, match="scores below 0 or no number: 1") as caught:
        load_facts(str(path))
    assert "--drop-bad" in caught.value.fix and [problem.row for problem in caught.value.problems] == [2]
    assert pairs(load_facts(str(path), drop_bad=True)) == [("c?", "d")]
    assert main(["beta", str(path)]) == 2
    assert "row 2, 'score' is '5 k'" in capsys.readouterr().err
    assert main(["beta", str(path), "--drop-bad"]) == 0
    assert "1 row was dropped" in capsys.readouterr().err


def test_what_stands_twice_is_named(tmp_path):
    path = tmp_path / "facts.csv"
    rows = [
        "question,answer,score", "Who wrote Emma?,Austen,5", "Where?,Here,1",
        "who wrote  emma?,Brontë,5", "Where?,here,1"]  # fmt: skip
    path.write_text("\n".join([*rows, "When?,Now,1", "When?,Now,900", "Why?,So,1"]), encoding="utf-8")
    facts = read_facts(path)
    assert len(facts.forget) == 7 and not facts.problems
    answers, scores, same = facts.notes
    assert "different answers: 1 question" in answers and "rows 2, 4: 'Austen' or 'Brontë'" in answers
    assert "different scores: 1 question" in scores and "rows 6, 7: 1 or 900" in scores
    assert "alike" in same and "'Where?' in rows 3, 5" in same
    grouped = [f"{rows[0]},group", *(f"{row},retain" for row in rows[1:]), "Who?,I,1,forget"]
    path.write_text("\n".join(grouped), encoding="utf-8")
    answers, same = read_facts(path).notes
    assert answers.startswith("To retain: Contradiction") and "rows 2, 4" in answers
    assert same.startswith("To retain: Asked twice, alike") and "rows 3, 5" in same


def test_columns_are_named_and_the_others_still_guessed(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text("question,q2,reply,hits,score\nno,yes?,it,9,1\n", encoding="utf-8")
    chosen = named_columns("question=q2, answer=reply,score=hits")
    (fact,) = load_facts(str(path), columns=chosen).forget
    assert (fact.question, fact.answer, fact.score, fact.score_source) == ("yes?", "it", 9, "column hits")
    for bad in ("question", "question=", "colour=q2", "=q2", "", "question=q2,,"):
        with pytest.raises(ConfigError, match="--columns"):
            named_columns(bad)
    with pytest.raises(DataError, match="no column 'nope'"):
        load_facts(str(path), columns={"question": "nope"})
    with pytest.raises(DataError, match="is no file"):
        load_facts("sandbox", columns=chosen)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_scoring_keeps_the_other_columns(tmp_path, suffix, capsys):
    path, out = tmp_path / "facts.csv", tmp_path / f"out.{suffix}"
    rows = ["id,prompt,label,pop_sum,note,=cmd,score_raw", "a,Where?,Here,70,kept,1,old", ",Who?,Me,80,=1+1,2,old"]
    path.write_text("\n".join(rows), encoding="utf-8")
    assert main(["score", str(path), "--proxy", "constant", "--value", "5", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    if suffix == "csv":
        assert "'=cmd" in text and "'=1+1" in text
        written = list(csv.DictReader(text.splitlines()))
        assert [row["note"] for row in written] == ["kept", "'=1+1"]
    else:
        written = list(map(json.loads, text.splitlines()))
        assert [row["=cmd"] for row in written] == ["1", "2"]
    assert [row["pop_sum"] for row in written] == ["70", "80"] and "old" not in text
    assert {"prompt", "label"}.isdisjoint(written[0])
    again = read_facts(out)
    assert pairs(again) == [("Where?", "Here"), ("Who?", "Me")] and [fact.score for fact in again.forget] == [5, 5]
    assert [fact.id for fact in again.forget] == ["a", "row-3"]
