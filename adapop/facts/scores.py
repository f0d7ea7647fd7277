"""How people write scores: unknown ones, marks between thousands and before decimals."""

import math
import re
from collections.abc import Sequence

from adapop.errors import truncated
from adapop.facts.cells import Reading, Unusable
from adapop.facts.text import UNKNOWN, WORDS

UNKNOWN_SCORES = {*map(str.casefold, UNKNOWN), *WORDS["unknown scores"], "not available"}
UNKNOWN_SCORES |= {"k. a.", "n. a.", "n. d."}
# thousands separated by one mark throughout, as spreadsheets do: 3,766 or 2 131 or 1'234'567.5
GROUPED = re.compile(
    r"(?:[1-9]\d{0,2}([, '’\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*|\d\d?(?:,\d\d)+,\d{3})(?:\.\d+)?",
    re.ASCII,
)  # the second as in India: 12,34,567
# 25.692 may be thousands or a decimal; 1.234.567 can only be thousands
POINTED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+", re.ASCII)
# 3,5 or 12.345,6 or 1,2E+03; 1,234 may be thousands as well, and 1,0000 ten thousands
COMMA = re.compile(
    r"(?:\d+|\d{1,3}([. '’\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*),\d+(?:[eE][+-]?\d+)?", re.ASCII
)
MAYBE_GROUPED = re.compile(r"[1-9]\d*,\d{3,4}", re.ASCII)


def has_decimal_commas(texts: Sequence[str]) -> bool:
    """Whether the commas in these scores are decimal marks: at least one cannot separate thousands,
    none can only separate thousands, and no point is a decimal mark."""
    commas = [text for text in texts if "," in text]
    points = [text for text in texts if "." in text and "," not in text]
    if not commas or not all(map(POINTED.fullmatch, points)):
        return False
    thousands = any(GROUPED.fullmatch(text) and not COMMA.fullmatch(text) for text in commas)
    decimals = filter(COMMA.fullmatch, commas)
    return not thousands and not all(map(MAYBE_GROUPED.fullmatch, decimals))


def meaning_of_points(texts: Sequence[str], mark: str, comma: bool) -> str:
    """How to read the points in these scores, for `Reading.points`. They can separate thousands
    only if three digits follow each. They do so in a file with semicolons between cells or with
    decimal commas, if a whole number, a decimal comma or a number with several points occurs.

    mark: the separator of cells. comma: the result of `has_decimal_commas`."""
    pointed = [text for text in texts if "." in text and not (comma and COMMA.fullmatch(text))]
    if not pointed or not mark or not all(map(POINTED.fullmatch, pointed)):
        return ""
    whole = any(text.isdecimal() or text.count(".") > 1 for text in texts)
    is_settled = whole or any(map(COMMA.fullmatch, texts))
    if mark == ";" or comma:
        return "thousands" if is_settled else "decimals"
    return "decimals" if is_settled else ""


def score_of(cell: object, number: int, reading: Reading) -> float | None:
    """The score in a cell, None if it is unknown. reading: how scores are written; the row's number
    is noted there if the cell is not read literally. Raises Unusable: the cell holds no score."""
    text = "" if cell is None else str(cell).strip()
    if text.casefold() in UNKNOWN_SCORES:
        reading.rows["score_unknown"].append(number)
        return None
    if not text:
        return None
    if reading.percent:
        reading.rows["score_percent"].append(number)
        text = text.rstrip("% \u00a0\u202f")
    if reading.comma and COMMA.fullmatch(text):
        reading.rows["score_decimal_comma"].append(number)
        text = re.sub(r"[^\deE+,-]", "", text).replace(",", ".")
    elif GROUPED.fullmatch(text):
        unclear = reading.semicolons and text.count(",") == 1 and "." not in text
        reading.rows["score_commas_unclear"] += [number] * unclear
        text = re.sub(r"[^\d.]", "", text)
    elif "." in text and (reading.points or text.count(".") > 1) and POINTED.fullmatch(text):
        kind = "thousands" if text.count(".") > 1 else reading.points
        reading.rows[f"score_{kind}"].append(number)
        text = text.replace(".", "") if kind == "thousands" else text
    try:  # float() also accepts 2020_21 and digits of other scripts, which other programs do not
        score = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        fix = "Use digits and a decimal point, or leave it empty."
        raise Unusable("score", truncated(text), "is not a number", fix) from None
    if not math.isfinite(score) or score < 0:
        fix = "Scores are finite and at least 0; leave unknown empty."
        raise Unusable("score", truncated(text), "is not a score", fix)
    return score
