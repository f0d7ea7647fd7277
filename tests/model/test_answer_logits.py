"""Logits are computed where answers are predicted and nowhere else, whatever the architecture does to them after."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from adapop.config.presets import make_config
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.loading import load_tokenizer
from adapop.model.tokens import collate, encode_facts

SMALL = {
    "vocab_size": 1728, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 48,
}  # fmt: skip
SHAPES = {
    "llama": {"num_key_value_heads": 1},
    "qwen2": {"num_key_value_heads": 1},
    "gemma": {"head_dim": 16, "num_key_value_heads": 1},
    "gemma2": {"head_dim": 16, "num_key_value_heads": 1, "final_logit_softcapping": 0.1},
    "cohere": {"num_key_value_heads": 1, "logit_scale": 0.5},
    "gpt_neox": {},
}


@pytest.mark.parametrize("kind", SHAPES)
def test_answers_only_is_the_full_matrix_at_the_answers(kind, small):
    torch.manual_seed(0)
    targets = ("query_key_value",) if kind == "gpt_neox" else ("q_proj", "v_proj")
    base = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(kind, **SMALL, **SHAPES[kind], pad_token_id=0, bos_token_id=1, eos_token_id=3)
    )
    tokenizer = load_tokenizer(make_config())
    model = AdaptedModel(with_adapter(base, make_config(lora_targets=targets)), tokenizer)
    model.network.eval()
    facts = [
        fact.__class__(fact.id, fact.question, f"{fact.answer}{' one' * (i % 3)}")
        for i, fact in enumerate(small.forget)
    ]
    batch = collate(encode_facts(tokenizer, facts), tokenizer.pad_token_id)
    widths = []
    base.get_output_embeddings().register_forward_hook(lambda module, inputs, output: widths.append(output.shape))
    with torch.no_grad():
        whole = model.network(input_ids=batch.ids, use_cache=False).logits
        scored = model.score(batch, logits=True)
    assert widths[-1] == (batch.count, 1728)
    expected = batch.at(whole, batch.predicts)
    torch.testing.assert_close(scored.logits, expected, rtol=1e-5, atol=1e-6)
    assert scored.logits.std() > 0
    if kind == "gemma2":
        assert scored.logits.abs().max() < 0.1  # capped
