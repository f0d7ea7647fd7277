"""The model of a run: base weights and tokenizer from a folder or the Hub, and a LoRA adapter; and
a merged model as files, with weights computed in float32 and everything else as published.

Only safetensors are read, and no model's code is run. An error names cause and remedy.
"""

import gc
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub as hub
import torch
import transformers
from huggingface_hub import constants, errors
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file
from transformers.utils.logging import disable_progress_bar

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ModelError
from adapop.model import adapter_folder, chat, checks
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import left_out, with_adapter
from adapop.model.adapter_folder import FETCHED, PROCESSORS, SETTINGS, TOKENIZER
from adapop.model.checks import failure, named_failures
from adapop.model.converted import converted, is_gguf, notes_of
from adapop.model.precision import emulated_bfloat16, set_products, speed_note, with_precision
from adapop.model.trial import try_out
from adapop.paths import ORACLE, SHIPPED

# While transformers loads a model, it replaces torch's weight initialisation globally: a model made
# in another thread would stay uninitialised, and two loads at once may never restore it.
READING = threading.RLock()
SLOW_PLACES = {"cpu", "disk"}  # where accelerate puts what does not fit on a GPU
PATIENCE = 5.0  # seconds for the Hub's first answer
# keeps a base without an adapter, which is on the CPU, on a device: `training.sharded.Shards.place`
Place = Callable[[PreTrainedModel, torch.device], None]
ROOMY = 0.6  # largest share of a GPU's memory for weights, so that a run's passes fit beside them


def adapted_model(
    config: RunConfig,
    adapter: Path | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    place: Place | None = None,
) -> AdaptedModel:
    """The configured model with a fresh adapter (seeded), or with the saved one in `adapter`.
    tokenizer: instead of the model's own. place: puts the weights where they belong, if several
    processes divide them. Raises ModelError: no such model, no access, no memory or
    disk space, no safetensors, code of its own, no chat template or one that fails, no 4-bit
    support here, no `logits_to_keep`, a tokenizer of another model, no layers that the adapter
    fits, or incomplete weights. Only incomplete weights and lack of memory are found after the
    weights are read."""
    tokenizer = tokenizer or load_tokenizer(config)
    config = with_precision(config)
    if config.asking not in ("auto", "text-examples"):
        chat.check_template(tokenizer)  # before gigabytes are loaded
    with READING:
        base = _base(config, tokenizer, adapter is None, place)
        ends = checks.reply_ends(base, tokenizer)
        base.generation_config = transformers.GenerationConfig(eos_token_id=ends)
        steady_attention(base)
        set_products(config, base.device)
        network = with_adapter(base, config, adapter)
    model = AdaptedModel(network, tokenizer, config.system or "")
    model.whole = place is None
    thinking = chat.notes(tokenizer) if tokenizer.chat_template else ()
    made = (*notes_of(config.model), *adapter_folder.notes_of(config.model))
    model.notes = (*made, *thinking, *left_out(network, config))
    model.notes += (*emulated_bfloat16(config), *speed_note(config))
    return model


def fetch(config: RunConfig) -> None:
    """Downloads a model's files, so that no lent GPU has to wait. Raises ModelError: the download
    fails."""
    with named_failures(config):
        if not _is_local(config):
            files = {"allow_patterns": FETCHED, "ignore_patterns": "*/*"}
            hub.snapshot_download(config.model, revision=config.revision, **files)


def load_tokenizer(config: RunConfig) -> PreTrainedTokenizerBase:
    """The model's tokenizer, padding on the left. Raises ModelError: no tokenizer, or no access."""
    shared = config.model in SHIPPED and config.asking == "chat"  # `ask` sets another's template
    return _shipped_tokenizer(config.model) if shared else _tokenizer(config)


@cache
def _shipped_tokenizer(model: str) -> PreTrainedTokenizerBase:
    """One tokenizer for all runs in chat in this process, as encodings are cached with it."""
    return _tokenizer(make_config(model=model))


def _tokenizer(config: RunConfig) -> PreTrainedTokenizerBase:
    with named_failures(config):
        if not _is_local(config):
            _ask_once(config)
        source, options = source_of(config), {"padding_side": "left", "trust_remote_code": False}
        try_out(source, config.revision)
        load = transformers.AutoTokenizer.from_pretrained
        tokenizer = load(source, revision=config.revision, **options)
        try_out(source, config.revision)  # again: files from the Hub are on this disk only now
    checks.check_number("tokenizer_config.json", "model_max_length", tokenizer.model_max_length)
    if isinstance(tokenizer.chat_template, dict):  # several, for tools and others
        tokenizer.chat_template = tokenizer.chat_template.get("default")
    if not isinstance(tokenizer.chat_template, str):  # a base model
        tokenizer.chat_template = None
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _ask_once(config: RunConfig) -> None:
    """Raises LocalEntryNotFoundError at once if the model is not here and no Hub answers."""
    file = {"repo_id": config.model, "filename": "config.json", "revision": config.revision}
    try:
        if not isinstance(hub.try_to_load_from_cache(**file), str):
            hub.get_hf_file_metadata(hub.hf_hub_url(**file), timeout=PATIENCE)
    except (errors.HfHubHTTPError, ValueError):  # the Hub answered, or this is no model id
        return
    except Exception as error:  # the Hub's client has its own errors, which differ by version
        raise errors.LocalEntryNotFoundError(f"{constants.ENDPOINT} does not answer") from error


def _base(
    config: RunConfig, tokenizer: PreTrainedTokenizerBase, fresh: bool, place: Place | None
) -> PreTrainedModel:
    """The base, checked before and after loading. fresh: with a new adapter. place: as for
    `adapted_model`. Raises ModelError."""
    if config.model in SHIPPED or not (sys.stderr and sys.stderr.isatty()):
        disable_progress_bar()  # loading takes a second, or nobody watches
    bits = _four_bits(config) if config.four_bit else {}
    with named_failures(config):
        shape = _shape(config)
        kind, outline = checks.outline_of(shape)
        checks.check_size(outline, Path(source_of(config)))
    checks.check_vocabulary(outline, tokenizer)
    if fresh:
        with_adapter(outline, replace(config, lora_rank=1))
    placement = _placement(config, outline)
    with named_failures(config):
        base, read = kind.from_pretrained(
            source_of(config),
            config=shape,
            revision=config.revision,
            dtype=getattr(torch, config.precision),
            use_safetensors=True,
            trust_remote_code=False,
            device_map=None if place else placement,
            output_loading_info=True,
            **bits,
        )
    if SLOW_PLACES & {*map(str, getattr(base, "hf_device_map", {}).values())}:
        raise failure(MemoryError(), config)
    checks.check_weights(base, read["missing_keys"])
    if config.four_bit:
        _keep_unpacked(base)
    if place:
        place(base, torch.device("cuda", placement[""]) if placement else torch.device("cpu"))
    return base


def steady_attention(base: PreTrainedModel) -> None:
    """Rules out attention that gives NaN or leaves out a part of the model's computation."""
    # cuDNN's backward pass can give NaN on an H100 (pytorch#196678)
    torch.backends.cuda.enable_cudnn_sdp(False)
    if getattr(base.config.get_text_config(), "attn_logit_softcapping", None):
        # transformers 5.20 silently leaves the soft cap out of SDPA
        base.set_attn_implementation("eager")


def _shape(config: RunConfig) -> transformers.PretrainedConfig:
    """The model's config.json, without dropout and jitter, because scores must not vary."""
    options = {"revision": config.revision, "trust_remote_code": False}
    shape = transformers.AutoConfig.from_pretrained(source_of(config), **options)
    for part in (shape, shape.get_text_config()):
        for name, value in vars(part).copy().items():
            if isinstance(value, float) and ("drop" in name or "jitter" in name):
                setattr(part, name, 0.0)
    return shape


def _placement(config: RunConfig, outline: PreTrainedModel) -> str | dict[str, int] | None:
    """Where the weights go, as transformers' `device_map` names it: this process's GPU; all GPUs,
    if one process sees several and the weights leave no room on one; None, which is the CPU,
    without a GPU. Shipped models stay on the CPU: it is as fast for them, and the numbers are the
    same everywhere. A device that is named is taken for any model. outline: the model without its
    weights. Raises ModelError: the GPU that is named is not there."""
    oracles = [str(folder / ORACLE) for folder in SHIPPED.values()]
    named = torch.device(config.device) if config.device != "auto" else None
    if named and named.type == "cuda":
        return {"": _gpu(named)}
    if named or config.model in (*SHIPPED, *oracles) or not torch.cuda.is_available():
        return None
    device, alone = torch.cuda.current_device(), not torch.distributed.is_initialized()
    if alone and torch.cuda.device_count() > 1:
        memory = torch.cuda.get_device_properties(device).total_memory
        return {"": device} if checks.weight_bytes(outline, config) <= ROOMY * memory else "auto"
    return {"": device}


def _gpu(named: torch.device) -> int:
    """The GPU's number. Raises ModelError: it is not there."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = named.index if named.index is not None else count and torch.cuda.current_device()
    if number >= count:
        message = f"There is no device {named}: torch sees {count or 'no'} GPU{'s' * (count != 1)}."
        raise ModelError(message, "Use another one, or auto.")
    return number


def source_of(config: RunConfig) -> str:
    """The folder or Hub id that transformers loads; a GGUF file is converted first, and an
    adapter's folder is merged into its base."""
    if is_gguf(config.model):
        with READING:
            return str(converted(config.model))
    if adapter_folder.is_adapter(config.model):
        with READING:
            return str(adapter_folder.merged(config.model))
    return str(SHIPPED.get(config.model, config.model))


def _is_local(config: RunConfig) -> bool:
    return source_of(config) != config.model or Path(config.model).is_dir()


def _four_bits(config: RunConfig) -> dict:
    """NF4, double quantisation (Dettmers et al. 2023, arXiv 2305.14314). Raises ModelError."""
    if find_spec("bitsandbytes") is None:
        message = "A 4-bit base needs bitsandbytes, which is not installed."
        raise ModelError(message, "pip install bitsandbytes")
    quantisation = transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, config.precision),
    )
    return {"quantization_config": quantisation}


def _keep_unpacked(base: PreTrainedModel) -> None:
    """Keeps 4-bit weights as they were loaded. On a CPU with bfloat16, bitsandbytes (0.50) packs
    them anew in the first pass without gradients, and every later gradient through them is 0."""
    for layer in base.modules():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            layer.support_avx512bf16_for_cpu = False


FILES = (SETTINGS, *TOKENIZER, *PROCESSORS)
# transformers' names for weights that it keeps in float32, whatever type the others have
KEPT_WIDE = ("_keep_in_fp32_modules", "_keep_in_fp32_modules_strict")


def save_merged(model: AdaptedModel, config: RunConfig, dtype: str, folder: Path) -> None:
    """Merges the adapter into the weights and writes them with the original's dropout, generation
    settings, tokenizer and processors, not with the run's (left padding, greedy decoding).

    model: loaded in float32, so that the sum is computed in it; it cannot be used afterwards.
    config: names the original. dtype: of the weights as written: bfloat16, float16 or float32.
    Raises ModelError: a weight is too large for it. OSError: the folder cannot be written, or the
    original's files are not there any more."""
    source = source_of(config)
    own = AutoConfig.from_pretrained(source, revision=config.revision, trust_remote_code=False)
    whole = model.network.merge_and_unload(safe_merge=True)
    _narrow(whole, dtype)
    parts = zip((whole.config, whole.config.get_text_config()), (own, own.get_text_config()))
    for part, original in parts:
        for name, value in vars(original).items():
            if "drop" in name or "jitter" in name:
                setattr(part, name, value)
    whole.save_pretrained(folder)
    (folder / SETTINGS).unlink(missing_ok=True)
    files = Path(cached_file(source, "config.json", revision=config.revision)).parent
    for name in FILES:
        if (files / name).exists():
            shutil.copyfile(files / name, folder / name)


@torch.no_grad()
def _narrow(whole: PreTrainedModel, dtype: str) -> None:
    """Rounds the weights in place; tied ones stay tied. Raises ModelError: one is too large."""
    wide = [name for field in KEPT_WIDE for name in getattr(whole, field, None) or ()]
    for name, weight in whole.named_parameters():
        if any(part in name for part in wide):
            continue
        narrowed = weight.data.to(getattr(torch, dtype))
        if not narrowed.isfinite().all():
            message = f"{name} holds weights that are too large for {dtype}."
            raise ModelError(message, "Export it as bfloat16 or float32 (--dtype).")
        weight.data = narrowed
    for part in (whole.config, whole.config.get_text_config()):
        part.dtype = getattr(torch, dtype)
    gc.collect()
