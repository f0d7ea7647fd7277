"""How many optimiser steps a set gets: batch and epochs for small sets or more steps."""

from dataclasses import replace

from adapop.config.run import RunConfig
from adapop.paths import SHIPPED
from adapop.training.steps import count

# Steps of DUET's rare facts under the paper's settings, and of the sandbox under its presets.
ENOUGH_STEPS = 80
MOST_EPOCHS = 10  # the page's slider ends there
# Least steps times learning rate that moves a model that does not ship: at 2e-3 nothing moved, the
# paper's runs have 1.6e-2.
MOVES = 4e-3
# Least epochs times learning rate that moves a shipped model: at 2e-3 nothing moved (16 to 256
# facts, one epoch), at 6e-3 a quarter of 16 facts was forgotten.
SHIPPED_MOVES = 4e-3


def total_steps(rows: int, config: RunConfig) -> int:
    """Optimiser steps of a whole run over `rows` facts to forget."""
    return count(max(rows, 1), config.batch, config.last_step) * config.epochs


def with_steps(rows: int, config: RunConfig, steps: int) -> RunConfig:
    """The configuration with at least `steps` optimiser steps, as close as batch and epochs (at
    most 10) allow, in the fewest epochs; if `steps` cannot be reached, with the most possible."""
    epochs = range(config.epochs, max(config.epochs, MOST_EPOCHS) + 1)
    batches = range(min(config.batch, max(rows, 1)), 0, -1)
    tries = [_resized(config, batch, count) for count in epochs for batch in batches]
    enough = [one for one in tries if total_steps(rows, one) >= steps]
    return min(enough, key=lambda one: total_steps(rows, one)) if enough else tries[-1]


def suited_batch(rows: int, config: RunConfig) -> int:
    """Facts to forget per step for a set of `rows`: the preset's batch, or a smaller one if the
    model would otherwise hardly change."""
    if config.model in SHIPPED or not hardly_moves(rows, config):
        return config.batch
    tries = (_resized(config, batch, config.epochs) for batch in range(config.batch, 0, -1))
    return next((one.batch for one in tries if total_steps(rows, one) >= ENOUGH_STEPS), 1)


def _resized(config: RunConfig, batch: int, epochs: int) -> RunConfig:
    return replace(config, batch=batch, epochs=epochs, micro_batch=min(config.micro_batch, batch))


def hardly_moves(rows: int, config: RunConfig) -> bool:
    """Whether steps or, on a shipped model, epochs are too few at this rate to change the model."""
    if config.model in SHIPPED:
        return config.epochs * config.learning_rate < SHIPPED_MOVES
    return total_steps(rows, config) * config.learning_rate < MOVES
