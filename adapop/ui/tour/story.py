"""What the tour can tell at a moment: numbers of its two runs and of its two facts. Nothing here is typed in."""

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass

from adapop.config.run import RunConfig
from adapop.facts.fact import Fact
from adapop.probes.prompts import ProbeRow
from adapop.probes.verdict import KNOWN_FROM, verdicts
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Event, Measured, RunStarted

LEAKS = "Leaks when reworded"
# the two facts, and the exponents that AdaPop gives them
TwoFacts = namedtuple("TwoFacts", "rare popular beta_rare beta_popular")
# before, now: recall of the rare and of the popular facts to forget, asked directly; now is after `epoch` of `epochs`
Training = namedtuple("Training", "forget retain epochs epoch before now")
# worst: the highest drift. lam, alpha: the highest values they took. unseen: drift of the first epoch from before
# training, which a controller does not see whose reference is that epoch; None where it is not. over: the run is done
Guard = namedtuple("Guard", "tolerance worst worst_epoch lam alpha0 alpha unseen over")
# what AdaPop's model said to the famous fact's own question (direct) and to one rewording (question, answer), whether
# that was right (known), and how many of the rewordings brought the answer back
Reworded = namedtuple("Reworded", "direct direct_known question answer known back rewordings")
# recall of the facts to forget by tier, and of those that no training saw, all reworded. leaks: facts that only a
# rewording brings back. kept_rare, kept_popular: in how many of `ways` the model still answers each of the two facts
Remains = namedtuple("Remains", "rare popular every holdout leaks facts kept_rare kept_popular ways")


@dataclass(frozen=True)
class Story:
    """All of it; None is what the runs have not brought yet. awaited: what is being waited for, in words, and
    percent, how far it is. trouble: why it will not come."""

    pair: TwoFacts
    training: Training | None = None
    guard: Guard | None = None
    reworded: Reworded | None = None
    adapop: Remains | None = None
    wga: Remains | None = None
    awaited: str = ""
    percent: int = 0
    trouble: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing more will come."""
        return self.reworded is not None and self.adapop is not None and self.wga is not None


def training_of(events: Sequence[Event]) -> Training | None:
    """None before the first measurement."""
    measured = [event for event in events if isinstance(event, Measured) and not event.full]
    if not measured:
        return None
    start = next(event for event in events if isinstance(event, RunStarted))
    before, now = (_by_tier(event) for event in (measured[0], measured[-1]))
    return Training(start.forget, start.retain, start.epochs, measured[-1].epoch, before, now)


def _by_tier(event: Measured) -> tuple[float, float]:
    return event.recall("forget", tier="rare"), event.recall("forget", tier="popular")


def guard_of(events: Sequence[Event], config: RunConfig) -> Guard | None:
    """None before the end of the first epoch."""
    rows = [event for event in events if isinstance(event, EpochDone) and event.epoch > 0]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row.drift)
    return Guard(
        tolerance=config.tolerance,
        worst=worst.drift,
        worst_epoch=worst.epoch,
        lam=max(row.lam for row in rows),
        alpha0=config.alpha0,
        alpha=max(row.alpha for row in rows),
        unseen=rows[0].drift_from_start if config.reference == "epoch_1" else None,
        over=rows[-1].epoch == config.epochs,
    )


def reworded_of(rows: Sequence[ProbeRow]) -> Reworded:
    """From one fact's rows, the trained question first. Shows a rewording that brings the answer back, if one does."""
    direct, *others = rows
    shown = next((row for row in others if answered(row)), others[0])
    return Reworded(
        direct=direct.unlearned.text,
        direct_known=answered(direct),
        question=shown.prompt,
        answer=shown.unlearned.text,
        known=answered(shown),
        back=sum(map(answered, others)),
        rewordings=len(others),
    )


def outcome_of(run: Run, found: Sequence[ProbeRow], pair: TwoFacts) -> Remains:
    """Of a run that is done and whose facts to forget were probed, directly and reworded."""
    measured, kept = run.measured(), {fact.id: rows_of(found, fact) for fact in (pair.rare, pair.popular)}
    rare, popular, every = (measured.recall("forget", "reworded", tier) for tier in ("rare", "popular", "all"))
    verdict_by_fact = verdicts(found)
    return Remains(
        rare=rare,
        popular=popular,
        every=every,
        holdout=measured.recall("holdout", "reworded"),
        leaks=sum(verdict.name == LEAKS for verdict in verdict_by_fact.values()),
        facts=len(verdict_by_fact),
        kept_rare=sum(map(answered, kept[pair.rare.id])),
        kept_popular=sum(map(answered, kept[pair.popular.id])),
        ways=len(kept[pair.rare.id]),
    )


def rows_of(found: Sequence[ProbeRow], fact: Fact) -> list[ProbeRow]:
    """What was found of one fact, the trained question first."""
    return [row for row in found if row.fact_id == fact.id]


def answered(row: ProbeRow) -> bool:
    """Whether the unlearned model still says it."""
    return row.unlearned.recall >= KNOWN_FROM
