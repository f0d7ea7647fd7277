"""How people write scores: unknown ones, marks between thousands and before decimals."""

import re
from collections.abc import Sequence

from adapop.facts.text import UNKNOWN, WORDS

UNKNOWN_SCORES = {
    *map(str.casefold, UNKNOWN),
    *WORDS["unknown scores"],
    "not available",
    "k. a.",
    "n. a.",
    "n. d.",
}
# 3,766 or 2 131 or 1'234,567.5: thousands apart, by one mark throughout, as spreadsheets write them
GROUPED = re.compile(
    r"(?:\d{1,3}([, '’\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*|\d\d?(?:,\d\d)+,\d{3})(?:\.\d+)?",
    re.ASCII,
)  # the second as in India: 12,34,567
# 25.692 may be thousands or a decimal; 1.234.567 can only be thousands
POINTED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+", re.ASCII)
# 3,5 or 12.345,6 or 1,2E+03; 1,234 may be thousands as well, and 1,0000 ten thousands
COMMA = re.compile(
    r"(?:\d+|\d{1,3}([. '’\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*),\d+(?:[eE][+-]?\d+)?", re.ASCII
)
MAYBE_GROUPED = re.compile(r"\d+,\d{3,4}", re.ASCII)


def has_decimal_commas(texts: Sequence[str]) -> bool:
    """Whether the commas in these scores are decimal marks: some can be nothing else, none can only
    part thousands, and no point is a decimal mark beside them."""
    commas = [text for text in texts if "," in text]
    if not commas or any(
        "." in text and not POINTED.fullmatch(text) for text in texts if "," not in text
    ):
        return False
    thousands = any(GROUPED.fullmatch(text) and not COMMA.fullmatch(text) for text in commas)
    return not thousands and any(
        COMMA.fullmatch(text) and not MAYBE_GROUPED.fullmatch(text) for text in commas
    )


def meaning_of_points(texts: Sequence[str], mark: str, comma: bool) -> str:
    """What the points in these scores are, for `Reading.points`: they part thousands in a file
    parted by semicolons or with decimal commas, if each has three digits behind it, and whole
    numbers, decimal commas or several points in one number stand beside. Elsewhere that is unclear.

    mark: what parts the cells. comma: as from `has_decimal_commas`.
    """
    pointed = [text for text in texts if "." in text and not (comma and COMMA.fullmatch(text))]
    if not pointed or not mark or not all(map(POINTED.fullmatch, pointed)):
        return ""
    is_settled = any(
        text.isdecimal() or text.count(".") > 1 or COMMA.fullmatch(text) for text in texts
    )
    if mark == ";" or comma:
        return "thousands" if is_settled else "decimals"
    return "decimals" if is_settled else ""
