"""All methods in the trainer: what moves, what resumes, what is forgotten."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from adapop.config.methods import METHODS
from adapop.config.presets import make_config
from adapop.errors import DataError
from adapop.facts.fact import Fact, FactSet
from adapop.model.loading import adapted_model
from adapop.objectives.alternates import DRAWN, by_model, by_relation
from adapop.popularity.beta import BetaMap
from adapop.runs.execute import execute, prepare
from adapop.training.events import EpochDone, RunDone, RunStarted, RunStopped, StepDone
from adapop.training.trainer import Trainer

# Methods that hardly forget with the paper's settings, and a setting under which they do.
HELD_BACK = {
    "undial": {"arguments": {"beta": 10.0}},  # a gold token that leads by more than beta = 3 stays in front
    "adaptive-rmu": {"alpha0": 10.0},  # alpha = 1200 holds the states of all facts
    "idkdpo": {"arguments": {"beta": 0.01}},  # a likelier refusal alone contents beta = 0.1 in two steps
}


@pytest.fixture(scope="module")
def facts(small):
    """16 forget and 16 retain facts, with a wrong answer each."""
    forget = tuple(by_relation(small.forget[::2], small.retain, 0))
    return FactSet("few", forget, small.retain[::2], small.holdout[::4], small.utility[:4])


def trainer_of(model, facts, config, state=None):
    betas = [(config.beta or BetaMap())(fact.score) for fact in facts.forget] if METHODS[config.method].scored else None
    return Trainer("test", config, model, facts.forget, facts.retain, betas, state)


def base_weights(model):
    return {name: value for name, value in model.network.named_parameters() if not value.requires_grad}


@pytest.mark.quick("adapop")
@pytest.mark.parametrize("method", METHODS)
def test_only_the_adapter_moves_and_a_resumed_run_equals_an_uninterrupted_one(fresh, facts, method):
    """State as a checkpoint holds it, after the second of three epochs; bit by bit, in weights and in what is said."""
    config = make_config(method, epochs=3, batch=8, warmup=1)
    model = fresh(method)
    before = {name: value.clone() for name, value in base_weights(model).items()}
    start = {name: value.clone() for name, value in model.adapter_state().items()}
    trainer = trainer_of(model, facts, config)
    said, kept = [], None
    for event in trainer.train():
        said.append(event)
        if isinstance(event, EpochDone) and event.epoch == 2:
            state, adapter = trainer.state(), {name: value.clone() for name, value in model.adapter_state().items()}
            state.optimizer = {name: value.clone() for name, value in state.optimizer.items()}
            kept = len(said)
    assert all(torch.equal(value, before[name]) for name, value in base_weights(model).items())
    end = model.adapter_state()
    assert all(not torch.equal(value, start[name]) for name, value in end.items() if "lora_B" in name)
    assert all(value.isfinite().all() for value in end.values())

    other = fresh(method, seed=9)
    other.set_adapter_state(adapter)
    assert list(trainer_of(other, facts, config, state).train()) == said[kept:]
    assert all(torch.equal(value, end[name]) for name, value in other.adapter_state().items())


def recall_before_and_after(model, facts, config):
    """Recall of the forget facts, and the steps' mean nll of them from the first step to the last."""

    def recall():
        answers = model.generate([fact.question for fact in facts.forget], max_new_tokens=3)
        return sum(fact.answer in answer for fact, answer in zip(facts.forget, answers)) / len(answers)

    before = recall()
    steps = [event for event in trainer_of(model, facts, config).train() if isinstance(event, StepDone)]
    return before, recall(), steps[-1].nll_forget - steps[0].nll_forget


@pytest.mark.quick("adapop")
@pytest.mark.parametrize("method", METHODS)
def test_known_before_forgotten_after(fresh, facts, method):
    """Five short epochs at a high rate: what it does to the rest is not asked here. What the paper's settings hold
    back, they do, so that nobody takes it for a fault of the sandbox's."""
    config = make_config(method, batch=4, learning_rate=4e-3)
    if method in HELD_BACK:
        assert recall_before_and_after(fresh(method), facts, config)[:2] == (1.0, 1.0)
    config = make_config(method, batch=4, learning_rate=4e-3, **HELD_BACK.get(method, {}))
    before, after, rise = recall_before_and_after(fresh(method), facts, config)
    assert before == 1.0 and after <= 0.85 and rise > 1.0


def test_a_weight_of_zero_and_a_dual(fresh, facts):
    config = make_config("pdu", epochs=3, batch=4, warmup=1, learning_rate=2e-3)
    events = list(trainer_of(fresh("pdu"), facts, config).train())
    mu = 1.0
    for event in events:
        if isinstance(event, StepDone) and event.epoch > 1:
            mu = max(0.0, mu + 4 * (event.nll_retain - 0.3))  # a row a micro-batch, four a step
        elif isinstance(event, EpochDone):
            assert event.alpha == event.lam == pytest.approx(mu, rel=1e-5)
    assert mu != 1.0
    # Else a dual variable that reached 0 could never rise again.
    config = make_config("pdu", epochs=1, batch=4, warmup=0, alpha0=0.0, retain_bound=0.0)
    events = list(trainer_of(fresh("pdu"), facts, config).train())
    assert all(event.nll_retain is not None for event in events if isinstance(event, StepDone))
    assert events[-1].alpha > 0


@pytest.mark.slow
def test_alternates_of_a_run_are_kept_and_used_again(facts):
    bare = _bare(facts)
    run = prepare(make_config("altpo", epochs=2, batch=8), bare)
    for event in execute(run):
        if isinstance(event, EpochDone) and event.epoch == 1:
            break  # the process dies here, before epoch 1 is saved
    kept = (run.folder / "alternates.json").read_text(encoding="utf-8")
    found = json.loads(kept)["alternates"]
    assert set(found) == {fact.id for fact in bare.forget}
    assert all(others and fact.answer not in others for fact, others in zip(bare.forget, found.values()))
    events = list(execute(run))
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunDone)
    assert (run.folder / "alternates.json").read_text(encoding="utf-8") == kept
    assert run.facts.sha256 == bare.sha256, "the set stays the one that other methods are compared on"


def test_a_run_is_refused_or_stopped_before_the_model_is_asked(facts):
    lonely = Fact("lonely", "What is the capital of Lemuria?", "Shangri-La", relation="capital", score=1.0)
    alone = FactSet("few", (*facts.forget, lonely), facts.retain)
    with pytest.raises(DataError, match="1 of 17 facts have no plausible wrong answer, for example 'lonely'"):
        prepare(make_config("altpo"), alone)
    prepare(make_config("npo"), alone)
    bare = _bare(facts)
    run = prepare(make_config("altpo", epochs=1, arguments={"source": "model"}), bare)
    events = execute(run)
    assert isinstance(next(events), RunStarted) and not (run.folder / "alternates.json").exists()
    run.request_stop()
    (stopped,) = events
    assert isinstance(stopped, RunStopped) and run.state == "stopped"
    assert not (run.folder / "alternates.json").exists(), "what is half done is not kept"
    run.clear_stop()
    *_, done = execute(run)
    assert isinstance(done, RunDone)


@pytest.mark.slow
def test_asked_of_the_model_and_of_others_where_it_writes_nothing_usable(facts, fresh):
    """The sandbox understands little of what it is asked; what it writes and can be used is taken all the same."""
    bare = _bare(facts)
    written = by_model(bare.forget, partial(fresh().sample, **DRAWN), 0)
    silent = sum(not fact.alternates for fact in written)
    assert 0 < silent < len(written)
    run = prepare(make_config("altpo", epochs=1, arguments={"source": "model"}), bare)
    *_, done = execute(run)
    found = json.loads((run.folder / "alternates.json").read_text(encoding="utf-8"))["alternates"]
    assert all(found[fact.id] == list(fact.alternates) for fact in written if fact.alternates)
    assert all(found.values()) and isinstance(done, RunDone)
    assert f"For {silent} of 16 facts the model wrote no usable wrong answer" in done.notes[0]


def test_alternates_that_say_the_right_answer_are_refused_before_a_model_is_loaded(facts):
    wrong = replace(facts.forget[0], alternates=(f"{facts.forget[0].answer}, of course",))
    for source in ("model", "relation"):
        config = make_config("altpo", arguments={"source": source})
        with pytest.raises(DataError, match=f"1 of 16 facts .* among the wrong ones: '{wrong.id}'"):
            prepare(config, replace(facts, forget=(wrong, *facts.forget[1:])))


def test_adapter_of_the_authors_presets_learns(facts):
    """On one kind of layer, in the two blocks up to the one that is read."""
    config = make_config("rmu", "authors", epochs=3, batch=16)
    model = adapted_model(config)
    losses = [event.forget_loss for event in trainer_of(model, facts, config).train() if isinstance(event, StepDone)]
    adapted = [name for name, value in model.network.named_parameters() if "lora_B" in name]
    assert len(adapted) == 2 and all("down_proj" in name for name in adapted)
    assert losses[-1] < losses[0]


def _bare(facts):
    """The forget facts as they come, without wrong answers and rewordings, and a few to retain."""
    return FactSet(
        "few", tuple(replace(fact, paraphrases=(), alternates=()) for fact in facts.forget), facts.retain[:4]
    )
