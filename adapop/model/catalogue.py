"""Language models by name, with their sizes, licences and notes (`assets/models.json`), and how
much memory a run will need, from a model's configuration alone: nothing is loaded.

Other causal language models of the Hub, a folder or a GGUF file can be used as well: `loading`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapop.assets import read_json
from adapop.config.run import ALL_LINEAR, RunConfig
from adapop.errors import ModelError
from adapop.model import adapter_folder
from adapop.model.converted import folder_of, is_gguf
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
SAME_INPUT: tuple[tuple[str, ...], ...] = (
    ("q_proj", "k_proj", "v_proj"),
    ("gate_proj", "up_proj"),
    ("down_proj",),
)
SAME_INPUT += (("attn.c_attn",), ("mlp.c_fc",), ("mlp.c_proj",))
# the MLP's width, by its names in Llama, OPT, Falcon and GPT-2
INNER = ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")
BIASED = ("qwen2",)  # model types with biases on query, key and value
GROWN = 2  # times its own size that a cache takes while it is copied to grow
LOGITS = 8  # copies of the logits in float32, where both models are compared


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


# licences that must be accepted on the model's page before the weights can be downloaded
GATED = ("Llama 3.1 Community", "Llama 3.2 Community", "Gemma Terms of Use")
# entries of a config.json without which there is no estimate
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
OTHER_SIZES = ("head_dim", "num_key_value_heads", "n_positions", *INNER)  # used where given
# entries of mixture models, for which there is no estimate
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True)
class Preset:
    """One model that can be picked by name."""

    id: str
    """Its id on the Hugging Face Hub, or its name in `paths.PACKAGED`."""
    billions: float
    """Number of parameters, in billions."""
    licence: str
    """Name of its licence, "" where the model's page gives none."""
    shape: Mapping[str, Any]
    """The entries of its config.json that `footprint` reads."""
    paper: str = ""
    """Its name in the paper's tables (a key of `published.PAPER_MODELS`), or ""."""
    tuned_on: str = ""
    """The benchmark that it was fine-tuned on ("duet"), "" for an original model."""
    note: str = ""
    """A note to read before using it, shown to the user."""
    origin: str = ""
    """For a model from a Python package: Hub id of the model that it was quantised from."""
    oracle: str = ""
    """Id of a model trained in the same way without some texts, or ""."""
    never_read: tuple[str, ...] = ()
    """Names of the sets whose facts stand in the texts that the oracle never read."""

    def __post_init__(self) -> None:
        if not _has_sizes(self.shape):
            raise ValueError(f"shape needs whole numbers above 0 for {', '.join(SIZES)}")

    @property
    def gated(self) -> bool:
        """Whether a download needs an accepted licence and a token."""
        return self.licence in GATED and not self.origin

    @property
    def page(self) -> str:
        """Address of the page with the model's description and licence."""
        return f"https://huggingface.co/{self.origin or self.id}"

    @property
    def title(self) -> str:
        """Name and size, and whether it is gated or from a package, for a list of choices."""
        size = f"{self.billions:g} B" if self.billions >= 1 else f"{1000 * self.billions:g} M"
        access = ", from pip" if self.origin else ", gated" if self.gated else ""
        return f"{(self.origin or self.id).rpartition('/')[2]} ({size}{access})"


def preset_of(model: str) -> Preset | None:
    """The preset whose id ends in the same name as this Hub id or folder; None for other models."""
    name = model.rstrip("/\\").replace("\\", "/").rpartition("/")[2].lower()
    named = {preset.id.rpartition("/")[2].lower(): preset for preset in MODELS.values()}
    return named.get(name)


def oracle_for(model: str) -> str:
    """Hub id of a preset's oracle; for a model in a folder, the oracle's folder beside it. "" for a
    preset without an oracle and for any other model, even one that shares a preset's name."""
    preset, folder = preset_of(model), Path(model)
    if preset is None or not preset.oracle or not (model == preset.id or folder.is_dir()):
        return ""
    beside = str(folder.with_name(preset.oracle.rpartition("/")[2]))
    return beside if folder.is_dir() else preset.oracle


def shape_of(model: str) -> Mapping[str, Any] | None:
    """The config.json of a preset, of a model folder or of a converted GGUF file, of an
    adapter's base; sizes by their common names. None without one, or for a model that no estimate
    covers."""
    preset = preset_of(model)
    if preset and not (Path(model) / "config.json").is_file():
        return preset.shape
    try:
        folder = folder_of(model) if is_gguf(model) else Path(model)
        folder = adapter_folder.base_of(model) if adapter_folder.is_adapter(model) else folder
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (ModelError, OSError, ValueError, RecursionError):
        return None
    content = content.get("text_config") or content if isinstance(content, dict) else None
    if isinstance(content, dict) and content.get("model_type") == GPT2:
        content = {COMMON_NAMES.get(name, name): value for name, value in content.items()}
    return content if isinstance(content, dict) and _has_sizes(content) else None


def _has_sizes(shape: Mapping[str, Any]) -> bool:
    """Whether all sizes for an estimate are whole numbers above 0, in a model without experts."""
    if any(shape.get(name) for name in EXPERTS):
        return False
    others = (shape[name] for name in OTHER_SIZES if shape.get(name) is not None)
    return all(type(value) is int and value > 0 for value in (*map(shape.get, SIZES), *others))


MODELS = {preset.id: preset for preset in read_json("models.json", list[Preset])}
