"""Every number of a run has a range and says it; what is in range and still too much ends in words, never in a bug."""

import json
from dataclasses import fields, replace

import pytest

from adapop.cli import main
from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError, RunError
from adapop.popularity.beta import BetaMap
from adapop.runs.execute import execute, prepare
from adapop.training.events import RunDone, RunFailed, Saved, to_json
from adapop.ui.run.configuration import ADVANCED, VISIBLE, config_of, entry_of
from tiny_runs import tiny_config

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
@pytest.mark.parametrize("value", TOO_MUCH, ids=lambda value: str(value)[:8])
def test_every_number_has_a_range_and_says_it(name, value):
    with pytest.raises(ConfigError, match=f"^{name} is .*must be a") as caught:
        make_config(**{name: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["epochs", "batch", "lora_rank", "lora_alpha", "max_new_tokens", "warmup", "seed"])
def test_what_is_counted_is_whole(name):
    with pytest.raises(ConfigError, match="whole number"):
        make_config(**{name: 2.5})


@pytest.mark.parametrize("name", ["learning_rate", "clip", "floor"])
def test_what_is_divided_by_or_stepped_with_is_not_nearly_nothing(name):
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


@pytest.mark.parametrize(
    "error",
    [
        OverflowError("math range error"),
        FloatingPointError("overflow"),
        RuntimeError("value cannot be converted to type float without overflow"),
    ],
)
def test_a_number_too_large_for_its_type_is_not_a_bug(tiny, monkeypatch, error):
    def overflown(*_):
        raise error

    run = prepare(tiny_config(), tiny)
    monkeypatch.setattr("adapop.training.trainer.step_gradient", overflown)
    last = list(execute(run))[-1]
    assert isinstance(last, RunFailed) and "Epoch 1, step 1" in last.message
    assert "finite" in last.message and "report" not in last.fix


def test_another_error_of_torch_is_still_one(tiny, monkeypatch):
    def broken(*_):
        raise RuntimeError("a shape is wrong")

    run = prepare(tiny_config(), tiny)
    monkeypatch.setattr("adapop.training.trainer.step_gradient", broken)
    with pytest.raises(RuntimeError, match="a shape"):
        list(execute(run))
