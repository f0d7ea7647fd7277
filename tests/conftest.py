"""What the tests share: no network, one CPU thread, runs in a temporary folder, and the sandbox as the model."""

import copy
import gc
import itertools
import json
import os
import signal
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub
os.environ["OMP_NUM_THREADS"] = "1"  # before anything imports torch
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same numbers with and without a GPU
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pytest

from adapop.config.presets import make_config
from adapop.facts.world import sandbox_facts
from browsing import HOSTILE, address, browser, page, runs_folder, visited, wikidata  # noqa: F401
from scripted import ScriptedServer
from tiny_runs import RELEARNT, trained
from waiting import wait_until

NUMBERS = itertools.count()
TRAINED_OR_HELD = ("forget", "retain", "holdout")


def pytest_configure():
    """A shell lets what it starts in the background ignore Ctrl-C, and with it all that the tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported here stays: its millions of objects are never searched for garbage, which takes many seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items):
    """Slow: of a test whose `quick` cases are named, the others; all in a browser but two files."""
    for item in items:
        quick = item.get_closest_marker("quick")
        in_browser = item.path.parent.name == "browser" and item.path.stem not in ("test_smoke", "test_browser_field")
        if (quick and item.callspec.id not in quick.args) or (in_browser and not item.get_closest_marker("long")):
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def own_folders(request, monkeypatch, tmp_path_factory):
    """Runs and cache of a test go to a folder of its own, never to the user's. Where it asks for
    none, the folder is only a name until something is written: to make thousands takes time."""
    if "tmp_path" in request.fixturenames:
        own = request.getfixturevalue("tmp_path")
    else:
        own = tmp_path_factory.getbasetemp() / f"own-{next(NUMBERS)}"
    monkeypatch.setenv("ADAPOP_RUNS", str(own / "runs"))
    monkeypatch.setenv("ADAPOP_CACHE", str(own / "cache"))


@pytest.fixture
def public(monkeypatch):
    """The app is one for strangers."""
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")


class Said(namedtuple("Said", "out err")):
    """What a command printed."""

    @property
    def rows(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def cli(capsys):
    """Does a command in this process, which must end with that status."""
    from adapop.cli import main

    def run_command(*words, status=0):
        capsys.readouterr()
        code, captured = main([str(word) for word in words]), capsys.readouterr()
        assert code == status, captured
        return Said(*captured)

    return run_command


@pytest.fixture
def begun(monkeypatch):
    """The configuration and facts of each run that a command begins; nothing is asked, and nothing trained."""
    runs = []
    checked = lambda options, config, facts: runs.append((config, facts)) or (facts, None)  # noqa: E731
    monkeypatch.setattr("adapop.cli.runs.checked_model", checked)
    monkeypatch.setattr("adapop.runs.execute.execute", lambda *run, **given: iter([]))
    return runs


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A real HTTP server on this machine that answers as a test tells it to, also huggingface_hub's own client."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def sandbox():
    return sandbox_facts()


@pytest.fixture(scope="session")
def small(sandbox):
    """32 facts a group, four of each exposure level, and 20 utility questions."""
    every = {group: sorted(getattr(sandbox, group), key=lambda fact: fact.score) for group in TRAINED_OR_HELD}
    groups = {group: tuple(facts[::8]) for group, facts in every.items()}
    return replace(sandbox, **groups, utility=sandbox.utility[::20])


@pytest.fixture(scope="session")
def tiny(sandbox):
    """4 facts a group, rare to popular, with one rewording each, and three utility questions: for whatever is not about
    recall."""

    def few(facts):
        chosen = sorted(facts, key=lambda fact: fact.score)[::65]
        return tuple(replace(fact, paraphrases=fact.paraphrases[:1]) for fact in chosen)

    groups = {group: few(getattr(sandbox, group)) for group in TRAINED_OR_HELD}
    return replace(sandbox, **groups, utility=sandbox.utility[::160])


@pytest.fixture(scope="session")
def bare(tiny):
    """Of `tiny` nothing but what is forgotten and retained: for runs whose measurements nobody looks at."""
    return replace(tiny, holdout=(), utility=())


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory):
    """One epoch of AdaPop on `tiny`, probed in every form, and relearnt. Who changes it copies its folder first."""
    from adapop.probes.battery import battery
    from adapop.probes.plan import Plan
    from adapop.progress import Progress
    from adapop.runs.execute import load_model

    run = trained(tiny, tmp_path_factory.mktemp("finished"))
    plan = Plan(per_tier=1, max_new_tokens=run.config.max_new_tokens)
    run.save_probes(list(battery(load_model(run), tiny, plan, Progress())))
    run.save_recovery("relearn", RELEARNT | {"returned": [tiny.forget[0].id]})
    return run


@pytest.fixture(scope="session")
def other(tiny, tmp_path_factory):
    """One epoch of WGA on `tiny`, not probed. Only to be read."""
    return trained(tiny, tmp_path_factory.mktemp("other"), "wga")


@pytest.fixture(scope="session")
def raced(bare, tmp_path_factory):
    """(worker, what the page keeps of it): a finished race of three, two seeds of each; a fact's text is an attack."""
    from adapop.service.worker import Worker
    from adapop.ui.compare import race
    from components import ANCHORS, run_values

    worker = Worker(tmp_path_factory.mktemp("races"))
    first, *others = bare.forget
    hostile = replace(bare, forget=(replace(first, subject=HOSTILE, relation=HOSTILE), *others))
    chosen = ["adapop/paper", "adapop/shuffled", "wga/paper"]
    state = race.begin(worker, hostile.sha256, hostile, "error", ANCHORS, chosen, 2, 1, None, *run_values())
    wait_until(lambda: not race.standing(worker, state).ticking)
    return worker, state


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The page, built and not served. Only to be read."""
    from adapop.service.worker import Worker
    from adapop.ui.page import build

    return build(Worker(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="session")
def fresh():
    """Gives the sandbox with a fresh adapter, which is the caller's to train: a copy of what was loaded once."""
    import torch

    from adapop.model.loading import adapted_model

    torch.set_num_threads(1)
    loaded = {}

    def load(method="adapop", **changes):
        config = make_config(method, **changes)
        key = config.to_json()
        if key not in loaded:
            loaded[key] = adapted_model(config)
        return copy.deepcopy(loaded[key])

    return load


@pytest.fixture(scope="module")
def original(fresh):
    """The sandbox before any unlearning: its adapter does nothing yet."""
    return fresh()


@pytest.fixture
def padded(monkeypatch):
    """Each row stands on a line of its own, padded, also where packing would pay."""
    monkeypatch.setattr("adapop.model.packing.SAVED", 1.0)


@pytest.fixture(scope="session")
def model(fresh):
    """One sandbox whose adapter does something, shared: do not train it."""
    from stirred import stirred  # which loads torch

    return stirred(fresh())
