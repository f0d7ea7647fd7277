"""Values that are written in several ways: dates, times, money, quantities, and what identifies a
person or a thing, such as a phone number, an account or an e-mail address. No torch.

A value of the answer is said if the reply has the same value in any notation. One rule a kind: the
table `KINDS` says how a kind is found and read, `_agree` how two readings are compared. What
identifies (`DECISIVE`) must be there as a whole: half of an account number is another number.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import regex

from adapop.facts.text import folded, words
from adapop.probes.numerals import ROMAN, VALUES, ranks

Reading = tuple
DATE, TIME, MONEY, QUANTITY = "date", "time", "money", "quantity"
EXACT, BLOOD, VERSION, IDENTIFIER, DIGITS = (
    "exact",
    "blood group",
    "version",
    "identifier",
    "digits",
)
DECISIVE = frozenset({TIME, EXACT, BLOOD, VERSION, IDENTIFIER})  # of others, words may suffice
SEARCHED = frozenset({VERSION, IDENTIFIER, DIGITS})  # found in a reply by what the answer has

MONTHS = (
    "jan ene gen", "feb fev", "mar mrz", "apr abr avr", "may mai mag", "jun juin giu",
    "jul juil lug", "aug ago aou", "sep set", "oct okt ott out", "nov", "dec dez dic",
)  # fmt: skip
MONTH = {start: number for number, starts in enumerate(MONTHS, start=1) for start in starts.split()}
_SHORT = "Jan Feb Mar Apr May June? July? Aug Sept? Oct Nov Dec".split()
_LONG = "January February March April August September October November December".split()
_NAME, _MONTH = r"(?P<name>[^\W\d_]{3,10}+)\.?", rf"(?P<name>{'|'.join(_LONG + _SHORT)})\.?"
_DAY = r"(?P<d>\d\d?)(?:st|nd|rd|th|er|\.|º)?"
_QUARTER = r"(?P<nth>first|second|third|fourth|1st|2nd|3rd|4th)\squarter\s(?:of\s)?(?P<y>\d{4})"
QUARTERS = ("fi", "1s", "se", "2n", "th", "3r", "fo", "4t")  # how they begin
# Full dates first: the rest are parts of dates, with the month's name in English. Those that begin
# with a digit and with a letter are apart, so that few patterns are tried at a place of a text.
DATES = regex.compile(
    r"(?=\d)(?:"
    r"(?<![\d.])(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d\d?)(?P=by)(?P<d>\d\d?)"
    r"(?:[T ]\d\d:[\d:.]{2,15}Z?)?(?!\d)"
    r"|(?P<y>\d{4})\s?[年년]\s?(?P<m>\d\d?)\s?[月월]\s?(?P<d>\d\d?)\s?[日일]"
    r"|(?<![\d.])(?P<first>\d\d?)(?P<by>[./-])(?P<second>\d\d?)(?P=by)(?P<y>\d{4}|\d\d)(?![\d.])"
    r"|(?<!\d)(?P<y>1[89]\d\d|20\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>[0-2]\d|3[01])(?!\d)"
    rf"|(?<!\d){_DAY}[\s-](?:day\s)?(?:of\s|de\s)?{_NAME},?[\s-](?:de\s)?(?P<y>\d{{4}})(?!\d)"
    rf"|(?<!\d)(?P<y>\d{{4}}),?[\s-]{_NAME}[\s-]{_DAY}\b"
    r"|(?<![\w/])(?P<m>0[1-9]|1[0-2])/(?P<y>\d{4})(?![\d/])"
    rf"|(?<![\d.]){_DAY}\s(?:of\s)?{_MONTH}(?!\w)"
    rf"|\b(?i:(?P<y>\d{{4}})[\s/-]?q(?P<q>[1-4])|{_QUARTER})\b)"
    r"|\b(?=[^\W\d_]{1,10}+(?:\.?,?\s(?:of\s)?\d|\squarter|\d))"  # most words are no months
    rf"(?:{_NAME}\s{_DAY},?\s(?P<y>\d{{4}})(?!\d)"
    rf"|{_MONTH},?\s(?:of\s)?(?P<y>\d{{4}})(?!\d)|{_MONTH}\s{_DAY}(?![\d:])"
    rf"|(?i:q(?P<q>[1-4])(?:[\s/'-]?(?P<y>\d{{4}})|\s?[/'’](?P<y>\d\d)(?!\d))|{_QUARTER})\b)"
)
LONGEST_DATE = 40  # characters before its first digit, and behind its last one
_FACE = "one two three four five six seven eight nine ten eleven twelve".split()
TIMES = regex.compile(
    rf"\b(?P<share>half|quarter)\s(?P<way>past|after|to)\s(?P<h>{'|'.join(_FACE)}|1[0-2]|[1-9])\b"
    r"(?![:.]\d)(?:\s?(?P<half>[ap])\.?m\b)?|"
    r"(?<![\w:.,-])(?P<h>[01]?\d|2[0-3])(?:[:.](?P<min>[0-5]\d))?\s?(?P<half>[ap])\.?m\b"
    r"|(?<![\w:.,-])(?P<h>[01]?\d|2[0-3])(?::|h|\sh\s)(?P<min>[0-5]\d)(?::[0-5]\d)?(?![\w:]|\s?min)"
    r"|(?<=\bat )(?P<h>[01]?\d|2[0-3])\.(?P<min>[0-5]\d)(?![\d.])"
    r"|(?<![\w:.,-])(?P<h>[01]\d|2[0-3])\.?(?P<min>[0-5]\d)\s?(?:hours|hrs|h|uhr)\b"
    r"|(?<![\w:.,-])(?P<h>\d\d?)\so['’]clock(?:\s(?P<half>[ap])\.?m\b)?|\b(?P<word>noon|midnight)\b",
    regex.IGNORECASE,
)
_AMOUNT = r"\d{1,3}(?:[,.'’\s]\d{3}){1,6}(?:[.,]\d{1,2})?(?!\d)|\d{1,15}(?:[.,]\d{1,6})?"
_SCALE = r"(?:\s?(?P<scale>thousand|million|billion|mn|bn|[km])\b)?"
CURRENCIES = {
    "$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "usd": "usd", "eur": "eur",
    "gbp": "gbp", "jpy": "jpy", "chf": "chf", "inr": "inr", "dollar": "usd", "euro": "eur",
    "pound": "gbp",
}  # fmt: skip
_CURRENCY = rf"[$€£¥₹]|\b(?:{'|'.join(name for name in CURRENCIES if name.isalpha())})(?=s?\b)"
MONEYS = regex.compile(
    rf"(?P<cur>{_CURRENCY})\s?(?P<n>{_AMOUNT}){_SCALE}"
    rf"|(?<![\w.,])(?P<n>{_AMOUNT}){_SCALE}[\s-]?(?P<cur>{_CURRENCY})s?",
    regex.IGNORECASE,
)
MAY_BE_MONEY = re.compile(_CURRENCY, re.IGNORECASE)
MAY_HAVE = re.compile(
    r"\d|@|www\.|[a-z]\.[a-z]|\b(?:AB?|ab|[BbOo])\b|noon|midnight|alf past|uarter (?:past|after|to)"
)
SCALES = {"k": 1_000, "m": 10**6, "b": 10**9, "t": 1_000}  # by the first letter
# Name of a unit -> its dimension and its size in that dimension's first unit.
UNITS = {
    name: (dimension, Fraction(size))
    for dimension, size, names in (
        ("length", "1", "m metre meter"), ("length", "1000", "km kilometre kilometer"),
        ("length", "0.01", "cm centimetre centimeter"),
        ("length", "0.001", "mm millimetre millimeter"), ("length", "0.3048", "ft foot feet"),
        ("length", "0.0254", "inch inches"), ("length", "1609.344", "mile mi"),
        ("mass", "1", "kg kilogram kilo kilogramme"), ("mass", "0.001", "g gram gramme"),
        ("mass", "0.000001", "mg milligram"), ("mass", "1000", "t tonne"),
        ("mass", "0.45359237", "lb"), ("volume", "1", "l litre liter"),
        ("volume", "0.001", "ml millilitre milliliter"),
        ("time", "1", "sec second"), ("time", "60", "min minute"), ("time", "3600", "h hr hour"),
        ("time", "86400", "day"), ("time", "604800", "week"),
        ("lens power", "1", "dpt dioptre diopter"),
        ("celsius", "1", "°c celsius"), ("fahrenheit", "1", "°f fahrenheit"),
    )
    for name in names.split()
}  # fmt: skip
IMPERIAL = frozenset({"ft", "foot", "feet", "inch", "inches", "mile", "mi", "lb"})
ROUNDED = Fraction(3, 1000)  # relative, between metric and imperial units
_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
UNITS["in"] = UNITS["inch"]  # only behind feet: elsewhere it is the word
UNITS["d"] = UNITS["dpt"]  # only behind two decimals, as lenses have
QUANTITIES = regex.compile(
    rf"(?<![\w.,])(?P<n>(?:minus\s|[-−])?(?:{_AMOUNT}))[\s-]?(?:degrees?\s)?(?P<unit>{_UNIT})s?(?![\w°])"
    rf"(?:\s?(?P<n2>\d{{1,2}})\s?(?P<unit2>{_UNIT}|in)s?\b)?"
    r"|(?<![\w.,])(?P<n>[-−]?\d{1,2}[.,]\d\d)\s?(?P<unit>D)(?![\w°])"
    r"|(?<![\w.,])(?P<n>\d)\s?['′’]\s?(?P<n2>\d{1,2})(?:[\"″”]|['′’]{2})?",
    regex.IGNORECASE,
)
_DOMAIN = r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}"
_ENDS = (
    "com org net edu gov info biz io ai dev app co example test "
    "uk de fr ch at it es nl eu us ca au jp cn"
).replace(" ", "|")
EXACTS = regex.compile(
    rf"(?<![\w.+@-])(?P<mail>[\w.+%-]{{1,64}}@{_DOMAIN}|@\w[\w.]{{1,40}})"
    r"|(?P<url>(?:https?://|\bwww\.)[^\s<>\"'）)\]]{1,400}"
    rf"|(?<![\w.@/-])(?:[a-z0-9-]{{1,63}}\.){{1,5}}(?:{_ENDS})\b"
    r"(?:/[^\s<>\"')\]]{0,400})?)"
)
MAY_BE_EXACT = re.compile(r"[@/]|\.\S")
BLOODS = regex.compile(
    r"(?<![\w+-])(?P<type>A|0|(?i:AB|B|O))[\s-]?(?:(?i:rh(?:esus)?)[\s-]?(?:D[\s-])?)?"
    r"(?:(?P<sign>[-+−–])(?!\w)|(?i:(?P<word>pos|neg)(?:itive|ative)?)\b)"
)
VERSIONS = regex.compile(
    r"(?<![\w.])(?i:v(?:ersion)?\.?\s?)(?P<v>\d{1,9}(?:\.\d{1,9}){0,8})(?!\w|\.\d)"
    r"|(?<![\w.])(?P<v>\d{1,9}(?:\.\d{1,9}){2,8})(?!\w|\.\d)"
)
_GROUP = r"(?:[A-Z]{1,4}(?:-[A-Z]{1,4})?|[A-Za-z]{0,6}\d[A-Za-z0-9]{0,40})"
RUNS = regex.compile(
    rf"(?<![\w@.,%])[+(]{{0,2}}{_GROUP}(?:[ \-/.():]{{1,2}}{_GROUP}){{0,12}}(?![\w%])"
)
DIGIT, GROUP = re.compile("[0-9]"), re.compile("[A-Za-z0-9]+")
COUNTED = re.compile(r"\d{1,4}(?:st|nd|rd|th|s)|[\d.]{1,20}e\d+", re.IGNORECASE)  # 8th, 1980s, 1e6
YEARS = re.compile(r"[12]\d{3}\D+(?:[12]\d{3}|\d\d)")
THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[ .]\d{3})+")
NO_PARTS = frozenset("AD BC CE BCE AM PM NO".split()) | ROMAN.keys()  # of identifiers
SIGNS = frozenset("&#!$*^~=%@+?_")
SECRET_LENGTH = 8  # from here on, letters in both cases and digits are a secret
# Fewest digits of an identifier with marks, with spaces, without any; of a phone number; of its
# part behind the country code.
MARKED, SPACED, UNMARKED, PHONE = 5, 7, 6, 8
LONGEST_PHONE = 15
AMERICAN = 10  # digits of a phone number behind a 1
LONGEST_CODE = 3  # digits of a country code
GROUPED = re.compile(r"[A-Za-z0-9]+(?:[ \-./():,\u00a0–]{1,3}[A-Za-z0-9]+)*")
FURTHER = re.compile(r"[\d+][ \-./()]*$")  # a digit or + that a number goes on from
CODE = re.compile(r"(?:(?:\+|\b00)\d{1,3}[ \-./()]*0?[ \-./()]*|\b1[ \-./()]*)$")
SPACED_LETTERS = 5  # fewest signs of an identifier of letters and digits with spaces


@dataclass(frozen=True)
class Value:
    """A value at text[start:end]. Its readings are tuples: a date may have two."""

    kind: str
    start: int
    end: int
    readings: tuple[Reading, ...]


@lru_cache(maxsize=2**14)
def values(text: str, last: str = IDENTIFIER) -> tuple[Value, ...]:
    """The values in a text, in order and without overlap; in the order of `KINDS` where two kinds
    would read the same text. last: the last kind that is read, as those behind it take nothing from
    it."""
    if not MAY_HAVE.search(text):
        return ()
    covered = bytearray(len(text))
    result: list[Value] = []
    for kind in KINDS:
        for start, end, readings in _found(kind, text):
            if not any(covered[start:end]):
                covered[start:end] = b"1" * (end - start)
                plain = kind == IDENTIFIER and text[start:end].isdecimal()
                result.append(Value(DIGITS if plain else kind, start, end, readings))
        if kind == last:
            break
    return tuple(sorted(result, key=lambda value: value.start))


def one_spelling(answer: str, reply: str) -> tuple[str, str]:
    """Both texts, with what both have as a value in one spelling: 1979-05-14 for May 14, 1979."""
    in_answer, in_reply = [], []
    for value in values(answer):
        if places := said_at(value, reply):
            key = _spelling(value)
            in_answer.append((value.start, value.end, key))
            in_reply += [(start, end, key) for start, end in places]
    if not in_answer:
        return answer, reply  # the usual case
    return _replaced(answer, in_answer), _replaced(reply, in_reply)


def said_at(value: Value, text: str) -> list[tuple[int, int]]:
    """Where a text says a value, as (start, end)."""
    if value.kind in SEARCHED:
        (reading,) = value.readings
        return list(_written(*reading, text))
    if value.kind == DATE and not _has_digits_of(value, text):
        return []
    places = [
        (start, end)
        for start, end, readings in _found(value.kind, text)
        if any(_agree(value.kind, *pair) for pair in product(value.readings, readings))
    ]
    if not places:
        return []  # the usual case: the kinds before it need not be read
    own = {(other.start, other.end) for other in values(text, value.kind)}
    return [place for place in places if place in own]


def _has_digits_of(date: Value, text: str) -> bool:
    """Whether a text has the digits of a date's day and of its year's end; cheap, as most texts do
    not."""
    return not text.isascii() or any(
        (day is None or str(day) in text) and (year is None or f"{year % 100:02}" in text)
        for year, _, day in date.readings
    )


def _of_kind(kind: str, text: str) -> list[Value]:
    last = IDENTIFIER if kind == DIGITS else kind
    if not _found(last, text):
        return []
    return [value for value in values(text, last) if value.kind == kind]


@lru_cache(maxsize=2**7)  # for the several questions to one reply
def _found(kind: str, text: str) -> tuple[tuple[int, int, tuple[Reading, ...]], ...]:
    """What may be values of a kind in a text: start, end, readings. They may overlap with those of
    another kind."""
    matches = KINDS[kind](text) if MAY_HAVE.search(text) else ()
    return tuple((start, end, tuple(readings)) for start, end, readings in matches if readings)


def is_contradicted(value: Value, text: str) -> bool:
    """Whether a text that does not say a value says another one in its place."""
    others = _of_kind(value.kind, text)
    if value.kind != DATE:  # part of a date is none
        return bool(others)
    pairs = (pair for other in others for pair in product(value.readings, other.readings))
    return bool(others) and all(_conflict(*pair) for pair in pairs)


def is_coarser(value: Value, text: str) -> bool:
    """Whether a text has the finest part of a date nowhere: "in 2021" gives no quarter away, "May
    2021" no day. False for other values."""
    return value.kind == DATE and not any(_says_finest(one, text) for one in value.readings)


def _says_finest(date: Reading, text: str) -> bool:
    _, month, day = date
    spelled = words(text)
    numbers = {int(number) for number in re.findall(r"(?<!\d)\d\d?(?!\d)", text)} | ranks(text)
    numbers |= {VALUES.get(word) for word in spelled if len(word) > len("an")}
    if not text.isascii():
        numbers |= {VALUES.get(sign) for sign in text if not sign.isascii()}  # 三
    if day is not None:
        return day in numbers
    if isinstance(month, str):
        return int(month[1:]) in numbers or any(word.startswith(month) for word in spelled)
    names = {MONTH.get(word[:length]) for word in spelled for length in (3, 4)}
    return month in numbers | names


def _spelling(value: Value) -> str:
    """One word for a value; of digits where it has some, as numbers count more than words."""
    parts = [str(part) for part in value.readings[0] if part is not None]
    return f" {re.sub('[^0-9a-z]', '', ''.join(parts).casefold())} "


def _replaced(text: str, changes: list[tuple[int, int, str]]) -> str:
    parts, place = [], 0
    for start, end, key in sorted(changes):
        if start >= place:
            parts += [text[place:start], key]
            place = end
    return "".join((*parts, text[place:]))


def _agree(kind: str, own: Reading, other: Reading) -> bool:
    """Whether the reading of an answer's value is that of one in a reply."""
    if kind == DATE:
        return all(part in (None, theirs) for part, theirs in zip(own, other))
    if kind == TIME:
        return _is_same_time(own, other)
    if kind == QUANTITY:
        near = ROUNDED * own[1] if own[2] != other[2] else 0
        return own[0] == other[0] and abs(own[1] - other[1]) <= abs(near)
    return own == other


def _is_same_time(own: Reading, other: Reading) -> bool:
    """Where one of two times has neither am nor pm, 2:30 is both 2:30 pm and 14:30, but 10:30 is
    not 22:30."""
    (hour, minute, clock), (others_hour, others_minute, others_clock) = own, other
    if minute != others_minute:
        return False
    same_face = clock is None and others_clock == 12 and hour == (others_hour % 12 or 12)
    afternoon = others_clock is None and clock is not None and hour == others_hour % 12 + 12
    return hour == others_hour or same_face or afternoon


def _conflict(own: Reading, other: Reading) -> bool:
    return any(None not in pair and pair[0] != pair[1] for pair in zip(own, other))


def _read_dates(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    """Readings (year, month or quarter, day), None where one is missing; 04/07/1776 has two."""
    digits = [match.start() for match in re.finditer(r"\d", text)] or [len(text)]
    start, end = max(0, digits[0] - LONGEST_DATE), digits[-1] + LONGEST_DATE
    for match in DATES.finditer(text, start, end):
        year, day = (int(match[name]) if match[name] else None for name in ("y", "d"))
        if match["q"] or match["nth"]:
            number = match["q"] or QUARTERS.index(match["nth"][:2].lower()) // 2 + 1
            full = 2000 + year if len(match["y"]) < len("2021") else year
            readings = [(full, f"q{number}", None)]
        elif match["first"]:
            pair = int(match["first"]), int(match["second"])
            years = [year] if len(match["y"]) == len("1979") else [1900 + year, 2000 + year]
            readings = [(full, month, day) for full in years for day, month in {pair, pair[::-1]}]
        else:
            name = folded(match["name"] or "")
            month = int(match["m"] or MONTH.get(name[:3]) or MONTH.get(name[:4], 0))
            readings = [(year, month, day)]
        yield *match.span(), [one for one in readings if _is_date(*one)]


def _is_date(year: int | None, month: int | str, day: int | None) -> bool:
    if isinstance(month, str):
        return True
    return 1 <= month <= 12 and (day is None or 1 <= day <= monthrange(year or 2000, month)[1])


def _read_times(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    """Readings (hour, minute, clock); clock: 12 with am or pm, 24 where the hour is of no other
    clock, None where it may be of either."""
    for match in TIMES.finditer(text):
        if match["word"]:
            yield *match.span(), [(12 if match["word"].lower() == "noon" else 0, 0, 12)]
            continue
        if match["share"]:
            yield *match.span(), _on_the_face(match)
            continue
        hour, minute, half = int(match["h"]), int(match["min"] or 0), (match["half"] or "").lower()
        if half:
            readings = [(hour % 12 + 12 * (half == "p"), minute, 12)] if hour <= 12 else []
        else:
            readings = [(hour, minute, 24 if hour > 12 or match["h"][0] == "0" else None)]
        yield *match.span(), readings


def _on_the_face(match: regex.Match) -> list[Reading]:
    """Readings of half past two or a quarter to three: in the morning and in the afternoon."""
    name, minutes = match["h"].lower(), {"half": 30, "quarter": 15}[match["share"].lower()]
    hour = _FACE.index(name) + 1 if name in _FACE else int(name)
    if match["way"].lower() == "to":
        hour, minutes = hour - 1, 60 - minutes
    halves = {"a": (0,), "p": (12,), "": (0, 12)}[(match["half"] or "").lower()]
    return [(hour % 12 + half, minutes, 12) for half in halves]


def _read_money(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    """One reading: the amount and its currency."""
    for match in MONEYS.finditer(text) if MAY_BE_MONEY.search(text) else ():
        scale = SCALES.get((match["scale"] or " ")[0].lower(), 1)
        scale = SCALES["k"] if (match["scale"] or "").lower() == "thousand" else scale
        amount = _amount(match["n"]) * scale
        yield *match.span(), [(amount, CURRENCIES[match["cur"].lower()])]


def _read_quantities(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    """One reading: the dimension, the size in its unit, and whether in imperial units."""
    for match in QUANTITIES.finditer(text):
        unit = (match["unit"] or "ft").lower()
        dimension, size = UNITS[unit]
        value = _amount(match["n"]) * size
        if match["n2"]:
            other, part = UNITS[(match["unit2"] or "in").lower()]
            value += int(match["n2"]) * part if other == dimension else 0
        yield *match.span(), [(dimension, value, unit in IMPERIAL)]


def _amount(text: str) -> Fraction:
    """A number of digits; marks between thousands do not count."""
    number = words(text.lower().replace("minus ", "-"))[0]
    return Fraction(number)


def _read_exact(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    """One reading: an address in small letters, without https:// and www."""
    for match in EXACTS.finditer(text) if MAY_BE_EXACT.search(text) else ():
        address = match[0].rstrip(".,;:!?/")
        key = re.sub(r"^(?:https?://)?(?:www\.)?", "", address.casefold())
        yield match.start(), match.start() + len(address), [(key,)]


def _read_blood(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    for match in BLOODS.finditer(text):
        positive = match["sign"] == "+" or (match["word"] or "").lower() == "pos"
        yield (
            *match.span(),
            [(match["type"].upper().replace("0", "O"), "pos" if positive else "neg")],
        )


def _read_versions(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    for match in VERSIONS.finditer(text):
        parts = match["v"].split(".")
        is_phone = len("".join(parts)) >= PHONE and max(map(len, parts)) > len("255")
        yield *match.span(), [] if is_phone else [(match["v"], VERSION)]


def _read_identifiers(text: str) -> Iterator[tuple[int, int, list[Reading]]]:
    """One reading: letters and digits without marks, and how they are looked for."""
    for token in re.finditer(r"[^\s\"'“”‘’«»,;]{4,100}", text):
        if _is_secret(secret := token[0].strip("().:!?")):
            start = token.start() + token[0].index(secret)
            yield start, start + len(secret), [(secret, "secret")]
    for run in RUNS.finditer(text):
        pieces = [run] if _is_identifier(run[0]) else re.finditer(r"\S+", run[0])
        for piece in pieces:
            offset = 0 if piece is run else run.start()
            if _is_identifier(piece[0]):
                key = re.sub(r"[^A-Za-z0-9]", "", piece[0])
                how = "abroad" if piece[0].startswith(("+", "(+", "00")) and key.isdecimal() else ""
                yield piece.start() + offset, piece.end() + offset, [(key, how)]


def _is_secret(token: str) -> bool:
    """Whether a word looks like a password or a key: case and signs count."""
    if not (token.isascii() and DIGIT.search(token)):
        return False
    small, large = any(map(str.islower, token)), any(map(str.isupper, token))
    signs = not SIGNS.isdisjoint(token[1:]) and "@" not in token.rstrip("@")
    mixed = small and large and len(token) >= SECRET_LENGTH
    return mixed or (signs and (small or large))


def _is_identifier(run: str) -> bool:
    """Whether groups of letters and digits are an identifier, and no number, year or ordinal."""
    if not DIGIT.search(run):
        return False
    groups = GROUP.findall(run)
    key, inside = "".join(groups), run.strip("()+. ")
    if any(map(COUNTED.fullmatch, (*groups, inside))):
        return False
    if not key.isdecimal():
        short = len(key) < SPACED_LETTERS or not NO_PARTS.isdisjoint(groups)
        return not (" " in inside and short)
    if YEARS.fullmatch(inside) or (THOUSANDS.fullmatch(inside) and not run.startswith("+")):
        return False
    if len(groups) == 1 or re.fullmatch(r"\d+\.\d+", inside):
        return len(groups) == 1 and len(key) >= UNMARKED
    return len(key) >= (SPACED if set(inside) <= set(" 0123456789") else MARKED)


def _written(key: str, how: str, text: str) -> Iterator[tuple[int, int]]:
    """Where an identifier stands in a text, as (start, end), in any grouping. how: "secret" where
    case and signs count, `VERSION` where points do, "abroad" for a phone number with its country
    code."""
    if how in ("secret", VERSION):
        for match in re.finditer(re.escape(key), text) if key in text else ():
            before, after = text[: match.start()][-1:], text[match.end() :][:2]
            inside = how == VERSION and (before in (".", "-") or re.match(r"\.\d", after))
            if not (inside or (before.isalnum() and before not in "vV") or after[:1].isalnum()):
                yield match.span()
        return
    yield from _grouped(key, text)
    if key.isdecimal() and PHONE <= len(key) <= LONGEST_PHONE:
        yield from _dialled(key.removeprefix("00") if how == "abroad" else key, how, text)


def _dialled(key: str, how: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a text has a phone number with another beginning: +41, 0041, +41 (0), a zero or none
    of them, 1 in North America."""
    if how == "abroad":
        codes = range(1, LONGEST_CODE + 1)
        yield from _grouped(f"00{key}", text)
        for form in (key, *(f"{key[:code]}0{key[code:]}" for code in codes)):
            yield from _grouped(form, text)
        for rest in (key[code:] for code in codes if len(key) - code >= PHONE):
            for form in (rest, f"0{rest}"):
                places = _grouped(form, text)
                yield from (place for place in places if not FURTHER.search(text[: place[0]][-4:]))
        return
    rest = key.removeprefix("0")
    for start, end in _grouped(rest, text, whole=False):
        code = CODE.search(text[max(0, start - 16) : start])
        if code and (code[0][0] in "+0" or len(rest) == AMERICAN):
            yield start, end


def _grouped(key: str, text: str, whole: bool = True) -> Iterator[tuple[int, int]]:
    """Where letters and digits stand in a text with at most three marks between two of them.
    whole: only where no letter or digit is right before."""
    signs, key = _letters_and_digits(text), key.lower()
    at = signs.find(key)
    places = _places(text) if at >= 0 else ()
    while at >= 0:
        start, last = places[at], places[at + len(key) - 1]
        inside = text[start : last + 1]
        before, after = text[:start][-1:], text[last + 1 :][:2]
        edge = not (_joins(before) and whole) and not _joins(after[:1])
        if edge and not re.match(r"-\d", after) and GROUPED.fullmatch(inside):
            yield start, last + 1
        at = signs.find(key, at + 1)


@lru_cache(maxsize=2**12)
def _letters_and_digits(text: str) -> str:
    """The letters and digits of a text, small."""
    return "".join(GROUP.findall(text)).lower()


@lru_cache(maxsize=2**7)
def _places(text: str) -> list[int]:
    """Where each of `_letters_and_digits` stands in its text."""
    return [place for group in GROUP.finditer(text) for place in range(*group.span())]


def _joins(sign: str) -> bool:
    return sign.isascii() and sign.isalnum()


KINDS: dict[str, Callable[[str], Iterator[tuple[int, int, Sequence[Reading]]]]] = {
    EXACT: _read_exact,
    DATE: _read_dates,
    TIME: _read_times,
    MONEY: _read_money,
    VERSION: _read_versions,
    QUANTITY: _read_quantities,
    BLOOD: _read_blood,
    IDENTIFIER: _read_identifiers,
}
