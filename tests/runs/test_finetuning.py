import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from adapop.cli.printing import event_text
from adapop.config.presets import make_config
from adapop.errors import ConfigError, RunError
from adapop.online.cache import cache_root
from adapop.probes.measure import recall_by_fact
from adapop.progress import Progress
from adapop.report.export import export
from adapop.runs import finetuning, measuring
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.finetuning import FILE, FOLDER, _cached
from adapop.runs.pace import Wait
from adapop.training.events import RunFailed, RunStarted, Saved, Teaching, current
from adapop.ui.run.state import RunSeen, view
from raised import raised
from tiny_runs import tiny_config, trained

SETTINGS = dict(start="sft", start_epochs=10, start_rate=2e-3, measure="off", frames=0)


@pytest.fixture(scope="module")
def unknown(tiny):
    """Facts that the sandbox never read: its subjects with each other's answers."""
    forget, retain = (
        tuple(replace(fact, answer=other.answer) for fact, other in zip(facts, facts[1:] + facts[:1]))
        for facts in (tiny.forget, tiny.retain)
    )
    return replace(tiny, forget=forget, retain=retain)


def recalls(model, facts):
    return [sum(recall_by_fact(model, group, 3, Progress()).values()) for group in (facts.forget, facts.retain)]


def test_a_run_begins_with_what_was_taught_and_is_probed_beside_it(unknown, tmp_path):
    run = trained(unknown, tmp_path, "wga", **SETTINGS)
    (note,) = (note for note in run.events()[-1].notes if note.kind == "fine_tuned")
    assert (note.values["questions"], note.values["epochs"], note.values["steps"]) == (8, 10, 40)
    assert note.values["recalls"].startswith("forget 0% → 100%, retain 0% → 100%")
    shutil.rmtree(cache_root() / FOLDER)  # safe to delete
    model = load_model(run)
    with model.original():
        assert recalls(model, unknown) == [4, 4]
    assert recalls(model, unknown)[0] < 4, "it was unlearned"
    raised(ConfigError, "merged", export, run, tmp_path / "adapter")
    (run.folder / FILE).write_bytes(b"{")
    raised(RunError, "missing or damaged", load_model, run)


def test_what_is_taught_first_says_how_far_it_is(unknown, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "LOG_EVERY", 0.0)
    run, heard = prepare(tiny_config("wga", batch=4, **SETTINGS | {"start_epochs": 2}), unknown, tmp_path), []
    yielded = list(execute(run, heard=heard.append))
    assert [(one.epoch, one.epochs, one.step, one.steps) for one in heard] == [
        (1, 2, 0, 2), (1, 2, 1, 2), (2, 2, 0, 2), (2, 2, 1, 2)
    ]  # fmt: skip
    assert isinstance(yielded[0], RunStarted) and not any(isinstance(event, Teaching) for event in run.events())
    assert event_text(heard[-1]) == "fine-tuning first: epoch 2 of 2, 1 of 2 steps"
    now = view(RunSeen((heard[-1],), wait=Wait(0, None)))
    assert (now.state, now.detail) == ("starting", "fine-tuning first: epoch 2 of 2, 50 % of it")
    assert current([heard[-1], yielded[0]]) == [yielded[0]], "it is over once the run has begun"


@pytest.mark.slow
def test_what_was_taught_is_taken_by_another_run_of_its_settings_and_by_a_stopped_one(unknown, tmp_path):
    first, again = (trained(unknown, tmp_path, method, **SETTINGS) for method in ("wga", "adapop"))
    assert (first.folder / FILE).exists() and len(list((cache_root() / FOLDER).iterdir())) == 1
    other = trained(unknown, tmp_path, "wga", **SETTINGS | {"start_epochs": 1})
    kinds = [{note.kind for note in run.events()[-1].notes} for run in (first, again, other)]
    assert ["fine_tuned" in found for found in kinds] == [True, False, True]
    assert ["fine_tuned_before" in found for found in kinds] == [False, True, False]
    whole = trained(unknown, tmp_path / "whole", "wga", epochs=2, **SETTINGS)
    run = prepare(tiny_config("wga", epochs=2, **SETTINGS), unknown, tmp_path / "stopped")
    for event in execute(run):
        if isinstance(event, Saved):
            run.request_stop()
    assert (run.state, run.last_epoch) == ("stopped", 1)
    run.clear_stop()
    assert not any(isinstance(event, RunFailed) for event in execute(run)) and run.state == "done"
    weights = [(one.checkpoint(2) / "adapter_model.safetensors").read_bytes() for one in (whole, run)]
    assert weights[0] == weights[1]


def test_four_bit_weights_cannot_be_merged_into():
    raised(ConfigError, "4-bit", make_config, start="sft", four_bit=True)


def test_another_split_of_the_same_facts_is_measured_anew(unknown, tmp_path, model, monkeypatch):
    monkeypatch.setattr(finetuning, "weights_of", lambda run: SimpleNamespace(sha256="the same"))
    (moved, *forget), retain = unknown.forget[::-1], unknown.retain
    others = unknown, replace(unknown, forget=tuple(forget[::-1]), retain=(moved, *retain))
    assert len({_cached(prepare(tiny_config("wga", **SETTINGS), facts, tmp_path), model) for facts in others}) == 2
