import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from adapop.errors import ConfigError
from adapop.experiments.engine import finished, finished_on_ray
from bench_work import doubled, fussy, mortal, slow, temporary


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_every_item_is_done_once_by_long_lived_workers(processes):
    done = list(finished(range(7), doubled, processes))
    assert sorted((one.item, one.result[0]) for one in done) == [(item, 2 * item) for item in range(7)]
    assert {one.error for one in done} == {""}
    workers = {one.result[1] for one in done}
    assert 1 <= len(workers) <= processes and os.getpid() not in workers


@pytest.mark.slow
def test_an_item_whose_process_is_killed_is_done_again_and_after_three_deaths_named(tmp_path):
    items = [(str(tmp_path / name), deaths) for name, deaths in (("a", 2), ("b", 0), ("c", 9))]
    for folder, _ in items:
        Path(folder).mkdir()
    done = {one.item: one for one in finished(items, mortal, 2)}
    assert [done[item].result for item in items] == ["done after 2", "done after 0", None]
    assert "died 3 times" in done[items[2]].error and len(list((tmp_path / "c").iterdir())) == 3


@pytest.mark.slow
def test_an_exception_is_its_items_alone():
    done = {one.item: one for one in finished(range(4), fussy, 2)}
    assert done[2].error == "ValueError: not this one" and done[2].result is None
    assert [done[item].result for item in (0, 1, 3)] == [0, 1, 3]


@pytest.mark.slow
def test_closing_it_ends_the_workers_at_once_and_nothing_is_left_behind():
    work = finished(range(20), slow, 2)
    next(work)
    assert len(multiprocessing.active_children()) == 2
    work.close()
    assert multiprocessing.active_children() == []
    (one,) = finished([0], temporary, 1)
    assert "adapop-bench-" in one.result and not Path(one.result).exists()


def test_ray_where_it_is_missing_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="pip install ray"):
        next(finished_on_ray([1], doubled, 1))
