import csv
import io
import re
from html import unescape

from adapop.report.table import Table, number, percent

TABLE = Table(
    "Recall", ("", "rare", "all"), (("to forget", "1.00 → 0.20\n4 facts", ""), ("kept", "-0.10", "0.5")), "Mean."
)
HOSTILE = "<img src=x onerror=alert(1)>"


def test_a_cell_is_text_in_every_form():
    assert TABLE.as_text().split("\n") == [
        "Recall", "            rare          all", "to forget   1.00 → 0.20", "            4 facts",
        "kept        -0.10         0.5", "Mean."]  # fmt: skip
    assert TABLE.as_markdown().split("\n") == [
        "### Recall", "", "|  | rare | all |", "| --- | --- | --- |", "| to forget | 1.00 → 0.20<br>4 facts |  |",
        "| kept | -0.10 | 0.5 |", "", "Mean."]  # fmt: skip
    assert Table("t", ("a",), (("b|c",),)).as_markdown().endswith("| b\\|c |")
    page = Table(HOSTILE, (HOSTILE,), ((HOSTILE, HOSTILE),), HOSTILE).as_html()
    assert "<img" not in page
    assert [unescape(text) for text in re.findall(r"<(?:p|th|td)(?: [^>]*)?>(.*?)</", page)] == [HOSTILE] * 4
    assert '<p class="how">' not in Table("t", ("a",), ()).as_html(), "no note, no paragraph"
    head, *rows = csv.reader(io.StringIO(TABLE.as_csv().removeprefix("\ufeff")))
    assert head == ["", "rare", "all"]
    assert rows[1] == ["kept", "'-0.10", "0.5"]
    assert [number(value) for value in (None, -0.001, -99.994, 100, -10643.6)] == [
        "",
        "0.00",
        "-99.99",
        "100",
        "-10,644",
    ]
    assert [percent(value) for value in (None, -0.001, 1 / 200, 0.825, 1)] == ["", "0%", "<1%", "82%", "100%"]
    wide = Table("t", ("", "a"), (("東京", "b"), ("e\u0301", "c"), ("กำลัง", "d"), ("か\u3099", "e"))).as_text()
    shown = ["       a", "東京   b", "e\u0301      c", "กำลัง   d", "か\u3099     e"]
    assert wide.split("\n")[1:] == shown, "columns as a terminal shows them"
