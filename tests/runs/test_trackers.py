"""Trackers get the numbers of a run's own log, read back from what they wrote."""

import json
import sqlite3

import pytest

import adapop
from adapop.errors import ConfigError
from adapop.runs import trackers
from raised import raised
from tiny_runs import tiny_config
from waiting import wait_until


class Kept:
    """A tracker of one's own, which keeps what it is given."""

    def __init__(self):
        self.values, self.tables, self.closed = {}, {}, 0

    def numbers(self, values, step):
        self.values.setdefault(step, {}).update(values)

    def table(self, name, rows, step):
        self.tables[name, step] = rows

    def close(self):
        self.closed += 1


def test_a_tracker_gets_losses_the_controller_the_measurements_and_the_replies(finished):
    kept = Kept()
    follow = trackers.following(finished, kept)
    for event in finished.events():
        follow(event)
    steps, last = finished.rows("steps"), finished.frames()[-1]
    assert [kept.values[step]["step/forget_loss"] for step in steps["step"]] == list(steps["forget_loss"])
    end = kept.values[last.step]
    assert end["epoch/alpha"] == finished.epochs()[-1].alpha
    assert end["full/forget/reworded/popular/recall"] == finished.measured().recall("forget", "reworded", "popular")
    replies = kept.tables["replies", last.step]
    assert list(replies["reply"]) == list(last.answers)
    assert list(replies["right answer"]) == [fact.answer for fact in finished.facts.forget]
    assert kept.closed == 1


def test_tensorboard_on_the_command_line(tiny, tmp_path, cli):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tiny.write(tmp_path / "facts.jsonl")
    fast = ("--epochs", 1, "--batch", 2, "--lr", "1e-2")
    cli("run", "--facts", tmp_path / "facts.jsonl", *fast, "--log", "tensorboard")
    (run,) = adapop.runs.listed.all_runs()
    read = reader.EventAccumulator(str(run.folder.parent / "tensorboard" / run.id))
    read.Reload()
    steps = run.rows("steps")
    logged = {event.step: event.value for event in read.Scalars("step/forget_loss")}
    assert logged == pytest.approx(dict(zip(steps["step"], steps["forget_loss"])), rel=1e-5)
    (text,) = read.Tensors("replies/text_summary")
    reply = text.tensor_proto.string_val[0].decode()
    assert tiny.forget[0].question in reply and tiny.forget[0].answer in reply


def test_what_is_not_installed_is_said_before_the_run(bare, monkeypatch):
    monkeypatch.setattr(trackers, "import_module", lambda name: exec("raise ImportError('none here')"))
    error = raised(
        ConfigError, "Logging needs trackio", adapop.unlearn, tiny_config(), bare, progress=False, log="trackio"
    )
    assert "pip install" in error.fix
    raised(ConfigError, "log is 'paper'", adapop.unlearn, tiny_config(), bare, progress=False, log="paper")


@pytest.mark.slow
def test_trackio_keeps_a_run_on_this_machine(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))  # read when trackio is imported
    pytest.importorskip("trackio")
    run = adapop.unlearn(tiny_config(), bare, progress=False, log="trackio")
    (base,) = tmp_path.rglob("adapop.db")
    rows = sqlite3.connect(base).execute("select run_name, step, metrics from metrics").fetchall()
    logged = {step: json.loads(text) for _, step, text in rows if b"step/forget_loss" in text}
    steps = run.rows("steps")
    assert {name for name, *_ in rows} == {run.id}
    assert [logged[step]["step/forget_loss"] for step in steps["step"]] == pytest.approx(list(steps["forget_loss"]))
    assert any(b"replies" in text for *_, text in rows)


@pytest.mark.slow
def test_wandb_offline_writes_its_file(bare, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    run = adapop.unlearn(tiny_config(), bare, progress=False, log="wandb")
    (file,) = tmp_path.rglob(f"run-{run.id}.wandb")
    wait_until(lambda: b"step/forget_loss" in (content := file.read_bytes()) and b"replies" in content)
    assert bare.forget[0].question.encode() in b"".join(path.read_bytes() for path in tmp_path.rglob("*.json"))
