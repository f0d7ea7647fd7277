"""The presets, and the configuration that a method gets under one: `make_config`.

"paper" is what Borisiuk et al. 2026 state, or where they name no value the nearest public LoRA port
of their runs. "authors" is what a method's own authors recommend, "as-released" what AdaPop's
public code does, "tuned" what recorded searches chose on a shipped model. Sources stand in
`assets/methods.json` under `why`. Rates on shipped models are ours, by the rule above `RATES`."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from adapop.config.methods import METHODS, method_named, tuned_on
from adapop.config.run import RunConfig, check_choice, check_known
from adapop.errors import ConfigError, truncated
from adapop.facts.fact import PEOPLE, SANDBOX
from adapop.paths import SHIPPED
from adapop.popularity.beta import BetaMap

# The rule for a method's rate on the sandbox, the same for all; `bench rates` repeats the trials.
# Candidates are those RATES that after 5 epochs at seed 0 keep a trained retain recall >=
# RETAIN_KEPT. Of these the lowest is chosen whose recall on the trained forget questions is <=
# FORGOTTEN, else the one with the lowest such recall. Without a candidate: the rate that keeps most
# retain recall. Holdout, rewordings, utility and probes play no part.
RATES = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
RETAIN_KEPT, FORGOTTEN = 0.95, 1 / 3
PAPER_RATES = (1e-6, 5e-6, 1e-5, 5e-5, 1e-4)  # the paper's sweep, its main rate last
# In the world of people the rule chose rates for adapop, wga, npo, gd, satimp, undial, simnpo and
# redirect; the other methods have the sandbox's rates there.
SANDBOX_RATES = {name: method.sandbox_rate for name, method in METHODS.items()}
PEOPLE_RATES = {name: method.people_rate or method.sandbox_rate for name, method in METHODS.items()}
# Presets of AdaPop; a comparison needs the controls among them to be evidence. Other methods have
# "paper"; AUTHORS if their authors recommend something else; and TUNED on shipped models.
AUTHORS, TUNED = "authors", "tuned"
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    # github.com/vValkroVv/unlearning: src/trainer/unlearn/ada_pop.py (alpha clipped to gamma = 1,
    # smoothed retain loss of single rows), src/data/utils.py (the end of the turn is trained on);
    # 32 micro-batches of a row, by HF's Trainer
    "as-released": {
        "alpha_max": 1.0,
        "retain_signal": "ema-rows",
        "normalise": "example-both",
        "include_tail": True,
        "last_step": "rolled",
    },
    "gentle": {"alpha0": 1.0},
    "stress": {"reference": "start", "dual_step": 1.0},
    "alpha-fixed": {"controller": "fixed"},
    "shuffled": {"scores": "shuffled"},
    "inverted": {"scores": "inverted"},
    "beta-0.1": {"beta": BetaMap.constant(0.1)},
    "beta-1": {"beta": BetaMap.constant(1.0)},
    # its beta is the mean of the set's betas, known once the facts are: see `runs.execute.prepare`
    "beta-mean": {},
}
SANDBOX_SETTINGS = {
    "batch": 16,
    "micro_batch": 16,
    "precision": "float32",
    "max_new_tokens": 3,
    "frames": 2,
    "schedule": "linear",
    "lora_targets": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
}
REAL_SETTINGS = {"asking": "auto", "answers": "auto", "unknown": "auto", "measure_per_tier": None}
PACKAGED_SETTINGS = {"batch": 16, "alpha0": 1.0}  # those at which `bench real` chose its rates
PEOPLE_SETTINGS = {"max_new_tokens": 5}  # answers have up to four tokens, and an end


def make_config(
    method: str | type | object = "adapop",
    preset: str = "paper",
    model: str = SANDBOX,
    **changes: Any,
) -> RunConfig:
    """The configuration of a method under a preset, on a model, with `changes` on top.

    method: a key of `METHODS`, or a user's own method: a subclass of `Objective`, or an instance of
    one, whose fields are then the arguments. It is recorded as "package.module:Class", so a run can
    be resumed wherever that can be imported. preset: a key of `PRESETS`, "authors" or "tuned".
    model: as `RunConfig.model`. changes: fields of `RunConfig`; `arguments` among them change the
    preset's one by one. Raises ConfigError: an unknown name, or a value out of range."""
    if not isinstance(method, str):
        method, given = own_method(method)
        changes = _merged({"arguments": given}, changes)
    else:  # a name is never imported here, because it may come from a request
        check_choice("method", method, tuple(METHODS))
    check_choice("preset", preset, (*PRESETS, AUTHORS, TUNED))
    if preset not in (known := presets_of(method, model)):
        title, fix = method_named(method).title, "Use 'paper'."
        if preset == TUNED:
            message = f"{title} has no tuned settings for {model}: no search found any."
        elif preset == AUTHORS:
            message = (
                f"No settings of {title}'s authors, other than the paper's, are recorded here."
            )
        else:
            message = f"The preset {preset!r} changes AdaPop; {method} has nothing it would change."
            fix = f"Use {' or '.join(map(repr, known))}."
        raise ConfigError(message, fix)
    check_known(changes, "See RunConfig for those that exist.")
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in changes.items()}
    return _config(method, preset, model, settings)


def untouched(config: RunConfig) -> RunConfig:
    """The configuration with the same method, preset and model, without changes."""
    return _config(config.method, config.preset, config.model, {})


def _config(method: str, preset: str, model: str, changes: Mapping[str, Any]) -> RunConfig:
    settings = _merged(_settings(method, preset, model), changes)
    return replace(RunConfig(), **{"method": method, "preset": preset, "model": model, **settings})


def own_method(method: type | object) -> tuple[str, dict[str, Any]]:
    """(name, arguments) of a user's own method, given as a class or as an instance of it. Raises
    ConfigError: it is no method, or another process could not import it by its name."""
    own = method if isinstance(method, type) else type(method)
    if not (is_dataclass(own) and hasattr(own, "forget_loss")):
        fix = "Give a name of METHODS, or a subclass of adapop.Objective."
        raise ConfigError(f"{own.__name__} is not a method.", fix)
    if getattr(own, "name", "") in METHODS and own.__module__.startswith("adapop."):
        name = own.name  # type: ignore[attr-defined]
    elif own.__qualname__ != own.__name__:
        message = f"The method {own.__qualname__} is defined inside something else."
        fix = "Define it at the top of a module, so that a resumed run finds it by its name."
        raise ConfigError(message, fix)
    else:
        name = f"{own.__module__}:{own.__name__}"
    if own is method:
        return name, {}
    return name, {item.name: getattr(method, item.name) for item in fields(own)}


def presets_of(method: str, model: str = SANDBOX) -> tuple[str, ...]:
    """The presets that a method has on a model, the paper's first."""
    named = tuple(PRESETS) if method == "adapop" else ("paper",)
    if _settings(method, AUTHORS, model) != _settings(method, "paper", model):
        named += (AUTHORS,)
    return (*named, TUNED) if tuned_on(method_named(method), model) else named


def follows_scores(config: RunConfig) -> bool:
    """Whether β follows the scores: the method uses β, and the preset sets no β for all."""
    method = method_named(config.method)
    counted = not method.scored_by or bool(config.arguments.get(method.scored_by))
    return method.scored and counted and "beta" not in PRESETS.get(config.preset, {})


def _settings(method: str, preset: str, model: str) -> dict[str, Any]:
    """The settings of a method's preset. On shipped models "authors" has the rates of "paper",
    because the authors' rates were found on models thousands of times as large. Their other choices
    stay, except for the block, because a shipped model has only four."""
    chosen = method_named(method)
    parts = [{"controller": chosen.controller, "alpha0": chosen.alpha0}, chosen.settings]
    if model in SHIPPED:
        parts += [SANDBOX_SETTINGS, PEOPLE_SETTINGS if model == PEOPLE else {}]
    else:
        parts.append(REAL_SETTINGS)
        if model in chosen.packaged_rates:
            parts.append({**PACKAGED_SETTINGS, "learning_rate": chosen.packaged_rates[model]})
    if preset == AUTHORS:
        parts.append(chosen.authors)
    if model in SHIPPED:
        rates = PEOPLE_RATES if model == PEOPLE else SANDBOX_RATES
        parts += [chosen.sandbox, {"learning_rate": rates.get(method, chosen.sandbox_rate)}]
    if preset == TUNED:
        parts.append(_tuned(tuned_on(chosen, model)))
    return _merged(*parts, PRESETS.get(preset, {}))


def _tuned(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a search chose, with values of the types that `RunConfig` has."""
    settings = dict(chosen)
    if "beta" in settings:
        settings["beta"] = BetaMap(**settings["beta"])
    if "lora_layers" in settings:
        settings["lora_layers"] = tuple(settings["lora_layers"])
    return settings


def _merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all parts; later parts win. A method's arguments are merged one by one, and
    an argument that is None returns to the method's default."""
    given = [part.get("arguments", {}) for part in parts]
    if wrong := [one for one in given if not isinstance(one, dict)]:
        raise ConfigError(f"arguments is {truncated(repr(wrong[0]))}.", "Give them by name.")
    arguments = {name: value for one in given for name, value in one.items()}
    merged = {name: value for part in parts for name, value in part.items()}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    return {**merged, "arguments": arguments} if "arguments" in merged else merged
