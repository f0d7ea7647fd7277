import json
from dataclasses import replace

import pytest
import torch

from adapop.errors import ConfigError, DataError, RunError, Stopped
from adapop.facts.fact import Fact, FactSet
from adapop.model import generation
from adapop.model.tokens import collate, encode_facts
from adapop.probes.metrics import gold_rank
from adapop.probes.recovery import lens, quantise, relearn, sampling
from adapop.probes.recovery.base import check_logits, wrong_answers
from adapop.probes.recovery.choice import RECOVERY, Cost, cost, recover, recovered
from adapop.progress import Progress
from raised import raised

TOKENS = 3


def relearned(model, facts, progress=None, **changes):
    return relearn.relearn(model, facts, TOKENS, progress or Progress(), **{"count": 8, "steps": 4, **changes})


def quantised(model, facts, progress=None, retain=(), **changes):
    return quantise.quantise(model, facts, retain, TOKENS, progress or Progress(), **changes)


def sampled(model, facts, progress=None, **changes):
    return sampling.sample(model, facts, TOKENS, progress or Progress(), **{"samples": 4, **changes})


def lensed(model, facts, progress=None, **changes):
    return lens.lens(model, facts, progress or Progress(), **changes)


PROBES = {"relearn": relearned, "quantise": quantised, "sample": sampled, "lens": lensed}
every_probe = pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)


@pytest.fixture(scope="module")
def facts(small):
    return small.forget[::2]


@pytest.fixture
def busy(model):
    """The model in the middle of something: in training mode, with gradients."""
    model.network.train()
    for parameter in model.parameters:
        parameter.grad = torch.ones_like(parameter)
    yield model
    model.network.eval()
    for parameter in model.parameters:
        parameter.grad = None


def photograph(model):
    """Everything a probe could have changed, by value; and where the weights lie, by address."""
    tensors = {name: (tensor.clone(), tensor.data_ptr()) for name, tensor in model.network.state_dict().items()}
    parameters = dict(model.network.named_parameters())
    gradients = {name: (p.grad.clone(), 0) for name, p in parameters.items() if p.grad is not None}
    trainable = [name for name, parameter in parameters.items() if parameter.requires_grad]
    modes = [(module.training, getattr(module, "disable_adapters", None)) for module in model.network.modules()]
    return tensors, gradients, {"random": (torch.get_rng_state(), 0)}, trainable, modes


def assert_same(before, after):
    for old, now in zip(before[:3], after[:3]):
        assert old.keys() == now.keys()
        for name, (value, place) in old.items():
            assert torch.equal(value, now[name][0]) and place == now[name][1], name
    assert before[3:] == after[3:]


class Interrupted(Progress):
    """Stops, or breaks down, when a given line is told."""

    def __init__(self, at, error=None):
        super().__init__(self.note)
        self.at, self.error, self.lines = at, error, []

    def note(self, line):
        self.lines.append(line)
        if len(self.lines) == self.at:
            if self.error:
                raise self.error
            self.stop()


@pytest.mark.quick("lens", "sample")
@every_probe
def test_the_end_a_stop_and_a_crash_leave_the_model_as_it_was(busy, facts, probe):
    before, watch = photograph(busy), Interrupted(0)
    probe(busy, facts, watch)
    assert_same(before, photograph(busy))
    assert all(line.endswith(".") for line in watch.lines)
    last = len(watch.lines)
    for at in {1, 2, last // 2, last}:
        for error, kind in ((None, Stopped), (ZeroDivisionError(), ZeroDivisionError)):
            raised(kind, "", probe, busy, facts, Interrupted(at, error))
            assert_same(before, photograph(busy))
    for steps in (1, 4) * (probe is relearned):  # a loss that is not finite
        raised(RunError, "not finite", relearned, busy, facts, learning_rate=1e30, steps=steps)
        assert_same(before, photograph(busy))


@pytest.mark.quick("lens", "sample")
@every_probe
def test_the_seed_decides(model, facts, probe):
    torch.manual_seed(1)
    first = probe(model, facts)
    torch.manual_seed(2)
    assert probe(model, facts) == first
    assert {row.tier for row in first.rows} == {"all", "rare", "middle", "popular"}
    counts = {row.tier: row.facts for row in reversed(first.rows)}
    assert sum(counts[tier] for tier in ("rare", "middle", "popular")) == counts["all"]
    if probe in (relearned, sampled):
        assert probe(model, facts, seed=1) != first


@every_probe
def test_no_facts_and_facts_without_scores(model, probe, facts):
    raised(DataError, "", probe, model, ())
    rows = probe(model, [replace(fact, score=None) for fact in facts]).rows
    assert {row.tier for row in rows} == {"all"}


def test_one_fact_is_enough_where_none_is_trained_on(model, facts):
    for probe in (quantised, sampled, lensed):
        result = probe(model, facts[:1])
        assert {row.facts for row in result.rows} == {1}
        assert {row.tier for row in result.rows} == {"all", facts[0].tier}
        assert getattr(result.rows[0], "control", None) is None, "there is no wrong answer among one fact"


@pytest.mark.slow
@pytest.mark.parametrize("name", RECOVERY)
def test_costs_are_what_the_probes_do(name, model, small, monkeypatch):
    counts, steps = [], []

    def counting(generate):

        def counted(*args, **kwargs):
            output = generate(*args, **kwargs)
            counts.append(len(output))
            return output

        return counted

    monkeypatch.setattr(model.network, "generate", counting(model.network.generate))
    monkeypatch.setattr(generation, "greedy", counting(generation.greedy))
    facts = replace(small, retain=small.retain[:3])
    recover(name, model, facts, TOKENS, Progress(lambda line: steps.append("Training step" in line)))
    assert (sum(counts), sum(steps)) == (cost(name, facts).answers, cost(name, facts).steps)


def test_names_costs_in_words_and_what_came_back(model, small):
    assert str(Cost(answers=1440, steps=20)) == "1,440 answers and 20 training steps"
    assert str(Cost(prompts=512)) == "512 prompts to read"
    bare = FactSet("none", ())
    assert cost("relearn", bare) == Cost(steps=2 * relearn.STEPS)
    assert cost("quantise", bare) == cost("sampling", bare) == Cost() and str(Cost()) == ""
    assert all(cost(name, small).answers or cost(name, small).prompts for name in RECOVERY)
    raised(ConfigError, "no recovery probe 'hypnosis'", recover, "hypnosis", model, small, 3, Progress())
    results = {"relearn": {"returned": ["a", "b"]}, "sampling": {"returned": ["b"]}, "lens": {"rows": []}}
    assert recovered(results) == {"a": frozenset({"relearn"}), "b": frozenset({"relearn", "sampling"})}


def test_dealt_answers_are_wrong_and_of_the_relation(sandbox, facts):
    wrong = wrong_answers(sandbox.forget, sandbox.forget, seed=0)
    for fact, answer in zip(sandbox.forget, wrong):
        assert answer != fact.answer
        assert any(other.relation == fact.relation and other.answer == answer for other in sandbox.forget)
    assert sorted(wrong) == sorted(fact.answer for fact in sandbox.forget), "the answers themselves, dealt anew"
    again, other = (wrong_answers(sandbox.forget, sandbox.forget, seed=seed) for seed in (0, 1))
    assert wrong == again != other
    few = [next(fact for fact in sandbox.forget if fact.relation == relation) for relation in ("author", "car")]
    for fact, answer in zip(few, wrong_answers(few, sandbox.forget, seed=0)):
        assert answer in {other.answer for other in sandbox.forget if other.relation == fact.relation} - {fact.answer}
    assert wrong_answers(few, few, seed=0) == [None, None]
    bare = {"Who wrote Emma?": "Jane Austen", "When was Rome founded?": "753 BC", "Capital of Peru?": "Lima"}
    bare = [Fact(question, question, answer) for question, answer in bare.items()]
    assert wrong_answers(bare, bare, seed=0) == [None, None, None], "without a relation each is alone"
    # One subject with two right answers, and one answer written twice.
    fact = replace(facts[0], relation="made of", subject="Bronze", answer="copper")
    pool = [fact, replace(fact, answer="tin"), replace(fact, subject="Brass", answer=" Copper")]
    assert wrong_answers(pool, pool, seed=0) == [None, None, "tin"]


def test_a_wrong_reply_of_rounded_weights_is_not_known(model, facts):
    wrong = [replace(fact, answer=f"not {fact.answer}") for fact in facts]
    assert {row.original_rounded for row in quantised(model, wrong, bits=(8,)).rows} == {0.0}


def first_token_ranks(model, facts):
    rows = [replace(row, answer=row.answer[:1]) for row in encode_facts(model.tokenizer, facts)]
    batch = collate(rows, model.tokenizer.pad_token_id)
    with torch.no_grad():
        return gold_rank(model.score(batch, logits=True), batch.target).tolist()


def test_last_layer_and_first_token_ranks_are_the_metric(model, facts):
    unlearned = first_token_ranks(model, facts)
    with model.original():
        original = first_token_ranks(model, facts)
    assert unlearned != original
    by_layer, drawn = lensed(model, facts).facts, sampled(model, facts).facts
    assert [fact.unlearned[-1] for fact in by_layer] == [fact.unlearned.rank for fact in drawn] == unlearned
    assert [fact.original[-1] for fact in by_layer] == [fact.original.rank for fact in drawn] == original


def test_what_cannot_be_done_is_refused_in_words(model, facts):
    for probe, changes in (
        *((relearned, {name: value}) for name, value in (("count", 0), ("steps", 0), ("learning_rate", float("nan")))),
        *((sampled, {name: value}) for name, value in (("samples", 0), ("temperature", 0.0))),
        *((quantised, {"bits": (8, bits)}) for bits in (1, 9, 32)),
    ):
        with pytest.raises(ConfigError):
            probe(model, facts, **changes)
    for few in (facts[:1], facts[:8]):
        raised(DataError, "others to ask about", relearned, model, few, count=8)
    alone = [replace(fact, relation=fact.id) for fact in facts]
    raised(DataError, "0 of these 16", relearned, model, alone)
    raised(RunError, "destroyed", check_logits, torch.tensor([[0.0, float("nan")]]))


@every_probe
def test_a_destroyed_model_does_not_pass_for_one_that_forgot(model, facts, probe):
    data = model.parameters[0].data
    first_weight, data[0, 0] = data[0, 0].item(), float("nan")
    try:
        raised(RunError, "not finite", probe, model, facts)
    finally:
        data[0, 0] = first_weight


@pytest.mark.quick("lens", "quantise")
@pytest.mark.parametrize("name", RECOVERY)
def test_each_probe_runs_by_name_and_its_result_is_json(name, model, small):
    result = recover(name, model, small, 3, Progress())
    assert json.loads(json.dumps(result, allow_nan=False))["rows"]
    assert result["seconds"] > 0
    ids = {fact.id for fact in small.forget}
    assert set(result.get("returned", ())) <= ids


@pytest.mark.slow
def test_a_model_that_forgot_nothing_brings_nothing_back(fresh, small):
    for name in ("relearn", "quantise"):
        assert recover(name, fresh(), small, 3, Progress())["returned"] == ()
