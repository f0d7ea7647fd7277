"""Notes on a file's facts, in sentences: cells not read literally, and repeated questions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from adapop.assets import read_json
from adapop.errors import truncated
from adapop.facts.cells import Reading
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.facts.text import UNSEEN, normalized

CODES_SHOWN, VALUES_SHOWN = 12, 5
# kind of reading, see `cells.Reading.rows` -> the sentence, to follow the number of rows
SENTENCES = read_json("sets/readings.json", dict[str, str])
ROWS_SHOWN = 5


def read_otherwise(reading: Reading) -> tuple[str, ...]:
    """A sentence for each kind of reading that is not literal, with the number of its rows."""
    notes = []
    for kind, sentence in SENTENCES.items():
        numbers = list(dict.fromkeys(reading.rows.get(kind, ())))
        if not numbers:
            continue
        verb, _, rest = sentence.partition(" ")
        one, several = verb.split("|")
        rest = rest.format(base=reading.counted_from)
        if len(numbers) == 1:
            notes.append(f"1 row, row {numbers[0]}, {one} {rest}.")
        else:
            notes.append(f"{len(numbers):,} rows, the first row {numbers[0]}, {several} {rest}.")
    return tuple(notes)


def classes(facts: FactSet, column: str) -> tuple[str, ...]:
    """A note on a column called label whose answers are all single digits, like class labels."""
    answers = {fact.answer for fact in (*facts.forget, *facts.retain)}
    digits = all(len(answer) == 1 and answer.isdecimal() for answer in answers)
    if column.strip().lower() != "label" or not answers or not digits:
        return ()
    note = f"All answers in the column label are {', '.join(sorted(answers))}."
    return (f"{note} If these are classes, choose the column that holds the answers.",)


def unread_split(column: str, values: Mapping[str, int]) -> tuple[str, ...]:
    """A note on a split column whose values name no group. values: value -> number of rows."""
    counts = [f"{truncated(value)!r} ({count:,})" for value, count in values.items()]
    counts = ", ".join(counts[:VALUES_SHOWN] + ["…"] * (len(counts) > VALUES_SHOWN))
    note = f"The column {truncated(column)} names no group, so it is not read: {counts}."
    return (note,) * bool(values)


def attacks(facts: FactSet) -> tuple[str, ...]:
    """A note on attack prompts, which are not trained on."""
    note = f"Attack prompts (RWKU's level 3): {len(facts.attacks):,}."
    return (f"{note} They are kept to probe with, not trained on.",) * bool(facts.attacks)


def unseen(facts: FactSet, rows: Mapping[str, int]) -> tuple[str, ...]:
    """A note on rows with invisible characters, which are kept, because a model reads them."""
    hidden = {}
    for fact in chain.from_iterable(getattr(facts, group) for group in GROUPS):
        cells = fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.object
        text = " ".join((*cells, *fact.paraphrases, *fact.alternates))
        if not text.isprintable() and (letters := UNSEEN.findall(text)):
            hidden[rows[fact.id]] = letters
    if not hidden:
        return ()
    codes = sorted({f"U+{ord(letter):04X}" for letters in hidden.values() for letter in letters})
    named = ", ".join(codes[:CODES_SHOWN] + ["…"] * (len(codes) > CODES_SHOWN))
    count = f"{len(hidden):,}, the first is row {min(hidden)}"
    note = f"Rows with characters that cannot be seen ({named}): {count}."
    return (f"{note} They are kept: the model reads them.",)


def repeats(facts: Sequence[Fact], rows: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence on each kind of repeated question: with different answers, with different scores,
    or identical. rows: fact id -> row number. All rows are kept."""
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        alike[normalized(fact.question)].append(fact)
    twice = [group for group in alike.values() if len(group) > 1]
    split = [group for group in twice if len({normalized(fact.answer) for fact in group}) > 1]
    scored = [group for group in twice if len({fact.score for fact in group}) > 1]
    same = [group for group in twice if group not in split and group not in scored]
    sentences = []
    if split:
        answers = " or ".join(dict.fromkeys(repr(truncated(fact.answer)) for fact in split[0]))
        what = _named("Contradiction: asked twice with different answers", split, rows)
        sentences.append(f"{what}: {answers}.")
    if scored:
        values = [fact.score for fact in scored[0]]
        scores = " or ".join("none" if value is None else f"{value:,.6g}" for value in values)
        what = _named("Contradiction: asked twice with different scores", scored, rows)
        sentences.append(f"{what}: {scores}.")
    if same:
        sentences.append(f"{_named('Asked twice, alike, so counted twice', same, rows)}.")
    return tuple(sentences)


def _named(what: str, groups: Sequence[Sequence[Fact]], rows: Mapping[str, int]) -> str:
    places = [str(rows[fact.id]) for fact in groups[0]]
    places = ", ".join(places[:ROWS_SHOWN] + ["…"] * (len(places) > ROWS_SHOWN))
    count = f"{len(groups):,} question{'s' if len(groups) > 1 else ''}"
    return f"{what}: {count}, first {truncated(groups[0][0].question)!r} in rows {places}"
