"""The columns of a question: original, unlearned, oracle, and other runs on the same facts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from adapop.errors import RunError
from adapop.facts.world import sandbox_facts
from adapop.paths import ORACLE as ORACLE_FOLDER
from adapop.paths import SHIPPED
from adapop.probes.inspection import ORACLE, ORIGINAL, UNLEARNED, Chosen
from adapop.runs.run import Run

MOST_BESIDE = 4  # columns beside the original and the unlearned model


def columns_of(
    run: Run, beside: Sequence[tuple[str, Run | None]] = (), epoch: int | None = None
) -> tuple[Chosen, ...]:
    """The columns that are asked: original, unlearned, then those beside them, in their order.

    beside: (title, run) of each, None for the oracle of `run`. epoch: whose adapter is asked; None
    for the run's result. Raises RunError: there is no such epoch, no oracle, no unlearned model, or
    more than `MOST_BESIDE`."""
    if epoch is not None and not run.checkpoint(epoch).is_dir():
        raise RunError(f"The run kept no epoch {epoch}.", "Choose another one.")
    if len(beside) > MOST_BESIDE:
        message = f"{len(beside)} columns beside the two are too many."
        raise RunError(message, f"Choose at most {MOST_BESIDE}.")
    after = f"Unlearned, epoch {epoch}" if epoch else "Unlearned"
    chosen = [Chosen("Original", ORIGINAL, run.folder, epoch)]
    chosen.append(Chosen(after, UNLEARNED, run.folder, epoch))
    for title, other in beside:
        if other is None and not has_oracle(run):
            message = "No model that never read these facts is known here."
            raise RunError(message, "Adopt the pair with an oracle, or choose another column.")
        if other is not None and other.chosen_epoch is None:
            message = f"Run {other.id} has no unlearned model yet."
            raise RunError(message, "Let it finish an epoch.")
        kind = UNLEARNED if other else ORACLE
        chosen.append(Chosen(title, kind, (other or run).folder))
    return tuple(chosen)


def has_oracle(run: Run) -> bool:
    """Whether a model is known that never read these facts to forget, but all others."""
    world = run.config.model
    if run.config.oracle:  # an adopted run names its own
        return True
    if world not in SHIPPED or not (SHIPPED[world] / ORACLE_FOLDER).is_dir():
        return False
    own = {(fact.question, fact.answer) for fact in sandbox_facts(world).forget}
    return asked_facts(run) <= own


def asked_facts(run: Run) -> frozenset[tuple[str, str]]:
    """The questions and answers of the facts to forget, by which runs can be compared."""
    return _asked_facts(run, (run.folder / "facts.jsonl").stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _asked_facts(run: Run, _changed: int) -> frozenset[tuple[str, str]]:
    return frozenset((fact.question, fact.answer) for fact in run.given.forget)
