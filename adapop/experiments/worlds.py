"""Sandboxes of other sizes and ranges of exposure, built once and cached."""

import hashlib
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

from adapop.experiments.item import World
from adapop.experiments.plans import ORACLE_WORLD
from adapop.paths import ORACLE, SANDBOX_FOLDER


def folder_of(world: World, models: Path) -> Path:
    """Where a world's sandbox is kept: named by the world and a hash of its settings, as names may
    be used again. The oracle ships."""
    if world == ORACLE_WORLD:
        return SANDBOX_FOLDER / ORACLE
    made_of = hashlib.sha256(json.dumps(asdict(world), sort_keys=True).encode()).hexdigest()
    return models / f"{world.name}-{made_of[:12]}"


def build(world: World, models: Path) -> str:
    """Pretrains the world's sandbox in its folder under `models`, unless it is there. Returns the
    name.

    Minutes on one core. Interrupted, it goes on where it was.
    """
    from adapop.sandbox.pretrain import PretrainConfig, Pretraining

    folder = folder_of(world, models)
    aside = models / f"writing-{folder.name}"
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
