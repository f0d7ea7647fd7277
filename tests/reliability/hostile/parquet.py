"""Parquet files that are damaged, odd, or bombs: kilobytes that decode to gigabytes."""

import datetime
import decimal
import io
from collections.abc import Callable
from random import Random

import pyarrow
import pyarrow.parquet

from hostile.file import TEXTS, Case, contents_of, table

ROW = {"question": pyarrow.array(["q"]), "answer": pyarrow.array(["a"])}
NOW = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
INVALID = pyarrow.Array.from_buffers(  # text that is not UTF-8
    pyarrow.string(), 1, [None, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"\xff\xfe")]
)
ODD = (
    pyarrow.array([decimal.Decimal("1.50")]), pyarrow.array([b"\xff\x00"]), pyarrow.array([b"text"]),
    pyarrow.array([{"a": 1}]), pyarrow.array([NOW]), pyarrow.array([1], pyarrow.timestamp("ns")),
    pyarrow.array([NOW.date()]), pyarrow.array([NOW.time()]),
    pyarrow.array([1], pyarrow.timestamp("us", "Europe/Berlin")),
    pyarrow.array([1], pyarrow.timestamp("s", "Mars/Olympus")), pyarrow.array([2**62], pyarrow.timestamp("ms")),
    pyarrow.array([1], pyarrow.duration("ns")), pyarrow.array([2**64 - 1], pyarrow.uint64()),
    pyarrow.array([[("k", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())), pyarrow.array([True]),
    pyarrow.nulls(1), pyarrow.array(["x"], pyarrow.large_string()), pyarrow.array(["x"]).dictionary_encode(),
    pyarrow.array([[1.5, None]]), pyarrow.array([[{"a": [b"x"]}]]), pyarrow.array([b"abcd"], pyarrow.binary(4)),
    pyarrow.array([float("nan")]), pyarrow.array([float("inf")], pyarrow.float32()),
    pyarrow.array([0.1], pyarrow.float32()), pyarrow.array([2**31 - 1], pyarrow.date32()), INVALID,
    pyarrow.array(["\0"]), pyarrow.array([["a", "b"]]), pyarrow.array([["a"] * 500]),
    pyarrow.array([10**9], pyarrow.time64("us")),
)  # fmt: skip


def _file(columns: dict[str, pyarrow.Array] | pyarrow.Table, **options) -> bytes:
    content = io.BytesIO()
    whole = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    pyarrow.parquet.write_table(whole, content, **{"compression": "zstd"} | options)
    return content.getvalue()


def _texts(random: Random) -> Case:
    rows = table(random, TEXTS)
    size, compression = random.choice((1, 3, 100)), random.choice(("none", "snappy", "gzip", "zstd"))
    content = _file(pyarrow.Table.from_pylist(rows), row_group_size=size, compression=compression)
    return Case("Parquet, odd text", "facts.parquet", content, contents_of(rows, ".parquet"))


def _types(random: Random) -> Case:
    name = random.choice(("id", "question", "answer", "score", "paraphrases", "comment"))
    return Case("Parquet, odd type", "facts.parquet", _file(ROW | {name: random.choice(ODD)}))


def _damaged(random: Random) -> Case:
    content = bytearray(_file(pyarrow.Table.from_pylist(table(random, TEXTS))))
    for _ in range(random.randint(1, 8)):
        place = random.randrange(len(content))
        content[place] = random.randrange(256)
    return Case("Parquet, changed bytes", "facts.parquet", bytes(content))


def _footer(random: Random) -> Case:
    """Changes in the metadata alone: sizes, counts and places that lie."""
    content = bytearray(_file(pyarrow.Table.from_pylist(table(random))))
    length = int.from_bytes(content[-8:-4], "little")
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(content) - 8 - length, len(content) - 4)
        content[place] = random.choice((0, 127, 128, 255, random.randrange(256)))
    return Case("Parquet, lies in the metadata", "facts.parquet", bytes(content))


def _cut(random: Random) -> Case:
    content = _file(pyarrow.Table.from_pylist(table(random, TEXTS)))
    return Case("Parquet, cut short", "facts.parquet", content[: random.randrange(len(content))], refused=True)


def _names(random: Random) -> Case:
    other = random.choice(("question", " ANSWER ", "Score", "score"))
    names = ["question", "answer", "score", other]
    whole = pyarrow.Table.from_arrays([pyarrow.array(["1"])] * 4, names=names)
    return Case("Parquet, same name twice", "facts.parquet", _file(whole), refused=True)


def _wide(random: Random) -> Case:
    columns = {f"c{place}": pyarrow.array([1]) for place in range(random.choice((99, 101, 2_000)))}
    return Case("Parquet, wide", "facts.parquet", _file(columns), refused=True)


def _zeros(kind: pyarrow.DataType, count: int) -> pyarrow.Array:
    return pyarrow.Array.from_buffers(kind, count, [None, pyarrow.py_buffer(bytes(count * kind.bit_width // 8))])


def _same(text: str, count: int) -> pyarrow.Array:
    """One text many times: a dictionary of one entry."""
    return pyarrow.DictionaryArray.from_arrays(_zeros(pyarrow.int8(), count), pyarrow.array([text]))


def _equal_rows(random: Random) -> Case:
    text, count = random.choice((("a", 10**8), ("x" * 1_999, 10**7), ("x" * 10**6, 10**5), ("x" * 10**7, 10**4)))
    columns = {"question": _same(text, count), "answer": _same("a", count)}
    return Case("Parquet bomb of equal rows", "facts.parquet", _file(columns))


def _page(random: Random) -> Case:
    size = random.choice((10**8, 4 * 10**8))
    offsets = pyarrow.py_buffer(b"\0\0\0\0" + size.to_bytes(4, "little"))
    cell = pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, offsets, pyarrow.py_buffer(bytes(size))])
    columns = ROW | {random.choice(("question", "comment")): cell}
    return Case("Parquet bomb of one page", "facts.parquet", _file(columns, use_dictionary=False))


def _nested(random: Random) -> Case:
    count = random.choice((10**6, 5 * 10**7))
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, count], pyarrow.int32()), _zeros(pyarrow.int8(), count))
    columns = ROW | {random.choice(("paraphrases", "comment")): lists}
    return Case("Parquet bomb of a nested list", "facts.parquet", _file(columns))


def _deep(random: Random) -> Case:
    cell = pyarrow.array(["x"])
    for _ in range(random.choice((20, 60, 90))):
        cell = pyarrow.ListArray.from_arrays(pyarrow.array([0, 1], pyarrow.int32()), cell)
    columns = ROW | {"comment": cell} | ({"answer": cell} if random.random() < 0.5 else {})
    return Case("Parquet, deep", "facts.parquet", _file(columns))


def _groups(random: Random) -> Case:
    rows = table(random, ("a", "b"), 5_000)
    content = _file(pyarrow.Table.from_pylist(rows), row_group_size=1)
    return Case("Parquet of 5,000 row groups", "facts.parquet", content, contents_of(rows, ".parquet"))


OFTEN: tuple[Callable[[Random], Case], ...] = (
    _texts, _types, _types, _damaged, _damaged, _footer, _footer, _cut, _names, _wide,
)  # fmt: skip
LARGE: tuple[Callable[[Random], Case], ...] = (_equal_rows, _equal_rows, _page, _nested, _deep, _groups)
