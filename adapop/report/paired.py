"""Two runs on the same facts, compared fact by fact. No torch.

Intervals of two runs may overlap although one answers every fact that the other answers and more:
so a difference is tested where it is, on each fact. *Answered or not* by McNemar's exact test over
the facts that only one of both answers; the difference in recall with an interval over facts,
drawn answer by answer, because facts with one answer are forgotten together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from adapop.facts.text import normalized
from adapop.probes.intervals import Interval, Summary, clustered, mcnemar, paired
from adapop.probes.prompts import DIRECT, WORDINGS, plain
from adapop.probes.recall import KNOWN_FROM
from adapop.report.record import Record, read_record
from adapop.report.table import Table, signed
from adapop.runs.run import Run

MOST_PAIRS = 6  # with more, each is compared with the first alone
Key = tuple[str, str, str]  # id, question and answer of a fact
NOTE = (
    "Both were asked the same facts to forget. A fact counts as answered if, averaged over its "
    "wordings and over seeds, at least half of its answer is said. p is by McNemar's exact test of "
    "whether one answers more of them, not corrected for the number of rows. The difference in "
    "recall has a 95% interval over facts, resampled {drawn}, and one over the seeds that both "
    "share."
)


@dataclass(frozen=True)
class PairedFacts:
    """Two contestants on the facts to forget that both were asked, in one form."""

    form: str
    """One of `WORDINGS`."""
    facts: int
    """How many facts both were asked, at least 1."""
    answers: int
    """How many different answers these facts have: the clusters of the interval."""
    both: int
    """Facts that both answer."""
    only_first: int
    """Facts that the first alone answers."""
    only_second: int
    """Facts that the second alone answers."""
    p: float
    """McNemar's exact test, two-sided, [0, 1]."""
    difference: Interval
    """Recall of the first minus the second, [-1, 1], with its interval over facts."""
    seeds: Summary | None
    """The same over seeds that both have; None without one."""


def paired_facts(first: Run | Sequence[Run], second: Run | Sequence[Run]) -> dict[str, PairedFacts]:
    """Form -> two runs, or two methods with a run per seed, on the facts that both were asked;
    {} if they share none, or one was not measured. Raises RunError: as `read_record`."""
    sides = [[side] if isinstance(side, Run) else side for side in (first, second)]
    return paired_records(*([read_record(run) for run in side] for side in sides))


def paired_records(first: Sequence[Record], second: Sequence[Record]) -> dict[str, PairedFacts]:
    """`paired_facts`, of records."""
    results = {}
    for form in WORDINGS:
        one, other = (_recalls(side, form) for side in (first, second))
        facts = [fact for fact in one if other.get(fact) is not None]
        if facts:
            sides = [[values[fact] for fact in facts] for values in (one, other)]
            seeds = paired(*(_by_seed(side, form, facts) for side in (first, second)))
            results[form] = _compared(form, facts, *sides, seeds)
    return results


def paired_table(names: Sequence[str], sides: Sequence[Sequence[Record]]) -> Table | None:
    """The tests of contestants on the same facts, a row for a pair and a form; None if none share
    a fact. names, sides: of each contestant, its name and its runs."""
    pairs = list(combinations(range(len(names)), 2))
    pairs = pairs if len(pairs) <= MOST_PAIRS else [pair for pair in pairs if not pair[0]]
    rows = []
    for one, other in pairs:
        for form, result in paired_records(sides[one], sides[other]).items():
            rows.append((f"{names[one]} − {names[other]}, {plain(form)}", *cells_of(result)))
    head = (
        "",
        "facts",
        "answered by both",
        "first alone",
        "second alone",
        "p",
        "difference in recall",
        "over seeds",
    )
    hidden = any(record.redacted for side in sides for record in side)
    drawn = "one by one, because the answers are left out" if hidden else "answer by answer"
    note = NOTE.format(drawn=drawn)
    return Table("Tested on the same facts", head, tuple(rows), note) if rows else None


def cells_of(result: PairedFacts) -> tuple[str, ...]:
    """A pair's numbers as text, in the order of `paired_table`'s columns."""
    seeds, counts = result.seeds, (result.both, result.only_first, result.only_second)
    p = "< 0.001" if result.p < 0.001 else f"{result.p:.3f}"
    over = "–" if seeds is None or seeds.low is None else f"{seeds.interval}, {seeds.seeds} seeds"
    return f"{result.facts:,}", *map(str, counts), p, signed(result.difference), over


def _compared(
    form: str,
    facts: Sequence[Key],
    first: Sequence[float],
    second: Sequence[float],
    seeds: Summary | None,
) -> PairedFacts:
    answered = [(a >= KNOWN_FROM, b >= KNOWN_FROM) for a, b in zip(first, second)]
    alone = answered.count((True, False)), answered.count((False, True))
    clusters = [normalized(answer) or name for name, _, answer in facts]
    difference = clustered([a - b for a, b in zip(first, second)], clusters)
    counts = len(facts), len({*clusters}), answered.count((True, True))
    return PairedFacts(form, *counts, *alone, mcnemar(*alone), difference, seeds)


def _recalls(side: Sequence[Record], form: str) -> Mapping[Key, float]:
    """A fact to forget that all runs of a side were asked -> its recall, the mean over them."""
    runs = [_recalls_of(record, form) for record in side if record.after]
    shared = [fact for fact in runs[0] if all(fact in run for run in runs)] if runs else []
    return {fact: fmean(run[fact] for run in runs) for fact in shared}


def _recalls_of(record: Record, form: str) -> Mapping[Key, float]:
    after = record.after
    values = (after.direct_by_fact if form == DIRECT else after.by_fact) if after else ()
    keys = ((fact.id, fact.question, fact.answer) for fact in record.facts.forget)
    return {key: value for key, value in zip(keys, values) if value is not None}


def _by_seed(side: Sequence[Record], form: str, facts: Sequence[Key]) -> dict[int, float]:
    recalls = {record.config.seed: _recalls_of(record, form) for record in side if record.after}
    return {seed: fmean(own[fact] for fact in facts) for seed, own in recalls.items()}
