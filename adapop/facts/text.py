"""Texts as they are compared with others."""

from __future__ import annotations

import re
import unicodedata

# control characters, marks that turn the direction of text, and characters without width; not the joiners and marks
# that Persian, Hebrew and emoji are written with
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def asked(question: str) -> str:
    """A question as it is compared with others: case, white space, characters that cannot be seen, and how an accent
    is written do not count."""
    return " ".join(UNSEEN.sub("", unicodedata.normalize("NFC", question)).casefold().split())


# Thai, Burmese, Korean (whose endings stick to a name), Khmer, Japanese and Chinese put no space after a word
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def mentions(text: str, words: str) -> bool:
    """Whether the words stand in the text as whole words, whatever the case, accents and spacing.

    In scripts without spaces between words (Chinese, Thai ...) any place counts.
    """
    text, words = folded(text), folded(words)
    if words not in text or not words:
        return False
    return bool(UNSPACED.search(words) or re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text))


def folded(text: str) -> str:
    """The text without case, accents and extra space, to compare by; recall ignores them too."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(text.casefold().split())
