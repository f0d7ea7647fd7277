import ast
import inspect
import json
import os
import textwrap
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import get_args, get_type_hints

import pytest

import adapop
import own_methods
from adapop import RunConfig, execute, find_run, load_model, make_config, prepare, unlearn
from adapop.config.methods import method_named
from adapop.errors import ConfigError, RunError
from adapop.objectives import make_objective, objective_class
from adapop.paths import ROOT, VERSION
from adapop.popularity.beta import BetaMap
from adapop.probes.intervals import Interval, Summary
from adapop.probes.measure import Measurement
from adapop.probes.prompts import Prompt
from adapop.runs.listed import all_runs
from adapop.runs.pace import Pace
from adapop.training.events import EVENTS, EpochDone, Saved, StepDone
from raised import raised

FAST = {"epochs": 2, "batch": 2}


def steps(run):
    return [(event.epoch, event.step, event.forget_loss) for event in run.events() if isinstance(event, StepDone)]


def test_names_are_offered_and_documented():
    tree = ast.parse((ROOT / "adapop" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = {node.module.removeprefix("adapop."): {alias.name for alias in node.names} for node in block.body}
    assert imports == {module: set(names) for module, names in adapop.MODULES.items()}
    assert set(adapop.__all__) <= set(dir(adapop)) and adapop.__version__ == VERSION
    for name in adapop.__all__:
        member = getattr(adapop, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            assert member.__doc__ and member.__module__.startswith("adapop."), name
            methods = vars(member).items() if inspect.isclass(member) else ()
            bare = [key for key, value in methods if key[0] != "_" and inspect.isfunction(value) and not value.__doc__]
            assert bare == [], name
    with pytest.raises(AttributeError, match="no attribute 'unlern'"):
        adapop.unlern  # noqa: B018
    # A text right below a field is what an editor shows.
    types = {type(value) for value in adapop.METHODS.values()} | {type(value) for value in adapop.MODELS.values()}
    offered = [getattr(adapop, name) for name in adapop.__all__]
    for kind in (*offered, Measurement, Summary, Prompt, *EVENTS.values()):
        met(kind, types)
    kinds = {kind for kind in types if is_dataclass(kind)}
    assert {adapop.Check, Measurement, Interval, Pace, StepDone} <= kinds
    bare = {f"{kind.__module__}.{kind.__name__}": undocumented(kind) for kind in kinds}
    assert {name: fields for name, fields in bare.items() if fields} == {}
    open_ones = [item.__name__ for item in offered if is_dataclass(item) and not item.__dataclass_params__.frozen]
    assert open_ones == [] and fields(adapop.RunConfig)


def met(kind, types):
    """Adds to `types` every class and function of ours that whoever uses this one comes to hold: what it inherits, and
    what its fields, public methods and properties take and return."""
    for part in kind if isinstance(kind, list) else get_args(kind):
        met(part, types)
    if not (inspect.isclass(kind) or inspect.isfunction(kind)) or kind.__module__[:7] != "adapop." or kind in types:
        return
    types.add(kind)
    for base in getattr(kind, "__bases__", ()):
        met(base, types)
    members = [value for key, value in vars(kind).items() if key[0] != "_" or key == "__init__"]
    inside = [getattr(member, "fget", None) or getattr(member, "__func__", member) for member in members]
    for part in (kind, *filter(inspect.isfunction, inside)):
        for hint in get_type_hints(part).values():
            met(hint, types)


def undocumented(kind):
    """The fields of a dataclass, those that it inherits left out, without a text right below them."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    below = zip(tree.body, [*tree.body[1:], None])
    return [
        part.target.id for part, next_ in below if isinstance(part, ast.AnnAssign) and not isinstance(next_, ast.Expr)
    ]


def test_unlearn_returns_the_finished_run_and_shows_its_steps(bare, capsys):
    run = unlearn(make_config("wga", **FAST), bare, progress=False)
    assert run.state == "done" and run.measured().recall("forget") is not None
    assert find_run(run.id) == run
    assert capsys.readouterr().err == "", "no bar was asked for"
    unlearn(make_config("wga", **{**FAST, "learning_rate": 1e-9}), bare)
    said = capsys.readouterr()
    assert "wga" in said.err and "4/4" in said.err and "note: Nothing was forgotten" in said.out
    with pytest.raises(RunError, match="Too long for the model's context"):
        unlearn(make_config("wga"), replace(bare, forget=(replace(bare.forget[0], question="why " * 1100),)))


def test_a_method_of_ones_own_is_recorded_by_its_name_and_resumed(bare):
    config = make_config(own_methods.Focal(power=0.5), learning_rate=1e-3, **FAST)
    assert (config.method, config.arguments) == ("own_methods:Focal", {"power": 0.5})
    whole = unlearn(config, bare, progress=False)
    assert whole.config == replace(config, system="", beta=BetaMap()) and whole.id.startswith("focal-")

    parted = prepare(config, bare)
    for event in execute(parted):
        if isinstance(event, Saved):
            break
    assert parted.state == "interrupted" and parted.last_epoch == 1
    assert list(execute(parted))[-1].kind == "run_done" and steps(parted) == steps(whole)
    assert load_model(parted).generate([bare.forget[0].question], 3)


@pytest.mark.slow
def test_a_method_of_ones_own_is_no_other_than_ours(bare):
    """AdaPop written by hand is AdaPop, to the last digit."""
    settings = {"controller": "dual", "alpha0": 0.5, **FAST}
    own = unlearn(make_config(own_methods.ByScore, **settings), bare, progress=False)
    ours = unlearn(make_config("adapop", **settings), bare, progress=False)
    assert steps(own) == steps(ours) and own.betas == ours.betas
    steered = [[event.lam for event in run.events() if isinstance(event, EpochDone)] for run in (own, ours)]
    assert steered[0] == steered[1]


def test_methods_are_known_without_being_imported_but_must_be_importable(monkeypatch):
    assert make_config(objective_class("wga")) == make_config("wga")
    # What a page or the HTTP API sends comes to `make_config` as a text.
    raised(ConfigError, "method is 'own_methods:Focal'", make_config, "own_methods:Focal")
    assert method_named("own_methods:ByScore").scored and method_named("own_methods:Focal").about.startswith("Ascent")
    assert make_objective("own_methods:Focal", {"power": 0.5}).power == 0.5
    assert make_objective("own_methods:ByScore", {"floor": 0.5}).kept == ()
    unknown = method_named("not.loaded:Thing")
    assert (unknown.title, unknown.scored) == ("Thing", False)
    monkeypatch.setattr(own_methods.ByScore, "__doc__", " \n")
    assert "own_methods:ByScore" in method_named("own_methods:ByScore").about
    raised(ModuleNotFoundError, "", import_module, "not.loaded")

    class Inside(own_methods.Focal):
        """Defined in a function."""

    raised(ConfigError, "defined inside something else", make_config, Inside)
    raised(ConfigError, "NoMethod is not a method", make_config, own_methods.NoMethod)


@pytest.mark.parametrize(("method", "message"), [
    ("nowhere.at.all:Thing", "cannot be imported"), ("own_methods:Missing", "has no method 'Missing'"),
    ("own_methods:NoMethod", "subclass of Objective"), ("own_methods:Wanting", "A method may use"),
    (":Thing", "cannot be imported"), ("thing", "Unknown method 'thing'"),
])  # fmt: skip
def test_what_is_no_method_is_refused_by_name(method, message):
    raised(ConfigError, message, make_objective, method)


def test_a_method_and_anchors_of_ones_own_run_from_the_command_line(tiny, tmp_path, cli):
    tiny.write(tmp_path / "facts.jsonl")
    command = ("run", "--facts", tmp_path / "facts.jsonl", "--method", "own_methods:Focal", "--epochs", 1)
    assert cli(*command, "--json", status=3).rows[0]["method"] == "own_methods:Focal"
    assert "own_methods:Focal" in cli("runs").out
    cli("run", "--facts", tmp_path / "facts.jsonl", "--epochs", 1, "--anchors", "80:1.2,2000:0.2", status=3)
    assert adapop.BetaMap.from_anchors((80, 1.2), (2000, 0.2)) in [run.config.beta for run in all_runs()]
    assert "--anchors changes nothing" in cli(*command, "--anchors", "quantiles", status=2).err


def test_config_makes_any_run_again(bare, cli):
    """Settings that no option names, shuffled scores and dragged anchors included."""
    beta = adapop.BetaMap.from_anchors((80, 1.2), (2000, 0.2))
    config = make_config("adapop", "shuffled", beta=beta, clip=0.5, tolerance=0.01, learning_rate=1e-3, **FAST)
    first = unlearn(config, bare, progress=False)
    cli("run", "--config", first.folder / "config.json", status=3)
    again = next(run for run in all_runs() if run != first)
    assert again.config == first.config
    assert (again.betas, steps(again)) == (first.betas, steps(first))
    assert again.facts.forget == first.facts.forget

    cli("run", "--config", first.folder / "config.json", "--seed", 1, "--epochs", 1, status=3)
    other = next(run for run in all_runs() if run not in (first, again))
    assert other.config == replace(first.config, seed=1, epochs=1)
    first = prepare(make_config("adapop", "beta-mean", epochs=1), bare)
    assert first.config.beta.b == 0
    again = prepare(RunConfig.from_json((first.folder / "config.json").read_text(encoding="utf-8")), bare)
    assert again.config == first.config and again.betas == first.betas


def test_a_file_that_is_no_configuration_and_facts_beside_one_that_do_not_read_are_said(tmp_path, cli):
    huge = json.dumps(json.loads(make_config().to_json()) | {"alpha0": 1e300})
    none = "not a run's configuration"
    for content, options, message in (
        (None, "", "cannot be read"), ("not json", "", none), ("{}", "", none),
        ("{}", "--method wga", "already sets the method"), ("{}", "--preset gentle", "already sets the preset"),
        (huge, "", "alpha0 is 1e+300"),
    ):  # fmt: skip
        if content is not None:
            (tmp_path / "config.json").write_text(content)
        assert message in cli("run", "--config", tmp_path / "config.json", *options.split(), status=2).err
    if os.name != "nt":
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
            assert "it is no regular file" in cli("run", "--config", path, status=2).err
    (tmp_path / "config.json").write_text(make_config().to_json())
    (tmp_path / "facts.jsonl").write_text('{"question": "Who?", "answer": "I"}\n')
    assert "line 1, is not a fact" in cli("run", "--config", tmp_path / "config.json", status=2).err
