"""The gradient of one optimiser step, in as many forward passes as memory requires.

A step's rows are split into passes of any size, rows that begin alike together. Every sum is
divided by the counts of the whole step, so the gradient is that of one pass over all rows. If
memory runs out, the pass is halved; then blocks are recomputed in the backward pass; only then the
run fails. Nothing here waits for an accelerator. `rows_that_fit` says how many rows a pass can
take: measured on an accelerator, estimated on the CPU.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from itertools import product, takewhile

import torch
from torch import Tensor

from adapop.config.run import RunConfig
from adapop.model.adapted import AdaptedModel
from adapop.model.catalogue import footprint
from adapop.model.out_of_memory import free_bytes, is_out_of_memory, release, too_large
from adapop.model.packing import lines_of, packed_lines
from adapop.model.tokens import AnswerTokens, Row, common
from adapop.objectives import Loss, Objective
from adapop.objectives.objective import divergence
from adapop.remark import Remark
from adapop.training.forget_set import ForgetSet


@dataclass(frozen=True)
class Denominators:
    """Divisors of a step's sums: numbers of rows or answer tokens to forget and to retain, in the
    whole step even if several processes share it."""

    forget: int
    retain: int


@dataclass(frozen=True)
class StepSeen:
    """The results of a step's passes, in the order of the passes and still on the device."""

    rows: list[Row]
    """The forget rows."""
    loss: list[Tensor]
    """The forget loss of each pass, a scalar; their sum is the step's."""
    nll: list[Tensor]
    """The nll of the forget rows' answer tokens, [N] in all, nats."""
    retain_rows: list[Row]
    """The retain rows."""
    retain: list[Tensor]
    """The nll of the retain rows' answer tokens, [M] in all, nats; empty without a retain term."""


class StepGradient:
    """Adds the gradients of optimiser steps to the adapter. rows: the most in a pass; lowered once
    memory ran out. notes: on memory."""

    def __init__(
        self,
        config: RunConfig,
        objective: Objective,
        model: AdaptedModel,
        forget: ForgetSet,
        rows: int,
    ) -> None:
        self.config, self.objective, self.model, self.forget = config, objective, model, forget
        self.rows = self._most = rows
        self.notes: list[Remark] = []

    def denominators(self, forget: Sequence[Row], retain: Sequence[Row]) -> Denominators:
        """The divisors for the sums of a step with these rows."""
        tokens = sum(map(self.objective.counted, forget))
        retain_tokens = sum(len(row.answer) for row in retain)
        retained = len(retain) if self._retain_by_example else retain_tokens
        return Denominators(len(forget) if self._by_example else tokens, retained)

    def add(
        self,
        forget: list[Row],
        retain: list[Row],
        epoch: int,
        alpha: float,
        counts: Denominators | None = None,
    ) -> StepSeen:
        """Adds the gradient of L_forget + alpha * L_retain. retain: empty without a retain term.
        counts: of the whole step, if the rows are one process's share of it. Raises RunError:
        memory runs out even on one row."""
        counts = counts or self.denominators(forget, retain)
        rows = len(forget) + len(retain)
        if not self._joins or rows > self.rows:
            rows = max(len(forget), len(retain))
        return self._retried(lambda: self._added(forget, retain, epoch, alpha, counts), rows)

    def add_forget(self, forget: list[Row], epoch: int, counts: Denominators) -> StepSeen:
        """Adds L_forget's gradient, for the method's `backward` alone. Raises as `add`."""
        return self._retried(lambda: self._forget_passes(forget, epoch, counts), len(forget))

    def _retried(self, passes: Callable[[], StepSeen], rows: int) -> StepSeen:
        """The result of passes over `rows` rows, repeated in smaller passes if memory runs out."""
        state, gpus = torch.get_rng_state(), self.model.gpus
        gpu_states = [torch.cuda.get_rng_state(gpu) for gpu in gpus]
        while True:
            try:
                return passes()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # not in the except block: there the traceback still holds the failed pass's tensors
            self._shrink_passes(min(self.rows, rows))
            torch.set_rng_state(state)
            for gpu, its_state in zip(gpus, gpu_states):
                torch.cuda.set_rng_state(its_state, gpu)

    def _added(
        self, forget: list[Row], retain: list[Row], epoch: int, alpha: float, counts: Denominators
    ) -> StepSeen:
        if self._joins and retain and len(forget) + len(retain) <= self.rows:
            return self._jointly(forget, retain, epoch, alpha, counts)
        sums = StepSeen([], [], [], [], [])
        if forget:
            passes = partial(self._forget_passes, forget, epoch, counts)
            sums = self.objective.backward(self.model, passes)
        for piece in self._pieces(retain):
            tokens = self.model.batch(piece)
            result = self._retain_loss(tokens)
            (alpha * self._retain_term(result, tokens, counts)).backward()
            sums.retain_rows.extend(piece)
            sums.retain.append(result.nll.detach())
        return sums

    def _jointly(
        self, forget: list[Row], retain: list[Row], epoch: int, alpha: float, counts: Denominators
    ) -> StepSeen:
        """One pass over all of the step's rows."""
        batch, tokens = self.forget.batch(forget, epoch), self.model.batch(retain)
        with self.model.together(self.model.batch([*forget, *retain]), batch.tokens, tokens):
            forgot = self.objective.forget_loss(self.model, batch)
            retained = self._retain_loss(tokens)
        loss = self._averaged(forgot, batch.tokens, counts)
        (loss + alpha * self._retain_term(retained, tokens, counts)).backward()
        nll, retain_nll = forgot.nll.detach(), retained.nll.detach()
        return StepSeen(forget, [loss.detach()], [nll], retain, [retain_nll])

    def _forget_passes(self, rows: list[Row], epoch: int, counts: Denominators) -> StepSeen:
        sums = StepSeen([], [], [], [], [])
        for piece in self._pieces(rows):
            batch = self.forget.batch(piece, epoch)
            result = self.objective.forget_loss(self.model, batch)
            loss = self._averaged(result, batch.tokens, counts)
            loss.backward()
            sums.rows.extend(piece)
            sums.loss.append(loss.detach())
            sums.nll.append(result.nll.detach())
        return sums

    def _averaged(self, result: Loss, tokens: AnswerTokens, counts: Denominators) -> Tensor:
        """A pass's part of the step's forget loss."""
        by_row = self._by_example and self.objective.reduce == "token"
        return (_over_rows(result, tokens) if by_row else result.loss).sum() / counts.forget

    def _retain_loss(self, tokens: AnswerTokens) -> Loss:
        if self.config.retain_loss == "kl":
            return divergence(self.model, tokens)
        return self.objective.retain_loss(self.model, tokens)

    def _retain_term(self, result: Loss, tokens: AnswerTokens, counts: Denominators) -> Tensor:
        """A pass's part of the step's retain loss."""
        by_row = self._retain_by_example
        return (_over_rows(result, tokens) if by_row else result.loss).sum() / counts.retain

    def _pieces(self, rows: list[Row]) -> Iterator[list[Row]]:
        """The rows of each pass, in passes of equal size. Several passes group rows that begin
        alike, to share the beginning, or, where this saves little, rows of similar length."""
        if len(rows) > self.rows:
            rows = sorted(rows, key=lambda row: -row.length)
            if packed_lines(rows) and self.model.packs:
                rows = sorted(rows, key=lambda row: row.prompt)
        passes = -(-len(rows) // self.rows)
        for number in range(passes):
            yield rows[number * len(rows) // passes : (number + 1) * len(rows) // passes]

    def _shrink_passes(self, tried: int) -> None:
        """Halves the pass after memory ran out, or recomputes blocks. Raises RunError."""
        for parameter in self.model.parameters:
            parameter.grad = None
        release()
        if tried > 1:
            self.rows = tried // 2
            self.notes += [Remark("fewer_rows", {"rows": tried, "fewer": self.rows})]
        elif not self.model.recomputes:
            self.model.recompute()
            self.rows = self._most
            self.notes += [Remark("activations_recomputed")]
        else:
            raise too_large("one row, with activations recomputed")

    @property
    def _by_example(self) -> bool:
        return self.config.normalise != "token" or self.objective.reduce == "row"

    @property
    def _retain_by_example(self) -> bool:
        return self.config.normalise == "example-both"

    @property
    def _joins(self) -> bool:
        """Whether forget and retain rows share passes. Not if `micro_batch` is set: it counts one
        kind."""
        return self.objective.joins and not self.config.micro_batch


def _over_rows(result: Loss, tokens: AnswerTokens) -> Tensor:
    """Each token's loss divided by the number of its row's tokens that count, [N]: they sum to row
    means."""
    loss = result.loss
    counted = torch.ones_like(loss) if result.counted is None else result.counted.to(loss)
    lengths = torch.zeros(tokens.rows, dtype=loss.dtype, device=loss.device)
    return loss / lengths.index_add(0, tokens.row, counted)[tokens.row]


SHARE = 0.9  # of the free memory: allocators round up and leave gaps
TRIED = 4  # rows of the second trial; the first has one
Trial = tuple[list[Row], list[Row]]  # rows to forget and to retain


def rows_that_fit(gradient: StepGradient, retain: Sequence[Row]) -> int:
    """Most rows in a pass, from 1 to a step's forget and retain rows, if all were the longest.

    `footprint` says how memory grows with the rows; if they are packed, their common beginning
    counts once. On an accelerator the gradient of a step is computed, without an update, on 1 and
    on 4 of the longest rows and of those with most answer tokens. The peaks scale the estimate, and
    AdamW's moments must fit as well. On the CPU the estimate is used as it is."""
    most = 2 * min(gradient.config.batch, len(gradient.forget.rows))
    needs = list(_needs(gradient, [*gradient.forget.rows, *retain], most))
    if gradient.model.device.type == "cuda":
        return _measure(gradient, retain, needs)
    adapter = footprint(gradient.model.shape, gradient.config, 1, rows=1).adapter
    # set by the launcher: how many processes share this machine's memory
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return _fitting(needs, SHARE * free_bytes(gradient.model.device) / processes - adapter)


def _needs(gradient: StepGradient, rows: Sequence[Row], most: int) -> Iterator[int]:
    """Bytes of a pass over the longest row, over the two longest, and so on, by `footprint`."""
    prompts, answer = [row.prompt for row in rows], max(len(row.answer) for row in rows)
    shared = common(min(prompts), max(prompts))  # by all; what only some share is left out
    lengths = nlargest(most, (row.length for row in rows))
    for count in range(1, most + 1):
        taken = lengths[:count]
        own = [length - shared for length in taken]
        lines, tokens = lines_of(range(count), own, [shared] * count, taken[0])
        if lines and not gradient.model.packs:
            tokens = count * taken[0]
        # counted as one row with so many tokens
        size = {"rows": 1, "answer": count * answer}
        yield footprint(gradient.model.shape, gradient.config, tokens, **size).activations


def _fitting(needs: Sequence[float], free: float) -> int:
    """The most rows that fit, at least 1. needs: bytes for 1 row, 2 rows, and so on."""
    return max(1, sum(1 for _ in takewhile(lambda need: need <= free, needs)))


def _trials(forget: Sequence[Row], retain: Sequence[Row], count: int) -> list[Trial]:
    """`count` rows to try: the longest ones and, if they differ, those with most answer tokens."""
    trials = []
    for size in (lambda row: row.length, lambda row: len(row.answer)):
        rows = nlargest(count, forget, key=size), nlargest(count, retain, key=size)
        trials += [] if rows in trials else [rows]
    return trials


def _measure(gradient: StepGradient, retain: Sequence[Row], needs: Sequence[int]) -> int:
    device, parameters = gradient.model.device, gradient.model.parameters
    count = min(TRIED, len(needs))
    trials = _trials(gradient.forget.rows, retain, count)
    held, peaks, recomputes = torch.cuda.memory_allocated(device), [], gradient.model.recomputes
    gradient.model.network.train()
    for rows, (forget, retained) in product((1, count), trials):
        gradient.rows = rows
        torch.cuda.reset_peak_memory_stats(device)
        gradient.add(forget[:rows], retained[:rows], epoch=1, alpha=1.0)
        peaks.append(torch.cuda.max_memory_allocated(device) - held)
        for parameter in parameters:
            parameter.grad = None
        # memory ran out on one row and blocks are now recomputed, so these peaks do not count
        if gradient.model.recomputes != recomputes:
            return _measure(gradient, retain, needs)
        if gradient.rows < rows:
            return gradient.rows
    one, several = max(peaks[: len(trials)]), max(peaks[len(trials) :])
    moments = 2 * sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    # measured bytes for each estimated byte
    real = max(1, several - one) / max(1, needs[count - 1] - needs[0])
    free = SHARE * free_bytes(device) - moments - one
    return _fitting([real * (need - needs[0]) for need in needs], free)
