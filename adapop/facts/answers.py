"""The right answers in the cells of a row: one, several, or the label of one of the choices."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from string import ascii_uppercase
from unicodedata import normalize

from adapop.facts.lists import parsed
from adapop.facts.text import normalized

VALUES = ("value", "text", "answer", "str", "spans")  # keys of the answer in an object
ALIASES = ("aliases", "normalizedvalue", "normalizedaliases")  # TriviaQA's, also with underscores
BESIDE = frozenset(
    "answerstart id type matchedwikientityname normalizedmatchedwikientityname "
    "provenance meta".split()
).union(VALUES, ALIASES)
TEXTS, LABELS = ("text", "texts", "choices", "options"), ("label", "labels", "key")
LABELLED = re.compile(r"\(?(\w)\s?[).:、．](?:\s+|(?<!\d.))(\S.*)", re.DOTALL)  # B. Brno; never 1.5
# the name of a column that holds one choice
NAMED = re.compile(r"(?:option|opt|choice|answer)[ _]?([A-J]|[1-9])", re.IGNORECASE)
SEVERAL = re.compile(r"[A-J](?:\s?[,;/+&]?\s?[A-J])+")  # labels of several choices
# key and value that mark one of several answers as wrong
WRONG = frozenset(f"{name} {no}" for name in ("correct", "iscorrect") for no in ("false", "0"))
NESTED = 3  # SQuAD and KILT have lists of objects of lists
FROM_0, FROM_1, MIXED, UNCLEAR = 0, 1, 2, -1


def answers_of(cell: object, depth: int = NESTED) -> list:
    """The right answers, best first, in a list, an object, or a text of either; [cell] for any
    other cell. Items that are not text are returned unchanged, so that an error can name them."""
    if isinstance(cell, str):
        if (value := parsed(cell)) is None:
            return [cell]
        read = answers_of(value, depth)
        known = not isinstance(value, dict) or set(map(_plain, value)) <= BESIDE
        plain = known and all(item is None or isinstance(item, str | float) for item in read)
        return read if plain else [cell]
    if isinstance(cell, dict) and depth:
        parts = {_plain(name): part for name, part in cell.items()}
        names = [name for name in VALUES if name in parts][:1]
        if names:
            names += [name for name in ALIASES if name in parts]
            return [item for name in names for item in _all_of(parts[name], depth - 1)]
    return _all_of(cell, depth) if isinstance(cell, list) else [cell]


def _all_of(cell: object, depth: int) -> list:
    answers = []
    for item in cell if isinstance(cell, list) else [cell]:
        pairs = item.items() if isinstance(item, dict) else ()
        if WRONG.isdisjoint(f"{_plain(name)} {part}".lower() for name, part in pairs):
            answers += answers_of(item, depth - 1) if pairs and depth else [item]
    return answers


def _plain(name: object) -> str:
    return str(name).lower().replace("_", "")


def choices_of(cell: object) -> dict[str, str]:
    """Label in capitals -> choice; A, B ... for a cell without labels. Empty unless the cell has
    two or more choices with different labels."""
    if isinstance(cell, str):
        cell = parsed(cell) or (cell.split("|") if "|" in cell else cell.strip().splitlines())
    if isinstance(cell, dict):
        parts = {_plain(name): part for name, part in cell.items()}
        texts = next((parts[name] for name in TEXTS if name in parts), None)
        labels = next((parts[name] for name in LABELS if name in parts), None)
        if texts is None and labels is None:
            texts, labels = list(cell.values()), list(cell)
    elif isinstance(cell, list) and cell and all(isinstance(item, dict) for item in cell):
        pairs = [{_plain(name): part for name, part in item.items()} for item in cell]
        texts = [next((pair[name] for name in TEXTS if name in pair), None) for pair in pairs]
        labels = [next((pair[name] for name in LABELS if name in pair), None) for pair in pairs]
        labels = None if None in labels else labels
    else:
        texts, labels = cell, None
    is_list = isinstance(texts, list)
    if not is_list or not all(isinstance(text, str) and text.strip() for text in texts):
        return {}
    labels = list(map(str, labels if isinstance(labels, list) else ascii_uppercase))
    choices = {label.strip().upper(): text.strip() for label, text in zip(labels, texts)}
    parts = [LABELLED.fullmatch(text) for text in choices.values()]
    # "A. Brno", ...
    numbered = [*choices], [*"123456789"[: len(parts)]]
    if all(parts) and [part[1].upper() for part in parts] in numbered:
        choices = {part[1].upper(): part[2] for part in parts}
    return choices if len(choices) == len(texts) > 1 else {}


def counted_from(rows: Iterable[tuple[object, Mapping[str, str]]]) -> int | None:
    """The number of the first choice, 0 or 1, where a file's answers point to choices. `MIXED`:
    some answers point, others are a choice's text. `UNCLEAR`: they can be either. None: none points
    to a choice. rows: answer cell and choices of each row."""
    numbers, count = set(), Counter()
    for cell, choices in rows:
        for answer in answers_of(cell):
            text, label = str(answer).strip(), _label(answer, choices)
            is_number = label.isdecimal() and len(label) < 4 and int(label) <= len(choices)
            points = label in choices or is_number
            literal = text in choices.values()
            points = points or bool(
                SEVERAL.fullmatch(text) and choices.keys() >= {*text} - {*" ,;/+&"} and not literal
            )
            count[literal, points] += 1
            if points and label.isdecimal() and label not in choices:
                numbers.add((int(label), len(choices)))
    literal, pointing = count[True, False], count[False, True]
    if not literal and not pointing:
        return UNCLEAR if count[True, True] else None
    from_1 = all(number for number, _ in numbers) and any(one == most for one, most in numbers)
    if literal or not pointing:
        return MIXED if pointing else None
    return FROM_1 if from_1 else FROM_0


def choice_index(answer: object, choices: Mapping[str, str], base: int) -> int | None:
    """The index, from 0, of the choice that an answer points to; None if there is none. base: from
    `counted_from`. With `MIXED`, a choice's text takes precedence; numbers count from 0."""
    text, texts = str(answer).strip(), list(choices.values())
    if base == MIXED and text in texts:
        return texts.index(text)
    if (label := _label(answer, choices)) in choices:
        return list(choices).index(label)
    first = FROM_1 if base == FROM_1 else FROM_0
    place = int(label) - first if label.isdecimal() and len(label) < 4 else -1
    return place if 0 <= place < len(choices) else None


def _label(answer: object, choices: Mapping[str, str]) -> str:
    """An answer read as a label, in capitals: the letter of b, B., (B), "option B" or "B. Brno", or
    a whole number without the .0 that some tables add. Other text is only put in capitals."""
    text = normalize("NFKC", str(answer)).strip()
    if named := NAMED.fullmatch(text):
        return ascii_uppercase[int(named[1]) - 1] if named[1].isdecimal() else named[1].upper()
    if (part := LABELLED.fullmatch(text)) and choices.get(part[1].upper()) == part[2]:
        return part[1].upper()
    bare = re.sub(r"(?<=\d)\.0$", "", text.strip("().: ")) if len(text) <= 4 else text
    return (bare or text).upper()


def without_repeats(texts: Iterable[str], taken: str) -> tuple[str, ...]:
    """The texts that differ from `taken`, and from each other, in more than case and spacing."""
    first = {normalized(taken): ""}
    for text in texts:
        first.setdefault(normalized(text), text)
    return tuple(filter(None, first.values()))
