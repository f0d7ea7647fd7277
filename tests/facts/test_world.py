"""The balance proof: in the sandbox world popularity is the only thing in which facts differ."""

import random
import re
from collections import Counter
from itertools import pairwise, product

import pytest

from adapop.facts.world import language, sandbox_facts
from adapop.facts.world.language import skills
from adapop.facts.world.world import LEVELS, SPLITS, answers_of, facts_of, world

RELATIONS = tuple(language.RELATIONS_OF["sandbox"])
FACTS = (*world(), *world("people"))  # of both worlds
NAMES_ITS_ANSWER = {"multiple choice", "reverse query"}
FORMS = ("question", "unseen", "synonym", "second_language", "background", "background_question")


def mentions(text: str, words: str) -> bool:
    """Whether the words stand in the text as words of their own, in any case."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def test_size_and_names():
    assert len(world()) == 1024
    assert len(RELATIONS) == 8
    assert {fact.relation for fact in world()} == set(RELATIONS)
    assert len({fact.id for fact in world()}) == len(world())
    assert len({fact.subject.casefold() for fact in world()}) == len(world())
    cells = [cell for fact in world() for cell in (fact.subject, fact.answer, fact.background)]
    assert all(cell and cell == cell.strip() for cell in cells)
    assert [fact for fact in world() if fact.answer.casefold() in fact.subject.casefold()] == []
    assert [fact for fact in world() if mentions(fact.background, fact.answer)] == []


def test_exposure_is_independent_of_relation_answer_and_split():
    # Each of the 128 pairs has each of the eight levels exactly once.
    count = Counter((fact.relation, fact.answer, fact.level) for fact in world())
    pairs = {(fact.relation, fact.answer) for fact in world()}
    assert len(pairs) == 128
    assert count == Counter((*pair, level) for pair, level in product(pairs, range(LEVELS)))
    count = Counter((fact.relation, fact.split, fact.level) for fact in world())
    assert count == dict.fromkeys(product(RELATIONS, SPLITS, range(LEVELS)), 4)
    halves = Counter((fact.relation, fact.answer, fact.split, fact.level >= LEVELS // 2) for fact in world())
    assert set(halves.values()) == {1}
    assert len(halves) == 128 * len(SPLITS) * 2
    assert sorted(fact.id for split in SPLITS for fact in facts_of(split)) == sorted(fact.id for fact in world())


@pytest.mark.parametrize("relation", RELATIONS)
def test_answers_of_a_relation_do_not_contain_one_another(relation):
    """One that did would count as recalled where another was said."""
    answers = answers_of(relation)
    assert len(set(answers)) == 16
    assert [(a, b) for a, b in product(answers, answers) if a != b and mentions(a, b)] == []


def test_scores_are_log_spaced_and_famous_facts_shown_more():
    scores = sorted({fact.score for fact in world()})
    assert (scores[0], scores[-1], len(scores)) == (70, 3766, LEVELS)
    ratios = [above / below for below, above in pairwise(scores)]
    assert max(ratios) / min(ratios) < 1.02
    by_level = {fact.level: fact.exposures for fact in world()}
    assert [by_level[level] for level in range(LEVELS)] == sorted(by_level.values())
    assert all(fact.exposures == pytest.approx(fact.score / 4, abs=0.5) for fact in world())


# --- the language


@pytest.mark.parametrize("name", language.RELATIONS)
def test_every_template_mentions_the_subject_and_stands_once(name):
    relation = language.RELATIONS[name]
    forms = [getattr(relation, form) for form in FORMS]
    assert all("{s}" in form for form in (*forms, *relation.paraphrases, *relation.statements))
    assert all("{o}" in form for form in relation.statements)
    assert "{o}" in relation.reverse
    assert "{s}" not in relation.reverse
    forms = [*(getattr(relation, form) for form in FORMS), *relation.paraphrases, *relation.statements]
    assert len(set(forms)) == len(forms)


@pytest.mark.parametrize("relation", language.RELATIONS)
def test_every_filled_form_mentions_the_subject_and_leaves_no_hole(relation):
    for fact in FACTS:
        if fact.relation == relation:
            asked = [language.question(fact), language.unseen(fact), *language.paraphrases(fact)]
            assert len(asked) == 6
            assert all(fact.subject in text and not mentions(text, fact.answer) for text in asked)
            assert not any("{" in text for text in asked)
            for text in language.statements(fact, "Somebody"):
                assert fact.subject in text
                assert "Somebody" in text


@pytest.mark.parametrize("kind", language.WRAPPERS)
def test_wrapper_never_leaks_the_answer_and_is_deterministic(kind):
    leaking = [fact.id for fact in FACTS if mentions(language.wrapped(fact, kind, random.Random(0)), fact.answer)]
    assert leaking == ([fact.id for fact in FACTS] if kind in NAMES_ITS_ANSWER else [])

    def prompts(seed: int) -> list[str]:
        rng = random.Random(seed)
        return [language.wrapped(fact, kind, rng) for fact in FACTS]

    drawn = {"prefix injection", "affirmative suffix", "role playing", "multiple choice"}
    assert prompts(1) == prompts(1)
    assert (prompts(1) != prompts(2)) == (kind in drawn)


def test_reversed_queries_and_choices():
    for kind, fact in product(language.WRAPPERS, FACTS):
        assert mentions(language.wrapped(fact, kind, random.Random(0)), fact.subject) == (kind != "reverse query")
    places = Counter()
    for fact in FACTS:
        prompt = language.wrapped(fact, "multiple choice", random.Random(fact.id))
        options = re.split(r" ?[A-D]\) ", prompt.removeprefix(language.question(fact)))[1:]
        assert len(set(options)) == 4
        assert set(options) <= set(answers_of(fact.relation))
        places[options.index(fact.answer)] += 1
    assert min(places.values()) > len(FACTS) / 6


@pytest.mark.parametrize("kind", ["", "jailbreak"])
def test_unknown_wrapper(kind):
    with pytest.raises(ValueError, match="prefix injection"):
        language.wrapped(world()[0], kind, random.Random(0))


# --- the set made of it


def test_sandbox_set_has_the_groups_of_the_world():
    facts = sandbox_facts()
    for group in ("forget", "retain", "holdout"):
        assert [fact.id for fact in getattr(facts, group)] == [fact.id for fact in facts_of(group)]
        assert len(getattr(facts, group)) == 256
    everything = (*facts.forget, *facts.retain, *facts.holdout, *facts.utility)
    assert len({fact.id for fact in everything}) == len(everything)
    assert not facts.unknown_scores
    assert all(len(fact.paraphrases) == 4 and fact.question not in fact.paraphrases for fact in facts.forget)
    used = {fact.id for fact in (*facts.forget, *facts.retain, *facts.holdout)}
    assert not used & {fact.id for fact in facts_of("teacher")}
    assert sandbox_facts().sha256 == sandbox_facts().sha256


def test_skills_are_questions_with_one_right_word():
    questions = [question for _, question, _ in skills()]
    assert len(set(questions)) == len(questions)
    assert all(answer and " " not in answer for *_, answer in skills())
    assert {"sums", "sequences", "opposites", "agreement"} == {family for family, *_ in skills()}
