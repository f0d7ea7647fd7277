import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.model import loading
from adapop.model.checks import outline_of
from adapop.model.loading import adapted_model, try_out
from adapop.model.precision import with_precision
from adapop.paths import SHIPPED
from adapop.service.worker import Worker
from adapop.training.events import RunDone, RunFailed
from edited import changed_json
from families import saved
from raised import raised
from tiny_runs import tiny_config
from waiting import wait_until

TEMPLATE = "chat_template.jinja"
WEIGHTS, POINTER = "model.safetensors", "version https://git-lfs.github.com/spec/v1\n"
LARGE = f"{POINTER}oid sha256:0\nsize 9\n"
QUESTION, UNREAD = "chat template cannot show a question: ", "its tokenizer.json cannot be read"
SETTINGS, ENDS = "tokenizer_config.json", "generation_config.json"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return saved("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


TEMPLATES = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}x",
    "doubles": "{% set n = namespace(s='a' * 99) %}{% for a in range(40) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "multiplies": "{{ 'a' * 10**10 }}",
    "writes much": "{% for a in range(9999) %}{{ messages[0]['content'] * 999 }}{% endfor %}",
    "loops in a tag of transformers": "{% generation %}{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% endfor %}{% endfor %}{% endgeneration %}",
}


@pytest.mark.quick("multiplies")
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_without_end_or_bound_is_refused(folder, name):
    (folder / TEMPLATE).write_text(TEMPLATES[name], encoding="utf-8")
    assert TEMPLATE in raised(ModelError, QUESTION, try_out, str(folder)).fix


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a pattern that backtracks", "a normalizer that fills the memory"])
def test_a_tokenizer_that_would_never_end_is_refused(folder, kind):
    pattern = {"Regex": r"((\w|\s)*)*\d\d\d\d$"}
    tenfold = {"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 10}
    if kind == "a pattern that backtracks":
        split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
        changed_json(folder / "tokenizer.json", pre_tokenizer=split)
    else:
        changed_json(folder / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [tenfold] * 9})
    raised(ModelError, "tokenizer cannot read a text", try_out, str(folder))


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", TEMPLATE])
def test_a_pipe_in_a_models_folder_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    raised(ModelError, f"{name} in the model's folder is not a file", adapted_model, make_config(model=str(folder)))


def test_sizes_that_no_model_has_are_refused_before_it_is_laid_out(folder):
    for size, number in (
        ("num_hidden_layers", 10**9), ("hidden_size", 10**9), ("vocab_size", 10**9), ("intermediate_size", 10**9),
        ("head_dim", 10**10), ("vocab_size", 8_000_000), ("num_attention_heads", 0), ("num_key_value_heads", 0),
        ("pad_token_id", 10**9)):  # fmt: skip
        other = shutil.copytree(folder, folder.parent / f"{size} {number}")
        changed_json(other / "config.json", **{size: number})
        raised(ModelError, "cannot be loaded", adapted_model, make_config(model=str(other)))


def test_a_size_that_the_configuration_computes_is_bounded_too():
    raised(ValueError, "num_hidden_layers = 3,000", outline_of, AutoConfig.for_model("longcat_flash", num_layers=1500))


def test_what_works_passes_and_is_tried_once(folder, monkeypatch):
    try_out(str(folder))
    monkeypatch.setattr("subprocess.run", lambda *command, **options: pytest.fail("it was tried again"))
    try_out(str(folder))
    for name in (*SHIPPED, "nowhere/such-model", "no name: of a model"):
        try_out(name)


def changed_weights(folder, change):
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def set_to(file="config.json", **values):
    return lambda folder: changed_json(folder / file, **values)


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


def no_weights(folder):
    (folder / WEIGHTS).unlink()


def pickled_weights(folder):
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def a_shard_less(folder):
    index = {name: "model-00002-of-00002.safetensors" for name in load_file(folder / WEIGHTS)}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}))
    (folder / WEIGHTS).unlink()


def not_a_number(folder):
    changed_weights(folder, lambda weights: weights["model.layers.0.mlp.up_proj.weight"][3, 4].fill_(torch.nan))


def merges_of_other_tokens(folder):
    model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    changed_json(folder / "tokenizer.json", model={**model, "vocab": dict.fromkeys(model["vocab"], 0)})


def more_tokens_than_rows(folder):
    changed_json(folder / "config.json", vocab_size=300)
    changed_weights(folder, lambda weights: weights.update({"model.embed_tokens.weight": torch.zeros(300, 32)}))


# how a folder is spoilt, what is said, what is advised, and whether it is said before the weights are read
SPOILT = {
    "another width": (set_to(intermediate_size=24), "its weights have other sizes than its config", "complete", False),
    "no width": (set_to(hidden_size=0), "its config.json has hidden_size = 0", "complete", True),
    "a list for a configuration": (text("config.json", "[]"), "cannot be loaded: ", "complete", True),
    "an unknown activation": (set_to(hidden_act="nope"), "KeyError: 'nope'", "complete", True),
    "no weights": (no_weights, "its folder holds no weights", "Copy or download the whole model", True),
    "pickled": (pickled_weights, "no safetensors weights, and pickled ones", "convert it to safetensors", True),
    "a pointer": (text(WEIGHTS, LARGE), "model.safetensors only stands for a file that Git LFS", "git lfs pull", False),
    "a tokenizer's": (text("tokenizer.json", LARGE), "tokenizer.json only stands for a file", "git lfs pull", True),
    "a weight less": (
        lambda folder: changed_weights(folder, lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight")),
        "lack 1 of its 20 weights, for example model.layers.1.mlp.up_", "download", False),
    "a shard less": (a_shard_less, "model-00002-of-00002.safetensors", "complete", False),
    "not a number": (not_a_number, "1 of the model's weights hold NaN or infinity, for", "damaged", False),
    "refuses": (text(TEMPLATE, "{{ raise_exception('For images') }}"), QUESTION + "For images", TEMPLATE, True),
    "fails": (text(TEMPLATE, "{{ messages[0]['content'] + 1 }}"), QUESTION + "TypeError: can only", TEMPLATE, True),
    "finds nothing": (
        text(TEMPLATE, "{{ messages[0]['content'] }}{{ 'a'.index('b') }}"), QUESTION + "ValueError: substring",
        TEMPLATE, True,
    ),
    "without end": (
        text(TEMPLATE, "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}"),
        QUESTION + "RecursionError: maximum", TEMPLATE, True,
    ),
    "too much": (text(TEMPLATE, "{{ 'a' * 10**15 }}"), QUESTION + "MemoryError", TEMPLATE, True),
    "no template": (text(TEMPLATE, "{% for message in messages %}"), QUESTION + "Unexpected end", TEMPLATE, True),
    "more tokens": (more_tokens_than_rows, "beyond the model's embedding, which has 300 rows", "that came with", True),
    "another kind": (text("config.json", '{"model_type": "vit"}'), "A model of the kind 'vit' does not write text",
     "causal language model", True),
    "nonsense": (set_to(num_hidden_layers="many"), "cannot be loaded: ", "complete", True),
    "empty": (text(WEIGHTS, ""), "cannot be loaded", "", False),
    "not what it says": (text(WEIGHTS, "not what it says"), "cannot be loaded", "", False),
    "half a configuration": (text("config.json", "{half"), "cannot be loaded", "", True),
    "an unknown type": (set_to(model_type="nobody-knows"), "cannot be loaded", "", True),
    "half a tokenizer": (text("tokenizer.json", "{half"), "cannot be", "", True),
    "a tokenizer of no model": (set_to("tokenizer.json", model=[]), UNREAD, "complete", True),
    "a normalizer of no kind": (set_to("tokenizer.json", normalizer=7), UNREAD, "complete", True),
    "no list of tokens": (set_to("tokenizer.json", added_tokens="x"), UNREAD, "complete", True),
    "merges of other tokens": (merges_of_other_tokens, "tokenizer", "", True),
    "a word for a length": (set_to(SETTINGS, model_max_length="x"), f"{SETTINGS}, model_max_length is 'x'", "", True),
    "a word for an end": (set_to(ENDS, eos_token_id="x"), "eos_token_id is 'x'", "Correct", False)}  # fmt: skip


@pytest.mark.parametrize(("spoil", "message", "fix", "early"), SPOILT.values(), ids=SPOILT)
def test_what_is_wrong_with_a_folder_is_said(folder, monkeypatch, spoil, message, fix, early):
    """Before the weights are read, where that can be: they may be gigabytes."""
    spoil(folder)
    if early:
        monkeypatch.setattr(loading.checks, "check_weights", lambda *read: pytest.fail("the weights were read"))
    error = raised(ModelError, "", adapted_model, make_config(model=str(folder)))
    assert message in error.message and fix in error.fix


def test_a_special_token_that_is_never_written_may_lack_a_vector(folder):
    """Gemma 3's 1B has one for images; a token that a text can become may not."""
    tokenizer = loading.load_tokenizer(make_config(model=str(folder)))
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    tokenizer.save_pretrained(folder)
    adapted_model(make_config(model=str(folder)))
    tokenizer.add_tokens(["<mine>"])
    tokenizer.save_pretrained(folder)
    raised(ModelError, "1 of its tokens, the first '<mine>'", adapted_model, make_config(model=str(folder)))


@pytest.mark.quick("no_weights")
@pytest.mark.parametrize("spoil", [no_weights, not_a_number], ids=lambda spoil: spoil.__name__)
def test_the_app_and_the_other_runs_go_on(folder, tiny, tmp_path, spoil):
    spoil(folder)
    worker = Worker(tmp_path)
    bad = worker.submit(make_config(model=str(folder), beta=tiny_config().beta), tiny)
    good = worker.submit(tiny_config(epochs=1), tiny)
    wait_until(lambda: worker.ahead_of(good) is None)
    (failed,) = [event for event in bad.events() if isinstance(event, RunFailed)]
    assert failed.message and failed.fix and "report this" not in failed.fix
    assert isinstance(good.events()[-1], RunDone)


def test_a_shape_that_cannot_be_is_left_to_loading(folder):
    changed_json(folder / "config.json", num_attention_heads=7)
    config = with_precision(make_config(model=str(folder), precision="auto"))
    assert config.precision == "float32"
    raised(ModelError, "cannot be loaded: ", adapted_model, config)
