"""Screen 1, Facts: pick the sandbox's set or upload one's own, see every score and what it becomes."""

from __future__ import annotations

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gradio as gr
import pandas as pd

from adapop.beta import BetaMap, regime
from adapop.catalog import completed
from adapop.config import SANDBOX
from adapop.errors import DataError
from adapop.factfile import read_facts
from adapop.facts import FactSet
from adapop.sandbox import sandbox_facts
from adapop.tables import FORMATS
from adapop.ui import cards, copy

COLUMNS = ["subject", "question", "answer", "score", "tier", "paper's β", "regime"]
TEMPLATE_FACTS = 24
PROBLEMS_SHOWN = 10


@dataclass(frozen=True)
class FactsScreen:
    """The components other screens read. `facts` holds the session's FactSet, None while a file is unusable."""

    facts: gr.State
    missing: gr.Radio


def build(facts: gr.State) -> FactsScreen:
    """Lays the screen out inside the current tab."""
    with gr.Row():
        with gr.Column(scale=1, min_width=320):
            source = gr.Radio([copy.SANDBOX_SET, copy.OWN_SET], value=copy.SANDBOX_SET, label="Facts to forget")
            about = gr.Markdown(copy.SANDBOX_ABOUT)
            with gr.Group(visible=False) as own:
                upload = gr.File(
                    label="A table of facts",
                    file_types=list(FORMATS),
                    file_count="single",
                    height=140,
                    elem_id="upload",
                )
                template = gr.DownloadButton("Download a template", size="sm")
            missing = gr.Radio(
                copy.MISSING_CHOICES,
                value="error",
                label="Facts without a score",
                info=copy.MISSING_ABOUT,
                visible=False,
            )
            notes = gr.HTML(_notes(sandbox_facts()), html_template=cards.LINES, elem_id="notes")
        with gr.Column(scale=3, min_width=320):
            table = gr.Dataframe(
                fact_table(sandbox_facts()),
                label="Facts, rarest first",
                datatype=["str", "str", "str", "number", "str", "number", "str"],
                interactive=False,
                max_height=520,
                max_chars=80,
                show_search="filter",
                column_widths=[170, 240, 120, 75, 85, 75, 155],
                elem_id="fact-table",
            )
    shown = [facts, table, notes, missing]
    source.change(_picked, [source, upload], [own, about, template, *shown], api_visibility="private")
    upload.upload(_uploaded, upload, shown, api_visibility="private")
    upload.clear(_uploaded, upload, shown, api_visibility="private")
    return FactsScreen(facts, missing)


def fact_table(facts: FactSet, beta: BetaMap = BetaMap()) -> pd.DataFrame:
    """The forget facts, rarest first, unknown scores last and empty: missing is not zero."""
    rows = []
    for fact in sorted(facts.forget, key=lambda fact: (fact.score is None, fact.score or 0)):
        exponent = None if fact.score is None else beta(fact.score)
        word = "unknown" if exponent is None else regime(exponent)
        shown = None if exponent is None else round(exponent, 3)
        rows.append([fact.subject, fact.question, fact.answer, fact.score, fact.tier, shown, word])
    return pd.DataFrame(rows, columns=COLUMNS)


def _picked(source: str, file: str | None):
    own = source == copy.OWN_SET
    about = copy.UPLOAD_ABOUT if own else copy.SANDBOX_ABOUT
    shown = _uploaded(file) if own else _shown(sandbox_facts())
    # written when it is offered: served files are deleted after two hours
    template = gr.DownloadButton(value=_template()) if own else gr.skip()
    return gr.Group(visible=own), gr.Markdown(about), template, *shown


def _uploaded(file: str | None):
    if file is None:
        return _unusable(["Upload a table of facts, or pick the sandbox world."])
    try:
        facts = completed(read_facts(Path(file), Path(file).stem), SANDBOX)
    except DataError as error:
        problems = [str(problem) for problem in error.problems[:PROBLEMS_SHOWN]]
        return _unusable([f"{error.message} {error.fix}", *problems])
    return _shown(facts)


def _shown(facts: FactSet):
    # a choice made for another file is not a choice for this one
    return facts, fact_table(facts), _notes(facts), gr.Radio(value="error", visible=bool(facts.unknown_scores))


def _unusable(lines: list[str]):
    notes = cards.values({"kind": "bad", "lines": lines})
    return None, pd.DataFrame(columns=COLUMNS), notes, gr.Radio(value="error", visible=False)


def _notes(facts: FactSet) -> dict:
    """Counts, notes, and the rows that were dropped."""
    lines = [
        f"{len(facts.forget):,} to forget, {len(facts.retain):,} to retain, {len(facts.holdout):,} held out.",
        *facts.notes,
    ]
    if facts.unknown_scores:
        lines.append(f"Without a score: {len(facts.unknown_scores):,}. Decide above what to do with them.")
    if facts.problems:
        lines.append(f"Rows that were dropped: {len(facts.problems):,}.")
        lines += [str(problem) for problem in facts.problems[:PROBLEMS_SHOWN]]
        hidden = len(facts.problems) - PROBLEMS_SHOWN
        lines += [f"… and {hidden:,} more."] if hidden > 0 else []
    kind = "warn" if facts.problems or facts.unknown_scores else "calm"
    return cards.values({"kind": kind, "lines": lines})


def _template() -> str:
    """A CSV of sandbox facts, three of each score, that can be edited and uploaded."""
    facts = sorted(sandbox_facts().forget, key=lambda fact: fact.score or 0)
    step = max(1, len(facts) // TEMPLATE_FACTS)
    path = Path(tempfile.mkdtemp()) / "adapop-template.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer", "subject", "score", "paraphrases"])
        for fact in facts[::step][:TEMPLATE_FACTS]:
            writer.writerow([fact.id, fact.question, fact.answer, fact.subject, fact.score, "|".join(fact.paraphrases)])
    return str(path)
