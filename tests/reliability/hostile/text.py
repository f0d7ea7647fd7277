"""Small text files that are wrong, or right and odd: encodings, quotes, rows, names, numbers, nesting, damage."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from hostile.file import SUFFIXES, TEXTS, Case, contents_of, of_rows, table, written

ENCODINGS = (
    "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252", "gbk", "shift_jis", "koi8-r", "utf-8-sig",
)  # fmt: skip
EVERY = (*SUFFIXES, ".parquet")
NAMES = ("id", "question", "answer", "subject", "score", "paraphrases", "group", "comment")
SCORES = (
    "1", "0", "-0", "+5", " 5 ", "1e308", "1e309", "1e-400", "5,5", "1.000,5", "1_000", "0x10", "１２", "٣", "nan",
    "NaN", "inf", "-inf", "Infinity", "-1", "1e", "e1", ".", "5.", ".5", "--1", "1 000", "9" * 400, "0." + "1" * 3_000,
    "½", "²", "true", "=1+1", "3,766", "1,234,567.5", "1,23", "1,234 567", "12 34", ",123", "1,２３４",
)  # fmt: skip


def _scores(random: Random) -> Case:
    rows = [{**row, "score": random.choice(SCORES)} for row in table(random)]
    return of_rows("odd score", random.choice(SUFFIXES), rows)


def _encoding(random: Random) -> Case:
    encoding, suffix = random.choice(ENCODINGS), random.choice(SUFFIXES)
    word = {"gbk": "红楼梦", "shift_jis": "源氏物語", "koi8-r": "Война и мир"}.get(encoding, "Molière")
    text = written(table(random), suffix).decode().replace("Jane", word)
    content = text.encode(encoding)
    try:
        return Case("encoding", f"facts{suffix}", content, refused=bool(re.search("\0", content.decode())))
    except UnicodeDecodeError:
        return Case("encoding", f"facts{suffix}", content, refused=encoding != "utf-16")  # it has a mark of its own


def _marks(random: Random) -> Case:
    content = written(table(random), ".csv")
    place = random.choice((0, random.randrange(len(content))))
    marks = b"\xef\xbb\xbf" * random.randint(1, 3)
    return Case("byte order marks", "facts.csv", content[:place] + marks + content[place:])


def _nul(random: Random) -> Case:
    suffix = random.choice(SUFFIXES)
    content = written(table(random, ("a", "b")), suffix)
    place = random.randrange(len(content))
    return Case("NUL", f"facts{suffix}", content[:place] + b"NUL\0" + content[place:], refused=True)


def _quotes(random: Random) -> Case:
    text = list(written(table(random), ".csv").decode())
    for _ in range(random.randint(1, 6)):
        text.insert(random.randrange(len(text)), random.choice("\"'`“"))
    return Case("stray quotes", "facts.csv", "".join(text).encode())


def _ragged(random: Random) -> Case:
    width = random.randint(2, 5)
    lines, says = [",".join(("question", "answer", "a", "b", "c")[:width])], []
    for number in range(random.randint(1, 30)):
        cells = [f"cell {number} {place}" for place in range(random.randint(1, 9))]
        lines.append(",".join(cells))
        says.append((*[*cells, ""][:2], ""))
    return Case("ragged rows", "facts.csv", "\n".join(lines).encode(), tuple(says))


def _same_names(random: Random) -> Case:
    names = [*NAMES, random.choice((str.upper, str.title, " {} ".format))(random.choice(NAMES[:7]))]
    random.shuffle(names)
    return Case("same header twice", "facts.csv", f"{','.join(names)}\n{','.join('x' * 9)}".encode(), refused=True)


def _same_keys(random: Random) -> Case:
    name = random.choice(("question", "answer"))
    text = f'[{{"question": "a", "answer": "b", "{name}": "c"}}]'
    suffix = random.choice((".json", ".jsonl"))
    return Case("same key twice", f"facts{suffix}", (text if suffix == ".json" else text[1:-1]).encode(), refused=True)


def _keys(random: Random) -> Case:
    odd = ("\ud800", "\udfff" * 3, "", " ", "k" * 10**6, "<b>", "\u202e", "a\nb", "__class__", "=1", "\0")
    key = random.choice(odd)
    row = {"question": "q", "answer": "a", key: "x", **{f"k{i}": 1 for i in range(random.choice((0, 0, 95, 10**4)))}}
    return of_rows("odd key", random.choice((".json", ".jsonl")), [row])


def _deep(random: Random) -> Case:
    depth = random.choice((3, 300, 900, 990, 1_000, 3_000, 10**5))
    start, end = random.choice((("[", "]"), ('{"a":', "}")))
    inside = random.choice(("", "1")) if start == "[" else "1"
    nested = start * depth + inside + end * random.choice((depth, 0))
    around = random.choice(("%s", '[{"question":"q","answer":"a","comment":%s}]', '[{"question":%s,"answer":"a"}]'))
    return Case("deep JSON", random.choice(("facts.json", "facts.jsonl")), (around % nested).encode())


def _numbers(random: Random) -> Case:
    digits = "9" * random.choice((20, 4_300, 4_301, 10**5))
    numbers = (digits, f"-{digits}", f"{digits}.5", f"0.{digits}", f"1e{digits[:6]}", "NaN", "-Infinity", "Infinity")
    number, where, suffix = random.choice(numbers), random.choice(NAMES), random.choice((".json", ".jsonl"))
    row = ",".join(f'"{name}":{number if name == where else 7}' for name in NAMES)
    return Case("huge number", f"facts{suffix}", (f"[{{{row}}}]" if suffix == ".json" else f"{{{row}}}").encode())


def _empty(random: Random) -> Case:
    empty = (b"", b"\n", b" \t\r\n" * 9, b"\xef\xbb\xbf", b"[]", b"{}", b"question,answer\n", b"null", b",", b'""')
    content = random.choice(empty)
    return Case("empty", f"facts{random.choice(EVERY)}", content, refused=True)


def _other_kind(random: Random) -> Case:
    suffix, other = random.sample(SUFFIXES, 2)
    rows = table(random, count=random.randint(2, 9))
    return Case("other kind than its name", f"facts{other}", written(rows, suffix), contents_of(rows, suffix))


def _cut(random: Random) -> Case:
    suffix = random.choice(SUFFIXES)
    content = written(table(random, TEXTS), suffix)
    return Case("cut short", f"facts{suffix}", content[: random.randrange(len(content))])


def _changed(random: Random) -> Case:
    suffix = random.choice(SUFFIXES)
    content = bytearray(written(table(random, TEXTS), suffix))
    for _ in range(random.randint(1, 20)):
        place = random.randrange(len(content))
        content[place : place + random.randint(0, 2)] = random.randbytes(random.randint(0, 3))
    return Case("changed bytes", f"facts{suffix}", bytes(content))


def _list_cells(random: Random) -> Case:
    count = random.choice((0, 3, 60, 1_000, 10**5))
    cell = random.choice(("|".join(["a"] * count), json.dumps(["a"] * count), "[" * count, "a" + "|" * count))
    rows = [{**row, "paraphrases": cell} for row in table(random, count=4)]
    return of_rows("list cell", random.choice(SUFFIXES), rows)


def _chats(random: Random) -> Case:
    """Turns of any role and number, with any text, as a list or as JSON of one; also under other names."""
    rows = []
    for row in table(random, TEXTS):
        contents = [row["question"], row["answer"], None, [], {"a": []}, 1]
        turns = [{"role": random.choice(("system", "user", "assistant", "", None, [])),
                  "content": random.choice(contents)} for _ in range(random.randint(0, 4))]  # fmt: skip
        turns = random.choice((turns, json.dumps(turns), [], [turns], "[" * 5_000, "[{" * 5_000))
        rows.append({random.choice(("messages", "prompt", "completion")): turns, "question": random.choice(contents)})
    return Case("chats", "facts.jsonl", written(rows, ".jsonl"))


def _tofu(random: Random) -> Case:
    """TOFU's columns, with what a list of wrong answers may be."""
    lists = (["a", "b"], [], "a|b", '["a", "b"]', None, 5, {"a": 1}, [[]], ["a"] * 2_000, "[" * 9_999)
    rows = [
        {**row, "paraphrased_question": random.choice(TEXTS), "paraphrased_answer": random.choice(TEXTS),
         "perturbed_answer": random.choice(lists)}
        for row in table(random, TEXTS)
    ]  # fmt: skip
    return of_rows("TOFU's columns", random.choice((".json", ".jsonl")), rows)


def _completions(random: Random) -> Case:
    """Prompts with their completions as text, thousands apart in the scores."""
    rows = [{**row, "score": random.choice(SCORES)} for row in table(random)]
    case = of_rows("completions", random.choice((*SUFFIXES, ".tsv")), rows)
    names = {"question": "prompt", "answer": "completion"}
    renamed = [{names.get(name, name): cell for name, cell in row.items()} for row in rows]
    return replace(case, content=written(renamed, Path(case.name).suffix))


NO_TABLES = (1, "a", [1], [[]], {"a": 1}, [{"question": "a", "answer": "b"}, 5], [None], True, [{}], [{"a": []}])
HALVES = ("\ud800", "a\udc00b", "\ud83d", "fine", "\0", "also fine")
_SIMPLE: tuple[Callable[[Random], Case], ...] = (
    lambda random: of_rows("odd text", random.choice(SUFFIXES), table(random, TEXTS)),
    lambda random: of_rows("odd text", random.choice(SUFFIXES), table(random, TEXTS)),
    lambda random: of_rows("tabs", ".tsv", table(random, TEXTS)),
    lambda random: of_rows("lone surrogate", random.choice((".json", ".jsonl")), table(random, HALVES)),
    lambda random: Case(
        "JSON that is no table", "facts.json", json.dumps(random.choice(NO_TABLES)).encode(), None, True
    ),
    lambda random: Case("noise", f"facts{random.choice(EVERY)}", random.randbytes(random.randint(1, 5_000))),
)
OFTEN: tuple[Callable[[Random], Case], ...] = (
    *_SIMPLE,
    _scores, _encoding, _marks, _nul, _quotes, _ragged, _same_names, _same_keys, _keys, _deep, _numbers, _empty,
    _other_kind, _cut, _changed, _changed, _list_cells, _chats, _tofu, _completions,
)  # fmt: skip
