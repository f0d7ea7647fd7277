from pathlib import Path

import pytest

from adapop.catalog import completed, load_facts
from adapop.config import SANDBOX
from adapop.errors import DataError
from adapop.facts import Fact, FactSet
from adapop.sandbox import sandbox_facts

MINE = Fact("mine", "Who am I?", "Nobody")


def test_sandbox_set_is_complete():
    facts = load_facts(SANDBOX)
    assert all((facts.forget, facts.retain, facts.holdout, facts.utility))


@pytest.mark.parametrize("source", ["", "nothing.csv", ".", "a\0b", "x" * 5000])
def test_no_such_file(source):
    with pytest.raises(DataError, match="no set and no file"):
        load_facts(source)


def test_file_with_retain_rows_gets_a_holdout(tmp_path: Path):
    rows = ["q,a,forget", *(f"q{i},a{i},retain" for i in range(10))]
    (tmp_path / "facts.csv").write_text("\n".join(["question,answer,group", *rows]), encoding="utf-8")
    facts = load_facts(str(tmp_path / "facts.csv"), "some/model")
    assert (len(facts.forget), len(facts.retain), len(facts.holdout)) == (1, 7, 3)
    assert "held out" in facts.notes[0]


def test_no_retain_rows_for_a_model_that_is_not_the_sandbox():
    with pytest.raises(DataError, match="no retain rows") as caught:
        completed(FactSet("set", (MINE,)), "some/model")
    assert "group" in caught.value.fix


def test_sandbox_lends_retain_and_holdout_and_says_so():
    world = sandbox_facts()
    facts = completed(FactSet("set", (MINE,)), SANDBOX)
    assert (facts.retain, facts.holdout, facts.utility) == (world.retain, world.holdout, world.utility)
    assert facts.notes[-1] == "The set has no retain rows; 256 to retain and 256 held out come from the sandbox world."


def test_sandbox_lends_no_fact_that_is_to_be_forgotten():
    same_question, same_id = sandbox_facts().retain[0], sandbox_facts().holdout[0]
    forget = (Fact("other id", same_question.question, "x"), Fact(same_id.id, "other question", "x"))
    facts = completed(FactSet("set", forget), SANDBOX)
    assert same_question not in facts.retain
    assert same_id not in facts.holdout
    assert (len(facts.retain), len(facts.holdout)) == (255, 255)


def test_own_holdout_is_kept():
    own = (Fact("own", "Who else?", "Somebody"),)
    facts = completed(FactSet("set", (MINE,), holdout=own), SANDBOX)
    assert facts.holdout == own
    assert "held out" not in facts.notes[-1]
