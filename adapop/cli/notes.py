"""What a set has to say for itself, on standard error: standard output stays what was asked for."""

from __future__ import annotations

import sys

from adapop import console
from adapop.facts import FactSet


def print_notes(facts: FactSet, as_json: bool) -> None:
    """Prints dropped rows and, for people, the notes."""
    if facts.problems:
        print(f"{len(facts.problems)} rows were dropped:", file=sys.stderr)
        print("\n".join(console.problem_lines(facts.problems)), file=sys.stderr)
    if not as_json:
        for note in facts.notes:
            print(f"note: {note}", file=sys.stderr)
