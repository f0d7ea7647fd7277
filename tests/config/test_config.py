import json
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest

from adapop import METHODS, BetaMap, execute, prepare
from adapop.cli import parser
from adapop.cli.options import NAMED, settings_of
from adapop.config.presets import PRESETS, RATES, SANDBOX_RATES, make_config, presets_of
from adapop.config.run import PAPER_RATE, SEPARATE, RunConfig, meanings, read_settings, value_of
from adapop.errors import ConfigError, RunError
from adapop.facts.fact import SANDBOX
from adapop.objectives import make_objective
from adapop.training.controller import DualAscent, FixedAlpha, PrimalDual, controller_of
from adapop.training.events import RunDone, RunFailed, Saved, to_json
from adapop.ui.api_values import OWN, others_of
from adapop.ui.run.configuration import ADVANCED, FURTHER, VISIBLE
from commands import commands
from raised import raised
from tiny_runs import tiny_config

NUMBERS = [item.name for item in fields(RunConfig) if type(item.default) in (int, float)]


@pytest.mark.parametrize("model", (SANDBOX, "some/model"))
def test_every_preset_of_every_method_is_built_and_survives_json(model):
    for method, preset in product(METHODS, (*PRESETS, "authors", "tuned")):
        if preset not in presets_of(method, model):  # also a control that would change nothing
            raised(ConfigError, r"changes AdaPop|tuned|other than the paper's", make_config, method, preset, model)
            continue
        config = make_config(method, preset, model)
        assert (config.method, config.preset, config.model) == (method, preset, model)
        assert RunConfig.from_json(config.to_json()) == config, (method, preset)
        assert controller_of(config).alpha0 == config.alpha0, (method, preset)
    for method in METHODS:
        rate = SANDBOX_RATES[method] if model == SANDBOX else PAPER_RATE
        assert make_config(method, model=model).learning_rate == rate and SANDBOX_RATES[method] in RATES


def test_settings_of_methods():
    config = make_config("rmu", "authors", arguments={"predicting": False})
    assert config.arguments == {"coefficient": 6.5, "layer": 1, "predicting": False}
    assert config.lora_layers == (0, 1) and config.learning_rate == SANDBOX_RATES["rmu"]
    assert config.lora_targets == ("down_proj",) and config.batch == make_config("rmu").batch
    assert make_config("rmu", "authors").arguments == {"coefficient": 6.5, "layer": 1}, "no preset is changed for good"
    assert make_config("adapop", "gentle", alpha0=0.25).alpha0 == 0.25
    config = make_config("npo", beta=BetaMap.constant(0.3), arguments={"beta": 0.5}, system="Sei höflich 🦜\u2028")
    again = RunConfig.from_json(config.to_json())
    assert again == config and isinstance(again.beta, BetaMap) and isinstance(again.lora_targets, tuple)


def test_controller_and_preset_of_the_paper_of_each_method():
    alphas = {
        1.0: "wga gd npo rmu npo-sam simnpo altpo tpo idkdpo", 0.0: "ga flat ceu dpo rt", 0.1: "undial satimp",
        1200.0: "adaptive-rmu"}  # fmt: skip
    for alpha, methods in alphas.items():
        assert {controller_of(make_config(method)) for method in methods.split()} == {FixedAlpha(alpha)}
    assert controller_of(make_config("adapop")) == DualAscent(0.5)
    expected = PrimalDual(alpha0=1.0, dual_step=1.0, retain_bound=0.3, warmup=3, dual_rows=1)
    assert controller_of(make_config("pdu")) == expected
    assert make_config("satimp", model="some/model").arguments == {"b2": 0.1}
    for method in ("rmu", "adaptive-rmu", "pdu"):
        assert make_config(method, model="some/model").arguments == {"predicting": False}
        assert make_config(method).arguments.get("predicting", True), "the sandbox's answers are one token"


def test_what_a_preset_changes():
    settings = {"alpha0": 0.7, "dual_step": 0.2, "tolerance": 0.3, "lam_max": 4.0, "floor": 1e-3, "reference": "start"}
    settings["alpha_max"] = 3.0
    assert controller_of(make_config(**settings)) == DualAscent(**settings)
    assert all(method.title and method.paper and len(method.about) <= 120 for method in METHODS.values())
    assert [name for name, method in METHODS.items() if method.scored] == ["adapop", "redirect"]
    assert [name for name, method in METHODS.items() if method.needs] == ["altpo", "dpo", "redirect"]
    real = {method for method in METHODS if "authors" in presets_of(method, "some/model")}
    here = {method for method in METHODS if "authors" in presets_of(method)}
    refusing = {"idkdpo", "dpo", "rt"}
    assert here == {"npo", "simnpo", "undial", "rmu", "adaptive-rmu", "pdu", "altpo", "tpo", "flat"} | refusing
    assert real - here == {"satimp", "ceu", "wga"}, "theirs differ in rate and batch alone, which here are ours"
    assert presets_of("adapop", "some/model") == tuple(PRESETS) and presets_of("ga", "some/model") == ("paper",)
    known = {item.name for item in fields(RunConfig)}
    for method in METHODS.values():
        for settings in (method.settings, method.authors, method.tuned, method.people_tuned, method.sandbox):
            assert set(settings) <= known
    assert all(set(settings) <= known for settings in PRESETS.values())


def test_tuned_presets_are_of_worlds_whose_search_found_something():
    tuned = {method for method in METHODS if "tuned" in presets_of(method)}
    assert {"adapop", "wga", "altpo"} <= tuned and not tuned & {"ga", "flat", "adaptive-rmu", "idkdpo", "dpo", "rt"}
    for method, model in (("wga", "some/model"), ("ga", SANDBOX), ("npo", "people")):
        raised(ConfigError, f"no tuned settings for {model}", make_config, method, "tuned", model)
    # The sandbox's winners destroy half of the second world.
    assert {method for method in METHODS if "tuned" in presets_of(method, "people")} == {
        "adapop", "wga", "altpo", "redirect"}  # fmt: skip
    assert make_config("wga", "tuned", "people").learning_rate != make_config("wga", "tuned").learning_rate


@pytest.mark.parametrize(("preset", "settings"), [
    ("paper", {"controller": "dual", "alpha0": 0.5, "scores": "given", "beta": None}),
    ("gentle", {"controller": "dual", "alpha0": 1.0}),
    ("stress", {"controller": "dual", "reference": "start", "dual_step": 1.0}),
    ("alpha-fixed", {"controller": "fixed", "alpha0": 0.5}),
    ("as-released", {"alpha_max": 1.0, "retain_signal": "ema-rows", "normalise": "example-both", "alpha0": 0.5}),
    ("as-released", {"last_step": "rolled", "include_tail": True}),
    ("shuffled", {"scores": "shuffled", "controller": "dual"}),
    ("inverted", {"scores": "inverted", "controller": "dual"}), ("beta-0.1", {"beta": BetaMap.constant(0.1)}),
    ("beta-1", {"beta": BetaMap.constant(1.0)}),
    ("rmu", {"arguments": {"predicting": False, "coefficient": 6.5}, "alpha0": 1200.0, "lora_layers": (5, 6, 7)}),
    ("undial", {"arguments": {"beta": 10.0}, "alpha0": 0.0, "lora_rank": 8}),
    ("altpo", {"arguments": {"beta": 0.1, "count": 5}, "epochs": 10, "weight_decay": 0.01, "learning_rate": 5e-5}),
    ("satimp", {"arguments": {"b2": 0.1}, "alpha0": 0.1, "batch": 16, "learning_rate": 1e-5}),
    ("pdu", {"alpha0": 100.0, "dual_step": 5.0, "warmup": 5, "dual_rows": 8, "retain_bound": 0.3, "epochs": 10}),
    ("simnpo", {"arguments": {"beta": 2.5, "delta": 0.0, "gamma": 0.1375}, "alpha0": 1.0, "learning_rate": 1e-5}),
    ("tpo", {"arguments": {"beta": 0.32, "gamma": 1.0}, "alpha0": 0.0, "epochs": 10, "learning_rate": 1e-5}),
    ("flat", {"arguments": {"several": True}, "alpha0": 0.0, "learning_rate": 1e-5}),
    ("ceu", {"arguments": {}, "learning_rate": 2e-6, "alpha0": 0.0})])  # fmt: skip
def test_preset_of_adapop_and_of_a_methods_authors(preset, settings):
    chosen = (preset, "authors", "some/model") if preset in METHODS else ("adapop", preset)
    config = make_config(*chosen)
    assert {name: getattr(config, name) for name in settings} == settings


OUT_OF_RANGE = [
    *((name, value) for name in ("epochs", "batch", "lora_rank") for value in (0, -1)), ("micro_batch", -1),
    *((name, value) for name in ("learning_rate", "clip") for value in (0.0, -1e-3, float("nan"))),
    ("scores", "guessed"), ("missing_score", "zero"), ("controller", "manual"), ("retain_signal", "some"),
    ("normalise", "batch"), ("retain_loss", "mse"), ("last_step", "long"), ("alpha_max", -1.0), ("dual_rows", -1),
    ("schedule", "cosine"), ("precision", "int4"), ("reference", "epoch_2"), ("max_new_tokens", 0),
    ("epochs", 5.0), ("four_bit", "false"), ("cosine", "no"), ("lora_rank", 10**6), ("lora_layers", ()),
    ("lora_layers", (1.5,)), ("lora_targets", ()), ("lora_targets", "q_proj"), ("system", 5), ("facts", "\ud800"),
    ("lora_targets", ("\ud800",)), ("beta", 0.5), ("arguments", None)]  # fmt: skip


@pytest.mark.parametrize(("arguments", "named"), [
    ({"method": "magic"}, "method is 'magic'"), ({"preset": "magic"}, "preset is 'magic'"),
    ({"lerning_rate": 1, "zeal": 2}, "lerning_rate, zeal"), *(({name: value}, name) for name, value in OUT_OF_RANGE),
])  # fmt: skip
def test_unknown_choices_and_values_out_of_range_are_named(arguments, named):
    assert raised(ConfigError, named, make_config, **arguments).fix
    content = json.loads(RunConfig().to_json()) | {"zeal": 1, "ardour": 2}
    raised(ConfigError, "ardour, zeal", RunConfig.from_json, json.dumps(content))


def test_a_setting_that_does_not_exist_is_named_with_the_one_it_is_like(capsys):
    raised(ConfigError, "Unknown settings: learning_rat. Did you mean learning_rate?", make_config, learning_rat=1e-4)
    stored = json.dumps(json.loads(make_config().to_json()) | {"epoch": 3})
    raised(ConfigError, "Unknown settings: epoch. Did you mean epochs?", RunConfig.from_json, stored)
    raised(ConfigError, "adapop has no lora_rnk. Did you mean lora_rank?", make_objective, "adapop", {"lora_rnk": 8})
    raised(ConfigError, "npo has no betta. Did you mean beta?", make_objective, "npo", {"betta": 8})
    raised(ConfigError, "'redirct'. Did you mean redirect?", make_config, "redirct")
    raised(ConfigError, "start is 'stf'. Did you mean sft?", make_config, start="stf")
    assert "Did you mean" not in raised(ConfigError, "Unknown settings: zzz", make_config, zzz=1).fix
    for words in (["run", "--lerning-rate", "1"], ["check", "--lerning-rate=1"]):
        with pytest.raises(SystemExit):
            parser().parse_args(words)
        assert "Did you mean --learning-rate?" in capsys.readouterr().err


def test_every_setting_says_what_it_is_and_is_an_option_of_run_and_of_check():
    names = {item.name for item in fields(RunConfig)}
    assert set(meanings()) == names and {*NAMED, *SEPARATE} == names and set(OWN) <= names
    assert {*VISIBLE, *ADVANCED} - {FURTHER} <= names
    for command in ("run", "check"):
        options = {option for action in commands()[command]._actions for option in action.option_strings}
        assert {f"--{name.replace('_', '-')}" for name in NAMED} <= options
        assert {"--lr", "--rank", "--targets", "--retain", "--set", "--known-only"} <= options
        assert "example: python -m adapop" in commands()[command].format_help()
    assert all(command.epilog for command in commands().values())


def test_text_becomes_values_of_the_setting_s_type():
    for name in NAMED:
        value = getattr(RunConfig(), name)
        assert value_of(name, ",".join(value) if isinstance(value, tuple) else str(value)) == value
    pairs = ["lora-rank=8", "lora_layers=0,2", "revision=none", "cosine=yes", "beta2=0.5", "source=model", "batch = 4"]
    assert read_settings(pairs) == {
        "lora_rank": 8, "lora_layers": (0, 2), "revision": None, "cosine": True, "batch": 4,
        "arguments": {"beta2": 0.5, "source": "model"}}  # fmt: skip
    assert value_of("lora_layers", "0-3, 7") == (0, 1, 2, 3, 7)
    for text in ("-3", "3-", "5-2", "0-99999999", "1-2-3"):
        raised(ConfigError, f"lora_layers is '{text}'", value_of, "lora_layers", text)
    assert read_settings([f"x={'[' * 100_000}"])["arguments"]["x"].startswith("[["), "no list, so a text"
    # Of WGA, NPO and others; the curve of AdaPop is given by its anchors.
    settings = read_settings(["beta=0.1", "learning_rate=1e-5"])
    assert settings == {"arguments": {"beta": 0.1}, "learning_rate": 1e-5}
    assert make_config("npo", **settings).arguments["beta"] == 0.1
    raised(ConfigError, "beta", make_objective, "adapop", make_config("adapop", **settings).arguments)
    for pair, message in (
        ("lora_rank", "sets nothing"), ("=3", "sets nothing"), ("batch=many", "of type int"),
        ("cosine=2", "of type bool"), ("model=x", "not set here"), ("tolerance=a", "of type float")):  # fmt: skip
        raised(ConfigError, message, read_settings, [pair])


def test_options_and_set_together_make_the_settings():
    words = "run --lr 0.5 --cosine --four-bit no --set scores=given --set lora_rank=4"
    options = parser().parse_args(words.split())
    raised(ConfigError, "not set here", settings_of, options)
    options.set = ["warm=2", "lora_rank=4"]
    found = settings_of(options)
    assert found == {
        "learning_rate": 0.5, "cosine": True, "four_bit": False, "lora_rank": 4, "arguments": {"warm": 2}}  # fmt: skip
    options.set = ["learning_rate=1"]
    raised(ConfigError, "given twice", settings_of, options)


def test_a_program_sets_what_the_page_shows_and_on_a_public_page_no_more(monkeypatch):
    assert others_of({"lora_rank": 8, "lora_targets": ["q_proj"], "cosine": False}, "sandbox") == {
        "lora_rank": 8, "lora_targets": ("q_proj",), "cosine": False}  # fmt: skip
    assert others_of({"nope": 1}, "sandbox") == {"arguments": {"nope": 1}}, "which the method refuses if it has none"
    assert others_of({"system": "Answer. " * 99}, "sandbox")["system"] == "Answer. " * 99
    never = ({"model": "x"}, {"epochs": 10**6}, [1], {"lora_rank": "many"}, {"system": {}}, {"lora_targets": [[]]})
    for wrong in never:
        raised(ConfigError, "", others_of, wrong, "sandbox")
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    assert others_of({"lora_rank": 8}, "sandbox") == {"lora_rank": 8}
    hidden = ({"nope": 1}, {"max_new_tokens": 10**6})
    for wrong, model in (*((one, "sandbox") for one in hidden), ({"lora_rank": 999}, "sandbox"), (None, "some/model")):
        raised(ConfigError, "", others_of, wrong, model)


def test_numbers_of_numpy_and_lists_of_python_are_settings_too():
    config = make_config(learning_rate=np.float64(1e-3), lora_targets=["q_proj"])
    assert (config.learning_rate, config.lora_targets) == (1e-3, ("q_proj",))


def test_numbers_without_a_range_and_what_is_counted_is_whole():
    assert {"learning_rate", "weight_decay", "alpha0", "tolerance", "clip", "floor", "seed", "epochs"} <= set(NUMBERS)
    raised(ConfigError, r"argument beta is 1e\+300", make_config, "npo", arguments={"beta": 1e300})
    raised(ConfigError, "high at most 1e", BetaMap.constant, 1e300)
    raised(RunError, "'saved' is not finite", to_json, replace(Saved(run="x", epoch=1), time=float("nan")))
    for name in ("epochs", "batch", "lora_rank", "lora_alpha", "max_new_tokens", "warmup", "seed"):
        raised(ConfigError, "whole number", make_config, **{name: 2.5})
    for name in ("learning_rate", "clip", "floor"):
        raised(ConfigError, "from 1e-12", make_config, **{name: 1e-300})


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_a_range_and_says_it(name):
    for value in (1e300, -1e300, 1e31, float("inf"), float("nan"), 10**400, -1, True, "much"):
        assert len(str(raised(ConfigError, f"^{name} is .*must be a", make_config, **{name: value}))) < 200


LARGEST = {
    "learning_rate": 1e30, "alpha0": 1e30, "dual_step": 1e30, "weight_decay": 1e30, "lora_alpha": 10**6, "clip": 1e30,
    "lam_max": 1e30, "floor": 1e-12}  # fmt: skip


@pytest.mark.quick("adapop-learning_rate", "adapop-alpha0", "pdu-learning_rate")
@pytest.mark.parametrize("name", LARGEST)
@pytest.mark.parametrize("method", ["adapop", "pdu"])
def test_the_largest_allowed_ends_in_words(tiny, name, method):
    run = prepare(tiny_config(method, **{name: LARGEST[name]}), tiny)
    last = list(execute(run))[-1]
    assert isinstance(last, (RunDone, RunFailed))
    assert isinstance(last, RunDone) or ("finite" in last.message and "Lower" in last.fix), last


def test_a_number_too_large_for_its_type_is_not_a_bug_and_another_error_of_torch_is(tiny, monkeypatch):
    errors = [OverflowError("math range error"), RuntimeError("value cannot be converted without overflow")]

    def broken(*_):
        raise errors.pop()

    monkeypatch.setattr("adapop.training.trainer.step_gradient", broken)
    while errors:
        last = list(execute(prepare(tiny_config(), tiny)))[-1]
        assert isinstance(last, RunFailed) and "Epoch 1, step 1" in last.message
        assert "finite" in last.message and "report" not in last.fix
    errors = [RuntimeError("a shape is wrong")]
    raised(RuntimeError, "a shape", list, execute(prepare(tiny_config(), tiny)))
