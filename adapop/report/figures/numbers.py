"""Extracts a figure's numbers from the figure itself, as a table."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import repeat

import plotly.graph_objects as go

MOST_ROWS = 60
MARKUP = re.compile(r"<br>|</?(?:b|sup|sub)>")


@dataclass(frozen=True)
class Numbers:
    """A figure's numbers as a table. columns: names. rows: text, one cell per column; at most
    `MOST_ROWS`, evenly chosen. every: n if only every n-th row is included, 1 if all are."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    every: int = 1


def numbers_of(figure: go.Figure) -> Numbers:
    """Every named trace as a column along its axis; a heat map as a column per model and map
    column.

    A figure whose vertical axis has names (a row per run or form) is read along that axis. If
    positions on an axis have no meaning (bins), the trace's `ids` name them."""
    cells_by_place: dict[tuple[object, str], dict[str, str]] = {}
    columns: dict[str, None] = {}
    labels: dict[object, str] = {}
    for trace in figure.data:
        labels |= dict(zip(trace.x or (), trace.ids or ()))
        for at, panel, name, value in _cells(figure, trace):
            columns[name] = None
            row = cells_by_place.setdefault((at, panel), {})
            row[name] = f"{row[name]}; {value}" if name in row else value
    keys = list(cells_by_place)
    if all(isinstance(at, (int, float)) for at, _ in keys):
        keys.sort()
    headings = len({panel for _, panel in keys}) > 1
    table = []
    for at, panel in keys:
        place = labels.get(at) or _number(at)
        cells = [cells_by_place[at, panel].get(name, "") for name in columns]
        table.append((panel, place, *cells) if headings else (place, *cells))
    return thinned((*(["panel"] if headings else []), _axis_title(figure), *columns), table)


def thinned(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Numbers:
    """The rows as a table; if there are too many, an evenly chosen part of them."""
    step = 1 + max(0, len(rows) - 1) // MOST_ROWS
    return Numbers(columns, tuple(rows[::step]), step)


def _cells(figure: go.Figure, trace: object) -> Iterator[tuple[object, str, str, str]]:
    """(x, panel, column, number) of each point of a trace; unnamed traces are guides, left out."""
    if trace.type == "heatmap":
        yield from _heatmap_cells(figure, trace)
    elif trace.name and trace.hoverinfo != "skip":
        axis = figure.layout[(trace.yaxis or "y").replace("y", "yaxis")]
        named = dict(zip(axis.tickvals or (), axis.ticktext or ()))
        along_y = bool(named) or getattr(trace, "orientation", None) == "h"
        places, values = (trace.y, trace.x) if along_y else (trace.x, trace.y)
        panel, name = _panel(figure, trace), _plain(trace.name)
        across = figure.layout[(trace.xaxis or "x").replace("x", "xaxis")]
        shares = ((across if along_y else axis).tickformat or "").endswith("%")
        formatted = (lambda share: f"{100 * share:.3g}%") if shares else _number
        ranges = _ranges(trace, values, along_y, formatted)
        for at, value, spread in zip(places or (), values or (), ranges):
            place = named[min(named, key=lambda tick: abs(tick - at))] if named else at
            if value is not None:
                yield place, panel, name, formatted(value) + spread


def _heatmap_cells(figure: go.Figure, trace: object) -> Iterator[tuple[object, str, str, str]]:
    side = _panel(figure, trace)
    for label, cells in zip(trace.y, trace.text):
        for column, cell in zip(trace.x, cells):
            if cell:
                yield label, "", f"{side}, {column}" if side else column, cell


def _panel(figure: go.Figure, trace: object) -> str:
    """The heading of the panel that a trace is in; empty where the figure is one panel."""
    place = (trace.yaxis if trace.type != "heatmap" else trace.xaxis) or ""
    notes = [note for note in figure.layout.annotations if note.showarrow is False]
    titles = [note.text for note in notes if note.yanchor == "bottom"]
    index = int(place[1:] or 1) - 1
    return _plain(titles[index]) if len(titles) > 1 and index < len(titles) else ""


def _ranges(
    trace: object, values: Sequence[float], along_y: bool, formatted: Callable[[float], str]
) -> Iterable[str]:
    """The interval around each value as text, if there is one."""
    error = getattr(trace, "error_x" if along_y else "error_y", None)
    if error is None or not error.array or error.visible is False:
        return repeat("")
    points = zip(values, error.arrayminus or error.array, error.array)
    return [f" ({formatted(at - low)} to {formatted(at + high)})" for at, low, high in points]


def _axis_title(figure: go.Figure) -> str:
    lying = any(getattr(trace, "orientation", None) == "h" for trace in figure.data)
    if figure.layout.yaxis.ticktext or lying:
        return ""
    titles = [axis.title.text for axis in figure.select_xaxes() if axis.title.text]
    return _plain(titles[-1]) if titles else ""


def _number(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else _plain(str(value))


def _plain(text: str) -> str:
    """The text without plotly's markup and without HTML escapes."""
    return unescape(" ".join(MARKUP.sub(" ", text).split()))
