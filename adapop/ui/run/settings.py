"""A run's settings on the page: three visible, the rest advanced, and a list of changed ones."""

from dataclasses import dataclass, replace
from functools import partial

import gradio as gr

from adapop.config.presets import make_config
from adapop.config.run import SETTINGS, RunConfig
from adapop.errors import AdaPopError
from adapop.facts.catalog import ENTRIES, model_of
from adapop.facts.fact import PEOPLE, SANDBOX, FactSet
from adapop.facts.world import sandbox_facts
from adapop.limits import is_public
from adapop.model.catalogue import MODELS
from adapop.paths import SHIPPED
from adapop.runs.amount import suited_batch
from adapop.service.zerogpu import public_models
from adapop.ui import texts
from adapop.ui.run.configuration import (
    ADVANCED,
    ASKED,
    FURTHER,
    LONGEST,
    REAL,
    VISIBLE,
    defaults_of,
    entry_of,
    label_of,
    lists_of,
    method_about,
    method_choices,
    preset_choices,
)
from adapop.ui.wiring import EACH_IN_TURN, LAST_STAYS, QUIET, Components

# events that set other settings: one after the other
IN_TURN = LAST_STAYS | {"concurrency_id": "settings"}
PEOPLE_MODEL = "People: the same size, on invented people"
MODEL_ABOUT = "Or a Hugging Face name, a folder or a GGUF file."
MODEL_PUBLIC = "Run the app yourself for other models."
PROTECTS = tuple(ADVANCED)[:6]  # settings of the controller, which protects retained facts
OF_THE_RUN = ("keep", "patience")
OTHERS = tuple(name for name in ADVANCED if name not in (*PROTECTS, *ASKED))
# what a preset sets, and what a method sets
OF_PRESET = ("learning_rate", "epochs", *ADVANCED)
OF_METHOD = ("method", "preset", *OF_PRESET)
# element id -> title and settings of a fold
FOLDED = {"protects": ("What protects the retain set?", PROTECTS), "advanced": ("More", OTHERS)}


@dataclass(frozen=True)
class RunSettings:
    """The components by name, in the order of `VISIBLE` and `ADVANCED`. The advanced ones are
    grouped by `FOLDED`, or shown only for a real model if in `ASKED`."""

    fields: dict[str, gr.Component]

    @property
    def all(self) -> list[gr.Component]:
        """All settings, in the order that `config_of` expects."""
        return [*self.fields.values()]

    def named(self, *names: str) -> list[gr.Component]:
        """The settings of these names."""
        return [self.fields[name] for name in names]


def build(facts: gr.State, loaded: gr.Textbox) -> tuple[RunSettings, gr.Button, gr.Button]:
    """Lays out settings, Start and Resume. A method, model or preset sets other settings, the set's
    size the batch. facts: the page's set. loaded: see `Follower`."""
    start = make_config()
    with gr.Row(elem_id="run-row"):
        fields = _usual(start)
        with gr.Column(scale=1, min_width=150, elem_id="start-column"):
            begin = gr.Button("Start", interactive=False, variant="primary", elem_id="start")
            resume = gr.Button("Resume", variant="primary", visible=False, elem_id="resume")
    with gr.Row(visible=False, elem_id="asked", elem_classes="advanced-only") as questions:
        fields |= {name: _advanced(name, start) for name in ASKED}
    presets = preset_choices(start.model, start.method)
    with gr.Row(elem_classes="advanced-only"):
        wide = dict(elem_id="preset", min_width=200, scale=2)
        fields["preset"] = gr.Dropdown(presets, value=start.preset, label="Preset", **wide)
        narrow = dict(min_width=120, scale=1, elem_id="rate")
        fields["learning_rate"] = gr.Number(start.learning_rate, label="Learning rate", **narrow)
        narrow = dict(precision=0, min_width=90, scale=1)
        fields["seed"] = gr.Number(start.seed, label="Seed", **narrow)
    with gr.Row(elem_classes="advanced-only"):
        for place, (title, names) in FOLDED.items():
            column = gr.Column(min_width=320)
            with column, gr.Accordion(title, open=False, elem_id=place) as folded, gr.Row():
                fields |= {name: _advanced(name, start) for name in names}
        with folded:
            reset = gr.Button("Back to the preset's values", size="sm", min_width=160)
    settings = RunSettings({name: fields[name] for name in (*VISIBLE, *ADVANCED)})
    model = fields["model"]
    model.change(
        lambda model: gr.Row(visible=model not in SHIPPED), model, questions, **EACH_IN_TURN
    )
    _wire(settings, reset, facts, loaded)
    return settings, begin, resume


def _usual(start: RunConfig) -> dict[str, gr.Component]:
    """Lays out the settings that everybody sees: model, method, epochs."""
    own, about = not is_public(), MODEL_PUBLIC if is_public() else MODEL_ABOUT
    offered = public_models()[len(SHIPPED) :] if is_public() else MODELS
    models = [("Sandbox: included, 1M parameters", SANDBOX), (PEOPLE_MODEL, PEOPLE)]
    models += [(MODELS[name].title, name) for name in offered]
    wide = dict(min_width=220, scale=3)
    typed = dict(allow_custom_value=own, info=about, elem_id="model", **wide)
    model = gr.Dropdown(models, value=SANDBOX, label="Model", **typed)
    wide |= dict(info=method_about(start.method), elem_id="method")
    method = gr.Dropdown(method_choices(), value=start.method, label="Method", **wide)
    narrow = dict(info="Rounds over the forget set.", min_width=170, scale=2, elem_id="epochs")
    epochs = gr.Slider(1, 10, value=start.epochs, step=1, label="Epochs", **narrow)
    return {"model": model, "method": method, "epochs": epochs}


def _wire(settings: RunSettings, reset: gr.Button, facts: gr.State, loaded: gr.Textbox) -> None:
    """Wires what sets other settings: method, model, preset, Reset, and the size of the set."""
    chosen = model, method, preset = settings.named("model", "method", "preset")
    changed, of_method = [method.input, model.input], settings.named(*OF_METHOD)
    gr.on(changed, _method_values, [model, method, facts], of_method, **IN_TURN)
    of_preset = settings.named(*OF_PRESET)
    preset.input(_preset_values, [*chosen, facts], of_preset, **IN_TURN)
    reset.click(partial(_preset_values, whole=True), [*chosen, facts], of_preset, **IN_TURN)
    rows, batch = gr.State(len(sandbox_facts().forget)), settings.fields["batch"]
    one = QUIET | {"concurrency_id": "settings", "concurrency_limit": 1}
    facts.change(_batch_of, [facts, rows, loaded, batch, *chosen], [batch, rows], **one)


def choose_on_press(
    settings: RunSettings, button: gr.Button, facts: gr.State, model: str = "", method: str = ""
) -> None:
    """Makes a button choose a model or a method, with the default settings of both. facts: the
    page's set."""

    def choose(now_model: str, now_method: str, facts: FactSet | None):
        name = model or now_model
        return name, *_method_values(name, method or now_method, facts)

    inputs = [*settings.named("model", "method"), facts]
    button.click(choose, inputs, settings.named("model", *OF_METHOD), **IN_TURN)


def language_model() -> str | None:
    """The smallest language model that the page offers; None where it offers none."""
    offered = public_models()[len(SHIPPED) :] if is_public() else [*MODELS]
    return next(iter(offered), None)


@dataclass(frozen=True)
class Offers(Components):
    """Two ways out where a model does not know the facts: the buttons that choose a language model,
    and that have the model taught first."""

    language: gr.Button
    teach: gr.Button

    def wire(self, settings: RunSettings, facts: gr.State) -> None:
        """Makes the buttons change the settings of Run. facts: the page's set."""
        if name := language_model():
            choose_on_press(settings, self.language, facts, model=name)
        self.teach.click(lambda: "sft", None, settings.fields["start"], **IN_TURN)


def offered(model: str, needed: bool) -> tuple[gr.Button, gr.Button]:
    """Updates of `Offers.all` that show what would help the model, if needed."""
    other = needed and model in SHIPPED and language_model() is not None
    return gr.Button(visible=other), gr.Button(visible=needed)


def build_offers(name: str) -> Offers:
    """Lays out the buttons, hidden. name: begins their element ids."""
    small = dict(visible=False, size="sm", min_width=160, scale=0)
    title = MODELS[language_model() or "smollm2"].title
    language = gr.Button(f"Use {title}", elem_id=f"{name}-language", **small)
    return Offers(language, gr.Button("Teach them first", elem_id=f"{name}-teach", **small))


def follow_set(settings: RunSettings, source: gr.Radio) -> None:
    """Makes the choice of a set select its shipped model; a real model stays selected."""
    inputs = [source, *settings.named("model", "method")]
    source.input(_followed, inputs, settings.named("model", *OF_METHOD), **IN_TURN)


def _followed(source: str, model: str, method: str):
    if model not in SHIPPED or source not in ENTRIES or model_of(source) == model:
        return gr.skip()
    return model_of(source), *_method_values(model_of(source), method)


def _advanced(field: str, start: RunConfig) -> gr.Component:
    """The input of an advanced setting, with the paper's value beside it."""
    label = dict(label=ADVANCED[field], min_width=190, elem_id=f"knob-{field}")
    if field == FURTHER:
        own, about = not is_public(), "such as max_new_tokens=16, or an argument of the method"
        entry = dict(lines=2, max_length=LONGEST, placeholder="precision=float32", visible=own)
        return gr.Textbox("", info=about, **entry, **label)
    value, paper = entry_of(start, field), entry_of(make_config(model=REAL), field)
    sandbox = "" if value == paper else f", sandbox {label_of(field, value)}"
    info = texts.FIELD_HELP.get(field, f"paper {label_of(field, paper)}{sandbox}")
    shared = dict(value=value, info=info, **label)
    about = SETTINGS[field]
    if about.choices:
        return gr.Dropdown(ASKED.get(field) or list(about.choices), **shared)
    if about.every:
        return gr.Textbox(max_length=LONGEST, **shared)
    return gr.Number(precision=0 if about.whole else None, **shared)


def _batch_of(facts: FactSet | None, before: int, loaded: str, batch: float | None, *chosen: str):
    """(batch for this set, its size); the batch stays if the visitor chose it, and while loaded is
    empty. before: the previous set's size. chosen: model, method, preset."""
    try:
        config = defaults_of(*chosen)
    except AdaPopError:
        return gr.skip(), before
    rows = len(facts.forget) if facts else before
    own = batch not in (config.batch, suited_batch(before, config))
    return gr.skip() if own or not loaded else suited_batch(rows, config), rows


def _method_values(model: str, method: str, facts: FactSet | None = None):
    """The default settings of a method, and its presets."""
    values = _preset_values(model, method, "paper", facts)
    return *lists_of(model or SANDBOX, method, "paper"), *values


def _preset_values(
    model: str, method: str, preset: str, facts: FactSet | None = None, whole: bool = False
):
    """The settings of a preset, the batch smaller for a small set. whole: also `OF_THE_RUN`."""
    config = defaults_of(model, method, preset)
    config = replace(config, batch=suited_batch(len(facts.forget), config)) if facts else config
    stays = () if whole else OF_THE_RUN
    entries = (gr.skip() if field in stays else entry_of(config, field) for field in ADVANCED)
    return config.learning_rate, config.epochs, *entries
