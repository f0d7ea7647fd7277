"""Language models one can pick by name, and what is known of each without loading it. Any other causal model of the
Hub, or a folder, does as well: see `loading`.

Shapes are those of each model's config.json, parameters in billions; `test_models` checks one against the other. The
paper's three models and the fine-tuned one: METHODS 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapop.model.footprint import INNER

APACHE, LLAMA_31, LLAMA_32, GEMMA = "Apache 2.0", "Llama 3.1 Community", "Llama 3.2 Community", "Gemma Terms of Use"
GATED = (LLAMA_31, LLAMA_32, GEMMA)  # to be accepted on the model's page before its weights can be downloaded


@dataclass(frozen=True)
class Preset:
    """One model. billions: parameters. licence: "" where nobody told us. paper: what `published` calls it, "" if the
    paper has no numbers for it. note: what to know. shape: the numbers of its config.json that `footprint` reads."""

    id: str
    billions: float
    licence: str
    shape: Mapping[str, Any]
    paper: str = ""
    note: str = ""

    @property
    def gated(self) -> bool:
        """Whether its licence must be accepted, and a token given, before it can be downloaded."""
        return self.licence in GATED

    @property
    def page(self) -> str:
        """Where it is described, and its licence accepted."""
        return f"https://huggingface.co/{self.id}"

    @property
    def title(self) -> str:
        """Name and size, and whether it is gated, for a list of choices."""
        size = f"{self.billions:g} B" if self.billions >= 1 else f"{1000 * self.billions:g} M"
        return f"{self.id.rpartition('/')[2]} ({size}{', gated' if self.gated else ''})"


def _shape(
    kind: str, layers: int, hidden: int, inner: int, heads: tuple[int, int, int], vocabulary: int, tied: bool = True
) -> dict[str, Any]:
    """heads: of queries, of keys and values, and how wide each is. tied: the output head is the embedding."""
    queries, keys, width = heads
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": queries,
        "num_key_value_heads": keys,
        "head_dim": width,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }


SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")  # what any estimate needs
OTHER_SIZES = ("head_dim", "num_key_value_heads", *INNER)  # what it uses where it is there
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")  # of such models none is right
TUNED = "Fine-tuned on DUET's facts (LoRA, merged). The paper's DUET runs start from a model that knows DUET, too."
NO_SYSTEM = "Its chat template has no system role: a system prompt goes in front of the question."
SMOLLM2_135M = _shape("llama", 30, 576, 1536, (9, 3, 64), 49_152)
SMOLLM2_360M = _shape("llama", 32, 960, 2560, (15, 5, 64), 49_152)
SMOLLM2_2B = _shape("llama", 24, 2048, 8192, (32, 32, 64), 49_152)
QWEN_500M = _shape("qwen2", 24, 896, 4864, (14, 2, 64), 151_936)
QWEN_2B = _shape("qwen2", 28, 1536, 8960, (12, 2, 128), 151_936)
QWEN_7B = _shape("qwen2", 28, 3584, 18944, (28, 4, 128), 152_064, tied=False)
GEMMA3_1B = _shape("gemma3_text", 26, 1152, 6912, (4, 1, 256), 262_144)
GEMMA_7B = _shape("gemma", 28, 3072, 24576, (16, 16, 256), 256_000)
LLAMA_1B = _shape("llama", 16, 2048, 8192, (32, 8, 64), 128_256)
LLAMA_8B = _shape("llama", 32, 4096, 14336, (32, 8, 128), 128_256, tied=False)
MODELS = {
    preset.id: preset
    for preset in (
        Preset("HuggingFaceTB/SmolLM2-135M-Instruct", 0.135, APACHE, SMOLLM2_135M),
        Preset("HuggingFaceTB/SmolLM2-360M-Instruct", 0.362, APACHE, SMOLLM2_360M),
        Preset("Qwen/Qwen2.5-0.5B-Instruct", 0.494, APACHE, QWEN_500M),
        Preset("google/gemma-3-1b-it", 1.0, GEMMA, GEMMA3_1B),
        Preset("meta-llama/Llama-3.2-1B-Instruct", 1.24, LLAMA_32, LLAMA_1B),
        Preset("Qwen/Qwen2.5-1.5B-Instruct", 1.54, APACHE, QWEN_2B),
        Preset("HuggingFaceTB/SmolLM2-1.7B-Instruct", 1.71, APACHE, SMOLLM2_2B),
        Preset("Qwen/Qwen2.5-7B-Instruct", 7.62, APACHE, QWEN_7B, "Qwen"),
        Preset("meta-llama/Llama-3.1-8B-Instruct", 8.03, LLAMA_31, LLAMA_8B, "Llama"),
        Preset("google/gemma-7b-it", 8.54, GEMMA, GEMMA_7B, "Gemma", NO_SYSTEM),
        Preset("SwetieePawsss/Llama-3.1-8B-Instruct-DUET-LoRA-merged", 8.03, "", LLAMA_8B, "Llama", TUNED),
    )
}


def preset_of(model: str) -> Preset | None:
    """The preset of a Hub id, or of a folder that is called like one of the models; None for any other model."""
    name = model.rstrip("/\\").replace("\\", "/").rpartition("/")[2].lower()
    return next((preset for preset in MODELS.values() if preset.id.rpartition("/")[2].lower() == name), None)


def shape_of(model: str) -> Mapping[str, Any] | None:
    """What the config.json of a preset says, or that in a folder of this name; None where there is none, or one that
    names a model's sizes otherwise than Llama's does."""
    if preset := preset_of(model):
        return preset.shape
    try:
        content = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    content = content.get("text_config") or content if isinstance(content, dict) else None
    if not isinstance(content, dict) or any(content.get(name) for name in EXPERTS):
        return None
    values = [*map(content.get, SIZES), *(content[name] for name in OTHER_SIZES if content.get(name) is not None)]
    return content if all(type(value) is int and value > 0 for value in values) else None
