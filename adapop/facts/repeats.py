"""Facts that a file holds twice, and what it says of them each time."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from adapop.errors import shown
from adapop.facts.fact import Fact
from adapop.facts.text import asked

ROWS_SHOWN = 5


def repeats(facts: Sequence[Fact], rows: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence each on questions that are asked twice: alike, with different answers, with different scores.

    rows: fact id -> row number. All rows are kept.
    """
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        alike[asked(fact.question)].append(fact)
    twice = [alike_facts for alike_facts in alike.values() if len(alike_facts) > 1]
    split = [alike_facts for alike_facts in twice if _differ(alike_facts, lambda fact: asked(fact.answer))]
    scored = [alike_facts for alike_facts in twice if _differ(alike_facts, lambda fact: fact.score)]
    same = [alike_facts for alike_facts in twice if alike_facts not in split and alike_facts not in scored]
    sentences = []
    if split:
        answers = " or ".join(dict.fromkeys(repr(shown(fact.answer)) for fact in split[0]))
        sentences.append(f"{_named('Contradiction: asked twice with different answers', split, rows)}: {answers}.")
    if scored:
        scores = " or ".join("none" if fact.score is None else f"{fact.score:,.6g}" for fact in scored[0])
        sentences.append(f"{_named('Contradiction: asked twice with different scores', scored, rows)}: {scores}.")
    if same:
        sentences.append(f"{_named('Asked twice, alike, so counted twice', same, rows)}.")
    return tuple(sentences)


def _differ(facts: Sequence[Fact], of: Callable[[Fact], object]) -> bool:
    return len({of(fact) for fact in facts}) > 1


def _named(what: str, groups: Sequence[Sequence[Fact]], rows: Mapping[str, int]) -> str:
    places = [str(rows[fact.id]) for fact in groups[0]]
    more = ", …" if len(places) > ROWS_SHOWN else ""
    count = f"{len(groups):,} question{'s' if len(groups) > 1 else ''}"
    return f"{what}: {count}, first {shown(groups[0][0].question)!r} in rows {', '.join(places[:ROWS_SHOWN])}{more}"
