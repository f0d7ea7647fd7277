"""What a finished run came to, and the change of its settings that mends what went wrong."""

from dataclasses import dataclass, replace

from adapop.config.run import RunConfig
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.runs.amount import total_steps, with_steps
from adapop.runs.remarks import ENOUGH, LEFT, LOST, SURVIVING
from adapop.runs.run import Run
from adapop.training.events import Measured

FORGOT, PARTLY, NOTHING, DAMAGED, UNKNOWN = "forgot", "partly", "nothing", "damaged", "unknown"
LESS = 0.5  # the learning rate of another try after damage, as a share
MORE = {NOTHING: 10, PARTLY: 2}  # times the steps


@dataclass(frozen=True)
class Result:
    """What a finished run came to.

    kind: FORGOT; PARTLY, more than half of what was known is still answered; NOTHING; DAMAGED, what was to be kept is
    gone as well; UNKNOWN, the original answered none of it. before, after: recall of the facts to forget in [0, 1].
    form: how they were asked, "reworded" where that was measured. lost: (group, before, after) of what is damaged.
    """

    kind: str
    before: float
    after: float
    form: str
    steps: int
    rate: float
    lost: tuple[str, float, float] | None = None


def result_of(run: Run) -> Result | None:
    """What the run came to, None until its last measurement."""
    before, after = run.measured(before=True), run.measured()
    if before is None or after is None:
        return None
    form = DIRECT if after.recall("forget", REWORDED) is None else REWORDED
    was, now = before.recall("forget", form), after.recall("forget", form)
    lost = _lost(before, after)
    moved = max(abs(_recall(before, wording) - _recall(after, wording)) for wording in {DIRECT, form})
    if lost:
        kind = DAMAGED
    elif _recall(before, DIRECT) < LEFT:
        kind = UNKNOWN
    elif moved <= LEFT:
        kind = NOTHING
    else:
        kind = PARTLY if now > LOST * was else FORGOT
    steps = total_steps(len(run.facts.forget), run.config)
    return Result(kind, was, now, form, steps, run.config.learning_rate, lost)


def mended(run: Run, result: Result) -> RunConfig | None:
    """The settings of another try: more steps, or where there are no more a higher rate; after damage a lower rate.
    None where there is nothing to mend."""
    config = run.config
    if result.kind == DAMAGED:
        return replace(config, learning_rate=float(f"{config.learning_rate * LESS:.2g}"))
    if result.kind not in MORE:
        return None
    rows, times = len(run.facts.forget), MORE[result.kind]
    more = with_steps(rows, config, times * result.steps)
    if total_steps(rows, more) >= 1.5 * result.steps:
        return more
    return replace(config, learning_rate=float(f"{config.learning_rate * times:.2g}"))


def _recall(measured: Measured, form: str) -> float:
    return measured.recall("forget", form) or 0.0


def _lost(before: Measured, after: Measured) -> tuple[str, float, float] | None:
    """The first group that must survive and of which more than half is gone."""
    for group in SURVIVING:
        was, now = before.recall(group), after.recall(group)
        if was is not None and now is not None and was >= ENOUGH and now < LOST * was:
            return group, was, now
    return None
