"""A run's settings as text, the command that repeats the run, and differences between runs."""

import os
from collections.abc import Sequence
from dataclasses import asdict, fields

from adapop.config.presets import untouched
from adapop.config.run import RunConfig
from adapop.paths import PACKAGED, SHIPPED
from adapop.popularity.beta import BetaMap
from adapop.probes.prompting import Prompting, remarks_of
from adapop.remark import sentences
from adapop.report.table import Table

FACTS_FILE = "facts.jsonl"  # in a run's folder and in its archive
CONFIG_FILE = "config.json"  # beside it
# Repeats the run in the folder that holds these two files.
COMMAND = f"python -m adapop run --config {CONFIG_FILE}"
NEEDED = (
    "in the folder that holds its config.json and facts.jsonl: the run's own, or where its archive "
    "was unpacked"
)
# what counts where nothing is trained: which models are asked, and how
ASKING = (
    "model", "revision", "unlearned", "oracle", "facts", "system", "asking", "answers", "unknown",
    "max_new_tokens", "precision", "device", "four_bit", "include_tail", "seed", "cosine",
)  # fmt: skip
DECISIVE = ("model", "method", "preset")  # these determine the defaults of the other settings


def repeats(config: RunConfig) -> str:
    """A sentence on repeating the run with `COMMAND`, and what must be unchanged for it."""
    hangs = []
    if ":" in config.method:
        hangs.append(f"the method {config.method} can be imported and is as it was")
    if os.path.isabs(config.model) or is_folder_s_name(config.model):
        hangs.append(
            "the model's folder is unchanged, and --model says where it is if it was moved"
        )
    elif config.model in PACKAGED:
        hangs.append("the Python package that contains the model has the same version")
    elif config.model not in SHIPPED and not config.revision:
        hangs.append("the model on the Hub has not changed since, for the run names no revision")
    if config.model not in SHIPPED:
        same = "the libraries and the kind of GPU are the same"
        hangs.append(f"{same} (rounding differs between them)")
    only = f" only if {'; '.join(hangs)}" if hangs else ""
    return f"This command makes the same run{only}. Type it {NEEDED}."


def is_folder_s_name(model: str) -> bool:
    """Whether a model's name is that of a folder or GGUF file; a Hub id has an owner in front."""
    return model not in (*SHIPPED, *PACKAGED) and "/" not in model


def all_settings(config: RunConfig, prompting: Prompting | None = None) -> Table:
    """Every setting with its value, and how a real model is asked. Of an adopted run those of
    asking alone: it trains nothing."""
    names = ASKING if config.unlearned else [item.name for item in fields(config)]
    rows = [(name, spoken(getattr(config, name))) for name in names]
    rows += [("asking, as chosen", line) for line in sentences(remarks_of(prompting))]
    return Table("All settings", ("setting", "value"), tuple(rows))


def differences(configs: Sequence[RunConfig]) -> list[tuple[str, list[str]]]:
    """The settings in which runs differ, each with its value in every run."""
    rows = []
    for item in fields(RunConfig):
        values = [getattr(config, item.name) for config in configs]
        if any(value != values[0] for value in values):
            rows.append((item.name, list(map(spoken, values))))
    return rows


def spoken(value: object) -> str:
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
    plain = untouched(config)
    names = [item.name for item in fields(config) if item.name not in (*DECISIVE, "facts")]
    values = {name: getattr(config, name) for name in names}
    settings = {name: value for name, value in values.items() if value != getattr(plain, name)}
    if config.preset == "beta-mean":  # decided from the facts' scores when the run was prepared
        settings.pop("beta", None)
    if plain.beta is None and config.beta == BetaMap():  # default of sets on the paper's scale
        settings.pop("beta", None)
    if not (config.system or plain.system):  # "" and None: no system prompt
        settings.pop("system", None)
    return settings
