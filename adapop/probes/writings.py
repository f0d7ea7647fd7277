"""Values in two notations: four and 4, ½ and 0.5, 1947-08-15 and 15 August 1947. No torch.

Only values that occur in both texts are rewritten; the rest stays, so recall is still of words.
"""

import re
import unicodedata
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import chain

import regex

from adapop.facts.text import folded, word_forms

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
ONES = f"{ONES} fifteen sixteen seventeen eighteen nineteen".split()
ONES = {word: number for number, word in enumerate(ONES)}
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
VALUES = ONES | {word: 10 * ten for ten, word in enumerate(TENS, start=2)}
VALUES |= {"a": 1, "an": 1, "": 1, "and": 0}
VALUES |= dict(zip("〇零一二三四五六七八九两兩", (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 2)))
TIMES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINALS = f"{ORDINALS} thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth"
ORDINALS = f"{ORDINALS} nineteenth twentieth".split()
RANKS = {word: number for number, word in enumerate(ORDINALS, start=1)}
for ten, tens in enumerate(TENS, start=2):
    RANKS |= {f"{tens}-{word}": RANKS[word] + 10 * ten for word in ORDINALS[:9]}
UNITS, DECADES = ("", *"I II III IV V VI VII VIII IX".split()), ("", *"X XX XXX XL L LX".split())
ROMAN = {ten + one: 10 * i + j for i, ten in enumerate(DECADES) for j, one in enumerate(UNITS)}
del ROMAN[""]
TIMES |= {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fifth": 5}
_HAN = f"[{''.join(word for word in (*VALUES, *TIMES) if not word.isascii())}]"
_WORD = f"(?:{'|'.join(word for word in (*ONES, *TENS, *TIMES) if word.isascii())})"
_MANY = f"(?:{'|'.join(word for word in TIMES if word.isascii())})"
NUMBER = regex.compile(
    rf"(?<![\w-])(?:(?:\d[\d,.]{{0,20}}|a)\s(?={_MANY}\b))?{_WORD}(?:(?:-|\s(?:and\s)?){_WORD})*"
    rf"(?![\w-])|(?:(?:\d[\d,.]{{0,20}})?{_HAN}){{1,20}}",
    regex.IGNORECASE,
)
STEP = regex.compile(rf"\d[\d,.]*|[a-z]+|{_HAN}", regex.IGNORECASE)
PART = regex.compile(
    rf"\b(?:(?P<whole>\d{{1,9}}|{_WORD})\sand\s)?(?:(?P<n>an?|\d{{1,9}}|{_WORD})[\s-])?"
    rf"(?P<part>{'|'.join(PARTS)})s?\b(?!-)",
    regex.IGNORECASE,
)
RANK = regex.compile(  # 2nd, twenty-second, II; a single letter counts behind a name
    rf"\b(?i:(?P<n>\d{{1,3}})(?:st|nd|rd|th)"
    rf"|(?P<word>(?:(?:{'|'.join(TENS)})-)?(?:{'|'.join(ORDINALS)})))\b"
    rf"|(?<!\w)(?:(?=\w\w)|(?<=\p{{Lu}}\w+ ))(?P<roman>{'|'.join(ROMAN)})(?!\w)"
)
VERSION = re.compile(r"\d+(?:\.\d+){2,}")
POWER = regex.compile(
    r"(?<![\w.])(\d{1,20}(?:\.\d{1,20})?)(?:e\+?|\s?[×x]\s?10\^?)(\d\d?|[⁰¹²³⁴-⁹]{1,2})"
    r"(?![\w⁰¹²³⁴-⁹])",
    regex.IGNORECASE,
)
SHARE = regex.compile(
    r"(?<![\d/.,-])(?:(\d{1,3})\s)?([1-9])(?:/| out of )([2-9]|10)(?![\d/]|[.,]\d)"
)
MONTHS = (
    "jan ene gen", "feb fev", "mar mrz", "apr abr avr", "may mai mag", "jun juin giu",
    "jul juil lug", "aug ago aou", "sep set", "oct okt ott out", "nov", "dec dez dic",
)  # fmt: skip
MONTH = {start: number for number, starts in enumerate(MONTHS, start=1) for start in starts.split()}
_NAME = r"(?P<name>[^\W\d_]{3,10})\.?"
DATE = regex.compile(
    r"(?<![\d.])(?P<y>\d{4})[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)(?:[T ]\d\d:[\d:.]+Z?)?(?!\d)"
    r"|(?P<y>\d{4})\s?[年년]\s?(?P<m>\d\d?)\s?[月월]\s?(?P<d>\d\d?)\s?[日일]"
    r"|(?<![\d.])(?P<d>\d\d?)(?P<by>[./-])(?P<m>\d\d?)(?P=by)(?P<y>\d{4})(?!\d)"
    rf"|(?<!\d)(?P<d>\d\d?)(?:st|nd|rd|th|er|\.|º)?\s(?:of\s|de\s)?{_NAME}"
    rf",?\s(?:de\s)?(?P<y>\d{{4}})(?!\d)"
    rf"|\b{_NAME}\s(?P<d>\d\d?)(?:st|nd|rd|th)?,?\s(?P<y>\d{{4}})(?!\d)"
)
MIXED = regex.compile(rf"\d{_HAN}")  # 3億
YEAR, VULGAR = re.compile(r"\d{4}"), re.compile("[¼-¾⅐-⅞]")
_WORDS = (word for word in (*ONES, *TENS, *TIMES, *PARTS) if word.isascii())
SMALL = re.compile(f"{'|'.join(_WORDS)}|{_HAN}", re.IGNORECASE)
Days = frozenset[date]


def as_in(text: str, other: str) -> str:
    """The text with numbers as digits, fractions as decimals and dates as one number, but only
    where the other text has the same value in any notation. "one" counts only as the whole text."""
    shared = _days(text) & _days(other)
    if not (shared or _written_out(text) or _written_out(other)):
        return text
    text, other = (_in_decimals(_with_days(one, shared)) for one in (text, other))
    # The numbers of a date are no counts.
    present = frozenset(chain.from_iterable(word_forms(DATE.sub(" ", other))))
    present |= {*map(_power, POWER.finditer(other))}
    if MIXED.search(text) or MIXED.search(other):
        present |= {_decimal(_value(one[0])) for one in NUMBER.finditer(other)}
    ranks = _ranks(other)

    def rank(match: regex.Match) -> str:
        value = _rank(match)
        in_digits = match["roman"] and str(value) in present
        return f"{value}th" if value in ranks else str(value) if in_digits else match[0]

    def part(match: regex.Match) -> str:
        share = _value(match["n"] or "") * Fraction(1, PARTS[match["part"].lower()])
        value = _decimal(_value(match["whole"]) + share if match["whole"] else share)
        return value if value in present else match[0]

    def number(match: regex.Match) -> str:
        value = _decimal(_value(match[0]))
        is_number = value != "1" or not match[0].isascii() or match[0] == text.strip(" .!")
        return value if is_number and value in present else match[0]

    text = POWER.sub(lambda match: _power(match) if _power(match) in present else match[0], text)
    return NUMBER.sub(number, PART.sub(part, RANK.sub(rank, text)))


@lru_cache(maxsize=2**14)
def _written_out(text: str) -> bool:
    """Whether a text may have a number in words, or a fraction."""
    return any(form.search(text) for form in (SMALL, RANK, POWER, SHARE, VULGAR))


def other_values(text: str, answer: str) -> bool:
    """Whether answer and text both have dates (or ordinals, or versions), but none in common."""
    kinds = (_days, _ranks, lambda one: frozenset(VERSION.findall(one)))
    pairs = ((of(answer), of(text)) for of in kinds)
    return any(right and values and right.isdisjoint(values) for right, values in pairs)


@lru_cache(maxsize=2**14)
def _ranks(text: str) -> frozenset[int]:
    return frozenset(map(_rank, RANK.finditer(text)))


def _rank(match: regex.Match) -> int:
    """The value of an ordinal or a Roman numeral."""
    word = (match["word"] or "").lower()
    return ROMAN.get(match["roman"]) or int(match["n"] or RANKS.get(word, 0))


def _with_days(text: str, shared: Days) -> str:
    """The text with the shared dates as numbers, 19470815."""

    def day(match: regex.Match) -> str:
        days = _read(match) & shared
        return f"{min(days):%Y%m%d}" if days else match[0]

    return DATE.sub(day, text) if shared else text


@lru_cache(maxsize=2**14)
def _days(text: str) -> Days:
    """The full dates in a text; 04/07/1776 gives both readings."""
    matches = DATE.finditer(text) if YEAR.search(text) else ()
    return frozenset().union(*map(_read, matches))


def _read(match: regex.Match) -> Days:
    day, month = int(match["d"]), match["m"]
    name = folded(match["name"] or "")
    number = int(month) if month else MONTH.get(name[:3]) or MONTH.get(name[:4], 0)
    pairs = [(number, day)] + [(day, number)] * bool(match["by"])
    return frozenset(day_read for pair in pairs if (day_read := _day(int(match["y"]), *pair)))


def _day(*parts: int) -> date | None:
    try:
        return date(*parts)
    except ValueError:
        return None


def _in_decimals(text: str) -> str:
    """The text with ½, 1/2 and 2 1/2 as decimals."""

    def plain(sign: re.Match) -> str:
        return f" {unicodedata.normalize('NFKC', sign[0]).replace('⁄', '/')}"

    def decimal(share: regex.Match) -> str:
        return _decimal(int(share[1] or 0) + Fraction(int(share[2]), int(share[3])))

    return SHARE.sub(decimal, VULGAR.sub(plain, text))


def _value(text: str) -> Fraction:
    """The number that words say: "two hundred and five", "5.2 million", 二十一, 二〇二四."""
    if len(text) > 1 and all(VALUES.get(sign, 10) < 10 for sign in text):  # Han digits in a row
        return Fraction("".join(str(VALUES[sign]) for sign in text))
    total = group = Fraction(0)
    last = "zero"
    for step in STEP.findall(text.lower()):
        if (times := TIMES.get(step, 0)) >= 1_000 and step != "千":
            total, group = total + max(group, 1) * times, Fraction(0)
        elif times:
            group = group - _one(last) + max(_one(last), 1) * times
        else:
            group += _one(step)
        last = step
    return total + group if text else Fraction(1)


def _power(match: regex.Match) -> str:
    """The value of a power such as 1e6 or 6.022 × 10²³."""
    return _decimal(Fraction(match[1]) * 10 ** int(unicodedata.normalize("NFKC", match[2])))


def _one(step: str) -> Fraction:
    digits = step.replace(",", "").rstrip(".")
    whole = digits.replace(".", "") if digits.count(".") > 1 else digits
    return Fraction(whole) if whole[:1].isdecimal() else Fraction(VALUES.get(step, 0))


def _decimal(value: Fraction) -> str:
    return f"{float(value):.6f}".rstrip("0").rstrip(".")
