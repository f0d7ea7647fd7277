"""A merged model as files: the weights in a run's precision, all else as published."""

import shutil
from pathlib import Path

from transformers import AutoConfig
from transformers.utils import cached_file

from adapop.config.run import RunConfig
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import source_of

SETTINGS = "generation_config.json"
FILES = (
    SETTINGS, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "chat_template.json", "vocab.json", "vocab.txt",
    "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip


def save_merged(model: AdaptedModel, config: RunConfig, folder: Path) -> None:
    """Merges the adapter into the weights and writes them with the original's dropout, generation
    settings and tokenizer, not with the run's (left padding, greedy decoding, no dropout).

    config: names the original. The model cannot be used afterwards. Raises OSError: the folder
    cannot be written, or the original's files are not there any more."""
    source = source_of(config)
    own = AutoConfig.from_pretrained(source, revision=config.revision, trust_remote_code=False)
    whole = model.network.merge_and_unload(safe_merge=True)
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
