"""The balance proof of the second world: popularity is the only thing in which its facts differ."""

import csv
from collections import Counter
from itertools import product

import pytest

from adapop.facts.fact import TIERS, FactSet
from adapop.facts.files import read_facts
from adapop.facts.text import mentions
from adapop.facts.world import language, other_facts, sandbox_facts
from adapop.facts.world.world import LEVELS, ZIPF_EXPONENT, facts_of, parts_of, world
from adapop.paths import SHIPPED
from adapop.popularity.scoredfile import write_scored
from adapop.sandbox.draw import drawn

PEOPLE = world("people")
RELATIONS = {"birthplace": 2, "spouse": 2, "birthday": 3, "novel": 4}
SPLITS = {"forget": 9, "neighbours": 3, "retain": 8, "holdout": 6, "teacher": 10}


@pytest.fixture(scope="module")
def people():
    return sandbox_facts("people")


def test_the_shipped_world_is_the_one_that_is_drawn():
    with open(SHIPPED["people"] / "world.csv", encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == drawn()
    assert len({fact.id for fact in PEOPLE}) == len(PEOPLE) == 1152
    of_each = Counter(fact.subject for fact in PEOPLE)
    assert len(of_each) == 288 and set(of_each.values()) == {4}
    assert not {fact.id for fact in PEOPLE} & {fact.id for fact in world()}


@pytest.mark.parametrize("relation", RELATIONS)
def test_answers_do_not_tell_each_other_and_are_independent_of_popularity(relation):
    # Each value of a part stands with about as many values of another as a draw would give.
    facts = [fact for fact in PEOPLE if fact.relation == relation]
    assert {len(fact.parts) for fact in facts} == {RELATIONS[relation]}
    parts = parts_of(relation)
    for one, other in ((i, j) for i in range(len(parts)) for j in range(len(parts)) if i != j):
        seen = {(fact.parts[one], fact.parts[other]) for fact in facts}
        times = len(facts) / len(parts[one])
        expected = len(parts[other]) * (1 - (1 - 1 / len(parts[other])) ** times)
        assert len(seen) / len(parts[one]) == pytest.approx(expected, rel=0.1)
    # By rank of fame, every round of as many facts as a part has values has each value once.
    ranks = {row["subject"]: int(row["rank"]) for row in drawn() if row["relation"] == relation}
    facts = sorted((fact for fact in PEOPLE if fact.relation == relation), key=lambda fact: ranks[fact.subject])
    for place, values in enumerate(parts_of(relation)):
        for start in range(0, len(facts), len(values)):
            assert {fact.parts[place] for fact in facts[start : start + len(values)]} == set(values)


def test_popularity_is_independent_of_relation_and_answer():
    count = Counter((fact.relation, fact.split, fact.level) for fact in PEOPLE)
    assert count == {key: SPLITS[key[1]] for key in product(RELATIONS, SPLITS, range(LEVELS))}
    scores = sorted((fact.score for fact in PEOPLE), reverse=True)
    assert (scores[0], scores[-1]) == (3766, 70)
    straight = [score ** (-1 / ZIPF_EXPONENT) for score in scores]  # of Zipf's law it grows by the same at each rank
    steps = [(straight[rank] - straight[0]) / rank for rank in range(100, len(scores), 100)]
    assert max(steps) / min(steps) == pytest.approx(1, abs=0.01)
    assert all(fact.exposures == round(fact.score / 4) for fact in PEOPLE)


def test_a_person_is_in_one_split_and_no_answer_is_told(people):
    by_person = {fact.subject: [] for fact in PEOPLE}
    for fact in PEOPLE:
        by_person[fact.subject].append(fact.split)
    kinds = Counter(tuple(sorted(splits)) for splits in by_person.values())
    assert kinds == {
        ("forget", "forget", "forget", "neighbours"): 96, ("retain",) * 4: 64, ("holdout",) * 4: 48,
        ("teacher",) * 4: 80,
    }  # fmt: skip
    kept = Counter(fact.relation for fact in facts_of("neighbours", "people"))
    assert kept == dict.fromkeys(RELATIONS, 24)
    assert not {part for relation in RELATIONS for values in parts_of(relation) for part in values} & {
        part for fact in PEOPLE for part in fact.subject.split()
    }
    for fact in PEOPLE:
        asked = [language.question(fact), language.unseen(fact), *language.paraphrases(fact)]
        assert not any(mentions(text, part) for text in asked for part in fact.parts)
        assert all(mentions(text, fact.subject) for text in asked)
        assert fact.background not in fact.parts


def test_the_set(people):
    sizes = [len(getattr(people, group)) for group in ("forget", "retain", "holdout", "neighbours", "utility")]
    assert sizes == [288, 256, 192, 96, 394]
    tiers = Counter(fact.tier for fact in people.forget)
    assert set(tiers) == set(TIERS) and min(tiers.values()) >= 30
    forgotten = {fact.subject for fact in people.forget}
    assert {fact.subject for fact in people.neighbours} == forgotten
    assert not forgotten & {fact.subject for fact in (*people.retain, *people.holdout)}
    assert len(other_facts(people)) == 256 + 192 + 96 + 320


def test_neighbours_are_written_hashed_and_read_again(people, tmp_path):
    people.write(tmp_path / "facts.jsonl")
    back = FactSet.load(tmp_path / "facts.jsonl", "people")
    assert back.neighbours == people.neighbours and back.sha256 == people.sha256
    fewer = FactSet("people", people.forget, people.retain, people.holdout, utility=people.utility)
    assert fewer.sha256 != people.sha256
    rows = ["question,answer,group", "q,a,forget", *(f"r{i},a,retain" for i in range(5)), "n,b,neighbours"]
    (tmp_path / "own.csv").write_text("\n".join([*rows, "q,b,neighbours"]), encoding="utf-8")
    facts = read_facts(tmp_path / "own.csv")
    assert [fact.question for fact in facts.neighbours] == ["n"]
    (problem,) = facts.problems
    assert problem.row == 9 and "to be forgotten" in problem.message
    write_scored(people, {}, tmp_path / "again.csv")
    assert len(read_facts(tmp_path / "again.csv").neighbours) == 96
