import math
import shutil
from dataclasses import replace
from statistics import fmean
from unittest.mock import Mock

import pytest

from adapop.config.presets import make_config
from adapop.errors import DataError, RunError
from adapop.paths import SANDBOX_FOLDER
from adapop.popularity.beta import BetaMap, inverted, shuffled
from adapop.remark import Remark
from adapop.runs import measuring
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.run import find_run
from adapop.training.events import (
    EpochDone,
    Measured,
    Measuring,
    RunDone,
    RunFailed,
    RunStarted,
    RunStopped,
    Saved,
    StepDone,
    current,
)
from edited import without_last
from interrupting import EPOCHS, STEPS, assert_same_run, config_of, killed, timeless
from raised import raised
from tiny_runs import ran

# One epoch: its steps, the controller's row, recall on the forget facts, the checkpoint.
EPOCH = [StepDone] * STEPS + [EpochDone, Measured, Saved]
WHOLE = [RunStarted, EpochDone, Measured] + EPOCH * EPOCHS + [Measured, Measured, RunDone]
RESUMABLE = {  # what each method keeps is gone on with in training/test_trainer.py
    "weight decay": ("wga", {"weight_decay": 0.1}),
    "smoothed retain signal": ("adapop", {"retain_signal": "ema", "tolerance": 0.0, "dual_step": 5.0}),
    "reference before training": ("adapop", {"reference": "start", "tolerance": 0.0, "dual_step": 5.0}),
    "dual variable of the steps": ("pdu", {"warmup": 0}),
}


@pytest.fixture(scope="module")
def run_of(bare, tmp_path_factory):
    """An uninterrupted run by method and settings, with the events it yielded. Each is made once."""
    made = {}

    def run_of(method="adapop", **changes):
        key = (method, *changes.items())
        if key not in made:
            run = prepare(config_of(method, **changes), bare, tmp_path_factory.mktemp("runs"))
            made[key] = run, list(execute(run))
        return made[key]

    return run_of


def test_each_event_is_on_disk_before_it_is_yielded_and_every_epoch_leaves_a_checkpoint(bare):
    run, events = prepare(config_of(), bare), []
    for event in execute(run):
        events.append(event)
        assert [one for one in run.events() if not isinstance(one, Measuring)] == events, "a slow machine says more"
    assert [type(event) for event in events] == WHOLE and run.state == "done"
    assert all(event.run == run.id and event.time > 0 for event in events)
    counts = dict(forget=4, retain=4, holdout=0, epochs=EPOCHS, steps=STEPS)
    expected = RunStarted(run=run.id, model="sandbox", method="adapop", facts=bare.name, **counts)
    assert timeless(events[:1], starts=True) == timeless([expected], starts=True)
    for epoch in range(1, EPOCHS + 1):
        files = {path.name for path in run.checkpoint(epoch).iterdir()}
        assert {"adapter_model.safetensors", "optimizer.safetensors", "state.json"} <= files
    assert run.last_epoch == EPOCHS and not list(run.folder.glob("writing-*"))


def test_full_measurement_of_both_models(finished, tiny):
    before, after = finished.measured(before=True), finished.measured()
    assert (before.epoch, after.epoch) == (0, 1)
    for event in (before, after):
        counts = {(row["group"], row["form"]): row["facts"] for row in event.rows if row["tier"] == "all"}
        for group in ("forget", "retain", "holdout", "utility"):
            assert counts[group, "direct"] == len(getattr(tiny, group))
    first, last = (event.rows[0] for event in (before, after))
    assert first["group"] == last["group"] == "forget" and first["tier"] == last["tier"] == "all"
    assert first["recall"] == 1.0 and first["delta_logprob"] == first["delta_rank"] == first["kl"] == 0
    assert last["delta_logprob"] < 0 < last["kl"] and last["recall"] < 1


def torn(run, after):
    killed(run, after)
    with open(run.folder / "events.jsonl", "ab") as log:
        log.write('{"kind": "step_done", "run": "é'.encode()[:-1])


def stopped(run, after):
    for _ in execute(run):
        if len(run.events()) == after:
            run.request_stop()
    assert isinstance(run.events()[-1], RunStopped) and run.state == "stopped"


def half_saved(run, after):
    killed(run, after)
    aside = run.folder / f"writing-{(run.last_epoch or 0) + 1}"
    aside.mkdir()
    (aside / "adapter_model.safetensors").write_bytes(b"half")


def unsaid(run, after):
    """A kill between a checkpoint and the event that tells of it."""
    killed(run, after)
    assert isinstance(run.events()[-1], Saved)
    without_last(run.folder / "events.jsonl", 1)


FIRST_EPOCH, LAST = 3 + len(EPOCH), len(WHOLE)
INTERRUPTIONS = {
    "killed before the first step": (killed, 3), "killed in epoch 1": (killed, 4),
    "stopped after epoch 1": (stopped, FIRST_EPOCH), "stopped in epoch 2": (stopped, FIRST_EPOCH + 1),
    "killed at the end of epoch 2": (killed, FIRST_EPOCH + STEPS + 1),
    "killed while writing the log": (torn, FIRST_EPOCH + 2),
    "killed while saving": (half_saved, FIRST_EPOCH + STEPS + 2),
    "killed after saving": (unsaid, 2 * FIRST_EPOCH - 3), "killed in the last measurement": (killed, LAST - 2),
}  # fmt: skip


@pytest.mark.quick("killed in epoch 1")
@pytest.mark.parametrize(("interrupt", "after"), INTERRUPTIONS.values(), ids=INTERRUPTIONS)
def test_resumed_run_equals_an_uninterrupted_one(run_of, bare, interrupt, after):
    run = prepare(config_of(), bare)
    interrupt(run, after)
    run.clear_stop()
    resumed = list(execute(find_run(run.id)))
    assert isinstance(resumed[0], RunStarted) and isinstance(resumed[-1], RunDone)
    assert_same_run(run, run_of()[0])


@pytest.mark.quick("dual variable of the steps")
@pytest.mark.parametrize(("method", "changes"), RESUMABLE.values(), ids=RESUMABLE)
def test_everything_a_run_remembers_survives(run_of, bare, method, changes):
    run = prepare(config_of(method, **changes), bare)
    killed(run, FIRST_EPOCH + 1)
    list(execute(run))
    assert_same_run(run, run_of(method, **changes)[0])


@pytest.mark.slow
def test_a_run_interrupted_twice_goes_on_with_a_model_at_hand(run_of, bare, fresh):
    """The model given is put where the checkpoint stands, whatever its adapter was."""
    run = prepare(config_of(), bare)
    killed(run, 5)
    killed(run, FIRST_EPOCH + 3)
    list(execute(run, fresh(seed=5)))
    assert [event.resumed_from for event in run.events() if isinstance(event, RunStarted)] == [0, 0, 1]
    assert_same_run(run, run_of()[0])


@pytest.mark.quick("Ctrl-C-after")
@pytest.mark.parametrize("epoch", [EPOCHS, "after", 0, 1, "before"])
@pytest.mark.parametrize("ends", ["stop", "Ctrl-C"])
def test_a_measurement_ends_at_once_and_nothing_is_lost(run_of, bare, monkeypatch, epoch, ends):
    """epoch: whose measurement it is; before, after: the full tables at the end."""
    if ends == "Ctrl-C" and epoch in (0, "before"):
        pytest.skip("as with a stop, and there is nothing yet to lose")
    monkeypatch.setattr(measuring, "LOG_EVERY", 0.0)
    monkeypatch.setattr(measuring, "CHECK_EVERY", 0.0)
    run, straight = prepare(config_of(), bare), run_of()[0]
    trained = {"before": EPOCHS, "after": EPOCHS}.get(epoch, epoch)
    target = {"before": (0, True), "after": (EPOCHS, True)}.get(epoch, (epoch, False))

    def hear(event):
        saved = any(isinstance(one, Saved) and one.epoch == EPOCHS for one in run.events())
        if (event.epoch, run.last_epoch == EPOCHS and saved) != target:
            return
        if ends == "Ctrl-C":
            raise KeyboardInterrupt
        run.request_stop()

    if ends == "stop":
        *_, last = execute(run, heard=hear)
        assert isinstance(last, RunStopped) and run.state == "stopped" and last.epoch == trained
    else:
        raised(KeyboardInterrupt, "", list, execute(run, heard=hear))
    progress = [event for event in run.events() if isinstance(event, Measuring)][-1]
    assert progress.asked < progress.of, "it was in the middle"
    assert (run.last_epoch or 0) == trained, "what was trained is kept"
    run.clear_stop()
    resumed = list(execute(run))
    assert resumed[0].resumed_from == trained
    if epoch == "after":
        assert not any(isinstance(event, Measured) and event.epoch == 0 for event in resumed), "not measured twice"
    monkeypatch.undo()
    assert timeless(run.events()) == timeless(straight.events()) and run.frames() == straight.frames()


def test_a_stop_keeps_the_last_epoch_if_there_was_one(bare):
    run = prepare(config_of(), bare)
    raised(RunError, "has no checkpoint", load_model, run)
    run.request_stop()
    (event,) = execute(run)
    assert isinstance(event, RunStopped) and event.epoch == 0 and run.state == "stopped"
    run.clear_stop()
    stopped(run, FIRST_EPOCH + 1)
    assert run.events()[-1].epoch == run.last_epoch == 1 and load_model(run) is not None
    raised(RunError, "no checkpoint of epoch 2", load_model, run, epoch=2)


def test_a_run_fails_by_a_loss_that_is_not_finite_or_by_a_slip_of_ours(bare, monkeypatch):
    run = prepare(config_of(learning_rate=1e30, schedule="constant"), bare)
    events = list(execute(run))
    assert [type(event) for event in events[-2:]] == [StepDone, RunFailed]
    assert events[-1].message.startswith("Epoch 1, step 2") and events[-1].diverged and "Lower" in events[-1].fix
    assert run.state == "failed" and run.last_epoch is None and run.events() == events
    monkeypatch.setattr("adapop.runs.execute.Trainer", Mock(side_effect=LookupError("a slip of ours")))
    run = prepare(config_of(), bare)
    raised(LookupError, "", list, execute(run))
    assert run.state == "failed" and run.events()[-1].message == "LookupError: a slip of ours"


def test_scores_given_shuffled_inverted_and_meant(small):
    """The betas of other scores, by the seed; the facts keep their true scores and so their tiers."""
    scores = {fact.id: fact.score for fact in small.forget}
    for changes, others in (
        ({}, scores), ({"preset": "shuffled"}, shuffled(scores, 0)), ({"preset": "inverted"}, inverted(scores)),
        ({"scores": "shuffled", "seed": 1}, shuffled(scores, 1))):  # fmt: skip
        run = prepare(config_of(**changes), small)
        assert run.betas == {fact: BetaMap()(score) for fact, score in others.items()}
        assert {fact.id: fact.score for fact in run.facts.forget} == scores
    run = prepare(config_of(preset="beta-mean"), small)
    (beta,) = set(run.betas.values())
    assert beta == pytest.approx(fmean(map(BetaMap(), scores.values()))) == run.config.beta(1.0) == run.config.beta(1e6)


def test_missing_scores_are_refused_or_dropped_or_all_alike_for_every_method(small):
    without = tuple(replace(fact, score=None) for fact in small.forget[:2])
    unscored = replace(small, forget=without + small.forget[2:])
    with pytest.raises(DataError, match=f"2 of 32 facts have no score, for example '{unscored.forget[0].id}'"):
        prepare(config_of(), unscored)
    for method in ("adapop", "ga"):
        assert prepare(config_of(method, missing_score="drop"), unscored).facts.forget == unscored.forget[2:]
    for method in ("wga", "npo"):
        run = prepare(config_of(method), unscored)
        assert run.betas is None and run.facts.forget == unscored.forget
    assert set(prepare(config_of(preset="beta-0.1"), unscored).betas.values()) == {0.1}
    none = replace(unscored, forget=unscored.forget[:2])
    raised(DataError, "There is no fact to forget", prepare, config_of(missing_score="drop"), none)
    with pytest.raises(DataError, match="There is nothing to retain"):
        prepare(config_of(), replace(unscored, forget=unscored.forget[2:], retain=()))
    assert set(prepare(config_of(missing_score="uniform"), none).betas.values()) == {1.0}
    expected = sorted([1.0, 1.0, *(BetaMap()(fact.score) for fact in unscored.forget[2:])])
    for scores in ("given", "shuffled", "inverted"):
        run = prepare(config_of(missing_score="uniform", scores=scores), unscored)
        assert run.facts.forget == unscored.forget and sorted(run.betas.values()) == expected
        assert [run.betas[fact.id] for fact in unscored.forget[:2]] == [1.0, 1.0]


def remarks_of(run):
    return [note for note in run.events()[-1].notes if isinstance(note, Remark)]


@pytest.mark.slow
def test_remark_on_a_controller_that_never_acted(run_of):
    run, _ = run_of(tolerance=1e6)
    assert all(row.lam == 0 for row in run.epochs())
    assert run.events()[-1].notes == (Remark("controller_idle"),)
    for method, changes in (("npo", {}), ("adapop", {"reference": "start", "tolerance": 0.0, "dual_step": 5.0})):
        run, _ = run_of(method, **changes)
        assert (method == "npo") or max(row.lam for row in run.epochs()) > 0
        assert "controller_idle" not in [remark.kind for remark in remarks_of(run)]


def test_remarks_on_hidden_damage_a_broken_model_and_facts_that_were_never_known(bare, tiny, small, tmp_path):
    run = ran(config_of(epochs=1, learning_rate=8e-3), bare)
    row = run.epochs()[-1]
    assert row.drift == row.lam == 0 and row.drift_from_start > 0.1
    assert Remark("damage_unseen", {"rise": row.drift_from_start}) in remarks_of(run)
    run = ran(config_of("ga", epochs=2, learning_rate=2e-2), tiny)
    utility = next(row for row in run.measured().rows if row["group"] == "utility")
    retain = run.measured().recall("retain")
    assert utility["recall"] < 0.5 > retain and math.isfinite(utility["kl"])
    damaged = {remark.kind: remark.values["after"] for remark in remarks_of(run) if "before" in remark.values}
    assert damaged["utility_damaged"] == pytest.approx(utility["recall"])
    assert Remark("retain_damaged", {"before": 1.0, "after": retain}) in remarks_of(run)
    strangers = tuple(replace(fact, question=f"What is the {fact.id} of nowhere?") for fact in small.forget[:8])
    run = ran(make_config(epochs=1), replace(small, forget=strangers, holdout=()), tmp_path)
    assert "never_known" in [remark.kind for remark in remarks_of(run)]


def test_a_model_s_folder_is_found_again_from_another_place(tiny, tmp_path, monkeypatch, cli):
    shutil.copytree(SANDBOX_FOLDER, tmp_path / "here" / "model")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = ran(config_of(model="./model", epochs=1), tiny)
    monkeypatch.chdir(tmp_path / "there")
    assert run.config.model == str(tmp_path / "here" / "model")
    cli("probe", run.folder, "--prompt", "Who wrote the book Hamlet?")


def test_a_measurement_that_takes_long_is_told(tiny, monkeypatch):
    monkeypatch.setattr(measuring, "LOG_EVERY", 0.0)
    run, heard = prepare(config_of(), tiny), []
    yielded = list(execute(run, heard=heard.append))
    assert not any(isinstance(event, Measuring) for event in yielded)
    assert [event for event in run.events() if isinstance(event, Measuring)] == heard
    last = 0, 0
    for event in run.events():
        if isinstance(event, Measuring):
            assert event.asked > last[0]
            last = event.asked, event.of
        elif isinstance(event, Measured):
            assert last[0] == last[1], "all questions are counted"
            last = 0, 0
    begun = yielded[0]
    assert current([begun, heard[-1], begun]) == [begun, begun], "a resumed run begins its measurements anew"
