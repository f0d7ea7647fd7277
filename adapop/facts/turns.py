"""Rows that are conversations, as chat models are trained on: a user's question and its answer."""

import re
from collections.abc import Mapping, Sequence

from adapop.facts.fact import Problem
from adapop.facts.forms import CHATS, PREFERENCE
from adapop.facts.lists import LONGEST, parsed
from adapop.facts.text import normalized

PROMPT, COMPLETION = "prompt", "completion"
CHOSEN, REJECTED = PREFERENCE
NAMES = frozenset((*CHATS, PROMPT, CHOSEN))
# role names of ShareGPT, Gemini and OpenAI
ROLES = {
    "human": "user",
    "developer": "system",
    **dict.fromkeys(("gpt", "chatgpt", "model", "bot"), "assistant"),
}
SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
FIX = "Write a row for each question: one turn of the user, one of the assistant."
SPOKEN = re.compile(r"(?:^|\n\n)(Human|Assistant):")  # HH-RLHF writes a conversation as one text
Row = Mapping[str, object]
Turns = Sequence[tuple[object, object]]
"""Role and content of each turn."""


def unfolded(number: int, row: Row) -> tuple[int, Row] | Problem:
    """(number, row) with a question and an answer in place of the row's turns, a problem if the
    turns are not one question and its answer. A row without turns stays as it is. Turns are a list,
    or the text of one, in a column of `CHATS`, in `prompt` and `completion`, or in `chosen` and
    `rejected`, whose answer becomes an alternate."""
    if NAMES.isdisjoint(row):
        return number, row  # true of most rows
    if {CHOSEN, REJECTED} <= row.keys() and (chosen := _turns(row[CHOSEN])) is not None:
        return _preferred(number, row, chosen)
    for columns in (*((name,) for name in CHATS), (PROMPT, COMPLETION)):
        if columns[0] not in row or {"question", "answer"} <= row.keys():
            continue
        lists = [_turns(row.get(column)) for column in columns]
        if lists[0] is None:
            continue
        turns = [turn for conversation in lists for turn in conversation or ()]
        if (texts := _asked_and_answered(turns)) is None:
            return _no_question(number, columns[0], turns)
        rest = {name: cell for name, cell in row.items() if name not in columns}
        return number, rest | {"question": texts[0], "answer": texts[1]}
    return number, row


def has_system(row: Row) -> bool:
    """Whether the row has a system prompt of its own, which is ignored."""
    if NAMES.isdisjoint(row):
        return False
    chats = (_turns(row.get(name)) for name in (*CHATS, PROMPT, CHOSEN) if name in row)
    return any(role == SYSTEM for role, _ in next(filter(None, chats), ()))


def _preferred(number: int, row: Row, chosen: Turns) -> tuple[int, Row] | Problem:
    """The row of a preference in chat: what was chosen is the answer, what was rejected a wrong
    one. Both hold the whole conversation, or what follows that of another column."""
    before = next((name for name in (PROMPT, *CHATS, "question") if name in row), "")
    cell = row.get(before)
    led = [(USER, cell)] if isinstance(cell, str) and cell.strip() else []
    led = _turns(cell) or led
    texts = {}
    for name, turns in ((CHOSEN, chosen), (REJECTED, _turns(row[REJECTED]) or ())):
        whole = turns if any(role == USER for role, _ in turns) else [*led, *turns]
        if (pair := _asked_and_answered(whole)) is None:
            return _no_question(number, name, whole)
        texts[name] = pair
    (question, answer), (other, wrong) = texts[CHOSEN], texts[REJECTED]
    fix = "Write one question with a right and a wrong answer into each row."
    if normalized(str(question)) != normalized(str(other)):
        return Problem(number, REJECTED, "", f"asks another question than {CHOSEN!r}", fix)
    if normalized(str(answer)) == normalized(str(wrong)):
        return Problem(number, REJECTED, "", f"has the same answer as {CHOSEN!r}", fix)
    rest = {name: row[name] for name in row if name not in (CHOSEN, REJECTED, PROMPT, *CHATS)}
    return number, rest | {"question": question, "answer": answer, "alternates": [wrong]}


def _asked_and_answered(turns: Turns) -> list[object] | None:
    """The question and the answer, if these are all turns besides a system prompt."""
    said = [turn for turn in turns if turn[0] != SYSTEM]
    return [text for _, text in said] if [who for who, _ in said] == [USER, ASSISTANT] else None


def _no_question(number: int, column: str, turns: Turns) -> Problem:
    message = f"has {len(turns)} turns that are no question and answer"
    return Problem(number, column, "", message, FIX)


def _turns(cell: object) -> Turns | None:
    """Role and content of the turns in a cell; None if it holds something else."""
    if isinstance(cell, str):
        if len(spoken := SPOKEN.split(cell)) > 2 and not spoken[0].strip():
            return [(ROLES.get(who.lower(), who.lower()), text.strip())
                    for who, text in zip(spoken[1::2], spoken[2::2])]  # fmt: skip
        is_list = "{" in cell[:40] and ("[" in cell[:40] or "(" in cell[:40])
        cell = parsed(cell) if is_list and len(cell) <= LONGEST else None
    cell = [cell] if isinstance(cell, dict) else cell
    turns = isinstance(cell, list) and cell and all(isinstance(turn, dict) for turn in cell)
    if not turns or not all("role" in turn or "from" in turn for turn in cell):
        return None
    texts = [turn.get("content", turn.get("value", turn.get("parts"))) for turn in cell]
    return [(_role(turn), _content(text)) for turn, text in zip(cell, texts)]


def _role(turn: Mapping[str, object]) -> object:
    role = turn.get("role", turn.get("from"))
    return ROLES.get(role.lower(), role.lower()) if isinstance(role, str) else role


def _content(content: object) -> object:
    """The text of a turn, joined from its parts; unchanged if a part is no text."""
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    return "\n".join(texts) if texts and all(isinstance(text, str) for text in texts) else content
