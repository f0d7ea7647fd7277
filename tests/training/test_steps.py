"""How an epoch's rows are dealt out over steps."""

import pytest

from adapop.training.steps import by_tier, count, spans

DUET, BATCH = 964, 32


def sizes(rows, batch, last_step, epoch=1):
    return [stop - start for start, stop in spans(rows, batch, last_step, epoch)]


def test_steps_of_duet():
    assert sizes(DUET, BATCH, "short")[-1] == 4 and count(DUET, BATCH, "short") == 31
    even = sizes(DUET, BATCH, "even")
    assert len(even) == 31 and set(even) == {31, 32} and sum(even) == DUET
    # HF's Trainer: 964 // 32 steps an epoch; rows that fill none go on into the next epoch.
    steps = [span for epoch in range(1, 6) for span in spans(DUET, BATCH, "rolled", epoch)]
    assert len(steps) == 150 and steps == [(32 * i, 32 * i + 32) for i in range(150)]
    assert spans(256, 16, "even", 4) == spans(256, 16, "short", 4) == spans(256, 16, "rolled", 4)
    assert [sizes(20, 32, last_step, 2) for last_step in ("even", "short", "rolled")] == [[20]] * 3


@pytest.mark.parametrize(("rows", "batch"), [(1, 32), (31, 32), (32, 32), (33, 32), (256, 16), (7, 3), (2879, 32)])
@pytest.mark.parametrize("last_step", ["even", "short"])
def test_each_row_is_in_one_step_of_its_epoch(rows, batch, last_step):
    for epoch in (1, 3):
        found = spans(rows, batch, last_step, epoch)
        assert [start for start, _ in found] + [epoch * rows] == [(epoch - 1) * rows] + [stop for _, stop in found]
        assert len(found) == count(rows, batch, last_step) and max(sizes(rows, batch, last_step, epoch)) <= batch
        if last_step == "even":
            assert max(sizes(rows, batch, "even")) - min(sizes(rows, batch, "even")) <= 1


def test_batches_of_one_tier_take_turns():
    tiers = [*("rare",) * 5, *("popular",) * 4]
    order = [8, 0, 3, 7, 1, 6, 4, 5, 2]
    found = by_tier(order, tiers, 2)
    assert found == [0, 3, 8, 7, 1, 4, 6, 5, 2], "two rare, two popular, in turn; the fifth rare one fills no batch"
    assert by_tier(order, ["middle"] * 9, 2) == order, "of one tier all batches are"
