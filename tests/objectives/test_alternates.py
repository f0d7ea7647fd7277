"""Plausible wrong answers: by relation, by a model that answers badly, and refused where there is none."""

from dataclasses import replace

import pytest

from adapop.config.run import SEED_LIMIT
from adapop.errors import DataError
from adapop.facts.fact import Fact
from adapop.objectives.alternates import ROUNDS, by_model, by_relation, check_alternates, length_class, usable

CAPITALS = [
    Fact(f"capital-{i}", f"What is the capital of {country}?", city, country, "capital")
    for i, (country, city) in enumerate(
        [("France", "Paris"), ("Peru", "Lima"), ("Cuba", "Havana"), ("Chad", "N'Djamena")]
    )
]
SAYING = Fact("saying", "What did he say?", "one two three four five", "he", "capital")


def test_an_answer_of_the_same_relation(sandbox):
    found = by_relation(sandbox.forget, sandbox.retain, seed=0)
    answers = {}
    for fact in (*sandbox.forget, *sandbox.retain):
        answers.setdefault(fact.relation, set()).add(fact.answer)
    assert [replace(fact, alternates=()) for fact in found] == list(sandbox.forget)
    for fact in found:
        (alternate,) = fact.alternates
        assert alternate in answers[fact.relation] - {fact.answer}
    assert len({fact.alternates for fact in found if fact.relation == "author"}) > 8
    first, same, other = (by_relation(sandbox.forget, sandbox.retain, seed) for seed in (0, 0, 1))
    assert first == same != other
    mine = replace(sandbox.forget[0], alternates=("Nobody", "Somebody"))
    assert by_relation([mine, *sandbox.forget[1:]], (), 0)[0] == mine
    both = [
        Fact("a", "A river of France?", "Seine", "France", "river"),
        Fact("b", "Another?", "Rhone", "France", "river"),
    ]
    assert [fact.alternates for fact in by_relation(both, (), 0)] == [(), ()]
    more = Fact("c", "A river of Peru?", "Amazon", "Peru", "river")
    assert [fact.alternates for fact in by_relation(both, [more], 0)] == [("Amazon",), ("Amazon",)]
    assert by_relation([replace(fact, relation="") for fact in CAPITALS], (), 0)[0].alternates == ()
    found = by_relation([CAPITALS[0], SAYING], (), 0)
    assert [fact.alternates for fact in found] == [(), ()]


@pytest.mark.parametrize(
    ("answer", "alternate", "fine"),
    [
        ("Paris", "Lima", True),
        ("Paris", "paris ", False),
        ("París", "PARIS", False),
        ("Paris", "Paris, France", False),
        ("New York City", "New York", False),
        ("Paris", "", False),
        ("Paris", "  ", False),
        ("Paris", "It is in fact Lima", False),
        ("it is the old town", "he lives by the sea", True),
        ("it is the old town", "it is the new town", False),
        # the right answer in other punctuation
        ("Saint-Denis", "Saint Denis", False),
        ("St. Petersburg", "St Petersburg", False),
        ("Jean-Paul Sartre", "Jean Paul Sartre", False),
        ("Jean-Paul Sartre", "Monsieur JeanPaul Sartre", False),
        ("Côte d'Ivoire", "Cote d’Ivoire", False),
        ("1,000", "1000", False),
        ("1000", "1,000 m", False),
        ("Oman", "Romania", True),
        ("5", "15", True),
        # most of its words
        ("Jane Austen", "J. Austen", False),
        ("J. Austen", "Jane Austen", False),
        ("Jane Austen", "Austen, Jane", False),
        ("Leo Tolstoy", "Lev Tolstoy", False),
        ("University of Oxford", "Oxford University", False),
        ("University of Oxford", "University of Leeds", True),
        ("Royal Air Force", "Royal Dutch Navy", True),
        ("United Kingdom", "United States", True),
        ("The Beatles", "The Rolling Stones", True),
        ("The Who", "The Beatles", True),
        ("J. S.", "J. K.", True),
    ],
)
def test_usable(answer, alternate, fine):
    assert usable(Fact("f", "Where?", answer), alternate) == fine


@pytest.mark.parametrize(
    ("words", "name"), [(1, "name"), (3, "name"), (4, "phrase"), (8, "phrase"), (9, "sentence"), (40, "sentence")]
)
def test_length_class(words, name):
    assert length_class(" ".join(["word"] * words)) == name


def test_the_model_is_asked_again_but_not_for_ever():
    asked = []

    def draw(prompts, seed):
        asked.append((len(prompts), seed))
        replies = {1: ["Lyon.", "Lima", "", "“Bogota”\nbecause it is far"], 2: ["lima!", "Quito"], 3: ["Cusco"]}
        return replies[len(asked)]

    found = by_model(CAPITALS, draw, seed=5)
    assert [fact.alternates for fact in found] == [("Lyon",), ("Cusco",), ("Quito",), ("Bogota",)]
    assert asked == [(4, 5 * ROUNDS), (2, 5 * ROUNDS + 1), (1, 5 * ROUNDS + 2)]
    asked = []

    def draw(prompts, seed):
        asked.append(prompts)
        return [""] * len(prompts)

    found = by_model([replace(CAPITALS[0], alternates=("Lyon",)), *CAPITALS[1:]], draw, seed=0)
    assert [fact.alternates for fact in found] == [("Lyon",), (), (), ()]
    assert len(asked) == ROUNDS and all(len(prompts) == 3 for prompts in asked)
    assert "What is the capital of Peru?" in asked[0][0] and "Lima" in asked[0][0]
    with pytest.raises(
        DataError, match="3 of 4 facts have no plausible wrong answer, for example 'capital-1'"
    ) as caught:
        check_alternates(found)
    assert "'alternates'" in caught.value.fix and "'relation'" in caught.value.fix


def test_ones_own_that_say_the_right_answer_are_refused_by_name():
    own = {"a": "paris", "b": "Paris, in France", "c": "Lyon", "d": "P.A.R.I.S."}
    facts = [Fact(name, "Capital?", "Paris", alternates=("Lima", other)) for name, other in own.items()]
    with pytest.raises(DataError, match="3 of 4 facts have their right answer among the wrong ones: 'a', 'b', 'd'"):
        check_alternates(facts)
    check_alternates([facts[2], replace(facts[2], alternates=("a village near Lyon of which few have heard",))])


def test_several_that_differ(sandbox):
    found = by_relation(sandbox.forget, sandbox.retain, 0, count=5)
    assert {len(fact.alternates) for fact in found} == {len(set(fact.alternates)) for fact in found} == {5}
    assert [fact.alternates[:1] for fact in found[:1]] == [by_relation(sandbox.forget, sandbox.retain, 0)[0].alternates]
    asked = []

    def draw(prompts, seed):
        asked.append(seed)
        return [["Lyon", "Nice"][len(asked) % 2] if "France" in prompt else "Quito" for prompt in prompts]

    written = by_model(CAPITALS[:2], draw, 0, count=2)
    assert sorted(written[0].alternates) == ["Lyon", "Nice"] and written[1].alternates == ("Quito",)
    assert len(asked) == len(set(asked)) <= 2 * ROUNDS


def test_a_stop_and_the_largest_seed(model):
    asked = []

    def draw(prompts, seed):
        asked.append(seed)
        return [""] * len(prompts)

    by_model(CAPITALS, draw, 0, stopped=lambda: len(asked) == 2)
    assert asked == [0, 1]

    def draw(prompts, seed):
        return model.sample(prompts, seed, max_new_tokens=1, temperature=1.0)

    assert len(by_model(CAPITALS, draw, SEED_LIMIT - 1)) == len(CAPITALS)


def test_sampling_is_seeded_and_leaves_other_random_numbers_alone(model, sandbox):
    import torch

    questions = [fact.question for fact in sandbox.forget[:40]]
    draw = dict(max_new_tokens=2, temperature=2.0, top_k=0, top_p=1.0)
    torch.manual_seed(3)
    first, same, other = (model.sample(questions, seed, **draw) for seed in (0, 0, 1))
    after = torch.rand(1)
    torch.manual_seed(3)
    assert first == same != other
    assert torch.equal(after, torch.rand(1))
