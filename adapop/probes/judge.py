"""Whether a reply gives away an answer. No torch.

Read from top to bottom, this is the judgement: the reply is cut at a question of the model's own;
both texts are put into one spelling; values and numbers are compared by kind, the words by
ROUGE-L; then the reply must not deny the answer, offer it among others, or name something else in
its place.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from adapop.facts.text import ACCENTS, CLUSTER, WORDS, folded, forms, has_no_spaces, words
from adapop.facts.weak import SIGNS, STOP_WORDS, negations, own_words, says, weakness
from adapop.probes.numerals import VALUES, ranks
from adapop.probes.prompts import CHOICE, Prompt
from adapop.probes.recall import (
    KNOWN_FROM,
    alike,
    best_recall,
    both_in_digits,
    own_reply,
    recall,
    recall_of_words,
)
from adapop.probes.values import DECISIVE, Value, is_coarser, is_contradicted, said_at, values

HALF = 0.5
VERSION_ASKED = re.compile(r"\b(?:version|release)\b", re.IGNORECASE)
VERSION_NUMBER = re.compile(r"\d+(?:\.\d+)+")
SHORTEST_ACRONYM, LONGEST_SHORT_FORM = 3, 4
NAME = re.compile(r"[^\W_]+")

# Text right before and right behind a denied answer, after folding.
BEFORE = re.compile(
    r"(?:(?:\bnot|n't)\s+(?:say|think|believe|call|choose|pick)"
    r"(?:\s+(?:that|it|its|it's|this|he|she|is|was)){0,4}\s+"
    r"|\b(?:wrong|incorrect|false) to (?:say|call)\s+(?:(?:that|it|is)\s+){0,3}|\bno longer\s+|"
    r"\b(?:not|never|nor|neither|unlike)\s+|n't\s+|\b(?:rather|other) than\s+|\binstead of\s+)"
    r"(?:(?:in|at|of|the|a|an|by|from|to|as|called|named)\s+){0,2}$"
)
BEHIND = re.compile(
    r"\s+(?:is|was)(?:\s+not|n't)\b(?!\s+(?:only|just|merely))"
    r"|\s+(?:is|was) (?:wrong|incorrect|false)\b|\?\s+no\b(?=[.,;!]|$)"
)
REACH = 80  # characters in which the words right before an answer stand
# What a text needs at least for one of these; cheap, as most replies have none.
NEGATED = re.compile(r"\b(?:no[tr]?|never|neither|unlike|than|instead|wrong|incorrect|false)\b|n't")
IGNORANT = re.compile(
    r"(?:\b(?:not sure|unsure|uncertain|not certain|no idea|not know"
    r"|(?:cannot|not able to|unable to) (?:say|tell|confirm|verify|recall|remember))"
    r"|n't (?:know|say|tell|confirm|verify|recall|remember)"
    r"|(?:not|n't) have (?:any |enough )?information)\b[^.!?\n,;]{0,200}?(?=\bbut\b|[.!?\n,;]|$)"
)

# What joins alternatives and lists. After a comma "or" may introduce another name of the same.
OR = re.compile(r"(,)?(?<!\s)\s+or\s+")
AND = re.compile(r",?(?<!\s)\s+(?:and|&)\s+")
COMMA = re.compile(r",\s+|[，、]")
# Whether a reply has `OR`, and every `OR`, `AND` and `COMMA` in it: fast, asked of all replies.
HAS_OR = re.compile(r"or(?<=\sor)\s")
LISTING = re.compile(
    r"[,\s，、](?:(?<=[，、])|(?<=,)\s+(?:(?:or|and|&)\s+)?|(?<=\s)(?<!\s\s)\s*(?:or|and|&)\s+)"
)
# Fewest names of a list of candidates joined by "and", or by commas alone (Lyon, Rhône, France).
CANDIDATES, IN_A_ROW = 3, 4
SENTENCE = re.compile(r"(?<=[^\W_]{3})[.!?](?=\s|$)|[\n;:。！？]")
MAYBE = re.compile(
    r"(?:(?:maybe|perhaps|possibly|probably|in|at|by|from|to|the|an?)\s+){1,4}", re.IGNORECASE
)
END = re.compile(
    r"(?<!\s)\s+(?:is|was|are|were|but|as|which|who|because)\b.*|,\s.*|[，、(].*", re.DOTALL
)
VAGUE = STOP_WORDS | frozenset("something similar thereabouts less whatever else".split())
LONGER = 2  # words that an alternative may have beyond those of the answer
Words = Sequence[frozenset[str]]  # those of each right answer

# Words before a name that are not part of it; the stop words are among them.
TITLES = STOP_WORDS | WORDS["titles"]
ARTICLES = frozenset("the der die das dem den la le el il o".split())
PARTICLES = frozenset("van von der den de da di del du la le bin ibn al el".split())
DIRECTIONS = frozenset(
    "north south east west northern southern eastern western upper lower old new".split()
)
# Two neighbouring words. A comma or sign may stand between them before a number, a comma before the
# last name of a clause, and a point behind an initial or a short word such as St. or Mt.
NEXT = re.compile(
    r"(?<![^\W_])([^\W_]+)(?:[\s°-]{1,3}|(?<=\b[DFMS][rt])\.\s|(?<=\b[A-Z])\.\s?|[:/.^](?=\d)"
    r"|,\s(?=\d|[A-Z]\w{0,30}(?: [A-Z]\w{0,30}){0,4}(?:[.,;!?\n]|$)))(?=([^\W_]+))"
)
TWO_WORDS = re.compile(r"(?:([^\W\d_]+)\s+)?\b([^\W\d_]{2,})\s+$")  # before the last of a name
LONGEST_NAME = 6  # words
WHOLE_FROM = 0.7  # share of a name's pairs of characters, in scripts without spaces


def gives_away(question: str, answers: Sequence[str], text: str) -> bool:
    """Whether a reply to the question gives away one of the answers: it says, and claims, at least
    `KNOWN_FROM` of the words that the answer does not share with the question."""
    return answer_recall(question, answers, text) >= KNOWN_FROM


def known_recall(prompt: Prompt, text: str) -> float:
    """`answer_recall` of a prompt's right answers; for a multiple choice, and for the parts of a
    private answer, `recall`."""
    if prompt.kind == CHOICE or prompt.parts:
        return recall(prompt, text)
    return answer_recall(prompt.text, prompt.sought, text)


def says_answer(question: str, answers: Sequence[str], text: str, recall: float) -> bool:
    """`gives_away`, with the recall that a reply was given: if it exceeds the recall of these
    answers, it is that of another accepted one and counts unchanged."""
    if best_recall(answers, text) < recall and recall >= KNOWN_FROM:
        return True
    return gives_away(question, answers, text)


def answer_recall(question: str, answers: Sequence[str], text: str) -> float:
    """The best recall over the answers of the words that an answer does not share with its question
    (`own_words`), [0, 1]: "The author is called" names no author. 0 if the reply does not say the
    answer's values, or does not claim it."""
    reply = own_reply(text)
    best = max(_recall_of_one(question, answer, reply) for answer in answers)
    may_list = best and (HAS_OR.search(reply) or len(LISTING.findall(reply)) >= CANDIDATES - 1)
    return 0.0 if may_list and _is_one_of_several(reply, answers) else best


def _recall_of_one(question: str, answer: str, reply: str) -> float:
    if VERSION_NUMBER.fullmatch(answer) and VERSION_ASKED.search(question):
        answer = f"v{answer}"  # 3.10 is no 3.1
    answer, reply = both_in_digits(answer, _spelled_out(answer, reply))
    spelled_answer, spelled_reply = alike(answer, reply)
    share = recall_of_words(words(spelled_answer), spelled_reply)
    if not (share or weakness(answer) == SIGNS):
        return 0.0  # the usual case: no word in common, in any spelling
    if not _says_values(question, answer, reply):
        return 0.0
    answer, reply = spelled_answer, spelled_reply
    own = own_words(answer, question)
    numbers = [word for word in own if _is_number(word)]
    plain = bool(weakness(answer)) or own == words(answer)
    if weakness(answer):
        value = float(says(reply, answer))
    elif plain and not numbers and not negations(answer):
        value = share
    else:
        heard = set(forms(reply))
        if not negations(answer) <= heard or 2 * len(heard.intersection(numbers)) < len(
            set(numbers)
        ):
            return 0.0
        value = recall_of_words(own, reply)
    if value < KNOWN_FROM and _says_first_name(question, answer, own, reply):
        value = KNOWN_FROM
    if value < KNOWN_FROM:
        return value
    denied = not negations(answer) and denies(reply, answer if plain else " ".join(own))
    return 0.0 if denied or _names_another(question, answer, reply, value) else value


# Values and words


def _says_values(question: str, answer: str, reply: str) -> bool:
    """Whether a reply says at least half of the values of an answer that its question lacks. A
    date, an amount or a quantity counts only where the reply has another one, or no more than a
    coarser date: words may say it."""
    are_said = []
    for value in _own_values(answer, question):
        is_said = bool(said_at(value, reply))
        counts = is_said or value.kind in DECISIVE or is_contradicted(value, reply)
        counts = counts or _says_only_coarser(value, question, answer, reply)
        are_said += [is_said] if counts else []
    return 2 * sum(are_said) >= len(are_said)


@lru_cache(maxsize=2**12)
def _own_values(answer: str, question: str) -> tuple[Value, ...]:
    """The values of an answer that its question lacks."""
    return tuple(value for value in values(answer) if not said_at(value, question))


def _says_only_coarser(value: Value, question: str, answer: str, reply: str) -> bool:
    """Whether of an answer's date and what else it says, a reply has at most a part of the date."""
    if not is_coarser(value, reply):
        return False
    others = {*own_words(answer, question)}.difference(words(answer[value.start : value.end]))
    return others.isdisjoint(words(reply))


def _is_number(word: str) -> bool:
    return word.lstrip("-")[:1].isdigit()


def _spelled_out(answer: str, reply: str) -> str:
    """The reply with the answer's own words for its initials (T2D), and in an address for words
    that are longer or shorter there (Ave, Kentucky)."""
    answer_words = [word for word in words(answer) if word not in STOP_WORDS]
    initials = "".join(word[0] for word in answer_words).upper()
    initials = "" if initials[:1].isdecimal() else initials
    if len(initials) > 1 and initials in reply:
        alone = re.fullmatch(rf"(?:[Tt]he )?{re.escape(initials)}\W*", reply)
        if alone or len(initials) >= SHORTEST_ACRONYM:
            reply = re.sub(rf"\b{re.escape(initials)}\b", lambda _: answer, reply)
    if any(map(_is_number, answer_words)) and len(answer_words) > CANDIDATES:
        heard = {word for word in words(reply) if word.isalpha()}
        missing = [word for word in answer_words if word.isalpha() and word not in heard]
        begun = [(one, other) for other in missing for one in heard if one[0] == other[0]]
        full = {one: other for one, other in begun if _shortens(*sorted((one, other), key=len))}
        return NAME.sub(lambda word: full.get(word[0].lower(), word[0]), reply) if full else reply
    return reply


def _shortens(short: str, long: str) -> bool:
    """Whether a word may be short for another with its first letter: it has the others in order."""
    letters = iter(long)
    fits = 2 <= len(short) <= LONGEST_SHORT_FORM and len(long) >= len(short) + 2
    return fits and all(letter in letters for letter in short)


def _says_first_name(question: str, answer: str, own: Sequence[str], reply: str) -> bool:
    """Whether a reply has half of the first name, with its last word, that a sentence says of the
    question's subject: "Dr. Moor" of "Ivo is treated by Dr. Lucia Moor at the Holm Clinic"."""
    answer_words, heard = words(answer), words(reply)
    if own == answer_words or not answer_words or answer_words[0] not in words(question):
        return False
    begins = answer_words.index(own[0])
    name = [*takewhile(set(own).__contains__, answer_words[begins:])]
    name = [word for word in name if word not in TITLES]
    present = sum(word in heard for word in name)
    return bool(name) and name[-1] in heard and 2 * present >= len(name)


# Denied, or one of several


def denies(text: str, answer: str) -> bool:
    """Whether a text mentions an answer only to deny it or to express doubt: "It is not Paris", "I
    do not know whether it is Paris"."""
    text, name = folded(text), folded(answer)
    if not name or not all(word in text for word in name.split()):
        return False  # the usual case, before any pattern
    if not (NEGATED.search(text) or IGNORANT.search(text)):
        return False
    mention, claimed = _mention(name), IGNORANT.sub(" ", text)
    if not mention.search(text):
        return False
    return all(
        BEFORE.search(claimed, max(0, match.start() - REACH), match.start())
        or BEHIND.match(claimed, match.end())
        for match in mention.finditer(claimed)
    )


@lru_cache(maxsize=2**12)
def _mention(name: str) -> re.Pattern[str]:
    edges = ("", "") if CLUSTER.search(name) else (r"(?<!\w)", r"(?!\w)")
    return re.compile(edges[0] + r"[\W_]+".join(map(re.escape, name.split())) + edges[1])


def _is_one_of_several(reply: str, answers: Sequence[str]) -> bool:
    """Whether every sentence with an answer gives it as one of alternatives ("either Paris or
    London") or, as a name or number, in a list of candidates ("London, Paris and Rome"). Two may be
    one joint answer ("Lennon and McCartney"). An answer in small letters, such as a profession, is
    no candidate: several may be true."""
    for answer in answers:
        reply = alike(answer, reply)[1]
    answers = [alike(answer, reply)[0] for answer in answers]
    right = [frozenset(words(answer)) for answer in answers]
    sentences = SENTENCE.split(unicodedata.normalize("NFKC", reply))
    sentences = [sentence for sentence in sentences if _share(sentence, right) >= HALF]
    if not sentences or not answers[0]:
        return False
    may_offer = not any(map(OR.search, answers))
    may_list = not answers[0][0].islower() and not any(map(AND.search, answers))
    offered = may_offer and all(_offers(one, answers[0], right) for one in sentences)
    return offered or (may_list and all(_is_list(one, answers[0], right) for one in sentences))


def _offers(sentence: str, answer: str, right: Words) -> bool:
    """Whether a sentence gives an answer and others of its kind as alternatives."""
    first, *rest = OR.split(sentence)
    offered = (MAYBE.sub("", END.sub("", item), count=1) for item in rest[1::2])
    items = [*COMMA.split(first), *offered]
    after_comma = len(items) == 2 and rest[:1] != [None]  # or a sentence without "or"
    if not rest or len(items) < 2 or (after_comma and "either" not in first.lower().split()):
        return False
    others = _others(items, answer, right)
    return bool(others) and all(_is_alike(item, answer, right) for item in others)


def _is_list(sentence: str, answer: str, right: Words) -> bool:
    """Whether a sentence lists an answer and others of its kind."""
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


# Another name in the answer's place


def _names_another(question: str, answer: str, reply: str, recall: float) -> bool:
    """Whether a reply with this recall of an answer names something else of the same kind."""
    if answer[:1].isupper() and f"New {answer}" in reply:
        name = rf"\b{re.escape(answer)}\b"  # Mexico is not in New Mexico
        if re.search(name, reply) and not re.search(rf"(?<!\bNew ){name}", reply):
            return True
    if (other := _has_other_middle(reply, answer)) is not None or recall == 1:
        return bool(other)
    ordinals = ranks(answer)
    others = ranks(reply) if ordinals else ordinals
    other_ordinal = bool(others) and ordinals.isdisjoint(others)
    return other_ordinal or _is_part(reply, answer) or _differs(reply, answer, question)


def _is_part(text: str, answer: str) -> bool:
    """Whether a text has too little of an answer in a script without spaces, or in Korean: 南京大学
    shares most of its character pairs with 北京大学."""
    name = folded(answer)
    if name.isascii() or CLUSTER.sub("", name):
        return False
    pairs, heard = words(answer), set(forms(text))
    share = sum(pair in heard for pair in pairs) / len(pairs)
    return share < WHOLE_FROM if has_no_spaces(name) else share <= HALF


def _has_other_middle(text: str, answer: str) -> bool | None:
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


def _differs(text: str, answer: str, question: str) -> bool:
    """Whether a text has part of an answer, but something else in place of the rest: Michael
    Jackson for Michael Jordan, Pierre for Marie Curie, South for North Korea."""
    question_names = set(map(folded, NAME.findall(question)))
    text = _without_accents(text)
    gold = NAME.findall(_without_accents(answer))
    parts, present = list(map(folded, gold)), set(map(folded, NAME.findall(text)))
    is_name = len(gold) > 1 and PARTICLES.issuperset(gold[1:-1]) and "," not in answer
    if is_name and _has_other_first_name(text, gold, question_names | present):
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
                numbers = first.isdecimal() and word.isdecimal()
                if kinds or numbers or {first, word} <= DIRECTIONS:
                    return True
    return False


def _has_other_first_name(text: str, name: Sequence[str], known: set[str]) -> bool:
    """Whether a text has another first name before a full name's last: Pierre for Marie Curie.
    Titles, words behind an article and words that only begin a sentence are no first names. known:
    words of the text and the question."""
    first, *particles, last = name
    capitals = first[0].isupper() and last[0].isupper()
    if not capitals or folded(first) in known or folded(last) not in known:
        return False
    for match in _ending(*particles, last).finditer(text):
        named = TWO_WORDS.search(text, max(0, match.start() - REACH), match.start())
        if named is None:
            continue
        before, other = named.groups()
        alone = text[named.start() : match.end()] == text.strip().rstrip(".!")
        named = other[0].isupper() and folded(other) not in TITLES
        if named and (alone if before is None else before.lower() not in ARTICLES):
            return True
    return False


@lru_cache(maxsize=2**10)
def _ending(*names: str) -> re.Pattern[str]:
    return re.compile(r"\b" + r"\s+".join(map(re.escape, names)) + r"\b")


def _replaces(other: str, missing: str, last: bool) -> bool:
    """Whether a word takes the place of a missing one: a name for a name, a number for a number,
    any word but a stop word for the last one of an answer."""
    if missing[0].isdigit():
        return other[0].isdigit() and not re.fullmatch(rf"{missing}(?:st|nd|rd|th)", other)
    if missing[0].isupper():
        return other[0].isupper() or (other[0].isdigit() and missing.isupper())  # "World War 1"
    return last and folded(other) not in STOP_WORDS


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
