"""A model of transformers in memory, saved once into the cache as a folder that runs can load.

A run has to be resumed, asked and exported later, so it needs weights on the disk. The caller's own
model is not changed. The folder's name is a hash of its content; the cache is safe to delete.
"""

import hashlib
import re
import secrets
from pathlib import Path

from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapop.errors import ModelError, named_place
from adapop.model.converted import file_sha256
from adapop.online.cache import cache_root
from adapop.runs import files

FOLDER = "in-memory"  # in the cache folder


def saved(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> Path:
    """The folder with the model's weights, in their precision, and its tokenizer. Raises
    ModelError: no tokenizer, an adapter that is not merged, quantised weights, or the cache cannot
    be written."""
    if tokenizer is None:
        message = "A model in memory needs its tokenizer, too."
        raise ModelError(message, "unlearn(..., model=model, tokenizer=tokenizer)")
    if isinstance(model, PeftModel) or not isinstance(model, PreTrainedModel):
        fix = "Merge an adapter first: model.merge_and_unload()."
        raise ModelError(f"{type(model).__name__} is no model of transformers.", fix)
    if getattr(model, "is_quantized", False):
        message = "A quantised model in memory cannot be saved as it is."
        raise ModelError(message, "Load it without quantisation; four_bit=True quantises it here.")
    cache = cache_root() / FOLDER
    part = cache / f"part-{secrets.token_hex(8)}"
    try:
        with named_place(cache, ModelError):
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
            folder = cache / f"{_name_of(model)}-{_sha256(part)[:16]}"
            if not folder.is_dir():
                files.move_into_place(part, folder)
    finally:
        files.clear(part)
    return folder


def _name_of(model: PreTrainedModel) -> str:
    name = Path(model.config.name_or_path or type(model).__name__).name
    return re.sub(r"[^\w.-]+", "-", name)[:40].strip("-.") or "model"


def _sha256(folder: Path) -> str:
    """A hash of all files and their names."""
    sums = [f"{file_sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    return hashlib.sha256("".join(sums).encode()).hexdigest()
