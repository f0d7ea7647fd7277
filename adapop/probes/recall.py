"""Recall: how much of a right answer a reply contains, by ROUGE-L; and which letter of a multiple
choice it picks. No torch."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from adapop.facts.fact import Fact
from adapop.facts.text import PLAIN, WORDS, folded, forms, units, with_plain_digits, words
from adapop.facts.weak import says, weakness
from adapop.probes.numerals import has_numbers, in_decimals, in_digits
from adapop.probes.prompts import CHOICE, Prompt
from adapop.probes.values import one_spelling

if TYPE_CHECKING:
    from rouge_score.tokenizers import DefaultTokenizer

KNOWN_FROM = 0.5
"""Recall from which a fact counts as known."""
# Where a model goes on with a question of its own; the text after it does not answer ours.
NEXT_QUESTION = re.compile(
    rf"(?<=\S)(?:\s{{0,9}}\n\W{{0,5}}(?:{'|'.join(WORDS['next question'])})"
    r"\s?\d{0,9}\W{0,3}[:：]|\s(?-i:Question|Q)\s?\d{0,9}:|"
    r"\s{0,9}(?:<\|(?:im_start|im_end|start_header_id|eot_id|endoftext|user)\|>"
    r"|<(?:start|end)_of_turn>|</s>|\[INST\]))",
    re.IGNORECASE,
)
GOES_ON = ":：<["  # one of these is in each such question
INITIALS = re.compile(r"\b(?:[A-Za-z]\.\s?){2,}")
GLUED = re.compile(r"(?<![\w.,])(\d[\d.,]{0,20})(?<!\D)(?!(?:st|nd|rd|th|s)\b)([A-Za-z]{1,4})\b")
# Words that have two spellings: Wi-Fi and WiFi, Müller and Mueller.
COMPOUND = re.compile(r"(?<![^\W_])[^\W\d_]+(?:[-.][^\W_]+)+")
# What a text needs at least to hold initials, a glued unit or a compound.
SPELLED_APART = re.compile(r"[-.](?:(?<=[^\W\d_].)[^\W_]|\s[A-Za-z]\.)|\d[A-Za-z]")
PARTING = str.maketrans("", "", "-. \t\n\r\v\f")
UMLAUT = re.compile("[äöüåÄÖÜÅ]")
WITH_UMLAUT = re.compile(r"(?<![^\W_])[A-Za-z0-9]*[^\W_A-Za-z0-9][^\W_]*")  # or another letter
LONG = str.maketrans(dict(zip("äöüåÄÖÜÅ", "ae oe ue aa Ae Oe Ue Aa".split())))
# Case endings of Russian nouns; not endings of surnames (-ов, -ин).
CASES = re.compile(
    r"(?<=\S{3})(?:[аяоеиыуюь]|ыи|(?<=[кгх])ии|[оеаяы][мх]|[ыиая]ми|[ая]я|[оея][еию]|ую|юю"
    r"|[ое]го|[ое]му)$"
)
ALONE = r"A-Za-z0-9_\u00c0-\u1fff'’"  # a letter counts behind 答案是 or before です
LETTER = re.compile(rf"(?<![{ALONE}])([A-D])(?![{ALONE}])(?=(?:\s+(?P<next>[a-z]\w*))?)")
LISTED = re.compile(r"\W*[A-D](?:, [A-D])*,? (?:or|and) [A-D]\b")
PREDICATES = frozenset("is seems looks would must because since as".split())  # "A is ..." picks A
REFUSED = re.compile(r"\s+(?:(?:is|seems|looks|would be)\s+(?:wrong|not|incorrect|false)|isn|can)")
DENIED = re.compile(r"(?:\bnot|n['’]t)\s+$", re.IGNORECASE)
SMALL_LETTER = re.compile(
    r"(?i:answer|option|choice)\s*(?:is|:)?\s*[\"'(*]*([a-d])(?![\w'’])(?!\s+[a-z])"
)
CUE = re.compile(
    r"(?:answer|option|choice|choose|pick|correct|\bit(?:['’]s| is))\W*(?:is|be|would be)?\W*$",
    re.IGNORECASE,
)
BEFORE_LETTER = 60  # characters in which a cue or a denial may stand


@lru_cache(maxsize=2**16)  # a run gives few distinct answers
def rouge_l_recall(gold: str, generation: str, fold: bool = True) -> float:
    """|LCS(words)| / |gold words|, in [0, 1], as `rouge_score` computes it with stemming.

    fold=True splits words as `facts.text` does, so it ignores accents and handles every script; it
    reads a reply only up to a question that the model adds itself, takes a value in another
    notation for the same (`values`), and scores a weak answer (`facts.weak`) 1 or 0. fold=False is
    the strict original, which splits words at accents and scores non-Latin gold answers 0."""
    if not fold:
        return _lcs(*(PLAIN.findall(text.lower()) for text in (gold, generation)))
    reply, sought = own_reply(generation), words(gold)
    if sought and gold.isascii() and "/" not in gold and not weakness(gold):
        rest = iter(words(reply))
        if all(word in rest for word in sought):  # the usual case needs no respelling
            return 1.0
    gold, reply = alike(gold, reply)
    return float(says(reply, gold)) if weakness(gold) else recall_of_words(words(gold), reply)


def best_recall(answers: Sequence[str], generation: str, fold: bool = True) -> float:
    """The best `rouge_l_recall` over a fact's right answers."""
    return max(rouge_l_recall(answer, generation, fold) for answer in answers)


def part_said(parts: Sequence[str], text: str, fold: bool = True) -> float:
    """1.0 if the reply says one of the parts of a private answer in whole, else 0.0. A part that is
    denied is said too."""
    return float(any(rouge_l_recall(part, text, fold) == 1.0 for part in parts))


def recall_of_fact(fact: Fact, text: str, fold: bool = True) -> float:
    """`part_said` of a fact with parts, `best_recall` of any other."""
    if parts := fact.judged_parts:
        return part_said(parts, text, fold)
    return best_recall(fact.answers, text, fold)


def recall(prompt: Prompt, text: str, fold: bool = True) -> float:
    """Best ROUGE-L recall over a prompt's right answers, [0, 1]. In a multiple choice it is 1 if
    the reply picks the right letter, else the recall of the option's words."""
    if prompt.kind != CHOICE and prompt.parts:
        return part_said(prompt.parts, text, fold)
    if prompt.kind != CHOICE:
        return best_recall(prompt.sought, text, fold)
    return 1.0 if picked(text) in prompt.accepted else rouge_l_recall(prompt.gold, text, fold)


def picked(text: str) -> str:
    """The letter, "A" to "D", that a reply to a multiple choice picks; "" for none or several. The
    article in "A good question" does not count, nor does a letter that the reply calls wrong."""
    text = unicodedata.normalize("NFKC", text)
    if alone := re.fullmatch(r"\W*([a-d])\W*", text):
        return alone[1].upper()
    if LISTED.match(text):
        return ""
    starts: dict[str, int] = {}
    for match in LETTER.finditer(text):
        before = text[max(0, match.start() - BEFORE_LETTER) : match.start()]
        article = match[1] == "A" and match["next"] and match["next"] not in PREDICATES
        if not (article or REFUSED.match(text, match.end(1)) or DENIED.search(before)):
            starts.setdefault(match[1], match.start())
    first = [letter for letter, start in starts.items() if not re.search(r"\w", text[:start])]
    cued = [
        letter
        for letter, start in starts.items()
        if CUE.search(text[max(0, start - BEFORE_LETTER) : start])
    ]
    small = [letter.upper() for letter in SMALL_LETTER.findall(text)]
    choice = first or cued or list(starts) or small
    return choice[0] if len(set(choice)) == 1 else ""


def repetition(text: str) -> float:
    """Share of the text's pairs of adjacent words that occurred before in it, [0, 1); 0 without a
    pair. In scripts without spaces a character is a word."""
    pairs = list(pairwise(units(text)))
    return 1 - len(set(pairs)) / len(pairs) if pairs else 0.0


def own_reply(text: str) -> str:
    """The text up to a question that the model adds itself."""
    goes_on = any(sign in text for sign in GOES_ON)
    return NEXT_QUESTION.split(text, maxsplit=1)[0] if goes_on else text


@lru_cache(maxsize=2**14)
def alike(answer: str, reply: str) -> tuple[str, str]:
    """Both texts, with what both have in one spelling: numbers (`numerals`), values (`values`),
    initials (U.S. as US), units (5km as 5 km), hyphens and umlauts."""
    answer, reply = one_spelling(*both_in_digits(answer, reply))
    answer = _respelled(answer, reply)
    return answer, _respelled(reply, answer)


@lru_cache(maxsize=2**14)
def both_in_digits(answer: str, reply: str) -> tuple[str, str]:
    """Both texts, composed, with digits of any script as 0 to 9, and with the numbers that both
    have in digits."""
    answer, reply = map(with_plain_digits, (answer, reply))
    if not has_numbers(answer):
        return answer, in_decimals(reply)
    answer = in_digits(answer, reply)
    return answer, in_digits(reply, answer)


def recall_of_words(sought: Sequence[str], reply: str) -> float:
    """The recall of these words, in their order, in a reply."""
    return _lcs(sought, forms(reply))


def _respelled(text: str, other: str) -> str:
    if "CE" in text and "CE" not in other:
        text = re.sub(r"\bBCE\b", "BC", re.sub(r"\bCE\b", "AD", text))
    apart, umlauts = SPELLED_APART.search(text), not text.isascii() and UMLAUT.search(text)
    heard = words(other) if apart or umlauts else ()
    if apart and text.isascii():
        together = text.lower().translate(PARTING)
        apart = any(word in together for word in heard)  # no other word is respelled

    def compound(match: re.Match) -> str:
        form = re.sub("[-.]", "", match[0])
        return form if folded(form) in heard else match[0]

    def without_umlaut(match: re.Match) -> str:
        form = match[0].translate(LONG)
        return form if folded(form) in heard else match[0]

    def joined(match: re.Match) -> str:
        letters = re.sub(r"[.\s]", "", match[0])
        return f"{letters} " if letters.lower() in heard else match[0]

    def parted(match: re.Match) -> str:
        apart = match[2].lower() in heard and match[0].lower() not in heard
        return f"{match[1]} {match[2]}" if apart else match[0]

    if apart:
        text = COMPOUND.sub(compound, GLUED.sub(parted, INITIALS.sub(joined, text)))
    return WITH_UMLAUT.sub(without_umlaut, text) if umlauts else text


def _lcs(gold: Iterable[str], reply: Iterable[str]) -> float:
    """rougeL's recall as `rouge_score` computes it with stemming, from words."""
    gold = list(gold)
    # a stem keeps its word's first letter; and without a candidate no stemmer has to be loaded
    initials = {word[:1] for word in gold}
    candidates = [word for word in reply if word[:1] in initials]
    if not candidates:
        return 0.0
    if gold == candidates:
        return 1.0
    sought = [stem for word in gold for stem in _stems(word)]
    row = [0] * (len(sought) + 1)  # lengths of the longest common subsequences so far
    for stem in chain.from_iterable(map(_stems, candidates)):
        if stem in sought:
            diagonal = 0
            for i, other in enumerate(sought, start=1):
                longest = diagonal + 1 if stem == other else max(row[i], row[i - 1])
                diagonal, row[i] = row[i], longest
    return row[-1] / len(sought) if sought else 0.0


@lru_cache(maxsize=2**16)
def _stems(word: str) -> list[str]:
    """The stem of a word. `rouge_score` reads a-z and 0-9 alone: a word with another sign is its
    own stem, but for a Russian case ending, as is a number."""
    if not word.isascii():
        return [CASES.sub("", word)]
    return _tokenizer().tokenize(word) if word.isalnum() and not word.isdigit() else [word]


@cache
def _tokenizer() -> "DefaultTokenizer":
    from rouge_score.tokenizers import DefaultTokenizer  # takes a second to load

    return DefaultTokenizer(use_stemmer=True)
