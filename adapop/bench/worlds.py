"""Sandboxes of other sizes and other ranges of exposure, built once and kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from adapop.bench.item import World


def build(world: World, models: Path) -> str:
    """Pretrains the world's sandbox in a folder of its name under `models`, unless it is there. Returns the name.

    Minutes on one core. Interrupted, it goes on where it was.
    """
    from adapop.sandbox.pretrain import PretrainConfig, Pretraining

    folder, aside = models / world.name, models / f"writing-{world.name}"
    if not folder.exists():
        config = PretrainConfig(
            hidden=world.hidden, feed_forward=3 * world.hidden, exposures=world.exposures, spread=world.spread
        )
        aside.mkdir(parents=True, exist_ok=True)
        pretraining = Pretraining(config, aside)
        for _ in pretraining.train():
            pass
        pretraining.save(aside)
        os.replace(aside, folder)
    shutil.rmtree(aside, ignore_errors=True)
    return world.name
