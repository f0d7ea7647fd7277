"""Model folders that are spoilt: each is a sentence that says what is wrong and what to do, as early as it is known."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.model import loading
from adapop.model.cpu_speed import with_precision
from adapop.model.loading import adapted_model
from adapop.service.worker import Worker
from adapop.training.events import RunDone, RunFailed
from families import saved
from tiny_runs import tiny_config
from waiting import wait_until

WEIGHTS, TEMPLATE, POINTER = "model.safetensors", "chat_template.jinja", "version https://git-lfs.github.com/spec/v1\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A random model that works."""
    return saved("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of it, to be spoilt."""
    return shutil.copytree(whole, tmp_path / "copy")


def changed_weights(folder, change):
    """Rewrites the folder's weights."""
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def no_weights(folder):
    (folder / WEIGHTS).unlink()


def pickled_weights(folder):
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def a_pointer_for_weights(folder):
    (folder / WEIGHTS).write_text(f"{POINTER}oid sha256:0\nsize 9\n")


def a_pointer_for_a_tokenizer(folder):
    (folder / "tokenizer.json").write_text(f"{POINTER}oid sha256:0\nsize 9\n")


def a_weight_less(folder):
    changed_weights(folder, lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight"))


def a_shard_less(folder):
    weights = load_file(folder / WEIGHTS)
    index = {name: "model-00002-of-00002.safetensors" for name in weights}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}))
    (folder / WEIGHTS).unlink()


def not_a_number(folder):
    changed_weights(folder, lambda weights: weights["model.layers.0.mlp.up_proj.weight"][3, 4].fill_(torch.nan))


def a_template_that_refuses(folder):
    (folder / TEMPLATE).write_text("{{ raise_exception('Only for images') }}")


def a_template_that_fails(folder):
    (folder / TEMPLATE).write_text("{{ messages[0]['content'] + 1 }}")


def a_template_that_finds_nothing(folder):
    (folder / TEMPLATE).write_text("{{ messages[0]['content'] }}{{ 'a'.index('b') }}")


def a_template_that_splits_at_nothing(folder):
    (folder / TEMPLATE).write_text("{{ messages[0]['content'].split('') }}")


def a_template_without_end(folder):
    (folder / TEMPLATE).write_text("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}")


def a_template_that_is_too_much(folder):
    (folder / TEMPLATE).write_text("{{ 'a' * 10**15 }}")


def a_template_that_is_none(folder):
    (folder / TEMPLATE).write_text("{% for message in messages %}")


def more_tokens_than_rows(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 300}))
    changed_weights(folder, lambda weights: weights.update({"model.embed_tokens.weight": torch.zeros(300, 32)}))


def another_kind(folder):
    (folder / "config.json").write_text(json.dumps({"model_type": "vit"}))


def nonsense(folder):
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": "many"}))


def another_width(folder):
    changed_json(folder / "config.json", intermediate_size=24)


def no_width(folder):
    changed_json(folder / "config.json", hidden_size=0)


def an_unknown_activation(folder):
    changed_json(folder / "config.json", hidden_act="nope")


def a_list_for_a_configuration(folder):
    (folder / "config.json").write_text("[]")


# how a folder is spoilt: what is said, what is advised, and whether it is said before the weights are read
SPOILT = {
    another_width: ("its weights have other sizes than its config.json describes", "complete", False),
    no_width: ("its config.json has hidden_size = 0", "complete", True),
    a_list_for_a_configuration: ("cannot be loaded: ", "complete", True),
    an_unknown_activation: ("KeyError: 'nope'", "complete", True),
    no_weights: ("its folder holds no weights", "Copy or download the whole model", True),
    pickled_weights: ("no safetensors weights, and pickled ones are never read", "convert it to safetensors", True),
    a_pointer_for_weights: ("model.safetensors only stands for a file that Git LFS", "git lfs pull", False),
    a_pointer_for_a_tokenizer: ("tokenizer.json only stands for a file that Git LFS", "git lfs pull", True),
    a_weight_less: ("lack 1 of its 20 weights, for example model.layers.1.mlp.up_proj.weight", "download", False),
    a_shard_less: ("model-00002-of-00002.safetensors", "complete", False),
    not_a_number: (
        "1 of the model's weights hold NaN or infinity, for example model.layers.0.mlp.up",
        "damaged",
        False,
    ),
    a_template_that_refuses: ("chat template cannot show a question: Only for images", "chat_template.jinja", True),
    a_template_that_fails: ("chat template cannot show a question: TypeError: can only", "chat_template.jinja", True),
    a_template_that_finds_nothing: ("cannot show a question: ValueError: substring", "chat_template.jinja", True),
    a_template_that_splits_at_nothing: ("cannot show a question: ValueError: empty", "chat_template.jinja", True),
    a_template_without_end: ("cannot show a question: RecursionError: maximum", "chat_template.jinja", True),
    a_template_that_is_too_much: ("cannot show a question: MemoryError", "chat_template.jinja", True),
    a_template_that_is_none: ("chat template cannot show a question: Unexpected end", "chat_template.jinja", True),
    more_tokens_than_rows: ("lie beyond the model's embedding, which has 300 rows", "that came with these", True),
    another_kind: ("A model of the kind 'vit' does not write text", "causal language model", True),
    nonsense: ("cannot be loaded: ", "complete", True),
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_what_is_wrong_with_a_folder_is_said(folder, monkeypatch, spoil):
    """Before the weights are read, where that can be: they may be gigabytes."""
    message, fix, early = SPOILT[spoil]
    spoil(folder)
    if early:
        monkeypatch.setattr(loading.checks, "check_weights", lambda *read: pytest.fail("the weights were read"))
    with pytest.raises(ModelError) as caught:
        adapted_model(make_config(model=str(folder)))
    assert message in caught.value.message and fix in caught.value.fix


def test_a_special_token_that_is_never_written_may_lack_a_vector(folder):
    """Gemma 3's 1B has one for images; a token that a text can become may not."""
    tokenizer = loading.load_tokenizer(make_config(model=str(folder)))
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    tokenizer.save_pretrained(folder)
    adapted_model(make_config(model=str(folder)))
    tokenizer.add_tokens(["<mine>"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match="1 of its tokens, the first '<mine>'"):
        adapted_model(make_config(model=str(folder)))


@pytest.mark.quick("no_weights")
@pytest.mark.parametrize("spoil", [no_weights, not_a_number, more_tokens_than_rows], ids=lambda spoil: spoil.__name__)
def test_the_app_and_the_other_runs_go_on(folder, tiny, tmp_path, spoil):
    spoil(folder)
    worker = Worker(tmp_path)
    bad = worker.submit(make_config(model=str(folder), beta=tiny_config().beta), tiny)
    good = worker.submit(tiny_config(epochs=1), tiny)
    wait_until(lambda: worker.ahead_of(good) is None)
    (failed,) = [event for event in bad.events() if isinstance(event, RunFailed)]
    assert failed.message and failed.fix and "report this" not in failed.fix
    assert isinstance(good.events()[-1], RunDone)


def changed_json(file, **values):
    known = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(known | values))


def test_a_shape_that_cannot_be_is_left_to_loading_where_the_precision_is_to_be_tried(folder):
    changed_json(folder / "config.json", num_attention_heads=7)
    config = with_precision(make_config(model=str(folder), precision="auto"))
    assert config.precision == "float32"
    with pytest.raises(ModelError, match="cannot be loaded: "):
        adapted_model(config)


@pytest.mark.parametrize(
    ("file", "name"), [("tokenizer_config.json", "model_max_length"), ("generation_config.json", "eos_token_id")]
)
def test_a_word_in_place_of_a_number_is_named(folder, file, name):
    changed_json(folder / file, **{name: "x"})
    with pytest.raises(ModelError, match=f"{file}.*{name} is 'x'"):
        adapted_model(make_config(model=str(folder)))
