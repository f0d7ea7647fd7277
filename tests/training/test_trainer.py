import json
import math
from dataclasses import replace
from functools import partial
from itertools import accumulate, product

import pytest
import torch

from adapop.config.methods import METHODS
from adapop.config.presets import make_config
from adapop.errors import DataError, ModelError, RunError
from adapop.facts.fact import Fact, FactSet
from adapop.model.loading import adapted_model
from adapop.model.tokens import collate, encode_facts
from adapop.objectives.alternates import DRAWN, by_model, by_relation
from adapop.objectives.objective import divergence
from adapop.popularity.beta import BetaMap
from adapop.remark import Remark
from adapop.runs.execute import execute, prepare
from adapop.training.controller import DualAscent
from adapop.training.events import EpochDone, RunDone, RunStarted, RunStopped, StepDone
from adapop.training.trainer import EMA_DECAY, Trainer, learning_rate
from edited import flipped_bit
from few_facts import gradient, weights
from raised import raised
from stirred import stirred


def trainer_of(model, facts, config, state=None):
    """A trainer on the set's forget and retain facts, with the betas that the config's map gives."""
    betas = [(config.beta or BetaMap())(fact.score) for fact in facts.forget] if METHODS[config.method].scored else None
    return Trainer("test", config, model, facts.forget, facts.retain, betas, state)


def train(fresh, facts, method="adapop", **changes):
    config, model = make_config(method, **changes), fresh(method, **changes)
    events = list(trainer_of(model, facts, config).train())
    return model, [e for e in events if isinstance(e, StepDone)], [e for e in events if isinstance(e, EpochDone)]


def first_gradient(fresh, facts, method, **changes):
    config, model = make_config(method, **{"clip": 1e9, **changes}), fresh(method)
    events = trainer_of(model, facts, config).train()
    step = next(event for event in events if isinstance(event, StepDone))
    return step, torch.cat([parameter.grad.flatten() for parameter in model.parameters])


def nll_of(model, facts):
    tokens = collate(encode_facts(model.tokenizer, facts), model.tokenizer.pad_token_id)
    return model.score(tokens).nll


@pytest.fixture(scope="module")
def uneven(small):
    """16 forget and 16 retain facts with answers of one to three tokens; the former also with a wrong one each."""

    def longer(facts):
        answers = [" ".join([fact.answer, "one", "two"][: 1 + i % 3]) for i, fact in enumerate(facts[::2])]
        return tuple(replace(fact, answer=answer) for fact, answer in zip(facts[::2], answers))

    return replace(small, forget=tuple(by_relation(longer(small.forget), (), 0)), retain=longer(small.retain))


def test_a_step_says_the_nll_of_its_rows_in_all_and_by_tier(fresh, uneven):
    step, _ = first_gradient(fresh, uneven, "adapop")
    nll = nll_of(fresh(), uneven.forget).split([1 + i % 3 for i in range(16)])
    assert step.nll_forget == pytest.approx(torch.cat(nll).mean().item(), rel=1e-5)
    assert {*step.nll_by_tier} == {"rare", "middle", "popular"}
    for tier, tier_nll in step.nll_by_tier.items():
        own = torch.cat([part for part, fact in zip(nll, uneven.forget) if fact.tier == tier])
        assert tier_nll == pytest.approx(own.mean().item(), rel=1e-5)
    tailed, _ = first_gradient(fresh, uneven, "ga", include_tail=True)
    rows = encode_facts(fresh().tokenizer, uneven.forget, include_tail=True)
    assert tailed.nll_forget == pytest.approx(fresh().score(collate(rows, 0)).nll.mean().item(), rel=1e-5)
    assert tailed.nll_forget != pytest.approx(step.nll_forget, rel=0.01)


@pytest.mark.parametrize("normalise", ["token", "example"])
def test_forget_loss_by_hand(fresh, uneven, normalise):
    """(1/N) over the real tokens of the whole step, or the mean over rows of each row's mean."""
    step, _ = first_gradient(fresh, uneven, "adapop", normalise=normalise, micro_batch=4)
    config, losses = make_config(), []
    for fact, nll in zip(uneven.forget, nll_of(fresh(), uneven.forget).split([1 + i % 3 for i in range(16)])):
        losses.append([-math.exp(-(config.beta or BetaMap())(fact.score) * n) * n for n in nll.tolist()])
    tokens = [loss for row in losses for loss in row]
    expected = {"token": sum(tokens) / 31, "example": sum(sum(row) / len(row) for row in losses) / 16}
    assert len(tokens) == 31 and step.forget_loss == pytest.approx(expected[normalise], rel=1e-5)
    assert expected["token"] != pytest.approx(expected["example"], rel=0.01)


def test_retain_loss_is_a_mean(fresh, uneven):
    model, _, rows = train(fresh, uneven, epochs=1, learning_rate=2e-3)
    with torch.no_grad():
        after = nll_of(model, uneven.retain).mean().item()
        with model.original():
            before = nll_of(model, uneven.retain).mean().item()
    assert [row.retain_loss for row in rows] == pytest.approx([before, after], rel=1e-5)
    assert before != pytest.approx(after, rel=0.01)


def test_kl_holds_the_original_predictions(fresh, uneven):
    """At the start there is nothing to hold: the gradient is the forget loss's alone. Later there is."""
    _, held = first_gradient(fresh, uneven, "gd", retain_loss="kl")
    _, ascent = first_gradient(fresh, uneven, "ga")
    torch.testing.assert_close(held, ascent, rtol=1e-4, atol=1e-5 * ascent.abs().max().item())
    model, tokens = stirred(fresh()), collate(encode_facts(fresh().tokenizer, uneven.retain), 0)
    with torch.no_grad():
        kl = divergence(model, tokens).loss
        with model.original():
            before = model.score(tokens, logits=True).logits.softmax(-1)
        after = model.score(tokens, logits=True).logits.log_softmax(-1)
    torch.testing.assert_close(kl, (before * (before.log() - after)).sum(-1), rtol=1e-4, atol=1e-6)
    assert kl.shape == (31,) and kl.min() > -1e-6 and kl.mean() > 0.01


@pytest.mark.parametrize(("normalise", "alone"), [("token", "token"), ("example-both", "example")])
def test_gd_gradient_is_ga_plus_alpha_times_retain(fresh, uneven, normalise, alone):
    """Of all tokens the mean; or as the released code, whose micro-batches are single rows, of the rows' means."""
    facts = replace(uneven, retain=uneven.retain[:3])  # answers of one, two and three tokens
    _, both = first_gradient(fresh, facts, "gd", normalise=normalise, alpha0=2.0)
    _, ascent = first_gradient(fresh, facts, "ga", normalise=alone)
    trainer = trainer_of(fresh("gd"), facts, make_config("gd"))
    drawn, model = [facts.retain[row.fact] for row in next(trainer._plan(1))[1]], fresh()
    rows = [nll_of(model, [fact]) for fact in drawn]
    mean = torch.cat(rows).mean() if normalise == "token" else torch.stack([row.mean() for row in rows]).mean()
    retain = gradient(model, mean)
    torch.testing.assert_close(both, ascent + 2.0 * retain, rtol=1e-4, atol=1e-6)
    assert (2.0 * retain).norm() > 0.05 * ascent.norm()


def test_algorithm_1(fresh, small):
    settings = dict(dual_step=0.1, tolerance=0.1, lam_max=0.25, alpha0=0.25)
    _, _, rows = train(fresh, small, epochs=5, learning_rate=6e-3, **settings)
    controller, losses = DualAscent(**settings), [row.retain_loss for row in rows]
    expected = accumulate(losses[1:], controller.update, initial=controller.start(losses[0]))
    assert [row.row for row in rows] == [*expected] and len(rows) == 6
    assert rows[1].lam == 0 < rows[2].lam < rows[3].lam == 0.25 > rows[5].lam  # up, to its limit, and down again
    # From alpha0 = 0 there is no retain term until the controller has seen drift.
    changes = dict(alpha0=0.0, reference="start", tolerance=0.0, dual_step=10.0, epochs=3, learning_rate=2e-3)
    _, steps, rows = train(fresh, small, **changes)
    weighed = [row.epoch + 1 for row in rows if row.alpha > 0]
    assert rows[0].alpha == 0 and 2 in weighed
    assert {step.epoch for step in steps if step.nll_retain is not None} == set(weighed) & {1, 2, 3}


@pytest.mark.slow
def test_smoothed_retain_signal(fresh, small):
    """`ema` watches the training batches: the controller's losses are their moving mean, across epochs."""
    _, steps, rows = train(fresh, small, retain_signal="ema", epochs=2, batch=8, learning_rate=2e-3)
    _, _, full = train(fresh, small, epochs=2, batch=8, learning_rate=2e-3)
    ema = steps[0].nll_retain
    for step in steps[1:]:
        ema = EMA_DECAY * ema + (1 - EMA_DECAY) * step.nll_retain
        if step.step == 4:
            assert rows[step.epoch].retain_loss == pytest.approx(ema)
    assert rows[0].retain_loss == full[0].retain_loss  # before any batch there is only the full set
    assert rows[1].retain_loss != pytest.approx(full[1].retain_loss, rel=1e-3)


@pytest.mark.slow
def test_retain_signal_of_single_rows(fresh, uneven):
    """`ema-rows` watches one retain row after another, in the order they were drawn, whatever the pieces."""
    changes = dict(retain_signal="ema-rows", epochs=1, batch=16, learning_rate=1e-12)
    whole, pieces = (train(fresh, uneven, micro_batch=size, **changes)[2] for size in (16, 3))
    trainer = trainer_of(fresh(), uneven, make_config("adapop", batch=16, epochs=1))
    drawn = [uneven.retain[row.fact] for row in next(trainer._plan(1))[1]]
    means = [nll_of(fresh(), [fact]).mean().item() for fact in drawn]
    ema = means[0]
    for value in means[1:]:
        ema = EMA_DECAY * ema + (1 - EMA_DECAY) * value
    assert [rows[1].retain_loss for rows in (whole, pieces)] == pytest.approx([ema, ema], rel=1e-4)
    assert ema != pytest.approx(sum(means) / 16, rel=0.01)


@pytest.mark.quick("even-sizes0")
@pytest.mark.parametrize(("last_step", "sizes"), [("even", [5, 5, 6]), ("short", [7, 7, 2]), ("rolled", [7, 7])])
def test_the_last_rows_of_an_epoch(fresh, uneven, last_step, sizes):
    config = make_config("wga", batch=7, epochs=2, last_step=last_step)
    trainer = trainer_of(fresh("wga"), uneven, config)
    plans = [[[row.fact for row in forget] for forget, _ in trainer._plan(epoch)] for epoch in (1, 2)]
    assert [len(step) for step in plans[0]] == sizes and trainer.steps == len(sizes)
    order = [fact for step in plans[0] for fact in step]
    assert len(set(order)) == len(order)
    if last_step == "rolled":  # what the first epoch left begins the second
        assert {*order, *plans[1][0][:2]} == set(range(16))
    events = [event for event in trainer.train() if isinstance(event, StepDone)]
    assert [(event.epoch, event.step) for event in events] == [*product((1, 2), range(1, len(sizes) + 1))]


def order_of(model, facts, config, epoch):
    pairs = list(trainer_of(model, facts, config)._plan(epoch))
    return [[row.fact for rows in part for row in rows] for part in zip(*pairs)]


def test_order_of_batches_is_seeded(model, small, fresh):
    config = make_config()
    first = order_of(model, small, config, 1)
    assert first == order_of(model, small, config, 1)
    for other in (order_of(model, small, config, 2), order_of(model, small, replace(config, seed=1), 1)):
        assert other[0] != first[0] and other[1] != first[1]
    plain, pure = (order_of(model, small, make_config(batch=4, tier_pure=pure), 1)[0] for pure in (False, True))
    assert sorted(pure) == sorted(plain) and pure != plain
    tiers = [small.forget[fact].tier for fact in pure]
    assert all(len({*tiers[start : start + 4]}) == 1 for start in range(0, len(tiers), 4)), "12, 8 and 12 facts"
    for tier in {*tiers}:
        members = [[fact for fact in order if small.forget[fact].tier == tier] for order in (plain, pure)]
        assert members[0] == members[1]
    of_tiers = [next(fact for fact in small.forget if fact.tier == tier) for tier in ("rare", "middle", "popular")]
    uneven = replace(small, forget=tuple(replace(fact, id=f"{fact.id}-{i}") for fact in of_tiers for i in range(7)))
    plan = trainer_of(model, uneven, make_config(batch=4, tier_pure=True))._plan(1)
    steps = [{uneven.forget[row.fact].tier for row in forget} for forget, _ in plan]
    assert list(map(len, steps)) == [1, 1, 1, 2, 2, 1], "7, 7 and 7 facts"
    (one, steps, rows), (two, other_steps, other_rows) = (train(fresh, small, epochs=2) for _ in range(2))
    assert torch.equal(weights(one), weights(two)) and (steps, rows) == (other_steps, other_rows)
    assert not torch.equal(weights(one), weights(train(fresh, small, epochs=2, seed=1)[0]))


@pytest.mark.parametrize("retain", [1, 32])
def test_an_epoch_sees_each_forget_fact_once_and_draws_as_many_retain_facts(model, small, retain):
    facts = replace(small, forget=small.forget[:30], retain=small.retain[:retain])
    forget, drawn = order_of(model, facts, make_config(batch=16), 1)
    assert sorted(forget) == list(range(30)) and forget != list(range(30))
    assert len(drawn) == 30 and set(drawn) <= set(range(retain))
    assert len(set(drawn)) < 30  # with replacement


def test_numbers_that_are_not_finite_end_the_run(fresh, small):
    # The first step of an absurd rate is finite, the second is not: it is refused before it is taken.
    config, model = make_config(learning_rate=1e30, schedule="constant"), fresh()
    events = trainer_of(model, small, config).train()
    next(event for event in events if isinstance(event, StepDone))
    before = weights(model)
    raised(RunError, r"Epoch 1, step 2: the loss or its gradient is not finite\.", list, events)
    assert before.isfinite().all() and torch.equal(weights(model), before)
    # A finite loss with a broken gradient stops too.
    model = fresh()
    model.parameters[5].register_hook(lambda gradient: gradient * math.inf)
    raised(RunError, "Epoch 1, step 1", list, trainer_of(model, small, make_config()).train())
    assert torch.equal(weights(model), weights(fresh()))
    # One step an epoch: the model dies in the last step, and the end of the epoch must say so.
    with pytest.raises(RunError, match="loss over the retain set is not finite"):
        list(trainer_of(fresh(), small, replace(config, batch=32)).train())


def test_the_clip_and_a_layer_without_a_gradient(fresh, small):
    # The norm is reported as it was, and the optimiser sees at most `clip`.
    model = fresh()
    step = next(one for one in trainer_of(model, small, make_config(clip=0.01)).train() if isinstance(one, StepDone))
    norm = math.sqrt(sum(parameter.grad.square().sum().item() for parameter in model.parameters))
    assert step.gradient_norm > 0.1 and norm == pytest.approx(0.01, rel=1e-3)
    # A layer the loss cannot see is an error in the first step, not a run that learns less.
    for name, parameter in model.network.named_parameters():
        if "layers.2.self_attn.v_proj.lora_B" in name:
            parameter.register_hook(torch.zeros_like)
    raised(ModelError, "1 adapter weights got no gradient", list, trainer_of(model, small, make_config()).train())


def test_learning_rate(fresh, small):
    up, down = [1 / 4, 2 / 4, 3 / 4, 1], [1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    for schedule, epochs, rates in (("constant", 2, [1] * 8), ("linear", 3, up + down), ("linear", 1, up)):
        config = make_config(schedule=schedule, epochs=epochs, learning_rate=0.5)
        assert [2 * learning_rate(config, done, 4) for done in range(4 * epochs)] == pytest.approx(rates)
    _, steps, _ = train(fresh, small, epochs=2, learning_rate=8e-4)
    assert [step.learning_rate for step in steps] == pytest.approx([4e-4, 8e-4, 8e-4, 4e-4])


# Methods that hardly forget with the paper's settings, and a setting under which they do.
HELD_BACK = {
    "undial": {"arguments": {"beta": 10.0}},  # a gold token that leads by more than beta = 3 stays in front
    "adaptive-rmu": {"alpha0": 10.0},  # alpha = 1200 holds the states of all facts
    "idkdpo": {"arguments": {"beta": 0.01}},  # a likelier refusal alone contents beta = 0.1 in two steps
}


@pytest.fixture(scope="module")
def facts(small):
    forget = tuple(by_relation(small.forget[::2], small.retain, 0))
    return FactSet("few", forget, small.retain[::2], small.holdout[::4], small.utility[:4])


def base_weights(model):
    return {name: value for name, value in model.network.named_parameters() if not value.requires_grad}


@pytest.mark.quick("adapop")
@pytest.mark.parametrize("method", METHODS)
def test_only_the_adapter_moves_and_a_resumed_run_equals_an_uninterrupted_one(fresh, facts, method):
    """State as a checkpoint holds it, after the second of three epochs; bit by bit, in weights and in what is said."""
    config, model = make_config(method, epochs=3, batch=8, warmup=1), fresh(method)
    before = {name: value.clone() for name, value in base_weights(model).items()}
    start = {name: value.clone() for name, value in model.adapter_state().items()}
    trainer = trainer_of(model, facts, config)
    events, saved_count = [], None
    for event in trainer.train():
        events.append(event)
        if isinstance(event, EpochDone) and event.epoch == 2:
            state, adapter = trainer.state(), {name: value.clone() for name, value in model.adapter_state().items()}
            state.optimizer = {name: value.clone() for name, value in state.optimizer.items()}
            saved_count = len(events)
    assert all(torch.equal(value, before[name]) for name, value in base_weights(model).items())
    end = model.adapter_state()
    assert all(not torch.equal(value, start[name]) for name, value in end.items() if "lora_B" in name)
    assert all(value.isfinite().all() for value in end.values())
    other = fresh(method, seed=9)
    other.set_adapter_state(adapter)
    assert list(trainer_of(other, facts, config, state).train()) == events[saved_count:]
    assert all(torch.equal(value, end[name]) for name, value in other.adapter_state().items())


def recall_before_and_after(model, facts, config):
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
    events, mu = list(trainer_of(fresh("pdu"), facts, config).train()), 1.0
    for event in events:
        if isinstance(event, StepDone) and event.epoch > 1:
            mu = max(0.0, mu + 4 * (event.nll_retain - 0.3))  # a row a micro-batch, four a step
        elif isinstance(event, EpochDone):
            assert event.alpha == event.lam == pytest.approx(mu, rel=1e-5)
    assert mu != 1.0
    # Else a dual variable that reached 0 could never rise again.
    config = make_config("pdu", epochs=1, batch=4, warmup=0, alpha0=0.0, retain_bound=0.0)
    events = list(trainer_of(fresh("pdu"), facts, config).train())
    assert all(event.nll_retain is not None for event in events if isinstance(event, StepDone)) and events[-1].alpha > 0


@pytest.mark.slow
def test_alternates_of_a_run_are_kept_and_used_again(facts):
    bare = _bare(facts)
    run = prepare(make_config("altpo", epochs=2, batch=8), bare)
    for event in execute(run):
        if isinstance(event, EpochDone) and event.epoch == 1:
            break  # the process dies here, before epoch 1 is saved
    saved_text = (run.folder / "alternates.json").read_text(encoding="utf-8")
    alternates = json.loads(saved_text)["alternates"]
    assert set(alternates) == {fact.id for fact in bare.forget}
    assert all(others and fact.answer not in others for fact, others in zip(bare.forget, alternates.values()))
    for place in (0.2, 0.5, 0.8):
        (run.folder / "alternates.json").write_bytes(flipped_bit(saved_text.encode(), place))
        (*_, failed) = execute(run)
        assert "alternates.json is damaged or missing (it is not as it was written" in failed.message
    (run.folder / "alternates.json").write_text(saved_text, encoding="utf-8")
    events = list(execute(run))
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunDone)
    assert (run.folder / "alternates.json").read_text(encoding="utf-8") == saved_text
    assert run.facts.sha256 == bare.sha256, "the set stays the one that other methods are compared on"


def test_a_run_is_refused_or_stopped_before_the_model_is_asked(facts):
    lonely = Fact("lonely", "What is the capital of Lemuria?", "Shangri-La", relation="capital", score=1.0)
    alone = FactSet("few", (*facts.forget, lonely), facts.retain)
    with pytest.raises(DataError, match="1 of 17 facts have no plausible wrong answer, for example 'lonely'"):
        prepare(make_config("altpo"), alone)
    prepare(make_config("npo"), alone)
    wrong = replace(facts.forget[0], alternates=(f"{facts.forget[0].answer}, of course",))
    for source in ("model", "relation"):
        config, named = make_config("altpo", arguments={"source": source}), f"1 of 16 .* wrong ones: '{wrong.id}'"
        raised(DataError, named, prepare, config, replace(facts, forget=(wrong, *facts.forget[1:])))
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
    alternates = json.loads((run.folder / "alternates.json").read_text(encoding="utf-8"))["alternates"]
    assert all(alternates[fact.id] == list(fact.alternates) for fact in written if fact.alternates)
    assert all(alternates.values()) and isinstance(done, RunDone)
    assert done.notes[0] == Remark("no_wrong_answers", {"count": silent, "facts": 16})


def test_adapter_of_the_authors_presets_learns(facts):
    """On one kind of layer, in the two blocks up to the one that is read."""
    config = make_config("rmu", "authors", epochs=3, batch=16)
    model = adapted_model(config)
    losses = [event.forget_loss for event in trainer_of(model, facts, config).train() if isinstance(event, StepDone)]
    adapted = [name for name, value in model.network.named_parameters() if "lora_B" in name]
    assert len(adapted) == 2 and all("down_proj" in name for name in adapted) and losses[-1] < losses[0]


def _bare(facts):
    bare = tuple(replace(fact, paraphrases=(), alternates=()) for fact in facts.forget)
    return FactSet("few", bare, facts.retain[:4])
