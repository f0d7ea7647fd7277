"""Comparing texts: normal forms that ignore case, spacing and accents, and looking for words in a text."""

import re
import unicodedata

# control characters, marks that change the direction of text, and zero-width characters; not the joiners and marks that
# Persian, Hebrew and emoji need
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def asked(question: str) -> str:
    """A question in the form in which questions are compared.

    Case, white space, invisible characters and the encoding of accents are ignored.
    """
    return " ".join(UNSEEN.sub("", unicodedata.normalize("NFC", question)).casefold().split())


# Thai, Burmese, Khmer, Japanese and Chinese put no space after a word, and Korean adds endings to a name
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def mentions(text: str, words: str) -> bool:
    """Whether the text contains the words as whole words, ignoring case, accents and spacing.

    In scripts without spaces between words (Chinese, Thai ...) any occurrence counts.
    """
    text, words = folded(text), folded(words)
    if words not in text or not words:
        return False
    return bool(UNSPACED.search(words) or re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text))


def folded(text: str) -> str:
    """The text without case, accents and extra space, for comparisons; recall ignores them as well."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(text.casefold().split())
