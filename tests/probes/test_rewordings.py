"""Rewordings: the set's own, from templates, from a model. None tells the answer."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from adapop.errors import NetworkError
from adapop.facts.fact import Fact
from adapop.facts.files import read_facts
from adapop.facts.text import mentions
from adapop.facts.world import language
from adapop.facts.world.world import facts_of
from adapop.online.cache import Cache
from adapop.paths import ROOT
from adapop.probes.prompts import NotApplicable, Prompt
from adapop.probes.rewordings import SYSTEM, aliased, reworded, templated, written

DATA = Path(os.environ.get("ADAPOP_TEST_DATA", ROOT.parent / "shared" / "data"))
DUET = DATA / "duet_city_forget_5.jsonl"
LYON = Fact("lyon", "What is the country of Lyon?", "France", "Lyon", "country")
GOOD = ("In which country does Lyon lie?", "Lyon is a city of which country?")


def texts(results):
    assert all(isinstance(result, Prompt) for result in results), results
    return [result.text for result in results]


# --- the set's own, and templates


def test_own_rewordings_come_first_unless_they_tell_or_repeat():
    fact = Fact("f", LYON.question, "France", "Lyon", "country", paraphrases=GOOD)
    assert reworded(fact) == [Prompt("f", "reworded", text, "France") for text in GOOD]
    own = ("Is Lyon in France?", " what is THE country of Lyon", GOOD[0], "in which country does lyon lie")
    assert texts(reworded(Fact("f", LYON.question, "France", paraphrases=own))) == [GOOD[0]]
    (none,) = reworded(Fact("f", "Who?", "Lyon", "lyon", "name", paraphrases=("Lyon?",)))
    assert "contains the answer" in none.reason
    made = ("Lyon: country?", "Tell me the country of Lyon.")
    assert templated(LYON)[:2] == made and LYON.question not in templated(LYON)
    assert texts(reworded(LYON)) == list(templated(LYON))
    telling = Fact("f", LYON.question, "France", "Lyon", "country", paraphrases=("France?",))
    assert texts(reworded(telling)) == list(templated(LYON))


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("official_language", "Tell me the official language of X."),
        ("place of birth", "Tell me the place of birth of X."),
        ("capital of", "X, capital of whom or what?"),
        ("shares border with", "X, shares border with whom or what?"),
        ("located in the region", "X, located in the region whom or what?"),
    ],
)
def test_relation_is_spoken_of_as_its_grammar_wants(relation, expected):
    assert expected in templated(Fact("f", "?", "Y", "X", relation))


@pytest.mark.parametrize(("subject", "relation"), [("", "country"), ("Lyon", ""), ("Lyon", "P17"), ("Lyon", "?!")])
def test_no_templates_without_a_subject_and_a_relation_in_words(subject, relation):
    fact = Fact("f", LYON.question, "France", subject, relation)
    assert templated(fact) == ()
    (none,) = reworded(fact)
    assert (none.fact_id, none.kind) == ("f", "reworded") and "no rewording" in none.reason


@pytest.mark.parametrize("odd", ["{s}", "{0!r}", "\\1", "a \"b\" 'c'", "two\nlines", "🦜", "ירושלים", "x" * 2000])
def test_any_name_will_do(odd):
    assert all(odd in text for text in templated(Fact("f", "?", "Y", odd, "country")))
    spoken = " ".join(odd.split())
    assert all(spoken in text for text in templated(Fact("f", "?", "Y", "X", f"{odd} by")))
    assert len(templated(Fact("f", "?", "Y", odd, "country"))) == 4


def test_sandbox_facts_are_asked_as_their_model_was_taught(sandbox):
    for fact, known in zip(sandbox.holdout, facts_of("holdout")):
        assert templated(fact) == (language.unseen(known),)
        assert texts(reworded(fact)) == list(language.paraphrases(known))


def test_duet_tells_no_answer():
    if not DUET.exists():
        pytest.skip("no DUET rows here")
    facts = read_facts(DUET).forget
    told = [text for fact in facts for text in texts_of(fact) if mentions(text, fact.answer)]
    without = [fact.id for fact in facts if not texts_of(fact)]
    assert not told and len(without) < 5, (told, without)


def texts_of(fact):
    found = [result.text for result in reworded(fact) if isinstance(result, Prompt)]
    return [*found, *templated(fact)]


# --- written by a model


class Scripted:
    """Answers one reply after the other, and keeps what it was asked."""

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    def __call__(self, system, user, seed):
        self.asked.append((system, user, seed))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "kept")


def asked(cache, *replies, facts=(LYON,)):
    ask = Scripted(*replies)
    return list(written(facts, ask, "a model", cache)), ask.asked


def test_two_rewordings_are_written(cache):
    found, sent = asked(cache, json.dumps(GOOD))
    assert found == [Prompt("lyon", "reworded", text, "France") for text in GOOD]
    assert sent == [(SYSTEM, LYON.question, 1)] and "France" not in str(sent)


@pytest.mark.parametrize(
    "reply",
    [
        "```json\n{}\n```",
        "<think>[1] or [\"no\"]?</think>\n{}",
        "Here you are: {} I hope this helps.",
    ],
)  # fmt: skip
def test_list_is_found_among_other_words(cache, reply):
    found, sent = asked(cache, reply.replace("{}", json.dumps(GOOD)))
    assert texts(found) == list(GOOD) and len(sent) == 1


@pytest.mark.parametrize(
    "bad",
    [
        "", "no list", "[", '["a", 2]', '{"a": "b"}', "[[]]", "[" * 100_000,
        '["Is Lyon in FRANCE?"]', json.dumps([LYON.question.upper()]),
        '["In which country is it?"]', '[""]', "[]",
    ],
    ids=lambda bad: bad[:20],
)  # fmt: skip
def test_useless_reply_is_asked_for_once_more(cache, bad):
    found, sent = asked(cache, bad, json.dumps(GOOD))
    assert texts(found) == list(GOOD)
    assert [seed for *_, seed in sent] == [1, 2]


def test_two_useless_replies_leave_none(cache):
    (none,), sent = asked(cache, "no", "no")
    assert none == NotApplicable("lyon", "reworded", "a model wrote no usable rewording in 2 attempts")
    assert len(sent) == 2


def test_attempts_add_up_and_two_are_enough(cache):
    found, _ = asked(cache, json.dumps([GOOD[0]]), json.dumps([GOOD[0].upper(), GOOD[1], "Lyon's country?"]))
    assert texts(found) == list(GOOD)


def test_one_rewording_is_better_than_none(cache):
    found, _ = asked(cache, json.dumps([GOOD[0]]), "no")
    assert texts(found) == [GOOD[0]]


def test_nothing_that_could_be_read_is_asked_twice(cache):
    first, _ = asked(cache, "no", json.dumps(GOOD))
    again, sent = asked(cache, "no")
    assert (again, len(sent)) == (first, 1)
    assert list(written([LYON], Scripted('["Lyon?", "Lyon\'s country?"]'), "another model", cache)) != first


def test_what_was_written_before_a_failure_is_kept(cache):
    other = Fact("nice", "What is the country of Nice?", "France", "Nice", "country")
    results = written([LYON, other], Scripted(json.dumps(GOOD), NetworkError("gone")), "a model", cache)
    assert [next(results).text, next(results).text] == list(GOOD)
    with pytest.raises(NetworkError):
        next(results)
    assert len(asked(cache, '["Nice?", "The country of Nice?"]', facts=(LYON, other))[0]) == 4


# --- other names of the subject


def test_a_subject_is_asked_about_under_its_first_two_other_names():
    names = ("Lyon City", "France's third city", "Lugdunum", "Lugdunum", "Ville des Lumières", "Lione")
    fact = replace(LYON, subject_aliases=names)
    asked = ["What is the country of Lugdunum?", "What is the country of Ville des Lumières?"]
    assert aliased(fact) == [Prompt("lyon", "alias", text, "France") for text in asked]


@pytest.mark.parametrize(
    "changes",
    [{}, {"subject_aliases": ("Lyon (France)",)}, {"subject_aliases": ("Lugdunum",), "question": "Where is it?"},
     {"subject_aliases": ("Lugdunum",), "question": "Lyon, Lyon: which country?"}],
)  # fmt: skip
def test_no_other_name_or_no_place_for_it_is_a_reason(changes):
    (result,) = aliased(replace(LYON, **changes))
    assert isinstance(result, NotApplicable) and result.kind == "alias" and result.reason
