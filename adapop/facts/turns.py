"""Rows that are conversations, as chat models are trained on: a user's question and its answer."""

from collections.abc import Mapping

from adapop.facts.fact import Problem
from adapop.facts.forms import CHATS
from adapop.facts.lists import LONGEST, parsed

PROMPT, COMPLETION = "prompt", "completion"
NAMES = frozenset((*CHATS, PROMPT))
# role names of ShareGPT, Gemini and OpenAI
ROLES = {
    "human": "user",
    "developer": "system",
    **dict.fromkeys(("gpt", "chatgpt", "model", "bot"), "assistant"),
}
SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
FIX = "Write a row for each question: one turn of the user, one of the assistant."


def unfolded(number: int, row: Mapping[str, object]) -> tuple[int, Mapping[str, object]] | Problem:
    """(number, row) with a question and an answer in place of the row's turns, a problem if the
    turns are not one question and its answer. A row without turns stays as it is. Turns are a list,
    or the text of one, in a column of `CHATS`, or the columns `prompt` and `completion`."""
    if NAMES.isdisjoint(row):
        return number, row  # true of most rows
    for columns in (*((name,) for name in CHATS), (PROMPT, COMPLETION)):
        if columns[0] not in row or {"question", "answer"} <= row.keys():
            continue
        lists = [_turns(row.get(column)) for column in columns]
        if lists[0] is None:
            continue
        turns = [turn for conversation in lists for turn in conversation or ()]
        texts = [content for role, content in turns if role != SYSTEM]
        if [role for role, _ in turns][-2:] != [USER, ASSISTANT] or len(texts) != 2:
            message = f"has {len(turns)} turns that are no question and answer"
            return Problem(number, columns[0], "", message, FIX)
        rest = {name: cell for name, cell in row.items() if name not in columns}
        return number, rest | {"question": texts[0], "answer": texts[1]}
    return number, row


def has_system(row: Mapping[str, object]) -> bool:
    """Whether the row has a system prompt of its own, which is ignored."""
    if NAMES.isdisjoint(row):
        return False
    chats = filter(None, (_turns(row.get(name)) for name in (*CHATS, PROMPT) if name in row))
    return any(role == SYSTEM for role, _ in next(chats, ()))


def _turns(cell: object) -> list[tuple[object, object]] | None:
    """Role and content of the turns in a cell; None if it holds something else."""
    if isinstance(cell, str):
        is_list = "{" in cell[:40] and ("[" in cell[:40] or "(" in cell[:40])
        cell = parsed(cell) if is_list and len(cell) <= LONGEST else None
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
