"""What one should know about a finished run before believing its table."""

from __future__ import annotations

from adapop.runs import Run


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
    known = run.measured(before=True).recall("forget")
    if known < 0.5:
        said.append(
            f"The original model answers only {known:.0%} of these facts: what was never known cannot be forgotten."
        )
    utility = run.measured().recall("utility")
    if utility is not None and utility < 0.5:
        said.append(f"The model is badly damaged: only {utility:.0%} of the non-fact questions still work.")
    return tuple(said)
