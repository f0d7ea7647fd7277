"""How long a run would take, by timing steps and answers on this device."""

import time
from collections.abc import Mapping
from dataclasses import replace

import torch

from adapop.config.run import RunConfig
from adapop.facts.fact import GROUPS, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.objectives import make_objective
from adapop.probes import measure
from adapop.runs.pace import Pace
from adapop.training.events import StepDone
from adapop.training.trainer import Trainer

TIMED = 2  # steps; the first includes one-off work


def measured_pace(
    model: AdaptedModel,
    config: RunConfig,
    facts: FactSet,
    betas: Mapping[str, float] | None,
    answered: float,
) -> tuple[Pace, int | None]:
    """The pace of a run by timed steps of its own, and the peak of the GPU's memory. answered:
    seconds per answer. The adapter is restored."""
    state = {name: value.clone() for name, value in model.adapter_state().items()}
    some = TIMED * config.batch
    forget, retain = facts.forget[:some], facts.retain[:some]
    # Placeholders: a run would first choose wrong answers.
    if "alternates" in make_objective(config.method, config.arguments).needs:
        other = ("another answer",)
        forget = [replace(fact, alternates=fact.alternates or other) for fact in forget]
    exponents = betas and [betas[fact.id] for fact in forget]
    on_gpu = model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(model.device)
    try:
        with torch.random.fork_rng(devices=model.gpus):
            trainer = Trainer("check", replace(config, frames=0), model, forget, retain, exponents)
            began, seconds = time.monotonic(), []
            events = trainer.train()
            next(events)
            last = time.monotonic()
            read = (last - began) / len(retain)
            for event in events:
                if isinstance(event, StepDone):
                    seconds.append(time.monotonic() - last)
                if len(seconds) == TIMED:
                    break
                last = time.monotonic()
    finally:
        model.set_adapter_state(state)
        for parameter in model.parameters:
            parameter.grad = None
    whole = measure.thinned(facts, config.measure_per_tier)
    epoch = read * len(facts.retain)
    if config.measure == "every-epoch":
        epoch += answered * measure.questions_of(whole, whole=False, retained=config.keep == "best")
    # For each model's table, every fact is scored twice.
    compared = sum(len(getattr(whole, group)) for group in GROUPS)
    questions = measure.questions_of(whole, whole=True, ways=len(model.ways))
    end = (2 * answered * questions + 4 * read * compared) * (config.measure != "off")
    peak = torch.cuda.max_memory_allocated(model.device) if on_gpu else None
    return Pace(seconds[-1], epoch, end), peak
