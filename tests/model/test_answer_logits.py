"""Logits are computed where answers are predicted and nowhere else, whatever the architecture does to them after."""

from types import SimpleNamespace

import pytest
import torch

from adapop.config.presets import make_config
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.tokens import Row, collate
from families import random_network


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "gemma2", "cohere2", "gpt_neox"])
def test_answers_only_is_the_full_matrix_at_the_answers(kind):
    base, widths = random_network(kind), []
    targets = ("query_key_value",) if kind == "gpt_neox" else ("q_proj", "v_proj")
    model = AdaptedModel(with_adapter(base, make_config(lora_targets=targets)), SimpleNamespace(pad_token_id=0))
    model.network.eval()
    batch = collate([Row(tuple(range(5, 9 + i)), tuple(range(20, 21 + i % 3)), i) for i in range(8)], 0)
    base.get_output_embeddings().register_forward_hook(lambda module, inputs, output: widths.append(output.shape))
    whole = model.network(input_ids=batch.ids, use_cache=False).logits
    scored = model.score(batch, logits=True)
    assert widths[-1] == (batch.count, base.config.vocab_size) and scored.logits.std() > 0
    torch.testing.assert_close(scored.logits, batch.at(whole, batch.predicts), rtol=1e-5, atol=1e-6)
