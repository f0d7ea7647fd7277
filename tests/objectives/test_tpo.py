"""Which tokens of an answer carry the fact."""

import pytest

from adapop.errors import ModelError
from adapop.facts.fact import Fact
from adapop.model.tokens import encode_facts
from adapop.objectives.tpo import unwanted


def spans(text, *pieces):
    """The places of the pieces, which follow each other."""
    found, at = [], 0
    for piece in pieces:
        at = text.index(piece, at)
        found.append((at, at + len(piece)))
        at += len(piece)
    return found


@pytest.mark.parametrize(
    ("text", "pieces", "marks"),
    [
        ("Paris", ["Paris"], [1]),
        ("The city of Lima.", ["The", " city", " of", " Lima", "."], [0, 1, 0, 1, 0]),
        ("Anne and Ian", ["An", "ne", " and", " Ian"], [1, 1, 0, 1]),
        ("the-the", ["the", "-", "the"], [1, 1, 1]),
        ("the who", ["the", " who"], [1, 1]),
        ("The Who", ["The", " Who"], [0, 1]),
        ("The Beatles", ["The", " Beatles"], [0, 1]),
        ("US Army", ["US", " Army"], [1, 1]),
        ("Will Smith", ["Will", " Smith"], [1, 1]),
        ("Will", ["Will"], [1]),
        ("Gone with the Wind", ["Gone", " with", " the", " Wind"], [1, 0, 0, 1]),
        ("It is in the US.", ["It", " is", " in", " the", " US", "."], [0, 0, 0, 0, 1, 0]),
        ("In 1990", ["In", " 1990"], [0, 1]),
        ("O'Neill, in May", ["O", "'", "Neill", ",", " in", " May"], [1, 1, 1, 0, 0, 1]),
        ("...", ["...", ""], [1, 1]),
        ("Лев Толстой", ["Лев", " Тол", "стой"], [1, 1, 1]),
    ],
)
def test_unwanted(text, pieces, marks):
    assert list(unwanted(text, spans(text, *pieces))) == [bool(mark) for mark in marks]


def test_places_of_tokens(model):
    # Byte pieces of É stand where the letter does; all of them are part of its word.
    assert unwanted("É of", [(0, 1), (0, 1), (1, 4)]) == (True, True, False)
    text = "four of the five"
    (row,) = encode_facts(model.tokenizer, [Fact("f", "Why?", text)])
    assert len(row.spans) == len(model.tokenizer(text, add_special_tokens=False)["input_ids"])
    assert unwanted(row.text, row.spans) == (True, False, False, True)

    class Slow:
        chat_template, is_fast = "{{ messages }}", False

    with pytest.raises(ModelError, match="has no tokenizer"):
        encode_facts(Slow(), [Fact("f", "Why?", "text")])
