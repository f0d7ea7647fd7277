"""A merged model as files: weights computed in float32, everything else as published."""

import gc
import shutil
from pathlib import Path

import torch
from transformers import AutoConfig, PreTrainedModel
from transformers.utils import cached_file

from adapop.config.run import RunConfig
from adapop.errors import ModelError
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter_folder import PROCESSORS, SETTINGS, TOKENIZER
from adapop.model.loading import source_of

FILES = (SETTINGS, *TOKENIZER, *PROCESSORS)
# transformers' names for weights that it keeps in float32, whatever type the others have
KEPT_WIDE = ("_keep_in_fp32_modules", "_keep_in_fp32_modules_strict")


def save_merged(model: AdaptedModel, config: RunConfig, dtype: str, folder: Path) -> None:
    """Merges the adapter into the weights and writes them with the original's dropout, generation
    settings, tokenizer and processors, not with the run's (left padding, greedy decoding).

    model: loaded in float32, so that the sum is computed in it; it cannot be used afterwards.
    config: names the original. dtype: of the weights as written: bfloat16, float16 or float32.
    Raises ModelError: a weight is too large for it. OSError: the folder cannot be written, or the
    original's files are not there any more."""
    source = source_of(config)
    own = AutoConfig.from_pretrained(source, revision=config.revision, trust_remote_code=False)
    whole = model.network.merge_and_unload(safe_merge=True)
    _narrow(whole, dtype)
    parts = zip((whole.config, whole.config.get_text_config()), (own, own.get_text_config()))
    for part, original in parts:
        for name, value in vars(original).items():
            if "drop" in name or "jitter" in name:
                setattr(part, name, value)
    whole.save_pretrained(folder)
    (folder / SETTINGS).unlink(missing_ok=True)
    files = Path(cached_file(source, "config.json", revision=config.revision)).parent
    for name in FILES:
        if (files / name).exists():
            shutil.copyfile(files / name, folder / name)


@torch.no_grad()
def _narrow(whole: PreTrainedModel, dtype: str) -> None:
    """Rounds the weights in place; tied ones stay tied. Raises ModelError: one is too large."""
    wide = [name for field in KEPT_WIDE for name in getattr(whole, field, None) or ()]
    for name, weight in whole.named_parameters():
        if any(part in name for part in wide):
            continue
        narrowed = weight.data.to(getattr(torch, dtype))
        if not narrowed.isfinite().all():
            message = f"{name} holds weights that are too large for {dtype}."
            raise ModelError(message, "Export it as bfloat16 or float32 (--dtype).")
        weight.data = narrowed
    for part in (whole.config, whole.config.get_text_config()):
        part.dtype = getattr(torch, dtype)
    gc.collect()
