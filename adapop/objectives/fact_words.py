"""Which words of an answer carry the fact and which are function words, for TPO."""

import re
from collections.abc import Sequence

from adapop.facts.weak import ARTICLES, STOP_WORDS

WORD = re.compile(r"\w+(?:['’]\w+)*")


def unwanted(text: str, spans: Sequence[tuple[int, int]]) -> tuple[bool, ...]:
    """For each token of a text, whether it is part of a word that carries the fact. spans: (start, end) in characters.

    Stop words, punctuation and white space do not carry it. A capitalised stop word counts as a name ("US Army", "Will
    Smith"), except at the start of the text if it is an article ("The Beatles") or the next word has no capital
    ("It is"). A token is judged by the whole word it belongs to: the "an" of "Anne" is no article. In a text of stop
    words alone every token carries the fact.
    """
    tokens = WORD.findall(text)
    words = [match.span() for i, match in enumerate(WORD.finditer(text)) if not _general(tokens, i)]
    flags = tuple(any(start < after and before < end for before, after in words) for start, end in spans)
    return flags if any(flags) else (True,) * len(flags)


def _general(words: Sequence[str], place: int) -> bool:
    """Whether the word at a place is a function word."""
    word, plain = words[place], words[place].casefold()
    begins = place == 0 and (plain in ARTICLES or any(not after[0].isupper() for after in words[1:2]))
    return plain in STOP_WORDS and (word.islower() or begins)
