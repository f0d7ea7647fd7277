"""What to know and doubt of a finished run: its controller, and whether its model is damaged."""

from adapop.errors import number_of
from adapop.runs.run import Run
from adapop.training.events import RunStarted

KNOWN = 0.5  # share of the facts that the original should answer
LEFT = 0.02  # a change of recall that is none
LOST = 0.5  # of what the original answers of the utility questions: with less left the model is damaged
ENOUGH = 0.1  # with fewer of them answered before, a fall would not show
SURVIVING = {
    "utility": "the non-fact questions",
    "retain": "the facts to retain",
    "holdout": "the facts held out",
}


def remarks(run: Run) -> tuple[str, ...]:
    """About its controller and its model's health, in sentences."""
    config, epochs = run.config, run.epochs()
    said = []
    if config.controller == "dual" and all(row.lam == 0 for row in epochs):
        said.append("The controller was never activated: drift stayed within tolerance, so lambda is 0 throughout.")
        worst = max(row.drift_from_start for row in epochs)
        if worst > config.tolerance:
            said.append(
                f"Against the loss before training, though, the retain loss rose by up to {worst:.0%}: the reference "
                "is taken after epoch 1, so what was damaged before is not seen."
            )
    before = run.measured(before=True)
    if before is None:
        return (*said, "Nothing was measured, as the run's settings say (measure: off). Probe it to see what is left.")
    known = before.recall("forget")
    if known < KNOWN:
        said.append(
            f"The original model answers only {known:.0%} of these facts: what was never known cannot be forgotten."
        )
    unmoved = nothing_forgotten(run)
    return (*said, *([unmoved] if unmoved else []), *_damage(run))


def nothing_forgotten(run: Run) -> str:
    """A sentence: that a finished run made nothing forgotten, and what to raise; "" if it did, or if the original model
    knew none of it."""
    before, after = run.measured(before=True), run.measured()
    if before is None or after is None:
        return ""
    was, now = before.recall("forget"), after.recall("forget")
    if was < LEFT or now < was - LEFT:
        return ""
    start = next(event for event in run.events() if isinstance(event, RunStarted))
    steps = start.steps * start.epochs
    return (
        f"Nothing was forgotten: recall of the facts to forget was {was:.2f} and is {now:.2f}, after "
        f"{number_of(steps, 'step')} at {run.config.learning_rate:g}. Raise the learning rate (--lr) "
        "or the epochs (--epochs), or lower the batch, which gives more steps."
    )


def _damage(run: Run) -> list[str]:
    """What the utility questions and the facts that must survive say of the model's health, against before."""
    before, after, said = run.measured(before=True), run.measured(), []
    for group, what in SURVIVING.items():
        was, now = before.recall(group), after.recall(group)
        if now is None or now >= LOST * was:
            continue
        if was >= ENOUGH:
            said.append(
                f"The model is badly damaged: only {now:.0%} of {what} still work, of {was:.0%} before. Lower the "
                "learning rate (--lr) or the epochs (--epochs), or raise the weight of what is retained (--alpha0)."
            )
    was = before.recall("utility")
    if was is not None and was < ENOUGH:
        said.append(
            f"Whether the model is damaged is not seen: it answered only {was:.0%} of the other questions before."
        )
    return said
