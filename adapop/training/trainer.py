"""The training loop: Algorithm 1 of the paper as a generator of events.

    for each epoch k:
        for each optimiser step:  L = L_forget + alpha * L_retain (PDU alone moves alpha here)
        R_k = retain loss over the whole retain set, eval mode
        controller: delta_k, lambda, alpha

No disk, no threads, no printing. The generator is suspended at each yield: its consumer saves,
stops and displays. The gradient of L is `adapop.training.gradient`'s.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain

import torch
from torch import Tensor

from adapop.config.run import RunConfig
from adapop.errors import Diverged
from adapop.facts.fact import TIERS, Fact
from adapop.model.adapted import AdaptedModel, seeded
from adapop.model.adapter import check_gradients
from adapop.model.tokens import Row
from adapop.objectives import make_objective
from adapop.remark import Remark
from adapop.training.controller import Drift, controller_of
from adapop.training.events import KEPT, EpochDone, Event, StepDone
from adapop.training.forget_set import ForgetSet
from adapop.training.gradient import StepGradient, StepSeen, rows_that_fit
from adapop.training.processes import ALONE, Ranks, step_gradient
from adapop.training.steps import by_tier, count, spans

EMA_DECAY = 0.9  # of the paper's code
ORDER, PAIRING = 0, 1


@dataclass
class TrainerState:
    """The data of a checkpoint in addition to the adapter."""

    drift: Drift
    """The controller's last row."""
    ema: float | None
    """Moving average of the steps' retain loss, in nats per token; None before a step had one."""
    optimizer: dict[str, Tensor]
    """The optimiser's tensors by name."""


class Trainer:
    """Trains an adapter to forget, by `train()`. Its state can be read between two events."""

    def __init__(
        self,
        run: str,
        config: RunConfig,
        model: AdaptedModel,
        forget: Sequence[Fact],
        retain: Sequence[Fact],
        betas: Sequence[float] | None,
        state: TrainerState | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """betas: exponent of each forget fact, in their order; None for methods that use none.
        state: to continue a run. ranks: the processes that train together; each has a trainer of
        its own. Raises DataError: a fact lacks what the method needs. ModelError: the model has no
        block that the method reads."""
        self.run, self.config, self.model, self.ranks = run, config, model, ranks
        self.objective = make_objective(config.method, config.arguments)
        self.controller = controller_of(config)
        self.forget = ForgetSet(config, self.objective, model, forget, betas)
        self.retain = model.rows(retain, include_tail=config.include_tail)
        self.tiers = [fact.tier for fact in forget]
        self.steps = count(len(forget), config.batch, config.last_step)
        rows = config.micro_batch or 2 * config.batch
        self.gradient = StepGradient(config, self.objective, model, self.forget, rows)
        if not config.micro_batch:
            self.gradient.rows = rows_that_fit(self.gradient, self.retain)
        # on the CPU the default of torch, because the recorded numbers have its rounding
        fused = model.device.type == "cuda" or None
        self.optimizer = torch.optim.AdamW(
            model.parameters,
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=fused,
        )
        self.retained: list[tuple[float, int]] | None = None
        """`Scored.confidence` of the retain set when its loss was last measured; None if no frames
        are recorded, or `retain_signal` needs no such loss."""
        self.drift: Drift | None = state.drift if state else None
        self.ema = state.ema if state else None
        if state:
            self._restore_optimizer(state.optimizer)

    @property
    def notes(self) -> tuple[str | Remark, ...]:
        """Notes of the method from before training, and on lack of memory."""
        return (*self.forget.notes, *self.gradient.notes)

    def train(self) -> Iterator[Event]:
        """The run's events, from the current state to the last epoch. Raises Diverged: a loss or
        gradient is not finite; in a step, the adapter is then as it was before it; at an epoch's
        end, as its last step left it."""
        if self.drift is None:
            self.drift = self.controller.start(self.retain_loss())
            yield self._epoch_done()
        for epoch in range(self.drift.epoch + 1, self.config.epochs + 1):
            for step, (forget, retain) in enumerate(self._plan(epoch)):
                with _finite(f"Epoch {epoch}, step {step + 1}"):
                    done = self._step(epoch, step, forget, retain)
                yield done
            with _finite(f"The end of epoch {epoch}"):
                self.retained = None
                retain_loss = self.ema if self._averaged else self.retain_loss()
                self.drift = self.controller.update(self.drift, retain_loss)
            yield self._epoch_done()

    def state(self) -> TrainerState:
        """The data that, with the adapter, continue the run after the last finished epoch."""
        tensors = {
            f"{index}.{name}": torch.as_tensor(value)
            for index, values in self.optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }
        return TrainerState(self.drift, self.ema, tensors)

    @property
    def _averaged(self) -> bool:
        """Whether the retain loss at an epoch's end is the moving average over the steps so far."""
        return self.config.retain_signal != "full" and self.ema is not None

    def look_again(self) -> None:
        """Computes `retained` again, for the end of the restored epoch."""
        if self.config.frames and not self._averaged:
            self.retain_loss()

    @torch.no_grad()
    def retain_loss(self) -> float:
        """R_k: mean nats per answer token over the whole retain set, in eval mode and a fixed
        order. Raises Diverged: it is not finite."""
        self.model.network.eval()
        rows = self.retain
        if len(rows) > self.forget.forward_rows:
            rows = sorted(rows, key=lambda row: -row.length)
        share = self.ranks.share(rows)
        parts = self.ranks.gathered(lambda: self._total_nll(share))
        total = sum(part for part, _ in parts)
        if not math.isfinite(total):
            reason = "The loss over the retain set is not finite: the model is destroyed."
            raise Diverged(reason, KEPT)
        if self.config.frames:
            confidences = dict(chain.from_iterable(values for _, values in parts))
            self.retained = [confidences[row.fact] for row in self.retain]
        return total / sum(len(row.answer) for row in rows)

    def _total_nll(self, rows: Sequence[Row]) -> tuple[float, list[tuple[int, tuple[float, int]]]]:
        """(nll of the rows summed, in nats; (index, `Scored.confidence`) of each row)."""
        pieces = list(self.model.in_pieces(rows, self.forget.forward_rows, self._nll_sum))
        confidences = chain.from_iterable(values for _, values in pieces)
        total = sum(value.item() for value, _ in pieces)
        return total, list(zip((row.fact for row in rows), confidences))

    def _nll_sum(self, rows: Sequence[Row]) -> tuple[Tensor, list[tuple[float, int]]]:
        batch = self.model.batch(rows)
        with_confidence = self.config.frames > 0
        scored = self.model.score(batch, logits=with_confidence)
        return scored.nll.sum(), scored.confidence(batch) if with_confidence else []

    def _plan(self, epoch: int) -> Iterator[tuple[list[Row], list[Row]]]:
        """The rows of each step: forget rows in a seeded order, each with a random retain row."""
        total, last_step = len(self.forget.rows), self.config.last_step
        passes: dict[int, list[tuple[Row, Row]]] = {}
        if self.config.tier_pure and last_step == "even":
            last_step = "short"  # as many steps, and only full batches are of one tier
        for start, stop in spans(total, self.config.batch, last_step, epoch):
            for behind in {place // total + 1 for place in range(start, stop)} - passes.keys():
                passes[behind] = self._pairs(behind)
            pairs = [passes[place // total + 1][place % total] for place in range(start, stop)]
            yield [forget for forget, _ in pairs], [retain for _, retain in pairs]

    def _pairs(self, epoch: int) -> list[tuple[Row, Row]]:
        """The forget rows in the epoch's order, each with its retain row."""
        rows, seed = self.forget.rows, self.config.seed
        order = torch.randperm(len(rows), generator=seeded(seed, epoch, ORDER)).tolist()
        if self.config.tier_pure:
            order = by_tier(order, self.tiers, self.config.batch)
        generator = seeded(seed, epoch, PAIRING)
        drawn = torch.randint(len(self.retain), (len(rows),), generator=generator).tolist()
        return [(rows[i], self.retain[j]) for i, j in zip(order, drawn)]

    def _step(self, epoch: int, step: int, forget: list[Row], retain: list[Row]) -> StepDone:
        done_steps = (epoch - 1) * self.steps + step
        rate = learning_rate(self.config, done_steps, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.network.train()
        self.optimizer.zero_grad(set_to_none=True)
        watched = self.drift.alpha > 0 or self.controller.by_step
        retain = retain if self.objective.retains and watched else []
        sums = step_gradient(self.ranks, self.gradient, forget, retain, epoch, self.drift.alpha)
        clipped = torch.nn.utils.clip_grad_norm_(self.model.parameters, self.config.clip)
        norm, forget_loss, nlls, nll = _on_host(clipped, sums)
        retain_nll = _mean(nlls) if nlls else None
        if not (math.isfinite(norm) and math.isfinite(forget_loss)):
            reason = f"Epoch {epoch}, step {step + 1}: the loss or its gradient is not finite."
            fix = "The adapter was left as it was before this step. Lower the learning rate."
            raise Diverged(reason, fix)
        if done_steps == 0:
            check_gradients(self.model.network)
        self.optimizer.step()
        if retain_nll is not None:
            self.drift = self.controller.stepped(self.drift, retain_nll, len(retain))
            by_row = self.config.retain_signal == "ema-rows"
            for value in self._by_row(retain, sums, nlls) if by_row else [retain_nll]:
                last = self.ema
                self.ema = value if last is None else EMA_DECAY * last + (1 - EMA_DECAY) * value
        return StepDone(
            run=self.run,
            epoch=epoch,
            step=step + 1,
            forget_loss=forget_loss,
            nll_forget=_mean(nll),
            nll_by_tier=self._by_tier(sums.rows, nll),
            nll_retain=retain_nll,
            gradient_norm=norm,
            learning_rate=rate,
        )

    def _by_row(self, retain: list[Row], sums: StepSeen, nlls: list[list[float]]) -> list[float]:
        """Mean nll of each retain row, in the order the rows were drawn."""
        means = {row.fact: _mean([nll]) for row, nll in zip(sums.retain_rows, nlls)}
        return [means[row.fact] for row in retain]

    def _epoch_done(self) -> EpochDone:
        return EpochDone(run=self.run, **asdict(self.drift))

    def _by_tier(self, rows: list[Row], nll: list[list[float]]) -> dict[str, float]:
        """Mean nll of each tier in the step."""
        pairs = list(zip(nll, (self.tiers[row.fact] for row in rows)))
        groups = {tier: [own for own, of in pairs if of == tier] for tier in TIERS}
        return {tier: _mean(values) for tier, values in groups.items() if values}

    def _restore_optimizer(self, tensors: dict[str, Tensor]) -> None:
        saved: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            index, name = key.split(".", 1)
            saved.setdefault(int(index), {})[name] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": saved})


@contextmanager
def _finite(place: str) -> Iterator[None]:
    """A context that treats overflow as a non-finite loss. Raises Diverged then."""
    try:
        yield
    except (ArithmeticError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "overflow" not in str(error):
            raise
        reason = f"{place}: a number is too large to be finite ({error})."
        fix = "Lower the learning rate, or the setting that is so large."
        raise Diverged(reason, f"The adapter of the last saved epoch is kept. {fix}") from error


def learning_rate(config: RunConfig, done: int, steps: int) -> float:
    """Rate of the step after `done` steps: constant, or one warm-up epoch, then linear to 0."""
    if config.schedule == "constant":
        return config.learning_rate
    if done < steps:
        return config.learning_rate * (done + 1) / steps
    left, decay = config.epochs * steps - done, max(1, (config.epochs - 1) * steps)
    return config.learning_rate * left / decay


def _on_host(gradient_norm: Tensor, sums: StepSeen) -> tuple[float, float, list, list]:
    """Gradient norm, forget loss, and nll by token for each retain row and each forget row. The
    only place in a step where the host waits for the device."""
    values = iter(
        torch.cat([torch.stack([gradient_norm, *sums.loss]), *sums.retain, *sums.nll]).tolist()
    )
    norm, loss = next(values), sum(next(values) for _ in sums.loss)
    both = sums.retain_rows, sums.rows
    nlls, nll = ([[next(values) for _ in row.answer] for row in rows] for rows in both)
    return norm, loss, nlls, nll


def _mean(values: Sequence[Sequence[float]]) -> float:
    flat = [value for row in values for value in row]
    return sum(flat) / len(flat)
