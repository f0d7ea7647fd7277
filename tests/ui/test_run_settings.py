import math
from itertools import pairwise

import gradio as gr
import pytest

from adapop.config.methods import METHODS, Method
from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR, SETTINGS
from adapop.errors import ConfigError
from adapop.paths import PACKAGED
from adapop.ui.run import configuration, settings
from adapop.ui.run.configuration import ADVANCED
from components import run_values as values
from raised import raised


def test_untouched_settings_are_the_preset_and_changed_ones_are_named_with_its_value_and_the_papers():
    for chosen in (("adapop", "paper"), ("adapop", "stress"), ("wga", "paper")):
        assert configuration.config_of(values(*chosen)) == make_config(*chosen)
        assert configuration.changed(values(*chosen)) == []
    for batch, rows in ((64, 16), (4, 4)):
        assert configuration.config_of(values(batch=batch)).micro_batch == rows
    (change,) = configuration.changed(values(tolerance=0.3))
    assert change == f"{ADVANCED['tolerance']}: 0.3 (preset 0.1)"
    (change,) = configuration.changed(values(batch=8))
    assert change == f"{ADVANCED['batch']}: 8 (preset 16, paper 32)"


def test_targets_and_blocks_of_the_adapter_are_text():
    chosen = configuration.config_of(values(lora_targets="q_proj, v_proj", lora_layers="0,1"))
    assert (chosen.lora_targets, chosen.lora_layers) == (("q_proj", "v_proj"), (0, 1))
    every = configuration.config_of(values(lora_targets="all", lora_layers="all"))
    assert (every.lora_targets, every.lora_layers) == ((ALL_LINEAR,), None)
    (change,) = configuration.changed(values(lora_layers="0,1"))
    assert change.startswith("blocks with LoRA") and "0,1 (preset all)" in change
    (change,) = configuration.changed(values(lora_targets="q_proj"))
    assert ": q_proj (preset q_proj,k_proj" in change
    fields = values(lora_layers="0,1")
    assert configuration.restored(fields)[3:] == fields[3:]


def test_a_real_model_is_asked_as_is_found_best_unless_the_page_says_otherwise():
    untouched = values(model="smollm2")
    assert configuration.config_of(untouched) == make_config(model="smollm2")
    assert configuration.changed(untouched) == [] and configuration.restored(untouched)[3:] == untouched[3:]
    ways = dict(asking="text-examples", answers="own-words", unknown="keep", measure_per_tier=8)
    chosen = values(model="smollm2", **ways)
    config = configuration.config_of(chosen)
    assert {name: getattr(config, name) for name in ways} == ways
    way = configuration.label_of("asking", "text-examples")
    assert configuration.changed(chosen)[1].startswith(f"{ADVANCED['asking']}: {way} (preset ")
    with pytest.raises(ConfigError, match="asking is 'loudly'"):
        configuration.config_of(values(model="smollm2", asking="loudly"))
    for name, choices in configuration.ASKED.items():
        assert [value for _, value in choices] == list(SETTINGS[name].choices)


def test_what_cannot_be_is_refused_by_name():
    wrong = {"lora_layers": "x", "lora_targets": ",", "seed": None, "tolerance": 1e300, "lora_rank": 0, "model": " "}
    for name, value in wrong.items():
        named = f"^({name}|layers with LoRA, by name) is "
        raised(ConfigError, named, configuration.config_of, values(**{name: value}))


def test_the_browser_brings_back_what_it_kept_and_nothing_else():
    fields = values(method="npo", preset="authors", tolerance=0.3)
    model, method, preset, *others = configuration.restored(fields)
    assert [model, method.value, preset.value, *others] == fields
    assert [value for _, value in preset.choices] == ["paper", "authors", "tuned"]
    unknown = ["sandbox", "none such", *fields[2:]]
    foreign = (5, "x" * len(fields), dict.fromkeys(range(len(fields))), [[]] * len(fields), values(seed=math.inf))
    old = (None, [], fields[:-1], unknown, values(seed="<img>"), values(epochs=None), values(clip="x"))
    for other in (*foreign, *old, values(epochs=math.nan)):
        assert configuration.restored(other) == gr.skip(), "left as they are"
    assert configuration.restored(values()) == gr.skip(), "what a page begins with must not come after what was typed"


def test_every_other_setting_is_text_a_line_each(monkeypatch):
    chosen = values(method="npo", further="precision=float32\n\n beta = 0.5\nmax_new_tokens=8", batch=4)
    config = configuration.config_of(chosen)
    assert (config.precision, config.max_new_tokens, config.batch) == ("float32", 8, 4)
    assert config.arguments["beta"] == 0.5
    assert configuration.changed(chosen)[-3:] == ["precision=float32", "beta = 0.5", "max_new_tokens=8"]
    assert configuration.further_of(chosen) == {"precision": "float32", "max_new_tokens": 8}
    assert configuration.restored(chosen)[-1] == chosen[-1]
    for text in ("precision", "max_new_tokens=many", "model=/etc"):
        raised(ConfigError, "", configuration.config_of, values(further=text))
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    configuration.config_of(values())
    with pytest.raises(ConfigError, match="does not set precision"):
        configuration.config_of(values(further="precision=float32"))
    for model in ("/etc", "/etc/model.gguf", "model.gguf", *PACKAGED, "", "gpt2", ".", "../sandbox", "SANDBOX"):
        with pytest.raises(ConfigError, match="does not run that model"):  # nor its template, which is a program
            configuration.check_public({"model": model})


def test_another_method_leaves_which_epoch_is_kept_and_a_set_brings_its_model():
    places = [len(configuration.VISIBLE) - 2 + [*configuration.ADVANCED].index(name) for name in settings.OF_THE_RUN]
    rest = settings._method_values("sandbox", "ga")[2:]
    assert [rest[place - 2] for place in places] == [gr.skip()] * 2 and rest.count(gr.skip()) == 2
    assert gr.skip() not in settings._preset_values("sandbox", "ga", "paper", whole=True)
    model, method, _, rate, *_ = settings._followed("people", "sandbox", "wga")
    assert (model, method.value, rate) == ("people", "wga", make_config("wga", model="people").learning_rate)
    assert settings._followed("pair", "people", "wga")[0] == "sandbox"
    for source, model in (("people", "people"), ("duet", "sandbox"), ("people", "some/model")):
        assert settings._followed(source, model, "wga") == gr.skip(), "one that suits, or of another kind"


def test_methods_stand_in_families_each_with_its_line_and_its_paper():
    choices = configuration.method_choices()
    assert [name for _, name in choices] != [*METHODS] and {name for _, name in choices} == {*METHODS}
    families = [title.rpartition(" · ")[2] for title, _ in choices]
    assert Method.family not in families, "each method has a family"
    assert len({*families}) == 1 + sum(one != other for one, other in pairwise(families)), "none is split"
    for name, method in METHODS.items():
        about = configuration.method_about(name)
        assert about.startswith(method.about) and method.paper in about
