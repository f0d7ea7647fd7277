"""Comparing texts: normal forms, words in any script, and whether a text mentions a name.

The words of Latin text are those of ROUGE: runs of letters and digits. In addition, a number is one
word however its thousands are grouped, a sign that changes the meaning stays with its word (C++,
-5, 10%), and other signs are words of their own (±, emoji). A script without spaces is divided
into pairs of neighbouring characters, as in search engines (Lucene's CJKAnalyzer): that needs no
dictionary, but also finds 京都 in 東京都."""

import re
import unicodedata
from bisect import bisect_left
from functools import lru_cache
from itertools import chain, pairwise

import regex

from adapop.assets import read_json

_LISTS = read_json("sets/words.json", dict[str, str])
WORDS = {kind: frozenset(words.split()) for kind, words in _LISTS.items()}

# control characters, marks that change the direction of text, and zero-width characters; not the
# joiners and marks that Persian, Hebrew and emoji need
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# accents of Latin, Greek and Cyrillic letters, and the vowel points of Arabic and Hebrew, which may
# be left out; never the vowel signs of Hindi or Thai, nor the dots that make パ of ハ
ACCENTS = regex.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe0e\ufe0f]"
)
SPELLINGS = str.maketrans(
    {
        **dict(zip("łøđðħŧı", "loddhti")),  # Unicode does not decompose these letters
        **{"þ": "th", "æ": "ae", "œ": "oe"},
        # letters as Arabic and Persian keyboards write them, and endings written carelessly
        **dict(zip("ىیکة", "ييكه")) | {"ـ": ""},
        **dict.fromkeys("’‘ʼ′", "'")
        | dict.fromkeys("−‐‑⁃⁻", "-")
        | {"⁄": "/", "٪": "%", "٫": ".", "٬": ","},
        **dict.fromkeys("™®©℠\ufffd", " ") | {"♯": "#"},
    }
)

# a number ends before a fraction (2½ is not 21/2) and before Cyrillic or Arabic letters (1973г)
FRACTION = re.compile(r"[¼-¾⅐-⅞\u0400-\u052f\u0620-\u064a](?<=\d.)")
POWER = re.compile(r"[²³¹⁰⁴-⁹⁻](?<=\d.)")
MINUS, POINT = re.compile(r"(?<!\d )\bminus (?=\d)"), re.compile(r"\.(?<![\w.,].)(?=\d)")
EDITION = re.compile(r"v(?<=\b.)(?=\d)")
OTHER_DIGIT = re.compile(r"[^\D0-9]")  # of another script
RUN_ON = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}"
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}ー"
)
LETTERS = rf"[[{RUN_ON}]&&[\p{{L}}\p{{Nl}}]]"  # of scripts without spaces
# letters of these scripts, and of Korean, which adds endings to a name
ENDING = rf"[[{RUN_ON}\p{{Hangul}}]&&[\p{{L}}\p{{Nl}}]]"
SPACED = rf"[[\p{{L}}\p{{N}}]--{ENDING}]"
SIGN = r"[[\p{So}\p{Sm}]--[\x00-\x7f°]]"
MARKS = r"[\p{M}\u200d]*"
V1 = regex.V1 | regex.VERBOSE
PIECE = regex.compile(
    rf"""(?P<plain>[a-z]+(?:[\ .,;:]{{1,2}}[a-z]+)*(?=[\ .,;:]|$))  # the usual case
    |(?<!{SPACED}|_|\d[.,])(?P<minus>(?<![-)\]])-)?
    (?:(?P<whole>[1-9]\d{{0,2}}(?P<mark>[,.\ '])\d{{3}}(?:(?P=mark)\d{{3}})*)
         (?:(?!(?P=mark))[.,](?P<rest>\d+))?
      |(?P<whole>[1-9]\d?(?:,\d\d)+,\d{{3}})
      |(?P<whole>\d+)(?:[.,](?P<rest>\d+))?)
    (?!{SPACED}|_|[.,]\d)(?P<percent>\ ?(?:%|per\ ?cent\b|prozent\b|pour\ cent\b|por\ ciento\b))?
    |(?P<run>(?:{ENDING}{MARKS})+)
    |(?P<word>(?<!{SPACED})[a-z]{{1,2}}[-+](?=$|[\s.,;:!?)\]"'])
        |(?:{SPACED}{MARKS})+(?:\+\+|[\#♭])?)
    |(?P<sign>(?={SIGN})\X)""",
    V1,
)
PLAIN = re.compile("[a-z0-9]+")
MARKS_ALONE = str.maketrans(dict.fromkeys("“”„«»—–…•", " "))  # that are no words
SPECIAL = re.compile(  # each begins with a sign, so that others are skipped at once
    r"[+#%]|\d[,.]\d|[1-9](?<!\d\d)\d{0,2}[' ]\d{3}(?!\d)|-(?:(?<!\w-)\d|(?<=[a-z]-)(?!\w))"
    r"|p(?:er ?cent|rozent|our cent|or ciento)"
)
# Spaces but those of 1 234, 5 % and 5 per cent.
SPACE = re.compile(r" (?!ci?en)(?:(?<!\d )|(?!\d{3}(?!\d)|%|p(?:er ?c|roz|our c|or c)))")
CLUSTER = regex.compile(rf"{ENDING}{MARKS}", V1)
# a broken model's "!!!!!!!!!!!!" or "hahahahahahahahahaha"
SHORTEST_RUN, RUN = 12, re.compile(r"(\S{1,6}?)\1{9,}")
UNIT = regex.compile(rf"{ENDING}{MARKS}|(?={SIGN})\X|(?:(?!{ENDING}|{SIGN}).)+", V1)
COUNTED = regex.compile(rf"{LETTERS}{MARKS}", V1)
TOKEN = re.compile(r"\w+|[^\w\s]|[\r\n]")
WORD = rf"{ENDING}{MARKS}|(?:[\w--{ENDING}][\p{{M}}\u200c\u200d]*)+"
TOKEN_ANY = regex.compile(rf"{WORD}|[^\w\s]|[\r\n]", V1)
BETWEEN = regex.compile(rf"({WORD})", V1)
# prefixes that Arabic, Hebrew and Amharic join to a name: and, in, to, from, as, the
PREFIX = regex.compile(r"[وف]?(?:[بك]?ال|لل|[بكل])?|ו?ש?[מבלכ]?ה?|[በየለከእ]")
JOINING = regex.compile(r"[\p{Arabic}\p{Hebrew}\p{Ethiopic}]")
LONGEST_PREFIX, SHORTEST_NAME = 4, 2
CHARACTERS_A_WORD = 2  # of scripts without spaces; Chinese words have 1.5 to 2

# marks for "unknown" in cells
UNKNOWN = WORDS["unknown"]


def normalized(question: str) -> str:
    """A question in the form in which questions are compared. Case, white space, invisible
    characters and the encoding of accents are ignored."""
    if not (question.isascii() and question.isprintable()):
        question = UNSEEN.sub("", unicodedata.normalize("NFC", question))
    return " ".join(question.casefold().split())


def span_of(text: str, name: str) -> tuple[int, int] | None:
    """(start, end) of the first mention of the name in a text, in characters; None if absent."""
    if not mentions(text, name):
        return None
    whole, every = not CLUSTER.search(folded(name)), words(text)

    def inside(place: int) -> bool:
        """Whether a place is in the middle of a word or of a character."""
        before, after = text[place - 1 : place], text[place : place + 1]
        if place == 0 or not after or unicodedata.category(after)[0] == "M":
            return bool(place and after)
        joined = before.isalnum() and after.isalnum()
        return whole and joined and not CLUSTER.search(before + after)

    def mentioned(end: int) -> bool:
        """Whether the text up to a place has the name, and not as a piece of what follows."""
        head = text[:end]  # the head "1" of "1,234" has another last word
        return mentions(head, name) and (not whole or words(head) == every[: len(words(head))])

    ends = [end for end in range(1, len(text) + 1) if not inside(end)]
    # halving: to try all takes seconds; then from a few ends before, as a cut sign hides a name
    near = bisect_left(ends, True, key=lambda end: mentions(text[:end], name))
    end = next(filter(mentioned, ends[max(0, near - 8) :]), len(text))
    starts = (start for start in range(end - 1, 0, -1) if not inside(start))
    return next((start for start in starts if mentions(text[start:end], name)), 0), end


@lru_cache(maxsize=2**14)
def folded(text: str) -> str:
    """The text without case, accents, variants of letters and digits, and extra space; "v3" becomes
    "version 3", "minus 3" becomes "-3"."""
    if not text.isascii():
        text = " ".join(one if one.isascii() else _respelled(one) for one in text.split(" "))
    text = " ".join(text.casefold().split())
    text = POINT.sub("0.", text) if "." in text else text
    text = EDITION.sub("version ", text) if "v" in text else text
    return MINUS.sub("-", text) if "minus" in text else text


@lru_cache(maxsize=2**14)
def _respelled(word: str) -> str:
    """What `folded` makes of a word with other characters than ASCII, still to be parted."""
    word = FRACTION.sub(r" \g<0>", POWER.sub(r"^\g<0>", word))  # 10³ is no 103
    plain = UNSEEN.sub("", word.translate(SPELLINGS)).casefold()
    plain = ACCENTS.sub("", unicodedata.normalize("NFKD", plain)).translate(SPELLINGS)
    return with_plain_digits(plain)


def with_plain_digits(text: str) -> str:
    """The text, composed, with digits of any script as 0 to 9."""
    if text.isascii():
        return text
    return OTHER_DIGIT.sub(lambda sign: str(int(sign[0])), unicodedata.normalize("NFC", text))


@lru_cache(maxsize=2**14)
def words(text: str) -> tuple[str, ...]:
    """A text's words in normal form, in order. In a text of punctuation each sign is a word."""
    return _plain_words(text) or tuple(forms[0] for forms in word_forms(text))


def forms(text: str) -> tuple[str, ...]:
    """A text's words in every form of `word_forms`, in order."""
    return _plain_words(text) or tuple(chain.from_iterable(word_forms(text)))


@lru_cache(maxsize=2**14)
def _plain_words(text: str) -> tuple[str, ...]:
    """The words of a text that has no other than Latin ones, each in one form: the same as by
    `PIECE`, in a fifth of the time. Else ()."""
    text = folded(text)
    simple = text if text.isascii() else text.translate(MARKS_ALONE)
    is_plain = simple.isascii() and not SPECIAL.search(simple)
    return tuple(PLAIN.findall(simple)) if is_plain else ()


@lru_cache(maxsize=2**14)
def word_forms(text: str) -> tuple[tuple[str, ...], ...]:
    """Each of a text's `words` with the forms that it also matches: the number of a percentage, the
    two characters of a pair, an Arabic or Hebrew word without its prefixes."""
    if plain := _plain_words(text):
        return tuple(zip(plain))
    text = folded(text)
    parts = tuple(chain.from_iterable(map(_forms_in, SPACE.split(text))))
    return parts or tuple((sign,) for sign in "".join(text.split()))


@lru_cache(maxsize=2**16)  # most words come again in other texts
def _forms_in(text: str) -> tuple[tuple[str, ...], ...]:
    """`word_forms` of a folded text; () if it has no words."""
    parts: list[tuple[str, ...]] = []
    for piece in PIECE.finditer(text):
        if piece["plain"]:
            parts += zip(PLAIN.findall(piece[0]))
        elif piece["whole"]:
            number = _number(piece)
            parts.append((f"{number}%", number) if piece["percent"] else (number,))
        elif piece["run"]:
            run = [cluster.replace("\u200d", "") for cluster in CLUSTER.findall(piece["run"])]
            parts += [(first + second, first) for first, second in pairwise(run)] or [(run[0],)]
            parts[-1] = (*parts[-1], run[-1])
        else:
            word = piece[0] if piece["sign"] else piece[0].replace("\u200d", "")
            parts.append((word, *without_prefix(word)))
    return tuple(parts)


def _number(piece: regex.Match[str]) -> str:
    """A number without marks between thousands and zeros at the end of its fraction: "-1234.5"."""
    rest = (piece["rest"] or "").rstrip("0")
    whole = "".join(filter(str.isdecimal, piece["whole"]))
    return f"{piece['minus'] or ''}{whole}{'.' if rest else ''}{rest}"


@lru_cache(maxsize=2**14)
def without_prefix(word: str) -> tuple[str, ...]:
    """An Arabic, Hebrew or Amharic word without prefixes; of Arabic, also with the article. () for
    other words."""
    if not JOINING.match(word):
        return ()
    cuts = range(1, min(LONGEST_PREFIX, len(word) - SHORTEST_NAME) + 1)
    rests = [word[cut:] for cut in cuts if PREFIX.fullmatch(word[:cut])]
    return (*rests, *(f"ال{rest}" for rest in (word, *rests) if "\u0600" <= rest[0] <= "\u06ff"))


def mentions(text: str, name: str) -> bool:
    """Whether the text contains the words of the name in a row, in any form of `word_forms`."""
    sought = words(name)
    if not sought:
        return False
    if sought[0].isascii() and sought[0].isalpha() and sought[0] not in folded(text):
        return False
    places: dict[str, int] = {}  # word -> a bit for each of its places in the name
    for place, word in enumerate(sought):
        places[word] = places.get(word, 0) | 1 << place
    begun, last = 0, 1 << len(sought) - 1  # a bit for each number of words of the name just read
    for forms in word_forms(text):
        here = 0
        for form in forms:
            here |= places.get(form, 0)
        begun = (begun << 1 | 1) & here
        if begun & last:
            return True
    return False


def pieces(text: str) -> list[str]:
    """Words, signs and line ends as they are written; in scripts without spaces, characters."""
    return (TOKEN if text.isascii() else TOKEN_ANY).findall(text)


def split(text: str) -> list[str]:
    """All parts of a text: words (characters in scripts without spaces) and the text between
    them."""
    return [part for part in BETWEEN.split(text) if part]


def units(text: str) -> list[str]:
    """The parts in which a text can repeat itself, in lower case: words between spaces; single
    characters in scripts without spaces and among emoji; in a `RUN`, the repeated part."""
    chunks = text.casefold().split()
    if max(map(len, chunks), default=0) >= SHORTEST_RUN:
        parted = RUN.sub(lambda run: f" {run[1]}" * (len(run[0]) // len(run[1])), text.casefold())
        chunks = parted.split()
    return chunks if text.isascii() else [unit for chunk in chunks for unit in UNIT.findall(chunk)]


def word_count(text: str) -> int:
    """Number of words; in scripts without spaces, `CHARACTERS_A_WORD` characters are one."""
    chunks = text.split()
    if text.isascii():
        return len(chunks)
    return sum(max(1, -(-len(COUNTED.findall(chunk)) // CHARACTERS_A_WORD)) for chunk in chunks)


def has_no_spaces(text: str) -> bool:
    """Whether the text has letters of a script without spaces between words."""
    return not text.isascii() and COUNTED.search(text) is not None
