"""Rows that begin alike count with what is their own, estimated and measured."""

import pytest
import torch

from adapop.config.presets import make_config
from adapop.model.tokens import Row
from adapop.objectives import make_objective
from adapop.training import pass_size
from adapop.training.forget_set import ForgetSet
from adapop.training.gradient import StepGradient

MEGABYTE = 2**20


@pytest.fixture
def gradient(fresh, small):
    """Of steps of 32 rows, with prompts of 60 tokens, all but two of which are common."""
    config = make_config("gd", batch=32)
    objective, model = make_objective("gd", config.arguments), fresh()
    forget = ForgetSet(config, objective, model, small.forget, None)
    forget.rows = [Row((*range(10, 68), 100 + i, 200 + i), (5, 6), i) for i in range(32)]
    return StepGradient(config, objective, model, forget, 64)


def fitting(gradient, monkeypatch, megabytes, alone=False):
    monkeypatch.setattr(pass_size, "free_bytes", lambda device: megabytes * MEGABYTE)
    if alone:
        monkeypatch.setitem(gradient.model.__dict__, "packs", False)
    return pass_size.rows_that_fit(gradient, gradient.forget.rows)


def test_more_rows_fit_where_they_are_packed(gradient, monkeypatch):
    assert fitting(gradient, monkeypatch, 10_000) == 64
    packed = [fitting(gradient, monkeypatch, megabytes) for megabytes in (0, 30, 60, 120)]
    alone = [fitting(gradient, monkeypatch, megabytes, alone=True) for megabytes in (0, 30, 60, 120)]
    assert packed[0] == alone[0] == 1
    assert all(a <= b for a, b in zip(alone, packed)) and alone == sorted(alone)
    assert max(b / a for a, b in zip(alone, packed)) > 2
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # two processes on one machine's memory
    assert fitting(gradient, monkeypatch, 120, alone=True) == alone[2]


def test_on_an_accelerator_the_estimate_is_put_to_scale(gradient, monkeypatch):
    """A device on which everything takes three times what is estimated, simulated."""
    rows, model = gradient.forget.rows, gradient.model
    needs = list(pass_size._needs(gradient, rows, 64))
    peaks = iter([3 * needs[0], 3 * needs[3]])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: next(peaks))
    moments = 2 * sum(parameter.numel() * 4 for parameter in model.parameters)
    for place in (2, 63):
        peaks = iter([3 * needs[0], 3 * needs[3]])
        free = (3 * needs[place] + moments) / pass_size.SHARE + 1000
        monkeypatch.setattr(pass_size, "free_bytes", lambda device, free=free: free)
        found = pass_size._measure(gradient, rows, needs)
        assert found == place + 1
    assert all(parameter.grad is None for parameter in model.parameters)


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

    monkeypatch.setattr(gradient, "add", noted)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    peak = lambda device: needs[len(tried[-1]) - 1] * (3 if all(map(large, tried[-1])) else 1)  # noqa: E731
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", peak)
    moments = 2 * sum(parameter.numel() * 4 for parameter in gradient.model.parameters)
    free = (3 * needs[2] + moments) / pass_size.SHARE + 1000
    monkeypatch.setattr(pass_size, "free_bytes", lambda device: free)
    assert pass_size._measure(gradient, gradient.forget.rows, needs) == 3
    assert [len(rows) for rows in tried] == [1, 1, 4, 4]
