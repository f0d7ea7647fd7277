"""Notes on a file's facts, in sentences: what was not read literally, and what is asked twice."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from adapop.assets import read_json
from adapop.errors import truncated
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.facts.rows import Reading
from adapop.facts.text import UNSEEN, normalized

CODES_SHOWN, VALUES_SHOWN = 12, 5
# kind of reading, as `rows` counts them -> what was done, behind the number of rows
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
    """A note on a column called label whose answers are all single digits, as classes are."""
    answers = (
        {fact.answer for fact in (*facts.forget, *facts.retain)}
        if column.strip().lower() == "label"
        else ()
    )
    if not answers or not all(len(answer) == 1 and answer.isdecimal() for answer in answers):
        return ()
    return (
        f"All answers in the column label are {', '.join(sorted(answers))}. If these are classes, "
        "choose the column that holds the answers.",
    )


def unread_split(column: str, values: Mapping[str, int]) -> tuple[str, ...]:
    """A note on a column of splits that are no groups. values: what it says -> how often."""
    counts = ", ".join(
        f"{truncated(value)!r} ({count:,})" for value, count in list(values.items())[:VALUES_SHOWN]
    )
    more = ", …" if len(values) > VALUES_SHOWN else ""
    return (
        f"The column {truncated(column)} names no group, so it is not read: {counts}{more}.",
    ) * bool(values)


def attacks(facts: FactSet) -> tuple[str, ...]:
    """A note on prompts that are not trained on."""
    count = len(facts.attacks)
    return (
        f"Attack prompts (RWKU's level 3): {count:,}. They are kept to probe with, not trained on.",
    ) * bool(count)


def unseen(facts: FactSet, rows: Mapping[str, int]) -> tuple[str, ...]:
    """A note on rows with invisible characters, which stay: a model reads them."""
    hidden = {
        rows[fact.id]: UNSEEN.findall(text)
        for group in GROUPS
        for fact in getattr(facts, group)
        if not (
            text := " ".join((*_texts_of(fact), *fact.paraphrases, *fact.alternates))
        ).isprintable()
        and UNSEEN.search(text)
    }
    if not hidden:
        return ()
    codes = sorted({f"U+{ord(letter):04X}" for letters in hidden.values() for letter in letters})
    more = ", …" if len(codes) > CODES_SHOWN else ""
    return (
        f"Rows with characters that cannot be seen ({', '.join(codes[:CODES_SHOWN])}{more}): "
        f"{len(hidden):,}, the first is row {min(hidden)}. They are kept: the model reads them.",
    )


def _texts_of(fact: Fact) -> tuple[str, ...]:
    return fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.object


def repeats(facts: Sequence[Fact], rows: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence each on questions that are asked twice: alike, with different answers, with
    different scores. rows: fact id -> row number. All rows are kept."""
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        alike[normalized(fact.question)].append(fact)
    twice = [alike_facts for alike_facts in alike.values() if len(alike_facts) > 1]
    split = [
        alike_facts
        for alike_facts in twice
        if _differ(alike_facts, lambda fact: normalized(fact.answer))
    ]
    scored = [alike_facts for alike_facts in twice if _differ(alike_facts, lambda fact: fact.score)]
    same = [
        alike_facts
        for alike_facts in twice
        if alike_facts not in split and alike_facts not in scored
    ]
    sentences = []
    if split:
        answers = " or ".join(dict.fromkeys(repr(truncated(fact.answer)) for fact in split[0]))
        sentences.append(
            f"{_named('Contradiction: asked twice with different answers', split, rows)}: "
            f"{answers}."
        )
    if scored:
        scores = " or ".join(
            "none" if fact.score is None else f"{fact.score:,.6g}" for fact in scored[0]
        )
        sentences.append(
            f"{_named('Contradiction: asked twice with different scores', scored, rows)}: {scores}."
        )
    if same:
        sentences.append(f"{_named('Asked twice, alike, so counted twice', same, rows)}.")
    return tuple(sentences)


def _differ(facts: Sequence[Fact], of: Callable[[Fact], object]) -> bool:
    return len({of(fact) for fact in facts}) > 1


def _named(what: str, groups: Sequence[Sequence[Fact]], rows: Mapping[str, int]) -> str:
    places = [str(rows[fact.id]) for fact in groups[0]]
    more = ", …" if len(places) > ROWS_SHOWN else ""
    count = f"{len(groups):,} question{'s' if len(groups) > 1 else ''}"
    return (
        f"{what}: {count}, first {truncated(groups[0][0].question)!r} in rows "
        f"{', '.join(places[:ROWS_SHOWN])}{more}"
    )
