import json
from dataclasses import fields
from itertools import product

import pytest

from adapop.config.methods import METHODS
from adapop.config.presets import PRESETS, RATES, SANDBOX_RATES, make_config, presets_of
from adapop.config.run import PAPER_RATE, RunConfig
from adapop.errors import ConfigError
from adapop.facts.fact import SANDBOX
from adapop.popularity.beta import BetaMap
from adapop.training.controller import DualAscent, FixedAlpha, PrimalDual, controller_of

MODELS = (SANDBOX, "some/model")


@pytest.mark.parametrize("model", MODELS)
def test_every_preset_of_every_method_is_built_and_survives_json(model):
    for method, preset in product(METHODS, (*PRESETS, "authors", "tuned")):
        if preset not in presets_of(method, model):  # also a control that would change nothing
            with pytest.raises(ConfigError, match=r"changes AdaPop|tuned|none that differs"):
                make_config(method, preset, model)
            continue
        config = make_config(method, preset, model)
        assert (config.method, config.preset, config.model) == (method, preset, model)
        assert RunConfig.from_json(config.to_json()) == config, (method, preset)
        assert controller_of(config).alpha0 == config.alpha0, (method, preset)
    for method in METHODS:
        rate = SANDBOX_RATES[method] if model == SANDBOX else PAPER_RATE
        assert make_config(method, model=model).learning_rate == rate and SANDBOX_RATES[method] in RATES


def test_settings_of_older_runs_and_methods():
    older = json.loads(make_config("wga", model="some/model").to_json())
    for name in ("last_step", "retain_loss", "alpha_max", "dual_rows"):
        del older[name]
    config = RunConfig.from_json(json.dumps(older))
    assert (config.last_step, config.retain_loss, config.alpha_max, config.dual_rows) == ("short", "own", None, 0)
    assert RunConfig.from_json(RunConfig().to_json()).last_step == "even"
    config = make_config("rmu", "authors", arguments={"predicting": False})
    assert config.arguments == {"coefficient": 6.5, "layer": 1, "predicting": False}
    assert config.lora_layers == (0, 1) and config.learning_rate == SANDBOX_RATES["rmu"]
    assert config.lora_targets == ("down_proj",) and config.batch == make_config("rmu").batch
    assert make_config("rmu", "authors").arguments == {"coefficient": 6.5, "layer": 1}, "no preset is changed for good"
    assert make_config("adapop", "gentle", alpha0=0.25).alpha0 == 0.25
    config = make_config("npo", beta=BetaMap.constant(0.3), arguments={"beta": 0.5}, system="Sei höflich 🦜\u2028")
    again = RunConfig.from_json(config.to_json())
    assert again == config
    assert isinstance(again.beta, BetaMap)
    assert isinstance(again.lora_targets, tuple)


def test_controller_of_a_method():
    alphas = {
        1.0: "wga gd npo rmu npo-sam simnpo altpo tpo idkdpo", 0.0: "ga flat ceu dpo rt", 0.1: "undial satimp",
        1200.0: "adaptive-rmu"}  # fmt: skip
    for alpha, methods in alphas.items():
        assert {controller_of(make_config(method)) for method in methods.split()} == {FixedAlpha(alpha)}
    assert controller_of(make_config("adapop")) == DualAscent(0.5)
    expected = PrimalDual(alpha0=1.0, dual_step=1.0, retain_bound=0.3, warmup=3, moves=16)
    assert controller_of(make_config("pdu")) == expected


@pytest.mark.parametrize(("preset", "settings"), [
    ("paper", {"controller": "dual", "alpha0": 0.5, "scores": "given", "beta": None}),
    ("gentle", {"controller": "dual", "alpha0": 1.0}),
    ("stress", {"controller": "dual", "reference": "start", "dual_step": 1.0}),
    ("alpha-fixed", {"controller": "fixed", "alpha0": 0.5}),
    ("as-released", {"alpha_max": 1.0, "retain_signal": "ema-rows", "normalise": "example-both"}),
    ("as-released", {"last_step": "rolled", "include_tail": True, "alpha0": 0.5}),
    ("shuffled", {"scores": "shuffled", "controller": "dual"}),
    ("inverted", {"scores": "inverted", "controller": "dual"}), ("beta-0.1", {"beta": BetaMap.constant(0.1)}),
    ("beta-1", {"beta": BetaMap.constant(1.0)}),
])  # fmt: skip
def test_preset_of_adapop(preset, settings):
    config = make_config("adapop", preset)
    assert {name: getattr(config, name) for name in settings} == settings


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
    assert {method for method in METHODS if "tuned" in presets_of(method)} == set(METHODS) - {
        "ga", "flat", "adaptive-rmu", "idkdpo", "dpo", "rt"}  # fmt: skip
    for method, model in (("wga", "some/model"), ("ga", SANDBOX), ("npo", "people")):
        with pytest.raises(ConfigError, match=f"no tuned settings for {model}.* in vain"):
            make_config(method, "tuned", model)
    # The sandbox's winners destroy half of the second world.
    assert {method for method in METHODS if "tuned" in presets_of(method, "people")} == {
        "adapop", "wga", "altpo", "redirect"}  # fmt: skip
    assert make_config("wga", "tuned", "people").learning_rate != make_config("wga", "tuned").learning_rate


@pytest.mark.parametrize(("method", "settings"), [
    ("rmu", {"arguments": {"predicting": False, "coefficient": 6.5}, "alpha0": 1200.0, "lora_layers": (5, 6, 7)}),
    ("undial", {"arguments": {"beta": 10.0}, "alpha0": 0.0, "lora_rank": 8}),
    ("altpo", {"arguments": {"beta": 0.1, "count": 5}, "epochs": 10, "weight_decay": 0.01, "learning_rate": 5e-5}),
    ("satimp", {"arguments": {"b2": 0.1}, "alpha0": 0.1, "batch": 16, "learning_rate": 1e-5}),
    ("pdu", {"alpha0": 100.0, "dual_step": 5.0, "warmup": 5, "dual_rows": 8, "retain_bound": 0.3, "epochs": 10}),
    ("tpo", {"arguments": {"beta": 0.32, "gamma": 1.0}, "alpha0": 0.0, "epochs": 10, "learning_rate": 1e-5}),
    ("flat", {"arguments": {"several": True}, "alpha0": 0.0, "learning_rate": 1e-5}),
    ("ceu", {"arguments": {}, "learning_rate": 2e-6, "alpha0": 0.0}),
])  # fmt: skip
def test_preset_of_authors(method, settings):
    config = make_config(method, "authors", "some/model")
    assert {name: getattr(config, name) for name in settings} == settings


def test_preset_of_the_paper():
    assert make_config("satimp", model="some/model").arguments == {"b2": 0.1}
    for method in ("rmu", "adaptive-rmu", "pdu"):
        assert make_config(method, model="some/model").arguments == {"predicting": False}
        assert make_config(method).arguments.get("predicting", True), "the sandbox's answers are one token"


OUT_OF_RANGE = [
    *((name, value) for name in ("epochs", "batch", "lora_rank") for value in (0, -1)), ("micro_batch", -1),
    *((name, value) for name in ("learning_rate", "clip") for value in (0.0, -1e-3, float("nan"))),
    ("scores", "guessed"), ("missing_score", "zero"), ("controller", "manual"), ("retain_signal", "some"),
    ("normalise", "batch"), ("retain_loss", "mse"), ("last_step", "long"), ("alpha_max", -1.0), ("dual_rows", -1),
    ("schedule", "cosine"), ("precision", "int4"), ("reference", "epoch_2"), ("max_new_tokens", 0),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "named"), [
    ({"method": "magic"}, "method is 'magic'"),
    ({"preset": "magic"}, "preset is 'magic'"),
    ({"lerning_rate": 1, "zeal": 2}, "lerning_rate, zeal"),
    *(({name: value}, name) for name, value in OUT_OF_RANGE),
])  # fmt: skip
def test_unknown_choices_and_values_out_of_range_are_named(arguments, named):
    with pytest.raises(ConfigError, match=named) as caught:
        make_config(**arguments)
    assert caught.value.fix
    content = json.loads(RunConfig().to_json()) | {"zeal": 1, "ardour": 2}
    with pytest.raises(ConfigError, match="ardour, zeal"):
        RunConfig.from_json(json.dumps(content))
