"""How many optimiser steps a set gets: batch and epochs for small sets or more steps; and what is
taught before them."""

from dataclasses import replace

from adapop.config.run import RunConfig
from adapop.facts.benchmarks import benchmark_of
from adapop.facts.fact import Fact, FactSet
from adapop.paths import SHIPPED
from adapop.remark import Remark
from adapop.training.steps import count

# Steps of DUET's rare facts under the paper's settings, and of the sandbox under its presets.
ENOUGH_STEPS = 80
MOST_EPOCHS = 10  # the page's slider ends there
# Of steps times learning rate. Below the first nothing was ever forgotten: a command refuses. Below
# the second nothing moved (2e-3; the paper's runs on DUET have 1.6e-2), but some methods forget.
REFUSED_BELOW, WARNED_BELOW = 2e-3, 4e-3
# The second for shipped models, of epochs times rate: one epoch at 2e-3 moved nothing, at 2.5e-3
# AdaPop forgot a tenth (`bench rates`); gradient ascent on people forgot most at 1.25e-3.
WARNED_BELOW_SHIPPED = 2.5e-3
FEW_FACTS = 40  # below, one fact is more than 2.5% of the set


def questions_taught(facts: FactSet) -> list[Fact]:
    """What start "sft" teaches: the facts to forget and to retain, each once in every wording. Of a
    benchmark the questions alone, as its paper's models were taught: its rewordings are its test.
    """
    taught = (*facts.forget, *facts.retain)
    if benchmark_of(facts):
        return list(taught)
    return [
        replace(fact, question=wording, paraphrases=())
        for fact in taught
        for wording in (fact.question, *fact.paraphrases)
    ]


def total_steps(rows: int, config: RunConfig) -> int:
    """Optimiser steps of a whole run over `rows` facts to forget."""
    return count(max(rows, 1), config.batch, config.last_step) * config.epochs


def with_steps(rows: int, config: RunConfig, steps: int) -> RunConfig:
    """The configuration with the fewest optimiser steps that are at least `steps` and cause no
    `few_steps` remark, with a batch up to its own and up to 10 epochs; if there is none, the most
    steps."""
    epochs = range(config.epochs, max(config.epochs, MOST_EPOCHS) + 1)
    batches = range(min(config.batch, max(rows, 1)), 0, -1)
    tries = [_resized(config, batch, count) for count in epochs for batch in batches]
    enough = [one for one in tries if total_steps(rows, one) >= steps and not few_steps(rows, one)]
    return min(enough, key=lambda one: total_steps(rows, one)) if enough else tries[-1]


def suited_batch(rows: int, config: RunConfig) -> int:
    """Facts to forget per step for a set of `rows`: as configured or, where `few_steps` warns of a
    real model's run, fewer, for `ENOUGH_STEPS`."""
    if config.model in SHIPPED or not few_steps(rows, config):
        return config.batch
    tries = (_resized(config, batch, config.epochs) for batch in range(config.batch, 0, -1))
    return next((one.batch for one in tries if total_steps(rows, one) >= ENOUGH_STEPS), 1)


def _resized(config: RunConfig, batch: int, epochs: int) -> RunConfig:
    return replace(config, batch=batch, epochs=epochs, micro_batch=min(config.micro_batch, batch))


def few_facts(rows: int, known: float | None = None) -> list[Remark]:
    """A remark that a set of `rows` to forget can show only large differences; else empty. known:
    how many of them the model knows, by which this is judged once it was asked."""
    kind, count = ("few_facts", rows) if known is None else ("few_known", known)
    return [Remark(kind, {"share": min(1, 1 / count)})] if 0 < count < FEW_FACTS else []


def few_steps(rows: int, config: RunConfig, refused_only: bool = False) -> list[Remark]:
    """A remark that the steps times the learning rate hardly change the model; else empty.
    refused_only: only below the limit at which a command refuses."""
    steps, rate = total_steps(rows, config), config.learning_rate
    few = steps * rate < (REFUSED_BELOW if refused_only else WARNED_BELOW)
    if config.model in SHIPPED and not refused_only:
        few = config.epochs * rate < WARNED_BELOW_SHIPPED
    return [Remark("few_steps", {"steps": steps, "rate": rate})] if few else []
