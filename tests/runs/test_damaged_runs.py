import json
import os
import random
import re
import shutil
import struct
import tempfile
from pathlib import Path

import pytest

from adapop.cli import main
from adapop.config.presets import make_config
from adapop.errors import AdaPopError, RunError
from adapop.model.adapter_folder import WEIGHTS
from adapop.report.page import rendered
from adapop.report.record import read_record
from adapop.runs import checkpoints
from adapop.runs.inputs import check_inputs
from adapop.runs.listed import damage_of
from adapop.runs.run import find_run
from adapop.runs.weights import weights_of
from adapop.service.cleanup import overdue
from adapop.service.worker import Worker
from adapop.training.events import EpochDone, Measured, RunDone, RunStarted, Saved, StepDone
from adapop.ui.compare import race, results
from adapop.ui.run.screen import RunScreen
from adapop.ui.run.state import seen_of
from components import stand_ins
from edited import changed_json, without_last
from raised import raised
from refusing import permissions_obeyed
from tiny_runs import RELEARNT, commands_on, copied, trained

SCREEN = stand_ins(RunScreen)
NESTED = b"[" * 100_000 + b"]" * 100_000
MEASURED = {"group": "forget", "tier": "all", "form": "direct", "facts": 4, "recall": 0.5, "words": 1.0}
# settings that read: what a flipped bit leaves of a word or of a digit, or somebody's hand
EVERYWHERE = ("learning_rate", "lora_layers")  # of which every command is asked
READABLE = {
    "facts": "sandbo|", "method": "wgb", "preset": "paqer", "learning_rate": 0.03, "epochs": 3, "batch": 6, "seed": 4,
    "lora_rank": 33, "lora_alpha": 65, "lora_layers": [99], "lora_targets": ["p_proj"], "clip": 3.0, "frames": 7,
    "max_new_tokens": 7, "include_tail": True, "start": "sft", "answers": "own-words", "asking": "text-examples",
    "arguments": {"x": 1}, "measure": "off", "reference": "start", "four_bit": True,
}  # fmt: skip
BEYOND = b'{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}'  # the end of the file


def written(name: str, content: bytes):
    return lambda folder: (folder / name).write_bytes(content)


def a_folder(name: str):
    return lambda folder: ((folder / name).unlink(), (folder / name).mkdir())


def with_setting(name: str, value: object):
    return lambda folder: changed_json(folder / "config.json", **{name: value})


def frame(scores: bytes):
    return written("frames.jsonl", b'{"step": 0, "epoch": 0, "forget": ' + scores + b', "answers": []}\n')


def in_log(kind: type, name: str, value: object):
    """A value in the last event of a kind, as no run writes it."""

    def damage(folder: Path) -> None:
        path = folder / "events.jsonl"
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        [line for line in lines if line["kind"] == kind.kind][-1][name] = value
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    return damage


DAMAGES = {
    "config empty": written("config.json", b""), "config no JSON": written("config.json", b"not { json"),
    "config a list": written("config.json", b"[1, 2]"), "config lacks keys": written("config.json", b"{}"),
    "config binary": written("config.json", bytes(range(128, 256))),
    "config a folder": a_folder("config.json"), "config's batch a list": with_setting("batch", [1]),
    "config's method a number": with_setting("method", 5),
    "config's arguments a word": with_setting("arguments", "none"),
    "config's method a list": with_setting("method", ["wga"]),
    "log binary": written("events.jsonl", bytes(range(256)) * 4), "log of lists": written("events.jsonl", b"[]\n"),
    "log's kind a list": written("events.jsonl", b'{"kind": []}\n'),
    "log's time a word": written("events.jsonl", b'{"kind": "saved", "run": "x", "epoch": 1, "time": "noon"}\n'),
    "log's epoch a word": written(
        "events.jsonl",
        b'{"kind": "saved", "run": "x", "epoch": "one"}\n'
        b'{"kind": "run_started", "run": "x", "model": "m", "method": "wga", "facts": "f", "forget": 1, "retain": 1, '
        b'"holdout": 1, "epochs": 1, "steps": 1, "resumed_from": 1}\n',
    ),
    "log a folder": a_folder("events.jsonl"),
    "facts missing": lambda folder: (folder / "facts.jsonl").unlink(),
    "facts empty": written("facts.jsonl", b""), "facts binary": written("facts.jsonl", b"\xff\xfe"),
    "facts a folder": a_folder("facts.jsonl"), "about empty": written("run.json", b""),
    "about lacks keys": written("run.json", b"{}"), "betas no JSON": written("betas.json", b"beta"),
    "betas a number": written("betas.json", b"1"), "betas of words": written("betas.json", b'{"a": "high"}'),
    "config nested": written("config.json", NESTED), "config's tail a word": with_setting("include_tail", "yes"),
    "config's layers words": with_setting("lora_layers", ["one"]),
    "config's system a number": with_setting("system", 7),
    "about's versions a list": written("run.json", b'{"facts": "f", "notes": [], "versions": []}'),
    "about's note of no kind": written(
        "run.json", b'{"facts": "f", "notes": [{"kind": "none", "values": {}}], "versions": {}}'
    ),
    "about's notes numbers": written("run.json", b'{"facts": "f", "notes": [1], "versions": {}}'),
    "log nested": written("events.jsonl", NESTED + b"\n"),
    "log's number infinite": in_log(EpochDone, "drift", 1e999),
    "log's number of 400 digits": in_log(Saved, "epoch", 10**400),
    "log's epoch negative": in_log(EpochDone, "epoch", -1),
    "log's tiers a list": in_log(StepDone, "nll_by_tier", [1]),
    "log's loss a word": in_log(StepDone, "forget_loss", "low"),
    "log's notes numbers": in_log(RunDone, "notes", [1]), "log's method a number": in_log(RunStarted, "method", 1),
    "log's rows numbers": in_log(Measured, "rows", [1]),
    "log's rows nested": in_log(Measured, "rows", [{**MEASURED, "recall": [1]}]),
    "log's recall a word": in_log(Measured, "rows", [{**MEASURED, "recall": "all"}]),
    "log's recall above one": in_log(Measured, "rows", [{**MEASURED, "recall": 9.0}]),
    "log's group a number": in_log(Measured, "rows", [{**MEASURED, "group": 1}]),
}  # fmt: skip
TEXTS = (
    "config.json", "facts.jsonl", "run.json", "events.jsonl", "frames.jsonl", "recovery-relearn.json", "model.json",
    "epoch-1/state.json", "epoch-1/adapter_config.json", "betas.json", "sha256.txt", "epoch-1/sha256.txt",
)  # fmt: skip
FLIPS = 6  # of each file
FIGURE = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the name that plotly draws for a figure
# of what may be missing, and is not looked at to list a run
LATER = {
    "frames binary": written("frames.jsonl", bytes(range(128, 256)) + b"\n"),
    "frames of lists": written("frames.jsonl", b"[]\n"), "frames lack keys": written("frames.jsonl", b"{}\n"),
    "frames a folder": a_folder("frames.jsonl"), "frames nested": written("frames.jsonl", NESTED + b"\n"),
    "frames of words": frame(b'{"p": ["a"], "rank": [1]}'), "frames uneven": frame(b'{"p": [1], "rank": []}'),
    "frames of no chance": frame(b'{"p": [7], "rank": [1]}'),
    "probes nested": written("probes.jsonl", NESTED + b"\n"),
    "probes' rows of words": written("probes.jsonl", b'{"epoch": 1}\n{"fact_id": 1, "kind": "direct", "reason": []}\n'),
    "recovery nested": written("recovery-lens.json", NESTED),
    "recovery's result a list": written("recovery-lens.json", b'{"epoch": 1, "result": []}'),
    "probes empty": written("probes.jsonl", b""), "probes binary": written("probes.jsonl", b"\xff\xfe"),
    "probes' rows lack keys": written("probes.jsonl", b'{"epoch": 1}\n{}\n'),
    "recovery a list": written("recovery-lens.json", b"[]"),
    "recovery lacks keys": written("recovery-lens.json", b"{}"),
}  # fmt: skip


@pytest.fixture
def three(other):
    """(the run to be damaged, the ids of two sound ones) in a runs folder of their own."""
    runs = [copied(other, name=name) for name in ("wga-00000000000000aa", "wga-00000000000000bb", other.id)]
    return runs[0], [runs[1].id, runs[2].id]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_no_record_and_its_damage_is_known(other, damage):
    broken = copied(other)
    damage(broken.folder)
    assert damage_of(broken)
    raised(AdaPopError, "", read_record, broken)


# one of each file; that each other one is known too is above
@pytest.mark.parametrize(
    "name", ["config nested", "log's epoch a word", "log's rows nested", "facts missing", "about lacks keys",
             "betas of words"]
)  # fmt: skip
def test_a_damaged_run_is_named_by_what_needs_it_and_the_others_are_as_usual(three, name, cli):
    broken, sound = three
    DAMAGES[name](broken.folder)
    rows = {row["run"]: row for row in cli("runs", "--json").rows}
    assert rows.keys() == {broken.id, *sound}
    assert rows[broken.id]["state"] == "damaged" and rows[broken.id]["problem"]
    assert [rows[name]["state"] for name in sound] == ["done", "done"]
    worker = Worker(broken.folder.parent)
    now = race.standing(worker, {"runs": [broken.id, *sound], "refused": []})
    lines = now.shown["runs"]
    assert [line["state"] for line in lines] == ["failed", "done", "done"] and lines[0]["detail"]
    assert lines[0]["label"] == "Damaged" and broken.id not in lines[0]["detail"]
    assert [record.state for record in now.records] == ["done", "done"] and results.files_of(now.runs)
    seen_of(worker, broken.id, "ready")  # which raises nothing
    assert "Traceback" not in cli("report", broken.id, "--out", broken.folder / "report.html", status=2).err


@pytest.mark.parametrize("name", LATER)
def test_what_a_run_brings_beside_its_log_may_be_damaged_and_is_named_where_it_is_read(other, name):
    broken = copied(other)
    LATER[name](broken.folder)
    read = getattr(broken, re.split("\\W", name)[0])
    raised(AdaPopError, r"(frames|probes)\.jsonl|recovery-lens\.json", read)


@pytest.mark.parametrize("name", ["frames binary", "probes empty", "recovery a list"])
def test_without_what_a_run_brings_beside_its_log_the_rest_works(three, name, cli):
    broken, sound = three
    LATER[name](broken.folder)
    assert {row["run"] for row in cli("runs", "--json").rows} == {broken.id, *sound}
    # a report takes the frames along as they are
    said = cli("report", broken.id, "--out", broken.folder / "r.zip", status=0 if "frames" in name else 2)
    assert "Traceback" not in said.err
    worker = Worker(broken.folder.parent)
    now = race.standing(worker, {"runs": [broken.id, *sound], "refused": []})
    assert len(now.records) >= 2, "the sound ones"
    assert results.files_of(now.runs)
    SCREEN.show(worker, broken.id)  # which raises nothing


@pytest.mark.parametrize("name", READABLE)
def test_a_setting_that_became_another_is_damage_and_named(other, name):
    broken = copied(other)
    with_setting(name, READABLE[name])(broken.folder)
    assert f"{name} in config.json (" in str(damage_of(broken))


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_setting_that_became_another_is_named_by_every_command(three, tmp_path, cli, name):
    broken, sound = three
    with_setting(name, READABLE[name])(broken.folder)
    without_last(broken.folder / "events.jsonl", 1)  # interrupted before its end: it could be resumed
    compared = ["report", broken.id, *sound, "--out", str(tmp_path / "c.html")]
    for command in (*commands_on(broken.id, tmp_path), compared, ["runs"], ["runs", "--json"]):
        said = cli(*command, status={"resume": 1, "runs": 0}.get(command[0], 2))
        assert f"{name} in config.json (" in said.out + said.err, command
    assert not [*tmp_path.glob("*.html"), *tmp_path.glob("*.zip")], "nothing is written"


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
@pytest.mark.parametrize("name", ["events.jsonl", "run.json", "lock", "epoch-1/adapter_model.safetensors"])
def test_a_pipe_in_a_runs_folder_is_named_and_not_waited_for(three, tmp_path, cli, name):
    broken, _ = three
    (broken.folder / name).unlink(missing_ok=True)
    os.mkfifo(broken.folder / name)
    for command in commands_on(broken.id, tmp_path):
        said = " ".join(cli(*command, status=2).err.split())
        assert f"{Path(name).name} is not a file" in said and "Delete it" in said, command
    assert "is not a file" in cli("runs").out
    assert (broken.folder / name).exists(), "nothing is deleted"


def test_a_configuration_that_does_not_read_is_named_by_its_path(three, tmp_path, capsys):
    broken, _ = three
    (broken.folder / "config.json").write_bytes(b"[" * 100_000)
    path = str(broken.folder / "config.json")
    reading = [command for command in commands_on(broken.id, tmp_path) if command[0] != "resume"]  # it is complete
    for command in (*reading, ["run", "--config", path], ["check", "pair", "--config", path], ["runs"]):
        assert main(command) in ((0,) if command == ["runs"] else (1, 2)), command
        said = capsys.readouterr()
        assert (path in said.err + said.out) if command != ["runs"] else said.out.count("damaged") == 1, command


@pytest.mark.parametrize("length", [2**62, len(BEYOND)], ids=["length of 2^62", "beyond the end"])
def test_weights_whose_header_lies_are_named_by_every_command_that_reads_them(three, tmp_path, cli, length):
    broken, _ = three
    content = struct.pack("<Q", length) + BEYOND + bytes(8)
    (broken.folder / "epoch-1" / "adapter_model.safetensors").write_bytes(content)
    for command in (command for command in commands_on(broken.id, tmp_path) if command[0] in ("probe", "export")):
        assert "adapter_model.safetensors is damaged" in cli(*command, status=2).err


def test_a_run_that_nobody_may_look_into_is_listed_too(three, cli, monkeypatch):
    broken, sound = three
    with tempfile.TemporaryDirectory() as root:  # unlike pytest's, every user may look into it
        os.chmod(root, 0o755)
        folders = [Path(shutil.copytree(broken.folder.parent / name, f"{root}/{name}")) for name in (broken.id, *sound)]
        monkeypatch.setenv("ADAPOP_RUNS", root)
        folders[0].chmod(0)
        with permissions_obeyed():
            rows = {row["run"]: row["state"] for row in cli("runs", "--json").rows}
            assert overdue(Path(root), 1e9, None) == []
        folders[0].chmod(0o755)
    assert rows == {broken.id: "damaged"} | dict.fromkeys(sound, "done")


def test_a_torn_log_and_a_strange_checkpoint_are_no_damage(three):
    broken, _ = three
    (broken.folder / "epoch-a1").mkdir()
    assert broken.last_epoch == 1
    with open(broken.folder / "events.jsonl", "ab") as log:
        log.write(b'{"kind": "sav')
    assert damage_of(broken) is None
    broken.append(Saved(run=broken.id, epoch=1))
    assert damage_of(broken) is None


@pytest.mark.skipif(os.name == "nt", reason="a file as ADAPOP_RUNS is told differently there")
def test_a_runs_folder_that_is_a_file_is_named(tmp_path, monkeypatch, cli, small):
    path = tmp_path / "runs"
    path.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("ADAPOP_RUNS", str(path))
    for command in (["runs"], ["run", "--epochs", "1"], ["resume", "x"], ["probe", "x"], ["report", "x"]):
        said = cli(*command, status=2).err
        assert str(path) in said and "Traceback" not in said, (command, said)
    raised(RunError, "is not a folder", Worker(path).submit, make_config(epochs=1), small)
    raised(RunError, "There is no run", find_run, "x")


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    """A run of AdaPop, which has exponents, that may be changed; with what a recovery probe found."""
    run = trained(tiny, tmp_path_factory.mktemp("flipped"), "adapop")
    run.save_recovery("relearn", RELEARNT | {"returned": []})
    return run


def flipped(path, seed):
    """Flips one bit of a file; returns what puts it back."""
    content = path.read_bytes()
    place, bit = (source := random.Random(seed)).randrange(len(content)), source.randrange(8)
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    path.write_bytes(changed)
    return lambda: path.write_bytes(content)


@pytest.mark.quick("events.jsonl", "frames.jsonl", "recovery-relearn.json", "epoch-1/state.json")
@pytest.mark.parametrize("name", TEXTS)
def test_a_flipped_bit_is_always_named(run, name):
    def whole():
        check_inputs(run)
        run.frames(), run.recovery(), weights_of(run)
        rendered([read_record(run)], "")
        if name.startswith("epoch-1"):
            checkpoints.adapter(run, 1)
            checkpoints.trainer_state(run, 1)

    named = 0
    for seed in range(FLIPS):
        restore = flipped(run.folder / name, seed)
        damage_of(run)  # which raises nothing
        try:
            whole()
        except AdaPopError:
            named += 1
        restore()
    whole()
    # a model's folder may move: its weights are compared where they are loaded; and a list of hashes
    # has lines of files that were replaced since, or that are not read here
    assert named == FLIPS or (named and (name == "config.json" or name.endswith("sha256.txt")))


@pytest.mark.parametrize("name", [WEIGHTS, checkpoints.OPTIMIZER])
def test_a_flipped_bit_of_a_tensor_is_always_named(run, name):
    for seed in range(FLIPS):
        restore = flipped(run.checkpoint(1) / name, seed)
        with pytest.raises(RunError, match=name):
            checkpoints.adapter(run, 1)
            checkpoints.trainer_state(run, 1)
        restore()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["facts.jsonl", "events.jsonl", "frames.jsonl", f"epoch-1/{WEIGHTS}"])
def test_every_command_names_a_flipped_bit_or_works_and_no_frame_changes_what_it_says(
    finished, run, tmp_path, capsys, name
):
    def all_commands(seed=None):
        """(its name, exit status, what it printed, the pages so far) of each."""
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        shutil.rmtree(out := tmp_path / "out", ignore_errors=True)
        out.mkdir()
        broken, sound, interrupted = copied(finished), copied(run), copied(finished, name="adapop-00000000000000cc")
        without_last(interrupted.folder / "events.jsonl", 1)
        if seed is not None:
            for one in (broken, interrupted):
                flipped(one.folder / name, seed)
        compared = ["report", broken.id, sound.id, "--out", str(out / "c.html")]
        deleted = ["runs", "--delete", broken.id]
        done = []
        for command in (*commands_on(broken.id, out), ["resume", interrupted.id], compared, ["runs"], deleted):
            status, captured = main(command), capsys.readouterr()
            assert status in (0, 1, 2, 3) and "Traceback" not in captured.err, (command, captured)
            pages = [FIGURE.sub("", path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.html"))]
            done.append((command[0], status, captured.out, hash(tuple(pages))))
        assert not broken.folder.exists(), "and is gone"
        return done

    usual = all_commands() if name == "frames.jsonl" else ()
    for seed in range(2 if usual else 1):
        after = all_commands(seed)
        changed = [one[0] for one, before in zip(after, usual) if one[1] == 0 and one != before]
        assert {*changed} <= {"runs", "resume"}
