"""Table rows as facts or problems. User text stays text: never a path, a URL or a formula."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from adapop.errors import truncated
from adapop.facts.answers import MIXED, UNCLEAR, answers_of, choices_of, place_of, without_repeats
from adapop.facts.fact import CHAIN, LISTS, Fact, Problem
from adapop.facts.forms import ATTACKS, COLUMNS, GROUP_PREFIXES
from adapop.facts.lists import MAYBE, from_json, from_repr
from adapop.facts.scores import COMMA, GROUPED, POINTED, UNKNOWN_SCORES
from adapop.facts.text import UNKNOWN
from adapop.facts.tiers import TIERS
from adapop.facts.tiers import UNKNOWN as NO_TIER

MAX_CELL, MAX_ITEMS = 2_000, 100
OFTEN_LONG = ("answer", "accepted", "subject_aliases")
KINDS = {list: "a list", dict: "an object or binary", bool: "a truth value"}
TEXTS = ("subject", "relation", "object", *CHAIN)
NOT_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Reading:
    """How the rows of a file are read, and which were not read literally."""

    counted_from: int | None = None
    """Whether answers point to choices, and counted from where: `answers.counted_from`."""
    points: str = ""
    """What 25.692 is: "thousands" (25,692), "decimals" where nothing tells, or "" for a decimal."""
    percent: bool = False
    """Whether all scores are percentages."""
    comma: bool = False
    """Whether a comma is the decimal mark of scores."""
    semicolons: bool = False
    """Whether semicolons part the cells, as where a comma is the decimal mark."""
    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """What was not read literally, by the kinds of `notes.SENTENCES` -> the numbers of its rows."""


class _Unusable(Exception):
    """Why a row is no fact: field, value to show, message, fix."""


def fact_of(
    number: int, row: Mapping, columns: Mapping[str, str], reading: Reading | None = None
) -> tuple[str, Fact] | Problem:
    """The row's group and fact, or its problem. The group is "" where the row names none. number:
    the row number for problems. columns: our field -> the row's key."""
    reading = reading or Reading()
    try:
        texts = _texts(number, row, columns, reading)
        score = _score(row.get(columns.get("score")), reading, number)
        group, kind = _group(number, row, columns, reading)
        tier = _tier(row.get(columns.get("tier"))) if "tier" in columns else ""
    except _Unusable as unusable:
        name, *about = unusable.args
        return Problem(number, columns.get(name, name), *about)
    if group == "attacks" and kind:  # its relation is the kind of attack
        texts["relation"] = truncated(kind)
    source = "" if score is None else texts.pop("score_source", "") or f"column {columns['score']}"
    texts.pop("score_source", None)
    named = id_of(number, row, columns)
    return group, Fact(id=named, score=score, score_source=source, own_tier=tier, **texts)


def id_of(number: int, row: Mapping, columns: Mapping[str, str]) -> str:
    """The row's own id, or its number as one. columns: our field -> the row's key."""
    own = _string(row.get(columns.get("id")))
    return own if own and own not in UNKNOWN else f"row-{number}"


def _texts(number: int, row: Mapping, columns: Mapping[str, str], reading: Reading) -> dict:
    """The fact's fields that are text or lists of it, checked."""
    cells = {name: row.get(column) for name, column in columns.items() if name != "choices"}
    answers, wrong = _answers(number, row, columns, reading)
    lists = {
        name: _items(number, cells[name], reading, name != "paraphrases")
        for name in LISTS
        if name in cells
    }
    if lists or answers != [cells["answer"]] or not _is_short_text(cells.values()):
        for name, cell in {**cells, "answer": answers, **lists}.items():
            for text in _few(name, cell) if name == "answer" or name in lists else (cell,):
                if fault := _fault(text):
                    raise _Unusable(name, *fault)
    texts: dict = {
        name: _known(number, cells[name], reading)
        for name in (*TEXTS, "score_source")
        if name in cells
    }
    texts["question"] = _string(cells["question"])
    texts["answer"], *others = [text for text in map(_string, answers) if text] or [""]
    for name in ("question", "answer"):
        if not texts[name]:
            raise _Unusable(name, "", "is empty", "Fill the cell or delete the row.")
        if texts[name] in UNKNOWN:
            reading.rows[f"unknown {name}"].append(number)
    if texts["answer"][0] + texts["answer"][-1] in ("[]", "{}"):
        reading.rows["bracket"].append(number)
    texts |= {name: tuple(filter(None, map(_string, items))) for name, items in lists.items()}
    if others or texts.get("accepted"):
        accepted = without_repeats((*others, *texts.get("accepted", ())), texts["answer"])
        texts["accepted"] = tuple(_few("answer", accepted, MAX_ITEMS))
        reading.rows["several"] += [number] * bool(accepted)
    return texts if texts.get("alternates") else {**texts, "alternates": wrong}


def _is_short_text(cells: Iterable[object]) -> bool:
    """Whether all cells together are short printable text: a quick test that most rows pass."""
    try:
        text = "".join(cells)
    except TypeError:
        return False
    return len(text) <= MAX_CELL and text.isprintable()


def _few(name: str, items: Sequence, most: int = 0) -> Sequence:
    """The items, if they are not too many; aliases may be more until repeats are gone."""
    if len(items) > (most or (MAX_ITEMS * 10 if name in OFTEN_LONG else MAX_ITEMS)):
        message = f"has {len(items):,} items; at most {MAX_ITEMS} are read"
        raise _Unusable(name, "", message, "Shorten the list.")
    return items


def _answers(
    number: int, row: Mapping, columns: Mapping[str, str], reading: Reading
) -> tuple[list, tuple[str, ...]]:
    """The right answers, best first, and the wrong ones of the choices that the row points to."""
    cell = row.get(columns["answer"])
    if isinstance(cell, bool):  # BoolQ, StrategyQA
        reading.rows["truth"].append(number)
        return ["yes" if cell else "no"], ()
    answers = answers_of(cell)
    if isinstance(cell, str):
        if len(answers) != 1 or answers[0] is not cell:
            reading.rows["list answer"].append(number)
        elif columns["answer"].strip().lower() in COLUMNS["accepted"]:
            answers = cell.split("|")
    if len(answers) > 1 and any(map(_is_empty, answers)):
        reading.rows["empty item"].append(number)
    given = row.get(columns.get("choices"))
    if reading.counted_from is None or not (choices := choices_of(given)):
        if given and reading.counted_from is not None:  # other rows point to theirs
            message = "are no choices that can be told apart"
            raise _Unusable("choices", truncated(given), message, "Fill and part them.")
        return answers, ()
    if reading.counted_from == UNCLEAR:
        message = "may be the number of a choice or a choice"
        fix = "Write letters, or choices that are no numbers."
        raise _Unusable("answer", truncated(cell), message, fix)
    texts, given = list(choices.values()), [answer for answer in answers if _string(answer)]
    places = [place_of(answer, choices, reading.counted_from) for answer in given]
    if reading.counted_from == MIXED and (
        None in places or all(str(answer).strip() in texts for answer in given)
    ):
        return answers, ()
    if None in places:
        message = f"points to none of its {len(choices)} choices"
        fix = f"Use {', '.join(choices)}, or the choice itself."
        raise _Unusable("answer", truncated(cell), message, fix)
    reading.rows["pointed"] += [number] * bool(places)
    return [texts[place] for place in places], tuple(
        text for i, text in enumerate(texts) if i not in places
    )


def _fault(cell: object) -> tuple[str, str, str] | None:
    """Why a cell is not usable as text: (value to show, message, fix); None if it is usable."""
    fits = type(cell) is str and len(cell) <= MAX_CELL
    if fits and (cell.isprintable() or not NOT_TEXT.search(cell)):
        return None  # most are, and a file may have a million
    if kind := KINDS.get(type(cell)):
        return "", f"is {kind}, not text", "Write plain text."
    text = _string(cell)
    if len(text) > MAX_CELL:
        return (
            truncated(text),
            f"has {len(text):,} characters; at most {MAX_CELL:,} are read",
            "Shorten the cell.",
        )
    if NOT_TEXT.search(text):
        message = "has a NUL or half a character (a lone surrogate)"
        return truncated(NOT_TEXT.sub("\ufffd", text)), message, "Type the text again."
    return None


def _score(cell: object, reading: Reading, number: int) -> float | None:
    text = "" if cell is None else str(cell).strip()
    if text.casefold() in UNKNOWN_SCORES:
        reading.rows["unknown score"].append(number)
        return None
    if not text:
        return None
    if reading.percent:
        reading.rows["percent"].append(number)
        text = text.rstrip("% \u00a0\u202f")
    if reading.comma and COMMA.fullmatch(text):
        reading.rows["comma"].append(number)
        text = re.sub(r"[^\deE+,-]", "", text).replace(",", ".")
    elif GROUPED.fullmatch(text):
        reading.rows["commas"] += [number] * (
            reading.semicolons and text.count(",") == 1 and "." not in text
        )
        text = re.sub(r"[^\d.]", "", text)
    elif "." in text and (reading.points or text.count(".") > 1) and POINTED.fullmatch(text):
        kind = "thousands" if text.count(".") > 1 else reading.points
        reading.rows[kind].append(number)
        text = text.replace(".", "") if kind == "thousands" else text
    try:  # float() also accepts 2020_21 and digits of other scripts, which other programs do not
        score = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        fix = "Use digits and a decimal point, or leave it empty."
        raise _Unusable("score", truncated(text), "is not a number", fix) from None
    if not math.isfinite(score) or score < 0:
        fix = "Scores are finite and at least 0; leave unknown empty."
        raise _Unusable("score", truncated(text), "is not a score", fix)
    return score


def _group(
    number: int, row: Mapping, columns: Mapping[str, str], reading: Reading
) -> tuple[str, str]:
    """The row's group, and what its `type` says. RWKU has attacks among the rows to forget."""
    text = _string(row.get(columns.get("group")))
    group = "" if text in UNKNOWN else group_of(text)
    if group is None:
        fix = "Use forget, retain or holdout."
        raise _Unusable("group", truncated(text.lower()), "is no group", fix)
    kind = _string(row.get("type"))
    if kind and group in ("", "forget") and kind.lower().partition("(")[0].strip() in ATTACKS:
        if columns["question"].lower() == "query" or str(row.get("level")).strip() == "3":
            return "attacks", kind
        reading.rows["own type"].append(number)
    return group, kind


@lru_cache(maxsize=256)
def group_of(text: str) -> str | None:
    """The group that a text names, "" for no text; None if it names none."""
    text = text.lower()
    groups = (group for prefix, group in GROUP_PREFIXES.items() if text.startswith(prefix))
    return next(groups, None if text else "")


def _tier(cell: object) -> str:
    text = _string(cell)
    tier = NO_TIER if not text or text in UNKNOWN else text.lower()
    if tier not in (*TIERS, NO_TIER):
        fix = f"Write {', '.join(TIERS)}, or leave it empty."
        raise _Unusable("tier", truncated(tier), "is no tier", fix)
    return tier


def items_of(cell: object) -> list:
    """The items of a list cell: a real list, a list written as text, or texts joined by `|`."""
    return _items(0, cell, Reading())


def _items(number: int, cell: object, reading: Reading, names: bool = False) -> list:
    """As `items_of`, counted in `reading` if not literal. names: also parted by semicolons."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in UNKNOWN:
            reading.rows["unknown"].append(number)
            return []
        if not MAYBE.match(text):
            if names and ";" in text and {*"|&"}.isdisjoint(text):  # "AT&amp;T" is one name
                reading.rows["semicolons"].append(number)
                return text.split(";")
            return text.split("|")
        items = from_json(text)
        if not isinstance(items, list):
            items = from_repr(text)
            reading.rows["list text"] += [number] * isinstance(items, list)
        cell = items if isinstance(items, list) else cell.split("|")
    elif not isinstance(cell, list):
        return [cell]
    reading.rows["empty item"] += [number] * any(map(_is_empty, cell))
    return cell


def _known(number: int, cell: object, reading: Reading) -> str:
    """A cell as text, "" if it says that nothing is known."""
    text = _string(cell)
    if text in UNKNOWN:
        reading.rows["unknown"].append(number)
        return ""
    return text


def _is_empty(cell: object) -> bool:
    return cell is None or cell != cell  # NaN, which tables write for an empty cell


def _string(cell: object) -> str:
    """A cell as text; "" for None and for NaN, which tables write for an empty cell."""
    if isinstance(cell, str):  # most are, and a file may have a million
        return cell.strip()
    return "" if _is_empty(cell) else str(cell).strip()
