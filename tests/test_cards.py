"""The one door through which text gets into the app's HTML."""

import re

import pytest

from adapop.ui import cards


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=alert(1)>", "${alert(1)}", "C:\\users\\x", "`", "{{this}}", "a & b"]
)
def test_nothing_that_html_handlebars_or_a_template_literal_reads_survives(text):
    (escaped,) = cards.values([text])
    assert not re.search(r"[<>`$\\{}]", escaped)
    assert escaped != text


def test_only_texts_are_touched():
    content = {"lines": ["plain"], "percent": 5, "right": True, "rank": None}
    assert cards.values(content) == content
