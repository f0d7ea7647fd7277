"""Whether a reply names another thing that shares words with the answer: a namesake, another number
or another currency. No torch."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, pairwise

from adapop.facts.text import ACCENTS, CLUSTER, WORDS, folded, has_no_spaces, word_forms, words
from adapop.facts.weak import STOP_WORDS
from adapop.probes.claims import HALF, LONGER
from adapop.probes.writings import MONTH

# Words before a name that are not part of it; `STOP_WORDS` are among them.
TITLES = STOP_WORDS | WORDS["titles"]
ARTICLES = frozenset("the der die das dem den la le el il o".split())
DIRECTIONS = frozenset(
    "north south east west northern southern eastern western upper lower old new".split()
)
NAME = re.compile(r"[^\W_]+")
# Two neighbouring words. A comma or sign may stand between them before a number, a comma before the
# last name of a clause, and a point behind an initial or a short word such as St. or Mt.
NEXT = re.compile(
    r"(?<![^\W_])([^\W_]+)(?:[\s°-]+|(?<=\b[DFMS][rt])\.\s|(?<=\b[A-Z])\.\s?|[:/.^](?=\d)"
    r"|,\s(?=\d|[A-Z]\w*(?: [A-Z]\w*)*(?:[.,;!?\n]|$)))(?=([^\W_]+))"
)
PARTICLES = frozenset("van von der den de da del di du la le bin ibn al el".split())
CURRENCY = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
CURRENCY |= {"usd": "dollar", "eur": "euro", "gbp": "pound"}
MONEY = re.compile(r"[$€£¥]|\b(?:usd|eur|gbp|dollar|euro|yen)(?=s?\b)", re.IGNORECASE)
LONGEST_NAME = 6  # words
WHOLE_FROM = 0.7  # share of a name's pairs of characters that must be there


def differs(text: str, answer: str, question: str) -> bool:
    """Whether a text has part of an answer, but something else in place of the rest: Michael
    Jackson for Michael Jordan, Pierre for Marie Curie, Elizabeth I for Elizabeth II, South for
    North Korea, June for July 1969, 10:15 for 10:30."""
    question_names = set(map(folded, NAME.findall(question)))
    text = _without_accents(text)
    gold = NAME.findall(_without_accents(answer))
    parts, present = list(map(folded, gold)), set(map(folded, NAME.findall(text)))
    is_name = len(gold) > 1 and PARTICLES.issuperset(gold[1:-1]) and "," not in answer
    if is_name and _is_namesake(text, gold, question_names | present):
        return True
    passing = STOP_WORDS.union(question_names, PARTICLES)
    phrase = len(parts) <= LONGER + 2 and ARTICLES.issuperset(STOP_WORDS.intersection(parts))
    neighbours = [(folded(word), other) for word, other in NEXT.findall(text)]
    for i, (first, second) in enumerate(pairwise(parts)):
        # "the geology genre" has its last word from the question
        last = i + 2 == len(parts) or parts[i + 2] in question_names
        for word, other in neighbours:
            after = word == first and second not in present and folded(other) not in parts
            if after and _replaces(other, gold[i + 1], last):
                return True
            if folded(other) == second and first not in present and word not in parts:
                alike = phrase and gold[i + 1][0].islower() and word[:4] != first[:4]
                kinds = alike and passing.isdisjoint((word, first, second))
                months = {MONTH.get(one[:3]) or MONTH.get(one[:4]) for one in (first, word)}
                if kinds or {first, word} <= DIRECTIONS or len(months - {None}) == 2:
                    return True
    return False


def _is_namesake(text: str, name: Sequence[str], known: set[str]) -> bool:
    """Whether a text has another first name before a full name's last: Pierre for Marie Curie.
    Titles, words behind an article and words that only begin a sentence are no first names. known:
    words of the text and the question."""
    first, *particles, last = name
    capitals = first[0].isupper() and last[0].isupper()
    if not capitals or folded(first) in known or folded(last) not in known:
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
    """Whether a text has other middle initials than the answer, as George H. W. has for George W.
    Bush, or another first name before them. False if the initials agree, even when written out.
    None if the text or the answer has no middle initial."""
    name = NAME.findall(unicodedata.normalize("NFKC", answer))
    if not 3 <= len(name) <= LONGEST_NAME or not _begins_name(name):
        return None
    first, *middle, last = name
    text_names, outcomes = NAME.findall(unicodedata.normalize("NFKC", text)), []
    for end in [i for i, word in enumerate(text_names) if folded(word) == folded(last)]:
        for start in range(max(0, end - LONGEST_NAME), end - 1):
            between = text_names[start + 1 : end]
            if not _begins_name(text_names[start:end]):
                continue
            same = len(between) == len(middle) and all(map(_is_initial_of, middle, between))
            if folded(text_names[start]) != folded(first):
                initials = any(len(word) == 1 for word in between)
                other = same and initials and folded(text_names[start]) not in TITLES
                outcomes += [True] * (other and first not in text_names)
            elif same or any(len(word) == 1 for word in middle):
                outcomes.append(not same)
    return all(outcomes) if outcomes else None


def _begins_name(parts: Sequence[str]) -> bool:
    """Whether words may begin a name: all with a capital, and the first is no initial."""
    return len(parts[0]) > 1 and all(word[0].isupper() for word in parts)


def _is_initial_of(one: str, other: str) -> bool:
    initial = min(len(one), len(other)) == 1
    return folded(one) == folded(other) or (initial and folded(one)[0] == folded(other)[0])


def _replaces(other: str, missing: str, last: bool) -> bool:
    """Whether a word takes the place of a missing one: a name for a name, a number for a number,
    any word but a stop word for the last one of an answer."""
    if missing[0].isdigit():
        return other[0].isdigit() and not re.fullmatch(rf"{missing}(?:st|nd|rd|th)", other)
    if missing[0].isupper():
        return other[0].isupper() or (other[0].isdigit() and missing.isupper())  # "World War 1"
    half_days = {folded(missing), folded(other)} == {"am", "pm"}
    return last and (half_days or folded(other) not in STOP_WORDS)


def _without_accents(text: str) -> str:
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def is_renamed(text: str, answer: str) -> bool:
    """Whether the answer occurs only inside another name (Mexico in New Mexico) or currency."""
    named = ([word.lower() for word in MONEY.findall(one)] for one in (text, answer))
    money = [{CURRENCY.get(word, word) for word in names} for names in named]
    if all(money) and money[0].isdisjoint(money[1]):
        return True
    if not answer[:1].isupper() or "New " not in text:
        return False
    name = rf"\b{re.escape(answer)}\b"
    return bool(re.search(name, text)) and not re.search(rf"(?<!\bNew ){name}", text)


def is_part(text: str, answer: str) -> bool:
    """Whether a text has too little of an answer in a script without spaces, or in Korean: 南京大学
    shares most of its character pairs with 北京大学."""
    name = folded(answer)
    if name.isascii() or CLUSTER.sub("", name):
        return False
    pairs, heard = words(answer), set(chain.from_iterable(word_forms(text)))
    share = sum(pair in heard for pair in pairs) / len(pairs)
    return share < WHOLE_FROM if has_no_spaces(name) else share <= HALF
