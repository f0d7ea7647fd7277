import re

import pytest

from adapop.ui.parts import html
from adapop.ui.probe.answers import marked


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=alert(1)>", "${alert(1)}", "C:\\users\\x", "`", "{{this}}", "a & b"]
)
def test_nothing_that_html_handlebars_or_a_template_literal_reads_survives(text):
    (escaped,) = html.values([text])
    assert not re.search(r"[<>`$\\{}]", escaped) and escaped != text


def test_only_texts_are_touched_and_right_words_marked():
    content = {"lines": ["plain"], "percent": 5, "right": True, "rank": None}
    assert html.values(content) == content
    answer = 'It was <b>William Shakespeare</b>, I think: "Shakespeare".'
    pieces = marked(answer, "William Shakespeare")
    assert "".join(piece["text"] for piece in pieces) == answer
    assert [piece["text"] for piece in pieces if piece["gold"]] == ["William", "Shakespeare", "Shakespeare"]
    assert marked("Nobody knows", "") == [
        {"text": "Nobody", "gold": False},
        {"text": " ", "gold": False},
        {"text": "knows", "gold": False},
    ]


@pytest.mark.parametrize(("answer", "gold", "right"), [
    ("法国的首都是巴黎。", "巴黎", "巴黎"), ("คือกรุงเทพมหานคร", "กรุงเทพ", "กรุงเทพ"),
    ("भारत में दिल्ली है", "दिल्ली", "दिल्ली"), ("Der Weg nach Sao Paulo", "São Paulo", "SaoPaulo"),
])  # fmt: skip
def test_the_right_answer_is_marked_in_every_script(answer, gold, right):
    pieces = marked(answer, gold)
    assert "".join(piece["text"] for piece in pieces) == answer
    assert "".join(piece["text"] for piece in pieces if piece["gold"]) == right
