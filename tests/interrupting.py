"""Runs that are interrupted and gone on with, and what they must equal."""

import itertools
from dataclasses import replace

import torch
from safetensors.torch import load_file

from adapop import execute
from adapop.training.events import Measuring, RunDone, RunStarted
from tiny_runs import tiny_config

EPOCHS, STEPS = 3, 2


def config_of(method="adapop", **changes):
    return tiny_config(method, **{"epochs": EPOCHS, **changes})


def adapter(run, epoch=EPOCHS):
    return load_file(run.checkpoint(epoch) / "adapter_model.safetensors")


def timeless(events, starts=False):
    """Events without what may differ between two runs of the same configuration: a slow machine says how far it is."""
    aside = Measuring if starts else RunStarted | Measuring
    same = [replace(event, run="", time=0.0) for event in events if not isinstance(event, aside)]
    return [replace(event, seconds=0.0) if isinstance(event, RunDone) else event for event in same]


def killed(run, after):
    """Executes up to and with the given number of events, and drops the run as a kill would."""
    for _ in itertools.islice(execute(run), after):
        pass


def assert_same_run(run, straight, epoch=EPOCHS):
    expected, actual = adapter(straight, epoch), adapter(run, epoch)
    assert expected.keys() == actual.keys()
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
    assert timeless(run.events()) == timeless(straight.events())
    assert run.frames() == straight.frames()
