"""Small random models of further architectures, by the name that their config.json gives as `model_type`."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, PreTrainedModel

from families import TOKENIZERS

SHAPE = dict(
    vocab_size=512, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=48, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
HEADS = dict(head_dim=8)
VISION = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2)
LINEAR_ATTENTION = dict(
    linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
)  # fmt: skip
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16)
LATENT = dict(
    q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, n_routed_experts=4,
    n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=16, first_k_dense_replace=1,
)  # fmt: skip
KINDS = {
    "gemma3": dict(
        text_config={**SHAPE, **HEADS}, vision_config={**VISION, "image_size": 28, "patch_size": 14},
        mm_tokens_per_image=4,
    ),
    "qwen2_5_vl": dict(
        text_config={**SHAPE, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}},
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=32),
    ),
    "gpt2": dict(vocab_size=512, n_embd=32, n_layer=4, n_head=4, n_positions=512, bos_token_id=1, eos_token_id=2),
    "phi3": SHAPE,
    "phi": SHAPE,
    "deepseek_v3": {**SHAPE, **HEADS, **LATENT},
    "qwen3": {**SHAPE, **HEADS},
    "qwen3_next": {**SHAPE, **HEADS, **LINEAR_ATTENTION, **EXPERTS},
    "mamba": dict(vocab_size=512, hidden_size=32, num_hidden_layers=4),
    "opt": dict(
        vocab_size=512, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, ffn_dim=48,
        word_embed_proj_dim=32, max_position_embeddings=512, dropout=0.5,
    ),
}  # fmt: skip


def random_model(kind: str) -> PreTrainedModel:
    torch.manual_seed(0)
    shape = AutoConfig.for_model(kind, **KINDS[kind])
    auto = AutoModelForCausalLM if type(shape) in AutoModelForCausalLM._model_mapping else AutoModelForImageTextToText
    return auto.from_config(shape)


def saved_kind(kind: str, folder: Path) -> Path:
    """A random model of an architecture with Llama's tokenizer, in a folder as `--model` takes it."""
    random_model(kind).save_pretrained(folder)
    TOKENIZERS["llama"]().save_pretrained(folder)
    return folder
