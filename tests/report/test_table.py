"""One table in four forms: the same cells in each, and no cell that acts."""

import csv
import io
import re
from html import unescape

from adapop.report.table import Table, number

TABLE = Table(
    "Recall", ("", "rare", "all"), (("to forget", "1.00 → 0.20\n4 facts", ""), ("kept", "-0.10", "0.5")), "Mean."
)
HOSTILE = "<img src=x onerror=alert(1)>"


def test_text_has_columns_of_equal_width_and_a_line_for_each_line_of_a_cell():
    assert TABLE.as_text().split("\n") == [
        "Recall",
        "            rare          all",
        "to forget   1.00 → 0.20",
        "            4 facts",
        "kept        -0.10         0.5",
        "Mean.",
    ]


def test_markdown_keeps_a_cell_in_its_row():
    assert TABLE.as_markdown().split("\n") == [
        "### Recall",
        "",
        "|  | rare | all |",
        "| --- | --- | --- |",
        "| to forget | 1.00 → 0.20<br>4 facts |  |",
        "| kept | -0.10 | 0.5 |",
        "",
        "Mean.",
    ]
    assert Table("t", ("a",), (("b|c",),)).as_markdown().endswith("| b\\|c |")


def test_html_shows_every_text_as_it_is():
    hostile = Table(HOSTILE, (HOSTILE,), ((HOSTILE, HOSTILE),), HOSTILE)
    page = hostile.as_html()
    assert "<img" not in page
    assert [unescape(text) for text in re.findall(r"<(?:p|th|td)(?: [^>]*)?>(.*?)</", page)] == [HOSTILE] * 4
    assert '<p class="how">' not in Table("t", ("a",), ()).as_html(), "no note, no paragraph"


def test_csv_runs_no_formula():
    head, *rows = csv.reader(io.StringIO(TABLE.as_csv().removeprefix("\ufeff")))
    assert head == ["", "rare", "all"]
    assert rows[1] == ["kept", "'-0.10", "0.5"]


def test_a_number_has_the_digits_that_it_deserves():
    assert [number(value) for value in (None, 0.123, -99.994, 100, -10643.6)] == [
        "",
        "0.12",
        "-99.99",
        "100",
        "-10,644",
    ]
