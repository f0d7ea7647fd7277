import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.facts.fact import Fact, FactSet
from adapop.remark import Remark
from adapop.runs import lock, log
from adapop.runs.listed import all_runs
from adapop.runs.run import Run, create_run, find_run, runs_root
from adapop.training.events import Event, RunDone, RunFailed, RunStarted, RunStopped, Saved, from_json, to_json
from edited import rewritten_lines
from raised import raised
from run_events import START
from run_events import epoch as epoch_done

FACTS = FactSet(
    "Café “set” 🦜",
    (Fact("é", "Who?\u2028", "Me", score=12.5), Fact("b", "What?", "That", score=None)),
    retain=(Fact("c", "When?", "Now"),),
    notes=("as older versions wrote", Remark("retain_from_set", {"facts": 1, "name": "é“🦜\u2028{x}"})),
)
CONFIG = make_config("adapop", "stress", seed=3)
LAST = RunFailed(run="r", message="é“🦜\u2028")
LAST_LINE = to_json(LAST).encode() + b"\n"


def started(resumed_from: int = 0) -> RunStarted:
    return replace(START, time=0.0, resumed_from=resumed_from)


def new_run(root: Path) -> Run:
    return create_run(CONFIG, FACTS, {"é": 1.25, "b": 1.0}, root, {"python": "3"})


STOPPED = RunStopped(run="r", epoch=1)
FAILED = RunFailed(run="r", message="The loss is not finite.")
DONE = RunDone(run="r", epoch=2, seconds=1.0)
ONE_EPOCH = [started(), epoch_done(0), epoch_done(1), Saved(run="r", epoch=1)]


def test_a_run_is_restored_from_its_folder_and_found_by_id_path_and_environment(tmp_path, monkeypatch):
    run = find_run(new_run(tmp_path).id, tmp_path)
    assert run.config == CONFIG
    assert run.facts == FACTS
    assert run.betas == {"é": 1.25, "b": 1.0}
    assert (run.state, run.last_epoch, run.events(), run.epochs()) == ("queued", None, [], [])
    about = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    assert (about["sha256"], about["versions"]) == (FACTS.sha256, {"python": "3"})
    assert create_run(make_config("wga"), FACTS, None, tmp_path).betas is None
    ids = {new_run(tmp_path).id for _ in range(20)}
    assert len(ids) == 20
    assert all(id_.startswith("adapop-") and len(id_) == len("adapop-") + 16 for id_ in ids)
    run = new_run(tmp_path)
    assert find_run(run.id, tmp_path) == find_run(str(run.folder), tmp_path / "elsewhere") == run
    with pytest.raises(RunError, match="it has no config"):
        Run(tmp_path).config  # noqa: B018
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path / "mine"))
    run = create_run(CONFIG, FACTS, None)
    assert run.folder.parent == runs_root() == tmp_path / "mine"
    assert all_runs() == [find_run(run.id)] == [run]
    for name in ("nothing", "..", "a/b", "a\0b", "x" * 5000):
        raised(RunError, "There is no run", find_run, name, tmp_path)


def test_complete_runs_are_listed_and_the_newest_is_first_whatever_happens_to_the_older(tmp_path):
    runs = [new_run(tmp_path) for _ in range(3)]
    for age, run in zip((200, 100, 300), runs):
        os.utime(run.folder / "config.json", (age, age))
    runs[1].request_stop()
    (tmp_path / "half-made").mkdir()
    (tmp_path / "note.txt").write_text("x", encoding="utf-8")
    assert all_runs(tmp_path) == [runs[2], runs[0], runs[1]]
    assert all_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize(("folders", "epoch"), [([], None), (["epoch-2", "epoch-10", "epoch-9"], 10)])
def test_last_epoch_is_the_newest_complete_checkpoint(tmp_path, folders, epoch):
    run = new_run(tmp_path)
    for name in (*folders, "writing-11"):
        (run.folder / name).mkdir()
    assert run.last_epoch == epoch


def logged(root: Path, *events: Event) -> Run:
    run = new_run(root)
    for event in events:
        run.append(event)
    return run


def test_the_log_is_only_appended_to(tmp_path):
    run, before = new_run(tmp_path), b""
    log, written = run.folder / "events.jsonl", []
    for event in (*ONE_EPOCH, LAST):
        written.append(run.append(event))
        assert log.read_bytes().startswith(before)
        before = log.read_bytes()
    assert before.count(b"\n") == 5 and run.events() == written
    times = [event.time for event in written]
    assert times == sorted(times) and times[0] > 1.7e9
    run = logged(tmp_path, *ONE_EPOCH, epoch_done(2), started(1), epoch_done(2), Saved(run="r", epoch=2))
    assert [row.epoch for row in run.epochs()] == [0, 1, 2]
    run = new_run(tmp_path)
    (run.folder / "events.jsonl").write_bytes(LAST_LINE[:10])
    assert (run.events(), run.state) == ([], "queued")
    assert [run.append(started())] == run.events()


@pytest.mark.parametrize("cut", range(1, len(LAST_LINE)))
def test_torn_last_line_is_not_yet_said_and_gives_way_to_the_next(tmp_path, cut):
    run = new_run(tmp_path)
    first = run.append(started())
    with open(run.folder / "events.jsonl", "ab") as log:
        log.write(LAST_LINE[:-cut])
    assert run.events() == [first]
    second = run.append(epoch_done(0))
    assert run.events() == [first, second]
    assert (run.folder / "events.jsonl").read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(("events", "state", "with_stop"), [
    ([], "queued", "queued"), ([started()], "running", "stopping"),
    ([*ONE_EPOCH, STOPPED], "stopped", "stopped"), ([*ONE_EPOCH, FAILED], "failed", "failed"),
    ([*ONE_EPOCH, DONE], "done", "done"), ([*ONE_EPOCH, STOPPED, started(1)], "running", "stopping"),
    ([*ONE_EPOCH, FAILED, started(1), epoch_done(2), DONE], "done", "done"),
    ([*ONE_EPOCH, STOPPED, started(1), STOPPED], "stopped", "stopped"),
])  # fmt: skip
def test_state_is_what_the_log_says(tmp_path, events: list[Event], state, with_stop):
    run = logged(tmp_path, *events)
    with lock.held(run.folder):
        assert run.state == state and not run.stop_requested
        run.request_stop()
        run.request_stop()
        assert run.state == with_stop and run.stop_requested
    ended = {"running": "interrupted", "stopping": "interrupted"}
    assert run.state == ended.get(with_stop, with_stop), "nobody works on it any more"
    run.clear_stop()
    assert not run.stop_requested


@pytest.fixture
def run(tmp_path):
    made = create_run(make_config(), FactSet("mine", (), ()), None, tmp_path)
    made.append(START)
    return made


@pytest.fixture
def parsed(monkeypatch):
    lines = []
    log._cached.cache_clear()
    monkeypatch.setattr(log.events, "from_json", lambda line: lines.append(line) or from_json(line))
    return lines


def test_a_second_look_parses_nothing_and_what_is_appended_is_seen(run, parsed):
    first = run.events()
    assert run.events() == Run(run.folder).events() == first and len(parsed) == 1
    run.events().clear()
    assert run.events() == first, "nobody's list is another's"
    run.append(Saved(run="r", epoch=1))
    assert [event.kind for event in run.events()] == ["run_started", "saved"] and len(parsed) == 3


def test_a_file_put_in_place_of_another_is_read(run, parsed):
    """Of the same size and time, as a copy made by `cp -p` would be."""
    (before,) = run.events()
    path, other = run.folder / "events.jsonl", run.folder / "other"
    other.write_bytes(path.read_bytes())
    rewritten_lines(other, lambda line: line.replace('"adapop"', '"satimp"'))
    about = path.stat()
    os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))
    os.replace(other, path)
    assert path.stat().st_size == about.st_size
    assert (before.method, run.events()[0].method) == ("adapop", "satimp")


def test_a_log_that_is_gone_or_spoilt_is_not_answered_from_memory(run):
    run.events()
    path = run.folder / "events.jsonl"
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    for _ in range(2):
        raised(RunError, "line 2 cannot be read", run.events)
    path.unlink()
    assert run.events() == []


def test_readers_in_many_threads_see_whole_logs_that_only_grow(run):
    lengths, failed, over = [], [], threading.Event()

    def read():
        last = 0
        while not over.is_set():
            events = run.events()
            if len(events) < last or [event.epoch for event in events[1:]] != list(range(1, len(events))):
                failed.append(events)
            last = len(events)
            lengths.append(last)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for epoch in range(1, 30):
        run.append(Saved(run="r", epoch=epoch))
    over.set()
    for reader in readers:
        reader.join()
    assert not failed and lengths
    assert len(run.events()) == 30
