"""How much memory a run will need, from a model's configuration alone: nothing is loaded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapop.config.run import ALL_LINEAR, RunConfig
from adapop.paths import SANDBOX_FOLDER

SANDBOX_MODEL: dict[str, Any] = json.loads((SANDBOX_FOLDER / "config.json").read_text("utf-8"))
WIDTH = {"bfloat16": 2, "float32": 4, "auto": 2}  # bytes of a weight; for "auto" at least
FLOAT32 = 4
# bytes per weight in NF4 with double quantisation: 4 bits and 0.127 bits of scales
FOUR_BITS = 0.516
ADAPTER_COPIES = 4  # value, gradient and AdamW's two moments, all in float32
# model types with norms before and after both attention and MLP; others have two in a block
FOUR_NORMS = ("gemma2", "gemma3", "gemma3_text")
# a model type with other linear maps; its number of learnt positions if config.json gives none
GPT2, POSITIONS = "gpt2", 1024
# GPT-2's names -> the common ones
COMMON_NAMES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
}
# linear maps that read the same input; the input of o_proj is kept anyway
SAME_INPUT = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("down_proj",))
SAME_INPUT += (("attn.c_attn",), ("mlp.c_fc",), ("mlp.c_proj",))
# the MLP's width, by its names in Llama, OPT, Falcon and GPT-2
INNER = ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")
BIASED = ("qwen2",)  # model types with biases on query, key and value
GROWN = 2  # times its own size that a cache takes while it is copied to grow
LOGITS = 8  # copies of the logits in float32, where both models are compared
OF_A_BLOCK = ("rmu", "adaptive-rmu")  # methods whose loss reads a block's output, not logits


@dataclass(frozen=True)
class Footprint:
    """Memory during training, in bytes."""

    weights: int
    """The frozen base's weights."""
    adapter: int
    """LoRA weights with gradient and optimiser state."""
    activations: int
    """The peak of a forward and backward pass."""

    @property
    def total(self) -> int:
        return self.weights + self.adapter + self.activations


def footprint(
    model: Mapping[str, Any],
    config: RunConfig,
    tokens: int,
    rows: int | None = None,
    answer: int = 1,
) -> Footprint:
    """The estimate for a model built like Llama (Mistral, Qwen, Gemma ...) or GPT-2.

    model: its config.json, with sizes under their common names. tokens: in the longest row. rows:
    in a forward pass; by default `micro_batch`, or 2 * `batch` if that is 0. answer: tokens in an
    answer."""
    rows = rows or config.micro_batch or 2 * config.batch
    layers, (stored, passing) = model["num_hidden_layers"], _block_bytes(model, config)
    # log-softmax, its gradient, and the gradient of the logits
    head = rows * answer * model["vocab_size"] * 3 * FLOAT32
    activations = rows * tokens * layers * stored + max(head, rows * tokens * passing)
    adapter = adapter_size(model, config) * FLOAT32 * ADAPTER_COPIES
    return Footprint(_weight_bytes(model, config), adapter, activations)


def row_bytes(
    model: Mapping[str, Any], width: int, tokens: int, answer: int, new_tokens: int = 0
) -> int:
    """The most bytes that a row takes without a gradient: scored by both models, which keep all
    hidden states, or, if new_tokens is given, continued by that number of tokens. model: its
    config.json. width: bytes of a weight. tokens: of the row. answer: tokens scored."""
    hidden, layers = model["hidden_size"], model["num_hidden_layers"]
    passing = width * 2 * _inner(model) + FLOAT32 * 4 * hidden
    cache = layers * width * 2 * _attention(model)[1]
    stored = GROWN * cache if new_tokens else 2 * (layers + 1) * width * hidden
    logits = LOGITS * FLOAT32 * model["vocab_size"] * (1 if new_tokens else answer)
    return (tokens + new_tokens) * (stored + passing) + logits


def adapter_size(model: Mapping[str, Any], config: RunConfig) -> int:
    """Number of weights in the adapter."""
    blocks = model["num_hidden_layers"] if config.lora_layers is None else len(config.lora_layers)
    adapted = _adapted_shapes(_linear_shapes(model), config)
    return blocks * config.lora_rank * sum(map(sum, adapted.values()))


def operations(model: Mapping[str, Any], config: RunConfig, tokens: int, answers: int) -> float:
    """Floating-point operations of all matrix products of a training step.

    tokens: number of tokens read. answers: number of tokens scored. Each weight of the frozen base
    takes part in two products per token: one forward, and, down to the lowest adapter, one for the
    gradient of its input. Adapter weights take part in a third, for their own gradient. Attention
    between positions is left out: rows are short."""
    linear = sum(inputs * outputs for inputs, outputs in _linear_shapes(model).values())
    block, head = linear * tokens, model["hidden_size"] * model["vocab_size"] * answers
    base = (model["num_hidden_layers"] + _backward_blocks(model, config)) * block + head
    base += 0 if config.method in OF_A_BLOCK else head
    return 2.0 * (base + 3 * adapter_size(model, config) * tokens)


def _backward_blocks(model: Mapping[str, Any], config: RunConfig) -> int:
    """Number of blocks that the gradient passes through, from the loss down to the lowest adapter.
    If the loss reads one block's output, the highest adapted block counts as the last."""
    if config.lora_layers is None:
        return model["num_hidden_layers"]
    top = max(config.lora_layers) + 1 if config.method in OF_A_BLOCK else model["num_hidden_layers"]
    return top - min(config.lora_layers)


def _weight_bytes(model: Mapping[str, Any], config: RunConfig) -> int:
    width = WIDTH[config.precision]
    hidden = model["hidden_size"]
    layers = model["num_hidden_layers"]
    shapes = _linear_shapes(model)
    linear = layers * sum(inputs * outputs for inputs, outputs in shapes.values())
    gpt2 = model.get("model_type") == GPT2
    norms = layers * (4 if model.get("model_type") in FOUR_NORMS else 2) + 1
    bias, (queries, keys) = 0, _attention(model)
    if gpt2:  # biases on all linear maps and norms; positions have embeddings, as tokens do
        bias = layers * sum(outputs for _, outputs in shapes.values())
        bias += (norms + (model.get("n_positions") or POSITIONS)) * hidden
    elif model.get("attention_bias") or model.get("model_type") in BIASED:
        bias = layers * (queries + 2 * keys)
    embedding = model["vocab_size"] * hidden * (1 if model.get("tie_word_embeddings", gpt2) else 2)
    narrow = int(linear * (FOUR_BITS if config.four_bit else width))
    return narrow + (norms * hidden + bias + embedding) * width


def _block_bytes(model: Mapping[str, Any], config: RunConfig) -> tuple[int, int]:
    """Bytes per token: (kept by a block for the backward pass, needed while it is computed).

    Kept are the inputs of the norms (in float32); query, key, value (repeated for all heads) and
    output of the attention, but not its scores (SDPA); three tensors of the MLP; and the inputs of
    adapted layers: a float32 copy for each if the base is in bfloat16, else one for all layers with
    the same input. GPT-2's norms keep their inputs unconverted, and its activation, which is
    written out, keeps four tensors of the MLP."""
    width, hidden, inner = WIDTH[config.precision], model["hidden_size"], _inner(model)
    shapes = _linear_shapes(model)
    adapted = _adapted_shapes(shapes, config)
    if width < FLOAT32:
        read = sum(inputs for inputs, _ in adapted.values())
    else:
        groups = [names for names in SAME_INPUT if not adapted.keys().isdisjoint(names)]
        read = sum(shapes[names[0]][0] for names in groups)
    gpt2 = model.get("model_type") == GPT2
    stored = width * (4 * _attention(model)[0] + (4 if gpt2 else 3) * inner)
    stored += (width if gpt2 else FLOAT32) * 2 * hidden
    stored += FLOAT32 * (read + config.lora_rank * len(adapted))
    return stored, width * 2 * inner + FLOAT32 * 4 * hidden


def _adapted_shapes(
    shapes: Mapping[str, tuple[int, int]], config: RunConfig
) -> dict[str, tuple[int, int]]:
    """Name -> (inputs, outputs) of the linear maps with an adapter. Their names end in a target."""
    if config.lora_targets == (ALL_LINEAR,):
        return dict(shapes)
    targets = config.lora_targets
    return {name: shape for name, shape in shapes.items() if name.split(".")[-1] in targets}


def _inner(model: Mapping[str, Any]) -> int:
    """Width of the MLP, the largest of several (Gemma 3n); four times the hidden size where none is
    given (GPT-2, Bloom)."""
    inner = next((model[name] for name in INNER if model.get(name)), 4 * model["hidden_size"])
    return max(inner) if isinstance(inner, list | tuple) else inner


def _attention(model: Mapping[str, Any]) -> tuple[int, int]:
    """(width of all queries of a token, width of all its keys, which is that of its values too)."""
    heads = model["num_attention_heads"]
    size = model.get("head_dim") or model["hidden_size"] // heads
    return heads * size, (model.get("num_key_value_heads") or heads) * size


def _linear_shapes(model: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """(inputs, outputs) of each linear map of a block."""
    hidden, inner, (queries, keys) = model["hidden_size"], _inner(model), _attention(model)
    if model.get("model_type") == GPT2:
        attention = {"attn.c_attn": (hidden, queries + 2 * keys), "attn.c_proj": (queries, hidden)}
        return {**attention, "mlp.c_fc": (hidden, inner), "mlp.c_proj": (inner, hidden)}
    return {
        "q_proj": (hidden, queries),
        "k_proj": (hidden, keys),
        "v_proj": (hidden, keys),
        "o_proj": (queries, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }
