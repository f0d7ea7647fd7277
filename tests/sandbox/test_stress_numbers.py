"""Every method where its numbers are worst: finite, or a stop by name before the step; never a silent NaN. p -> 1 and
p -> 0 come from a model whose logits are multiplied until float32 knows no other p; β stands at both of its limits."""

import math
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from adapop.config.methods import METHODS
from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.model.loading import adapted_model
from adapop.model.tokens import collate, encode_facts
from adapop.objectives.alternates import by_relation
from adapop.training.events import EpochDone
from adapop.training.trainer import Trainer

pytestmark = pytest.mark.slow

ROWS, CERTAIN = 2, 100.0


# the factor of the logits, and whether the method may refuse by name
# in float32, which a loss leaves later than bfloat16, one method of each kind of loss
OF_EACH_LOSS = ("adapop", "ceu", "npo-sam", "undial", "rmu", "altpo")
CASES = {"p = 1": (CERTAIN, True), "p = 0": (CERTAIN, True), "200 tokens": (1.0, False), "one fact": (1.0, False)}


def facts_of(case, sandbox):
    """Answers of one token that the model knows, or that belong to other questions; and of 200, wrong ones as long."""
    facts, every = sandbox.forget[:ROWS], (*sandbox.forget, *sandbox.retain)
    if case == "200 tokens":
        words = [fact.answer for fact in every]
        answer, wrong = " ".join(words[:200]), " ".join(words[200:400])
        return [replace(fact, answer=answer, alternates=(wrong,)) for fact in facts]
    if case == "p = 0":
        facts = [replace(fact, answer=other.answer) for fact, other in zip(facts, sandbox.forget[100:])]
    return by_relation(facts, every, 0)[: 1 if case == "one fact" else ROWS]


@contextmanager
def sharpened(model, factor: float):
    """Inside, every logit is multiplied; afterwards the adapter is as it was, too."""
    weight, adapter = model.network.get_base_model().model.norm.weight, deepcopy(model.adapter_state())
    plain = weight.detach().clone()
    with torch.no_grad():
        weight.mul_(factor)
    yield adapter
    model.set_adapter_state(adapter)
    with torch.no_grad():
        weight.copy_(plain)


@pytest.mark.parametrize(
    ("method", "precision"),
    [*((method, "bfloat16") for method in METHODS), *((method, "float32") for method in OF_EACH_LOSS)],
)
def test_numbers_stay_finite_or_the_run_stops_by_name(method, precision, sandbox):
    torch.set_num_threads(1)
    config = make_config(method, epochs=1, batch=ROWS, micro_batch=ROWS, precision=precision)
    model = adapted_model(config)
    for name, (factor, may_refuse) in CASES.items():
        facts = facts_of(name, sandbox)
        with sharpened(model, factor) as before:
            try:
                retain, betas = sandbox.retain[: len(facts)], (0.05, 2.0)[: len(facts)]
                events = list(Trainer("r", config, model, facts, retain, betas).train())
            except ModelError as error:
                assert may_refuse and "p = 1 or p = 0" in error.message, name
                after = model.adapter_state()
                assert all(torch.equal(before[key], after[key]) for key in before), "stopped before the step"
            else:
                tiers = [value for event in events for value in getattr(event, "nll_by_tier", {}).values()]
                values = [*tiers, *(value for event in events for value in vars(event).values())]
                assert all(math.isfinite(value) for value in values if isinstance(value, float)), name
                assert all(parameter.isfinite().all() for parameter in model.parameters), name
                assert sum(isinstance(event, EpochDone) for event in events) == 2, name


def test_the_cases_are_what_they_say(sandbox, fresh):
    model = fresh()
    rows = {name: encode_facts(model.tokenizer, facts_of(name, sandbox)) for name in CASES}
    lengths = {name: [len(row.answer) for row in case] for name, case in rows.items()}
    assert lengths == {"p = 1": [1, 1], "p = 0": [1, 1], "200 tokens": [200, 200], "one fact": [1]}
    with sharpened(model, CERTAIN):
        nll = {name: model.score(collate(rows[name], 0)).nll for name in ("p = 1", "p = 0")}
    assert nll["p = 1"].exp().max() == 1.0, "float32 knows no p above"
    assert (-nll["p = 0"]).exp().max() == 0.0, "float32 knows no p below"
