"""General capability before and after unlearning: MMLU and HellaSwag as measured by `lm-eval`.

`lm-eval` is an optional extra that provides the questions, prompts, metrics and standard errors. It is given the
network that is already loaded, once with the adapter and once without.
"""

from __future__ import annotations

import logging
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy
import torch

from adapop.errors import ConfigError, ModelError
from adapop.model.adapted import AdaptedModel

# the paper's tasks and metrics; other tasks of lm-eval are refused, because some download and run code
METRICS = {"mmlu": "acc", "hellaswag": "acc_norm"}
OWN_METRIC = "acc"
DATASETS_WITHOUT_CODE = 4  # from this major version on, `datasets` runs no code that comes with a data set
CPU_BATCH = 8
SEED = 1234  # lm-eval's default for most of its seeds


@dataclass(frozen=True)
class Capability:
    """Both models' results on one task.

    Both answer the same questions, so the error of their difference is smaller than the two standard errors suggest.
    """

    task: str
    """lm-eval's name of the task."""
    metric: str
    """Either "acc" or "acc_norm", where each option's log-probability is divided by its length in bytes."""
    questions: int
    """Number of questions asked."""
    original: float
    """The original's share of right answers, [0, 1]."""
    unlearned: float
    """The unlearned model's share of right answers, [0, 1]."""
    original_stderr: float | None
    """lm-eval's standard error of the share; None where it gives none (a single question)."""
    unlearned_stderr: float | None
    """The same for the unlearned model."""

    @property
    def difference(self) -> float:
        """unlearned - original, [-1, 1]; negative if capability was lost."""
        return self.unlearned - self.original


def capability(
    model: AdaptedModel,
    tasks: Sequence[str] = tuple(METRICS),
    limit: int | None = None,
    include: Path | None = None,
) -> tuple[Capability, ...]:
    """Both models' results on each task, in the paper's setting.

    That is zero shots (the tasks' own setting), the chat template if the tokenizer has one, and the log-softmax in the
    model's own precision. The data come from the Hugging Face Hub or its cache.

    limit: the most questions per task, and per each of MMLU's 57 subjects; all by default. include: a folder of the
    user's own lm-eval task files (they may contain code), which can then be named in `tasks` and are measured by acc.

    Raises:
        ConfigError: limit is below 1.
        ModelError: lm-eval is missing, there is no such task, its data cannot be downloaded, or it is not measured by
            acc.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}.", "It must be at least 1.")
    try:
        from lm_eval import simple_evaluate
        from lm_eval.models.huggingface import HFLM
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise ModelError(f"Measuring general capability needs lm-eval ({error}).", "pip install lm-eval") from error
    if int(version("datasets").partition(".")[0]) < DATASETS_WITHOUT_CODE:
        raise ModelError(
            f"datasets {version('datasets')} can run code that comes with a data set.", "pip install -U datasets"
        )
    own = TaskManager(include_path=include and str(include), include_defaults=False).all_tasks
    for task in tasks:
        if task not in METRICS and task not in own:
            raise ModelError(f"There is no capability task {task!r}.", f"Choose {', '.join((*METRICS, *own))}.")

    manager = TaskManager(include_path=include and str(include))

    def measured() -> Mapping:
        return simple_evaluate(
            HFLM(
                pretrained=model.network,
                tokenizer=model.tokenizer,
                batch_size="auto" if model.device.type == "cuda" else CPU_BATCH,
                trust_remote_code=False,
            ),
            tasks=list(tasks),
            task_manager=manager,
            limit=limit,
            apply_chat_template=model.tokenizer.chat_template is not None,
            log_samples=False,
            random_seed=SEED,
            numpy_random_seed=SEED,
            torch_random_seed=SEED,
            fewshot_random_seed=SEED,
        )

    with _undisturbed(model):
        try:
            unlearned = measured()
            with model.original():
                original = measured()
        except (OSError, ImportError, KeyError, ValueError) as error:
            said = str(error).partition("\n")[0] or type(error).__name__
            raise ModelError(
                f"The capability tasks {', '.join(tasks)} cannot be measured: {said}.",
                "Their data are downloaded once from the Hugging Face Hub: check the connection and the task.",
            ) from error
    return tuple(_compared(task, original, unlearned) for task in tasks)


@contextmanager
def _undisturbed(model: AdaptedModel) -> Iterator[None]:
    """A context after which mode, padding side and random generators are as before; lm-eval's prints go to stderr.

    lm-eval restores the padding side only if nothing fails, sets every global seed, and prints lines that readers of
    our `--json` output would take for rows.
    """
    training, side = model.network.training, model.tokenizer.padding_side
    drawn = random.getstate(), numpy.random.get_state()
    log = logging.getLogger("lm_eval")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        devices = [model.device] if model.device.type == "cuda" else []
        with torch.random.fork_rng(devices), redirect_stdout(sys.stderr):
            yield
    finally:
        log.setLevel(level)
        random.setstate(drawn[0])
        numpy.random.set_state(drawn[1])
        model.tokenizer.padding_side = side
        model.network.train(training)


def _compared(task: str, original: Mapping, unlearned: Mapping) -> Capability:
    metric = METRICS.get(task, OWN_METRIC)
    values = [results["results"].get(task, {}) for results in (original, unlearned)]
    if any(f"{metric},none" not in found for found in values):
        raise ModelError(f"The task {task!r} is not measured by {metric}.", "Add it to the task's metric_list.")
    before, after = (float(found[f"{metric},none"]) for found in values)
    errors = (_stderr(found.get(f"{metric}_stderr,none")) for found in values)
    return Capability(task, metric, _questions(task, original), before, after, *errors)


def _stderr(value: object) -> float | None:
    """A standard error of lm-eval's; None for "N/A"."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _questions(task: str, results: Mapping) -> int:
    """Number of questions asked in a task or, for a group such as MMLU, in all its parts."""
    parts = results["group_subtasks"].get(task)
    return sum(_questions(part, results) for part in parts) if parts else results["n-samples"][task]["effective"]
