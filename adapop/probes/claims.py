"""What a reply claims: an answer that it denies, does not know of, or gives wrongly in part, is not
said, however many of its words are there. No torch."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

from adapop.facts.text import ACCENTS, CLUSTER, WORDS, folded, has_no_spaces, word_forms, words
from adapop.facts.weak import STOP_WORDS
from adapop.probes.writings import VALUES

SMALL = r"(?:(?:in|at|of|the|a|an|by|from|to|as|called|named)\s+){0,2}"
# what stands right before an answer that is denied, in folded text
BEFORE = (
    r"(?:(?:\bnot|n't)\s+(?:say|think|believe|call|choose|pick)(?:\s+(?:that|it|its|it's|this|he"
    r"|she|is|was))*\s+|"
    r"\b(?:wrong|incorrect|false) to (?:say|call)\s+(?:(?:that|it|is)\s+)*|\bno longer\s+|"
    r"\b(?:not|never|nor|neither|unlike)\s+|n't\s+|\b(?:rather|other) than\s+|\binstead of\s+"
    r"|\b(?:pas|nicht|keine?|non e|nao e|no es|не|bukan|khong phai(?: la)?|ليست?|לא)\s+"
    r"|(?:不是|并非|並非|不在|不叫|ไม่ใช่)\s*)"
)
# what stands behind it: a denied verb, or where verbs come last
BEHIND = (
    r"(?:\s+(?:is|was)(?:\s+not|n't)\b(?!\s+(?:only|just|merely))|\s+(?:is|was) (?:wrong"
    r"|incorrect|false)\b|"
    r"\?\s+no\b(?=[.,;!]|$)|\s*(?:では?(?:ありません|ない)|じゃない|[이가은는도]\s?아[니닙닌]|नही|degil\b|نيست))"
)
NEGATED = re.compile(f"{BEFORE}|{BEHIND}")
IGNORANT = re.compile(
    r"(?:\b(?:not sure|unsure|uncertain|not certain|no idea|not know|(?:cannot|not able to"
    r"|unable to) "
    r"(?:say|tell|confirm|verify|recall|remember))|n't (?:know|say|tell|confirm|verify|recall"
    r"|remember)"
    r"|(?:not|n't) have (?:any |enough )?information)\b[^.!?\n,;]*?(?=\bbut\b|[.!?\n,;]|$)"
)
# what stands before a name and is none; with those of `STOP_WORDS`
TITLES = STOP_WORDS | WORDS["titles"]
ARTICLES = frozenset("the der die das dem den la le el il o".split())
DIRECTIONS = frozenset(
    "north south east west northern southern eastern western upper lower old new".split()
)
NAME = re.compile(r"[^\W_]+")
# words next to each other; a comma or a sign may stand before a number, a comma before the last
# name of a clause
NEXT = re.compile(
    r"(?<![^\W_])([^\W_]+)(?:[\s°-]+|[:/.^](?=\d)|,\s(?=\d|[A-Z]\w*(?: [A-Z]\w*)*(?:[.,;!?\n]"
    r"|$)))(?=([^\W_]+))"
)
PARTICLES = frozenset("van von der den de da del di du la le bin ibn al el".split())
CURRENCY = {
    "$": "dollar",
    "usd": "dollar",
    "€": "euro",
    "eur": "euro",
    "£": "pound",
    "gbp": "pound",
    "¥": "yen",
}
MONEY = re.compile(r"[$€£¥]|\b(?:usd|eur|gbp|dollar|euro|yen)(?=s?\b)", re.IGNORECASE)
# stands before the last of several alternatives; a comma before it may bring another name of one
OR = re.compile(
    r"(,)?\s+(?:or|oder|ou|eller|atau|veya|lub|или|або|ή|أو|या|או|또는)\s+"
    r"|(?<=\w)(?:或者?(?![许許说說称稱])|または|あるいは|หรือ)"
)
# stands before the last of a list
AND = re.compile(
    r",?\s+(?:and|und|et|y|e|i|en|och|og|dan|ve|và|и|και|و|और|및|&)\s+|(?<=\w)[和及與与](?=\w)"
    r"|\s*(?:และ|そして)\s*"
)
# from so many names on, joined by "and", or by commas alone (Lyon, Rhône, France)
CANDIDATES, IN_A_ROW = (3, 4)
SENTENCE = re.compile(r"(?<=[^\W_]{3})[.!?](?=\s|$)|[\n;:。！？]")
COMMA = re.compile(r",\s+|[，、]")
LISTING = re.compile(f"{OR.pattern}|{AND.pattern}|{COMMA.pattern}")
MAYBE = re.compile(
    r"(?:(?:maybe|perhaps|possibly|probably|in|at|by|from|to|the|an?)\s+)+", re.IGNORECASE
)
END = re.compile(r"\s+(?:is|was|are|were|but|as|which|who|because)\b.*|,\s.*|[，、(].*", re.DOTALL)
VAGUE = STOP_WORDS | frozenset("something similar thereabouts less whatever else".split())
LONGEST_NAME = 6  # words
LONGER = 2  # words that an alternative may have beyond those of the answer
# of the pairs of characters of one name; Korean may be written with a space in it
WHOLE_FROM, HALF = (0.7, 0.5)


def denies(text: str, answer: str) -> bool:
    """Whether a text mentions an answer only to deny it or to say that it does not know: "It is not
    Paris", "I do not know whether it is Paris"."""
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
    Rome", "either Paris or London".

    Alternatives that are all answers, and other names of one ("Mumbai, or Bombay"), are one answer.
    """
    if not OR.search(text) or any(map(OR.search, answers)):
        return False
    right = [frozenset(words(answer)) for answer in answers]
    hedged = False
    for sentence in SENTENCE.split(unicodedata.normalize("NFKC", text)):
        if _share(sentence, right) >= HALF:
            if not _offers(sentence, answers[0], right):
                return False
            hedged = True
    return hedged


def enumerates(text: str, answers: Sequence[str]) -> bool:
    """Whether a text says an answer, a name or a number, only as one of `CANDIDATES` of its kind:
    "London, Paris and Rome". Two may be joint ("Lennon and McCartney"), and of what begins small,
    as professions, several may be true."""
    answer = answers[0]
    if (
        not (AND.search(text) or COMMA.search(text))
        or answer[0].islower()
        or any(map(AND.search, answers))
    ):
        return False
    right = [frozenset(words(answer)) for answer in answers]
    sentences = [
        part
        for part in SENTENCE.split(unicodedata.normalize("NFKC", text))
        if _share(part, right) >= HALF
    ]
    return bool(sentences) and all(_is_list(part, answer, right) for part in sentences)


def _is_list(sentence: str, answer: str, right: Sequence[frozenset[str]]) -> bool:
    """Whether a sentence lists an answer and others of its kind. right: the words of each
    answer."""
    parts = [*filter(None, COMMA.split(AND.sub(", ", sentence)))]
    if len(parts) < (CANDIDATES if AND.search(sentence) else IN_A_ROW):
        return False
    shares = [_share(part, right) for part in parts]
    others = [
        _alone(part, answer) if not i else part
        for i, part in enumerate(parts)
        if shares[i] < max(shares)
    ]
    return len(others) + 1 >= CANDIDATES and all(_is_alike(part, answer, right) for part in others)


def _alone(item: str, answer: str) -> str:
    """The first item of a list without the sentence that it begins."""
    last = (item.split() or [""])[-1]
    return last[-len(answer) :] if has_no_spaces(answer) else last


def _offers(sentence: str, answer: str, right: Sequence[frozenset[str]]) -> bool:
    """Whether a sentence offers an answer and others of its kind. right: the words of each
    answer."""
    first, *rest = OR.split(sentence)
    items = [
        *COMMA.split(first),
        *(MAYBE.sub("", END.sub("", item), count=1) for item in rest[1::2]),
    ]
    if len(items) < 2 or (len(items) == 2 and rest[0] and "either" not in first.lower().split()):
        return False
    shares = [_share(item, right) for item in items]
    items[0] = _alone(items[0], answer)
    others = [item for item, share in zip(items, shares) if share < max(shares)]
    return bool(others) and all(_is_alike(item, answer, right) for item in others)


def _share(text: str, right: Sequence[frozenset[str]]) -> float:
    """The largest share of the words of an answer that a text has."""
    heard = frozenset(words(text))
    return max((len(own & heard) / len(own) for own in right if own), default=0.0)


def _is_alike(item: str, answer: str, right: Sequence[frozenset[str]]) -> bool:
    """Whether an item could stand for an answer: it is as short, begins alike (a capital, a digit),
    and has words of its own."""
    own = words(item)
    if (
        not own
        or any(whole.issuperset(own) for whole in right)
        or len(own) > len(words(answer)) + LONGER
    ):
        return False
    if answer[0].isdigit() or answer[0].isupper():
        return item[0].isupper() if answer[0].isupper() else item[0].isdigit() or own[0] in VALUES
    return VAGUE.isdisjoint(own)


@lru_cache(maxsize=2**12)
def _mention(name: str) -> re.Pattern[str]:
    edges = ("", "") if CLUSTER.search(name) else (r"(?<!\w)", r"(?!\w)")
    return re.compile(edges[0] + r"[\W_]+".join(map(re.escape, name.split())) + edges[1])


def differs(text: str, answer: str, question: str) -> bool:
    """Whether a text that says a part of an answer has something else for the rest: Michael Jackson
    for Michael Jordan, Pierre for Marie Curie, Elizabeth I for Elizabeth II, South for North Korea,
    10:15 for 10:30."""
    question_names = set(map(folded, NAME.findall(question)))
    text = _without_accents(text)
    gold = NAME.findall(_without_accents(answer))
    own, heard = list(map(folded, gold)), set(map(folded, NAME.findall(text)))
    is_name = len(gold) > 1 and PARTICLES.issuperset(gold[1:-1]) and "," not in answer
    if is_name and _is_namesake(text, gold, question_names | heard):
        return True
    passing = STOP_WORDS.union(question_names, PARTICLES)
    # no sentence
    phrase = len(own) <= LONGER + 2 and ARTICLES.issuperset(STOP_WORDS.intersection(own))
    neighbours = [(folded(word), other) for word, other in NEXT.findall(text)]
    for i, (first, second) in enumerate(pairwise(own)):
        # "the geology genre", asked for a genre
        last = i + 2 == len(own) or own[i + 2] in question_names
        for word, other in neighbours:
            after = word == first and second not in heard and folded(other) not in own
            if after and _replaces(other, gold[i + 1], last):
                return True
            if folded(other) == second and first not in heard and word not in own:
                alike = phrase and gold[i + 1][0].islower() and word[:4] != first[:4]
                if {first, word} <= DIRECTIONS or (
                    alike and passing.isdisjoint((word, first, second))
                ):
                    return True
    return False


def _is_namesake(text: str, name: Sequence[str], known: set[str]) -> bool:
    """Whether a text has another first name before a full name's last: Pierre for Marie Curie.

    A title is none, nor what stands behind an article or only begins a sentence. known: words of
    the text and the question."""
    first, *particles, last = name
    if (
        not (first[0].isupper() and last[0].isupper())
        or folded(first) in known
        or folded(last) not in known
    ):
        return False
    end = r"\s+".join(map(re.escape, (*particles, last)))
    for match in re.finditer(rf"(?:([^\W\d_]+)\s+)?([^\W\d_]{{2,}})\s+{end}\b", text):
        before, other = match.groups()
        alone = match[0] == text.strip().rstrip(".!")
        named = other[0].isupper() and folded(other) not in TITLES
        if named and (alone if before is None else before.lower() not in ARTICLES):
            return True
    return False


def other_middle(text: str, answer: str) -> bool | None:
    """Whether a text has other initials than the answer's between its first and last name, as
    George H. W. has for George W. Bush, or another first name before them; False where it has the
    same, also written out; None where it has none, or the answer is no such name."""
    name = NAME.findall(unicodedata.normalize("NFKC", answer))
    if (
        not 3 <= len(name) <= LONGEST_NAME
        or len(name[0]) == 1
        or not all(word[0].isupper() for word in name)
    ):
        return None
    first, *middle, last = name
    text_names, outcomes = NAME.findall(unicodedata.normalize("NFKC", text)), []
    for end in [i for i, word in enumerate(text_names) if folded(word) == folded(last)]:
        for start in range(max(0, end - LONGEST_NAME), end - 1):
            between = text_names[start + 1 : end]
            if (
                not all(word[0].isupper() for word in text_names[start:end])
                or len(text_names[start]) == 1
            ):
                continue
            same = len(between) == len(middle) and all(map(_is_initial_of, middle, between))
            if folded(text_names[start]) != folded(first):
                other = (
                    same
                    and any(len(word) == 1 for word in between)
                    and folded(text_names[start]) not in TITLES
                )
                outcomes += [True] * (other and first not in text_names)
            elif same or any(len(word) == 1 for word in middle):
                outcomes.append(not same)
    return all(outcomes) if outcomes else None


def _is_initial_of(one: str, other: str) -> bool:
    return folded(one) == folded(other) or (
        min(len(one), len(other)) == 1 and folded(one)[0] == folded(other)[0]
    )


def _replaces(other: str, missing: str, last: bool) -> bool:
    """Whether a word stands where another is missing: a name for a name, a number for a number, and
    a word that is no stop word for the last of an answer."""
    if missing[0].isdigit():
        return other[0].isdigit() and not re.fullmatch(rf"{missing}(?:st|nd|rd|th)", other)
    if missing[0].isupper():
        return other[0].isupper() or (other[0].isdigit() and missing.isupper())  # World War II, 1
    return last and (
        folded(other) not in STOP_WORDS or {folded(missing), folded(other)} == {"am", "pm"}
    )


def _without_accents(text: str) -> str:
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def is_renamed(text: str, answer: str) -> bool:
    """Whether a text has an answer only as a part of another name, New Mexico for Mexico, or in
    another currency."""
    money = [
        {CURRENCY.get(word, word) for word in map(str.lower, MONEY.findall(one))}
        for one in (text, answer)
    ]
    if all(money) and money[0].isdisjoint(money[1]):
        return True
    if not answer[:1].isupper() or "New " not in text:
        return False
    name = re.escape(answer)
    return re.search(rf"\b{name}\b", text) is not None and not re.search(
        rf"(?<!\bNew )\b{name}\b", text
    )


def is_part(text: str, answer: str) -> bool:
    """Whether a text has too little of an answer that is a single run of characters, of a script
    without spaces or Korean: half of the pairs of 北京大学 are those of 南京大学 as well."""
    name = folded(answer)
    if name.isascii() or CLUSTER.sub("", name):
        return False
    pairs, heard = words(answer), set(chain.from_iterable(word_forms(text)))
    share = sum(pair in heard for pair in pairs) / len(pairs)
    return share < WHOLE_FROM if has_no_spaces(name) else share <= HALF
