"""Small GGUF files, written by llama.cpp's own package from a random Llama as its converter writes them."""

import json
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from families import GROUPED, SHAPE, TOKENIZERS

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "model.layers.": "blk.",
}  # fmt: skip
BLOCK = 32  # numbers that share a scale in Q8_0
NORMAL, CONTROL = 1, 3  # types of tokens


def little_llama():
    """A random Llama in float32 and a tokenizer with a ChatML template."""
    tokenizer = TOKENIZERS["qwen2"]()
    torch.manual_seed(0)
    ends = dict(bos_token_id=None, eos_token_id=tokenizer.eos_token_id)
    shape = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **SHAPE, **GROUPED, **ends)
    return LlamaForCausalLM(shape), tokenizer


def turned(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key projection in llama.cpp's order: pairs that are turned together stand together."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, template: bool = True, dtype=None, change=lambda writer: None, left_out=(), **values):
    """Writes the little Llama's file. dtype: a GGMLQuantizationType its matrices are stored in, float32 by default.

    change: called with the GGUFWriter before the weights. values: of the header, in place of the model's own.
    """
    import gguf

    network, tokenizer = little_llama()
    shape = network.config
    writer = gguf.GGUFWriter(path, values.get("architecture", "llama"))
    writer.add_block_count(values.get("blocks", shape.num_hidden_layers))
    writer.add_context_length(shape.max_position_embeddings)
    writer.add_embedding_length(values.get("width", shape.hidden_size))
    writer.add_feed_forward_length(values.get("inner", shape.intermediate_size))
    writer.add_head_count(shape.num_attention_heads)
    writer.add_head_count_kv(shape.num_key_value_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    control = {*tokenizer.all_special_ids, tokenizer.convert_tokens_to_ids("<|im_start|>")}
    writer.add_token_types([CONTROL if number in control else NORMAL for number in range(len(tokens))])
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    if template:
        writer.add_chat_template(tokenizer.chat_template)
    change(writer)
    heads = {"q_proj": shape.num_attention_heads, "k_proj": shape.num_key_value_heads}
    for name, weight in network.state_dict().items():
        if name == "lm_head.weight" or name in left_out:  # tied
            continue
        data = weight.numpy()
        for part, count in heads.items():
            data = turned(data, count) if part in name else data
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        kind = None if data.ndim == 1 or data.shape[1] % BLOCK else dtype
        stored = gguf.quantize(data, kind) if kind is not None else np.ascontiguousarray(data)
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
