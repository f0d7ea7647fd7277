"""A run's settings: as a command that makes it again, and as differences between runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.facts.catalog import ENTRIES, load_facts
from adapop.popularity.beta import BetaMap
from adapop.report.record import Record
from adapop.report.table import Table

FACTS_FILE = "facts.jsonl"  # in a run's folder and in its archive
OPTIONS = {
    "model": "--model",
    "method": "--method",
    "preset": "--preset",
    "learning_rate": "--lr",
    "epochs": "--epochs",
    "seed": "--seed",
    "missing_score": "--missing-score",
    "cosine": "--cosine",
}
DECISIVE = ("model", "method", "preset")  # they decide the defaults of the others


def command(record: Record) -> str:
    """The command that makes the run again, with every setting that is not the default."""
    config, plain = record.config, RunConfig()
    named = {name: getattr(config, name) for name in DECISIVE if getattr(config, name) != getattr(plain, name)}
    chosen = {name: value for name, value in changed(config).items() if name in OPTIONS}
    facts = facts_argument(record)
    parts = [] if facts == plain.facts else ["--facts", facts]
    for name, value in {**named, **chosen}.items():
        parts += [OPTIONS[name]] if value is True else [OPTIONS[name], str(value)]
    return shlex.join(["python", "-m", "adapop", "run", *parts])


def facts_argument(record: Record) -> str:
    """The set's name if it gives the same facts, else the file in which a run keeps them."""
    name = record.config.facts
    offline = name in ENTRIES and not ENTRIES[name].online
    same = offline and load_facts(name, record.config.model).sha256 == record.facts.sha256
    return name if same else FACTS_FILE


def without_option(config: RunConfig) -> list[str]:
    """Settings that are changed and for which the command has no option, with their values."""
    return [f"{name} = {spoken(value)}" for name, value in changed(config).items() if name not in OPTIONS]


def all_settings(config: RunConfig) -> Table:
    """Every setting with its value."""
    rows = tuple((item.name, spoken(getattr(config, item.name))) for item in fields(config))
    return Table("All settings", ("setting", "value"), rows)


def differences(configs: Sequence[RunConfig]) -> list[tuple[str, list[str]]]:
    """The settings in which runs differ, each with its value in every run."""
    rows = [(item.name, [getattr(config, item.name) for config in configs]) for item in fields(RunConfig)]
    return [(name, list(map(spoken, values))) for name, values in rows if any(value != values[0] for value in values)]


def spoken(value: object) -> str:
    """A setting's value as text."""
    if isinstance(value, BetaMap):
        return ", ".join(f"{name} {number:g}" for name, number in asdict(value).items())
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "none"
    if isinstance(value, bool) or value in ("", None):
        return {True: "yes", False: "no"}.get(value, "none")
    return f"{value:g}" if isinstance(value, float) else str(value)


def changed(config: RunConfig) -> dict[str, object]:
    """The settings that differ from the defaults of method, preset and model."""
    plain = make_config(config.method, config.preset, config.model)
    found = {
        item.name: getattr(config, item.name)
        for item in fields(config)
        if item.name not in (*DECISIVE, "facts") and getattr(config, item.name) != getattr(plain, item.name)
    }
    if config.preset == "beta-mean":  # settled from the facts' own scores when the run was prepared
        found.pop("beta", None)
    if not (config.system or plain.system):  # "" and None: no system prompt
        found.pop("system", None)
    return found
