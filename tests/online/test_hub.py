"""Downloads in good and in bad weather: nothing is asked twice, and no page that is wrong is taken."""

import pytest

from adapop.errors import NetworkError, Stopped
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.progress import Progress
from scripted import Reply
from scripted_hub import page_of, serve

SET, CONFIG, SPLIT = "some body/data & more", "default", "forget_5"
ROWS = [{"n": n, "text": f"row {n}"} for n in range(250)]
TABLES = {(SET, CONFIG, SPLIT): ROWS}


def offsets(server) -> list[int]:
    return [int(asked.query["offset"]) for asked in server.asked]


def test_pages_are_put_together_in_order(server):
    assert serve(server, TABLES).rows(SET, CONFIG, SPLIT) == ROWS
    assert offsets(server) == [0, 100, 200]
    assert {asked.query["dataset"] for asked in server.asked} == {SET}


def test_a_second_download_asks_nothing(server):
    serve(server, TABLES).rows(SET, CONFIG, SPLIT)
    server.asked.clear()
    assert Hub(Progress(), Cache(), server.url).rows(SET, CONFIG, SPLIT) == ROWS
    assert server.asked == []


def test_another_split_is_another_download(server):
    hub = serve(server, {**TABLES, (SET, CONFIG, "other"): ROWS[:3], (SET, "config", SPLIT): ROWS[:2]})
    assert [len(hub.rows(SET, *key)) for key in ((CONFIG, SPLIT), (CONFIG, "other"), ("config", SPLIT))] == [250, 3, 2]


@pytest.mark.parametrize(("count", "pages"), [(0, 1), (1, 1), (100, 1), (101, 2), (200, 2)])
def test_no_page_too_many(server, count, pages):
    assert serve(server, {(SET, CONFIG, SPLIT): ROWS[:count]}).rows(SET, CONFIG, SPLIT) == ROWS[:count]
    assert len(server.asked) == pages


def test_progress_counts(server):
    told = []
    serve(server, TABLES)
    Hub(Progress(told.append), Cache(), server.url).rows(SET, CONFIG, SPLIT)
    assert [line.rsplit(": ")[1] for line in told] == ["100 of 250 rows", "200 of 250 rows", "250 of 250 rows"]
    assert SPLIT in told[0]


def test_after_a_failure_only_the_missing_pages_are_asked(server):
    hub = serve(server, TABLES)
    server.replies = [Reply(page_of(ROWS, 0)), Reply(page_of(ROWS, 100)), Reply({"error": "gone"}, 404)]
    with pytest.raises(NetworkError, match="404"):
        hub.rows(SET, CONFIG, SPLIT)
    server.asked.clear()
    assert hub.rows(SET, CONFIG, SPLIT) == ROWS
    assert offsets(server) == [200]


def test_a_stop_keeps_the_pages_that_came(server):
    serve(server, TABLES)
    progress = Progress(lambda text: progress.stop())
    with pytest.raises(Stopped, match="Stopped"):
        Hub(progress, Cache(), server.url).rows(SET, CONFIG, SPLIT)
    assert serve(server, TABLES).rows(SET, CONFIG, SPLIT) == ROWS
    assert offsets(server) == [0, 100, 200]


def test_a_data_set_that_changes_on_the_way_is_not_mixed(server):
    hub = serve(server, TABLES)
    longer = [{"n": n, "text": "new"} for n in range(260)]
    server.replies = [Reply(page_of(ROWS, 0)), Reply(page_of(ROWS, 100)), Reply(page_of(longer, 200))]
    with pytest.raises(NetworkError, match="has changed while it was read"):
        hub.rows(SET, CONFIG, SPLIT)
    assert serve(server, {(SET, CONFIG, SPLIT): longer}).rows(SET, CONFIG, SPLIT) == longer


def changed(**changes) -> dict:
    return {**page_of(ROWS[:2], 0), **changes}


def with_item(**changes) -> dict:
    first, second = page_of(ROWS[:2], 0)["rows"]
    return changed(rows=[first, {**second, **changes}])


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (changed(partial=True), "serves only a part"),
        (with_item(truncated_cells=["text"]), r"cuts cells of .* row 1, short: \['text'\]"),
        (with_item(row_idx=2), "another row"),
        (with_item(row=["text"]), "something else than row"),
        (with_item(row=None), "something else than row"),
        (changed(num_rows_total=3), "sends 2 rows .* 3 were due"),
        (changed(num_rows_total=1), "sends 2 rows .* 1 were due"),
        (changed(num_rows_total=-1), "sends 2 rows"),
        (changed(num_rows_total="2"), "something else than num_rows_total"),
        (changed(num_rows_total=True), "something else than num_rows_total"),
        (changed(rows={}), "something else than rows"),
        (changed(rows=[1, 2]), "something else than row"),
        ({"error": "The dataset is <b>gated</b>" + "!" * 5000}, "says of .*gated"),
        ({}, "something else than rows"),
        ([], "something else than rows"),
        (None, "something else than rows"),
    ],
)
def test_a_wrong_page_is_named_and_not_kept(server, reply, said):
    hub = serve(server, {(SET, CONFIG, SPLIT): ROWS[:2]})
    server.replies = [Reply(reply)]
    with pytest.raises(NetworkError, match=said) as caught:
        hub.rows(SET, CONFIG, SPLIT)
    assert caught.value.fix
    assert len(str(caught.value)) < 300
    assert hub.rows(SET, CONFIG, SPLIT) == ROWS[:2]


def test_a_short_page_in_the_middle_is_no_end(server):
    hub = serve(server, TABLES)
    short = page_of(ROWS, 100, 40)
    server.replies = [Reply(page_of(ROWS, 0)), Reply(short)]
    with pytest.raises(NetworkError, match=r"sends 40 rows .* from row 100 on; 100 were due"):
        hub.rows(SET, CONFIG, SPLIT)


# --- the configuration that holds a split


def test_the_config_of_a_split_is_asked_once(server):
    hub = serve(server, {(SET, "first", "a"): [], (SET, "second", "b"): [], ("other/set", "third", "b"): []})
    assert [hub.config_of(SET, split) for split in ("b", "a", "b")] == ["second", "first", "second"]
    assert [asked.path for asked in server.asked] == ["/splits"]


def test_a_split_that_is_not_there_is_named_with_those_that_are(server):
    with pytest.raises(NetworkError, match=r"no split forget_6 \(its splits: forget_5"):
        serve(server, TABLES).config_of(SET, "forget_6")


def test_a_split_that_appears_later_is_found(server):
    with pytest.raises(NetworkError):
        serve(server, TABLES).config_of(SET, "late")
    assert serve(server, {**TABLES, (SET, "new", "late"): []}).config_of(SET, "late") == "new"


@pytest.mark.parametrize(
    "reply", [{}, [], {"splits": None}, {"splits": ["a"]}, {"splits": [{"config": 1, "split": "a"}]}, {"error": "no"}]
)
def test_a_list_of_splits_that_is_none(server, reply):
    server.answer = lambda asked: Reply(reply)
    with pytest.raises(NetworkError, match=SET):
        Hub(Progress(), Cache(), server.url).config_of(SET, SPLIT)
