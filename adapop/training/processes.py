"""Several processes, started by `accelerate launch` or `torchrun`, that train one adapter. Each has
a device of its own.

Each process, of rank 0 to R - 1, holds the model, whole or (`sharded`) with a part of its frozen
weights, and computes the whole plan, which is seeded. It takes its share of a step's rows and
divides by the counts of the whole step, so the sum of all gradients is that of a single process. It
measures its share of the batches; the results are the same. Ranks exchange their status before each
collective on a device: a failure in one ends all. The status goes over the CPU, in torch's own
messages between processes of one user. Only rank 0 writes; the others read its files.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import torch
import torch.distributed
from torch import Tensor

from adapop.errors import AdaPopError, ConfigError, RunError, Stopped
from adapop.model.adapted import AdaptedModel, Work
from adapop.model.out_of_memory import is_out_of_memory, too_large
from adapop.model.tokens import Row
from adapop.training.gradient import StepGradient, StepSeen
from adapop.training.sharded import READ_BY_ONE, Shards, asked_for, sync

Result = TypeVar("Result")
Part = TypeVar("Part")
# one process may wait long for another; gloo notices at once if one dies
PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, seen from one of them. All must make the same calls in the same
    order. An error in one is raised in every process."""

    rank: int = 0
    """Its own number, from 0."""
    count: int = 1
    """How many there are, at least 1."""
    shards: Shards | None = None
    """The weights that are divided among the processes; None if each holds all."""

    @property
    def first(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def share(self, rows: Sequence[Part]) -> list[Part]:
        """This process's rows, every R-th of them; none if there are more processes than rows."""
        return list(rows[self.rank :: self.count])

    def gathered(self, work: Callable[[], Result]) -> list[Result]:
        """The result of the work in each process, by rank. Raises the work's own error if it failed
        here. RunError: it failed elsewhere, or a process ended. Stopped: another is to stop."""
        if self.count == 1:
            return [work()]
        result = failure = None
        try:
            result = work()
        # the others must be told, whatever it is; it is raised again below
        except Exception as error:  # noqa: BLE001
            failure = error
        outcomes: list[Any] = [None] * self.count
        if self.shards:
            self.shards.attend()
        sync(lambda: torch.distributed.all_gather_object(outcomes, (_error_of(failure), result)))
        if failure is not None:
            raise failure
        for rank, (failed, _) in enumerate(outcomes):
            if failed is not None and failed[2]:
                raise Stopped(*failed[:2])
            if failed is not None:
                reason = f"In process {rank} (numbered from 0 to {self.count - 1}): {failed[0]}"
                raise RunError(reason, failed[1])
        return [result for _, result in outcomes]

    def together(self, work: Callable[[], Result]) -> Result:
        """The result of the work in this process, once all have done it. Raises as `gathered`."""
        results: list[Result] = []
        self.gathered(lambda: results.append(work()))
        return results[0]

    def in_turn(self, work: Callable[[], Result]) -> Result:
        """The result of the work in this process, after all have done it, one after another. Raises
        as `gathered`."""
        results: list[Result] = []

        def done() -> None:
            results.append(work())

        for turn in range(self.count):
            self.gathered(done if turn == self.rank else lambda: None)
        return results[0]

    def led(self, work: Callable[[], Result]) -> Result:
        """The result of the work, which the first process alone does. Raises as `gathered`."""
        return self.gathered(work if self.first else lambda: None)[0]

    def align(self, parameters: Sequence[Tensor]) -> None:
        """Copies the first process's parameter values to all processes."""
        if self.count > 1:
            for parameter in parameters:
                sync(partial(torch.distributed.broadcast, parameter.data, src=0))

    def add_up(self, parameters: Sequence[Tensor], work: Callable[[], StepSeen]) -> StepSeen:
        """Does the work, which adds gradients; then each process has the sum of all gradients, and
        the results of all. A parameter with a gradient in no process gets none. Raises as
        `gathered`."""
        device = parameters[0].device
        own = self.together(work)
        reached = [parameter.grad is not None for parameter in parameters]
        parts = self.gathered(lambda: (_moved(own, torch.device("cpu")), reached))
        anywhere = [any(has) for has in zip(*(has for _, has in parts))]
        trained = [p for p, has in zip(parameters, anywhere) if has]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        if grads:
            flat = torch.cat([grad.flatten() for grad in grads])
            sync(lambda: torch.distributed.all_reduce(flat))
            for parameter, whole in zip(trained, flat.split([grad.numel() for grad in grads])):
                parameter.grad = whole.view_as(parameter).clone()
        return _joined([_moved(part, device) for part, _ in parts])


ALONE = Ranks()


@contextmanager
def joined() -> Iterator[Ranks]:
    """A context in which this process is one of those that its launcher started; alone if there is
    no launcher. Raises ConfigError: there are more processes than GPUs, or the launcher asks to
    divide the weights in a way that is not ours."""
    count, here = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    if count == 1:
        yield ALONE
        return
    divides = asked_for(os.environ)
    backend = "gloo"
    if torch.cuda.is_available():
        if here >= (gpus := torch.cuda.device_count()):
            fix = f"Launch at most {gpus}."
            raise ConfigError(f"Process {here} has no GPU of its own: {gpus} seen.", fix)
        torch.cuda.set_device(here)
        backend = "cpu:gloo,cuda:nccl"
    os.environ[READ_BY_ONE] = "false"
    torch.distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks(torch.distributed.get_rank(), count, Shards() if divides else None)
    finally:
        torch.distributed.destroy_process_group()


@contextmanager
def shared(ranks: Ranks, model: AdaptedModel) -> Iterator[None]:
    """A context in which all processes share generating and scoring, and each gets all results.

    On a CPU the pieces are those of a single process, so the results are the same. `on_replies` is
    called in the first process alone. Results of a piece must be plain values, because tensors
    would stay on their device. Calls inside raise as `Ranks.gathered`."""
    if ranks.count == 1:
        yield
        return
    divided, report = model.divided, model.on_replies

    def among_all(rows: Sequence[Any], size: int, work: Work) -> Iterator[Any]:
        size = min(ranks.gathered(lambda: size))  # memory may have run out in one of them
        # a GPU has room for so many rows that a single piece could leave other ranks idle
        if model.device.type == "cuda":
            size = min(size, max(1, -(-len(rows) // ranks.count)))
        pieces = [rows[start : start + size] for start in range(0, len(rows), size)]
        for start in range(0, len(pieces), ranks.count):
            own = ranks.share(pieces[start : start + ranks.count])

            def answered(own: list = own) -> list:
                return [result for piece in own for result in work(piece, size)]

            for results in ranks.gathered(answered):
                yield from results

    model.divided, model.on_replies = among_all, lambda rows: ranks.led(partial(report, rows))
    try:
        yield
    finally:
        model.divided, model.on_replies = divided, report


def step_gradient(
    ranks: Ranks,
    gradient: StepGradient,
    forget: list[Row],
    retain: list[Row],
    epoch: int,
    alpha: float,
) -> StepSeen:
    """Adds a step's gradient as `StepGradient.add`: each process computes that of its share of the
    rows, in passes that fit its memory, and gets the sum over all. Raises as `gathered`."""
    if ranks.count == 1:
        return gradient.add(forget, retain, epoch, alpha)
    counts, parameters = gradient.denominators(forget, retain), gradient.model.parameters
    forget, retain = ranks.share(forget), ranks.share(retain)
    if gradient.objective.joins:
        return ranks.add_up(parameters, lambda: gradient.add(forget, retain, epoch, alpha, counts))
    # first the forget gradient, because the method moves the weights by that of the whole step
    add_forget = partial(gradient.add_forget, forget, epoch, counts)
    add_up = partial(ranks.add_up, parameters, add_forget)
    forgotten = gradient.objective.backward(gradient.model, add_up)
    forgot = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    retained = ranks.add_up(parameters, lambda: gradient.add([], retain, epoch, alpha, counts))
    for parameter, grad in zip(parameters, forgot):
        parameter.grad = grad if parameter.grad is None else parameter.grad + grad
    return replace(forgotten, retain_rows=retained.retain_rows, retain=retained.retain)


def _error_of(error: Exception | None) -> tuple[str, str, bool] | None:
    """A failure for the other processes: what happened, what to do, and whether it is a stop."""
    if error is None:
        return None
    if is_out_of_memory(error):
        error = too_large("the work of one process")
    if isinstance(error, AdaPopError):
        return error.message, error.fix, isinstance(error, Stopped)
    return f"{type(error).__name__}: {error}", "Please report this.", False


def _moved(sums: StepSeen, device: torch.device) -> StepSeen:
    names = "loss", "nll", "retain"
    moved = {name: [value.to(device) for value in getattr(sums, name)] for name in names}
    return replace(sums, **moved)


def _joined(parts: Sequence[StepSeen]) -> StepSeen:
    lists = ([getattr(part, item.name) for part in parts] for item in fields(StepSeen))
    return StepSeen(*(list(chain.from_iterable(values)) for values in lists))
