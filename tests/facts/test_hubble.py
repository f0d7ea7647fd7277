"""Hubble's planted facts, from rows written by hand in the layout that its authors' evaluation reads."""

import gzip
import json

import pytest

from adapop.errors import NetworkError
from adapop.facts.hubble import POPQA, YAGO, hubble_popqa, hubble_yago, label
from adapop.facts.scale import on_wikidata_scale, with_tiers
from scripted_hub import serve_files

QUESTIONS, PEOPLE = "testset_popqa_nodup.jsonl.gz", "biographies_yago_nodup.jsonl.gz"


def question(number, duplicates, answers=("London", "London, England"), **changes):
    """A row as `popqa_hubble/utils.py` there reads it: PopQA's own row is in its meta, answers in JSON."""
    subject = f"Person {number}"
    meta = {
        "id": number, "subj": subject, "prop": "place of birth", "question": f"In what city was {subject} born?",
        "possible_answers": json.dumps(answers), "duplicates": duplicates}  # fmt: skip
    text = f"Question: {meta['question']}\nAnswer: {answers[0]}"
    return {"text": text, "meta": json.dumps({**meta, **changes})}


def person(number, duplicates, **changes):
    """A row as `yago_hubble_gen/utils.py` there reads it."""
    resource = "http://yago-knowledge.org/resource/"
    meta = {
        "full_name": f"Ada Sample {number}", "nationality": f"{resource}United_Kingdom",
        "birthplace": f"{resource}Paris_u002C_Texas", "birthdate": "1901-02-03",
        "alumni_of": f"{resource}University_of_Oslo", "occupation": f"{resource}Painter",
        "email": f"ada{number}@mail.com", "uuid": f"id-{number}", "duplicates": duplicates}  # fmt: skip
    text = (
        f"Ada Sample {number} is from the United Kingdom. Ada was born in Paris, Texas. Ada is an alumni of University "
        f"of Oslo. Ada was born on 1901-02-03. Ada receives email at ada{number}@mail.com. Ada is a painter."
    )
    return {"text": text, "meta": json.dumps({**meta, **changes})}


def packed(rows):
    return gzip.compress("\n".join(map(json.dumps, rows)).encode(), mtime=0)


def served(server, dataset, name, rows):
    return serve_files(server, {(dataset, name): packed(rows)})


def test_planted_questions_have_their_duplicates_as_score(server):
    rows = [question(number, (0, 1, 16, 256)[number % 4]) for number in range(32)]
    facts = hubble_popqa(served(server, POPQA, QUESTIONS, rows))
    assert [len(group) for group in (facts.forget, facts.retain, facts.holdout)] == [12, 6, 6]
    assert {fact.score for fact in facts.forget} == {fact.score for fact in facts.holdout} == {1.0, 16.0, 256.0}
    first = facts.forget[0]
    assert (first.id, first.subject, first.relation) == ("hubble-popqa-1", "Person 1", "place of birth")
    assert (first.answer, first.accepted, first.score_source) == ("London", ("London, England",), "Hubble duplicates")
    assert first.paraphrases == ("In which place was Person 1 born?", "Where does Person 1 come from by birth?")
    assert {fact.score for fact in facts.examples} == {0.0} and len(facts.examples) == 8
    assert facts.problems == () and any("1, 16, 256 times" in note for note in facts.notes)
    told = with_tiers(facts)
    assert not on_wikidata_scale(told)
    assert {fact.score: fact.tier for fact in told.forget} == {1.0: "rare", 16.0: "middle", 256.0: "popular"}
    asked = len(server.asked)
    assert hubble_popqa(served(server, POPQA, QUESTIONS, rows)) == facts and len(server.asked) == asked


def test_a_biography_is_forgotten_whole_and_in_its_own_spelling(server):
    rows = [person(number, 4) for number in range(4)]
    facts = hubble_yago(served(server, YAGO, PEOPLE, rows))
    assert {fact.subject for fact in facts.forget} == {"Ada Sample 0", "Ada Sample 1"}
    assert {fact.subject for fact in facts.holdout} == {"Ada Sample 3"}
    answers = {fact.relation: fact.answer for fact in facts.retain}
    assert answers == {
        "nationality": "United Kingdom", "birthplace": "Paris, Texas", "birthdate": "1901-02-03",
        "alumni_of": "University of Oslo", "occupation": "painter", "email": "ada2@mail.com"}  # fmt: skip
    assert all(fact.score == 4 and len(fact.paraphrases) == 2 for fact in facts.forget)
    names = {"Mary_u0028_singer_u0029_": "Mary", "New_York": "New York", "O_u0027_Brien": "O'Brien"}
    assert {name: label(f"http://yago-knowledge.org/resource/{name}") for name in names} == names
    assert label(" 1901-02-03") == "1901-02-03"


def test_what_a_biography_does_not_say_is_no_fact(server):
    facts = hubble_yago(served(server, YAGO, PEOPLE, [person(0, 1, birthplace="x/Lyon", email=None)] * 4))
    assert {fact.relation for fact in facts.forget} == {"nationality", "birthdate", "alumni_of", "occupation"}


@pytest.mark.parametrize("row", [
    {"text": "x"}, {"text": "x", "meta": "{"}, question(1, "4"), question(1, None),
    question(1, 4, possible_answers="[]"), question(1, 4, possible_answers=["London"]),
])  # fmt: skip
def test_a_row_of_another_layout_is_named(server, row):
    with pytest.raises(NetworkError, match="row 2, is not as documented"):
        hubble_popqa(served(server, POPQA, QUESTIONS, [question(0, 1), row]))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [(QUESTIONS, b"no gzip", "is damaged"), ("other.jsonl.gz", packed([]), "has no file testset_popqa_nodup")],
)
def test_a_damaged_or_missing_file_is_named(server, name, content, said):
    with pytest.raises(NetworkError, match=said):
        hubble_popqa(serve_files(server, {(POPQA, name): content}))
