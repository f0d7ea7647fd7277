"""Text files of megabytes, made to take time or memory: wide, long, deep, or full of the smallest things there are."""

import json
from collections.abc import Callable
from random import Random

from hostile.file import SUFFIXES, Case, of_rows, table

MEGABYTE = 10**6
SIZES = (4 * MEGABYTE, 16 * MEGABYTE, 60 * MEGABYTE, 70 * MEGABYTE)
ENDS = ("\n", "\r\n", "\r", " \n", ",,,,\n", '""\n', ";\n")
SMALL = (
    "[],", "{},", '{"":0},', '"ab",', "12,", "1.5,", "null,", '{"a":[]},', '[{"":1}],',
    '{"question":"a","answer":"b"},',
)  # fmt: skip
LINES = ("{}\n", "[]\n", '{"question":"a","answer":"b"}\n', "x\n", '{"a":1}\n')


def _wide(random: Random) -> Case:
    names, cells = "a," * 10**6, "a," * random.choice((1, 10**6))
    texts = (f"question,answer,{names}\nq,a,{cells}", f"question,answer\nq,a,{cells}\n", f"{names}\n{cells}")
    return Case("a million columns", "facts.csv", random.choice(texts).encode())


def _large_cell(random: Random) -> Case:
    row = {"id": "1", "question": "q", "answer": "a", "comment": "x"}
    name = random.choice(tuple(row))
    text = random.choice(("x", '"', "\\", "|", "[", "\n", "é", "🦜", "=", "\u202e"))
    return of_rows("cell of 10 MB", random.choice(SUFFIXES), [row | {name: text * 10**7}, row | {"id": "2"}])


def _blank_lines(random: Random) -> Case:
    end, name = random.choice(ENDS), random.choice(("facts.csv", "facts.jsonl"))
    start = random.choice(("", "question,answer\nq,a\n"))
    return Case("10 million blank lines", name, (start + end * 10**7).encode())


def _long_line(random: Random) -> Case:
    row = {"question": "q", "answer": "a", "comment": "x" * 50 * MEGABYTE}
    return of_rows("line of 50 MB", ".jsonl", [row, {**row, "comment": ""}])


def _swarm(random: Random) -> Case:
    item, size = random.choice(SMALL), random.choice(SIZES)
    items = item * (size // len(item)) + item[:-1]
    wide = random.choice(("", '"🦜",'))  # one such letter makes Python keep four bytes for each of the text
    text = random.choice(("[%s%s]", '[{"question":"q","answer":"a","comment":[%s%s]}]')) % (wide, items)
    return Case("swarm of values", random.choice(("facts.json", "facts.jsonl")), text.encode())


def _chains(random: Random) -> Case:
    """Objects in objects: the most memory a byte of JSON can ask for."""
    depth, size = random.choice((2, 30, 400)), random.choice(SIZES[:2])
    chain = '{"":' * depth + "0" + "}" * depth
    row = f'{{"question":"q","answer":"a","comment":{chain}}}'
    rows = [row] * (size // len(row))
    name, text = random.choice((("facts.json", f"[{','.join(rows)}]"), ("facts.jsonl", "\n".join(rows))))
    return Case("chains of objects", name, text.encode())


def _lines(random: Random) -> Case:
    line, size = random.choice(LINES), random.choice(SIZES)
    return Case("millions of lines", "facts.jsonl", (line * (size // len(line))).encode())


def _marks(random: Random) -> Case:
    unit, size = random.choice((",", '"', '"",', "a,", '"\n', "ab,\n", "🦜,", ";", "\t", "',")), random.choice(SIZES)
    start = random.choice(("", "question,answer\n", "🦜question;answer\n"))
    return Case("nothing but marks", "facts.csv", (start + unit * (size // len(unit.encode()))).encode())


def _rows(random: Random) -> Case:
    count = random.choice((19_999, 20_000, 20_001, 100_000))
    texts = random.choice((("a", "b"), ("", "a"), ("x" * 2_001, "y"), ("a\u0301" * 50, "b")))
    return of_rows("thousands of rows", random.choice(SUFFIXES), table(random, texts, count))


def _list_items(random: Random) -> Case:
    count, items = random.choice(((1, 5 * 10**6), (20_000, 60), (20_000, 300)))
    cell = random.choice(("a|" * items, json.dumps(["a"] * items), ["a"] * items))
    rows = [{**row, "paraphrases": cell} for row in table(random, count=count)]
    suffix = random.choice(SUFFIXES[1:]) if isinstance(cell, list) else random.choice(SUFFIXES)
    return of_rows("millions of list items", suffix, rows)


def _very_deep(random: Random) -> Case:
    start, name = random.choice(("[", '{"a":', '[{"":')), random.choice(("facts.json", "facts.jsonl"))
    return Case("very deep JSON", name, (start * (15 * MEGABYTE // len(start))).encode())


def _cells(random: Random) -> Case:
    row = {"question": "q", "answer": "a", **{f"k{place}": "ab" for place in range(random.choice((98, 99, 150)))}}
    return of_rows("wide and long", random.choice(SUFFIXES), [row] * random.choice((2_000, 8_000)))


LARGE: tuple[Callable[[Random], Case], ...] = (
    _wide, _large_cell, _blank_lines, _long_line, _swarm, _chains, _lines, _marks, _rows, _list_items,
    _very_deep, _cells,
)  # fmt: skip
