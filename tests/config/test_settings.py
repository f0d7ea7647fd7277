"""One declaration of the settings: text makes them by name, and every way in knows the same names."""

from dataclasses import fields

import pytest

from adapop.cli import parser
from adapop.cli.options import NAMED, settings_of
from adapop.config.presets import make_config
from adapop.config.run import RunConfig, meanings
from adapop.config.settings import SEPARATE, read_settings, value_of
from adapop.errors import ConfigError
from adapop.objectives import make_objective
from adapop.ui.api_values import OWN, others_of
from adapop.ui.run.configuration import ADVANCED, FURTHER, VISIBLE
from commands import commands


def test_every_setting_says_what_it_is_and_is_an_option_of_run_and_of_check():
    names = {item.name for item in fields(RunConfig)}
    assert set(meanings()) == names
    assert {*NAMED, *SEPARATE} == names and set(OWN) <= names
    assert {*VISIBLE, *ADVANCED} - {FURTHER} <= names
    for command in ("run", "check"):
        options = {option for action in commands()[command]._actions for option in action.option_strings}
        assert {f"--{name.replace('_', '-')}" for name in NAMED} <= options
        assert {"--lr", "--rank", "--targets", "--retain", "--set", "--known-only"} <= options
        assert "example: python -m adapop" in commands()[command].format_help()
    assert all(command.epilog for command in commands().values())


@pytest.mark.parametrize("name", NAMED)
def test_a_default_written_as_text_is_the_default(name):
    value = getattr(RunConfig(), name)
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    assert value_of(name, text) == value


def test_text_becomes_values_of_the_setting_s_type():
    pairs = ["lora-rank=8", "lora_layers=0,2", "revision=none", "cosine=yes", "beta2=0.5", "source=model", "batch = 4"]
    assert read_settings(pairs) == {
        "lora_rank": 8, "lora_layers": (0, 2), "revision": None, "cosine": True, "batch": 4,
        "arguments": {"beta2": 0.5, "source": "model"},
    }  # fmt: skip
    # Of WGA, NPO and others; the curve of AdaPop is given by its anchors.
    found = read_settings(["beta=0.1", "learning_rate=1e-5"])
    assert found == {"arguments": {"beta": 0.1}, "learning_rate": 1e-5}
    assert make_config("npo", **found).arguments["beta"] == 0.1
    with pytest.raises(ConfigError, match="beta"):
        make_objective("adapop", make_config("adapop", **found).arguments)


@pytest.mark.parametrize(
    ("pair", "said"),
    [("lora_rank", "sets nothing"), ("=3", "sets nothing"), ("batch=many", "no int"), ("cosine=2", "no bool"),
     ("model=x", "not set here"), ("tolerance=a", "no float")],
)  # fmt: skip
def test_what_sets_nothing_is_refused(pair, said):
    with pytest.raises(ConfigError, match=said):
        read_settings([pair])


def test_options_and_set_together_make_the_settings():
    options = parser().parse_args(
        ["run", "--lr", "0.5", "--cosine", "--four-bit", "no", "--set", "scores=given", "--set", "lora_rank=4"]
    )
    with pytest.raises(ConfigError, match="not set here"):
        settings_of(options)
    options.set = ["warm=2", "lora_rank=4"]
    found = settings_of(options)
    assert found == {
        "learning_rate": 0.5, "cosine": True, "four_bit": False, "lora_rank": 4, "arguments": {"warm": 2}
    }  # fmt: skip
    options.set = ["learning_rate=1"]
    with pytest.raises(ConfigError, match="given twice"):
        settings_of(options)


def test_a_program_sets_what_the_page_shows_and_on_a_public_page_no_more(monkeypatch):
    assert others_of({"lora_rank": 8, "lora_targets": ["q_proj"], "cosine": False}, "sandbox") == {
        "lora_rank": 8, "lora_targets": ("q_proj",), "cosine": False
    }  # fmt: skip
    assert others_of({"nope": 1}, "sandbox") == {"arguments": {"nope": 1}}, "which the method refuses if it has none"
    for wrong in ({"model": "x"}, {"epochs": 10**6}, [1], {"lora_rank": "many"}):
        with pytest.raises(ConfigError):
            others_of(wrong, "sandbox")
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    assert others_of({"lora_rank": 8}, "sandbox") == {"lora_rank": 8}
    hidden = ({"nope": 1}, {"max_new_tokens": 10**6})
    for wrong, model in (*((one, "sandbox") for one in hidden), ({"lora_rank": 999}, "sandbox"), (None, "some/model")):
        with pytest.raises(ConfigError):
            others_of(wrong, model)
