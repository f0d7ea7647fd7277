"""What to know about the facts of a file, in sentences: above all what was not read literally, with
counts."""

from collections.abc import Mapping

from adapop.assets import read_json
from adapop.errors import shown
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.facts.rows import Reading
from adapop.facts.text import UNSEEN

CODES_SHOWN, VALUES_SHOWN = 12, 5
# kind of reading, as `rows` counts them -> what was done, behind the number of rows
SENTENCES = read_json("sets/readings.json", dict[str, str])


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
    """A note on a column called label whose answers are all single digits, as classes are."""
    answers = {fact.answer for fact in (*facts.forget, *facts.retain)} if column.strip().lower() == "label" else ()
    if not answers or not all(len(answer) == 1 and answer.isdecimal() for answer in answers):
        return ()
    return (
        f"All answers in the column label are {', '.join(sorted(answers))}. If these are classes, choose the column "
        "that holds the answers.",
    )


def unread_split(column: str, values: Mapping[str, int]) -> tuple[str, ...]:
    """A note on a column of splits that are no groups. values: what it says -> how often."""
    counts = ", ".join(f"{shown(value)!r} ({count:,})" for value, count in list(values.items())[:VALUES_SHOWN])
    more = ", …" if len(values) > VALUES_SHOWN else ""
    return (f"The column {shown(column)} names no group, so it is not read: {counts}{more}.",) * bool(values)


def attacks(facts: FactSet) -> tuple[str, ...]:
    """A note on prompts that are not trained on."""
    count = len(facts.attacks)
    return (f"Attack prompts (RWKU's level 3): {count:,}. They are kept to probe with, not trained on.",) * bool(count)


def unseen(facts: FactSet, rows: Mapping[str, int]) -> tuple[str, ...]:
    """A note on rows with invisible characters, which a model reads all the same. They are not
    changed."""
    hidden = {
        rows[fact.id]: UNSEEN.findall(text)
        for group in GROUPS
        for fact in getattr(facts, group)
        if not (text := " ".join((*_texts_of(fact), *fact.paraphrases, *fact.alternates))).isprintable()
        and UNSEEN.search(text)
    }
    if not hidden:
        return ()
    codes = sorted({f"U+{ord(letter):04X}" for letters in hidden.values() for letter in letters})
    more = ", …" if len(codes) > CODES_SHOWN else ""
    return (
        f"Rows with characters that cannot be seen ({', '.join(codes[:CODES_SHOWN])}{more}): {len(hidden):,}, the "
        f"first is row {min(hidden)}. They are kept: the model reads them.",
    )


def _texts_of(fact: Fact) -> tuple[str, ...]:
    return fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.object
