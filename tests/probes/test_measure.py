"""How long a reply may be where recall is measured: as the longest answer of the set can need, and not longer."""

from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import PEOPLE, SANDBOX, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.chat import plain
from adapop.model.loading import adapted_model
from adapop.probes import measure
from adapop.progress import Progress


@pytest.fixture(scope="module")
def model():
    return adapted_model(make_config())


@pytest.fixture
def asked(model, monkeypatch):
    """The most tokens of each call for replies."""
    found, replies = [], model.replies

    def noted(rows, max_new_tokens, *rest, **drawn):
        found.append(max_new_tokens)
        return replies(rows, max_new_tokens, *rest, **drawn)

    monkeypatch.setattr(model, "replies", noted)
    return found


@pytest.fixture(scope="module")
def facts() -> FactSet:
    """Few facts, of which one to retain has a long answer."""
    every = sandbox_facts()
    long = replace(every.retain[0], answer="Hamlet and Othello and Macbeth and Emma and Ulysses and Persuasion")
    return replace(every, forget=every.forget[:4], retain=(long, every.retain[1]), holdout=(), utility=())


def test_replies_end_where_the_longest_answer_of_the_set_can_have_ended(model, facts, asked):
    needed = 2 * len(plain(model.tokenizer, facts.retain[0].answer)) + 8
    assert 16 < needed < 64
    measure.quick(model, facts, 64)
    measure.full(model, facts, 64)
    assert len(asked) > 4 and {*asked} == {needed}, "the same before, during and after the run"
    asked.clear()
    measure.recall_by_fact(model, facts.forget, 64, Progress())
    longest = max(len(plain(model.tokenizer, fact.answer)) for fact in facts.forget)
    assert asked == [2 * longest + 8]


def test_a_setting_that_is_smaller_holds(model, facts, asked):
    for most in (make_config(model=SANDBOX).max_new_tokens, make_config(model=PEOPLE).max_new_tokens, 9):
        measure.quick(model, facts, most)
        measure.full(model, facts, most)
        assert {*asked} == {most}
        asked.clear()
