"""Recall: how much of a right answer a reply contains, and whether the fact counts as known. No
torch."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache, reduce
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from adapop.facts.text import PLAIN, WORDS, folded, units, word_forms, words
from adapop.facts.weak import negations, own_words, says, weakness
from adapop.probes.claims import LISTING, denies, enumerates, hedges
from adapop.probes.namesakes import differs, is_part, is_renamed, other_middle
from adapop.probes.prompts import CHOICE, Prompt
from adapop.probes.writings import as_in, other_values

if TYPE_CHECKING:
    from rouge_score.tokenizers import DefaultTokenizer

KNOWN_FROM = 0.5
# Where a model goes on with a question of its own; the text after it does not answer ours.
NEXT_QUESTION = re.compile(
    rf"(?<=\S)(?:\s*\n\W{{0,5}}(?:{'|'.join(WORDS['next question'])})"
    r"\s?\d*\W{0,3}[:：]|\s(?-i:Question|Q)\s?\d*:|"
    r"\s*(?:<\|(?:im_start|im_end|start_header_id|eot_id|endoftext|user)\|>"
    r"|<(?:start|end)_of_turn>|</s>|\[INST\]))",
    re.IGNORECASE,
)
INITIALS = re.compile(r"\b(?:[A-Za-z]\.\s?){2,}")
GLUED = re.compile(r"(?<![\w.,])(\d+(?:[.,]\d+)*)(?!(?:st|nd|rd|th|s)\b)([A-Za-z]{1,4})\b")
GOES_ON = re.compile(r"[:：]|<\||<start|<end|</s>|\[INST")
# Words that have two spellings: Wi-Fi and WiFi, Müller and Mueller.
SPELLED = re.compile(r"[^\W_]*[äöüåÄÖÜÅ][^\W_]*|[^\W\d_]+(?:[-.][^\W_]+)+")
LONG = str.maketrans(dict(zip("äöüåÄÖÜÅ", "ae oe ue aa Ae Oe Ue Aa".split())))
# Case endings of Russian, Greek, Georgian and Tamil nouns; not endings of surnames (-ов, -ин).
CASES = re.compile(
    r"(?<=\S{3})(?:[аяоеиыуюь]|ыи|(?<=[кгх])ии|[оеаяыи][мх]|[ыиая]ми|[ая]я|[оея][еию]|ую|юю"
    r"|[ое]го|[ое]му|οσ|ουσ?|ον|ο|ησ?|ασ?|εσ|ων|οι"
    r"|ისთვის|დან|თან|ში|ზე|ის|ით|ად|მა|ს|ი|யில்|யின்|ில்|ின்)$"
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


@lru_cache(maxsize=2**16)  # a run gives few distinct answers
def rouge_l_recall(gold: str, generation: str, fold: bool = True) -> float:
    """|LCS(words)| / |gold words|, in [0, 1], as `rouge_score` computes it with stemming.

    fold=True splits words as `facts.text` does, so it ignores accents and handles every script; it
    reads a reply only up to a question that the model adds itself, and scores a weak answer
    (`facts.weak`) 1 or 0. fold=False is the strict original, which splits words at accents and
    scores non-Latin gold answers 0."""
    if not fold:
        return _lcs(*(PLAIN.findall(text.lower()) for text in (gold, generation)))
    reply, sought = _reply(generation), words(gold)
    if sought and gold.isascii() and "/" not in gold and not weakness(gold):
        rest = iter(words(reply))
        if all(word in rest for word in sought):  # the usual case needs no respelling
            return 1.0
    gold, reply = _as_in(gold, reply), _as_in(reply, gold)
    return float(says(reply, gold)) if weakness(gold) else _recall(words(gold), reply)


def best_recall(answers: Sequence[str], generation: str, fold: bool = True) -> float:
    """The best `rouge_l_recall` over a fact's right answers."""
    return max(rouge_l_recall(answer, generation, fold) for answer in answers)


def recall(prompt: Prompt, text: str, fold: bool = True) -> float:
    """Best ROUGE-L recall over a prompt's right answers, [0, 1]. In a multiple choice it is 1 if
    the reply picks the right letter, else the recall of the option's words."""
    if prompt.kind != CHOICE:
        return best_recall((prompt.gold, *prompt.accepted), text, fold)
    return 1.0 if picked(text) in prompt.accepted else rouge_l_recall(prompt.gold, text, fold)


def known_recall(prompt: Prompt, text: str) -> float:
    """`recall` of only the words that an answer does not share with its question (`own_words`):
    "The author is called" names no author. 0 if the text lacks a negation or most numbers that the
    answer has, or does not claim the answer (`claims`)."""
    if prompt.kind == CHOICE:
        return recall(prompt, text)
    return _known_recall(prompt.text, (prompt.gold, *prompt.accepted), text)


def says_answer(question: str, answers: Sequence[str], text: str, recall: float) -> bool:
    """Whether a reply says at least `KNOWN_FROM` of an answer's own words. recall: the reply's; if
    it exceeds the recall of these answers, it is that of another accepted one and counts
    unchanged."""
    if recall < KNOWN_FROM and all(_rouge_suffices(question, answer) for answer in answers):
        return False
    other = recall if best_recall(answers, text) < recall else 0.0
    return max(_known_recall(question, answers, text), other) >= KNOWN_FROM


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
        article = match[1] == "A" and match["next"] and match["next"] not in PREDICATES
        wrong = REFUSED.match(text, match.end(1)) or DENIED.search(text, 0, match.start())
        if not (article or wrong):
            starts.setdefault(match[1], match.start())
    first = [letter for letter, start in starts.items() if not re.search(r"\w", text[:start])]
    cued = [letter for letter, start in starts.items() if CUE.search(text, 0, start)]
    small = [letter.upper() for letter in SMALL_LETTER.findall(text)]
    choice = first or cued or list(starts) or small
    return choice[0] if len(set(choice)) == 1 else ""


def repetition(text: str) -> float:
    """Share of the text's pairs of adjacent words that occurred before in it, [0, 1); 0 without a
    pair. In scripts without spaces a character is a word."""
    pairs = list(pairwise(units(text)))
    return 1 - len(set(pairs)) / len(pairs) if pairs else 0.0


def _rouge_suffices(question: str, answer: str) -> bool:
    """Whether ROUGE alone judges the answer well: the answer is weak, or it shares no word with the
    question and has no number and no negation."""
    answer_words = words(answer)
    if weakness(answer):
        return True
    judged = negations(answer) or any(map(_number, answer_words))
    return own_words(answer, question) == answer_words and not judged


def _known_recall(question: str, answers: Sequence[str], text: str) -> float:
    if LISTING.search(text):
        reply_words = reduce(_as_in, answers, _reply(text))
        right = [_as_in(answer, reply_words) for answer in answers]
        if hedges(reply_words, right) or enumerates(reply_words, right):
            return 0.0
    return max(_own_recall(question, answer, text) for answer in answers)


def _own_recall(question: str, answer: str, text: str) -> float:
    reply = _reply(text)
    answer, reply = _as_in(answer, reply), _as_in(reply, answer)
    own = own_words(answer, question)
    if plain := _rouge_suffices(question, answer):
        value = rouge_l_recall(answer, reply)
    else:
        heard = set(chain.from_iterable(word_forms(reply)))
        numbers = [word in heard for word in own if _number(word)]
        if not negations(answer) <= heard or 2 * sum(numbers) < len(numbers):
            return 0.0
        value = _recall(own, reply)
    if value < KNOWN_FROM:
        return value
    denied = (plain or not negations(answer)) and denies(reply, answer if plain else " ".join(own))
    wrong = denied or is_renamed(reply, answer) or _is_other(question, answer, reply, value)
    return 0.0 if wrong else value


def _is_other(question: str, answer: str, reply: str, recall: float) -> bool:
    """Whether a reply with this recall of an answer names something else of the same kind."""
    if (other := other_middle(reply, answer)) is not None or recall == 1:
        return bool(other)
    return differs(reply, answer, question) or is_part(reply, answer) or other_values(reply, answer)


def _reply(text: str) -> str:
    """The text up to a question that the model adds itself."""
    return NEXT_QUESTION.split(text, maxsplit=1)[0] if GOES_ON.search(text) else text


def _as_in(text: str, other: str) -> str:
    """The text spelt as the other text: initials together (U.S. as US), units apart (5km as 5 km),
    and values as `writings` rewrites them."""
    if "CE" in text and "CE" not in other:
        text = re.sub(r"\bBCE\b", "BC", re.sub(r"\bCE\b", "AD", text))
    text = as_in(unicodedata.normalize("NFC", text), other)
    if not any(form.search(text) for form in (INITIALS, GLUED, SPELLED)):
        return text
    heard = words(other)

    def spelled(match: re.Match) -> str:
        forms = (re.sub("[-.]", "", match[0]), match[0].translate(LONG))
        return next((form for form in forms if folded(form) in heard), match[0])

    def joined(match: re.Match) -> str:
        letters = re.sub(r"[.\s]", "", match[0])
        return f"{letters} " if letters.lower() in heard else match[0]

    def parted(match: re.Match) -> str:
        apart = match[2].lower() in heard and match[0].lower() not in heard
        return f"{match[1]} {match[2]}" if apart else match[0]

    return SPELLED.sub(spelled, GLUED.sub(parted, INITIALS.sub(joined, text)))


def _number(word: str) -> bool:
    return word.lstrip("-")[:1].isdigit()


def _recall(gold: Sequence[str], reply: str) -> float:
    return _lcs(gold, chain.from_iterable(word_forms(reply)))


def _lcs(gold: Iterable[str], reply: Iterable[str]) -> float:
    """rougeL's recall as `rouge_score` computes it with stemming, from words."""
    sought = [stem for word in gold for stem in _stems(word)]
    row = [0] * (len(sought) + 1)  # lengths of the longest common subsequences so far
    for stem in chain.from_iterable(map(_stems, reply)):
        if stem in sought:
            diagonal = 0
            for i, other in enumerate(sought, start=1):
                longest = diagonal + 1 if stem == other else max(row[i], row[i - 1])
                diagonal, row[i] = row[i], longest
    return row[-1] / len(sought) if sought else 0.0


@lru_cache(maxsize=2**16)
def _stems(word: str) -> list[str]:
    if word.isascii():
        return [word] if word.isdigit() else _tokenizer().tokenize(_spelled(word))
    return _tokenizer().tokenize(_spelled(CASES.sub("", word)))


def _spelled(word: str) -> str:
    if word.isascii() and word.isalnum():
        return word
    # rouge_score reads [a-z0-9] only. Other signs become code points, with an end that no stemmer
    # cuts.
    return "".join(f"u{ord(sign):x}" for sign in word) + "0"


@cache
def _tokenizer() -> "DefaultTokenizer":
    from rouge_score.tokenizers import DefaultTokenizer  # takes a second to load

    return DefaultTokenizer(use_stemmer=True)
