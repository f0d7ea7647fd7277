"""Which epoch a run keeps as its result, when training ends early for it, and that all that is made of a run is made of
that epoch."""

import json
import shutil
import zipfile

import pytest
import torch
from safetensors.torch import load_file

from adapop.config.presets import RETAIN_KEPT, make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError, RunError
from adapop.probes.measure import quick
from adapop.remark import Remark
from adapop.report import figures
from adapop.report.archive import write_archive
from adapop.report.export import export
from adapop.runs.best import best_epoch, ends_early, epochs_left
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.result import result_of
from adapop.runs.run import create_run
from adapop.training.events import Measured, RunDone, RunStopped, Saved
from adapop.ui.run import field
from interrupting import EPOCHS, assert_same_run, config_of, killed, ran
from records import row
from tiny_runs import copied

BEST = dict(keep="best", learning_rate=2e-2)


def measured(number, reworded, retain, direct=0.5, full=False):
    rows = [row("forget", "direct", "all", direct), row("retain", "direct", "all", retain)]
    rows += [] if reworded is None else [row("forget", "reworded", "all", reworded)]
    return Measured(run="r", epoch=number, rows=tuple(rows), full=full)


def epochs_of(*pairs):
    """What is measured after each epoch, the original first: (reworded recall of the facts to forget, retained)."""
    return [measured(number, *pair) for number, pair in enumerate(pairs)]


@pytest.mark.parametrize(("pairs", "best"), [
    ([(1.0, 1.0)], None),
    ([(1.0, 1.0), (0.9, 1.0), (0.4, 0.96), (0.1, 0.94)], 2),  # the last one keeps too little
    ([(1.0, 1.0), (0.2, 0.99), (0.2, 1.0), (0.3, 1.0)], 1),  # the first of equals
    ([(1.0, 1.0), (0.0, 0.5), (0.9, 0.8), (0.0, 0.7)], 2),  # none keeps enough: the one that keeps most
    ([(1.0, 0.8), (0.5, 0.77), (0.1, 0.75)], 1),  # 0.76 is 95 % of what the original knew
    ([(1.0, 0.0), (0.5, 0.0), (0.1, 0.0)], 2),  # nothing was known, so nothing was lost
    ([(None, 1.0, 1.0), (None, 1.0, 0.3), (None, 1.0, 0.1), (None, 1.0, 0.2)], 2),  # without rewordings
])  # fmt: skip
def test_the_best_epoch_answers_least_of_those_that_keep_what_is_to_stay(pairs, best):
    events = epochs_of(*pairs)
    assert best_epoch(events) == best_epoch([*events, measured(3, None, 1.0, 0.0, full=True)]) == best


def test_training_ends_after_so_many_epochs_that_are_not_better(tmp_path, tiny):
    for pairs, patience, ends in (
        ([(1.0, 1.0), (0.5, 1.0)], 1, False), ([(1.0, 1.0), (0.5, 1.0), (0.5, 1.0)], 1, True),
        ([(1.0, 1.0), (0.5, 1.0), (0.5, 1.0)], 2, False), ([(1.0, 1.0), (0.5, 1.0), (0.6, 1.0), (0.1, 0.5)], 2, True),
        ([(1.0, 1.0), (0.5, 1.0), (0.6, 1.0), (0.4, 1.0)], 2, False),
        ([(1.0, 1.0), (0.5, 1.0), (0.6, 1.0), (0.7, 1.0)], 0, False)):  # fmt: skip
        run = create_run(make_config(keep="best", patience=patience), tiny, None, tmp_path)
        assert not ends_early(run) and epochs_left(run) == 5
        for event in epochs_of(*pairs):
            run.append(event)
        assert ends_early(run) == ends and (epochs_left(run) == 0) == ends, (pairs, patience)


def test_settings_that_cannot_be_meant_are_refused_and_older_files_keep_the_last():
    with pytest.raises(ConfigError, match="unless each is measured"):
        make_config(keep="best", measure="end")
    with pytest.raises(ConfigError, match="keeps its best epoch"):
        make_config(patience=2)
    older = json.loads(make_config().to_json())
    del older["keep"], older["patience"]
    assert (RunConfig.from_json(json.dumps(older)).keep, make_config().patience) == ("last", 0)


@pytest.fixture(scope="module")
def kept(tiny, tmp_path_factory):
    """A run that kept its best epoch."""
    return ran(config_of(**BEST), tiny, tmp_path_factory.mktemp("kept"))


def test_the_facts_to_retain_are_measured_after_each_epoch_by_what_the_model_replies(kept, tiny):
    quicks = [event for event in kept.events() if isinstance(event, Measured) and not event.full]
    assert [event.epoch for event in quicks] == [*range(EPOCHS + 1)]
    for event in quicks[1:]:
        model = load_model(kept, event.epoch)
        replies = model.generate([fact.question for fact in tiny.retain], kept.reply_tokens)
        right = sum(fact.answer in reply for fact, reply in zip(tiny.retain, replies)) / len(replies)
        assert event.recall("retain") == pytest.approx(right, abs=0.02)
    assert len(quick(model, tiny, 3).rows) == sum(row["group"] == "forget" for row in event.rows)


def test_all_that_is_made_of_a_run_is_made_of_its_best_epoch(kept, tmp_path):
    best = best_epoch(kept.events())
    assert best < kept.last_epoch == EPOCHS, "another than the last, or this shows nothing"
    assert kept.chosen_epoch == kept.measured().epoch == best
    saved = load_file(kept.checkpoint(best) / "adapter_model.safetensors")
    assert any(not torch.equal(saved[name], value) for name, value in load_model(kept, EPOCHS).adapter_state().items())
    assert all(torch.equal(saved[name], value) for name, value in load_model(kept).adapter_state().items())
    with zipfile.ZipFile(write_archive(kept, tmp_path / "run.zip")) as packed:
        packed.extract("adapter/adapter_model.safetensors", tmp_path)
    export(kept, tmp_path / "out")
    for place in (tmp_path / "adapter", tmp_path / "out"):
        written = load_file(place / "adapter_model.safetensors")
        assert all(torch.equal(saved[name], value) for name, value in written.items())
    quicks = {event.epoch: event for event in kept.events() if isinstance(event, Measured) and not event.full}
    assert kept.measured().recall("forget") == quicks[best].recall("forget"), "the same questions, the same model"
    done = kept.events()[-1]
    values = {"epoch": best, "epochs": EPOCHS, "kept": RETAIN_KEPT}
    assert done.epoch == EPOCHS and done.notes[0] in (Remark("best_kept", values), Remark("most_kept", values))
    title = figures.finding_of(figures.recall_chart([*quicks.values(), kept.measured()], EPOCHS))
    alone = figures.finding_of(figures.recall_chart([quicks[0], kept.measured()], EPOCHS))
    assert title == f"{alone}; epoch {best} is kept"
    assert (result_of(kept).steps, result_of(kept).epoch, result_of(kept).of) == (2 * best, best, EPOCHS)
    assert field._value_of(kept, 0, 0)["motion"]["epoch"][-1] == best, "the dots end where the result is"


def test_what_was_probed_is_of_the_best_epoch(kept):
    kept.save_recovery("lens", {"rows": []})
    assert kept.recovery() == {"lens": {"rows": []}}
    content = json.loads((kept.folder / "recovery-lens.json").read_text("utf-8"))
    assert content["epoch"] == best_epoch(kept.events())
    (kept.folder / "recovery-lens.json").write_text(json.dumps({**content, "epoch": EPOCHS}))
    assert kept.recovery() == {}, "of an epoch that is not the result"


@pytest.fixture(scope="module")
def ended(bare, tmp_path_factory):
    return ran(config_of(epochs=6, patience=1, **BEST), bare, tmp_path_factory.mktemp("ended"))


def test_an_early_end_is_said_as_data_and_measured_as_an_end_is(ended):
    best, trained = best_epoch(ended.events()), ended.last_epoch
    assert trained == best + 1 < 6
    done = ended.events()[-1]
    assert isinstance(done, RunDone) and done.epoch == trained and ended.state == "done"
    assert Remark("ended_early", {"epochs": trained, "planned": 6, "patience": 1}) in done.notes
    assert (ended.measured().epoch, ended.chosen_epoch, epochs_left(ended)) == (best, best, 0)


@pytest.mark.parametrize("tables", [0, 1, 2])
def test_a_run_resumed_after_its_last_epoch_and_some_tables_ends_as_early(ended, bare, tables):
    last = max(place for place, event in enumerate(ended.events()) if isinstance(event, Saved))
    run = prepare(ended.config, bare)
    killed(run, last + tables)
    list(execute(run))
    assert run.last_epoch == ended.last_epoch
    assert_same_run(run, ended, ended.last_epoch)


def test_a_best_epoch_that_does_not_read_is_trained_again(kept, tmp_path):
    run, best = copied(kept, tmp_path), best_epoch(kept.events())
    saved = run.checkpoint(best) / "adapter_model.safetensors"
    saved.write_bytes(b"damaged")
    with pytest.raises(RunError, match="those of later epochs, and resume"):
        load_model(run)
    for number in range(best, EPOCHS + 1):
        shutil.rmtree(run.checkpoint(number))
    *_, done = execute(run)
    assert isinstance(done, RunDone) and run.chosen_epoch == best
    assert_same_run(run, kept, best)


def test_a_run_that_is_stopped_keeps_its_last_epoch(bare):
    run = prepare(config_of(**BEST), bare)
    for event in execute(run):
        if isinstance(event, Saved) and event.epoch == 2:
            run.request_stop()
    assert isinstance(run.events()[-1], RunStopped) and run.chosen_epoch == run.last_epoch == 2
