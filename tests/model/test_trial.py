"""Model folders that would hang the app or fill its memory: each is a sentence within seconds."""

import json
import os
import shutil

import pytest

from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.model.loading import adapted_model
from adapop.model.trial import try_out
from adapop.paths import SHIPPED
from families import saved

TEMPLATE = "chat_template.jinja"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A random model that works."""
    return saved("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of it, to be spoilt."""
    return shutil.copytree(whole, tmp_path / "copy")


def tokenizer_of(folder, **changes):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


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
    with pytest.raises(ModelError, match="chat template cannot show a question") as caught:
        try_out(str(folder))
    assert TEMPLATE in caught.value.fix


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a pattern that backtracks", "a normalizer that fills the memory"])
def test_a_tokenizer_that_would_never_end_is_refused(folder, kind):
    pattern = {"Regex": r"((\w|\s)*)*\d\d\d\d$"}
    tenfold = {"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 10}
    if kind == "a pattern that backtracks":
        split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
        tokenizer_of(folder, pre_tokenizer=split)
    else:
        tokenizer_of(folder, normalizer={"type": "Sequence", "normalizers": [tenfold] * 9})
    with pytest.raises(ModelError, match="tokenizer cannot read a text"):
        try_out(str(folder))


def test_a_tokenizer_that_does_not_read_is_refused(folder):
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    other = {**content["model"], "vocab": dict.fromkeys(content["model"]["vocab"], 0)}  # not that of its merges
    for spoilt, said in (
        ({"model": []}, "its tokenizer.json cannot be read"), ({"normalizer": 7}, "its tokenizer.json cannot be read"),
        ({"added_tokens": "x"}, "its tokenizer.json cannot be read"), ({"model": other}, "tokenizer"),
    ):  # fmt: skip
        (folder / "tokenizer.json").write_text(json.dumps({**content, **spoilt}), encoding="utf-8")
        with pytest.raises(ModelError) as caught:
            adapted_model(make_config(model=str(folder)))
        assert said in caught.value.message


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", TEMPLATE])
def test_a_pipe_in_a_models_folder_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ModelError, match=f"{name} in the model's folder is no file"):
        adapted_model(make_config(model=str(folder)))


def test_sizes_that_no_model_has_are_refused_before_it_is_laid_out(folder):
    config = (folder / "config.json").read_text(encoding="utf-8")
    for size, number in (
        ("num_hidden_layers", 10**9), ("hidden_size", 10**9), ("vocab_size", 10**9), ("intermediate_size", 10**9),
        ("head_dim", 10**10), ("vocab_size", 8_000_000), ("num_attention_heads", 0), ("num_key_value_heads", 0),
        ("pad_token_id", 10**9),
    ):  # fmt: skip
        (folder / "config.json").write_text(json.dumps({**json.loads(config), size: number}), encoding="utf-8")
        with pytest.raises(ModelError, match="cannot be loaded"):
            adapted_model(make_config(model=str(folder)))


def test_what_works_passes_and_is_tried_once(folder, monkeypatch):
    try_out(str(folder))
    monkeypatch.setattr("subprocess.run", lambda *command, **options: pytest.fail("it was tried again"))
    try_out(str(folder))
    for name in (*SHIPPED, "nowhere/such-model", "no name: of a model"):
        try_out(name)
