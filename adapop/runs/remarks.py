"""What to know and doubt of a finished run: its controller, and whether its model is damaged."""

from adapop.remark import Remark
from adapop.runs.run import Run
from adapop.training.events import RunStarted

KNOWN = 0.5  # share of the facts that the original should answer
LEFT = 0.02  # a change of recall that is none
LOST = 0.5  # of what the original answers of the utility questions: with less left the model is damaged
ENOUGH = 0.1  # with fewer of them answered before, a fall would not show
SURVIVING = ("utility", "retain", "holdout")


def remarks(run: Run) -> tuple[Remark, ...]:
    """About its controller and its model's health."""
    config, epochs, result = run.config, run.epochs(), []
    if config.controller == "dual" and all(row.lam == 0 for row in epochs):
        result.append(Remark("controller_idle"))
        rise = max(row.drift_from_start for row in epochs)
        if rise > config.tolerance:
            result.append(Remark("damage_unseen", {"rise": rise}))
    before = run.measured(before=True)
    if before is None:
        return (*result, Remark("not_measured"))
    known = before.recall("forget")
    if known < KNOWN:
        result.append(Remark("never_known", {"known": known}))
    unmoved = nothing_forgotten(run)
    return (*result, *([unmoved] if unmoved else []), *_damage(run))


def nothing_forgotten(run: Run) -> Remark | None:
    """That a finished run made nothing forgotten, and what to raise; None if it did, or if the original model knew none
    of it."""
    before, after = run.measured(before=True), run.measured()
    if before is None or after is None:
        return None
    was, now = before.recall("forget"), after.recall("forget")
    if was < LEFT or now < was - LEFT:
        return None
    start = next(event for event in run.events() if isinstance(event, RunStarted))
    steps, rate = start.steps * start.epochs, run.config.learning_rate
    return Remark("nothing_forgotten", {"before": was, "after": now, "steps": steps, "rate": rate})


def _damage(run: Run) -> list[Remark]:
    """What the utility questions and the facts that must survive say of the model's health, against before."""
    before, after, result = run.measured(before=True), run.measured(), []
    for group in SURVIVING:
        was, now = before.recall(group), after.recall(group)
        if now is not None and now < LOST * was and was >= ENOUGH:
            result.append(Remark(f"{group}_damaged", {"before": was, "after": now}))
    was = before.recall("utility")
    if was is not None and was < ENOUGH:
        result.append(Remark("damage_unknown", {"before": was}))
    return result
