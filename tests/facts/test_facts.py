import json
from dataclasses import replace

import pytest

from adapop.facts.fact import Fact, FactSet, Problem, scores_of, separated
from adapop.facts.holdout import split_holdout

ODD_TEXTS = (
    "a line separator \u2028 and a next line \x85",
    "quotes \"double\" and 'single' and a \\ backslash",
    "<script>alert('x')</script> & <b>bold</b>", "emoji 🦜 and a family 👩‍👩‍👧",
    "two\nlines, a\ttab and a\r return", "=HYPERLINK(1) | {s} %s",
)  # fmt: skip


def numbered(count: int, prefix: str = "r") -> tuple[Fact, ...]:
    return tuple(Fact(f"{prefix}{i}", f"question {i}?", f"answer {i}") for i in range(count))


@pytest.mark.parametrize(
    ("score", "tier"),
    [
        (None, "unknown"), (0.0, "rare"), (265.0, "rare"), (265.1, "middle"), (999.9, "middle"),
        (1000.0, "popular"), (3766.0, "popular"),
    ],
)  # fmt: skip
def test_tier(score, tier):
    assert Fact("a", "q", "a", score=score).tier == tier


def test_problem_says_where_what_and_fix():
    problem = Problem(3, "score", "-1", "is not a score", "Leave it empty")
    assert str(problem) == "row 3, 'score' is '-1': is not a score. Leave it empty"


@pytest.mark.parametrize(
    ("row", "column", "start"),
    [(0, "", "file: bad"), (4, "", "row 4: bad"), (0, "score", "'score': bad"), (4, "score", "row 4, 'score': bad")],
)
def test_problem_without_row_or_column_does_not_invent_one(row, column, start):
    assert str(Problem(row, column, "", "bad", "Fix")).startswith(start)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_written_set_is_read_back(tmp_path, text):
    fact = Fact(
        id=text, question=text, answer=text, subject=text, relation=text, object=text,
        score=12.5, score_source=text, paraphrases=(text, "plain"), alternates=(text,),
    )  # fmt: skip
    facts = FactSet(
        "set", (fact,), retain=numbered(2), holdout=numbered(1, "h"), utility=numbered(3, "u"),
        attacks=numbered(2, "a"), notes=("n",),
    )  # fmt: skip
    facts.write(tmp_path / "facts.jsonl")
    again = FactSet.load(tmp_path / "facts.jsonl", "set", ["n"])
    assert again == facts
    assert again.sha256 == facts.sha256


def test_a_written_set_is_read_again_as_it_was(tmp_path):
    facts = FactSet("set", tuple(Fact(str(i), text, text) for i, text in enumerate(ODD_TEXTS)))
    facts.write(tmp_path / "facts.jsonl")
    lines = (tmp_path / "facts.jsonl").read_bytes().decode().rstrip("\n").split("\n")
    assert [json.loads(line)["question"] for line in lines] == list(ODD_TEXTS)
    facts = FactSet("set", (Fact("a", "q", "a", score=None), Fact("b", "q", "a", score=0.0)))
    facts.write(tmp_path / "facts.jsonl")
    again = FactSet.load(tmp_path / "facts.jsonl", "set")
    assert scores_of(again.forget) == {"a": None, "b": 0.0}
    assert [fact.id for fact in again.unknown_scores] == ["a"]
    facts = FactSet("set", numbered(2, "f"), retain=numbered(1))
    facts.write(tmp_path / "facts.jsonl")
    assert "attacks" not in (tmp_path / "facts.jsonl").read_text(encoding="utf-8")
    assert FactSet.load(tmp_path / "facts.jsonl", "set") == facts


@pytest.mark.parametrize(
    "change",
    [
        {"forget": (Fact("a", "q", "other"),)}, {"forget": (Fact("a", "q", "x", score=0.0),)},
        {"forget": (Fact("a", "q", "x", paraphrases=("p",)),)},
        {"forget": (), "retain": (Fact("a", "q", "x"),)}, {"holdout": numbered(1)},
        {"utility": numbered(1)}, {"attacks": numbered(1)},
    ],
)  # fmt: skip
def test_hash_sees_every_change_of_the_data(change):
    facts = FactSet("set", (Fact("a", "q", "x"),))
    assert replace(facts, **change).sha256 != facts.sha256


def test_hash_is_of_the_facts_alone():
    facts = FactSet("set", numbered(2, "f"), retain=numbered(1), utility=numbered(1, "u"))
    assert facts.sha256 == "ebc3dc3a39ca594c1e6e7850f65339fc8eb650a57ac87df999d827c86d20c2ef"
    facts = FactSet("set", numbered(2))
    assert replace(facts, name="other", notes=("a note",)).sha256 == facts.sha256


def test_split_holdout_is_disjoint_complete_and_by_ids():
    facts = FactSet("set", numbered(1, "f"), retain=numbered(20), notes=("before",))
    split = split_holdout(facts)
    assert (len(split.retain), len(split.holdout)) == (14, 6)
    assert not set(split.retain) & set(split.holdout)
    assert set(split.retain) | set(split.holdout) == set(facts.retain)
    assert split.notes[0] == "before"
    assert "6 of its 20 retain rows are held out" in split.notes[1]
    forwards = FactSet("set", (), retain=numbered(20))
    backwards = FactSet("set", (), retain=tuple(replace(fact, answer="new") for fact in reversed(numbered(20))))
    held = [{fact.id for fact in split_holdout(facts).holdout} for facts in (forwards, backwards)]
    assert held[0] == held[1]
    split = split_holdout(FactSet("set", (), retain=numbered(2)))
    assert (len(split.retain), len(split.holdout)) == (1, 1)


@pytest.mark.parametrize(
    "facts",
    [
        FactSet("own", numbered(1, "f"), retain=numbered(20), holdout=numbered(1, "h")),
        FactSet("none", numbered(1, "f")),
    ],
    ids=lambda facts: facts.name,
)
def test_split_holdout_leaves_a_set_alone(facts):
    assert split_holdout(facts) == facts


@pytest.mark.parametrize("count", [1, 3])
def test_a_single_question_to_retain_is_trained_on_and_the_set_says_so(count):
    rows = tuple(Fact(f"r{i}", "the same?", "x") for i in range(count))
    split = split_holdout(FactSet("set", (), retain=rows))
    assert (split.retain, split.holdout) == (rows, ())
    assert "Nothing is held out" in split.notes[0]


@pytest.mark.parametrize("seed", range(8))
def test_no_question_is_both_trained_on_and_held_out(seed):
    rows = tuple(Fact(f"{seed}-{i}", f"Question {'  ' * (i % 2)}{i % 4}?", "x") for i in range(12))
    split = split_holdout(FactSet("set", (), retain=rows))
    retained, held = ({fact.question.split()[1] for fact in facts} for facts in (split.retain, split.holdout))
    assert retained
    assert held
    assert not retained & held
    assert len(split.retain) + len(split.holdout) == 12


def test_separated_drops_the_less_urgent_use_of_a_question(small):
    assert separated(small) == small

    def one(name: str) -> Fact:
        return Fact(name, "Who?", "x")

    facts = FactSet("set", (one("f"),), retain=(one("r"), Fact("r2", "Why?", "x")), holdout=(Fact("h", "WHY?", "x"),))
    apart = separated(facts, {"r": 7})
    assert [fact.id for fact in (*apart.forget, *apart.retain, *apart.holdout)] == ["f", "r2"]
    assert [(p.row, p.value, p.message) for p in apart.problems] == [
        (7, "Who?", "is also to be forgotten"), (0, "WHY?", "is also to be retained"),
    ]  # fmt: skip
