"""The table that can be downloaded, edited and uploaded again."""

import csv
import io
import os
from functools import cache
from pathlib import Path

from adapop.facts.formulas import BOM
from adapop.facts.world import sandbox_facts
from adapop.runs import files
from adapop.ui.parts.download import served_folder

TEMPLATE_FACTS = 24


@cache
def _path() -> Path:
    return served_folder() / "adapop-template.csv"


def template_path() -> str:
    """A CSV of sandbox facts, three of each score, to edit and upload. All pages share one file.
    Each call renews it, because served files are deleted after two hours."""
    path = _path()
    try:
        os.utime(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, _text())
    return str(path)


def _text() -> str:
    facts = sorted(sandbox_facts().forget, key=lambda fact: fact.score or 0)
    step, text = max(1, len(facts) // TEMPLATE_FACTS), io.StringIO()
    text.write(BOM)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "question", "answer", "subject", "relation", "score", "paraphrases"])
    for fact in facts[::step][:TEMPLATE_FACTS]:
        cells = [fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.score]
        writer.writerow([*cells, "|".join(fact.paraphrases)])
    return text.getvalue()
