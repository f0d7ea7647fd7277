"""A run's settings on the page: three in sight, the rest under Advanced, and what was changed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from adapop.config.methods import METHODS
from adapop.config.presets import make_config, presets_of
from adapop.config.run import ALL_LINEAR, SETTINGS, RunConfig
from adapop.config.settings import read_settings, value_of
from adapop.errors import AdaPopError, ConfigError
from adapop.facts.catalog import ENTRIES, model_of
from adapop.facts.fact import PEOPLE, SANDBOX, FactSet
from adapop.facts.world import sandbox_facts
from adapop.limits import EPOCHS, is_public
from adapop.model.catalogue import MODELS
from adapop.paths import SHIPPED
from adapop.runs.amount import suited_batch
from adapop.service.zerogpu import public_models
from adapop.ui import texts
from adapop.ui.wiring import EACH_IN_TURN, LAST_STAYS, QUIET

# stands for any model but the sandbox where only its defaults are wanted
REAL = "the paper's models"
ADVANCED = texts.ADVANCED_FIELDS
PROTECTS = tuple(ADVANCED)[:6]  # those of the controller, which keeps what is to stay
ASKED = {  # how a real model is asked; shipped ones are asked as they are
    "asking": texts.ASKING_CHOICES,
    "answers": texts.ANSWERS_CHOICES,
    "unknown": texts.UNKNOWN_CHOICES,
}
FOLDED = {  # by element id
    "protects": PROTECTS,
    "advanced": tuple(name for name in ADVANCED if name not in (*PROTECTS, *ASKED)),
}
ALL, LONGEST = "all", 300  # characters of such a text
# stands for every setting and argument of a method that has no field of its own, as text
FURTHER = "further"
VISIBLE = ("model", "method", "preset", "learning_rate", "epochs", "seed")


@dataclass(frozen=True)
class RunSettings:
    """The components. visible: in the order of `VISIBLE`; advanced: in that of `ADVANCED`, folded
    away by `FOLDED`, or below a real model if they are of `ASKED`."""

    visible: tuple[gr.Component, ...]
    advanced: tuple[gr.Component, ...]

    @property
    def all(self) -> list[gr.Component]:
        """Every setting, as `config_of` takes their values."""
        return [*self.visible, *self.advanced]


def build(facts: gr.State) -> tuple[RunSettings, gr.Button, gr.Button]:
    """Lays the settings out, and Start and Resume beside them. A choice of method, model or preset
    sets the others, and the size of the set the facts a step. facts: the page's set."""
    start = make_config()
    offered = public_models()[len(SHIPPED) :] if is_public() else MODELS
    models = [(texts.SANDBOX_MODEL, SANDBOX), (texts.PEOPLE_MODEL, PEOPLE)]
    models += [(MODELS[name].title, name) for name in offered]
    about = texts.MODEL_PUBLIC if is_public() else texts.MODEL_ABOUT
    methods = [(one.title, name) for name, one in METHODS.items()]
    presets, own = _preset_choices(start.model, start.method), not is_public()
    wide, does, asks = (
        dict(min_width=220, scale=3),
        METHODS[start.method].about,
        texts.RUN_QUESTIONS,
    )
    with gr.Row(elem_id="run-row"):
        model = gr.Dropdown(
            models,
            value=SANDBOX,
            label="Model",
            allow_custom_value=own,
            elem_id="model",
            info=about,
            **wide,
        )
        method = gr.Dropdown(
            methods, value=start.method, label="Method", info=does, elem_id="method", **wide
        )
        narrow = dict(info=texts.EPOCHS_ABOUT, min_width=170, scale=2, elem_id="epochs")
        epochs = gr.Slider(1, 10, value=start.epochs, step=1, label="Epochs", **narrow)
        with gr.Column(scale=1, min_width=150, elem_id="start-column"):
            begin = gr.Button("Start", variant="primary", elem_id="start")
            resume = gr.Button("Resume", variant="primary", visible=False, elem_id="resume")
    fields: dict[str, gr.Component] = {}
    with gr.Row(visible=False, elem_id="asked", elem_classes="advanced-only") as questions:
        fields |= {name: _advanced(name, start) for name in ASKED}
    with gr.Row(elem_classes="advanced-only"):
        preset = gr.Dropdown(
            presets, value=start.preset, label="Preset", elem_id="preset", min_width=200, scale=2
        )
        rate = gr.Number(
            start.learning_rate, label="Learning rate", min_width=120, scale=1, elem_id="rate"
        )
        seed = gr.Number(start.seed, label="Seed", precision=0, min_width=90, scale=1)
    with gr.Row(elem_classes="advanced-only"):
        for place, names in FOLDED.items():
            column = gr.Column(min_width=320)
            with column, gr.Accordion(asks[place], open=False, elem_id=place) as folded, gr.Row():
                fields |= {name: _advanced(name, start) for name in names}
        with folded:
            reset = gr.Button("Back to the preset's values", size="sm", min_width=160)
    advanced = tuple(fields[name] for name in ADVANCED)
    settings = RunSettings((model, method, preset, rate, epochs, seed), advanced)
    model.change(
        lambda chosen: gr.Row(visible=chosen not in SHIPPED), model, questions, **EACH_IN_TURN
    )
    last, values = LAST_STAYS | {"concurrency_id": "settings"}, [rate, epochs, *advanced]
    gr.on(
        [method.input, model.input],
        _method_values,
        [model, method, facts],
        [method, preset, *values],
        **last,
    )
    gr.on(
        [preset.input, reset.click], _preset_values, [model, method, preset, facts], values, **last
    )
    rows, batch = gr.State(len(sandbox_facts().forget)), fields["batch"]
    one = QUIET | {"concurrency_id": "settings", "concurrency_limit": 1}
    facts.change(_fitted, [facts, rows, model, method, preset, batch], [batch, rows], **one)
    return settings, begin, resume


def config_of(values: Sequence, **settings) -> RunConfig:
    """The configuration of the page's values, in the order of `RunSettings.all`, with more settings
    on top.

    Raises:
        ConfigError: a field is empty or out of range, or these are no values of the fields.
    """
    plain = all(isinstance(value, (str, int, float, type(None))) for value in values)
    # a browser may have kept those of another version
    if not plain or len(values) != len(VISIBLE) + len(ADVANCED):
        raise ConfigError(
            "The settings that this browser kept are not those of tab 3.", "Change one there."
        )
    chosen = dict(zip((*VISIBLE, *ADVANCED), values))
    further = read_settings(_lines(chosen.pop(FURTHER)))
    for field, value in chosen.items():
        about = SETTINGS[field]
        if value is None and about.optional and about.number:
            continue
        if value is None or not str(value).strip(" ,"):
            raise ConfigError(
                f"{ADVANCED.get(field, field.replace('_', ' '))} is empty.", "Fill it in."
            )
        if about.whole:
            if (
                not isinstance(value, (int, float))
                or not math.isfinite(value)
                or value != int(value)
            ):
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


def further_of(values: Sequence) -> dict[str, Any]:
    """What the text of further settings sets, of the page's values; but for the arguments of a
    method.

    Raises:
        ConfigError: a line of it sets nothing, or what it says is no value of that setting.
    """
    settings = read_settings(_lines(dict(zip((*VISIBLE, *ADVANCED), values, strict=True))[FURTHER]))
    return {name: value for name, value in settings.items() if name != "arguments"}


def _lines(text: object) -> list[str]:
    return [line for line in str(text or "").splitlines() if line.strip()]


def check_public(chosen: Mapping[str, Any]) -> None:
    """Refuses a model or a value that a public page does not allow; one's own allows anything.
    Raises ConfigError."""
    if not is_public():
        return
    if chosen["model"] not in public_models():
        raise ConfigError(
            "This public page does not run that model.", "Run the app yourself for other models."
        )
    if other := sorted(chosen.keys() - {*VISIBLE, *ADVANCED}):
        raise ConfigError(
            f"This public page does not set {other[0]}.", "Run the app yourself for other settings."
        )
    for field, most in ((name, about.public) for name, about in SETTINGS.items() if about.public):
        if chosen.get(field, 0) > most:
            fix = f"At most {most} on this public page; run the app yourself for more."
            raise ConfigError(f"{ADVANCED.get(field, field)} is {chosen[field]}.", fix)


def follow_set(settings: RunSettings, source: gr.Radio) -> None:
    """Lets the choice of a set choose the shipped model that it is about; a model of another kind
    stays."""
    model, method, preset, rate, epochs, _ = settings.visible
    values = [model, method, preset, rate, epochs, *settings.advanced]
    source.input(
        _followed, [source, model, method], values, **LAST_STAYS, concurrency_id="settings"
    )


def _followed(source: str, model: str, method: str):
    if model not in SHIPPED or source not in ENTRIES or model_of(source) == model:
        return gr.skip()
    return model_of(source), *_method_values(model_of(source), method)


def restored(stored: object):
    """The settings as the browser kept them. The fields are left alone if this version cannot read
    those, or if they are the ones a page begins with: written late, they would replace what a
    visitor has typed meanwhile."""
    start = make_config()
    begun = [
        *(getattr(start, name) for name in VISIBLE),
        *(entry_of(start, field) for field in ADVANCED),
    ]
    if stored == begun or not isinstance(stored, list):
        return gr.skip()
    try:
        config = config_of(stored)
    except AdaPopError:
        return gr.skip()
    method, preset = _lists(config.model, config.method, config.preset)
    return [config.model, method, preset, *stored[3:]]


def changed(values: Sequence, rows: int = 0) -> list[str]:
    """What differs from what the preset sets, each with the preset's value and the paper's. rows:
    facts to forget, for which fewer facts a step may be the page's own choice."""
    chosen = dict(zip((*VISIBLE, *ADVANCED), values, strict=True))
    try:
        ours, paper = _defaults(chosen["model"], chosen["method"], chosen["preset"])
    except AdaPopError:
        return []
    lines = []
    for field, label in ADVANCED.items():
        value, default = chosen[field], entry_of(ours, field)
        if field == FURTHER:
            lines += [line.strip() for line in _lines(value)]
            continue
        fitted = field == "batch" and value == suited_batch(rows, ours)
        if value != default and not fitted:
            theirs = entry_of(paper, field)
            beside = (
                ""
                if theirs == default or field in texts.FIELD_HELP
                else f", paper {_label(field, theirs)}"
            )
            lines.append(
                f"{label}: {_label(field, value)} (preset {_label(field, default)}{beside})"
            )
    return lines


def _advanced(field: str, start: RunConfig) -> gr.Component:
    """The input of an advanced setting, with the paper's value beside it."""
    if field == FURTHER:
        own, about = not is_public(), "such as max_new_tokens=16, or an argument of the method"
        label = dict(
            label=ADVANCED[field],
            info=about,
            placeholder="precision=float32",
            elem_id=f"knob-{field}",
        )
        return gr.Textbox("", lines=2, max_length=LONGEST, min_width=190, visible=own, **label)
    value, paper = entry_of(start, field), entry_of(make_config(model=REAL), field)
    info = f"paper {_label(field, paper)}" + (
        "" if value == paper else f", sandbox {_label(field, value)}"
    )
    info = texts.FIELD_HELP.get(field, info)
    shared = dict(
        value=value, label=ADVANCED[field], info=info, min_width=190, elem_id=f"knob-{field}"
    )
    about = SETTINGS[field]
    if about.choices:
        return gr.Dropdown(ASKED.get(field) or list(about.choices), **shared)
    if about.every:
        return gr.Textbox(max_length=LONGEST, **shared)
    return gr.Number(precision=0 if about.whole else None, **shared)


def _fitted(
    facts: FactSet | None, before: int, model: str, method: str, preset: str, batch: float | None
):
    """(facts a step for this set, its size); a visitor's choice stays. before: the last size."""
    try:
        config = _defaults(model, method, preset)[0]
    except AdaPopError:
        return gr.skip(), before
    rows = len(facts.forget) if facts else before
    own = batch not in (config.batch, suited_batch(before, config))
    return gr.skip() if own else suited_batch(rows, config), rows


def _method_values(model: str, method: str, facts: FactSet | None = None):
    """What a method starts from, and its presets."""
    values = _preset_values(model, method, "paper", facts)
    return *_lists(model or SANDBOX, method, "paper"), *values


def _lists(model: str, method: str, preset: str) -> tuple[gr.Dropdown, gr.Dropdown]:
    """The method with what it does, and the presets it has."""
    choices = _preset_choices(model, method)
    presets = gr.Dropdown(choices, value=preset, interactive=len(choices) > 1)
    return gr.Dropdown(value=method, info=METHODS[method].about), presets


def _preset_values(model: str, method: str, preset: str, facts: FactSet | None = None):
    """What a preset sets, with fewer facts a step where the set is small."""
    config = _defaults(model, method, preset)[0]
    config = replace(config, batch=suited_batch(len(facts.forget), config)) if facts else config
    return config.learning_rate, config.epochs, *(entry_of(config, field) for field in ADVANCED)


def _preset_choices(model: str, method: str) -> list[tuple[str, str]]:
    return [(texts.PRESET_NAMES[preset], preset) for preset in presets_of(method, model)]


def _defaults(model: str, method: str, preset: str) -> tuple[RunConfig, RunConfig]:
    """(what the preset sets here, what the paper's runs used)."""
    if method not in METHODS:
        raise ConfigError(f"There is no method {method!r}.", "Pick one of the list.")
    return make_config(method, preset, model=model or SANDBOX), make_config(
        method, "paper", model=REAL
    )


def entry_of(config: RunConfig, field: str) -> Any:
    """A setting as its input holds it: a list as text."""
    if field == FURTHER:
        return ""
    value = getattr(config, field)
    if not SETTINGS[field].every:
        return value
    return ALL if value is None or value == (ALL_LINEAR,) else ",".join(map(str, value))


def _label(field: str, value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:g}"
    if value is None:
        return "empty"
    if field in ASKED:
        return next(label for label, known in ASKED[field] if known == value)
    return value.replace("_", " ") if SETTINGS[field].choices else str(value)
