"""The table of the facts to forget."""

import unicodedata
from collections.abc import Mapping, Sequence

import gradio as gr
import pandas as pd

from adapop.errors import number_of
from adapop.facts.fact import Fact, FactSet
from adapop.popularity.beta import BetaMap, regime
from adapop.ui.session import curve_of

COLUMNS = ["question", "answer", "score", "β", "pressure", "known, %", "source", "id"]
KINDS = ["str", "str", "number", "number", "str", "number", "str", "str"]
# pixels; on a phone "assets/style.css" sets the first four. It hides the id, which identifies a
# clicked row.
WIDTHS = [300, 110, 70, 60, 105, 85, 115, 10]
NONE_KNOWN = "none-known"  # a class that hides the column of what the model knows
PUSH = {"self-limiting": "fades early", "uniform": "equal", "pressure-sustaining": "lasts"}
MOST_ROWS, MOST_SHOWN = 1_000, 300  # rows; characters of a cell


def fact_table(
    facts: FactSet | None,
    beta: BetaMap,
    recall: Mapping[str, float],
    text: str = "",
    unscored: bool = False,
) -> pd.DataFrame:
    """The facts to forget that contain the text, rarest first; unknown scores are last and empty,
    because missing is not zero. recall: of the original model, by fact id. unscored: only facts
    without a score. At most `MOST_ROWS`: more rows slow the browser down."""
    rows = []
    members = matching(facts.forget, text, unscored) if facts else ()
    for fact in sorted(members, key=lambda fact: (fact.score is None, fact.score or 0))[:MOST_ROWS]:
        exponent = None if fact.score is None else beta(fact.score)
        push = (None, "unknown")
        if exponent is not None:
            push = round(exponent, 2), PUSH[regime(exponent)]
        known = round(100 * recall[fact.id]) if fact.id in recall else None
        about = fact.question, fact.answer, fact.score
        rows.append([*about, *push, known, fact.score_source or "unknown", fact.id])
    return pd.DataFrame(rows, columns=COLUMNS)


def matching(facts: Sequence[Fact], searched: str | None, unscored: bool = False) -> list[Fact]:
    """Facts with this text in question, answer or subject, in any case; unscored: only those
    without a score."""
    text = _composed((searched or "").strip())
    facts = [fact for fact in facts if fact.score is None] if unscored else facts
    contents = (_composed(f"{fact.question}\n{fact.answer}\n{fact.subject}") for fact in facts)
    return [fact for fact, content in zip(facts, contents) if text in content]


def _composed(text: str) -> str:
    """A text in lower case, its letters in one encoding: files made on a Mac part accents off, and
    `casefold` some."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def table_label(matching: int, every: int) -> str:
    """The table's label: how many facts it shows, and their order."""
    if matching > MOST_ROWS:
        return f"The {MOST_ROWS:,} rarest of {matching:,} facts; search to see others"
    part = "Facts" if matching == every else f"{matching:,} of {number_of(every, 'fact')}"
    return f"{part}, rarest first"


def lay_out(first: FactSet) -> gr.Dataframe:
    """Lays out the table of a set before any measurement."""
    label = table_label(len(first.forget), len(first.forget))
    shape = dict(max_height=460, max_chars=MOST_SHOWN, wrap=True, column_widths=WIDTHS)
    named = dict(label=label, elem_id="fact-table", elem_classes=[NONE_KNOWN])
    rows = fact_table(first, BetaMap(), {})
    return gr.Dataframe(rows, datatype=KINDS, interactive=False, **shape, **named)


def table_of(
    facts: FactSet | None, anchors, recall: Mapping[str, float], text: str, unscored: bool = False
):
    """The table of the facts that match a search and the filter."""
    members = facts.forget if facts else ()
    label = table_label(len(matching(members, text, unscored)), len(members))
    rows = fact_table(facts, curve_of(facts, anchors), recall, text, unscored)
    return gr.Dataframe(rows, label=label, elem_classes=[] if recall else [NONE_KNOWN])
