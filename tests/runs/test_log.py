import os
import threading

import pytest

from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.facts.fact import FactSet
from adapop.runs import log
from adapop.runs.run import Run, create_run
from adapop.training.events import Saved, from_json
from run_events import START


@pytest.fixture
def run(tmp_path):
    made = create_run(make_config(), FactSet("mine", (), ()), None, tmp_path)
    made.append(START)
    return made


@pytest.fixture
def parsed(monkeypatch):
    """The lines that were parsed, in order."""
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
    other.write_bytes(path.read_bytes().replace(b'"adapop"', b'"satimp"'))
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
        with pytest.raises(RunError, match="line 2 does not read"):
            run.events()
    path.unlink()
    assert run.events() == []


def test_readers_in_many_threads_see_whole_logs_that_only_grow(run):
    seen, failed, over = [], [], threading.Event()

    def read():
        last = 0
        while not over.is_set():
            said = run.events()
            if len(said) < last or [event.epoch for event in said[1:]] != list(range(1, len(said))):
                failed.append(said)
            last = len(said)
            seen.append(last)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for epoch in range(1, 30):
        run.append(Saved(run="r", epoch=epoch))
    over.set()
    for reader in readers:
        reader.join()
    assert not failed and seen
    assert len(run.events()) == 30
