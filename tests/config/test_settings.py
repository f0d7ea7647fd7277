"""One declaration of the settings: text makes them by name, every way in knows the same names, and every number has a
range and says it; what is in range and still too much ends in words, never in a bug."""

import json
from dataclasses import fields, replace

import pytest

from adapop.cli import main, parser
from adapop.cli.options import NAMED, settings_of
from adapop.config.presets import make_config
from adapop.config.run import RunConfig, meanings
from adapop.config.settings import SEPARATE, read_settings, value_of
from adapop.errors import ConfigError, RunError
from adapop.objectives import make_objective
from adapop.popularity.beta import BetaMap
from adapop.runs.execute import execute, prepare
from adapop.training.events import RunDone, RunFailed, Saved, to_json
from adapop.ui.api_values import OWN, others_of
from adapop.ui.run.configuration import ADVANCED, FURTHER, VISIBLE, config_of, entry_of
from commands import commands
from tiny_runs import tiny_config


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


def test_text_becomes_values_of_the_setting_s_type():
    for name in NAMED:
        value = getattr(RunConfig(), name)
        assert value_of(name, ",".join(value) if isinstance(value, tuple) else str(value)) == value
    pairs = ["lora-rank=8", "lora_layers=0,2", "revision=none", "cosine=yes", "beta2=0.5", "source=model", "batch = 4"]
    assert read_settings(pairs) == {
        "lora_rank": 8, "lora_layers": (0, 2), "revision": None, "cosine": True, "batch": 4,
        "arguments": {"beta2": 0.5, "source": "model"}}  # fmt: skip
    # Of WGA, NPO and others; the curve of AdaPop is given by its anchors.
    found = read_settings(["beta=0.1", "learning_rate=1e-5"])
    assert found == {"arguments": {"beta": 0.1}, "learning_rate": 1e-5}
    assert make_config("npo", **found).arguments["beta"] == 0.1
    with pytest.raises(ConfigError, match="beta"):
        make_objective("adapop", make_config("adapop", **found).arguments)
    for pair, said in (
        ("lora_rank", "sets nothing"), ("=3", "sets nothing"), ("batch=many", "no int"), ("cosine=2", "no bool"),
        ("model=x", "not set here"), ("tolerance=a", "no float")):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            read_settings([pair])


def test_options_and_set_together_make_the_settings():
    words = "run --lr 0.5 --cosine --four-bit no --set scores=given --set lora_rank=4"
    options = parser().parse_args(words.split())
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


NUMBERS = [item.name for item in fields(RunConfig) if type(item.default) in (int, float)]
TOO_MUCH = (1e300, -1e300, 1e31, float("inf"), float("nan"), 10**400, -1, True, "much")


def test_numbers_without_a_range():
    assert {"learning_rate", "weight_decay", "alpha0", "tolerance", "clip", "floor", "seed", "epochs"} <= set(NUMBERS)
    with pytest.raises(ConfigError, match=r"argument beta is 1e\+300"):
        make_config("npo", arguments={"beta": 1e300})
    with pytest.raises(ConfigError, match="high at most 1e"):
        BetaMap.constant(1e300)
    start = make_config()
    for field in ("learning_rate", "alpha0", "tolerance"):
        values = {name: entry_of(start, name) for name in (*VISIBLE, *ADVANCED)} | {field: 1e300}
        with pytest.raises(ConfigError, match=f"{field} is 1e"):
            config_of(list(values.values()))
    with pytest.raises(RunError, match="saved is not finite"):
        to_json(replace(Saved(run="x", epoch=1), time=float("nan")))


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_a_range_and_says_it(name):
    for value in TOO_MUCH:
        with pytest.raises(ConfigError, match=f"^{name} is .*must be a") as caught:
            make_config(**{name: value})
        assert len(str(caught.value)) < 200


def test_what_is_counted_is_whole_and_no_divisor_is_nearly_nothing():
    for name in ("epochs", "batch", "lora_rank", "lora_alpha", "max_new_tokens", "warmup", "seed"):
        with pytest.raises(ConfigError, match="whole number"):
            make_config(**{name: 2.5})
    for name in ("learning_rate", "clip", "floor"):
        with pytest.raises(ConfigError, match="from 1e-12"):
            make_config(**{name: 1e-300})


def test_the_command_line_says_it(capsys, tmp_path):
    assert main(["run", "--lr", "1e300"]) == 2
    assert "learning_rate is 1e+300" in capsys.readouterr().err
    path = tmp_path / "config.json"
    for name in ("weight_decay", "alpha0", "tolerance"):
        path.write_text(json.dumps({**json.loads(make_config().to_json()), name: 1e300}), encoding="utf-8")
        assert main(["run", "--config", str(path)]) == 2
        assert f"{name} is 1e+300" in capsys.readouterr().err


LARGEST = {
    "learning_rate": 1e30, "alpha0": 1e30, "dual_step": 1e30, "weight_decay": 1e30, "lora_alpha": 10**6, "clip": 1e30,
    "lam_max": 1e30, "floor": 1e-12,
}  # fmt: skip


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
    with pytest.raises(RuntimeError, match="a shape"):
        list(execute(prepare(tiny_config(), tiny)))
