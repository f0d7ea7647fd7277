"""Full disks, forbidden and vanished folders, damaged files, clocks put back: each is said by name and breaks nothing.

The refusals are real ones of this machine's kernel: /dev/full, a limit on the size of files, another user's rights.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from adapop import sums
from adapop.config.presets import make_config
from adapop.errors import DataError, RunError
from adapop.model.tokens import check_lengths
from adapop.runs import files as disk
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.run import create_run
from adapop.service.saved_sets import save_set
from adapop.sums import sealed
from adapop.training.events import RunDone, RunFailed, Saved, to_json
from interrupting import assert_same_run, config_of
from raised import raised
from refusing import no_file_above
from tiny_runs import copied, ran

posix = pytest.mark.skipif(os.name == "nt", reason="the refusals are made with what POSIX has")


@pytest.fixture(scope="module")
def straight(bare, tmp_path_factory):
    return ran(config_of(), bare, tmp_path_factory.mktemp("straight"))


@posix
def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path):
    path = tmp_path / "probes.jsonl"
    disk.write_text(path, "first")
    with no_file_above(1000), pytest.raises(RunError, match=r"The disk is full: .*probes.jsonl could not be written"):
        disk.write_text(path, "second" * 1000)
    assert path.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [path], "half a file would only take what space is left"


@pytest.mark.slow
@posix
@pytest.mark.parametrize("public", ["0", "1"])
def test_a_strangers_set_on_a_full_disk_is_refused_without_a_path_of_the_server(bare, tmp_path, monkeypatch, public):
    monkeypatch.setenv("ADAPOP_PUBLIC", public)
    for work in ((save_set, bare, tmp_path), (create_run, make_config("wga"), bare, None, tmp_path)):
        with no_file_above(1000):
            error = raised(RunError, "The disk is full", *work)
        assert (str(tmp_path) in str(error)) == (public == "0")


@posix
def test_a_run_that_fails_in_its_preparation_leaves_nothing(bare, tmp_path):
    for most in (10, 1000):
        with no_file_above(most):
            raised(RunError, "The disk is full", create_run, make_config("wga"), bare, None, tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_killed_in_its_preparation_is_listed_and_can_be_deleted(bare, tmp_path, monkeypatch, cli):
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path))
    kept = create_run(make_config("wga"), bare, None, tmp_path)
    (torn := tmp_path / f"writing-{kept.id}").mkdir()
    shutil.copy(kept.folder / "facts.jsonl", torn)
    rows = {row["run"]: row for row in cli("runs", "--json").rows}
    assert rows[torn.name]["state"] == "damaged" and "never completely prepared" in rows[torn.name]["problem"]
    assert rows[kept.id]["state"] == "queued"
    cli("runs", "--delete", torn.name)
    assert [path.name for path in tmp_path.iterdir()] == [kept.id]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is always full")
def test_a_log_on_a_full_disk(bare):
    run = prepare(config_of(), bare)
    (run.folder / "events.jsonl").symlink_to("/dev/full")
    raised(RunError, r"The disk is full: .*events.jsonl .* Free some space, then resume the run", list, execute(run))
    (run.folder / "events.jsonl").unlink()
    assert isinstance(list(execute(run))[-1], RunDone)


@posix
def test_a_checkpoint_on_a_full_disk_fails_the_run_and_it_goes_on_once_there_is_space(bare, straight):
    run = prepare(config_of(), bare)
    with no_file_above(200_000):
        last = list(execute(run))[-1]
    assert isinstance(last, RunFailed) and "disk is full" in last.message and "resume" in last.fix
    assert (run.last_epoch, list(run.folder.glob("writing-*"))) == (None, [])
    list(execute(run))
    assert_same_run(run, straight)


def test_a_folder_that_is_deleted_under_a_run(bare):
    run = prepare(config_of(), bare)
    events = execute(run)
    next(events)
    shutil.rmtree(run.folder)
    raised(RunError, r"is gone. Start the run again", list, events)
    assert not run.folder.exists()


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def with_tensors(change):
    return lambda path: save_file(change(load_file(path)), path)


def test_a_damaged_checkpoint_is_named_and_the_epoch_before_serves(unmeasured, straight):
    run = unmeasured
    half(run.checkpoint(3) / "state.json")
    failed = list(execute(run))[-1]
    assert isinstance(failed, RunFailed) and "state.json" in failed.message and "Delete this folder" in failed.fix
    assert "epoch-3 cannot be read" in failed.message
    shutil.rmtree(run.checkpoint(3))
    list(execute(run))
    assert_same_run(run, straight)


def test_swapped_checkpoints_are_noticed(unmeasured, cli):
    run = unmeasured
    for number, place in ((3, "aside"), (2, "epoch-3"), (3, "epoch-2")):
        folder = run.folder / "aside" if place == "epoch-2" else run.checkpoint(number)
        folder.rename(run.folder / place)
    said = "epoch-3 is not this run's: it is of epoch 2, so folders were swapped"
    raised(RunError, said, load_model, run)
    failed = list(execute(run))[-1]
    assert isinstance(failed, RunFailed) and said in failed.message and "Put its files back" in failed.fix


SUBTLE = {
    "emptied": lambda path: path.write_bytes(b""), "half": half, "without tensors": lambda path: save_file({}, path),
    "without half of the tensors": with_tensors(lambda found: dict(sorted(found.items())[: len(found) // 2])),
    "not finite": with_tensors(lambda found: {name: torch.full_like(one, torch.nan) for name, one in found.items()}),
    "missing": Path.unlink,
    "of the epoch before": lambda path: shutil.copy(path.parent.parent / "epoch-2" / path.name, path),
}  # fmt: skip
FOUND_THOUGH_RECORDED = ("emptied", "half", "without tensors", "not finite")


@pytest.fixture
def unmeasured(straight, tmp_path):
    """A run that was killed as soon as its last epoch was saved: only measuring is left."""
    run = copied(straight, tmp_path)
    log = run.folder / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    saved = [place for place, line in enumerate(lines) if f'"kind": "{Saved.kind}"'.encode() in line]
    log.write_bytes(b"".join(lines[: saved[-1] + 1]))  # a slow machine also says how far it is
    assert run.last_epoch == run.config.epochs == 3
    return run


@pytest.mark.quick(
    "half-optimizer.safetensors", "half-adapter_model.safetensors", "of the epoch before-adapter_model.safetensors"
)
@pytest.mark.parametrize("name", ["adapter_model.safetensors", "optimizer.safetensors"])
@pytest.mark.parametrize("damage", SUBTLE)
def test_a_damaged_last_checkpoint_is_named_though_only_measuring_is_left(unmeasured, name, damage, cli):
    if damage in FOUND_THOUGH_RECORDED:
        written = copied(unmeasured, unmeasured.folder.parent / "written")
        SUBTLE[damage](written.checkpoint(3) / name)
        sums.record_all(written.checkpoint(3))
        assert name in list(execute(written))[-1].message
    SUBTLE[damage](unmeasured.checkpoint(3) / name)
    failed = list(execute(unmeasured))[-1]
    assert isinstance(failed, RunFailed), failed
    assert f"epoch-3 cannot be read: {name} is damaged" in failed.message and "Delete this folder" in failed.fix
    cli("resume", unmeasured.folder, status=1)  # neither does a second try end as done


def test_times_never_go_back(bare):
    run = create_run(make_config("wga"), bare, None)
    times = (10.0, 5.0, 12.0, 11.0)
    lines = [to_json(Saved(run=run.id, epoch=epoch, time=time)) for epoch, time in enumerate(times, start=1)]
    (run.folder / "events.jsonl").write_text("\n".join(map(sealed, lines)) + "\n", encoding="utf-8")
    assert [event.time for event in run.events()] == [10.0, 10.0, 12.0, 12.0]


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name(bare, monkeypatch):
    """Else a power cut may leave a name without contents. The calls are real, and only noted."""
    calls = []

    def noted(name, call):
        def called(first, *rest):
            calls.append((name, os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else str(first)))
            return call(first, *rest)

        return called

    if not Path("/proc/self/fd").exists():
        pytest.skip("which file is forced to the disk can only be seen on Linux")
    run = prepare(config_of(epochs=1), bare)
    monkeypatch.setattr(os, "fsync", noted("sync", os.fsync))
    monkeypatch.setattr(os, "replace", noted("name", os.replace))
    list(execute(run))
    aside = str(run.folder / "writing-1")
    named = calls.index(("name", aside))
    before, after = calls[:named], calls[named + 1 :]
    files = {path.name for path in run.checkpoint(1).iterdir()}
    assert {path.removeprefix(f"{aside}/") for what, path in before if path.startswith(f"{aside}/")} == files
    assert before.count(("sync", str(run.folder / "events.jsonl"))) >= 2, "what the epoch said comes first"
    assert after[0] == ("sync", str(run.folder))


def test_facts_longer_than_the_context_are_named_and_counted(bare, model):
    long = replace(bare.retain[2], question=bare.retain[2].question + " of it" * 600)
    longer = replace(bare.forget[1], answer=" ".join(["Verdi"] * 1100))
    facts = replace(bare, forget=(bare.forget[0], longer), retain=(*bare.retain[:2], long))
    (failed,) = execute(prepare(config_of(), facts))
    assert isinstance(failed, RunFailed) and "context of 1,024 tokens" in failed.message
    for said in (f"forget row 2 ({longer.id!r}) with 1,1", f"retain row 3 ({long.id!r}) with 1,2"):
        assert said in failed.message
    rows = tuple(replace(fact, paraphrases=("why " * 1100,)) for fact in bare.forget)
    with pytest.raises(DataError, match=r"and 1 more\. Shorten or drop"):
        check_lengths(model.tokenizer, replace(bare, forget=rows), model.context, model.system, 3)
