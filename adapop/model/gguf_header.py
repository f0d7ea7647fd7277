"""The header of a GGUF file, checked before anything is read: damaged ones can claim any size.

The format: github.com/ggml-org/ggml/blob/master/docs/gguf.md. No torch here; `gguf` reads tensors.
"""

import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

from adapop.errors import ModelError, truncated

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
            raise refused(path.name, "it is no GGUF file", WHOLE)
        if (version := reader.scalar("I")) not in VERSIONS:
            why = f"its GGUF version is {version:,}, and 2 and 3 can be read"
            raise refused(path.name, why, "Convert it anew.")
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


def refused(name: str, why: str, fix: str) -> ModelError:
    """The error for a model that cannot be loaded."""
    return ModelError(f"The model {truncated(name)!r} cannot be loaded: {why}.", fix)


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
            raise self.damaged(f"the lists in its header have {self.items:,} items and more")
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
            raise self.damaged("its alignment is none")
        end += -self.file.tell() % align + self.file.tell()
        if end > self.size:
            raise self.damaged(f"its tensors end at byte {end:,}, and it has {self.size:,}")
        types = tuple(kind for kind, _ in weights.most_common())
        return Header(values, tensors, weights.total(), types)
