import pytest
import torch

from adapop.config.presets import make_config
from adapop.model.tokens import Row
from adapop.objectives import make_objective
from adapop.training import gradient as pass_size
from adapop.training.forget_set import ForgetSet
from adapop.training.gradient import StepGradient
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
        steps = spans(rows, batch, last_step, epoch)
        assert [start for start, _ in steps] + [epoch * rows] == [(epoch - 1) * rows] + [stop for _, stop in steps]
        assert len(steps) == count(rows, batch, last_step) and max(sizes(rows, batch, last_step, epoch)) <= batch
        if last_step == "even":
            assert max(sizes(rows, batch, "even")) - min(sizes(rows, batch, "even")) <= 1


def test_batches_of_one_tier_take_turns():
    tiers, order = [*("rare",) * 5, *("popular",) * 4], [8, 0, 3, 7, 1, 6, 4, 5, 2]
    found = by_tier(order, tiers, 2)
    assert found == [0, 3, 8, 7, 1, 4, 6, 5, 2], "two rare, two popular, in turn; the fifth rare one fills no batch"
    assert by_tier(order, ["middle"] * 9, 2) == order, "of one tier all batches are"


@pytest.fixture
def gradient(fresh, small):
    config = make_config("gd", batch=32)
    objective, model = make_objective("gd", config.arguments), fresh()
    forget = ForgetSet(config, objective, model, small.forget, None)
    forget.rows = [Row((*range(10, 68), 100 + i, 200 + i), (5, 6), i) for i in range(32)]
    return StepGradient(config, objective, model, forget, 64)


def fitting(gradient, monkeypatch, megabytes, alone=False):
    monkeypatch.setattr(pass_size, "free_bytes", lambda device: megabytes * (2**20))
    if alone:
        monkeypatch.setitem(gradient.model.__dict__, "packs", False)
    return pass_size.rows_that_fit(gradient, gradient.forget.rows)


def test_more_rows_fit_where_they_are_packed(gradient, monkeypatch):
    assert fitting(gradient, monkeypatch, 10_000) == 64
    packed = [fitting(gradient, monkeypatch, megabytes) for megabytes in (0, 30, 60, 120)]
    alone = [fitting(gradient, monkeypatch, megabytes, alone=True) for megabytes in (0, 30, 60, 120)]
    assert packed[0] == alone[0] == 1 and all(a <= b for a, b in zip(alone, packed)) and alone == sorted(alone)
    assert max(b / a for a, b in zip(alone, packed)) > 2
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # two processes on one machine's memory
    assert fitting(gradient, monkeypatch, 120, alone=True) == alone[2]


def measured(gradient, monkeypatch, needs, place, peak):
    """The rows that fit on a simulated device with room for three times what is estimated at a place. peak: gives what
    a pass has taken."""
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: peak())
    moments = 2 * sum(parameter.numel() * 4 for parameter in gradient.model.parameters)
    monkeypatch.setattr(pass_size, "free_bytes", lambda _: (3 * needs[place] + moments) / pass_size.SHARE + 1000)
    return pass_size._measure(gradient, gradient.forget.rows, needs)


def test_on_an_accelerator_the_estimate_is_put_to_scale(gradient, monkeypatch):
    needs = list(pass_size._needs(gradient, gradient.forget.rows, 64))
    for place in (2, 63):
        peaks = iter([3 * needs[0], 3 * needs[3]])
        assert measured(gradient, monkeypatch, needs, place, peaks.__next__) == place + 1
    assert all(parameter.grad is None for parameter in gradient.model.parameters)


@pytest.mark.parametrize("side", ["long prompts", "long answers"])
def test_the_larger_peak_of_the_longest_rows_and_of_those_with_most_answer_tokens_counts(gradient, monkeypatch, side):
    """Where the vocabulary is large, a short row with a long answer takes more memory than a long row."""
    long = [Row((*range(10, 68), 9, 9, 9, 100 + i), (5, 6), i) for i in range(8)]
    answering = [Row((*range(10, 60), 100 + i), (5, 6, 7, 8, 9), i) for i in range(8, 32)]
    gradient.forget.rows = [*long, *answering]
    needs, tried, add = list(pass_size._needs(gradient, gradient.forget.rows, 64)), [], gradient.add
    large = (lambda row: row.length > 62) if side == "long prompts" else (lambda row: len(row.answer) > 2)

    def noted(forget, *rest, **options):
        tried.append(forget)
        return add(forget, *rest, **options)

    def peak():
        return needs[len(tried[-1]) - 1] * (3 if all(map(large, tried[-1])) else 1)

    monkeypatch.setattr(gradient, "add", noted)
    assert measured(gradient, monkeypatch, needs, 2, peak) == 3
    assert [len(rows) for rows in tried] == [1, 1, 4, 4]
