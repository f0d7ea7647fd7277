import json

import pytest
from huggingface_hub import constants

from adapop.errors import NetworkError, Stopped
from adapop.facts.tables import unpacked
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.progress import Progress
from raised import raised
from scripted import Reply
from scripted_hub import downloads, serve, serve_files

SET, CONFIG, SPLIT = "some-body/data.more", "default", "forget_5"
ROWS = [{"n": n, "text": f"row {n}"} for n in range(250)]
TABLES = {(SET, CONFIG, SPLIT): ROWS}
FILES = [f"{CONFIG}/{SPLIT}/{number:04}.parquet" for number in range(3)]


def rows_of(hub: Hub, config: str = CONFIG, split: str = SPLIT) -> list[dict]:
    return [json.loads(line) for path in hub.files(SET, config, split) for line in [*unpacked(path)][1:]]


def again(server, progress: Progress | None = None) -> Hub:
    return Hub(progress or Progress(), Cache(), server.url)


def test_files_are_put_together_in_order(server):
    hub = serve(server, {**TABLES, (SET, CONFIG, "other"): ROWS[:3], (SET, "config", SPLIT): []})
    assert rows_of(hub) == ROWS and downloads(server) == FILES
    assert [len(rows_of(hub, *key)) for key in ((CONFIG, "other"), ("config", SPLIT))] == [3, 0]
    assert sum("/revision/refs%2Fconvert%2Fparquet" in asked.path for asked in server.asked) == 1


def test_a_second_download_asks_nothing_unless_it_is_to_be_fresh(server):
    serve(server, TABLES).files(SET, CONFIG, SPLIT)
    server.asked.clear()
    assert rows_of(again(server)) == ROWS
    assert server.asked == [] and rows_of(Hub(Progress(), Cache(), "http://127.0.0.1:9")) == ROWS
    serve(server, {(SET, CONFIG, SPLIT): ROWS[:2]})
    assert rows_of(again(server)) == ROWS and rows_of(Hub(Progress(), Cache(refresh=True), server.url)) == ROWS[:2]


def test_a_file_that_is_newer_than_the_known_list_is_downloaded(server):
    files = {(SET, "old.gz"): b"1"}
    serve_files(server, files).file(SET, "old.gz")
    assert serve_files(server, {**files, (SET, "new.gz"): b"2"}).file(SET, "new.gz").read_bytes() == b"2"


@pytest.mark.parametrize("error", [Stopped, NetworkError])
def test_after_a_stop_or_a_broken_connection_only_the_missing_files_are_asked(server, error):
    serve(server, TABLES)
    whole, progress = server.answer, Progress(lambda text: error is Stopped and "file 2" in text and progress.stop())
    server.answer = lambda asked: Reply(b"", 403) if FILES[1] in asked.path else whole(asked)
    raised(error, "", again(server, progress).files, SET, CONFIG, SPLIT)
    server.answer = whole
    assert downloads(server) == FILES[:1]
    server.asked.clear()
    assert rows_of(again(server)) == ROWS and downloads(server) == FILES[1:]


def test_a_data_set_that_changes_on_the_way_is_not_mixed(server):
    hub = serve(server, TABLES)
    hub.config_of(SET, SPLIT)
    longer = [{"n": n, "text": "new"} for n in range(260)]
    hub = serve(server, {(SET, CONFIG, SPLIT): longer})
    raised(NetworkError, "changed while it was being read", hub.files, SET, CONFIG, SPLIT)
    assert rows_of(hub) == longer


@pytest.mark.parametrize(("reply", "message", "fix"), [
    (Reply(b"", 403, {"X-Error-Code": "GatedRepo"}), "is gated", f"/datasets/{SET}, and set HF_TOKEN"),
    (Reply(b"", 401, {"X-Error-Code": "RepoNotFound"}), f"no data set {SET}, or it is private", "HF_T"),
    (Reply(b"", 404, {"X-Error-Code": "RevisionNotFound"}), "has not converted", "use it as a file"),
    (Reply(b"", 500), r"a fault of its own \(500\)", "Try again"), (Reply(b"", 429), r"\(429\)", "Try again"),
    *((Reply(body), "did not answer with files", "Try again") for body in ("<html>", [1], {"id": SET}, {
        "id": SET, "sha": 1, "siblings": []}, {"id": SET, "sha": "a" * 40, "siblings": [1]})),
    (Reply(b"x" * 100, cut=10), "cannot be reached, or disconnected", "Try again")])  # fmt: skip
def test_a_refused_list_is_named_and_not_kept(server, reply, message, fix):
    hub = serve(server, TABLES)
    server.replies = [reply]
    error = raised(NetworkError, message, hub.files, SET, CONFIG, SPLIT)
    assert fix in error.fix and len(str(error)) < 300 and rows_of(hub) == ROWS


def test_offline_is_named(server, monkeypatch):
    hub, named = serve(server, TABLES), "was not downloaded here, and HF_HUB_OFFLINE is set"
    for count in (0, 1):  # requests before: none, or that for the list of files
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert raised(NetworkError, named, hub.files, SET, CONFIG, SPLIT).fix and len(server.asked) == count
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        hub.config_of(SET, SPLIT)


def test_a_hub_that_does_not_answer_is_named(server, monkeypatch):
    monkeypatch.setattr("adapop.online.hub.LIST_SECONDS", 0.2)
    hub = serve(server, TABLES)
    server.replies = [Reply(b"", seconds=1)]
    raised(NetworkError, f"{server.url}.* cannot be reached", hub.files, SET, CONFIG, SPLIT)
    hub = Hub(Progress(), Cache(), "http://127.0.0.1:9")
    raised(NetworkError, "cannot be reached", hub.files, "other/set", CONFIG, SPLIT)


def test_the_key_goes_to_the_hub_and_not_to_where_it_sends_us(server, monkeypatch):
    """As the Hub does with large files: an address on another host, which needs no key."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub, whole = serve(server, {(SET, CONFIG, SPLIT): ROWS[:2]}), server.answer
    other = server.url.replace("127.0.0.1", "localhost")

    def moved(request):
        reply = whole(request)
        if "/resolve/" not in request.path or request.headers["host"].startswith("localhost"):
            return reply
        linked = {"X-Linked-Etag": reply.headers["ETag"], "X-Linked-Size": str(len(reply.body))}
        kept = {"X-Repo-Commit": reply.headers["X-Repo-Commit"], "Location": other + request.path}
        return Reply(b"", 302, {**linked, **kept})

    server.answer = moved
    assert rows_of(hub) == ROWS[:2]
    sent = {(request.headers["host"].split(":")[0], "hf_secret" in str(request.headers)) for request in server.asked}
    assert sent == {("127.0.0.1", True), ("localhost", False)}


def test_the_config_of_a_split_is_asked_once(server):
    hub = serve(server, {(SET, "first", "a"): [], (SET, "second", "b"): [], ("other/set", "third", "b"): []})
    assert [hub.config_of(SET, split) for split in ("b", "a", "b")] == ["second", "first", "second"]
    assert len(server.asked) == 1


def test_a_split_that_is_not_there_is_named_with_those_that_are(server):
    raised(NetworkError, r"no split forget_6 \(its splits: forget_5", serve(server, TABLES).config_of, SET, "forget_6")
    hub = serve(server, {**TABLES, (SET, "new", "forget_6"): []})
    assert hub.config_of(SET, "forget_6") == "new", "asked again, as it may be there by now"
    raised(
        NetworkError, r"no split forget_6 \(its splits: forget_5", serve(server, TABLES).files, SET, CONFIG, "forget_6"
    )


def test_a_split_that_is_converted_in_part_is_refused(server):
    hub = serve(server, {(SET, CONFIG, f"partial-{SPLIT}"): ROWS})
    raised(NetworkError, f"only a part of {SET}, {SPLIT}", hub.files, SET, CONFIG, SPLIT)
