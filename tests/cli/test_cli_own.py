import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adapop import METHODS, make_config
from adapop.experiments import plans
from adapop.paths import ROOT
from fact_files import write
from taught import own_facts, taught

SETTINGS = ["--precision", "float32", "--max-new-tokens", "8", "--batch", "2", "--rank", "8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    facts = own_facts()
    return str(taught("llama", tmp_path_factory.mktemp("own"), [*facts.forget[:-1], *facts.retain, *facts.holdout]))


@pytest.fixture
def towns(tmp_path):
    facts = own_facts()
    groups = {group: getattr(facts, group) for group in ("forget", "retain", "holdout")}
    bare = {group: tuple(replace(fact, paraphrases=()) for fact in found) for group, found in groups.items()}
    replace(facts, **bare).write(tmp_path / "towns.jsonl")
    return str(tmp_path / "towns.jsonl")


@pytest.mark.slow
def test_check_says_what_a_run_would_meet_and_what_does_not_fit_is_refused(folder, towns, tmp_path, cli):
    out = tmp_path / "known.jsonl"
    command = ["check", towns, "--model", folder, *SETTINGS, "--lr", "5e-3"]
    summary = cli(*command, "--known-only", "--out", out).out
    assert "Of 5 facts" in summary and "Time: about" in summary and "Forget set: 5 facts" in summary
    assert sum('"group": "forget"' in line for line in out.read_text().splitlines()) == 5
    (check,) = cli(*command, "--json").rows
    assert check["seconds"] > 0 and check["known"][0]["form"] == "direct" and check["problems"] == []
    error = cli("run", "--facts", towns, "--model", folder, "--targets", "q_proj,nope", status=2).err
    assert "no layers called nope" in error and "--targets k_proj" in error


def test_a_file_to_retain_is_read_as_the_facts_are(tmp_path, cli, begun, monkeypatch):
    """Its own columns where it lacks those that are named, and what is bad in it refused or dropped as in the facts."""
    files = (("forget", "frage", (3, 7)), ("retain", "frage", (3, "x")), ("other", "prompt", (3,)))
    for name, question, scores in files:
        rows = [{question: f"{name} {i}?", "answer": "a word", "score": score} for i, score in enumerate(scores)]
        write(tmp_path, f"{name}.csv", rows)
    monkeypatch.chdir(tmp_path)
    command = ["run", "--facts", "forget.csv", "--columns", "question=frage", "--model", "some/model", "--out", "runs"]
    assert "--drop-bad" in cli(*command, "--retain", "retain.csv", status=2).err
    cli(*command, "--retain", "retain.csv", "--drop-bad")
    cli(*command, "--retain", "other.csv")
    assert [[fact.question for fact in facts.retain] for _, facts in begun] == [["retain 0?"], ["other 0?"]]


def test_a_run_is_made_again_with_its_model_elsewhere(tmp_path, cli, begun):
    path = write(tmp_path, "config.json", make_config("wga", model="old/place", lora_rank=5).to_json())
    own_facts().write(tmp_path / "facts.jsonl")
    cli("run", "--config", path, "--model", "new/place", "--out", tmp_path / "runs")
    ((config, _),) = begun
    assert (config.model, config.lora_rank, config.method) == ("new/place", 5, "wga")


def bench(name, folder, out, *settings):
    """The command of an experiment of one seed on a model of one's own."""
    every = ("precision=float32", "max_new_tokens=8", "batch=2", "lora_rank=8", *settings)
    command = ["bench", name, "--model", folder, "--seeds", "1", "--processes", "1", "--out", str(out)]
    return command + [part for setting in every for part in ("--set", setting)]


@pytest.mark.slow
def test_an_experiment_is_done_on_own_facts_and_model(folder, towns, tmp_path, cli):
    command = bench("ablation", folder, tmp_path, "epochs=1", "learning_rate=5e-3")
    assert "has a rewording" in cli(*command, "--facts", towns, status=2).err
    path = tmp_path / "reworded.jsonl"
    own_facts().write(path)
    output = cli(*command, "--facts", path)
    assert "not done" not in output.err and f"## Ablation: reworded, {Path(folder).name}\n" in output.out
    assert "| AdaPop, α fixed | 0.005 |" in output.out and "7 runs, seeds 0" in output.out
    (rows,) = tmp_path.glob("ablation-????????.csv")
    cli(*command, "--facts", path)
    assert rows.read_text().count("\n") == 8, "what is done is not done again"
    for wrong in (["worlds", "--model", folder], ["main", "--set", "batch=2"], [*command[1:], "--set", "seed=3"]):
        cli("bench", *wrong, status=2)


@pytest.mark.slow
def test_the_others_get_the_alpha_that_adapop_had_on_own_facts(folder, tmp_path, cli, monkeypatch):
    monkeypatch.setattr(plans, "METHOD_ARMS", [arm for arm in plans.METHOD_ARMS if arm.method in ("adapop", "gd")])
    own_facts().write(tmp_path / "towns.jsonl")
    command = bench("alpha", folder, tmp_path, "epochs=2", "learning_rate=2e-2")
    said = cli(*command, "--facts", tmp_path / "towns.jsonl")
    assert "not done" not in said.err and "3 runs, seeds 0" in said.out, said
    (rows,) = tmp_path.glob("alpha-????????.csv")
    held = {row["arm"]: json.loads(row["config"])["alpha0"] for row in csv.DictReader(rows.open())}
    steered = next(json.loads(row["alpha"]) for row in csv.DictReader(rows.open()) if row["arm"] == "AdaPop")
    name = METHODS["gd"].title
    assert held[f"{name}, α of AdaPop"] == steered[-2] != held[name]


@pytest.mark.slow
def test_a_run_that_would_be_in_vain_is_not_started_and_one_that_was_says_so(folder, towns, tmp_path, cli):
    command = ["run", "--facts", towns, "--model", folder, *SETTINGS, "--epochs", "1", "--out", str(tmp_path / "runs")]
    assert "useless. 3 steps at rate 1e-07" in cli(*command, "--lr", "1e-7", status=2).err
    assert not (tmp_path / "runs").exists()
    output = cli(*command, "--lr", "1e-7", "--yes", status=3)
    assert "was 1.00 and is 1.00, after 3 steps" in output.out
    assert "5 of 6 facts" in output.err and "GPU" not in output.err
    events = cli(*command, "--lr", "2e-2", "--epochs", 4, "--known-only", "--measure", "end", "--json").rows
    assert events[0]["forget"] == 5
    assert [event["full"] for event in events if event["kind"] == "measured"] == [True, True]


@pytest.mark.slow
def test_a_run_says_nothing_of_libraries(folder, towns):
    command = ["run", "--facts", towns, "--model", folder, *SETTINGS, "--lr", "5e-3", "--epochs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "adapop", *command], cwd=ROOT, env=os.environ, capture_output=True, text=True,
        timeout=300, check=True)  # fmt: skip
    assert "done in" in done.stdout and "Forget set: " in done.stderr
    assert not re.search("warn|deprecated|Loading weights|\\.py:", done.stderr, re.IGNORECASE), done.stderr


@pytest.mark.parametrize("words", [
    ["sandbox", "build", "--hidden", "3"], ["sandbox", "build", "--hidden", "0"],
    ["sandbox", "build", "--wrong-share", "2"], ["sandbox", "build", "--exposures", "nan"],
    ["sandbox", "build", "--exposures", "1e300"], ["sandbox", "build", "--spread", "nan"],
    ["sandbox", "build", "--seed", "-1"], ["sandbox", "build", "--seed", "9" * 30],
    ["report", "nonesuch", "--title", "a\udc80"], ["score", "sandbox", "--proxy", "constant", "--out", "a\udc80.csv"],
], ids=ascii)  # fmt: skip
def test_what_cannot_be_is_refused_before_any_work(words, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = cli(*words, *(["--out", "built"] if words[0] == "sandbox" else []), status=2).err
    assert said.startswith("error: ") and list(tmp_path.iterdir()) == []
