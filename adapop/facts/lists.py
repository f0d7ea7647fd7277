"""Lists and objects written as text in a cell: by JSON, Python, numpy or pandas. Nothing is
evaluated. Parsing takes time linear in the length; only JSON may exceed `LONGEST` characters."""

import json
import re
from collections.abc import Iterator, Sequence

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
KINDS = ("", "string", "mark", "word")
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
            yield KINDS[match.lastindex], match[match.lastindex]
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
