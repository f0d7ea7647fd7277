"""Whether a reply claims an answer. An answer that the reply denies, does not know or gives as one
of several is not claimed, however many of its words are there. No torch."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from adapop.facts.text import CLUSTER, folded, has_no_spaces, words
from adapop.facts.weak import STOP_WORDS
from adapop.probes.writings import VALUES

SMALL = r"(?:(?:in|at|of|the|a|an|by|from|to|as|called|named)\s+){0,2}"
# Text right before a denied answer, after folding.
BEFORE = (
    r"(?:(?:\bnot|n't)\s+(?:say|think|believe|call|choose|pick)"
    r"(?:\s+(?:that|it|its|it's|this|he|she|is|was))*\s+"
    r"|\b(?:wrong|incorrect|false) to (?:say|call)\s+(?:(?:that|it|is)\s+)*|\bno longer\s+|"
    r"\b(?:not|never|nor|neither|unlike)\s+|n't\s+|\b(?:rather|other) than\s+|\binstead of\s+"
    r"|\b(?:pas|nicht|keine?|non e|nao e|no es|не|bukan|khong phai(?: la)?|ليست?|לא)\s+"
    r"|(?:不是|并非|並非|不在|不叫|ไม่ใช่)\s*)"
)
# Text right behind a denied answer: a negated verb, also in languages whose verb comes last.
BEHIND = (
    r"(?:\s+(?:is|was)(?:\s+not|n't)\b(?!\s+(?:only|just|merely))"
    r"|\s+(?:is|was) (?:wrong|incorrect|false)\b|\?\s+no\b(?=[.,;!]|$)"
    r"|\s*(?:では?(?:ありません|ない)|じゃない|[이가은는도]\s?아[니닙닌]|नही|degil\b|نيست))"
)
NEGATED = re.compile(f"{BEFORE}|{BEHIND}")
IGNORANT = re.compile(
    r"(?:\b(?:not sure|unsure|uncertain|not certain|no idea|not know"
    r"|(?:cannot|not able to|unable to) (?:say|tell|confirm|verify|recall|remember))"
    r"|n't (?:know|say|tell|confirm|verify|recall|remember)"
    r"|(?:not|n't) have (?:any |enough )?information)\b[^.!?\n,;]*?(?=\bbut\b|[.!?\n,;]|$)"
)
# Joins the last alternative. After a comma it may introduce another name of the same thing.
OR = re.compile(
    r"(,)?\s+(?:or|oder|ou|eller|atau|veya|lub|или|або|ή|أو|या|או|또는)\s+"
    r"|(?<=\w)(?:或者?(?![许許说說称稱])|または|あるいは|หรือ)"
)
# Joins the last item of a list.
AND = re.compile(
    r",?\s+(?:and|und|et|y|e|i|en|och|og|dan|ve|và|и|και|و|और|및|&)\s+|(?<=\w)[和及與与](?=\w)"
    r"|\s*(?:และ|そして)\s*"
)
# Fewest names of a list of candidates joined by "and", or by commas alone (Lyon, Rhône, France).
CANDIDATES, IN_A_ROW = (3, 4)
SENTENCE = re.compile(r"(?<=[^\W_]{3})[.!?](?=\s|$)|[\n;:。！？]")
COMMA = re.compile(r",\s+|[，、]")
LISTING = re.compile(f"{OR.pattern}|{AND.pattern}|{COMMA.pattern}")
MAYBE = re.compile(
    r"(?:(?:maybe|perhaps|possibly|probably|in|at|by|from|to|the|an?)\s+)+", re.IGNORECASE
)
END = re.compile(r"\s+(?:is|was|are|were|but|as|which|who|because)\b.*|,\s.*|[，、(].*", re.DOTALL)
VAGUE = STOP_WORDS | frozenset("something similar thereabouts less whatever else".split())
LONGER = 2  # words that an alternative may have beyond those of the answer
Words = Sequence[frozenset[str]]  # those of each right answer
HALF = 0.5  # of a name's words; a Korean name may be written with a space in it


def denies(text: str, answer: str) -> bool:
    """Whether a text mentions an answer only to deny it or to express doubt: "It is not Paris", "I
    do not know whether it is Paris"."""
    text, name = folded(text), folded(answer)
    if not name or not (NEGATED.search(text) or IGNORANT.search(text)):
        return False
    claimed = IGNORANT.sub(" ", text)
    mention = _mention(name)
    count = len(mention.findall(text))
    denied = re.findall(f"{BEFORE}{SMALL}{mention.pattern}|{mention.pattern}{BEHIND}", claimed)
    return count > 0 and len(mention.findall(claimed)) <= len(denied)


def hedges(text: str, answers: Sequence[str]) -> bool:
    """Whether a text says an answer only as one of alternatives joined by "or": "London, Paris or
    Rome", "either Paris or London". It does not hedge if all alternatives are right, or are names
    of the same answer ("Mumbai, or Bombay")."""
    if not OR.search(text) or any(map(OR.search, answers)):
        return False
    return _in_every_sentence(text, answers, _offers)


def enumerates(text: str, answers: Sequence[str]) -> bool:
    """Whether a text says an answer (a name or a number) only in a list of at least `CANDIDATES` of
    its kind: "London, Paris and Rome". Two may be one joint answer ("Lennon and McCartney"). An
    answer in lower case, such as a profession, is no candidate: several may be true."""
    listed = AND.search(text) or COMMA.search(text)
    if not listed or answers[0][0].islower() or any(map(AND.search, answers)):
        return False
    return _in_every_sentence(text, answers, _is_list)


def _in_every_sentence(
    text: str, answers: Sequence[str], is_one_of: Callable[[str, str, Words], bool]
) -> bool:
    """Whether `is_one_of` holds for every sentence with at least half of an answer's words; False
    without one."""
    right = [frozenset(words(answer)) for answer in answers]
    parts = SENTENCE.split(unicodedata.normalize("NFKC", text))
    sentences = [part for part in parts if _share(part, right) >= HALF]
    return bool(sentences) and all(is_one_of(part, answers[0], right) for part in sentences)


def _is_list(sentence: str, answer: str, right: Words) -> bool:
    """Whether a sentence lists an answer and others of its kind. right: each answer's words."""
    parts = [*filter(None, COMMA.split(AND.sub(", ", sentence)))]
    if len(parts) < (CANDIDATES if AND.search(sentence) else IN_A_ROW):
        return False
    others = _others(parts, answer, right)
    return len(others) + 1 >= CANDIDATES and all(_is_alike(part, answer, right) for part in others)


def _others(items: Sequence[str], answer: str, right: Words) -> list[str]:
    """The items of a list other than the answer; of the first item only its last word, where the
    list begins."""
    shares = [_share(item, right) for item in items]
    first = (items[0].split() or [""])[-1]
    first = first[-len(answer) :] if has_no_spaces(answer) else first
    return [item for item, share in zip([first, *items[1:]], shares) if share < max(shares)]


def _offers(sentence: str, answer: str, right: Words) -> bool:
    """Whether a sentence gives an answer and others of its kind as alternatives."""
    first, *rest = OR.split(sentence)
    offered = (MAYBE.sub("", END.sub("", item), count=1) for item in rest[1::2])
    items = [*COMMA.split(first), *offered]
    after_comma = len(items) == 2 and rest[:1] != [None]  # or a sentence without "or"
    if len(items) < 2 or (after_comma and "either" not in first.lower().split()):
        return False
    others = _others(items, answer, right)
    return bool(others) and all(_is_alike(item, answer, right) for item in others)


def _share(text: str, right: Words) -> float:
    """The largest share of an answer's words that are in the text, over all answers."""
    heard = frozenset(words(text))
    return max((len(own & heard) / len(own) for own in right if own), default=0.0)


def _is_alike(item: str, answer: str, right: Words) -> bool:
    """Whether an item could stand for an answer: of similar length, with a similar beginning
    (capital or digit) and with other words."""
    own, item = words(item), item.lstrip(" *_\"'“‘«(`")
    if not own or not item or len(own) > len(words(answer)) + LONGER:
        return False
    if any(whole.issuperset(own) for whole in right):
        return False
    if answer[0].isdigit() or answer[0].isupper():
        return item[0].isupper() if answer[0].isupper() else item[0].isdigit() or own[0] in VALUES
    return VAGUE.isdisjoint(own)


@lru_cache(maxsize=2**12)
def _mention(name: str) -> re.Pattern[str]:
    edges = ("", "") if CLUSTER.search(name) else (r"(?<!\w)", r"(?!\w)")
    return re.compile(edges[0] + r"[\W_]+".join(map(re.escape, name.split())) + edges[1])
