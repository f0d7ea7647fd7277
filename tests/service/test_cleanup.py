import errno
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from adapop import Problem, make_config
from adapop.errors import DataError, LimitError, RunError
from adapop.remark import Remark
from adapop.runs.listed import all_runs
from adapop.runs.lock import QUEUED, held, is_held
from adapop.runs.run import create_run
from adapop.service import cleanup, jobs
from adapop.service.cleanup import delete_hidden, entries, hide
from adapop.service.saved_sets import delete_set, load_set, save_set, set_exists
from adapop.service.visitor_limits import WRITTEN
from adapop.service.worker import Worker
from edited import flipped_bit
from raised import raised
from refusing import permissions_obeyed
from tiny_runs import tiny_config
from waiting import PATIENCE_SECONDS, wait_until

HOUR = 3600


def aged(folder, hours: float):
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - hours * HOUR,) * 2)
    return folder


def run_of(tiny, root, hours: float):
    run = create_run(make_config(), tiny, None, root)
    aged(run.folder, hours)
    return run


def overdue(root, seconds, most=None):
    return cleanup.overdue(root, seconds, most)


def test_age_is_that_of_the_newest_file(tiny, tmp_path):
    old, touched = run_of(tiny, tmp_path, 3), run_of(tiny, tmp_path, 3)
    (touched.folder / "epoch-1").mkdir()
    (touched.folder / "epoch-1" / "state.json").write_text("{}", encoding="utf-8")
    assert overdue(tmp_path, 2 * HOUR) == [old.folder] and overdue(tmp_path, 4 * HOUR) == []


def test_what_takes_too_much_goes_oldest_first_but_never_what_is_busy(tiny, tmp_path):
    runs = [run_of(tiny, tmp_path, hours) for hours in (3, 2, 1)]
    size = entries(tmp_path)[0].bytes
    assert overdue(tmp_path, None, 2.5 * size) == [runs[0].folder]
    with held(runs[0].folder, QUEUED):
        assert overdue(tmp_path, None, 1.5 * size) == [runs[1].folder, runs[2].folder]
    assert overdue(tmp_path, None, 3.5 * size) == []


def test_a_set_that_is_being_written_is_no_folder_to_delete(tiny, tmp_path):
    name = save_set(tiny, tmp_path)
    part = (tmp_path / "sets" / name).rename(tmp_path / "sets" / f"writing-{name}")
    assert entries(tmp_path) == [] and not set_exists(name, tmp_path)
    os.utime(part, (time.time() - 3 * HOUR,) * 2)
    assert [entry.folder for entry in entries(tmp_path)] == [part], "whoever wrote it died"


def test_only_runs_and_sets_are_ever_deleted(tiny, tmp_path):
    run, name = run_of(tiny, tmp_path, 3), save_set(tiny, tmp_path)
    aged(tmp_path / "sets", 3)
    strangers = [tmp_path / "thesis", tmp_path / "sets" / "mine", tmp_path / "adapop-short", tmp_path / "adapop-" / "x"]
    for folder in strangers:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}", encoding="utf-8")
        aged(folder, 99)
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    (tmp_path / "adapop-0123456789abcdef").symlink_to(elsewhere)
    note = tmp_path / "note.txt"
    note.write_text("x", encoding="utf-8")
    os.utime(note, (1, 1))
    cleanup.clean(tmp_path, 2 * HOUR, 0.0)
    assert not run.folder.exists() and load_set(name, tmp_path) is None
    assert all(folder.exists() for folder in [*strangers, elsewhere, note])


def test_a_reader_sees_a_run_whole_or_not_at_all(tiny, tmp_path):
    run = run_of(tiny, tmp_path, 3)
    hide(run.folder, tmp_path)
    hide(run.folder, tmp_path)
    assert all_runs(tmp_path) == []
    delete_hidden(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_is_deleted_from_a_disk_without_room_for_a_folder(tiny, tmp_path, monkeypatch):
    def full(path, **options):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    run = create_run(make_config(), tiny, None, tmp_path)
    monkeypatch.setattr(Path, "mkdir", full)
    cleanup.delete_run(run, tmp_path)
    assert not run.folder.exists()


def test_a_queued_run_stays_however_old(tiny, tmp_path):
    worker = Worker(tmp_path)
    first, second = (worker.submit(tiny_config(), tiny) for _ in range(2))
    aged(second.folder, 99)
    cleanup.clean(tmp_path, HOUR, 0.0)
    assert first.folder.exists() and second.folder.exists()
    worker.ask(second, jobs.ask_models, ["Who?"], [""]).result(120)
    assert (first.state, second.state) == ("done", "done")
    for run in (first, second):
        aged(run.folder, 99)
    worker.ask(second, jobs.ask_models, ["Who?"], [""]).result(120)
    cleanup.clean(tmp_path, HOUR, None)
    assert [run.id for run in all_runs(tmp_path)] == [second.id], "a run that is asked is young again"
    cleanup.clean(tmp_path, None, 0.0)
    assert all_runs(tmp_path) == []
    raised(RunError, "was deleted", worker.ask(second, jobs.ask_models, ["Who?"], [""]).result, 120)


def test_no_run_is_queued_between_the_look_at_it_and_its_end(tiny, tmp_path, monkeypatch):
    worker, run, refused = Worker(tmp_path), run_of(tiny, tmp_path, 99), []

    def hide_late(folder, root):
        refused.append(raised(RunError, "is queued by another process", worker.enqueue, run))
        hide(folder, root)

    monkeypatch.setattr(cleanup, "hide", hide_late)
    cleanup.clean(tmp_path, HOUR, None)
    assert len(refused) == 1 and not run.folder.exists()


def test_neither_a_failed_cleaning_nor_a_damaged_link_ends_the_cleaning(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_KEEP_HOURS", "0.0005")  # 1.8 seconds
    cleaned = []
    monkeypatch.setattr(cleanup, "delete_hidden", lambda root: cleaned.append(root) or 1 / (len(cleaned) - 1))
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / f"view-{'0' * 32}"
    link.write_bytes(b"\xff\xfe\x00")
    folder = run_of(tiny, tmp_path, 1).folder
    cleanup.keep_clean(tmp_path)
    wait_until(lambda: len(cleaned) > 1 and not link.exists())
    assert not folder.exists()


def test_two_apps_on_one_root_leave_each_others_waiting_runs(tiny, tmp_path):
    first, second = Worker(tmp_path), Worker(tmp_path)
    at_work, waiting = (first.submit(tiny_config(epochs=epochs), tiny) for epochs in (100, 1))
    waiting.request_stop()
    aged(waiting.folder, 99)
    cleanup.clean(tmp_path, HOUR, 0.0)
    assert waiting.folder.exists()
    raised(RunError, "is queued by another process", second.enqueue, waiting)
    at_work.request_stop()
    wait_until(lambda: first.ahead_of(waiting) is None)
    assert waiting.state == "stopped"
    wait_until(lambda: not is_held(waiting.folder, QUEUED))
    cleanup.clean(tmp_path, None, 0.0)
    assert not waiting.folder.exists(), "nobody has it in a line any more"


def test_a_set_comes_back_until_it_is_deleted_or_damaged(small, tmp_path):
    problem = Problem(4, "answer", "", "is empty", "Fill the cell.")
    forget = (replace(small.forget[0], score=None), *small.forget[1:])
    notes = ("as older versions wrote", Remark("unseen_characters", {"codes": "U+202E", "count": 1, "row": 3}))
    edited = replace(small, forget=forget, problems=(problem,), notes=notes)
    name = save_set(edited, tmp_path)
    assert load_set(name, tmp_path) == edited and save_set(edited, tmp_path) != name and all_runs(tmp_path) == []
    name = save_set(small, tmp_path)
    about = tmp_path / "sets" / name / "about.json"
    os.utime(about, (1, 1))
    load_set(name, tmp_path)
    assert about.stat().st_mtime > 1
    name, other = save_set(small, tmp_path), save_set(small, tmp_path)
    delete_set(name, tmp_path)
    delete_set(name, tmp_path)
    assert load_set(name, tmp_path) is None and load_set(other, tmp_path) == small


def test_what_is_no_name_of_ours_reaches_nothing(small, tmp_path):
    (tmp_path / "about.json").write_text("{}", encoding="utf-8")
    save_set(small, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for name in (None, 3, "", "..", "../runs", "a" * 32, "/etc", ["x"], "A" * 32, "0" * 32 + "\n"):
        assert load_set(name, tmp_path) is None
        delete_set(name, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_who_wrote_too_much_saves_no_set_and_begins_no_run_and_others_do(small, tmp_path, public, monkeypatch):
    monkeypatch.setenv("ADAPOP_WRITTEN_MB_AN_HOUR", "1")
    asking = ["203.0.113.1"]
    worker = Worker(tmp_path, sender=lambda: asking[0])
    worker.usage.charge(WRITTEN, 0.999, asking[0])  # a kilobyte is left, less than a set has
    worker.save_set(small)
    for refused in (lambda: worker.save_set(small), lambda: worker.submit(tiny_config(), small)):
        raised(LimitError, "ADAPOP_WRITTEN_MB_AN_HOUR", refused)
    assert len(entries(tmp_path)) == 1, "what is refused is not written"
    asking[0] = "203.0.113.2"
    worker.save_set(small)


def test_a_folder_that_cannot_be_written_is_named(small, tmp_path):
    tmp_path.chmod(0o555)
    with permissions_obeyed(), pytest.raises(RunError, match="sets"):
        save_set(small, tmp_path)
    assert not (tmp_path / "sets").exists()


@pytest.mark.parametrize("name", ["about.json", "facts.jsonl"])
@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000, b'{"name": 1, "notes": [], "problems": []}'])
def test_a_damaged_set_is_gone(tiny, tmp_path, name, content):
    saved = save_set(tiny, tmp_path)
    path = tmp_path / "sets" / saved / name
    whole = path.read_bytes()
    assert load_set(saved, tmp_path) == tiny
    for spoilt in (content, flipped_bit(whole), flipped_bit(whole, 0.2)):
        path.write_bytes(spoilt)
        assert load_set(saved, tmp_path) is None


def test_a_run_stopped_while_it_waits_never_trains_and_can_be_resumed(tiny, tmp_path):
    worker, config = Worker(tmp_path), tiny_config()
    first, second = worker.submit(config, tiny), worker.submit(config, tiny)
    second.request_stop()
    wait_until(lambda: worker.ahead_of(second) is None)
    assert (first.state, second.state, second.last_epoch) == ("done", "stopped", None)
    second.clear_stop()
    worker.enqueue(second)
    worker.enqueue(second)
    wait_until(lambda: worker.ahead_of(second) is None)
    assert second.state == "done"


def test_a_queue_of_runs_and_looks(tiny, tmp_path):
    unscored = replace(tiny, forget=tuple(replace(fact, score=None) for fact in tiny.forget))
    raised(DataError, "no popularity scores", Worker(tmp_path).submit, make_config(), unscored)
    assert list(tmp_path.iterdir()) == []
    future, progress = Worker(tmp_path).look(jobs.check_facts, make_config(), tiny)
    check = future.result(PATIENCE_SECONDS)
    assert (
        "asked here directly, with the question that training uses, the model answers 4" in " ".join(check.lines)
        and not check.waste
    )
    assert check.pace.step > 0 and progress.text == "Timing a step"
    assert not any(tmp_path.iterdir()), "nothing is left of it"
