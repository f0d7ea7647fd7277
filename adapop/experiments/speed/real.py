"""The table of `bench speed --real`: a real run, its training steps, and the same steps in a plain
loop.

On a shared machine wall time includes other programs' work, so processor seconds stand beside it. A
few steps of ours and of the loop are timed alternately.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from statistics import median
from uuid import uuid4

import torch

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.experiments.speed import baseline
from adapop.facts.catalog import load_facts
from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.model.original import ReplyCache
from adapop.model.tokens import Row
from adapop.probes.measure import thinned
from adapop.runs.execute import execute, prepare
from adapop.runs.run import Run
from adapop.training.events import RunFailed, StepDone
from adapop.training.trainer import Trainer

MODEL, FACTS = "smollm2", "cities"
BATCH = 16  # facts to forget in a step, and as many to retain
FEW = 6  # facts per group and tier in the quick form
TIMED = 4  # timed steps; a step before them, with one-off work, is not counted
RUN, AGAIN = "a whole run with its measurements", "a second run on the same facts"
STEPS, RETAIN = "its training steps alone", "the controller's retain losses"
PLAIN = "the same steps in a plain loop"
GOALS = {RUN: "<= 2.5", AGAIN: "<= 1.8", STEPS: "", PLAIN: ">= 3", RETAIN: ""}


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds, and processor seconds of all threads together."""

    wall: float
    cpu: float

    def times(self, count: float) -> "Timing":
        return Timing(count * self.wall, count * self.cpu)


def main(quick: bool = False) -> None:
    """Prints the table. quick: few facts and one epoch, as a test."""
    facts = load_facts(FACTS, MODEL)
    config = make_config(model=MODEL, facts=FACTS, batch=BATCH, epochs=1 if quick else 5)
    print_table(measured(config, thinned(facts, FEW) if quick else facts))


def measured(config: RunConfig, facts: FactSet) -> dict[str, Timing]:
    """Row of the table -> its timing."""
    model = adapted_model(config)
    fresh = {name: value.clone() for name, value in model.adapter_state().items()}
    model.reply_cache = ReplyCache(uuid4().hex)  # nothing is cached before the first run
    took = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (RUN, AGAIN):
            model.set_adapter_state(fresh)
            run = prepare(config, facts, Path(folder))
            took[name] = _seconds_of(lambda run=run: _finish(run, model))
        known, betas = run.facts, [run.betas[fact.id] for fact in run.facts.forget]
        # Enough epochs for all steps, and no retain loss between them.
        endless = replace(run.config, epochs=10_000, retain_signal="ema")
        trainer = Trainer("bench", endless, model, known.forget, known.retain, betas)
        steps = (event for event in trainer.train() if isinstance(event, StepDone))
        plain = plain_steps(model, trainer.forget.rows, trainer.retain, betas, run.config)
        retain = _seconds_of(trainer.retain_loss).times(config.epochs + 1)
        loops = (lambda: next(steps), lambda: next(plain))
        turns = [[_seconds_of(loop) for loop in loops] for _ in range(1 + TIMED)]
    count = trainer.steps * config.epochs
    for name, taken in zip((STEPS, PLAIN), zip(*turns[1:])):
        step = Timing(median(one.wall for one in taken), median(one.cpu for one in taken))
        took[name] = step.times(count)
    return {**took, RETAIN: retain}


def print_table(took: dict[str, Timing]) -> None:
    """Prints the rows, each also as a multiple of the training steps alone."""
    print(f"{MODEL} on {FACTS}, {BATCH} + {BATCH} rows a step, {torch.get_num_threads()} threads")
    heads = f"{'seconds':>10}{'processor s':>14}{'against the steps':>20}{'of processor s':>17}"
    print(f"{'':<36}{heads}{'goal':>9}")
    for name, one in took.items():
        steps = took[STEPS]
        against = f"{one.wall / steps.wall:>20.2f}{one.cpu / steps.cpu:>17.2f}"
        print(f"{name:<36}{one.wall:>10.1f}{one.cpu:>14.1f}{against}{GOALS[name]:>9}".rstrip())


def plain_steps(
    model: AdaptedModel,
    forget: Sequence[Row],
    retain: Sequence[Row],
    betas: Sequence[float],
    config: RunConfig,
) -> Iterator[None]:
    """Steps of AdaPop in a plain loop, see `baseline`; yields after each. betas: by `Row.fact`."""
    network, device = model.network, model.device
    optimizer = torch.optim.AdamW(model.parameters, lr=config.learning_rate)
    network.train()
    some, others = cycle(forget), cycle(retain)
    while True:
        rows, beside = ([next(one) for _ in range(config.batch)] for one in (some, others))
        nll = baseline.token_nll(network, rows, device)
        beta = torch.tensor([betas[row.fact] for row in rows], device=device).unsqueeze(1)
        weight = (-beta * nll.detach()).exp()
        forgotten = -(weight * nll).sum() / sum(len(row.answer) for row in rows)
        retained = baseline.token_nll(network, beside, device).sum()
        retained = retained / sum(len(row.answer) for row in beside)
        (forgotten + config.alpha0 * retained).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters, config.clip)
        optimizer.step()
        optimizer.zero_grad()
        yield


def _finish(run: Run, model: AdaptedModel) -> None:
    for event in execute(run, model):
        if isinstance(event, RunFailed):
            raise RuntimeError(f"{event.message} {event.fix}")


def _seconds_of(work: Callable[[], object]) -> Timing:
    begun, used = time.perf_counter(), time.process_time()
    work()
    return Timing(time.perf_counter() - begun, time.process_time() - used)
