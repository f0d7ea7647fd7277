"""A peft adapter's folder as a model: its base with the adapter merged into it, in float32.

The sum is made once, into the cache, under the SHA-256 of all files that it comes from. Only
safetensors are read, and no code that a folder names is run. Torch is loaded only to merge.
"""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from adapop.config.presets import make_config
from adapop.errors import ModelError, number_of, truncated
from adapop.model.converted import (
    converted,
    errno_of,
    file_sha256,
    folder_of,
    is_gguf,
    is_whole,
    joint_sha256,
    made_once,
    refused,
    sha256_of,
)
from adapop.online.cache import cache_root
from adapop.paths import PACKAGED, SHIPPED
from adapop.remark import Remark

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
NAME, REVISION = "base_model_name_or_path", "revision"
FETCHED = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]
SETTINGS = "generation_config.json"
TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja", "chat_template.json", "vocab.json", "vocab.txt", "merges.txt",
    "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip
PROCESSORS = (  # of models that also see or hear
    "preprocessor_config.json", "processor_config.json", "image_processor_config.json",
    "video_preprocessor_config.json", "feature_extractor_config.json",
)  # fmt: skip
# settings of peft that cannot be merged, or name a module to import
UNMERGED = {
    "layer_replication": "it repeats layers of its base, which share their weights",
    "megatron_config": "it is for Megatron",
}
# settings of an adapter that cannot be made one with another by joining their ranks
NOT_JOINED = (
    "use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "target_parameters",
    "trainable_token_indices", "lora_bias",
)  # fmt: skip
PREFIX = "base_model.model."  # of the names of peft's weights
PROBE = 16  # tokens on which the merged model is compared with base and adapter
NEAR = 1e-3  # most difference of their logits, as a share of the largest one
OTHER_BASE = f"Put the base there, or write its folder or Hub id into {NAME} of {CONFIG}."


def is_adapter(model: str) -> bool:
    """Whether a model's name is the path of a folder with an adapter alone."""
    if model in SHIPPED or model in PACKAGED:
        return False
    alone = not os.path.isfile(os.path.join(model, "config.json"))
    return alone and os.path.isfile(os.path.join(model, CONFIG))


def settings_of(model: str) -> dict[str, Any]:
    """The adapter_config.json. Raises ModelError: it cannot be read, is of no LoRA that can be
    merged, names no base, or its weights are not in safetensors."""
    folder = Path(model)
    try:
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        fix = "Copy or download the adapter again."
        raise _refused(model, f"its {CONFIG} cannot be read ({truncated(error)})", fix) from error
    kind = settings.get("peft_type") if isinstance(settings, dict) else None
    if kind != "LORA":
        why = f"its adapter is of the kind {truncated(kind)!r}, and only LoRA is merged"
        raise _refused(model, why, "Merge it with peft, save the model, and name its folder.")
    if settings.get("task_type") not in (None, "CAUSAL_LM"):
        why = f"its adapter is for the task {truncated(settings['task_type'])!r}"
        raise _refused(model, why, "Use an adapter of a causal language model (CAUSAL_LM).")
    for name, why in UNMERGED.items():
        if settings.get(name):
            raise _refused(model, f"{why} ({name} in {CONFIG})", "Use another adapter.")
    if not (folder / WEIGHTS).is_file():
        pickled = (folder / "adapter_model.bin").is_file()
        why = "its adapter is pickled (adapter_model.bin), and pickles are never read"
        why = why if pickled else f"its folder holds no {WEIGHTS}"
        fix = "Save it as safetensors (peft's save_pretrained)." if pickled else "Copy it again."
        raise _refused(model, why, fix)
    if not isinstance(settings.get(NAME), str) or not settings[NAME].strip():
        why = f"its {CONFIG} does not name the base that it belongs to ({NAME})"
        raise _refused(model, why, OTHER_BASE)
    return settings


def unjoined(model: str) -> list[str]:
    """The settings for which an adapter cannot be made one with another by joining their ranks.
    Raises ModelError: as `settings_of`."""
    settings = settings_of(model)
    names = [name for name in NOT_JOINED if settings.get(name)]
    return names + ["bias"] * (settings.get("bias") not in (None, "none"))


def write_joined(folder: Path, first: Path, second: Path, sign: int = 1) -> None:
    """Writes one adapter that adds exactly what two add, in float32: their ranks one after the
    other. The other settings are those of the second.

    folder: may be that of a part. first, second: folders of adapters that `unjoined` has nothing
    against. sign: -1 takes away what the first adds. Raises ModelError: one is no LoRA of a single
    rank. OSError."""
    from safetensors.torch import load_file, save_file

    from adapop.model.adapter import concatenated

    settings = [settings_of(str(part)) for part in (first, second)]
    scales = [
        one["lora_alpha"] / (one["r"] ** 0.5 if one.get("use_rslora") else one["r"])
        for one in settings
    ]
    states = [load_file(part / WEIGHTS) for part in (first, second)]
    for name, weight in states[0].items():
        if ".lora_B" in name or ".lora_embedding_B" in name:
            states[0][name] = weight.float() * (sign * scales[0] / scales[1])
    joined, rank = concatenated(*states)
    layers = {name.removeprefix(PREFIX).partition(".lora_")[0] for name in joined}
    about = settings[1] | dict.fromkeys(
        ("exclude_modules", "layers_to_transform", "layers_pattern")
    )
    about |= {"r": rank, "lora_alpha": scales[1] * rank, "use_rslora": False}
    about["target_modules"] = sorted(layers)  # the full names, of which no two are alike
    save_file(joined, folder / WEIGHTS, {"format": "pt"})
    (folder / CONFIG).write_text(json.dumps(about, indent=2, sort_keys=True), encoding="utf-8")


def base_of(model: str, fetched: bool = False) -> Path:
    """The folder of the base: a model shipped or from a package, a folder, one beside the adapter's
    or in it, or the Hub's. fetched: downloads or converts it, else only what is here is looked up.
    Raises ModelError: it is not found, is an adapter itself, or is quantised."""
    settings = settings_of(model)
    name, folder = settings[NAME], Path(model).resolve()
    if name in PACKAGED:
        return converted(name) if fetched else folder_of(name)
    places = [SHIPPED.get(name, Path(name)), folder.parent / name, folder / name]
    if path := next((place for place in places if os.path.isdir(place)), None):
        return _usable(model, path)
    if is_gguf(name) and (file := next(filter(os.path.isfile, places), None)):
        return converted(str(file)) if fetched else folder_of(str(file))
    options = {REVISION: settings.get(REVISION) or None, "local_files_only": not fetched}
    try:
        patterns = {"allow_patterns": FETCHED, "ignore_patterns": "*/*"}
        return _usable(model, Path(snapshot_download(name, **options, **patterns)))
    except HFValidationError as error:
        raise _refused(model, f"there is no folder of its base {name!r}", OTHER_BASE) from error
    except (OSError, ValueError, HfHubHTTPError) as error:
        from adapop.model.checks import failure

        base = failure(error, make_config(model=name, revision=options[REVISION] or ""))
        message = f"The model {model!r} is an adapter, and its base was not found. {base.message}"
        raise ModelError(message, f"{base.fix} {OTHER_BASE}") from error


def weights_sha256(model: str) -> str:
    """The SHA-256 of the lines `HASH  NAME` of the base's files of weights, the adapter's, and its
    settings without the name of the base, which may move. Raises ModelError, OSError."""
    settings = settings_of(model)
    own = {name: value for name, value in settings.items() if name not in (NAME, REVISION)}
    lines = [(file_sha256(path), path.name) for path in _weights(base_of(model))]
    lines.append((sha256_of([Path(model) / WEIGHTS]), WEIGHTS))
    lines.append((hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest(), CONFIG))
    return joint_sha256(lines)


def merged(model: str) -> Path:
    """The folder with the sum of base and adapter, which transformers loads as any other; made if
    missing or damaged, with a line on standard error. The tokenizer is the adapter's, if it has
    one, else the base's. Raises ModelError: the base is not found, the adapter does not fit it or
    cannot be merged exactly, no memory, or no room in the cache."""
    base = base_of(model, fetched=True)
    folder = cache_root() / "models" / _key(model, base)
    if is_whole(folder, "merged"):
        return folder
    return made_once(folder, Path(model).name, "merged", lambda target: _merge(model, base, target))


def notes_of(model: str) -> tuple[Remark, ...]:
    """A note that names base and adapter, without places of this machine; () for other models."""
    if not is_adapter(model):
        return ()
    name = settings_of(model)[NAME]
    here = os.path.isabs(name) or name.startswith(".")
    values = {"base": Path(name).name if here else name, "adapter": Path(model).resolve().name}
    return (Remark("adapter_merged", values),)


def _refused(model: str, why: str, fix: str) -> ModelError:
    return refused(Path(model).name, why, fix)


def _usable(model: str, base: Path) -> Path:
    if is_adapter(str(base)):
        why = f"its base {base.name!r} is an adapter itself"
        raise _refused(model, why, "Merge that one first, save the model, and name it as the base.")
    try:
        shape = json.loads((base / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = f"its base {base.name!r} has no config.json that can be read"
        raise _refused(model, why, OTHER_BASE) from error
    if isinstance(shape, dict) and shape.get("quantization_config"):
        why = f"its base {base.name!r} is quantised, and nothing can be added to that exactly"
        raise _refused(model, why, f"Name the base without quantisation in {NAME} of {CONFIG}.")
    return base


def _weights(base: Path) -> list[Path]:
    return sorted(base.glob("*.safetensors"))


def _files(model: str, base: Path) -> list[Path]:
    """The files that are copied: the base's, and the tokenizer's from where it is."""
    own = Path(model)
    has_own = any((own / name).is_file() for name in TOKENIZER[:2])
    tokenizer = [(own if has_own else base) / name for name in TOKENIZER]
    others = [base / name for name in (SETTINGS, *PROCESSORS)]
    return [path for path in (*tokenizer, *others) if path.is_file()]


def _key(model: str, base: Path) -> str:
    files = [*_weights(base), base / "config.json", *_files(model, base)]
    files += [Path(model) / name for name in (CONFIG, WEIGHTS)]
    return joint_sha256((file_sha256(path), path.name) for path in files)


def _merge(model: str, base: Path, target: Path) -> None:
    """Writes base plus adapter, and reads it again to compare. Raises as `merged`."""
    import torch
    from transformers import AutoConfig, GenerationConfig

    from adapop.model import checks
    from adapop.model.checks import named_failures

    print(
        f"Merging {model} into its base; the result is kept in {target.parent}.",
        file=sys.stderr,
        flush=True,
    )
    options = {"dtype": torch.float32, "use_safetensors": True, "trust_remote_code": False}
    with named_failures(make_config(model=str(base))):
        shape = AutoConfig.from_pretrained(base, trust_remote_code=False)
        kind, outline = checks.outline_of(shape)
        checks.check_size(outline, base)
        network, read = kind.from_pretrained(
            base, config=shape, output_loading_info=True, **options
        )
    checks.check_weights(network, read["missing_keys"])
    count = min(PROBE, network.get_input_embeddings().weight.shape[0])
    ids = torch.arange(count)[None]
    adapted = _with_saved(model, base, network).eval()
    with torch.no_grad():
        before = adapted(input_ids=ids).logits
    try:
        whole = adapted.merge_and_unload(safe_merge=True)
    except ValueError as error:
        raise unfit(model, base, error) from error
    whole.generation_config = GenerationConfig()  # the base's file is copied as it is
    whole.save_pretrained(target)
    (target / SETTINGS).unlink(missing_ok=True)
    for path in _files(model, base):
        shutil.copyfile(path, target / path.name)
    del adapted, network, whole
    with torch.no_grad():
        after = kind.from_pretrained(target, **options).eval()(input_ids=ids).logits
    if not (after - before).abs().max() <= NEAR * before.abs().max():
        why = "merged into its base it does not compute what base and adapter do"
        fix = "It may adapt an output layer that is also the embedding: leave that layer out."
        raise _refused(model, why, fix)


def _with_saved(model: str, base: Path, network: Any) -> Any:
    """The base with the saved adapter, all of whose weights have found their place."""
    import peft
    from safetensors import SafetensorError

    try:
        settings = peft.PeftConfig.from_pretrained(model)
        settings.inference_mode = True
        adapted = peft.PeftModel(network, settings)
        read = adapted.load_adapter(model, "default", torch_device="cpu")
    except (RuntimeError, ValueError, LookupError, TypeError, SafetensorError) as error:
        if errno_of(error) is not None:
            raise
        raise unfit(model, base, error) from error
    missing = [key for key in read.missing_keys if "lora_" in key or "modules_to_save" in key]
    if wrong := [*read.unexpected_keys, *missing]:
        raise unfit(model, base, f"{number_of(len(wrong), 'weight')}, for example {wrong[0]}")
    return adapted


def unfit(model: str, base: Path, what: object) -> ModelError:
    """The error for an adapter that does not fit a base. what: why, by its first telling line."""
    lines = [line.strip() for line in str(what).splitlines() if line.strip()]
    sizes = [line for line in lines if "size mismatch" in line]
    about = truncated((*sizes, *lines, type(what).__name__)[0])
    why = f"its adapter does not fit the base {base.name!r}, or is damaged ({about})"
    return _refused(model, why, f"Check {NAME} in {CONFIG}, or download the adapter again.")
