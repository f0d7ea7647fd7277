import json
import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM

from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.model.loading import adapted_model
from adapop.model.tokens import collate, encode_facts
from adapop.paths import SANDBOX_FOLDER
from adapop.probes.metrics import delta_logprob, delta_rank, hidden_cosine, kl

QUESTIONS = ("Who wrote the book Emma?", "What is two plus three?", "Is this a question the model has ever seen, Qx?")


@pytest.fixture
def folder(tmp_path):
    """A copy of the sandbox model, to be spoilt."""
    return shutil.copytree(SANDBOX_FOLDER, tmp_path / "copy")


def load_folder(folder, **changes):
    return adapted_model(make_config(model=str(folder), **{"precision": "float32", **changes}))


def batch_of(model, facts):
    return collate(encode_facts(model.tokenizer, facts), model.tokenizer.pad_token_id)


@torch.no_grad()
def test_adapter_off_is_the_base_model(model, small, fresh):
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    base.requires_grad_(False)  # torch multiplies in another order where a weight may need a gradient
    batch = batch_of(model, small.forget)
    states = base.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
    expected = base.get_output_embeddings()(batch.at(states, batch.predicts))
    with model.original():
        assert torch.equal(model.score(batch, logits=True).logits, expected)
    assert not torch.allclose(model.score(batch, logits=True).logits, expected, atol=0.1)  # and on again
    with model.original():
        with model.original():
            pass
        assert torch.equal(model.score(batch, logits=True).logits, expected), "inside the original it stays so"
    model = fresh()
    on = model.score(batch, logits=True, hidden=True)
    with model.original():
        off = model.score(batch, logits=True, hidden=True)
    assert torch.equal(on.logits, off.logits)
    assert not delta_logprob(off, on).any() and not delta_rank(off, on, batch.target).any() and not kl(off, on).any()
    torch.testing.assert_close(hidden_cosine(off, on), torch.ones(batch.rows))


def test_a_fresh_adapter_changes_nothing_and_is_seeded(fresh, model):
    def first(seed):
        return fresh(seed=seed).parameters[0]

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))
    names = {name for name, parameter in model.network.named_parameters() if parameter.requires_grad}
    assert names and all("lora_A" in name or "lora_B" in name for name in names)
    assert len(names) == len(model.parameters) == 4 * 7 * 2  # layers, targets, A and B


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_in_bfloat16_the_output_layer_is_not_copied_for_each_row(folder, precision):
    """Which torch does on a CPU for states that lie apart, as those of the last positions do."""
    model, apart = load_folder(folder, precision=precision), []
    head = model.network.get_base_model().get_output_embeddings()
    head.register_forward_pre_hook(lambda module, inputs: apart.append(not inputs[0].is_contiguous()))
    model.generate(QUESTIONS, 2)
    assert apart and any(apart) == (precision == "float32")


@torch.no_grad()
def test_an_adapter_comes_back(model, small, tmp_path, fresh):
    batch = batch_of(model, small.forget)
    model.save_adapter(tmp_path)
    loaded = adapted_model(make_config(), tmp_path)
    assert torch.equal(loaded.score(batch).nll, model.score(batch).nll)
    assert len(loaded.parameters) == len(model.parameters)  # and it can be trained on
    assert {path.suffix for path in tmp_path.iterdir()} <= {".safetensors", ".json", ".md"}
    other = fresh(seed=3)
    other.set_adapter_state(model.adapter_state())
    assert torch.equal(other.score(batch).nll, model.score(batch).nll)


def test_missing_model():
    for name in ("nobody/no-such-model", "/no/such/folder", "a name with spaces", ""):
        with pytest.raises(ModelError, match="cannot be loaded"):
            load_folder(name)
    with pytest.raises(ModelError, match="lora_targets"):
        adapted_model(make_config(lora_targets=("c_attn",)))


def test_tokenizer_without_a_pad_token_pads_with_its_end_token(folder, fresh):
    path = folder / "tokenizer_config.json"
    content = json.loads(path.read_text())
    del content["pad_token"]
    path.write_text(json.dumps(content))
    model = load_folder(folder)
    assert model.tokenizer.pad_token_id == model.tokenizer.eos_token_id
    assert model.generate(QUESTIONS, 3) == fresh().generate(QUESTIONS, 3)
