"""Contestants of a comparison: runs that differ only by seed form one contestant, with ranges."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TypeVar

from adapop.facts.fact import TIERS, FactSet
from adapop.probes.intervals import Interval, difference, wilson
from adapop.probes.prompts import DIRECT, REWORDED, WORDINGS
from adapop.report.figures import Outcome
from adapop.report.figures.outcomes import ATTACKED
from adapop.report.record import Attack, Record
from adapop.runs.run import Run
from adapop.training.events import Measured

OVER_SEEDS_NOTE = (
    "Mean over {seeds} seeds, with the range from the lowest seed to the highest, which is not a "
    "95% interval."
)

R = TypeVar("R", Record, Run)
# shares of the original's recall below which a model counts as collapsed
NOTHING_RETAINED, UTILITY_LOST = 0.1, 0.5
NEARLY_NONE = 0.05  # recall at or below which a model did not know the facts
OVER_FACTS = (
    "95% interval over facts: where a number might lie for other facts like these (Wilson; for a "
    "difference, Newcombe). If answers can be partly right, it is wider than necessary. It says "
    "nothing about other seeds."
)
# why the numbers of a contestant do not compare with the others'
KNEW_NOTHING, OTHER_FACTS = "its model did not know these facts", "on other facts"


@dataclass(frozen=True)
class Contestant:
    """mark: its number. records: its runs, one per seed. sha256: of the facts, the same in all.
    apart: why its numbers do not compare with the others', else ""."""

    mark: str
    records: tuple[Record, ...]
    sha256: str
    apart: str = ""

    @property
    def original(self) -> tuple[object, ...]:
        """Equal for contestants that have the same facts and began as the same model."""
        config = self.records[0].config
        taught = config.start == "sft" and (config.start_epochs, config.start_rate)
        return self.sha256, self.records[0].place or config.model, config.revision, taught

    @property
    def label(self) -> str:
        """The name of its only run, else its number, its method and its preset."""
        return self.given or f"{self.mark} {self.records[0].title}"

    @property
    def given(self) -> str:
        """The name that its only run was given; "" without a name or with several runs."""
        return self.records[0].name if len(self.records) == 1 else ""

    @property
    def name(self) -> str:
        """Its label, and the number of finished seeds if several."""
        seeds, done = len(self.records), len(self.measured)
        finished = f"{seeds} seeds" if done == seeds else f"{done} of {seeds} seeds"
        return self.label if seeds == 1 else f"{self.label}, {finished}"

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The final measurement of each finished run."""
        return tuple(record.after for record in self.records if record.after is not None)

    @property
    def over(self) -> str:
        """ "seeds" if its ranges are over several runs, else "facts"; "" without a measurement."""
        return ("", "facts", "seeds")[min(2, len(self.measured))]

    @property
    def collapsed(self) -> str:
        """Why it does not compete (it lost too much that it should keep), else ""."""
        retained, utility = (self.recall(group, DIRECT, "all") for group in ("retain", "utility"))
        if retained is not None and retained.mean < NOTHING_RETAINED * self._known("retain"):
            return f"only {retained.mean:.0%} of the retain set is still answered"
        if utility is not None and utility.mean < UTILITY_LOST * self._known("utility"):
            return f"only {utility.mean:.0%} of the other questions are still answered"
        return ""

    def _known(self, group: str) -> float:
        """The original's recall of a group, [0, 1]; 1 where not measured."""
        measured = [record.before for record in self.records if record.before]
        known = recall_of(measured, group, DIRECT, "all")
        return 1.0 if known is None else known.mean

    def recall(self, group: str, form: str, tier: str, name: str = "recall") -> Interval | None:
        """Final recall of a group and tier, with its range. name: see `Measured.recall`."""
        return recall_of(self.measured, group, form, tier, name)

    def lead(self, form: str) -> Interval | None:
        """Recall of popular minus rare facts to forget in one form, [-1, 1]; None without both
        tiers. For reworded questions it is `Measured.gap`; for several seeds see `_spread`."""
        if form != REWORDED:
            return lead_of(self.measured, form)
        return _spread([gap for one in self.measured if (gap := one.gap)])

    def value(self, group: str, field: str) -> Interval | None:
        """Another metric of a group's trained questions, with its range over seeds if several."""
        values = [one.recall(group, name=field) for one in self.measured]
        return _spread([Interval(value, value, value) for value in values if value is not None])

    def worst_attack(self, tier: str) -> Attack | None:
        """The attack that recovers most of a tier in any of its runs; None if none was probed."""
        cells = [worst for record in self.records if (worst := record.worst_attack(tier))]
        attacks = [Attack(cell.kind, cell.unlearned.recall) for cell in cells]
        return max(attacks, key=lambda one: one.recall.mean, default=None)

    def second_guess(self, tier: str) -> Interval | None:
        """The share of a tier's facts to forget whose right answer is the first or second guess,
        with its range over facts or seeds; None if none of its runs was probed."""
        return _spread([share for one in self.records if (share := one.second_guess(tier))])

    def standing(self, state: str, tier: str) -> Interval | None:
        """The share of a tier's facts to forget in a state of `distance.STATES`, asked in other
        words, with its range over facts or seeds; None without an oracle."""
        distances = (record.distance for record in self.records if record.distance)
        shares = (shares for one in distances if (shares := one.shares(REWORDED, tier)))
        return _spread([share[state] for share in shares])

    def outcome(self, form: str) -> Outcome:
        """Its numbers for the figures. form: see `outcome_of`."""
        title = self.given or self.records[0].title
        drawn = outcome_of(self.mark, title, self.recall, form, self.lead)
        attacks = {tier: worst for tier in TIERS if (worst := self.worst_attack(tier))}
        recall = {**drawn.recall, ATTACKED: {tier: one.recall for tier, one in attacks.items()}}
        about = dict(collapsed=self.collapsed, given=self.given, apart=self.apart)
        return replace(drawn, recall=recall, **about)


def contestants(records: Sequence[Record]) -> list[Contestant]:
    """Groups runs into contestants, numbered in order of first appearance."""
    grouped = by_contestant(records)
    begun = [(sha256, [one.before for one in runs if one.before]) for sha256, runs in grouped]
    return [
        Contestant(str(mark), runs, sha256, apart)
        for mark, ((sha256, runs), apart) in enumerate(zip(grouped, reasons_apart(begun)), start=1)
    ]


def reasons_apart(begun: Sequence[tuple[str, Sequence[Measured]]]) -> list[str]:
    """Why each contestant's numbers do not compare with the others', "" where they do: its model
    answered next to none of its facts before training, or it has other facts than most that did.
    begun: hash of the facts, and measurements before training, of each."""
    known = [recall_of(measured, "forget", DIRECT, "all") for _, measured in begun]
    ignorant = [share is not None and share.mean <= NEARLY_NONE for share in known]
    sets = [sha256 for (sha256, _), unknown in zip(begun, ignorant) if not unknown]
    usual = max(dict.fromkeys(sets), key=sets.count, default="")
    others = [OTHER_FACTS if sha256 != usual else "" for sha256, _ in begun]
    return [KNEW_NOTHING if unknown else other for unknown, other in zip(ignorant, others)]


def comparable(runs: Sequence[Run]) -> list[Run]:
    """The runs whose numbers compare, see `reasons_apart`; all of them if none do."""
    grouped = by_contestant(runs)
    begun = []
    for sha256, seeds in grouped:
        measured = [one for run in seeds for one in run.events() if isinstance(one, Measured)]
        begun.append((sha256, [one for one in measured if one.epoch == 0]))
    pairs = zip(grouped, reasons_apart(begun))
    return [run for (_, seeds), apart in pairs if not apart for run in seeds] or list(runs)


def ranges_over(compared: Sequence[Contestant]) -> list[str]:
    """Sentences on whether the ranges of contestants are over facts or over seeds."""
    seeds = sorted({len(one.measured) for one in compared if one.over == "seeds"})
    notes = [OVER_FACTS] if any(one.over == "facts" for one in compared) else []
    return notes + [OVER_SEEDS_NOTE.format(seeds=" or ".join(map(str, seeds)))] * bool(seeds)


def by_contestant(runs: Sequence[R]) -> list[tuple[str, tuple[R, ...]]]:
    """Runs of each contestant in order of first appearance, with the hash of its facts.

    Runs form one contestant if they have the same facts and, but for the seed, the same settings
    that affect numbers; a second run with the same seed forms a contestant of its own."""
    grouped: dict[tuple[str, str, int], list[R]] = {}
    hashes: list[tuple[FactSet, str]] = []  # comparing sets is ten times faster than hashing
    for run in runs:
        config, facts = run.config, run.facts  # a run reads them from its folder
        # the only value of `measure` that is valid with all other settings
        but_for_seed = replace(config, seed=0, frames=0, measure="every-epoch")
        identity = getattr(run, "place", ""), asdict(but_for_seed)
        settings = json.dumps(identity, sort_keys=True)
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
    """Recall of one contestant, or of the original model, for the figures. recall: of a group, form
    and tier. form: of the questions on facts to forget; held-out facts are always asked as trained,
    where damage shows most. lead: see `Contestant.lead`."""
    by_form, leads = {}, {}
    for wording in WORDINGS:
        values = {tier: recall("forget", wording, tier) for tier in TIERS}
        by_form[wording] = {tier: value for tier, value in values.items() if value is not None}
        if lead and (value := lead(wording)) is not None:
            leads[wording] = value
    forget, holdout = recall("forget", form, "all"), recall("holdout", DIRECT, "all")
    return Outcome(mark, name, by_form, forget, holdout, leads=leads)


def recall_of(
    measured: Sequence[Measured], group: str, form: str, tier: str, name: str = "recall"
) -> Interval | None:
    """Recall with its range: over facts for one measurement, over seeds for several."""
    rows = [row for one in measured if (row := one.row(group, form, tier))]
    return _spread([wilson(row[name], row["facts"]) for row in rows if row.get(name) is not None])


def lead_of(measured: Sequence[Measured], form: str) -> Interval | None:
    """Recall of popular minus rare facts to forget in one form, with a range as in `recall_of`;
    over the rewordings that each measurement asked; None without both tiers."""
    leads = []
    for one in measured:
        ends = [recall_of([one], "forget", form, tier) for tier in ("popular", "rare")]
        leads += [difference(*ends)] if None not in ends else []
    return _spread(leads)


def _spread(intervals: Sequence[Interval]) -> Interval | None:
    """One interval unchanged; for several the mean, minimum and maximum of their means; None
    without any."""
    if len(intervals) < 2:
        return intervals[0] if intervals else None
    means = [one.mean for one in intervals]
    return Interval(fmean(means), min(means), max(means))
