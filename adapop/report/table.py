"""A table of text, rendered as plain text, Markdown, HTML or CSV."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from textwrap import wrap
from unicodedata import category, east_asian_width, normalize

from markupsafe import Markup

from adapop.facts.formulas import BOM, escaped
from adapop.probes.intervals import Interval

TEXT_WIDTH = 100  # characters per line of a note


@dataclass(frozen=True)
class Table:
    """Rows of text under a header. A row's first cell is its name; cells may have several lines.
    note: how to read the table, may be ""."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def as_text(self) -> str:
        """The table for a terminal: the title, columns of equal width, the note below."""
        rows = ([text.split("\n") for text in row] for row in (self.head, *self.rows))
        cells = [line for row in rows for line in zip_longest(*row, fillvalue="")]
        widths = [max(map(_columns, column)) for column in zip(*cells)]
        lines = ["   ".join(map(_padded, line, widths)).rstrip() for line in cells]
        return "\n".join([self.title, *lines, *wrap(self.note, TEXT_WIDTH)])

    def as_markdown(self) -> str:
        """The table as Markdown: the title as a heading, the note below the rows."""
        lines = map(_markdown_row, (self.head, ["---"] * len(self.head), *self.rows))
        return "\n".join([f"### {self.title}", "", *lines, *(["", self.note] if self.note else [])])

    def as_html(self, kind: str = "") -> Markup:
        """The table as HTML below its note, every text escaped. kind: its CSS class."""
        note = _joined('<p class="how">{}</p>\n', self.note.splitlines())
        head = _joined('<th scope="col">{}</th>', self.head)
        rows = Markup("\n").join(
            Markup('<tr><th scope="row">{}</th>{}</tr>').format(name, _joined("<td>{}</td>", cells))
            for name, *cells in self.rows
        )
        form = (
            '{}<div class="scroll"><table class="{}" aria-label="{}">\n<thead><tr>{}</tr></thead>'
            "\n<tbody>\n{}\n</tbody></table></div>"
        )
        return Markup(form).format(note, kind, self.title, head, rows)

    def as_csv(self) -> str:
        """Head and rows as CSV with a byte order mark; text that a spreadsheet would run as a
        formula is escaped."""
        written = StringIO()
        written.write(BOM)
        rows = ([*map(escaped, row)] for row in (self.head, *self.rows))
        csv.writer(written, lineterminator="\n").writerows(rows)
        return written.getvalue()


def number(value: float | None) -> str:
    """A number as text: two decimals, or none from 100 on and up to -100; "" for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:z.2f}"


def _columns(text: str) -> int:
    """The columns that a text takes in a terminal: 2 a sign of East Asia, 0 a mark."""
    signs = (sign for sign in normalize("NFC", text) if category(sign) not in ("Mn", "Me", "Cf"))
    return sum(1 + (east_asian_width(sign) in "WF") for sign in signs)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _columns(text))


def percent(value: float | None) -> str:
    """A share as text: "82%", "" for None, and "<1%" rather than "0%" for a small share."""
    return "" if value is None else "<1%" if 0 < value <= 0.005 else f"{round(100 * value)}%"


def ranged(share: Interval) -> str:
    """A share with its interval, if it has one: "82% (70 to 90%)"."""
    if share.low >= share.high:
        return percent(share.mean)
    return f"{percent(share.mean)} ({100 * share.low:.0f} to {100 * share.high:.0f}%)"


def signed(difference: Interval, named: bool = False) -> str:
    """A difference of two shares with its sign and its interval: "+53.1 points (+47 to +65)". With
    one decimal, as the shares beside it have (`tenths`), so that a reader can subtract. named: the
    interval is called so, once on each screen or page."""
    low, high = (round(100 * value) for value in (difference.low, difference.high))
    name = "95% interval " * named
    spread = f" ({name}{low:+} to {high:+})" if difference.low < difference.high else ""
    return f"{100 * difference.mean:+.1f} points{spread}"


def tenths(share: float) -> str:
    """A share with one decimal, for shares that stand beside their difference: "53.1%"."""
    return f"{100 * share:.1f}%"


def deviating(value: float, deviation: float | None) -> str:
    """A number with its standard deviation or error, if it has one, in three decimals."""
    return f"{value:.3f}" if deviation is None else f"{value:.3f} ± {deviation:.3f}"


def percent_deviating(share: float, deviation: float | None) -> str:
    """A share with its standard deviation, if it has one, in percent: "4.3 ± 0.7%"."""
    return f"{100 * share:.1f}{'' if deviation is None else f' ± {100 * deviation:.1f}'}%"


def _joined(form: str, cells: Sequence[str]) -> Markup:
    return Markup("").join(Markup(form).format(text) for text in cells)


def _markdown_row(cells: Sequence[str]) -> str:
    texts = (text.replace("|", "\\|").replace("\n", "<br>") for text in cells)
    return f"| {' | '.join(texts)} |"
