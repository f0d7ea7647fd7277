"""Contestants of a comparison: runs that differ only by seed as one, with their ranges."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TypeVar

from adapop.config.run import RunConfig
from adapop.facts.fact import TIERS, FactSet
from adapop.probes.intervals import Interval, difference, wilson
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.figures import Outcome
from adapop.report.figures.outcomes import ATTACKED
from adapop.report.record import Attack, Record
from adapop.report.table import reading
from adapop.runs.run import Run
from adapop.training.events import Measured

R = TypeVar("R", Record, Run)
FORMS = (DIRECT, REWORDED)
# collapse, as shares of what the original answers: METHODS trap 11; the second as in remarks
NOTHING_RETAINED, UTILITY_LOST = 0.1, 0.5
OVER_FACTS = reading("over_facts")
OVER_SEEDS = (
    "Mean over {seeds} seeds, and from the lowest seed to the highest; that is a range, "
    "not a 95 % interval."
)


@dataclass(frozen=True)
class Contestant:
    """mark: its number. records: its runs, one a seed. sha256: of the facts they all worked on."""

    mark: str
    records: tuple[Record, ...]
    sha256: str

    @property
    def label(self) -> str:
        """The name of its only run, else its number, its method and its preset."""
        return self.given or f"{self.mark} {self.records[0].title}"

    @property
    def given(self) -> str:
        """The name that its only run was given, "" without one and of several."""
        return self.records[0].name if len(self.records) == 1 else ""

    @property
    def name(self) -> str:
        """Its label, and the number of finished seeds if several."""
        seeds = len(self.records)
        finished = (
            f"{seeds} seeds"
            if len(self.measured) == seeds
            else f"{len(self.measured)} of {seeds} seeds"
        )
        return self.label if seeds == 1 else f"{self.label}, {finished}"

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The final measurement of each run that came to its end."""
        return tuple(record.after for record in self.records if record.after is not None)

    @property
    def over(self) -> str:
        """What its ranges are over: seeds if several, else facts; empty without a measurement."""
        return ("", "facts", "seeds")[min(2, len(self.measured))]

    @property
    def collapsed(self) -> str:
        """Why it is left out of findings (it no longer answers what it should keep), else ""."""
        retained, utility = (
            self.recall("retain", DIRECT, "all"),
            self.recall("utility", DIRECT, "all"),
        )
        if retained is not None and retained.mean < NOTHING_RETAINED * self._known("retain"):
            return f"of the retained facts only {retained.mean:.0%} are left"
        if utility is not None and utility.mean < UTILITY_LOST * self._known("utility"):
            return f"only {utility.mean:.0%} of the questions that are no facts still work"
        return ""

    def _known(self, group: str) -> float:
        """The original's recall of a group, [0, 1]; 1 where not measured."""
        known = recall_of(
            [record.before for record in self.records if record.before], group, DIRECT, "all"
        )
        return 1.0 if known is None else known.mean

    def recall(self, group: str, form: str, tier: str, name: str = "recall") -> Interval | None:
        """Final recall of a group and tier, with its range over facts or seeds; None where nobody
        measured it. name: see `Measured.recall`."""
        return recall_of(self.measured, group, form, tier, name)

    @property
    def gap(self) -> Interval | None:
        """`Measured.gap`; of several seeds their mean, with the lowest and the highest."""
        gaps = [gap for one in self.measured if (gap := one.gap)]
        return _spread(gaps) if gaps else None

    def lead(self, form: str) -> Interval | None:
        """Recall of popular minus that of rare facts to forget in one form; None without both
        tiers. Asked in other words that is the gap."""
        return self.gap if form == REWORDED else lead_of(self.measured, form)

    def lead_over_facts(self, form: str) -> Interval | None:
        """The same with its range over facts, of several seeds too; None without both tiers."""
        if self.lead(form) is None:
            return None
        tiers = [
            [one.row("forget", form, tier) for one in self.measured] for tier in ("popular", "rare")
        ]
        popular, rare = (
            wilson(fmean(row["recall"] for row in rows), rows[0]["facts"]) for rows in tiers
        )
        return difference(popular, rare)

    def value(self, group: str, field: str) -> Interval | None:
        """Another metric of a group's trained questions, with its range over seeds if several."""
        rows = [row for one in self.measured if (row := one.row(group, DIRECT, "all"))]
        values = [row[field] for row in rows if row.get(field) is not None]
        return _spread([Interval(value, value, value) for value in values]) if values else None

    def worst_attack(self, tier: str) -> Attack | None:
        """The attack that gets most out of a tier in any of its runs; None if none was probed."""
        cells = [worst for record in self.records if (worst := record.worst_attack(tier))]
        attacks = [Attack(cell.kind, cell.unlearned.recall) for cell in cells]
        return max(attacks, key=lambda one: one.recall.mean, default=None)

    def second_guess(self, tier: str) -> Interval | None:
        """The share of facts to forget whose right answer is the first or second guess, over facts
        or over seeds; None where none of its runs was probed."""
        shares = [share for record in self.records if (share := record.second_guess(tier))]
        return _spread(shares) if shares else None

    def standing(self, state: str, tier: str) -> Interval | None:
        """The share of a tier's facts to forget in a state of `distance.STATES`, asked in other
        words, over facts or over seeds; None where there is no oracle."""
        shares = [
            record.distance.shares(REWORDED, tier) for record in self.records if record.distance
        ]
        states = [share[state] for share in shares if share]
        return _spread(states) if states else None

    def outcome(self, form: str) -> Outcome:
        """Its numbers for the figures. form: see `outcome_of`."""
        title = self.given or self.records[0].title
        drawn = outcome_of(self.mark, title, self.recall, form, self.lead)
        attacks = {tier: worst for tier in TIERS if (worst := self.worst_attack(tier))}
        attacked = {tier: worst.recall for tier, worst in attacks.items()}
        recall = {**drawn.recall, ATTACKED: attacked}
        return replace(drawn, recall=recall, collapsed=self.collapsed, label=self.given)


def contestants(records: Sequence[Record]) -> list[Contestant]:
    """Groups runs into contestants, numbered in order of first appearance."""
    return [
        Contestant(str(mark), runs, sha256)
        for mark, (sha256, runs) in enumerate(by_contestant(records), start=1)
    ]


def but_for_seed(config: RunConfig) -> RunConfig:
    """Settings that affect numbers, without the seed: the key by which runs are grouped."""
    # the best epoch is chosen by what is measured after each
    measure = config.measure if config.keep == "best" else "end"
    return replace(config, seed=0, frames=0, measure=measure)


def by_contestant(runs: Sequence[R]) -> list[tuple[str, tuple[R, ...]]]:
    """Runs of each contestant in order of first appearance, with the hash of its facts.

    Seeds belong together if nothing else that decides numbers differs, the facts included; a run
    with the same seed again is a repetition, which adds no seed and stands for itself.
    """
    grouped: dict[tuple[str, str, int], list[R]] = {}
    # to compare two sets takes a tenth of the time that a hash takes
    hashes: list[tuple[FactSet, str]] = []
    for run in runs:
        config, facts = run.config, run.facts  # a run reads them from its folder
        settings = json.dumps(asdict(but_for_seed(config)), sort_keys=True)
        sha256 = next((known for others, known in hashes if others == facts), None)
        if sha256 is None:
            sha256 = facts.sha256
            hashes.append((facts, sha256))
        repeated = sum(
            key[:2] == (settings, sha256) and config.seed in [one.config.seed for one in others]
            for key, others in grouped.items()
        )
        grouped.setdefault((settings, sha256, repeated), []).append(run)
    return [(sha256, tuple(members)) for (_, sha256, _), members in grouped.items()]


def outcome_of(
    mark: str,
    name: str,
    recall: Callable[[str, str, str], Interval | None],
    form: str,
    lead: Callable[[str], Interval | None] | None = None,
) -> Outcome:
    """Recall of one contestant, or of the original model, as it is drawn. recall: of a group, form
    and tier. form: in which the facts to forget are counted; those held out always as trained,
    where damage shows most. lead: see `Contestant.lead`."""
    by_form = {
        wording: {
            tier: value for tier in TIERS if (value := recall("forget", wording, tier)) is not None
        }
        for wording in FORMS
    }
    leads = {wording: value for wording in FORMS if lead and (value := lead(wording)) is not None}
    return Outcome(
        mark,
        name,
        by_form,
        recall("forget", form, "all"),
        recall("holdout", DIRECT, "all"),
        leads=leads,
    )


def recall_of(
    measured: Sequence[Measured], group: str, form: str, tier: str, name: str = "recall"
) -> Interval | None:
    """Recall with its range: over facts for one measurement, over seeds for several."""
    rows = [
        row for one in measured if (row := one.row(group, form, tier)) and row.get(name) is not None
    ]
    return _spread([wilson(row[name], row["facts"]) for row in rows]) if rows else None


def lead_of(measured: Sequence[Measured], form: str) -> Interval | None:
    """Recall of popular minus that of rare facts to forget in one form with its range, as
    `recall_of`, whichever rewordings were asked; None without both tiers."""
    pairs = [
        [recall_of([one], "forget", form, tier) for tier in ("popular", "rare")] for one in measured
    ]
    leads = [difference(*pair) for pair in pairs if None not in pair]
    return _spread(leads) if leads else None


def _spread(intervals: Sequence[Interval]) -> Interval:
    """A single measurement unchanged; for several their mean with minimum and maximum."""
    if len(intervals) == 1:
        return intervals[0]
    means = [one.mean for one in intervals]
    return Interval(fmean(means), min(means), max(means))
