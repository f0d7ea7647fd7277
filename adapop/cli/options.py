"""The options that say what a run is, for every command that takes them: made from the declaration of `RunConfig`."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from adapop.config.methods import METHODS
from adapop.config.presets import AUTHORS, PRESETS, TUNED
from adapop.config.run import CHOICES, RunConfig
from adapop.config.settings import SEPARATE, meanings, read_settings, value_of
from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.facts.files import guessed, named_columns, read_table
from adapop.facts.retain import RETAIN

MODELS = "sandbox, people, smollm2, gemma3-270m, a Hub id, a folder of safetensors, or a GGUF file"
SHORT = {"learning_rate": "--lr", "lora_rank": "--rank", "lora_targets": "--targets", "lora_layers": "--layers"}
NAMED = {item.name: item for item in fields(RunConfig) if item.name not in SEPARATE}


def add_run_options(command: argparse.ArgumentParser) -> None:
    """The options of model, method, preset, facts to retain and every setting."""
    command.add_argument("--model", help=f"{MODELS}; default sandbox")
    command.add_argument(
        "--method", help=f"adapop (the default), {', '.join(list(METHODS)[1:])}, or package.module:Class of your own"
    )
    command.add_argument(
        "--preset", choices=(*PRESETS, AUTHORS, TUNED), help="paper (default), authors, tuned (if shipped), or AdaPop's"
    )
    command.add_argument("--anchors", help="auto (the default), paper, quantiles, or score:beta,score:beta")
    command.add_argument("--retain", help=f"the facts to retain: {', '.join(RETAIN)}, or a file of them; default own")
    command.add_argument("--scores", choices=CHOICES["scores"], help="as given, or as controls shuffled or inverted")
    command.add_argument("--set", action="append", metavar="NAME=VALUE", help="an argument of the method, or a setting")
    command.add_argument("--known-only", action="store_true", help="the same as --unknown drop")
    for name, item in NAMED.items():
        kind = {"nargs": "?", "const": "yes", "metavar": "yes/no"} if item.type == "bool" else {}
        if name in CHOICES:
            kind = {"choices": CHOICES[name]}
        flags = [*([SHORT[name]] if name in SHORT else []), f"--{name.replace('_', '-')}"]
        command.add_argument(*flags, dest=name, help=meanings()[name].rstrip("."), **kind)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that the options give, by their names in `RunConfig`.

    Raises:
        ConfigError: a value of another type, or one setting given twice.
    """
    texts = {name: getattr(options, name) for name in NAMED if getattr(options, name) is not None}
    changes = {name: value_of(name, text) for name, text in texts.items()}
    if options.scores is not None:
        changes["scores"] = options.scores
    if options.known_only:
        changes["unknown"] = "drop"
    others = read_settings(options.set or [])
    if twice := sorted(changes.keys() & others.keys()):
        raise ConfigError(f"{twice[0]} is given twice.", "Give it as an option or with --set, not both.")
    return changes | others


def retain_of(options: argparse.Namespace) -> str | FactSet:
    """The facts to retain as `load_facts` takes them; a file is read as --columns and --drop-bad say, but for columns
    that it does not have."""
    if options.retain in (None, *RETAIN):
        return options.retain or "own"
    table = read_table(Path(options.retain))
    named = named_columns(options.columns) if options.columns else {}
    columns = guessed(table.columns) | {field: name for field, name in named.items() if name in table.columns}
    return table.facts("", columns, "retain", options.drop_bad)
