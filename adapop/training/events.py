"""The events of a run: frozen dataclasses, to and from JSON, one event on each line of the log.

The log is append-only, and it decides what is true about a run. A resumed run starts with
`RunStarted(resumed_from=k)`; `current` then drops the events of an interrupted epoch, so that a
reader sees one uninterrupted run.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, ClassVar

from pydantic import Field

from adapop.assets import Count, Share, as_kind, parse_json
from adapop.errors import Diverged, RunError, truncated
from adapop.facts.fact import GROUPS, TIERS
from adapop.probes.distance import Distance
from adapop.probes.intervals import Interval, difference, wilson
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.remark import Remark
from adapop.sums import FIELD
from adapop.training.controller import Drift


@dataclass(frozen=True, kw_only=True)
class Event:
    """Any event of a run."""

    kind: ClassVar[str]
    """The class's name in snake case, as in the log."""
    run: str
    """Id of the run."""
    time: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    """Seconds since 1970, stamped when the event is written."""

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)([A-Z])", r"_\1", cls.__name__).lower()


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A run began or was resumed."""

    model: str
    """As in `RunConfig`."""
    method: str
    """As in `RunConfig`."""
    facts: str
    """Name of the set."""
    forget: Count
    """Number of facts to be forgotten."""
    retain: Count
    """Number of facts that are trained on so that they stay."""
    holdout: Count
    """Number of facts that should stay and are never trained on."""
    epochs: Count
    """Number of epochs the run is to have in all."""
    steps: Count
    """Optimiser steps in an epoch."""
    resumed_from: Count = 0
    """The epoch it continues after, 0 for a new run."""


@dataclass(frozen=True, kw_only=True)
class StepDone(Event):
    """One optimiser step. Losses: of its rows before the update, in nats per answer token."""

    epoch: Count
    """From 1."""
    step: Count
    """Within the epoch, from 1."""
    forget_loss: float
    """The method's forget loss, in its own units."""
    nll_forget: float
    """Mean negative log-likelihood of the answers to forget."""
    nll_by_tier: dict[str, float]
    """`nll_forget` by tier; a tier without rows in the step is absent."""
    nll_retain: float | None
    """The same for the answers to retain; None without a retain term, or while its weight is 0
    (except with PDU's controller)."""
    gradient_norm: float
    """Norm of the whole step's gradient, before it is clipped."""
    learning_rate: float
    """The learning rate of the step, by the schedule."""


@dataclass(frozen=True, kw_only=True)
class EpochDone(Drift, Event):
    """The controller's row of an epoch."""

    @property
    def row(self) -> Drift:
        """The controller's state after this epoch."""
        return Drift(**{item.name: getattr(self, item.name) for item in fields(Drift)})


@dataclass(frozen=True, kw_only=True)
class Measured(Event):
    """The measurements after an epoch."""

    epoch: Count
    """0 is the original model."""
    rows: tuple[dict[str, int | float | str | None], ...]
    """`probes.measure.Measurement`s as dicts: one for each group, form and tier."""
    full: bool = False
    """Whether the rows are the full tables, made at the end for original and unlearned model."""
    by_fact: tuple[Share | None, ...] = ()
    """Recall of each fact to forget, the mean over its held-out rewordings, in the facts' order;
    None for one without rewordings, or not measured. Empty if `full` is False, or all are None."""
    direct_by_fact: tuple[Share | None, ...] = ()
    """Recall of each fact to forget, asked as trained; None for one that was not asked."""
    most_by_fact: tuple[Share | None, ...] = ()
    """The highest recall of each over its rewordings; None as in `by_fact`."""
    held_out_by_fact: tuple[Share | None, ...] = ()
    """Recall of each held-out fact, asked as trained; None for one that was not asked."""

    @property
    def gap(self) -> Interval | None:
        """The popularity gap, in [-1, 1]: recall of popular minus recall of rare facts to forget,
        over all their held-out rewordings, with its 95% interval over facts (Newcombe). Above 0,
        popular facts are left. None if `full` is False or a tier was not asked in rewordings."""
        popular, rare = (self.share("forget", REWORDED, tier) for tier in ("popular", "rare"))
        return difference(popular, rare) if self.full and popular and rare else None

    def row(self, group: str, form: str, tier: str) -> dict | None:
        """The row of a group and tier asked in one form; None where that was not measured."""
        key = group, form, tier
        rows = (row for row in self.rows if (row["group"], row["form"], row["tier"]) == key)
        return next(rows, None)

    def share(self, group: str, form: str, tier: str) -> Interval | None:
        """Recall of that `row` with its 95% interval over facts; None if not measured."""
        row = self.row(group, form, tier)
        return wilson(row["recall"], row["facts"]) if row else None

    def recall(
        self, group: str, form: str = "direct", tier: str = "all", name: str = "recall"
    ) -> float | None:
        """ROUGE-L recall in [0, 1] of a group and tier asked in one form, None if not measured.

        group: "forget", "retain", "holdout" or "utility". form: "direct" (as trained) or
        "reworded". tier: "rare", "middle", "popular", "unknown" or "all". name: "recall", or
        "strict" for recall without folding."""
        return (self.row(group, form, tier) or {}).get(name)


@dataclass(frozen=True, kw_only=True)
class ComparedToOracle(Event):
    """Distance to a model that never read the facts to forget, where there is one."""

    epoch: Count
    """As in `Measured`."""
    distance: Distance
    """Distance from the unlearned model to the oracle."""


@dataclass(frozen=True, kw_only=True)
class Measuring(Event):
    """Progress of a measurement that takes more than a few seconds."""

    epoch: Count
    """As in `Measured`."""
    asked: Count
    """Questions answered so far."""
    of: Count
    """Number of questions in all."""


@dataclass(frozen=True, kw_only=True)
class Teaching(Event):
    """Progress of the fine-tuning with which a run with start "sft" begins."""

    epoch: Count
    """From 1."""
    epochs: Count
    """Number of epochs of fine-tuning in all."""
    step: Count
    """Within the epoch, from 1."""
    steps: Count
    """Optimiser steps in an epoch."""


@dataclass(frozen=True, kw_only=True)
class Taught(Event):
    """The fine-tuning of start "sft" is done, by this run or, reused, by an earlier one."""

    notes: tuple[Remark, ...]
    """What was taught and learned, and what to change if that is too little."""


@dataclass(frozen=True, kw_only=True)
class Saved(Event):
    """A checkpoint is complete on disk: the run can be resumed or probed from here."""

    epoch: Count
    """The epoch whose checkpoint it is."""


@dataclass(frozen=True, kw_only=True)
class RunStopped(Event):
    """The run was stopped, and can be resumed."""

    epoch: Count
    """The last finished epoch, whose adapter is kept; 0 for none."""
    out_of_time: bool = False
    """Whether its seconds were used up, rather than a user asking for it."""


@dataclass(frozen=True, kw_only=True)
class RunFailed(Event):
    """The run cannot go on. The adapter of the last saved epoch is kept."""

    message: str
    """What happened, and where."""
    fix: str = ""
    """What to do next."""
    diverged: bool = False
    """Whether a number was not finite: with the same settings it would be so again."""


@dataclass(frozen=True, kw_only=True)
class RunDone(Event):
    """The run is complete."""

    epoch: Count
    """The last epoch that was trained."""
    seconds: float
    """Seconds since the last start, without loading."""
    notes: tuple[str | Remark, ...] = field(default=())
    """What to know about it; sentences in older versions' runs and from methods of one's own."""


EVENTS: dict[str, type[Event]] = {event.kind: event for event in Event.__subclasses__()}
# the fields of `probes.measure.Measurement`, which needs torch; older runs have fewer
ROW = frozenset(
    "group tier form facts recall words strict cosine nll delta_logprob delta_rank hidden_cosine "
    "kl probability exact_memorization extraction_strength truth_ratio mia_loss mia_min_k "
    "mia_min_k_plus_plus mia_zlib".split()
)
FORMS = (DIRECT, REWORDED, *FORM_OF_WAY.values())
WORDS = {"group": GROUPS, "form": FORMS, "tier": (*TIERS, "unknown", "all")}
KEPT = "The adapter of the last saved epoch is kept. Lower the learning rate."
FROM_START = "drift_from_start"  # written with an epoch, for readers of the log alone
TERMINAL = (RunStopped, RunFailed, RunDone)


def full_measurement(events: Sequence[Event], before: bool = False) -> Measured | None:
    """The last full measurement of the result, or of the original; None until it is made."""
    measured = (event for event in reversed(events) if isinstance(event, Measured))
    full = (event for event in measured if event.full)
    return next((event for event in full if (event.epoch == 0) == before), None)


def to_json(event: Event) -> str:
    """One line of JSON with the event's `kind`. Raises Diverged: a number is not finite."""
    content = {"kind": event.kind, **asdict(event)}
    try:
        if isinstance(event, EpochDone):
            content[FROM_START] = event.drift_from_start
        return json.dumps(content, ensure_ascii=False, allow_nan=False)
    except ValueError:
        reason = f"A number in the event {event.kind!r} is not finite: the model is destroyed."
        raise Diverged(reason, KEPT) from None


def from_json(line: str) -> Event:
    """The event in a line of `to_json`. Raises ValueError, TypeError, KeyError, AttributeError: it
    is no event, or a value has another type or is out of range. RunError: its kind is unknown."""
    content = parse_json(line)
    kind = content.pop("kind", None)
    content.pop(FIELD, None)  # compared by who reads a whole log
    if not isinstance(kind, str | None):
        raise ValueError("its kind is no text")
    if kind not in EVENTS:
        fix = "The run was written by another version; start it again."
        raise RunError(f"Unknown event kind {truncated(kind)!r}.", fix)
    if kind == EpochDone.kind:
        content.pop(FROM_START, None)
    event = as_kind(content, EVENTS[kind])
    for row in event.rows if isinstance(event, Measured) else ():
        _check_row(row)
    return event


def _check_row(row: dict[str, Any]) -> None:
    """Raises ValueError: it is not a table's row (known words, numbers, recalls in [0, 1])."""
    texts = {name: value for name, value in row.items() if isinstance(value, str)}
    recalls = [row["recall"], 0 if row.get("strict") is None else row["strict"]]
    strange = texts.keys() != WORDS.keys() or not row.keys() <= ROW
    if strange or any(text not in WORDS[name] for name, text in texts.items()):
        raise ValueError("a row has an unknown field or word")
    if not row["facts"] >= 1 or not all(0 <= share <= 1 for share in recalls):
        raise ValueError("a row's facts or recall are out of range")


def current(events: Iterable[Event]) -> list[Event]:
    """The events that an uninterrupted run would have logged, and every start."""
    valid: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted):
            valid = [old for old in valid if _survives(old, event.resumed_from)]
        # it replaces the first of two full measurements by an older version
        if isinstance(event, Measured) and event.full:
            again = (True, event.epoch)
            valid = [e for e in valid if (getattr(e, "full", 0), getattr(e, "epoch", 0)) != again]
        valid.append(event)
    return valid


def _survives(event: Event, epoch: int) -> bool:
    """Whether an event still holds if the run resumes after this epoch; 0: from its beginning."""
    if isinstance(event, RunStarted):
        return True
    if isinstance(event, (*TERMINAL, Teaching, Measuring)):
        return False
    if isinstance(event, Taught):
        return epoch > 0
    return 0 < epoch >= event.epoch  # type: ignore[attr-defined]  # all others have one
