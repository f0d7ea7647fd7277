"""What one cell holds: a text, a list of texts, a score, or answers and the choices they point to.

Whatever is not read literally is noted in a `Reading`."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from string import ascii_uppercase
from unicodedata import normalize

from adapop.errors import truncated
from adapop.facts.text import UNKNOWN, WORDS, normalized

# Lists and objects written as text, by JSON, Python, numpy or pandas. Nothing is evaluated. Parsing
# takes time linear in the length; only JSON may exceed `LONGEST` characters.

LONGEST, DEEPEST = 100_000, 8
FIRST = "[{(<"
MAYBE = re.compile(r'\s*(?:[\[{(<"]|\d+ {2}|[A-Za-z_][\w.]*\()')  # how the text of a list may begin
EMPTY = frozenset(("None", "nan", "NaN", "null", "NULL", "NaT", "NA", "<NA>"))  # without quotes
LITERALS = {"True": True, "False": False, "true": True, "false": False}
# array([...]), Index([...]), c("a", "b"); print("a") is no list
CALL = re.compile(
    r"(?:\w+\.)*(?:\w*[aA]rray|\w*Index|Series|list|tuple|(?:frozen)?set|deque|tensor"
    r"|c)\(\s*[\[{(\"']"
)
SERIES = re.compile(r"(?:\d+ {2,}[^\n]*\n)+(?:Name: [^\n]*, )?(?:Length: \d+, )?dtype: \w+")
TOKEN = re.compile(
    r"""\s*(?:[bBuUrR]{0,2}('[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")|"""
    r"""(\.\.\.|…|[\[\](){},:=])|(<?[\w.+-]+>?)|(\S))""",
    re.S,
)
STRING = r"""[bBuUrR]?(?:'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'|"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+")"""
ITEM = re.compile(rf"{STRING}|[\w.+-]++", re.S)
FLAT = re.compile(rf"\[\s*+(?:(?:{STRING}|[\w.+-]++)[\s,]*+)*+\]", re.S)  # by far the most lists
ESCAPE = re.compile(
    r"\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U(000[\da-fA-F]{5}|0010[\da-fA-F]{4})|(.))", re.S
)
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "\n": "", **{letter: letter for letter in "\\'\"/"}}
TOKEN_KINDS = ("", "string", "mark", "word")
TYPED = str.maketrans("“”‘’", "\"\"''")
CLOSING = {"[": "]", "(": ")", "{": "}"}
decoded = json.JSONDecoder(parse_int=str, parse_float=str).decode


def parsed(text: str) -> list | dict | None:
    """The list or object that the whole text represents; None for other or truncated text."""
    if not MAYBE.match(text):
        return None
    value = from_json(text)
    value = from_repr(text) if value is None else value
    if value is None and text.strip()[1:2] in ("“", "‘"):  # Word and Excel replace typed quotes
        return parsed(text.translate(TYPED))
    return value


def from_json(text: str) -> list | dict | None:
    """The list or object in a JSON text or JSON string; None for other text. Numbers stay text."""
    text = text.strip()
    try:
        if text[:1] == '"' and text[-1:] == '"' and "[" in text[:9]:
            text = decoded(text).strip()
        return decoded(text) if text[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        return None


def from_repr(text: str) -> list | dict | None:
    """The list or object in a text printed by Python, numpy (spaces separate items) or pandas; None
    for other text. Numbers stay text; None and nan become None."""
    text = text.strip()
    if text[:1] not in FIRST and not CALL.match(text):
        return _series(text)
    if not text or len(text) > LONGEST or (text[0] == "(" and "," not in text):
        return None
    try:
        if FLAT.fullmatch(text):
            items = ITEM.findall(text)
            return [_string(item) if item[-1] in "'\"" else _word(item) for item in items]
        reader = _Reader(text)
        value = reader.value(0)
        ended = reader.next[0] == "" or text[0] == "<"  # <StringArray> is followed by its length
    except ValueError:
        return None
    return value if ended and isinstance(value, list | dict) else None


class _Reader:
    """Parses one text by recursive descent, at most `DEEPEST` levels down."""

    def __init__(self, text: str) -> None:
        self.tokens = self._tokens(text)
        self.next = next(self.tokens)

    @staticmethod
    def _tokens(text: str) -> Iterator[tuple[str, str]]:
        """Kind and text of every token: string, mark or word; "" at the end. Raises ValueError."""
        for match in TOKEN.finditer(text):
            if match.lastindex == 4:  # lazily: a scan of what follows could take quadratic time
                raise ValueError(match[4])
            yield TOKEN_KINDS[match.lastindex], match[match.lastindex]
        while True:
            yield "", ""

    def take(self) -> tuple[str, str]:
        token, self.next = self.next, next(self.tokens)
        return token

    def value(self, depth: int) -> object:
        if depth > DEEPEST:
            raise ValueError("too deep")
        kind, text = self.take()
        if kind == "string":
            return _string(text)
        if kind == "mark" and text in CLOSING:
            return self.items(CLOSING[text], depth)
        if kind != "word":
            raise ValueError(text)
        if self.next == ("mark", "("):
            self.take()
            items = self.items(")", depth)
            alone = len(items) == 1 and (depth or isinstance(items[0], list | dict))
            return items[0] if alone else items
        if text.startswith("<") and text.endswith("Array>"):
            return self.value(depth)
        return _word(text)

    def items(self, closing: str, depth: int) -> list | dict:
        """The items up to a closing mark, as a dict if they are pairs; skips named arguments.
        Raises ValueError."""
        items, pairs = [], {}
        while self.next != ("mark", closing):
            if self.next == ("mark", ","):
                self.take()
                continue
            if self.next[0] == "word" and closing == ")":
                word = self.take()[1]
                if self.next == ("mark", "="):
                    self.take()
                    self.skip(depth)
                    continue
                raise ValueError(word)
            item = self.value(depth + 1)
            if self.next == ("mark", ":"):
                self.take()
                pairs[item if isinstance(item, str) else str(item)] = self.value(depth + 1)
            else:
                items.append(item)
        self.take()
        if items and pairs:
            raise ValueError("half an object")
        return pairs or items

    def skip(self, depth: int) -> None:
        """Passes over a named argument: a literal or the name of a type."""
        if self.next[0] == "word":
            self.take()
        else:
            self.value(depth + 1)


def _string(text: str) -> str:
    mark = text[-1]
    inner = text[text.index(mark) + 1 : -1]
    inner = inner.replace(mark * 2, mark) if mark * 2 in inner else inner
    return ESCAPE.sub(_unescaped, inner) if "\\" in inner else inner


def _word(text: str) -> object:
    if text in EMPTY:
        return None
    if text in LITERALS:
        return LITERALS[text]
    float(text)  # raises ValueError for any other word
    return text


def _unescaped(match: re.Match) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else LETTERS.get(match[4], f"\\{match[4]}")


def _series(text: str) -> list | None:
    """The items of a printed pandas Series, one on each line; None for other text."""
    if not text[:1].isdigit() or "dtype: " not in text[-60:] or not SERIES.fullmatch(text):
        return None
    lines: Sequence[str] = text.split("\n")[:-1]
    items = (line.split(None, 1)[1].strip() if line.split(None, 1)[1:] else "" for line in lines)
    return [None if item in EMPTY else item for item in items]


# Texts, and how the cells of a file are read.

MAX_CELL = 2_000  # characters
KINDS = {list: "a list", dict: "an object or binary", bool: "a truth value"}
# how a cell can be read other than literally: the kinds of notes, in their order
READINGS = (
    "list_as_answer", "several_answers", "answer_points", "list_as_text", "list_by_semicolons",
    "empty_items", "score_unknown", "score_thousands", "score_commas_unclear",
    "score_decimal_comma", "score_percent", "score_decimals", "cell_unknown", "question_unknown",
    "answer_unknown", "answer_truth_value", "answer_in_brackets", "type_not_read", "wrong_answers",
    "wrong_answers_alone", "right_and_wrong", "digits_lost",
)  # fmt: skip
NOT_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Reading:
    """How the rows of a file are read, and which were not read literally."""

    counted_from: int | None = None
    """How answers point to choices, as `counted_from` returns it."""
    points: str = ""
    """"thousands": 25.692 is 25,692; "": a decimal; "decimals": a decimal, with a note that says
    so."""
    percent: bool = False
    """Whether all scores are percentages."""
    comma: bool = False
    """Whether a comma is the decimal mark of scores."""
    semicolons: bool = False
    """Whether semicolons separate cells, as in files where a comma is the decimal mark."""
    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """One of `READINGS` -> numbers of the rows."""


class Unusable(Exception):
    """A row cannot be read as a fact. Arguments: field, value to show, message, fix."""


def fault(cell: object) -> tuple[str, str, str] | None:
    """Why a cell is not usable as text: (value to show, message, fix); None if it is usable."""
    fits = type(cell) is str and len(cell) <= MAX_CELL
    if fits and (cell.isprintable() or not NOT_TEXT.search(cell)):
        return None  # a shortcut: most cells are usable, and a file may have a million
    if kind := KINDS.get(type(cell)):
        return "", f"is {kind}, not text", "Write plain text."
    text = string(cell)
    if len(text) > MAX_CELL:
        message = f"has {len(text):,} characters; at most {MAX_CELL:,} are read"
        return truncated(text), message, "Shorten the cell."
    if NOT_TEXT.search(text):
        message = "has a NUL or a broken character (a lone surrogate)"
        return truncated(NOT_TEXT.sub("\ufffd", text)), message, "Type the text again."
    return None


def items_of(cell: object, number: int, reading: Reading, names: bool = False) -> list:
    """The items of a list cell: a real list, a list written as text, or texts joined by `|`.
    reading: notes the row's number if the cell is not literal. names: semicolons separate items
    too, unless the text has | or an HTML entity such as &amp;."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in UNKNOWN:
            reading.rows["cell_unknown"].append(number)
            return []
        items = parsed(text)
        if isinstance(items, list):
            reading.rows["list_as_text"] += [number] * (from_json(text) is None)
        else:
            if names and ";" in text and "|" not in text and unescape(text) == text:  # AT&amp;T
                reading.rows["list_by_semicolons"].append(number)
                return text.split(";")
            return text.split("|")
        cell = items
    elif not isinstance(cell, list):
        return [cell]
    reading.rows["empty_items"] += [number] * any(map(is_empty, cell))
    return cell


def known(number: int, cell: object, reading: Reading) -> str:
    """A cell as text, "" if the cell is a mark for "unknown"."""
    text = string(cell)
    if text in UNKNOWN:
        reading.rows["cell_unknown"].append(number)
        return ""
    return text


def is_empty(cell: object) -> bool:
    return cell is None or cell != cell  # NaN, which tables write for an empty cell


def string(cell: object) -> str:
    """A cell as text; "" for None and for NaN, which tables write for an empty cell."""
    if isinstance(cell, str):  # a shortcut: most cells are text, and a file may have a million
        return cell.strip()
    return "" if is_empty(cell) else str(cell).strip()


# Scores: unknown ones, marks between thousands and before decimals.

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
        fix = "Scores are finite and at least 0; leave unknown ones empty."
        raise Unusable("score", truncated(text), "is not a score", fix)
    return score


# The right answers of a row: one, several, or the label of one of the choices.

VALUES = ("value", "text", "answer", "str", "spans")  # keys of the answer in an object
ALIASES = ("aliases", "normalizedvalue", "normalizedaliases")  # TriviaQA's, also with underscores
BESIDE = frozenset(
    "answerstart id type matchedwikientityname normalizedmatchedwikientityname "
    "provenance meta".split()
).union(VALUES, ALIASES)
TEXTS, LABELS = ("text", "texts", "choices", "options"), ("label", "labels", "key")
LABELLED = re.compile(r"\(?(\w)\s?[).:、．](?:\s+|(?<!\d.))(\S.*)", re.DOTALL)  # B. Brno; never 1.5
# the name of a column that holds one choice
NAMED = re.compile(r"(?:option|opt|choice|answer)[ _]?([A-J]|[1-9])", re.IGNORECASE)
SEVERAL = re.compile(r"[A-J](?:\s?[,;/+&]?\s?[A-J])+")  # labels of several choices
# key and value that mark one of several answers as wrong
WRONG = frozenset(f"{name} {no}" for name in ("correct", "iscorrect") for no in ("false", "0"))
NESTED = 3  # SQuAD and KILT have lists of objects of lists
FROM_0, FROM_1, MIXED, UNCLEAR = 0, 1, 2, -1


def answers_of(cell: object, depth: int = NESTED) -> list:
    """The right answers, best first, in a list, an object, or a text of either; [cell] for any
    other cell. Items that are not text are returned unchanged, so that an error can name them."""
    if isinstance(cell, str):
        if (value := parsed(cell)) is None:
            return [cell]
        read = answers_of(value, depth)
        known = not isinstance(value, dict) or set(map(_plain, value)) <= BESIDE
        plain = known and all(item is None or isinstance(item, str | float) for item in read)
        return read if plain else [cell]
    if isinstance(cell, dict) and depth:
        parts = {_plain(name): part for name, part in cell.items()}
        names = [name for name in VALUES if name in parts][:1]
        if names:
            names += [name for name in ALIASES if name in parts]
            return [item for name in names for item in _all_of(parts[name], depth - 1)]
    return _all_of(cell, depth) if isinstance(cell, list) else [cell]


def _all_of(cell: object, depth: int) -> list:
    answers = []
    for item in cell if isinstance(cell, list) else [cell]:
        pairs = item.items() if isinstance(item, dict) else ()
        if WRONG.isdisjoint(f"{_plain(name)} {part}".lower() for name, part in pairs):
            answers += answers_of(item, depth - 1) if pairs and depth else [item]
    return answers


def _plain(name: object) -> str:
    return str(name).lower().replace("_", "")


def choices_of(cell: object) -> dict[str, str]:
    """Label in capitals -> choice; A, B ... for a cell without labels. Empty unless the cell has
    two or more choices with different labels."""
    if isinstance(cell, str):
        cell = parsed(cell) or (cell.split("|") if "|" in cell else cell.strip().splitlines())
    if isinstance(cell, dict):
        parts = {_plain(name): part for name, part in cell.items()}
        texts = next((parts[name] for name in TEXTS if name in parts), None)
        labels = next((parts[name] for name in LABELS if name in parts), None)
        if texts is None and labels is None:
            texts, labels = list(cell.values()), list(cell)
    elif isinstance(cell, list) and cell and all(isinstance(item, dict) for item in cell):
        pairs = [{_plain(name): part for name, part in item.items()} for item in cell]
        texts = [next((pair[name] for name in TEXTS if name in pair), None) for pair in pairs]
        labels = [next((pair[name] for name in LABELS if name in pair), None) for pair in pairs]
        labels = None if None in labels else labels
    else:
        texts, labels = cell, None
    is_list = isinstance(texts, list)
    if not is_list or not all(isinstance(text, str) and text.strip() for text in texts):
        return {}
    labels = list(map(str, labels if isinstance(labels, list) else ascii_uppercase))
    choices = {label.strip().upper(): text.strip() for label, text in zip(labels, texts)}
    parts = [LABELLED.fullmatch(text) for text in choices.values()]
    # "A. Brno", ...
    numbered = [*choices], [*"123456789"[: len(parts)]]
    if all(parts) and [part[1].upper() for part in parts] in numbered:
        choices = {part[1].upper(): part[2] for part in parts}
    return choices if len(choices) == len(texts) > 1 else {}


def counted_from(rows: Iterable[tuple[object, Mapping[str, str]]]) -> int | None:
    """The number of the first choice, 0 or 1, where a file's answers point to choices. `MIXED`:
    some answers point, others are a choice's text. `UNCLEAR`: they can be either. None: none points
    to a choice. rows: answer cell and choices of each row."""
    numbers, count = set(), Counter()
    for cell, choices in rows:
        for answer in answers_of(cell):
            text, label = str(answer).strip(), _label(answer, choices)
            is_number = label.isdecimal() and len(label) < 4 and int(label) <= len(choices)
            points = label in choices or is_number
            literal = text in choices.values()
            points = points or bool(
                SEVERAL.fullmatch(text) and choices.keys() >= {*text} - {*" ,;/+&"} and not literal
            )
            count[literal, points] += 1
            if points and label.isdecimal() and label not in choices:
                numbers.add((int(label), len(choices)))
    literal, pointing = count[True, False], count[False, True]
    if not literal and not pointing:
        return UNCLEAR if count[True, True] else None
    from_1 = all(number for number, _ in numbers) and any(one == most for one, most in numbers)
    if literal or not pointing:
        return MIXED if pointing else None
    return FROM_1 if from_1 else FROM_0


def choice_index(answer: object, choices: Mapping[str, str], base: int) -> int | None:
    """The index, from 0, of the choice that an answer points to; None if there is none. base: from
    `counted_from`. With `MIXED`, a choice's text takes precedence; numbers count from 0."""
    text, texts = str(answer).strip(), list(choices.values())
    if base == MIXED and text in texts:
        return texts.index(text)
    if (label := _label(answer, choices)) in choices:
        return list(choices).index(label)
    first = FROM_1 if base == FROM_1 else FROM_0
    place = int(label) - first if label.isdecimal() and len(label) < 4 else -1
    return place if 0 <= place < len(choices) else None


def _label(answer: object, choices: Mapping[str, str]) -> str:
    """An answer read as a label, in capitals: the letter of b, B., (B), "option B" or "B. Brno", or
    a whole number without the .0 that some tables add. Other text is only put in capitals."""
    text = normalize("NFKC", str(answer)).strip()
    if named := NAMED.fullmatch(text):
        return ascii_uppercase[int(named[1]) - 1] if named[1].isdecimal() else named[1].upper()
    if (part := LABELLED.fullmatch(text)) and choices.get(part[1].upper()) == part[2]:
        return part[1].upper()
    bare = re.sub(r"(?<=\d)\.0$", "", text.strip("().: ")) if len(text) <= 4 else text
    return (bare or text).upper()


def without_repeats(texts: Iterable[str], taken: str) -> tuple[str, ...]:
    """The texts that differ from `taken`, and from each other, in more than case and spacing."""
    first = {normalized(taken): ""}
    for text in texts:
        first.setdefault(normalized(text), text)
    return tuple(filter(None, first.values()))
