import json
from dataclasses import replace

import pytest

from adapop.errors import NetworkError
from adapop.facts.fact import Fact
from adapop.facts.files import read_facts
from adapop.facts.text import mentions
from adapop.facts.world import language
from adapop.facts.world.world import facts_of
from adapop.online.cache import Cache
from adapop.probes.prompts import NotApplicable, Prompt
from adapop.probes.wording import SYSTEM, aliased, reworded, templated, written
from duet_rows import DUET, real_rows
from raised import raised

LYON = Fact("lyon", "What is the country of Lyon?", "France", "Lyon", "country")
GOOD = ("In which country does Lyon lie?", "Lyon is a city of which country?")


def texts(results):
    assert all(isinstance(result, Prompt) for result in results), results
    return [result.text for result in results]


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


def test_relation_is_spoken_of_as_its_grammar_wants():
    for relation in ("official_language", "place of birth"):
        assert f"Tell me the {relation.replace('_', ' ')} of X." in templated(Fact("f", "?", "Y", "X", relation))
    for relation in ("capital of", "shares border with", "located in the region"):
        assert f"X, {relation} whom or what?" in templated(Fact("f", "?", "Y", "X", relation))
    parted = Fact("f", "Who directed AMÉLIE?", "Jeunet", "Ame\u0301lie", "director")
    assert templated(parted), "a subject in other letters"
    for subject, relation in (("", "country"), ("Lyon", ""), ("Lyon", "P17"), ("Lyon", "?!")):  # or in no words
        fact = Fact("f", LYON.question, "France", subject, relation)
        (none,) = reworded(fact)
        assert templated(fact) == () and (none.fact_id, none.kind) == ("f", "reworded")
        assert "no rewording" in none.reason


@real_rows
def test_duet_tells_no_answer():
    without = 0
    for fact in read_facts(DUET).forget:
        rewordings = [*(one.text for one in reworded(fact) if isinstance(one, Prompt)), *templated(fact)]
        assert not any(mentions(text, fact.answer) for text in rewordings)
        without += not rewordings
    assert without < 5


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


def write(cache, *replies, facts=(LYON,)):
    ask = Scripted(*replies)
    return list(written(facts, ask, "a model", cache)), ask.asked


def test_two_rewordings_are_written(cache):
    prompts, sent = write(cache, json.dumps(GOOD))
    assert prompts == [Prompt("lyon", "reworded", text, "France") for text in GOOD]
    assert sent == [(SYSTEM, LYON.question, 1)] and "France" not in str(sent)
    among = ("```json\n{}\n```", '<think>[1] or ["no"]?</think>\n{}', "Here you are: {} I hope this helps.")
    for number, reply in enumerate(among):
        other = replace(LYON, id=f"{number}", question=f"{number}?")
        prompts, sent = write(cache, reply.replace("{}", json.dumps(GOOD)), facts=(other,))
        assert texts(prompts) == list(GOOD) and len(sent) == 1, "the list is found among other words"


@pytest.mark.parametrize("bad", [
    "", "no list", "[", '["a", 2]', '{"a": "b"}', "[[]]", "[" * 100_000, '["Is Lyon in FRANCE?"]',
    json.dumps([LYON.question.upper()]), '["In which country is it?"]', '[""]', "[]",
], ids=lambda bad: bad[:20])  # fmt: skip
def test_useless_reply_is_asked_for_once_more(cache, bad):
    prompts, sent = write(cache, bad, json.dumps(GOOD))
    assert texts(prompts) == list(GOOD)
    assert [seed for *_, seed in sent] == [1, 2]


@pytest.mark.parametrize(("replies", "expected"), [
    (("no", "no"), []), ((json.dumps(GOOD[:1]), "no"), GOOD[:1]),
    ((json.dumps(GOOD[:1]), json.dumps([GOOD[0].upper(), GOOD[1], "Lyon's country?"])), GOOD),
])  # fmt: skip
def test_attempts_add_up_two_rewordings_are_enough_and_one_is_better_than_none(cache, replies, expected):
    results, sent = write(cache, *replies)
    assert len(sent) == 2
    none = NotApplicable("lyon", "reworded", "a model wrote no usable rewording in 2 attempts")
    assert texts(results) == list(expected) if expected else results == [none]


def test_nothing_that_could_be_read_is_asked_twice(cache):
    first, _ = write(cache, "no", json.dumps(GOOD))
    again, sent = write(cache, "no")
    assert (again, len(sent)) == (first, 1)
    assert list(written([LYON], Scripted('["Lyon?", "Lyon\'s country?"]'), "another model", cache)) != first


def test_what_was_written_before_a_failure_is_kept(cache):
    other = Fact("nice", "What is the country of Nice?", "France", "Nice", "country")
    results = written([LYON, other], Scripted(json.dumps(GOOD), NetworkError("gone")), "a model", cache)
    assert [next(results).text, next(results).text] == list(GOOD)
    raised(NetworkError, "", next, results)
    assert len(write(cache, '["Nice?", "The country of Nice?"]', facts=(LYON, other))[0]) == 4


def test_a_subject_is_asked_about_under_its_first_two_other_names():
    names = ("Lyon City", "France's third city", "Lugdunum", "Lugdunum", "Ville des Lumières", "Lione")
    fact = replace(LYON, subject_aliases=names)
    questions = ["What is the country of Lugdunum?", "What is the country of Ville des Lumières?"]
    assert aliased(fact) == [Prompt("lyon", "alias", text, "France") for text in questions]
    for names, question in (  # no other name, or no place for it
        ((), LYON.question), (("Lyon (France)",), LYON.question), (("Lugdunum",), "Where is it?"),
        (("Lugdunum",), "Lyon, Lyon: which country?")):  # fmt: skip
        (result,) = aliased(replace(LYON, subject_aliases=names, question=question))
        assert isinstance(result, NotApplicable) and result.kind == "alias" and result.reason


@pytest.mark.parametrize(("question", "subject", "relation", "count"), [
    ("日本の首都は？", "日本", "首都", 0), ("Wie heißt die Hauptstadt von Peru?", "Peru", "capital", 0),
    ("Who wrote “Émile”?", "Émile", "author", 4), ("Capital of Perú:", "Perú", "capital", 4)])  # fmt: skip
def test_english_templates_are_for_questions_in_english(question, subject, relation, count):
    assert len(templated(Fact("f", question, "Y", subject, relation))) == count
