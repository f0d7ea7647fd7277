"""General capability before and after unlearning: MMLU and HellaSwag as measured by `lm-eval`, and
RWKU's own sets, see `rwku`.

lm-eval is given the loaded network. Given a name and `peft=` instead, it would cut the embeddings
of the unlearned model alone to the tokenizer's size, and could not read a base in 4 bits.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from adapop.errors import ConfigError, ModelError
from adapop.facts.benchmarks import RWKU, checked_rows
from adapop.model.adapted import AdaptedModel
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.probes.rwku import SETS
from adapop.progress import Progress

# The paper's tasks and their metrics. Other tasks are not offered: some run downloaded code.
METRICS = {"mmlu": "acc", "hellaswag": "acc_norm"}
CPU_BATCH = 8
INSTALL = "pip install -U 'lm-eval>=0.4.13'"


@dataclass(frozen=True)
class Capability:
    """Both models' results on one task.

    task: lm-eval's name of it, or one of `rwku.SETS`. metric: "acc", or "acc_norm", where each
    option's log-probability is divided by its length in bytes; or a metric of `rwku`. original,
    unlearned: shares of right answers, [0, 1]; RWKU's entropy is in bits, its mia scores are those
    of `memorised`. *_stderr: standard errors; None for a single question."""

    task: str
    metric: str
    questions: int
    original: float
    unlearned: float
    original_stderr: float | None
    unlearned_stderr: float | None

    @property
    def difference(self) -> float:
        """unlearned - original, in the metric's unit; negative if capability was lost."""
        return self.unlearned - self.original


def capability(
    model: AdaptedModel,
    tasks: Sequence[str] = tuple(METRICS),
    limit: int | None = None,
    hub: Hub | None = None,
) -> tuple[Capability, ...]:
    """Results of both models, asked as the run asks (its chat template, with its examples if any),
    plus the task's own shots. lm-eval sets torch's seed. RWKU's sets come last. hub: where their
    rows are loaded from.

    limit: the most questions of a task, or of each of MMLU's 57 subjects. The data come from the
    Hub or its cache. Raises ConfigError: limit is below 1, or a task is unknown. ModelError,
    NetworkError: lm-eval is missing, or the data cannot be loaded."""
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}.", "It must be at least 1.")
    if unknown := [task for task in tasks if task not in (*METRICS, *SETS)]:
        fix = f"Choose {', '.join((*METRICS, *SETS))}."
        raise ConfigError(f"There is no capability task {unknown[0]!r}.", fix)
    standard = [task for task in tasks if task in METRICS]
    own = (row for task in tasks if task in SETS for row in _of_rwku(model, hub, task, limit))
    return (*(_standard(model, standard, limit) if standard else ()), *own)


def _of_rwku(
    model: AdaptedModel, hub: Hub | None, task: str, limit: int | None
) -> Iterator[Capability]:
    measure, config, columns = SETS[task]
    rows = checked_rows(hub or Hub(Progress(), Cache()), RWKU, config, "test", columns)[:limit]
    unlearned = measure(model, rows)
    with model.original():
        original = measure(model, rows)
    pairs = {metric: (values, unlearned[metric]) for metric, values in original.items()}
    for metric, both in pairs.items():
        errors = (stdev(values) / sqrt(len(rows)) if len(rows) > 1 else None for values in both)
        yield Capability(task, metric, len(rows), *map(fmean, both), *errors)


def _standard(
    model: AdaptedModel, tasks: Sequence[str], limit: int | None
) -> tuple[Capability, ...]:
    try:
        from lm_eval import simple_evaluate
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        reason = f"Measuring general capability needs lm-eval ({error})."
        raise ModelError(reason, INSTALL) from error

    def shares() -> dict[str, dict]:
        batch = "auto" if model.device.type == "cuda" else CPU_BATCH
        lm = HFLM(pretrained=model.network, tokenizer=model.tokenizer, batch_size=batch)
        how = {"limit": limit, "apply_chat_template": True, "log_samples": False}
        return simple_evaluate(lm, tasks=list(tasks), **how)["results"]

    try:
        with redirect_stdout(sys.stderr):  # keeps lm-eval's prints out of our rows
            unlearned = shares()
            with model.original():
                original = shares()
    except (OSError, ImportError, KeyError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        fix = "Their data are downloaded once from the Hugging Face Hub: check the connection."
        raise ModelError(f"{', '.join(tasks)} cannot be measured: {reason}.", fix) from error
    if any("sample_len" not in original[task] for task in tasks):
        raise ModelError(
            "This version of lm-eval does not say how many questions it asked.", INSTALL
        )
    return tuple(_compared(task, METRICS[task], original[task], unlearned[task]) for task in tasks)


def _compared(task: str, metric: str, *both: dict) -> Capability:
    errors = (side[f"{metric}_stderr,none"] for side in both)  # "N/A" where there is none
    known = (error if isinstance(error, float) else None for error in errors)
    shares = (side[f"{metric},none"] for side in both)
    return Capability(task, metric, both[0]["sample_len"], *shares, *known)
