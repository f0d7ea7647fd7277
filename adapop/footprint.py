"""How much memory a run will need, from a model's configuration alone: nothing is loaded or downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapop.config import RunConfig

SANDBOX_ASSETS = Path(__file__).resolve().parents[1] / "assets" / "sandbox"
SANDBOX_MODEL: dict[str, Any] = json.loads((SANDBOX_ASSETS / "config.json").read_text(encoding="utf-8"))
WIDTH = {"bfloat16": 2, "float32": 4}
FLOAT32 = 4
ADAPTER_COPIES = 4  # value, gradient and AdamW's two moments, all in float32


@dataclass(frozen=True)
class Footprint:
    """Bytes that stay in memory during training. weights: the frozen base. adapter: LoRA with gradient and optimiser.
    activations: what one forward pass of forget rows keeps for its backward pass."""

    weights: int
    adapter: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.adapter + self.activations


def footprint(model: Mapping[str, Any], config: RunConfig, tokens: int) -> Footprint:
    """The estimate for a Llama-shaped model. model: its config.json. tokens: the longest row, prompt and answer.

    Activations are counted per layer and token: the inputs of every adapted and norm layer, the attention's query, key,
    value and output, and the three of the MLP; then the logits of the answer. Attention scores are never kept (SDPA).
    """
    shapes = _linear_shapes(model)
    width = WIDTH[config.precision]
    layers, hidden, inner = model["num_hidden_layers"], model["hidden_size"], model["intermediate_size"]
    embedding = model["vocab_size"] * hidden * (1 if model.get("tie_word_embeddings") else 2)
    base = layers * (sum(rows * columns for rows, columns in shapes.values()) + 2 * hidden) + embedding + hidden
    adapted = [shapes[name] for name in config.lora_targets if name in shapes]
    lora = layers * sum(config.lora_rank * (rows + columns) for rows, columns in adapted)
    attention = shapes["q_proj"][1] + 2 * shapes["k_proj"][1] + shapes["o_proj"][0]
    kept = width * (4 * hidden + attention + 4 * inner) + FLOAT32 * (2 * hidden + 2 * config.lora_rank * len(adapted))
    kept += FLOAT32 * sum(rows for rows, _ in adapted if width < FLOAT32)  # the adapter reads its input in float32
    logits = 2 * FLOAT32 * model["vocab_size"] * config.micro_batch
    activations = config.micro_batch * tokens * layers * kept + logits
    return Footprint(base * width, lora * FLOAT32 * ADAPTER_COPIES, activations)


def _linear_shapes(model: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """(inputs, outputs) of each linear map of a layer."""
    hidden, inner, heads = model["hidden_size"], model["intermediate_size"], model["num_attention_heads"]
    size = model.get("head_dim") or hidden // heads
    queries, keys = heads * size, model.get("num_key_value_heads", heads) * size
    return {
        "q_proj": (hidden, queries),
        "k_proj": (hidden, keys),
        "v_proj": (hidden, keys),
        "o_proj": (queries, hidden),
        "gate_proj": (hidden, inner),
        "up_proj": (hidden, inner),
        "down_proj": (inner, hidden),
    }
