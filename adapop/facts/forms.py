"""Which column holds which field: by usual names first; the known form of a public data set adds
the fields still missing, or reads inside a column. Rows that are conversations, as chat models are
trained on, become a question and its answer."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from adapop.assets import read_json
from adapop.facts.cells import LONGEST, parsed
from adapop.facts.fact import LISTS, Problem
from adapop.facts.text import UNKNOWN, UNSEEN, normalized

CHATS = ("messages", "conversations", "conversation", "contents")
CHOSEN, REJECTED = "chosen", "rejected"
PROMPT, COMPLETION = "prompt", "completion"
LABEL = "label"  # in TRL's KTO, beside a completion, whether that is right; elsewhere often a class
Row = Mapping[str, object]


@dataclass(frozen=True)
class Form:
    """The form of a public data set. A field is read from a column or a path: `a.b` leads into an
    object, `a.0` to the first of a list, `a + b` joins texts by a blank line, `a % b` writes b for
    {} in a, `a | b` makes a list, and `a;` a list of what semicolons separate."""

    name: str
    marks: str
    """Names of the columns that a file of this form has, all of them, separated by spaces."""
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Known:
    """The known column names and forms, from `assets/sets/forms.json`."""

    columns: Mapping[str, tuple[str, ...]]
    """Our field -> its usual names; the first one present is used."""
    groups: Mapping[str, str]
    """Beginning of a text that names a group -> the group."""
    attacks: tuple[str, ...]
    """RWKU's attacks of level 3, in a column called type; also as "cross lingual (French)"."""
    forms: tuple[Form, ...]


_KNOWN = read_json("sets/forms.json", Known)
COLUMNS = _KNOWN.columns
FORMS = _KNOWN.forms
RWKU_ATTACKS = _KNOWN.attacks
# names of columns that each hold one choice, or one of several right answers
NUMBERED = re.compile(r"(answer|choice|option|opt)_?(?:[a-j]|\d)|[a-j]")
LEAST = {"answer": 1, "": 3}  # fewest such columns, by the word in their names; 2 for other words
# the column that says which of the choices is right
RIGHT = "correct_answer correct_option correct_index correct answer_key answerkey".split()
RIGHT += ["answer_index", "answer_idx"]
# one of several columns for a field of lists: paraphrased_question_1, alias2, distractors.0
SERIES = re.compile(r"(.+?)[_./[]?(\d{1,3})\]?")
# numbered columns with these names may hold choices, so only a form reads them
MAYBE_CHOICES = frozenset(("answer", "answers", "possible_answer", "possible_answers"))
LAST_BLANK = re.compile(r"\s*\[Y\]\s*[.?]?\s*$")


def guessed(columns: Iterable[str]) -> dict[str, str]:
    """Our field -> its column, ignoring case; fields without a column are left out."""
    present = _by_key(columns)
    there = {field: [*filter(present.get, names)] for field, names in COLUMNS.items()}
    guess = {field: present[names[0]] for field, names in there.items() if names}
    form = form_of(columns)
    for field, path in form.fields.items() if form else ():
        if path.lower() in present and (field not in guess or path.startswith(f"{guess[field]}.")):
            guess[field] = present[path.lower()]
    right = next(filter(present.__contains__, RIGHT), "")
    if right and "choices" in guess and "answer" not in guess:
        guess["answer"] = present[right]
    for field, path in series_of(columns).items():
        if path in present:
            guess[field] = present[path]
    if guess.get("accepted") == guess.get("answer"):
        guess.pop("accepted", None)
    if key_of(guess.get("answer", "")) == COMPLETION and LABEL in present:
        guess.setdefault("correct", present[LABEL])
    if "choices" in guess or guess.get("correct") == guess.get("answer"):
        guess.pop("correct", None)
    return guess


def series_of(columns: Iterable[str]) -> dict[str, str]:
    """Field -> path that lists its columns, for each field of lists with numbered columns: by
    number, behind a column without one. Where no other column holds the answer, the accepted
    answers hold it, the best first."""
    present = _by_key(columns)
    form = form_of(columns)
    paths = {}
    for field in LISTS:
        names = {name.removesuffix(end) for name in COLUMNS[field] for end in ("", "s", "es")}
        names -= MAYBE_CHOICES
        matches = ((key, SERIES.fullmatch(key)) for key in present)
        numbered = [(int(match[2]), key) for key, match in matches if match and match[1] in names]
        numbered = [key for _, key in sorted(numbered) if key not in COLUMNS[field]]
        if numbered and not (form and field in form.fields):
            plain = next((name for name in COLUMNS[field] if name in present), "")
            paths[field] = " | ".join(filter(None, (plain, *numbered)))
    has_answer = form and "answer" in form.fields
    if "accepted" in paths and not has_answer and present.keys().isdisjoint(COLUMNS["answer"]):
        paths["answer"] = paths["accepted"]
    return paths


def columns_of(path: str, columns: Iterable[str]) -> list[str]:
    """The columns that a guessed path lists; [path] for one column."""
    present = _by_key(columns)
    return [present.get(part, part) for part in path.split(" | ")]


def is_row(columns: Iterable[str]) -> bool:
    """Whether the columns hold a question or a chat, or are those of a known form."""
    known = "question" in guessed(columns) or form_of(columns) is not None
    return known or not set(CHATS).isdisjoint(columns) or {CHOSEN, REJECTED} <= set(columns)


def form_of(columns: Iterable[str]) -> Form | None:
    """The first form whose columns are all present, ignoring case, else one made for numbered
    columns of choices or answers; None without either."""
    present = _by_key(columns)
    known = next((form for form in FORMS if present.keys() >= set(form.marks.split())), None)
    if known or present.keys().isdisjoint(COLUMNS["question"]):
        return known
    kinds = {name: match[1] or "" for name in present if (match := NUMBERED.fullmatch(name))}
    kind = max(kinds.values(), key=[*kinds.values()].count, default="")
    several = [name for name in kinds if kinds[name] == kind]
    label = next((name for name in (*RIGHT, *COLUMNS["answer"]) if name in present), "")
    if len(several) < LEAST.get(kind, 2) or (kind != "answer" and not label):
        return None
    if kind != "answer" or label not in ("", "answer"):  # this column names the right choice
        return Form("answers to choose from", "", {"choices": " | ".join(several), "answer": label})
    first, *others = ["answer"] * bool(label) + several
    return Form("several answers in columns", "", {"answer": first, "accepted": " | ".join(others)})


def with_paths(
    paths: Iterable[str], whole: str, columns: Iterable[str], rows: Iterable[tuple[int, Row]]
) -> Iterator[tuple[int, Row]]:
    """The numbered rows. A path that joins columns or reads inside one gets a column of its own,
    which has the path as its name. whole: the path of choices, of which empty ones count. columns:
    all columns of the file."""
    present = {name: name for name in columns} | _by_key(columns)
    paths = [path for path in dict.fromkeys(paths) if path.lower() not in present]
    if not paths:
        yield from rows
        return
    for number, row in rows:
        cells = {path: _cell(path, row, present, path == whole) for path in paths}
        filled = {path: cell for path, cell in cells.items() if cell not in (None, "", [])}
        yield number, {**row, **filled}


@lru_cache(maxsize=256)
def group_of(text: str) -> str | None:
    """The group that a text names; "" for empty text, None if the text names no group."""
    text = text.lower()
    groups = (group for prefix, group in _KNOWN.groups.items() if text.startswith(prefix))
    return next(groups, None if text else "")


def key_of(column: str) -> str:
    """A column's name as `COLUMNS` has it: in lower case, with underscores."""
    return re.sub(r"(?<=\w)[ -](?=\w)", "_", UNSEEN.sub("", str(column)).strip().lower())


def _by_key(columns: Iterable[str]) -> dict[str, str]:
    return {key_of(name): name for name in columns}


def _cell(
    path: str, row: Mapping[str, object], present: Mapping[str, str], whole: bool = False
) -> object:
    """The cell that a form's path leads to. whole: keeps empty items except those at the end."""
    if path in present:
        return row.get(present[path])
    for joint in (" | ", " + ", " % "):
        if joint in path:
            parts = [_cell(part, row, present) for part in path.split(joint)]
            while whole and parts and parts[-1] in (None, ""):
                parts.pop()
            filled = [part for part in parts if whole or part not in (None, "", *UNKNOWN)]
            if joint == " | ":
                return filled if whole else [item for part in filled for item in _items(part)]
            if joint == " + ":
                return "\n\n".join(map(str, filled)) if all(map(_is_text, filled)) else filled
            text, name = (str(part) if _is_text(part) else "" for part in parts)
            return LAST_BLANK.sub("", text.replace("{}", name).replace("[X]", name))
    if path.endswith(";"):
        cell = _cell(path[:-1], row, present)
        return cell.split(";") if isinstance(cell, str) and parsed(cell) is None else cell
    cell, *names = path.split(".")
    cell = row.get(present.get(cell.lower()))
    for name in names:
        cell = parsed(cell) if isinstance(cell, str) else cell
        if isinstance(cell, list) and name.isdecimal():
            cell = cell[int(name)] if int(name) < len(cell) else None
        else:
            cell = cell.get(name) if isinstance(cell, dict) else None
    return cell


def _items(cell: object) -> list:
    """The items of a list, or of a text that is one; [cell] for any other."""
    value = parsed(cell) if isinstance(cell, str) else cell
    return value if isinstance(value, list) else [cell]


def _is_text(cell: object) -> bool:
    return isinstance(cell, str | float)


# columns of which one is present where a row is a conversation
CONVERSING = frozenset((*CHATS, PROMPT, CHOSEN))
# role names of ShareGPT, Gemini and OpenAI
ROLES = {
    "human": "user",
    "developer": "system",
    **dict.fromkeys(("gpt", "chatgpt", "model", "bot"), "assistant"),
}
SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
FIX = "Write a row for each question: one turn of the user, one of the assistant."
SPOKEN = re.compile(r"(?:^|\n\n)(Human|Assistant):")  # HH-RLHF writes a conversation as one text
Turns = Sequence[tuple[object, object]]
"""Role and content of each turn."""


def unfolded(number: int, row: Row) -> tuple[int, Row] | Problem:
    """(number, row) with a question and an answer in place of the row's turns, a problem if the
    turns are not one question and its answer. A row without turns stays as it is. Turns are a list,
    or the text of one, in a column of `CHATS`, in `prompt` and `completion`, or in `chosen` and
    `rejected`, whose answer becomes an alternate."""
    if CONVERSING.isdisjoint(row):
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
    if CONVERSING.isdisjoint(row):
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
        return Problem(number, REJECTED, "", f"asks a different question from {CHOSEN!r}", fix)
    if normalized(str(answer)) == normalized(str(wrong)):
        return Problem(number, REJECTED, "", f"has the same answer as {CHOSEN!r}", fix)
    rest = {name: row[name] for name in row if name not in (CHOSEN, REJECTED, PROMPT, *CHATS)}
    return number, rest | {"question": question, "answer": answer, "alternates": [wrong]}


def _asked_and_answered(turns: Turns) -> list[object] | None:
    """The question and the answer, if these are all turns besides a system prompt."""
    rest = [turn for turn in turns if turn[0] != SYSTEM]
    return [text for _, text in rest] if [who for who, _ in rest] == [USER, ASSISTANT] else None


def _no_question(number: int, column: str, turns: Turns) -> Problem:
    message = f"has {len(turns)} turns that are not a question and an answer"
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
    roles = [turn.get("role", turn.get("from")) for turn in cell]
    roles = [ROLES.get(r.lower(), r.lower()) if isinstance(r, str) else r for r in roles]
    return list(zip(roles, map(_content, texts), strict=True))


def _content(content: object) -> object:
    """The text of a turn, joined from its parts; unchanged if a part is no text."""
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    return "\n".join(texts) if texts and all(isinstance(text, str) for text in texts) else content
