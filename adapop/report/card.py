"""Model card and loading instructions of exported weights. No torch."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from huggingface_hub import ModelCardData
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from adapop.config.run import RunConfig
from adapop.facts.benchmarks import DUET, POPQA, RWKU, YAGO
from adapop.facts.catalog import ENTRIES
from adapop.model.adapter_folder import NAME, REVISION, is_adapter, settings_of
from adapop.model.catalogue import MODELS
from adapop.model.converted import is_gguf
from adapop.paths import ASSETS, SHIPPED
from adapop.probes.prompting import HOW
from adapop.probes.prompts import plain
from adapop.report import story, tables
from adapop.report.published import PAPER_PAGE
from adapop.report.record import Record, described_run, name_of
from adapop.report.settings import is_folder_s_name
from adapop.runs.delivered import Delivered, Trial

LICENCES = {  # as the Hub spells them
    "Apache 2.0": "apache-2.0",
    "Gemma Terms of Use": "gemma",
    "Llama 3.1 Community": "llama3.1",
    "Llama 3.2 Community": "llama3.2",
}
DATASETS = {"duet": DUET, "duet-rare": DUET, "duet-popular": DUET, "rwku": RWKU}
DATASETS |= {"hubble-popqa": POPQA, "hubble-yago": YAGO}


def templates() -> Environment:
    """Templates of reports and cards. They escape every value and raise if one is missing."""
    files = FileSystemLoader(ASSETS / "report")
    strict = dict(autoescape=True, undefined=StrictUndefined)
    return Environment(loader=files, trim_blocks=True, lstrip_blocks=True, **strict)


def loading(record: Record, folder: str, merged: bool = False, dtype: str = "") -> str:
    """Python lines that load the adapter or merged model from a folder; without this project unless
    the base is shipped with it or a GGUF file. dtype: the type to load it in; "" for the run's."""
    config = record.config
    dtype = f"dtype={dtype or config.precision!r}"
    if merged:
        head, tail = [], f"model = AutoModelForCausalLM.from_pretrained({folder!r}, {dtype})"
    else:
        name, commit = base_of(record)
        from_hub = commit not in ("", name)
        revision = f", revision={commit!r}" if from_hub else ""
        imported, base = _own_base(name) or ("", repr(name))
        head = ["from peft import PeftModel", *filter(None, [imported])]
        if config.four_bit:  # the base that the run's numbers are of
            head.append("from transformers import BitsAndBytesConfig")
            dtype += f", quantization_config=BitsAndBytesConfig({_nf4(config.precision)})"
        base = f"AutoModelForCausalLM.from_pretrained({base}{revision}, {dtype})"
        tail = f"model = PeftModel.from_pretrained({base}, {folder!r})"
        if is_folder_s_name(name) and not from_hub:
            tail = f"# replace {name} by the path of the original model\n{tail}"
    return "\n".join([*head, "from transformers import AutoModelForCausalLM", "", tail])


def _nf4(precision: str) -> str:
    """The arguments of `model.loading`'s 4-bit base, as Python."""
    kind = "load_in_4bit=True, bnb_4bit_quant_type='nf4', bnb_4bit_use_double_quant=True"
    return f"{kind}, bnb_4bit_compute_dtype={precision!r}"


def base_of(record: Record) -> tuple[str, str]:
    """Name and commit ("" without one) of the model that an exported adapter belongs on. Of a run
    on an adapter's folder it is that adapter's base, since what leaves adds both."""
    if is_adapter(record.place):
        settings = settings_of(record.place)
        return name_of(settings[NAME]), settings.get(REVISION) or ""
    return record.config.model, record.weights.commit if record.weights else ""


def _own_base(model: str) -> tuple[str, str] | None:
    """The import and the expression that give the folder of a base that only this package has."""
    if model in SHIPPED:
        return "from adapop.paths import SHIPPED", f"SHIPPED[{model!r}]"
    if is_gguf(model):
        return "from adapop.model.converted import converted", f"converted({model!r})"
    return None


def adapter_config(path: Path, record: Record) -> str:
    """peft's adapter config, with the model's name in place of its path."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    content[NAME], commit = base_of(record)
    content[REVISION] = commit or record.config.revision
    return json.dumps(content, indent=2)


def origin(record: Record) -> list[tuple[str, str]]:
    """(kind, name) pairs: which code, model and facts made the run."""
    config, weights, versions = record.config, record.weights, record.versions
    commit = weights.commit if weights else ""
    kind = "GGUF file" if is_gguf(config.model) else "folder"
    return [
        ("AdaPop Explorer", versions.get("adapop", "not recorded")),
        ("model", config.model),
        ("its revision", commit or config.revision or f"none: a {kind}"),
        ("SHA-256 of its weights", weights.sha256 if weights else "not recorded"),
        ("SHA-256 of the facts", "left out" if record.redacted else record.facts.sha256),
    ]


def model_card(
    record: Record,
    folder: str,
    merged: bool,
    delivered: Delivered | None = None,
    pushed: str = "",
) -> str:
    """The README.md of an exported folder. It contains no facts, because they are to be forgotten.

    delivered: the numbers measured on the files, if they were. pushed: its place on the Hub."""
    before, after, config = record.before, record.after, record.config
    if delivered:  # a stopped run has no table of its own
        before, after = before or replace(delivered.measured, rows=()), delivered.measured
    base, _ = base_of(record)
    measured, chat = before and after, "through the chat template of its tokenizer"
    dtype = delivered.loaded_as if delivered else "float32" if merged else ""
    card = templates().get_template("model_card.md")
    recall = tables.recall_table(before, after).as_markdown() if measured else None
    return card.render(
        metadata=Markup(metadata(record, merged)),
        paper=PAPER_PAGE,
        merged=merged,
        record=record,
        described=described_run(record),
        popularity=story.popularity(record.facts),
        outcome_lines=story.outcome_lines(record),
        recall=recall and Markup(recall),
        delivered=delivered,
        delivered_lines=[Markup(line) for line in delivered_lines(delivered, merged)],
        code=Markup(loading(record, pushed or folder, merged, dtype)),
        system=config.system,
        asked=HOW[record.prompting.asking] if record.prompting else chat,
        origin=origin(record),
        gguf=Markup(gguf(replace(config, model=base), folder, merged)),
        joined=config.model if base != config.model and not merged else "",
    )


def metadata(record: Record, merged: bool) -> str:
    """The card's YAML, by which the Hub files the model. Left out is what is not known: the licence
    of a model that is not listed here, the language of a user's facts."""
    (model, _), name = base_of(record), record.facts.name
    preset = MODELS.get(model)
    base = (preset and preset.origin) or model
    licence = "Apache 2.0" if model in SHIPPED else preset.licence if preset else ""
    about = ModelCardData(
        base_model=base if "/" in base else None,
        license=LICENCES.get(licence),
        library_name="transformers" if merged else "peft",
        pipeline_tag="text-generation",
        language="en" if name in ENTRIES else None,
        datasets=[DATASETS[name]] if name in DATASETS else None,
        tags=["unlearning", "machine-unlearning", "adapop", *([] if merged else ["lora"])],
    )
    if about.base_model:
        about.base_model_relation = "finetune" if merged else "adapter"
    return about.to_yaml()


def unmeasured(merged: bool = False) -> tuple[str, ...]:
    """Sentences on an adapter, or a merged model, whose files were not measured."""
    what, option = ("merged model", "--merged ") if merged else ("adapter", "")
    risk = ", and merging and rounding can bring facts back" if merged else ""
    return (
        f"The {what} was not measured from its files: all numbers are those of the "
        f"run's own model{risk}.",
        f"To measure it, run `python -m adapop export RUN {option}--out FOLDER` where the run is.",
    )


def delivered_lines(delivered: Delivered | None, merged: bool = False) -> tuple[str, ...]:
    """Sentences on delivered files: the type of merged weights, what came back and what went.
    merged: what was delivered, where it was not measured."""
    if delivered is None:
        return unmeasured(merged)
    *refused, trial = delivered.trials
    lines = [
        f"In {one.dtype} ({_size(one)}) {_returned(one)}: too many, so another type was used."
        for one in refused
    ]
    if delivered.kind == "merged":
        lines.append(f"The weights are merged in float32 and written in {trial.dtype}.")
    what = "merged model" if delivered.kind == "merged" else "adapter"
    lines.append(
        f"The {what} was loaded again from its files ({_size(trial)}) in {delivered.loaded_as} and "
        f"asked all facts to forget. Compared with the run's own model, {_returned(trial)}, "
        f"{_counts(trial, trial.went)} are no longer answered."
    )
    return tuple(lines)


def _returned(trial: Trial) -> str:
    return f"{_counts(trial, trial.came_back)} came back"


def _counts(trial: Trial, counts: Mapping[str, int]) -> str:
    parts = (f"{counts[form]} of {trial.asked[form]:,} {plain(form)}" for form in trial.asked)
    return " and ".join(parts)


def _size(trial: Trial) -> str:
    return f"{trial.bytes / 1e6:,.1f} MB"


def gguf(config: RunConfig, folder: str, merged: bool) -> str:
    """llama.cpp's command that converts the folder to GGUF. config: names the base, or an adapter's
    folder, on whose base the exported adapter belongs."""
    model = settings_of(config.model)[NAME] if is_adapter(config.model) else config.model
    out = f"--outfile {quote(f'{Path(folder).name}.gguf')}"
    if merged:
        return f"python convert_hf_to_gguf.py {quote(folder)} {out}"
    if own := _own_base(model):
        base = f'--base "$(python -c {quote("; print(".join(own) + ")")})"'
    elif os.path.isabs(model):
        base = f"--base {quote(model)}"
    else:
        base = "--base PATH_OF_THE_MODEL" if is_folder_s_name(model) else f"--base-model-id {model}"
    return f"python convert_lora_to_gguf.py {quote(folder)} {base} {out}"
