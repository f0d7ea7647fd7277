"""Whether a text contains an answer that may also occur by chance; the words that distinguish an
answer."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from adapop.facts.fact import Fact
from adapop.facts.text import PIECE, WORDS, folded, forms, mentions, words

STOP_WORDS, NAMES = WORDS["stop"], WORDS["names"]  # the names are English words as well
NEGATIONS = frozenset("no not never without".split())
ORDINARY = STOP_WORDS | {"yes"}
FRAME = (STOP_WORDS | frozenset("called named known titled yes".split())) - NEGATIONS
WORD = re.compile(r"[^\W_]+")
CLAUSE = re.compile(r"[.,;:!?\n。，、：！？]\s*")
SENTENCE_START = re.compile(r"(?:^|[.!?:]\s|\n)[\s\"'“‘(*]*$")
GOES_ON = re.compile(r"['’]?\w|\s+[a-z]")  # text after a word that only begins a sentence
ARTICLES = ("a", "an", "the")
# small words of names (El Cairo, Ciudad de México), which stand in other replies too
LINKS = frozenset("el la los las lo le les il gli der das de del di du des da von".split())
SHORT = 2  # letters
STOPS = "stop words"
LETTERS = "letters"
ORDINARY_WORD = "an ordinary word"
SIGNS = "signs"
ASKED = "in its question"
# the next word is not one that follows names: a verb, "and", "in", "by"
CLAIMING = r"(?!(?:are|were|had|and|or|in|by|became|wrote|won|made|itself|\w+s|\w+ed)\b)"
# text after a word that is no name, at the start of a sentence
CALLED = re.compile(rf"['’]?\w|\s+{CLAIMING}[a-z]")
# text before a word that is no name
A_THING = re.compile(r"\b(?:an?|very|so|quite|really|some|no|any)\s+$", re.IGNORECASE)


def weak_answers(facts: Iterable[Fact]) -> list[tuple[Fact, str]]:
    """The facts whose answer a reply may contain by chance, each with the reason. `STOPS`: it has
    stop words alone, as "It" or "No". `LETTERS`: one or two letters, as "A". `ASKED`: its own
    question contains it, so that a reply may only repeat that."""
    weak = []
    for fact in facts:
        kind = weakness(fact.answer) or (ASKED if says(fact.question, fact.answer) else "")
        weak += [(fact, kind)] if kind not in ("", ORDINARY_WORD, SIGNS) else []
    return weak


@lru_cache(maxsize=2**14)
def weakness(answer: str) -> str:
    """`STOPS`, `LETTERS`, `ORDINARY_WORD`, `SIGNS` or "": why finding it proves little."""
    answer_words = words(answer)
    if not PIECE.search(folded(answer)):
        return SIGNS
    if answer_words and ORDINARY.issuperset(answer_words):
        return STOPS
    if len(answer_words) != 1 or not answer_words[0].isalpha():
        return ""
    if len(answer_words[0]) <= (SHORT if _cased(answer) else 1):
        return LETTERS
    return ORDINARY_WORD if answer_words[0] in NAMES and answer.strip()[0].isupper() else ""


def says(text: str, answer: str) -> bool:
    """Whether the text contains the answer. A weak answer must be a clause of its own, or have the
    answer's capitals: "It" is not in "I am not sure what it is"."""
    if weakness(answer) == SIGNS:
        return _stands(text, answer.strip())
    if not (weakness(answer) and _cased(answer)):
        return mentions(text, answer)
    clauses = CLAUSE.split(text)
    if words(answer) in map(words, (clauses[0], *clauses[-2:])):
        return True
    text, answer = (unicodedata.normalize("NFKC", text), unicodedata.normalize("NFKC", answer))
    if weakness(answer) == ORDINARY_WORD:
        return _names_it(text, answer)
    return _says_it(text, answer) or (weakness(answer) == LETTERS and _stands(text, answer.strip()))


def _names_it(text: str, name: str) -> bool:
    """Whether a text has a name that is also an ordinary word. It must be capitalised, if the text
    has capitals, and not follow an article or only begin a sentence ("Nice idea!")."""
    written = name if text != text.lower() else name.lower()
    forms = f"{re.escape(written)}|{re.escape(name.upper())}"
    for match in re.finditer(rf"(?<!\w)(?:{forms})(?!\w)", text):
        before = text[: match.start()]
        begins = SENTENCE_START.search(before) and CALLED.match(text, match.end())
        if not (A_THING.search(before) or (begins and written != written.lower())):
            return True
    return False


def _stands(text: str, sign: str) -> bool:
    """Whether a sign ends a clause of the text or is quoted, unlike the sign in "Ana & Lee"."""
    marks = re.escape("".join(set("\"'`“”‘’«»()*") - set(sign)))
    alone = rf"(?:^|(?<=[\s{marks}])){re.escape(sign)}(?=[{marks}]|[.,;:!?。]?\s*$|[.,;:!?。]\s)"
    return bool(sign) and re.search(alone, text, re.MULTILINE) is not None


def gives_away(text: str, fact: Fact) -> bool:
    """Whether the text contains a right answer of the fact."""
    return any(says(text, answer) for answer in (*fact.answers, *fact.parts))


def _says_it(text: str, answer: str) -> bool:
    """Whether the answer stands in the text with its capitals, and not because a sentence begins
    there ("No idea"). Its article may be in lower case."""
    article, *rest = WORD.findall(answer)
    if answer == answer.lower() or answer == "I":
        return False
    first = f"(?i:{article})" if rest and article.lower() in ARTICLES else article
    between = r"\W+".join((first, *rest))
    for match in re.finditer(rf"(?<![\w°]){between}(?!\w|\+\+|#)", text):
        begins = SENTENCE_START.search(text[: match.start()])
        only_begins = begins and folded(article) in STOP_WORDS
        if rest or not (only_begins and GOES_ON.match(text, match.end())):
            return True
    return False


def _cased(text: str) -> bool:
    return text.lower() != text.upper()


@lru_cache(maxsize=2**14)
def own_words(answer: str, question: str) -> tuple[str, ...]:
    """The words that distinguish the answer: not in the question, not stop words unless
    capitalised, no `LINKS`; of a sentence only names and numbers, if any. All words if none
    remain."""
    answer_words, names = words(answer), _names(answer)
    question_words = frozenset(forms(question))
    new = [word for word in answer_words if word not in question_words]
    own = tuple(word for word in new if word in names or word not in FRAME)
    if any(word in FRAME and word not in names for word in answer_words):
        own = tuple(word for word in own if word in names) or own
    own = tuple(word for word in own if word not in LINKS) or own
    return own or tuple(word for word in answer_words if word not in FRAME) or answer_words


@lru_cache(maxsize=2**14)
def negations(answer: str) -> frozenset[str]:
    """Words such as "not" in the answer, without those inside a title ("Saddle Without Salt")."""
    first, *rest = WORD.findall(answer) or [""]
    return NEGATIONS.intersection([first.lower(), *rest])


def _names(answer: str) -> frozenset[str]:
    """The words with a digit or a capital, except a capital that only begins a sentence."""
    parts = unicodedata.normalize("NFKC", answer).split()
    marked = [word[0].isupper() or any(map(str.isdigit, word)) for word in parts]
    if marked and not parts[0][0].isdigit():
        marked[0] = marked[1:2] == [True] and parts[0].lower() not in ARTICLES
    return frozenset(words(" ".join(word for word, name in zip(parts, marked) if name)))
