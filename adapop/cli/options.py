"""The options of a run, for every command that takes them: made from `RunConfig`'s declaration."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapop.cli.scores import chosen_columns, reading_of
from adapop.config.methods import METHODS
from adapop.config.presets import AUTHORS, PRESETS, TUNED, follows_scores, make_config
from adapop.config.run import SETTINGS, RunConfig, meanings, read_settings, value_of
from adapop.errors import ConfigError
from adapop.facts.catalog import load_facts, model_of
from adapop.facts.fact import FactSet
from adapop.facts.files import guessed, read_table
from adapop.facts.retain import RETAIN
from adapop.facts.tiers import ON_SCALE
from adapop.popularity.calibration import AUTO, calibrated
from adapop.report.settings import FACTS_FILE

MODELS = "sandbox, people, smollm2, gemma3-270m, a Hub id, a folder of safetensors, or a GGUF file"
NAMED = {name: about for name, about in SETTINGS.items() if not about.separate}


def add_run_options(command: argparse.ArgumentParser) -> None:
    """The options of model, method, preset, facts to retain and every setting."""
    add = command.add_argument
    add("--model", help=f"{MODELS}; default sandbox")
    others = ", ".join(list(METHODS)[1:])
    add("--method", help=f"adapop (the default), {others}, or package.module:Class of your own")
    presets = "paper (default), authors, tuned (if included), or AdaPop's"
    add("--preset", choices=(*PRESETS, AUTHORS, TUNED), help=presets)
    add("--anchors", help="auto (the default), paper, quantiles, or score:beta,score:beta")
    retain = f"the facts to retain: {', '.join(RETAIN)}, or a file of them; default own"
    add("--retain", help=retain)
    scores = "as given, or shuffled or inverted as a control"
    add("--scores", choices=SETTINGS["scores"].choices, help=scores)
    given = "an argument of the method, or a setting"
    add("--set", action="append", metavar="NAME=VALUE", help=given)
    add("--known-only", action="store_true", help="the same as --unknown drop")
    for name, about in NAMED.items():
        kind = {"nargs": "?", "const": "yes", "metavar": "yes/no"} if about.kind == "bool" else {}
        if about.choices:
            kind = {"choices": about.choices}
        flags = [*([about.short] if about.short else []), f"--{name.replace('_', '-')}"]
        add(*flags, dest=name, help=meanings()[name].rstrip("."), **kind)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that the options set, by their names in `RunConfig`. Raises ConfigError: a value
    of another type, or one setting given twice."""
    texts = {name: getattr(options, name) for name in NAMED if getattr(options, name) is not None}
    changes = {name: value_of(name, text) for name, text in texts.items()}
    if options.scores is not None:
        changes["scores"] = options.scores
    if options.known_only and changes.setdefault("unknown", "drop") != "drop":
        raise ConfigError("unknown is given twice.", "Leave out --known-only or --unknown.")
    others = read_settings(options.set or [])
    if twice := sorted(changes.keys() & others.keys()):
        fix = "Give it as an option or with --set, not both."
        raise ConfigError(f"{twice[0]} is given twice.", fix)
    return changes | others


def retain_of(options: argparse.Namespace) -> str | FactSet:
    """The facts to retain, as `load_facts` takes them. A file is read by --columns and --drop-bad;
    columns that it lacks are ignored."""
    if options.retain in (None, *RETAIN):
        return options.retain or "own"
    table = read_table(Path(options.retain))
    chosen = {
        field: path
        for field, path in chosen_columns(options).items()
        if all(name in table.columns for name in table.parts_of(path))
    }
    return table.facts("", guessed(table.columns) | chosen, "retain", options.drop_bad)


def configured(options: argparse.Namespace) -> tuple[RunConfig, FactSet]:
    """The configuration and the facts that the options of `run` describe: those of --config,
    changed by the other options, or the defaults of method, preset and model. Raises ConfigError:
    options that cannot be combined, a file that is no configuration, or anchors without any use.
    DataError, NetworkError: the facts cannot be loaded."""
    # Each shipped model has its own fact set.
    named = options.facts or model_of(options.model)
    changes = settings_of(options)
    if options.facts or not options.config:
        changes["facts"] = named
    if options.config:
        config = _config_of(options)
        arguments = {**config.arguments, **changes.pop("arguments", {})}
        config = replace(config, arguments=arguments, **changes)
    else:
        names = {"method": _method(options.method), "preset": options.preset}
        names["model"] = options.model or model_of(named)
        given = {name: value for name, value in names.items() if value is not None}
        config = make_config(**given, **changes)
    beside_config = options.config and options.config.with_name(FACTS_FILE)
    if beside_config and not options.facts and beside_config.is_file():
        if options.retain:
            message = "--config has its own facts to retain already."
            raise ConfigError(message, "Leave --retain out, or give --facts too.")
        facts = FactSet.load(beside_config, config.facts)
        # an older run's file has no tiers
        facts = facts if facts.tiers.source else replace(facts, tiers=ON_SCALE)
    else:
        read = reading_of(options)
        facts = load_facts(config.facts, config.model, retain=retain_of(options), **read)
    if options.anchors is not None:
        if not follows_scores(config):
            message = "--anchors changes nothing here: this run does not use scores."
            raise ConfigError(message, "Leave it out.")
        auto = options.anchors == AUTO  # decided when the run's facts are known
        config = replace(config, beta=None if auto else calibrated(options.anchors, facts))
    return config, facts


def _config_of(options: argparse.Namespace) -> RunConfig:
    """The configuration in the file of --config. It sets method, preset and, unless --model gives
    another path, the model. Raises ConfigError: it cannot be read, or one of these is given too."""
    for name in ("method", "preset"):
        if getattr(options, name) is not None:
            message = f"--config already sets the {name}."
            raise ConfigError(message, f"Leave --{name} out, or --config.")
    try:
        if options.config.exists() and not options.config.is_file():
            raise OSError("it is no regular file")  # a pipe or a device might never end
        text = options.config.read_text(encoding="utf-8")
        config = RunConfig.from_json(text, str(options.config))
        return replace(config, model=options.model or config.model)
    # ValueError: no file can have this name, or its text is invalid.
    except (OSError, ValueError) as error:
        message = f"{str(options.config)!r} cannot be read ({error})."
        raise ConfigError(message, "Name a run's config.json.") from None


def _method(name: str | None) -> str | type | None:
    """The method as `make_config` takes it: a name, or the class of package.module:Class."""
    if name is None or ":" not in name:
        return name
    from adapop.objectives import objective_class

    return objective_class(name)
