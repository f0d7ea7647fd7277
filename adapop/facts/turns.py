"""Rows that are conversations, as chat models are trained on them: a question of the user and its answer."""

import json
from collections.abc import Mapping

from adapop.facts.fact import Problem

MESSAGES, PROMPT, COMPLETION = "messages", "prompt", "completion"
ASKING, ANSWERING = ("system", "user"), "assistant"
LONGEST = 100_000  # characters of a cell that is parsed
FIX = "Write a row for each question: one turn of the user, one of the assistant."


def unfolded(number: int, row: Mapping[str, object]) -> Mapping[str, object] | Problem:
    """The row with a question and an answer in place of its turns; a row without turns as it is, a problem for one
    whose turns are no question with its answer.

    Turns are a list, or JSON of one, in `messages`, or in `prompt` and `completion`.
    """
    for columns in ((MESSAGES,), (PROMPT, COMPLETION)):
        lists = [_turns(row.get(column)) for column in columns]
        if lists[0] is None or {"question", "answer"} <= row.keys():
            continue
        turns = [turn for found in lists for turn in found or ()]
        texts = [turn.get("content") for turn in turns if turn.get("role") != ASKING[0]]
        if [turn.get("role") for turn in turns][-2:] != [ASKING[1], ANSWERING] or len(texts) != 2:
            return Problem(number, columns[0], "", f"has {len(turns)} turns that are no question and answer", FIX)
        rest = {name: cell for name, cell in row.items() if name not in columns}
        return rest | {"question": texts[0], "answer": texts[1]}
    return row


def has_system(row: Mapping[str, object]) -> bool:
    """Whether the row brings a system prompt of its own, which nobody reads."""
    turns = _turns(row.get(MESSAGES)) or _turns(row.get(PROMPT)) or ()
    return any(turn.get("role") == ASKING[0] for turn in turns)


def _turns(cell: object) -> list[dict] | None:
    """The turns in a cell; None if it holds something else."""
    if isinstance(cell, str) and cell.lstrip().startswith("[{") and len(cell) <= LONGEST:
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    turns = isinstance(cell, list) and cell and all(isinstance(turn, dict) and "role" in turn for turn in cell)
    return cell if turns else None
