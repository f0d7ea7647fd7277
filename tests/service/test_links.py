import shutil
import threading
import zipfile

import pytest

from adapop.config.presets import make_config
from adapop.errors import AdaPopError, RunError
from adapop.report import write_archive
from adapop.runs.run import RUN_ID, create_run
from adapop.service import jobs
from adapop.service.cleanup import clean
from adapop.service.links import LINK, delete_dead, link_of, linked
from adapop.service.worker import Worker
from adapop.training.events import RunFailed
from adapop.ui.access import known_run, link_to, may_control, refused, shown_run
from adapop.ui.compare import race
from adapop.ui.parts.download import archive_of
from adapop.ui.probe import choices
from adapop.ui.run import screen as run
from components import stand_ins
from raised import raised
from refusing import permissions_obeyed
from tiny_runs import tiny_config

SCREEN = stand_ins(run.RunScreen)
WRONG = ["", "view-", "view-" + "0" * 32, "../" * 8, "view-" + "0" * 31 + "/", None, 7, ["x"], "\0", "x" * 10_000]


@pytest.fixture
def worker(tmp_path):
    return Worker(tmp_path)


@pytest.fixture
def made(tiny, tmp_path):
    return create_run(make_config(), tiny, None, tmp_path)


def test_a_link_leads_to_its_run_as_long_as_there_is_one(made, tmp_path, worker):
    assert not (tmp_path / "links").exists(), "shared without being asked"
    name = link_of(made)
    assert link_of(made) == name and LINK.fullmatch(name)
    assert not RUN_ID.fullmatch(name), "a link could pass for an id"
    assert made.id.rpartition("-")[2] not in name
    delete_dead(tmp_path)
    assert linked(name, tmp_path) == made
    copied = create_run(make_config(), made.facts, None, tmp_path)
    shutil.copy(made.folder / "link", copied.folder)
    assert linked(link_of(copied), tmp_path) == copied and link_of(made) == name
    shutil.rmtree(copied.folder)
    delete_dead(tmp_path)
    (made.folder / "config.json").unlink()
    assert linked(name, tmp_path) is None
    clean(tmp_path, None, None)
    assert list((tmp_path / "links").iterdir()) == []


def test_a_folder_that_cannot_be_written_gives_no_link_and_is_named(tiny, tmp_path):
    run = create_run(make_config(), tiny, None, tmp_path)
    tmp_path.chmod(0o555)
    with permissions_obeyed(), pytest.raises(RunError, match="cannot be written to"):
        link_of(run)
    assert not (tmp_path / "links").exists()


def test_what_is_no_link_leads_nowhere(made, worker):
    for name in (*WRONG, f"{link_of(made)}\n", f"{link_of(made)}0"):
        assert linked(name, worker.root) is None and shown_run(worker, name) is None, name


def test_a_link_lets_look_and_nothing_more(made, worker):
    name = link_of(made)
    assert shown_run(worker, name) == made and known_run(worker, name) is None
    assert may_control(worker, made.id) and not may_control(worker, name)
    assert link_to(worker, name) == link_to(worker, made.id) == name
    race.end(worker, kept := race.joined(worker, {"runs": []}, name))
    assert kept["runs"] == [name] and not made.stop_requested and made.id not in str(race.standing(worker, kept).shown)
    assert choices.fact_choices(worker, name, "forget", None)[0].choices
    updates = SCREEN.show(worker, name)
    controls = updates[SCREEN.follower.stop], updates[SCREEN.resume], updates[SCREEN.link]
    assert (controls[0].interactive, controls[1].visible, controls[2].visible) == (False, False, True)
    assert not updates[SCREEN.form].visible, "Start stands there for somebody who only watches"
    assert "You are watching AdaPop, 5 epochs" in updates[SCREEN.watched]["lines"][0]
    own = SCREEN.show(worker, made.id)
    assert (own[SCREEN.form].visible, own[SCREEN.watched]["kind"]) == (True, "hidden")


def test_nothing_tells_the_id(made, tmp_path, worker):
    made.append(RunFailed(run=made.id, message=f"The disk is full: {made.folder}/x.", fix=f"{made.id}"))
    shown = SCREEN.show(Worker(tmp_path), link_of(made))
    assert made.id not in str([shown[SCREEN.follower.strip], shown[SCREEN.log]])
    with zipfile.ZipFile(write_archive(made, tmp_path / "r.zip")) as archive:
        for name in archive.namelist():
            assert made.id.encode() not in archive.read(name), name
    (made.folder / "events.jsonl").write_text("{no\n", encoding="utf-8")
    name = link_of(made)
    strip = SCREEN.show(worker, name)[SCREEN.follower.strip]
    assert "events.jsonl, line 1 cannot be read" in str(strip)
    damaged = raised(AdaPopError, "", archive_of, shown_run(worker, name))
    assert made.id in str(damaged)
    for said in (strip, refused(damaged)):
        assert made.id not in str(said)


def test_a_full_queue_and_a_greedy_visitor_are_refused_by_name_and_leave_nothing(tiny, tmp_path, monkeypatch):
    asking, gate = ["ada"], threading.Event()
    worker = Worker(tmp_path / "runs", sender=lambda: asking[0])
    held = worker._line.run(gate.wait, 60)
    monkeypatch.setenv("ADAPOP_MAX_QUEUE", "3")
    monkeypatch.setenv("ADAPOP_RUNS_EACH", "2")
    config = tiny_config()
    runs = [worker.submit(config, tiny) for _ in range(2)]
    raised(AdaPopError, "ADAPOP_RUNS_EACH", worker.submit, config, tiny)
    asking[0] = "bob"
    runs.append(worker.submit(config, tiny))
    raised(AdaPopError, "ADAPOP_MAX_QUEUE", worker.submit, config, tiny)
    assert [worker.ahead_of(one) for one in runs] == [0, 1, 2] and len(list(worker.root.glob("*/config.json"))) == 3
    monkeypatch.setenv("ADAPOP_MAX_WAITING", "1")
    waiting = worker.look(jobs.recall_of_original, config, tiny)[0]
    raised(AdaPopError, "ADAPOP_MAX_WAITING", worker.look(jobs.recall_of_original, config, tiny)[0].result, 1)
    for one in runs:
        one.request_stop()
    gate.set()
    held.result(60)
    waiting.result(60)
