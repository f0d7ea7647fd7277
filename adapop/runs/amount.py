"""How many optimiser steps a set gets: batch and epochs for small sets, and for more steps."""

from dataclasses import replace

from adapop.config.run import RunConfig
from adapop.paths import SHIPPED
from adapop.training.steps import count

# what DUET's rare facts get by the paper's settings, and the sandbox's by its presets
ENOUGH_STEPS = 80
MOST_EPOCHS = 10  # of the page's slider
# steps times rate of a model that does not ship: 2e-3 moved nothing, the paper's runs make 1.6e-2
MOVES = 4e-3


def total_steps(rows: int, config: RunConfig) -> int:
    """Optimiser steps of a whole run over so many facts to forget."""
    return count(max(rows, 1), config.batch, config.last_step) * config.epochs


def with_steps(rows: int, config: RunConfig, steps: int) -> RunConfig:
    """The configuration with at least so many steps and as few more as batch and epochs (10 at
    most) allow, in the fewest epochs; with the most there can be where these are too few."""
    epochs = range(config.epochs, max(config.epochs, MOST_EPOCHS) + 1)
    batches = range(min(config.batch, max(rows, 1)), 0, -1)
    tries = [_resized(config, batch, count) for count in epochs for batch in batches]
    enough = [one for one in tries if total_steps(rows, one) >= steps]
    return min(enough, key=lambda one: total_steps(rows, one)) if enough else tries[-1]


def suited_batch(rows: int, config: RunConfig) -> int:
    """Facts a step for a set of this size: the preset's, or fewer lest the model stay as it is."""
    if not hardly_moves(rows, config):
        return config.batch
    tries = (_resized(config, batch, config.epochs) for batch in range(config.batch, 0, -1))
    return next((one.batch for one in tries if total_steps(rows, one) >= ENOUGH_STEPS), 1)


def _resized(config: RunConfig, batch: int, epochs: int) -> RunConfig:
    return replace(config, batch=batch, epochs=epochs, micro_batch=min(config.micro_batch, batch))


def hardly_moves(rows: int, config: RunConfig) -> bool:
    """Whether so few steps at so low a rate leave a model as it is; those that ship need only 5."""
    return config.model not in SHIPPED and total_steps(rows, config) * config.learning_rate < MOVES
