"""Converts the page's settings into a configuration and back, and lists the changed ones."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from adapop.config.methods import METHODS
from adapop.config.presets import make_config, presets_of
from adapop.config.run import ALL_LINEAR, SETTINGS, RunConfig, read_settings, value_of
from adapop.errors import AdaPopError, ConfigError
from adapop.facts.fact import SANDBOX
from adapop.limits import EPOCHS, is_public
from adapop.runs.amount import suited_batch
from adapop.service.zerogpu import public_models
from adapop.ui import texts

ADVANCED = {
    "alpha0": "α₀, first retain weight",
    "tolerance": "ε, drift that is tolerated",
    "dual_step": "η, step of λ",
    "lam_max": "λ at most",
    "reference": "drift is measured from",
    "retain_signal": "the controller watches",
    "normalise": "forget loss averaged per",
    "batch": "facts of the forget set per step",
    "clip": "gradient clipped at",
    "lora_rank": "LoRA rank",
    "lora_alpha": "LoRA α",
    "lora_targets": "layers with LoRA, by name",
    "lora_layers": "blocks with LoRA: 0,1,2 or all",
    "weight_decay": "weight decay",
    "measure": "when answers are measured",
    "measure_per_tier": "facts measured per tier, 0: all",
    "keep": "keep the last epoch or the best",
    "patience": "stop after this many epochs without a better one",
    "asking": "How the model is asked",
    "answers": "Which words are scored",
    "unknown": "Facts that the model does not answer",
    "start": "the original model",
    "further": "other settings, one a line: NAME=VALUE",
}
ASKED = {  # how a real model is asked; not used for shipped models
    "asking": [
        ("the way in which it answers most facts directly", "auto"),
        ("in chat", "chat"),
        ("in chat, after three examples", "chat-examples"),
        ("as text, after three examples", "text-examples"),
    ],
    "answers": [
        ("its own, if it talks before it answers", "auto"),
        ("the answers as given", "as-given"),
        ("its own words", "own-words"),
    ],
    "unknown": [
        ("left out, except for a benchmark", "auto"),
        ("kept", "keep"),
        ("left out", "drop"),
    ],
}
# stands for any real model when only its defaults are needed
REAL = "the paper's models"
ALL, LONGEST = "all", 300  # characters of a text
# stands for every setting and argument of a method that has no field of its own, as text
FURTHER = "further"
VISIBLE = ("model", "method", "preset", "learning_rate", "epochs", "seed")


def config_of(values: Sequence, **settings) -> RunConfig:
    """The configuration from the page's values, in the order of `RunSettings.all`; settings
    override them. Raises ConfigError: a field is empty, out of range or of another version."""
    plain = all(isinstance(value, (str, int, float, type(None))) for value in values)
    # a browser may have stored settings of another version
    if not plain or len(values) != len(VISIBLE) + len(ADVANCED):
        message = "The settings that this browser kept are not those of this version."
        raise ConfigError(message, "Change any setting on Run.")
    chosen = dict(zip((*VISIBLE, *ADVANCED), values))
    further = read_settings(_lines(chosen.pop(FURTHER)))
    for field, value in chosen.items():
        about = SETTINGS[field]
        if value is None and about.optional and about.number:
            continue
        if value is None or not str(value).strip(" ,"):
            message = f"{ADVANCED.get(field, field.replace('_', ' '))} is empty."
            raise ConfigError(message, "Fill it in.")
        if about.whole:
            number = isinstance(value, (int, float)) and math.isfinite(value)
            if not number or value != int(value):
                raise ConfigError(f"{field} is {value!r}.", "It must be a whole number.")
            chosen[field] = int(value)
        if about.every:
            text = str(value).strip()
            chosen[field] = value_of(field, about.every if text == ALL else text)
    chosen |= {"model": str(chosen["model"]).strip(), **further}
    EPOCHS.check(chosen["epochs"])
    check_public(chosen)
    usual = make_config(chosen["method"], model=chosen["model"]).micro_batch
    chosen.setdefault("micro_batch", min(chosen["batch"], usual))
    return make_config(**{**chosen, **settings})


def values_of(config: RunConfig) -> list:
    """A configuration as the page's values, in the order of `RunSettings.all`."""
    return [entry_of(config, field) for field in (*VISIBLE, *ADVANCED)]


def further_of(values: Sequence) -> dict[str, Any]:
    """The settings in the text field of further settings, without arguments of the method. Raises
    ConfigError: a line is no setting, or its value is invalid."""
    settings = read_settings(_lines(dict(zip((*VISIBLE, *ADVANCED), values, strict=True))[FURTHER]))
    return {name: value for name, value in settings.items() if name != "arguments"}


def _lines(text: object) -> list[str]:
    return [line for line in str(text or "").splitlines() if line.strip()]


def check_public(chosen: Mapping[str, Any]) -> None:
    """Raises ConfigError if this page is public and does not allow the model or a value."""
    if not is_public():
        return
    if chosen["model"] not in public_models():
        message = "This public page does not run that model."
        raise ConfigError(message, "Run the app yourself for other models.")
    if other := sorted(chosen.keys() - {*VISIBLE, *ADVANCED}):
        message = f"This public page does not set {other[0]}."
        raise ConfigError(message, "Run the app yourself for other settings.")
    for field, most in ((name, about.public) for name, about in SETTINGS.items() if about.public):
        if chosen.get(field, 0) > most:
            fix = f"At most {most} on this public page; run the app yourself for more."
            raise ConfigError(f"{ADVANCED.get(field, field)} is {chosen[field]}.", fix)


def restored(stored: object):
    """The stored settings. The fields stay as they are if this version cannot read the settings, or
    if they are the defaults: arriving late, these would overwrite what was typed meanwhile."""
    if stored == values_of(make_config()) or not isinstance(stored, list):
        return gr.skip()
    try:
        config = config_of(stored)
    except AdaPopError:
        return gr.skip()
    method, preset = lists_of(config.model, config.method, config.preset)
    return [config.model, method, preset, *stored[3:]]


def changed(values: Sequence, rows: int = 0) -> list[str]:
    """The settings that differ from the preset, each with the preset's value and the paper's. rows:
    facts to forget; a batch that the page reduced for few rows does not count."""
    chosen = dict(zip((*VISIBLE, *ADVANCED), values, strict=True))
    try:
        preset = defaults_of(chosen["model"], chosen["method"], chosen["preset"])
        paper = make_config(chosen["method"], model=REAL)
    except AdaPopError:
        return []
    lines = []
    for field, label in ADVANCED.items():
        value, default = chosen[field], entry_of(preset, field)
        if field == FURTHER:
            lines += [line.strip() for line in _lines(value)]
            continue
        fitted = field == "batch" and value == suited_batch(rows, preset)
        if value != default and not fitted:
            usual, paper_value = f"preset {label_of(field, default)}", entry_of(paper, field)
            if paper_value != default and field not in texts.FIELD_HELP:
                usual += f", paper {label_of(field, paper_value)}"
            lines.append(f"{label}: {label_of(field, value)} ({usual})")
    return lines


def lists_of(model: str, method: str, preset: str) -> tuple[gr.Dropdown, gr.Dropdown]:
    """The choice of a method, with its description, and the choice of its presets."""
    choices = preset_choices(model, method)
    presets = gr.Dropdown(choices, value=preset, interactive=len(choices) > 1)
    return gr.Dropdown(value=method, info=method_about(method)), presets


def method_choices() -> list[tuple[str, str]]:
    """(title with its family, name) of every method, family by family."""
    families = list(dict.fromkeys(method.family for method in METHODS.values()))
    order = sorted(METHODS, key=lambda name: families.index(METHODS[name].family))
    return [(f"{METHODS[name].title} · {METHODS[name].family}", name) for name in order]


def method_about(method: str) -> str:
    """What a method does, in a line, and its paper."""
    about = METHODS[method]
    return f"{about.about} {about.paper}.".replace("..", ".")


def preset_choices(model: str, method: str) -> list[tuple[str, str]]:
    return [(texts.PRESET_NAMES[preset], preset) for preset in presets_of(method, model)]


def defaults_of(model: str, method: str, preset: str) -> RunConfig:
    """The configuration of a method and preset. Raises ConfigError: there is none."""
    return make_config(method, preset, model=model or SANDBOX)


def entry_of(config: RunConfig, field: str) -> Any:
    """A setting as the value of its input: lists become text."""
    if field == FURTHER:
        return ""
    value = getattr(config, field)
    if not SETTINGS[field].every:
        return value
    return ALL if value is None or value == (ALL_LINEAR,) else ",".join(map(str, value))


def label_of(field: str, value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:g}"
    if value is None:
        return "empty"
    if field in ASKED:
        return next(label for label, known in ASKED[field] if known == value)
    return value.replace("_", " ") if SETTINGS[field].choices else str(value)
