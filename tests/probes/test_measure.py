"""How long a reply may be where recall is measured: the same for every group and form."""

from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import PEOPLE, SANDBOX
from adapop.facts.world import sandbox_facts
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


def test_replies_are_as_long_as_the_run_says(model, asked):
    every = sandbox_facts()
    facts = replace(every, forget=every.forget[:4], retain=every.retain[:2], holdout=(), utility=())
    for most in (make_config(model=SANDBOX).max_new_tokens, make_config(model=PEOPLE).max_new_tokens, 9):
        measure.quick(model, facts, most)
        measure.full(model, facts, most)
        measure.recall_by_fact(model, facts.forget, most, Progress())
        assert len(asked) > 4 and {*asked} == {most}
        asked.clear()
