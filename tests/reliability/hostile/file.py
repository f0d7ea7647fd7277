"""One upload of the benchmark, and what makes such files: rows in any format, and what a reader must find in them."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from adapop.facts.formulas import plain

SUFFIXES = (".csv", ".json", ".jsonl")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[0-9]{1,3}((,[0-9]{3})+|( [0-9]{3})+)(\.[0-9]+)?")
TEXTS = (
    "Who wrote Emma?", "Jane Austen", "=HYPERLINK(\"http://x\",\"y\")", "+1", "-40", "@SUM(A1)", "'=1", "'n Boer",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&amp; &lt;", "{{this}} ${x} {0} %s %(a)s",
    "\u202eevil\u202c", "\u2066isolated\u2069", "ze\u200bro", "jo\u2060in", "soft\u00adhyphen", "\ufeffmark", "مرحبا",
    "שלום", "👩‍👩‍👧", "e\u0301", "é", "\u1100" * 40, "a" + "\u0301" * 200, "\x1b[31mred\x1b[0m", "bell\x07", "\x85next",
    "\u2028line", "two\nlines", "carriage\rreturn", "tab\tbed", 'a "quoted" word', "semi;colon", "com,ma", "|pipe|",
    "[not json", "../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1/", "C:\\Windows", "\\u0000", "NULL", "nan",
    "None", "1e400", "x" * 1_999, "x" * 2_000, "x" * 2_001, " padded ", "\u00a0", "\u3000", "Ω≈ç√∫", "ｆｕｌｌ", "ﬀ",
    "İstanbul", "ß", "𝔘𝔫𝔦", "\U0010ffff",
)  # fmt: skip
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Case:
    """One file. says: (question, answer, score as text) of its rows, None where that is not known; then a fact that is
    read must be one of them, and every row must be a fact or a problem. refused: it may not be read at all."""

    kind: str
    name: str
    content: bytes
    says: tuple[tuple[str, str, str], ...] | None = None
    refused: bool = False


def written(rows: Rows, suffix: str) -> bytes:
    """The rows as a file of that kind."""
    if suffix in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, list(rows[0]), delimiter="\t" if suffix == ".tsv" else ",")
        table.writeheader()
        table.writerows(rows)
        return text.getvalue().encode()
    if suffix == ".jsonl":
        return "\n".join(map(json.dumps, rows)).encode()
    return json.dumps(rows).encode()


def contents_of(rows: Rows, suffix: str) -> tuple[tuple[str, str, str], ...]:
    """What the rows say, as a reader must give it: outer white space trimmed, our own apostrophe of a CSV taken off."""
    own = plain if suffix in (".csv", ".tsv") else str
    return tuple(tuple(own(str(row.get(name, ""))).strip() for name in ("question", "answer", "score")) for row in rows)


def score_of(text: str, by_comma: bool = False) -> float | None:
    """The score that a text is, by a rule of its own: plain ASCII digits with a point, finite, at least 0;
    thousands may be apart by commas or by spaces. by_comma: a comma is a decimal mark."""
    if by_comma and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    text = re.sub("[, ]", "", text) if THOUSANDS.fullmatch(text) else text
    if not NUMBER.fullmatch(text) or not text.isascii():
        return None
    value = float(text)
    return value if 0 <= value < float("inf") else None


def table(random: Random, texts: Sequence[str] = TEXTS[:2], count: int = 0) -> list[dict]:
    """Rows whose questions and answers are of those texts."""
    names = ("question", "answer", "comment")
    count = count or random.randint(1, 20)
    return [{"id": f"r{i}"} | {name: random.choice(texts) for name in names} for i in range(count)]


def of_rows(kind: str, suffix: str, rows: Rows) -> Case:
    """The rows as a case."""
    return Case(kind, f"facts{suffix}", written(rows, suffix), contents_of(rows, suffix))
