"""Notes on a file's facts: cells not read literally, repeated questions, and what is unclear."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from adapop.errors import truncated
from adapop.facts.cells import FROM_1, READINGS, Reading
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.facts.text import UNSEEN, normalized
from adapop.remark import Remark

CODES_SHOWN, VALUES_SHOWN, ROWS_SHOWN = 12, 5, 5


def read_otherwise(reading: Reading) -> tuple[Remark, ...]:
    """A note for each kind of reading that is not literal, with the number of its rows."""
    rows = {kind: list(dict.fromkeys(reading.rows.get(kind, ()))) for kind in READINGS}
    about = {"answer_points": {"base": int(reading.counted_from == FROM_1)}}
    return tuple(
        Remark(kind, {"rows": len(numbers), "row": numbers[0], **about.get(kind, {})})
        for kind, numbers in rows.items()
        if numbers
    )


def classes(facts: FactSet, column: str) -> tuple[Remark, ...]:
    """A note on a column called label whose answers are all single digits, like class labels."""
    answers = {fact.answer for fact in (*facts.forget, *facts.retain)}
    digits = all(len(answer) == 1 and answer.isdecimal() for answer in answers)
    if column.strip().lower() != "label" or not answers or not digits:
        return ()
    return (Remark("answers_like_classes", {"answers": ", ".join(sorted(answers))}),)


def unread_split(column: str, values: Mapping[str, int]) -> tuple[Remark, ...]:
    """A note on a split column whose values name no group. values: value -> number of rows."""
    counts = [f"{truncated(value)!r} ({count:,})" for value, count in values.items()]
    counts = ", ".join(counts[:VALUES_SHOWN] + ["…"] * (len(counts) > VALUES_SHOWN))
    note = Remark("split_not_read", {"column": truncated(column), "counts": counts})
    return (note,) * bool(values)


def unseen(facts: FactSet, rows: Mapping[str, int]) -> tuple[Remark, ...]:
    """A note on rows with invisible characters, which are kept, because a model reads them."""
    hidden = {}
    for fact in chain.from_iterable(getattr(facts, group) for group in GROUPS):
        cells = fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.object
        cells += fact.two_hop, fact.two_hop_answer, fact.second_hop
        lists = fact.paraphrases, fact.alternates, fact.accepted, fact.subject_aliases
        text = " ".join((*cells, *chain.from_iterable(lists)))
        if not text.isprintable() and (letters := UNSEEN.findall(text)):
            hidden[rows[fact.id]] = letters
    if not hidden:
        return ()
    codes = sorted({f"U+{ord(letter):04X}" for letters in hidden.values() for letter in letters})
    named = ", ".join(codes[:CODES_SHOWN] + ["…"] * (len(codes) > CODES_SHOWN))
    values = {"codes": named, "count": len(hidden), "row": min(hidden)}
    return (Remark("unseen_characters", values),)


def repeats(facts: Sequence[Fact], rows: Mapping[str, int]) -> tuple[Remark, ...]:
    """A note on each kind of repeated question: with different answers, with different scores, or
    identical. rows: fact id -> row number. All rows are kept."""
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        alike[normalized(fact.question)].append(fact)
    twice = [group for group in alike.values() if len(group) > 1]
    split = [group for group in twice if len({normalized(fact.answer) for fact in group}) > 1]
    scored = [group for group in twice if len({fact.score for fact in group}) > 1]
    contradictory = {group[0].id for group in (*split, *scored)}
    same = [group for group in twice if group[0].id not in contradictory]
    notes = []
    if split:
        answers = " or ".join(dict.fromkeys(repr(truncated(fact.answer)) for fact in split[0]))
        notes.append(Remark("different_answers", _first_of(split, rows) | {"answers": answers}))
    if scored:
        scores = dict.fromkeys(fact.score for fact in scored[0])
        scores = " or ".join("none" if score is None else f"{score:,.15g}" for score in scores)
        notes.append(Remark("different_scores", _first_of(scored, rows) | {"scores": scores}))
    if same:
        notes.append(Remark("asked_twice", _first_of(same, rows)))
    return tuple(notes)


def _first_of(groups: Sequence[Sequence[Fact]], rows: Mapping[str, int]) -> dict[str, str | int]:
    """How many questions are repeated, and the first of them with the rows that ask it."""
    places = [str(rows[fact.id]) for fact in groups[0]]
    places = ", ".join(places[:ROWS_SHOWN] + ["…"] * (len(places) > ROWS_SHOWN))
    question = repr(truncated(groups[0][0].question))
    return {"questions": len(groups), "question": question, "places": places}
