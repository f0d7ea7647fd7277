"""The command line, in process: exit codes, plain text, JSON lines."""

import json
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from adapop.cli import main
from adapop.runs.lock import held
from adapop.runs.run import Run
from adapop.training.events import from_json
from tiny_runs import copied, tiny_config


def lines(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def small_file(sandbox, tmp_path):
    path = tmp_path / "small.jsonl"
    groups = {group: getattr(sandbox, group)[::16] for group in ("forget", "retain", "holdout", "utility")}
    few = {group: tuple(replace(fact, paraphrases=()) for fact in facts) for group, facts in groups.items()}
    replace(sandbox, **few).write(path)
    return path


def test_beta_prints_a_line_a_fact_and_names_bad_ones(capsys, tmp_path):
    assert main(["beta", "--json"]) == 0
    rows = lines(capsys)
    assert len(rows) == 256 and {"id", "score", "beta", "regime"} == set(rows[0])
    rarest = min(rows, key=lambda row: row["score"])
    assert (rarest["beta"], rarest["regime"]) == (pytest.approx(1.995, abs=1e-3), "self-limiting")
    path = tmp_path / "facts.csv"
    path.write_text("id,question,answer,score\na,Q?,A,100\nb,Q?,,5\nc,Q?,A,-1\n", encoding="utf-8")
    assert main(["beta", str(path), "--json", "--drop-bad"]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["a"]
    assert "row 3" in captured.err and "row 4" in captured.err
    path.write_text("question,answer,score\nWho wrote the book Hamlet?,Shakespeare,\n", encoding="utf-8")
    assert main(["run", "--facts", str(path), "--out", str(tmp_path / "runs")]) == 2
    assert "1 of 1 facts have no score" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["some/unknown-model", "google/gemma-7b-it", "sandbox"])
def test_before_a_run_of_a_real_model_its_memory_is_said(small_file, tmp_path, capsys, monkeypatch, model):
    monkeypatch.setattr("adapop.runs.execute.execute", lambda *run, **given: iter([]))
    monkeypatch.setattr("adapop.cli.runs.checked_model", lambda options, config, facts: (facts, None))
    assert main(["run", "--facts", str(small_file), "--model", model, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert ("Memory: " in said, "Time: known" in said) == (model != "sandbox", False)
    assert main(["run", "--facts", str(small_file), "--model", model, "--out", str(tmp_path), "--json"]) == 0
    assert "Memory" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminal_is_told_what_is_left_from_the_third_step_on(small_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    options = ["--preset", "stress", "--epochs", "5", "--out", str(tmp_path)]
    assert main(["run", "--facts", str(small_file), *options]) == 0
    steps = [line for line in capsys.readouterr().out.replace("\n", "\r").split("\r") if "  step " in line]
    told = ["left" in line for line in steps]
    assert len(steps) > 2 and told == [False] * 2 + [True] * (len(steps) - 2), steps


def test_run_resume_probe_and_list(small_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path / "runs"))
    assert main(["run", "--facts", str(small_file), "--epochs", "1", "--json", "--yes"]) in (0, 3)
    said = capsys.readouterr().out.splitlines()
    assert [from_json(line).kind for line in (said[0], said[-1])] == ["run_started", "run_done"]
    run = json.loads(said[0])["run"]

    assert main(["runs", "--json"]) == 0
    assert [(row["run"], row["state"]) for row in lines(capsys)] == [(run, "done")]

    assert main(["probe", run, "--prompt", "Who wrote the book Hamlet?", "--gold", "Shakespeare", "--json"]) == 0
    (asked,) = lines(capsys)
    assert (asked["original"]["text"], asked["original"]["gold_rank"]) == ("Shakespeare", 1)

    assert main(["runs"]) == 0
    head, row = capsys.readouterr().out.splitlines()[1:3]
    assert head.split() == ["run", "started", "state", "epochs", "method", "model", "set", "forget", "holdout"]
    assert row.startswith(run) and "1/1" in row and row.count("→") == 2 and f"{datetime.now():%Y-%m-%d}" in row

    assert main(["resume", run]) == 2 and "complete" in capsys.readouterr().err


def test_run_ends_with_the_table(small_file, tmp_path, capsys):
    options = ["--epochs", "1", "--lr", "1e-6", "--out", str(tmp_path), "--yes"]
    assert main(["run", "--facts", str(small_file), *options]) == 3
    out = capsys.readouterr().out
    for word in ("to forget, direct", "retained, direct", "held out, direct", "λ by epoch", "never activated"):
        assert word in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--facts", "no-such-file.csv"], "no-such-file.csv"), (["run", "--lr", "-1"], "learning_rate"),
        (["run", "--epochs", "0"], "epochs"), (["run", "--model", "/no/such/folder"], "cannot be loaded"),
        (["probe", "no-such-run"], "no run 'no-such-run'"), (["resume", "no-such-run"], "no run"),
    ],
)  # fmt: skip
def test_mistakes_get_one_clear_message(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path))
    status = main(arguments)
    captured = capsys.readouterr()
    assert status in (1, 2) and message in captured.err + captured.out
    assert "Traceback" not in captured.err


def test_runs_are_deleted_but_not_while_somebody_works_on_them(other, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path))
    runs = [Run(Path(shutil.copytree(other.folder, tmp_path / f"wga-{number:016x}"))) for number in range(3)]
    with held(runs[0].folder):
        assert main(["runs", "--delete", runs[1].id, runs[0].id]) == 2
        assert "nothing was deleted" in capsys.readouterr().err
    assert main(["runs", "--delete", runs[0].id, runs[2].id]) == 0
    assert [path.name for path in tmp_path.iterdir()] == [runs[1].id]
    assert main(["runs", "--delete", runs[0].id]) == 2
    assert main(["runs", "--delete", str(tmp_path)]) == 2


@pytest.mark.parametrize("spelling", ["{0}", "../elsewhere/{1}", "{2}/", "./{2}", "..", ".", ""])
def test_only_runs_of_the_runs_folder_are_deleted_and_only_by_name(other, tmp_path, capsys, monkeypatch, spelling):
    root, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    monkeypatch.setenv("ADAPOP_RUNS", str(root))
    run, stranger = copied(other, root), copied(other, elsewhere)
    before = sorted(tmp_path.rglob("*"))
    name = spelling.format(stranger.folder, stranger.id, run.id)
    assert main(["runs", "--delete", run.id, name]) == 2 and sorted(tmp_path.rglob("*")) == before
    assert "nothing was deleted" in capsys.readouterr().err


@pytest.mark.parametrize("lacking", ["run.json", "facts.jsonl"])
def test_a_models_folder_among_the_runs_is_never_deleted(other, tmp_path, monkeypatch, lacking):
    """It has a config.json, as every run has."""
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path))
    copy = copied(other, tmp_path)
    (copy.folder / lacking).unlink()
    (copy.folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert main(["runs", "--delete", copy.id]) == 2 and (copy.folder / "notes.txt").exists()


def test_a_run_that_nobody_works_on_any_more_is_interrupted(bare, tmp_path, capsys, monkeypatch):
    from adapop.runs.execute import execute, prepare

    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path))
    events = execute(prepare(tiny_config(), bare, tmp_path))
    next(events)
    assert main(["runs", "--json"]) == 0 and lines(capsys)[0]["state"] == "running"
    events.close()
    assert main(["runs", "--json"]) == 0 and lines(capsys)[0]["state"] == "interrupted"


def test_an_error_that_an_import_makes_of_an_interruption_is_one(capsys, monkeypatch):
    class Imported:
        def __set_name__(self, owner, name):
            raise raised

    monkeypatch.setattr("adapop.cli.listed.runs", lambda _: type("Importing", (), {"one": Imported()}))
    raised = KeyboardInterrupt()
    assert main(["runs"]) == 130 and capsys.readouterr().err.startswith("\ninterrupted")
    raised = ValueError("a fault")
    with pytest.raises((ValueError, RuntimeError)):  # Python 3.11 makes a RuntimeError of it
        main(["runs"])


def test_a_sandbox_run_that_would_move_nothing_is_not_started_unless_one_insists(tmp_path, capsys):
    command = ["run", "--facts", "pair", "--lr", "1e-9", "--measure", "off", "--epochs", "1", "--out", str(tmp_path)]
    assert main(command) == 2
    assert "would be in vain. 1 step at 1e-09 will hardly change the model." in capsys.readouterr().err
    assert not list(tmp_path.iterdir()) and main([*command, "--yes"]) == 0
    assert "note: Nothing was measured, as the run's settings say" in capsys.readouterr().out
