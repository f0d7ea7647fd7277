"""Language models by name, with their sizes, licences and notes: `assets/models.json`.

Other causal language models of the Hub, a folder or a GGUF file can be used as well: `loading`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapop.assets import read_json
from adapop.errors import ModelError
from adapop.model import adapter_folder
from adapop.model.converted import folder_of, is_gguf
from adapop.model.memory import COMMON_NAMES, GPT2, INNER

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
