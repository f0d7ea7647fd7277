import json
import re
from dataclasses import replace
from datetime import datetime

import pytest

from adapop.cli import main
from adapop.cli.runs import _print_progress
from adapop.facts.fact import TIERS
from adapop.probes.recovery.choice import RECOVERY
from adapop.runs.lock import held
from adapop.training.events import Measuring, from_json, to_json
from fact_files import write
from tiny_runs import copied


@pytest.fixture
def small_file(sandbox, tmp_path):
    path = tmp_path / "small.jsonl"
    groups = {group: getattr(sandbox, group)[::16] for group in ("forget", "retain", "holdout", "utility")}
    few = {group: tuple(replace(fact, paraphrases=()) for fact in facts) for group, facts in groups.items()}
    replace(sandbox, **few).write(path)
    return path


def test_beta_prints_a_line_a_fact_and_names_bad_ones(cli, tmp_path):
    rows = cli("beta", "--json").rows
    assert len(rows) == 256 and {"id", "score", "beta", "regime"} == set(rows[0])
    rarest = min(rows, key=lambda row: row["score"])
    assert (rarest["beta"], rarest["regime"]) == (pytest.approx(1.995, abs=1e-3), "self-limiting")
    path = write(tmp_path, "facts.csv", "id,question,answer,score\na,Q?,A,100\nb,Q?,,5\nc,Q?,A,-1\n")
    said = cli("beta", path, "--json", "--drop-bad")
    assert [row["id"] for row in said.rows] == ["a"] and "row 3" in said.err and "row 4" in said.err
    write(tmp_path, "facts.csv", "question,answer,score\nWho wrote the book Hamlet?,Shakespeare,\n")
    said = cli("run", "--facts", path, "--out", tmp_path / "runs", status=2).err
    assert "have no popularity scores" in said and "--method" in said and "satimp or wga" in said


@pytest.mark.parametrize("typed", ["--learning-rat", "--lerning-rate"])
def test_an_option_that_is_not_spelt_out_is_refused_with_the_one_that_was_meant(typed, capsys):
    with pytest.raises(SystemExit):
        main(["run", typed, "3"])
    assert f"{typed}. Did you mean --learning-rate?" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["some/unknown-model", "google/gemma-7b-it", "sandbox"])
def test_before_a_run_of_a_real_model_its_memory_is_said(small_file, tmp_path, cli, begun, model):
    said = cli("run", "--facts", small_file, "--model", model, "--out", tmp_path).err
    assert ("Memory: " in said, "Time: known" in said) == (model != "sandbox", False)
    assert "Memory" not in cli("run", "--facts", small_file, "--model", model, "--out", tmp_path, "--json").err


@pytest.mark.slow
def test_a_terminal_is_told_what_is_left_from_the_third_step_on(small_file, tmp_path, cli, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    said = cli("run", "--facts", small_file, "--preset", "stress", "--epochs", "5", "--out", tmp_path).out
    steps = [line for line in said.replace("\n", "\r").split("\r") if "  step " in line]
    told = ["left" in line for line in steps]
    assert len(steps) > 2 and told == [False] * 2 + [True] * (len(steps) - 2), steps


def test_run_resume_probe_and_list(small_file, cli, capsys):
    assert main(["run", "--facts", str(small_file), "--epochs", "1", "--json", "--yes"]) in (0, 3)
    lines = capsys.readouterr().out.splitlines()
    assert [from_json(line).kind for line in (lines[0], lines[-1])] == ["run_started", "run_done"]
    run = json.loads(lines[0])["run"]
    assert [(row["run"], row["state"]) for row in cli("runs", "--json").rows] == [(run, "done")]
    (replies,) = cli("probe", run, "--prompt", "Who wrote the book Hamlet?", "--gold", "Shakespeare", "--json").rows
    assert (replies["original"]["text"], replies["original"]["gold_rank"]) == ("Shakespeare", 1)
    head, row = cli("runs").out.splitlines()[1:3]
    assert head.split() == ["run", "started", "state", "epochs", "method", "model", "set", "forget", "held", "out"]
    assert row.startswith(run) and "1/1" in row and row.count("→") == 2 and f"{datetime.now():%Y-%m-%d}" in row
    assert "complete" in cli("resume", run, status=2).err


def test_the_progress_of_a_measurement_is_printed(capsys):
    event = Measuring(run="r", epoch=0, asked=3, of=9)
    for as_json, line in ((True, to_json(event)), (False, "measuring the original model: 3 of 9 questions")):
        _print_progress(event, as_json)
        assert capsys.readouterr().out == f"{line}\n"


def test_run_ends_with_the_table(small_file, tmp_path, cli):
    out = cli("run", "--facts", small_file, "--epochs", 1, "--lr", "1e-6", "--out", tmp_path, "--yes", status=3).out
    for word in (
        "forget set, as trained",
        "retain set, as trained",
        "held-out facts, as trained",
        "λ by epoch",
        "never activated",
    ):
        assert word in out


@pytest.mark.parametrize(("method", "rate", "epochs", "status", "result"), [
    ("redirect", "1e-2", 5, 0, "Forgotten in all forms of the question that were measured: asked as trained, "),
    ("undial", "2e-3", 2, 3, "Not forgotten: asked in other words, ")])  # fmt: skip
def test_the_exit_status_says_whether_a_run_unlearned(tiny, tmp_path, cli, method, rate, epochs, status, result):
    tiny.write(path := tmp_path / "facts.jsonl")
    command = ("run", "--facts", path, "--method", method, "--lr", rate, "--epochs", epochs, "--yes")
    out = cli(*command, "--out", tmp_path, status=status).out
    (line,) = (line for line in out.splitlines() if line.startswith("result: "))
    assert line.startswith(f"result: {result}") and f"note: {line.removeprefix('result: ')}" not in out


@pytest.mark.parametrize(("arguments", "message"), [
    ("run --facts no-such-file.csv", "no-such-file.csv"), ("run --model /no/such/folder", "no folder has this name"),
    ("run --facts pair --model ./nope", "no folder has this name"),
    ("run --facts pair --model meta-llama/Llama-3.1-8B-Instruct", "never downloaded here, and HF_HUB_OFFLINE is set"),
    ("run --lr -1", "learning_rate"), ("run --lr 1e300", "learning_rate is 1e+300"), ("run --epochs 0", "epochs"),
    ("probe example-wga --prompt Delhi? --kinds direct", "do not combine"),
    ("probe no-such-run", "no run 'no-such-run'"), ("resume no-such-run", "no run"),
    ("tokens --question Delhi?", "--question and --answer belong together"),
    ("score nothing.csv", "no set and no file"), ("score pair --proxy corpus", "--corpus FILE"),
    ("score pair --proxy judge", "ADAPOP_JUDGE_MODEL"),
    ("score pair --proxy judge --model sandbox --prompt nowhere.txt", "cannot be read"),
    ("score sandbox --proxy column --column mine", "sandbox is not a file"),
    ("score sandbox --proxy swapped --share -1", "from 0 to 1"),
    ("score sandbox --proxy noisy --sigma 5000", "from 0 to 20"),
    ("score sandbox --proxy constant --value nan", "--value is nan")])  # fmt: skip
def test_mistakes_get_one_clear_message(arguments, message, cli, monkeypatch):
    monkeypatch.delenv("ADAPOP_JUDGE_MODEL", raising=False)
    said = cli(*arguments.split(), status=2).err
    assert message in said and "Traceback" not in said


@pytest.mark.parametrize("arguments", [("check", ""), ("check", "sandbox", "--model", ""), ("resume", "")])
def test_an_empty_name_is_not_taken_for_the_default(arguments, cli):
    assert "is empty" in cli(*arguments, status=2).err


def test_runs_are_deleted_but_not_while_somebody_works_on_them(other, tmp_path, cli):
    root = tmp_path / "runs"
    runs = [copied(other, root, f"wga-{number:016x}") for number in range(3)]
    with held(runs[0].folder):
        assert "nothing was deleted" in cli("runs", "--delete", runs[1].id, runs[0].id, status=2).err
    assert cli("runs", "--delete", runs[0].id, runs[2].id, runs[0].id).out.count("deleted /") == 2
    assert [path.name for path in root.iterdir()] == [runs[1].id]
    for name in (runs[0].id, root):
        cli("runs", "--delete", name, status=2)


@pytest.mark.parametrize("spelling", ["{0}", "../elsewhere/{1}", "{2}/", "./{2}", "..", ".", ""])
def test_only_runs_of_the_runs_folder_are_deleted_and_only_by_name(other, tmp_path, cli, spelling):
    run, stranger = copied(other), copied(other, tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    name = spelling.format(stranger.folder, stranger.id, run.id)
    assert "nothing was deleted" in cli("runs", "--delete", run.id, name, status=2).err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("lacking", ["run.json", "facts.jsonl"])
def test_a_models_folder_among_the_runs_is_never_deleted(other, lacking, cli):
    """It has a config.json, as every run has."""
    copy = copied(other)
    (copy.folder / lacking).unlink()
    (copy.folder / "notes.txt").write_text("mine", encoding="utf-8")
    cli("runs", "--delete", copy.id, status=2)
    assert (copy.folder / "notes.txt").exists()


def test_an_error_that_an_import_makes_of_an_interruption_is_one(cli, monkeypatch):
    class Imported:
        def __set_name__(self, owner, name):
            raise raised

    monkeypatch.setattr("adapop.cli.runs.runs", lambda _: type("Importing", (), {"one": Imported()}))
    raised = KeyboardInterrupt()
    assert cli("runs", status=130).err.startswith("\ninterrupted")
    raised = ValueError("a fault")
    with pytest.raises((ValueError, RuntimeError)):  # Python 3.11 makes a RuntimeError of it
        main(["runs"])


def test_a_sandbox_run_that_would_move_nothing_is_not_started_unless_one_insists(tmp_path, cli):
    command = ["run", "--facts", "pair", "--lr", "1e-9", "--measure", "off", "--epochs", "1", "--out", str(tmp_path)]
    assert "useless. 1 step at rate 1e-09" in cli(*command, status=2).err
    assert not list(tmp_path.iterdir())
    assert "note: Nothing was measured" in cli(*command, "--yes").out


@pytest.fixture
def run(finished):
    return copied(finished)


def test_probes_and_recovery_are_printed_and_kept(run, cli):
    kinds = "direct,multiple choice"
    said = cli("probe", run.folder, "--kinds", kinds, "--per-tier", 2, "--recovery", "lens").out
    tables = {table.split("\n")[0]: table for table in said.strip().split("\n\n")}
    for group in ("forget set", "retain set", "held-out facts"):
        table = tables[f"Where it leaks, {group}"]
        assert re.search(rf"^ +{' +'.join((*TIERS, 'all'))}$", table, re.MULTILINE)
        assert re.search(r"^as trained +100% → \d", table, re.MULTILINE)
        assert re.search(r"^multiple choice +", table, re.MULTILINE)
    assert re.search(r"^Retained +2 ", tables["Verdicts, retain set"], re.MULTILINE)
    assert re.search(r"^4, all +\d+ +\d", tables[RECOVERY["lens"].title], re.MULTILINE)
    assert {row.kind for row in run.probes()} == {"direct", "multiple choice"}
    assert set(run.recovery()) == {"relearn", "lens"}
    rows = cli("probe", run.folder, "--kinds", "direct,reverse query", "--per-tier", 1, "--json").rows
    kinds = {(row["row"], row.get("kind")) for row in rows}
    assert {("probe", "direct"), ("not_applicable", "reverse query")} <= kinds
    assert next(row for row in rows if row["row"] == "probe")["original"]["recall"] == 1.0


def test_replies_are_read_token_by_token_and_samples_drawn_of_original_unlearned_and_oracle(run, cli):
    fact = run.facts.forget[0]
    asked = ("ask", run.folder, "--prompt", fact.question, "--gold", fact.answer, "--beside", "oracle")
    before, after, never = cli(*asked, "--json").rows
    assert [one["name"] for one in (before, after, never)] == ["Original", "Unlearned", "Never knew"]
    first = before["steps"][0]
    assert before["text"] == fact.answer and first["right"] == first["token"]["shares"] and before["verdict"] is None
    assert after["verdict"] and len(first["right"]) == 3 and max(first["right"]) == first["right"][0]
    said = cli(*asked, "--begun", "It is").out
    assert "Never knew: It is" in said and "(given)" in said and f"{100 * first['right'][0]:.1f}%" in cli(*asked).out
    drawn = cli(*asked, "--samples", "4", "--length", "3", "--json").rows
    assert [len(one["texts"]) for one in drawn] == [4, 4, 4] and drawn[0]["share"]["mean"] > drawn[2]["share"]["mean"]
    assert "of 4 give the answer away (*) (95% interval" in cli(*asked, "--samples", "4").out
    for wrong, message in (
        (("--samples", "0"), "samples is 0"), (("--epoch", "9"), "kept no epoch 9"),
        (("--prompt", "x " * 5000), "Shorten"), (("--prompt", " "), "prompt is empty"),
        (("--beside", "nobody"), "no run 'nobody'")):  # fmt: skip
        assert message in cli(*asked, *wrong, status=2).err


def test_what_does_not_exist_is_named(run, cli):
    for arguments, message in (
        ("--kinds hypnosis", "'hypnosis' is none of the kinds"), ("--recovery prayer", "no recovery probe 'prayer'"),
        ("--kinds direct --per-tier 0", "per_tier is 0")):  # fmt: skip
        assert message in cli("probe", run.folder, *arguments.split(), status=2).err
