"""Numbers in words and other notations as digits: four, 二十一, 5.2 million, ½, third, XIV, 1e6. No
torch."""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from math import inf

import regex

from adapop.facts.text import forms

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
VALUES = {word: number for number, word in enumerate(_ONES)}
VALUES |= {word: 10 * ten for ten, word in enumerate(_TENS, start=2)}
VALUES |= {"a": 1, "an": 1, "": 1, "and": 0}
VALUES |= dict(zip("〇零一二三四五六七八九两兩", (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 2)))
TIMES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
TIMES |= {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fifth": 5}
RANKS = {word: number for number, word in enumerate(_ORDINALS, start=1)}
for ten, tens in enumerate(_TENS, start=2):
    RANKS |= {f"{tens}-{word}": RANKS[word] + 10 * ten for word in _ORDINALS[:9]}
_UNITS, _DECADES = ("", *"I II III IV V VI VII VIII IX".split()), ("", *"X XX XXX XL L LX".split())
ROMAN = {
    ten + one: 10 * i + j
    for i, ten in enumerate(_DECADES)
    for j, one in enumerate(_UNITS)
    if ten + one
}

_HAN = f"[{''.join(word for word in (*VALUES, *TIMES) if not word.isascii())}]"
_WORD = f"(?:{'|'.join(word for word in (*_ONES, *_TENS, *TIMES) if word.isascii())})"
_MANY = f"(?:{'|'.join(word for word in TIMES if word.isascii())})"
_DIGITS = r"\d[\d,.]{0,20}"
NUMBER = re.compile(
    rf"(?<![\w-])(?:(?:{_DIGITS}|a)\s(?={_MANY}\b))?{_WORD}(?:(?:-|\s(?:and\s)?){_WORD}){{0,12}}"
    rf"(?![\w-])|(?:(?:{_DIGITS})?{_HAN}){{1,20}}",
    re.IGNORECASE,
)
STEP = regex.compile(rf"{_DIGITS}|[a-z]+|{_HAN}", regex.IGNORECASE)
PART = regex.compile(
    rf"\b(?:(?P<whole>\d{{1,9}}|{_WORD})\sand\s)?(?:(?P<n>an?|\d{{1,9}}|{_WORD})[\s-])?"
    rf"(?P<part>{'|'.join(PARTS)})s?\b(?!-)",
    regex.IGNORECASE,
)
RANK = regex.compile(  # 2nd, twenty-second, II; a single letter counts behind a name
    rf"\b(?i:(?P<n>\d{{1,3}})(?:st|nd|rd|th)"
    rf"|(?P<word>(?:(?:{'|'.join(_TENS)})-)?(?:{'|'.join(_ORDINALS)})))\b"
    rf"|(?<!\w)(?P<roman>{'|'.join(ROMAN)})(?!\w)(?:(?<=\w\w)|(?<=\p{{Lu}}\w{{1,20}} \w))"
)
POWER = regex.compile(
    r"(?<![\w.])(\d{1,20}(?:\.\d{1,20})?)(?:e\+?|\s?[×x]\s?10\^?)(\d\d?|[⁰¹²³⁴-⁹]{1,2})"
    r"(?![\w⁰¹²³⁴-⁹])",
    regex.IGNORECASE,
)
SHARE = regex.compile(
    r"(?<![\d/.,-])(?:(\d{1,3})\s)?([1-9])(?:/| out of )([2-9]|10)(?![\d/]|[.,]\d)"
)
VULGAR = re.compile("[¼-¾⅐-⅞]")
SCALED = regex.compile(rf"\d{_HAN}|\b{_MANY}\b", regex.IGNORECASE)  # 3億, 5 million
_SMALL = "|".join(("oh", *_TENS, *sorted(_ONES, key=len, reverse=True)))
# 4 7 1 1; four seven one one, nineteen eighty-seven
DIGITS_APART = re.compile(
    r"[0-9](?<![\w.-].)(?<!\d[ ,].)[0-9]?(?:(?:, |[ -])[0-9]{1,2})+(?![\w-]|[.,]\d)"
)
WORDS_APART = re.compile(rf"\b(?<!-)(?:{_SMALL})(?:(?:, |[ -])(?:{_SMALL}))+\b(?!-)", re.IGNORECASE)
PIECE = re.compile(r"\d+|[a-z]+")
BETWEEN_PIECES = str.maketrans("", "", " ,-")
SHORTEST_IN_PIECES = 3  # digits
# What a text needs at least to hold a number in words, a rank, a part or a power.
NUMBER_WORDS = frozenset(word for word in (*_ONES, *_TENS, *TIMES) if word.isascii())
RANK_WORDS = frozenset(_ORDINALS)
PART_WORDS = frozenset((*PARTS, *(f"{part}s" for part in PARTS)))
WORD, HAN = re.compile("[a-z]+"), re.compile(_HAN)
MARKED = re.compile(r"\d(?:st|nd|rd|th|e|\s?[×x])")
ROMANS = re.compile(r"[IVXL](?:(?<=\b.)[IVXL]+|(?<=\w\w .))\b")


def in_digits(text: str, other: str) -> str:
    """The text with its numbers as digits, but only those that the other text has too, in any
    notation. Fractions become decimals. "one" counts only as the whole text: elsewhere it is
    mostly no number."""
    text, other = in_decimals(text), in_decimals(other)
    present = set(_digits(other))
    text = _together(text, present)
    if not (patterns := _patterns(text)):
        return text
    if POWER in _patterns(other):
        present.update(map(_power, POWER.finditer(other)))
    if NUMBER in _patterns(other) and (SCALED.search(text) or SCALED.search(other)):
        present |= {_decimal(_value(one[0])) for one in NUMBER.finditer(other)}
    if not (present or ranks(other)):
        return text
    may_give = {  # one of these numbers; asked before a pattern is tried
        POWER: True,
        RANK: ranks(other) or ROMANS.search(text),
        PART: any("." in number for number in present),
        NUMBER: _may_say(text, present),
    }

    def rank(match: regex.Match) -> str:
        value = _rank(match)
        if value in ranks(other):
            return f"{value}th"
        return str(value) if match["roman"] and str(value) in present else match[0]

    def part(match: regex.Match) -> str:
        share = _value(match["n"] or "") * Fraction(1, PARTS[match["part"].lower()])
        value = _decimal(_value(match["whole"]) + share if match["whole"] else share)
        return value if value in present else match[0]

    def number(match: re.Match) -> str:
        value = _decimal(_value(match[0]))
        is_number = value != "1" or not match[0].isascii() or match[0] == text.strip(" .!")
        return value if is_number and value in present else match[0]

    def power(match: regex.Match) -> str:
        return _power(match) if _power(match) in present else match[0]

    result = text
    for pattern, digits in ((POWER, power), (RANK, rank), (PART, part), (NUMBER, number)):
        if pattern in patterns and may_give[pattern]:
            result = pattern.sub(digits, result)
    return result


def _together(text: str, present: set[str]) -> str:
    """The text with the digits, or pairs of digits, that it says one after the other together,
    where they make one of these numbers."""
    numbers = {number for number in present if len(number) >= SHORTEST_IN_PIECES}
    if not numbers:
        return text

    def number(match: re.Match) -> str:
        pieces: list[str] = []
        last = ""
        for piece in PIECE.findall(match[0].lower()):
            digits = piece if piece.isdecimal() else str(VALUES.get(piece, 0))  # "oh" is a zero
            if last in _TENS and piece in _ONES[1:10]:
                digits = f"{pieces.pop()[0]}{digits}"
            pieces.append(digits)
            last = piece
        together = "".join(pieces)
        return together if together in numbers else match[0]

    # Most texts cannot have one: that is asked before a pattern is tried.
    closed, small = text.translate(BETWEEN_PIECES), text.lower()
    if any(number in closed and number not in text for number in numbers):
        text = DIGITS_APART.sub(number, text)
    if NUMBER in _patterns(text) and any(_may_end(one, small) for one in numbers):
        text = WORDS_APART.sub(number, text)
    return text


def _may_end(number: str, text: str) -> bool:
    """Whether a text in small letters has a word that a number's last digit may be part of."""
    last = int(number[-1]) if number[-1].isdecimal() else 0
    return last == 0 or _ONES[last] in text or _ONES[10 + last] in text


def _may_say(text: str, present: set[str]) -> bool:
    """Whether the number words of a text can make one of these numbers: forty-two needs forty and
    two, a million needs a scale of its size. Cheap, as most texts cannot."""
    if not text.isascii():
        return True
    heard = NUMBER_WORDS.intersection(WORD.findall(text.casefold()))
    numbers = {str(VALUES[word]) for word in heard if word in VALUES}
    shortest = min((len(str(TIMES[word])) for word in heard if word in TIMES), default=inf)
    return any(
        number in numbers
        or (number[-1] in numbers and f"{number[:-1]}0" in numbers)
        or len(number) + 1 >= shortest  # 0.5 million has a digit less than a million
        for number in present
    )


@lru_cache(maxsize=2**14)
def ranks(text: str) -> frozenset[int]:
    """The ordinals and Roman numerals in a text."""
    ranked = RANK in _patterns(text)
    return frozenset(map(_rank, RANK.finditer(text))) if ranked else frozenset()


@lru_cache(maxsize=2**12)
def has_numbers(text: str) -> bool:
    """Whether a text may hold a number, in digits or in any other notation."""
    return bool(_digits(text) or _patterns(in_decimals(text)))


def _digits(text: str) -> list[str]:
    """The text's words that are numbers in digits."""
    return [form for form in forms(text) if form[:1].isdigit()]


@lru_cache(maxsize=2**14)
def _patterns(text: str) -> tuple[regex.Pattern, ...]:
    """Those of the patterns of numbers not in plain digits that a text may match."""
    small = text.casefold()
    heard, marked = frozenset(WORD.findall(small)), MARKED.search(small) is not None
    may_match = {
        POWER: marked,
        RANK: marked or not heard.isdisjoint(RANK_WORDS) or ROMANS.search(text),
        PART: not heard.isdisjoint(PART_WORDS),
        NUMBER: not heard.isdisjoint(NUMBER_WORDS) or (not text.isascii() and HAN.search(text)),
    }
    return tuple(pattern for pattern, may in may_match.items() if may)


def _rank(match: regex.Match) -> int:
    word = (match["word"] or "").lower()
    return ROMAN.get(match["roman"]) or int(match["n"] or RANKS.get(word, 0))


def in_decimals(text: str) -> str:
    """The text with ½, 1/2 and 2 1/2 as decimals."""

    def plain(sign: re.Match) -> str:
        return f" {unicodedata.normalize('NFKC', sign[0]).replace('⁄', '/')}"

    def decimal(share: regex.Match) -> str:
        return _decimal(int(share[1] or 0) + Fraction(int(share[2]), int(share[3])))

    if not text.isascii():
        text = VULGAR.sub(plain, text)
    return SHARE.sub(decimal, text) if "/" in text or " out of " in text else text


@lru_cache(maxsize=2**12)
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


def _one(step: str) -> Fraction:
    digits = step.replace(",", "").rstrip(".")
    whole = digits.replace(".", "") if digits.count(".") > 1 else digits
    return Fraction(whole) if whole[:1].isdecimal() else Fraction(VALUES.get(step, 0))


def _power(match: regex.Match) -> str:
    """The value of a power such as 1e6 or 6.022 × 10²³."""
    return _decimal(Fraction(match[1]) * 10 ** int(unicodedata.normalize("NFKC", match[2])))


def _decimal(value: Fraction) -> str:
    return f"{float(value):.6f}".rstrip("0").rstrip(".")
