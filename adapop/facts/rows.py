"""Table rows as facts or problems. User text stays text: never a path, a URL or a formula."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from adapop.errors import truncated
from adapop.facts.cells import (
    MAX_CELL,
    MIXED,
    UNCLEAR,
    Reading,
    Unusable,
    answers_of,
    choice_index,
    choices_of,
    fault,
    is_empty,
    items_of,
    known,
    score_of,
    string,
    without_repeats,
)
from adapop.facts.fact import CHAIN, LISTS, Fact, Problem
from adapop.facts.forms import COLUMNS, RWKU_ATTACKS, group_of, key_of
from adapop.facts.text import UNKNOWN, normalized
from adapop.facts.tiers import TIERS
from adapop.facts.tiers import UNKNOWN as NO_TIER

MAX_ITEMS = 100  # of a list
OFTEN_LONG = ("answer", "accepted", "subject_aliases")
TEXTS = ("subject", "relation", "object", *CHAIN)
APART = ("choices", "correct")  # fields that are no text of a fact
TRUTHS = {"true": True, "yes": True, "1": True, "1.0": True}
TRUTHS |= {"false": False, "no": False, "0": False, "0.0": False}
# a long number as a spreadsheet shows it: its other digits are lost
SHORTENED = re.compile(r"-?\d(?:[.,]\d+)?[eE]\+\d{2,3}", re.ASCII)
UNDRAWN = ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me")  # kinds of characters without a shape
# drawn as nothing, though Unicode counts them as letters or signs
BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def fact_of(
    number: int, row: Mapping, columns: Mapping[str, str], reading: Reading | None = None
) -> tuple[str, Fact] | Problem:
    """The row's group and fact, or its problem. The group is "" where the row names none. number:
    the row number, for problems and ids. columns: our field -> the row's key."""
    reading = reading or Reading()
    try:
        texts = _texts(number, row, columns, reading)
        score = score_of(row.get(columns.get("score")), number, reading)
        group, kind = _group(number, row, columns, reading)
        tier = _tier(row.get(columns.get("tier"))) if "tier" in columns else ""
        if "correct" in columns and is_right(cell := row.get(columns["correct"])) is None:
            about = (truncated(string(cell)), "is neither true nor false", "Write true or false.")
            raise Unusable("correct", *about)
    except Unusable as unusable:
        name, *about = unusable.args
        return Problem(number, columns.get(name, name), *about)
    if group == "attacks" and kind:  # its relation is the kind of attack
        texts["relation"] = truncated(kind)
    source = "" if score is None else texts.pop("score_source", "") or f"column {columns['score']}"
    texts.pop("score_source", None)
    named = id_of(number, row, columns)
    return group, Fact(id=named, score=score, score_source=source, own_tier=tier, **texts)


def id_of(number: int, row: Mapping, columns: Mapping[str, str]) -> str:
    """The row's own id, or "row-" and its number. columns: our field -> the row's key."""
    own = string(row.get(columns.get("id")))
    return own if own and own not in UNKNOWN else f"row-{number}"


def is_right(cell: object) -> bool | None:
    """Whether a cell says that its row's answer is right; None if it says neither."""
    return TRUTHS.get(string(cell).casefold())


def with_wrong_answers(
    groups: Mapping[str, Sequence[Fact]],
    wrong: Mapping[str, Sequence[tuple[int, str]]],
    reading: Reading,
) -> dict[str, list[Fact]]:
    """The facts with the answers to their questions that the file marks as wrong, as alternates.
    wrong: normalized question -> row and answer. reading: notes the rows."""
    questions = {normalized(fact.question) for facts in groups.values() for fact in facts}
    for question, rows in wrong.items():
        kind = "wrong_answers" if question in questions else "wrong_answers_alone"
        reading.rows[kind] += [number for number, _ in rows]

    def with_wrong(fact: Fact) -> Fact:
        right = {*map(normalized, fact.answers)}
        texts = list(fact.alternates)
        for number, text in wrong.get(normalized(fact.question), ()):
            if normalized(text) in right:
                reading.rows["right_and_wrong"].append(number)
            elif text not in texts and len(texts) < MAX_ITEMS:
                texts.append(text)
        return replace(fact, alternates=tuple(texts))

    return {name: list(map(with_wrong, facts)) for name, facts in groups.items()}


def _texts(number: int, row: Mapping, columns: Mapping[str, str], reading: Reading) -> dict:
    """The fact's fields that are text or lists of text, checked. Raises Unusable."""
    cells = {name: row.get(column) for name, column in columns.items() if name not in APART}
    answers, wrong = _answers(number, row, columns, reading)
    lists = {
        name: items_of(cells[name], number, reading, name != "paraphrases")
        for name in LISTS
        if name in cells
    }
    if lists or answers != [cells["answer"]] or not _is_short_text(cells.values()):
        for name, cell in {**cells, "answer": answers, **lists}.items():
            for text in _few(name, cell) if name == "answer" or name in lists else (cell,):
                if why := fault(text):
                    raise Unusable(name, *why)
    present = [name for name in (*TEXTS, "score_source") if name in cells]
    texts: dict = {name: known(number, cells[name], reading) for name in present}
    texts["question"] = string(cells["question"])
    texts["answer"], *others = [text for text in map(string, answers) if text] or [""]
    for name in ("question", "answer"):
        if not texts[name]:
            raise Unusable(name, "", "is empty", "Fill the cell or delete the row.")
        if texts[name] in UNKNOWN:
            reading.rows[f"{name}_unknown"].append(number)
        _check_visible(name, texts[name])
    if texts["answer"][0] + texts["answer"][-1] in ("[]", "{}"):
        reading.rows["answer_in_brackets"].append(number)
    texts |= {name: tuple(filter(None, map(string, items))) for name, items in lists.items()}
    if others or texts.get("accepted"):
        accepted = without_repeats((*others, *texts.get("accepted", ())), texts["answer"])
        texts["accepted"] = tuple(_few("answer", accepted, MAX_ITEMS))
        reading.rows["several_answers"] += [number] * bool(accepted)
        for text in accepted:
            _check_visible("answer" if others else "accepted", text)
    named = [id_of(number, row, columns)]
    items = chain(named, *([text] if isinstance(text, str) else text for text in texts.values()))
    if any("+" in text and SHORTENED.fullmatch(text) for text in items):
        reading.rows["digits_lost"].append(number)
    return texts if texts.get("alternates") else {**texts, "alternates": wrong}


def _check_visible(name: str, text: str) -> None:
    """Raises Unusable: the text has only characters that cannot be seen, which any reply has."""
    if all(letter in BLANK or unicodedata.category(letter) in UNDRAWN for letter in text):
        codes = ", ".join(dict.fromkeys(f"U+{ord(letter):04X}" for letter in text[:3]))
        message = f"has only characters that cannot be seen ({codes})"
        raise Unusable(name, "", message, "Fill the cell or delete the row.")


def _is_short_text(cells: Iterable[object]) -> bool:
    """Whether all cells together are short printable text: a quick test that most rows pass."""
    try:
        text = "".join(cells)
    except TypeError:
        return False
    return len(text) <= MAX_CELL and text.isprintable()


def _few(name: str, items: Sequence, most: int = 0) -> Sequence:
    """The items. Raises Unusable if there are more than `most`: by default 1,000 for `OFTEN_LONG`,
    which may have repeats, else 100."""
    if len(items) > (most or (MAX_ITEMS * 10 if name in OFTEN_LONG else MAX_ITEMS)):
        message = f"has {len(items):,} items; at most {MAX_ITEMS} are read"
        raise Unusable(name, "", message, "Shorten the list.")
    return items


def _answers(
    number: int, row: Mapping, columns: Mapping[str, str], reading: Reading
) -> tuple[list, tuple[str, ...]]:
    """(right answers, best first; wrong answers, which are the other choices). Raises Unusable."""
    cell = row.get(columns["answer"])
    if isinstance(cell, bool):  # BoolQ, StrategyQA
        reading.rows["answer_truth_value"].append(number)
        return ["yes" if cell else "no"], ()
    answers = answers_of(cell)
    if isinstance(cell, str):
        if len(answers) != 1 or answers[0] is not cell:
            reading.rows["list_as_answer"].append(number)
        elif key_of(columns["answer"]) in COLUMNS["accepted"]:
            answers = cell.split("|")
    if len(answers) > 1 and any(map(is_empty, answers)):
        reading.rows["empty_items"].append(number)
    given = row.get(columns.get("choices"))
    if reading.counted_from is None or not (choices := choices_of(given)):
        if given and reading.counted_from is not None:  # the other rows do have choices
            message = "are not two or more separate choices"
            raise Unusable("choices", truncated(given), message, "Separate two or more by |.")
        return answers, ()
    if reading.counted_from == UNCLEAR:
        message = "may be a choice or the number of a choice"
        fix = "Write letters, or choices that are not numbers."
        raise Unusable("answer", truncated(cell), message, fix)
    texts, given = list(choices.values()), [answer for answer in answers if string(answer)]
    places = [choice_index(answer, choices, reading.counted_from) for answer in given]
    says_texts = all(str(answer).strip() in texts for answer in given)
    if reading.counted_from == MIXED and (None in places or says_texts):
        return answers, ()
    if None in places:
        message = f"points to none of its {len(choices)} choices"
        fix = f"Use {', '.join(choices)}, or the choice itself."
        raise Unusable("answer", truncated(cell), message, fix)
    reading.rows["answer_points"] += [number] * bool(places)
    wrong = tuple(text for i, text in enumerate(texts) if i not in places)
    return [texts[place] for place in places], wrong


def _group(
    number: int, row: Mapping, columns: Mapping[str, str], reading: Reading
) -> tuple[str, str]:
    """(group, `type`) of the row. RWKU has attacks among rows to forget: their group is "attacks".
    Raises Unusable."""
    text = string(row.get(columns.get("group")))
    group = "" if text in UNKNOWN else group_of(text)
    if group is None:
        fix = "Use forget, retain or holdout."
        raise Unusable("group", truncated(text.lower()), "is not a group", fix)
    kind = string(row.get("type"))
    if kind and group in ("", "forget") and kind.lower().partition("(")[0].strip() in RWKU_ATTACKS:
        if columns["question"].lower() == "query" or str(row.get("level")).strip() == "3":
            return "attacks", kind
        reading.rows["type_not_read"].append(number)
    return group, kind


def _tier(cell: object) -> str:
    text = string(cell)
    tier = NO_TIER if not text or text in UNKNOWN else text.lower()
    if tier not in (*TIERS, NO_TIER):
        fix = f"Write {', '.join(TIERS)}, or leave it empty."
        raise Unusable("tier", truncated(tier), "is not a tier", fix)
    return tier
