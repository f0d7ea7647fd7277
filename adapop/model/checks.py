"""Checks of a model: config.json and tokenizer before gigabytes are loaded, the weights after; and
why one cannot be loaded, from the errors of the Hub and transformers."""

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from inspect import signature
from itertools import chain
from pathlib import Path

import torch
from huggingface_hub import constants, errors
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from adapop.config.run import RunConfig
from adapop.errors import ModelError, truncated
from adapop.model.adapter import decoder_of
from adapop.model.catalogue import FOUR_BITS
from adapop.model.chat import encode_prompt, turn_end
from adapop.model.out_of_memory import is_out_of_memory
from adapop.online.client import connection_hint

# first bytes of a file that stands in for one that Git LFS has not fetched
LFS = b"version https://git-lfs"
KINDS = (AutoModelForCausalLM, AutoModelForImageTextToText)
# largest accepted sizes in a config.json, several times those of the largest models
MOST = {
    "num_hidden_layers": 1_000, "num_attention_heads": 2_048, "num_key_value_heads": 2_048,
    "head_dim": 16_384, "hidden_size": 262_144, "intermediate_size": 2_097_152,
    "vocab_size": 8_388_608, "num_experts": 8_192, "num_local_experts": 8_192,
    "n_routed_experts": 8_192,
}  # fmt: skip
LEAST_BYTES = 1 / 8  # of a weight on disk: one bit


def outline_of(shape: PretrainedConfig) -> tuple[type, PreTrainedModel]:
    """(transformers' class for models of this kind, a model of this shape without weights). Raises
    ValueError: a size is beyond any model's: an outline of a million blocks takes all memory.
    ModelError: it is no language model, or cannot compute the logits of chosen positions only."""
    text = shape.get_text_config()
    for name, most in MOST.items():
        least = 0 if "expert" in name else 1
        # first without getattr, which raises where a size differs by layer (Gemma 4)
        size = vars(text).get(text.attribute_map.get(name, name)) or getattr(text, name, None)
        if isinstance(size, int) and not least <= size <= most:
            bounds = f"only sizes of {least} to {most:,} can be laid out"
            raise ValueError(f"its config.json has {name} = {size:,}, and {bounds}")
    for kind in KINDS:
        try:
            with torch.device("meta"):
                outline = kind.from_config(shape)
        except ValueError as error:
            if "Unrecognized configuration class" not in str(error):
                raise
            continue
        if "logits_to_keep" in signature(outline.forward).parameters:
            return kind, outline
        name = type(outline).__name__
        message = f"{name} cannot compute the logits of chosen positions only: no logits_to_keep."
        fix = "Use a model of another kind: nearly all causal models of transformers know it."
        raise ModelError(message, fix)
    message = f"A model of the kind {shape.model_type!r} does not write text from left to right."
    raise ModelError(message, "Use a causal language model.")


def check_size(outline: PreTrainedModel, folder: Path) -> None:
    """Raises ValueError if a folder's weights take far less than its config.json describes."""
    there = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    count = sum(weight.numel() for weight in outline.parameters())
    if there and count * LEAST_BYTES > there:
        excess = f"too many for files of {there:,} bytes"
        raise ValueError(f"its config.json describes {count:,} weights, {excess}")


def weight_bytes(outline: PreTrainedModel, config: RunConfig) -> float:
    """Bytes of the outline's weights as loaded; in 4 bits, linear layers but the head shrink."""
    width = getattr(torch, config.precision).itemsize
    whole = width * sum(weight.numel() for weight in outline.parameters())
    if not config.four_bit:
        return whole
    head = outline.get_output_embeddings()
    linear = (part for part in outline.modules() if isinstance(part, nn.Linear))
    narrow = sum(part.weight.numel() for part in linear if part is not head)
    return whole - (width - FOUR_BITS) * narrow


def check_vocabulary(outline: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Checks that the model has a vector for every token of any text and of the chat template.
    Raises ModelError: a token has none, unless no text holds it (Gemma 3's image token)."""
    rows, added = outline.get_input_embeddings().weight.shape[0], tokenizer.added_tokens_decoder
    written = {tokenizer.pad_token_id}
    if tokenizer.chat_template is not None:
        written |= {*encode_prompt(tokenizer, "?"), *turn_end(tokenizer)}
    beyond = {number: token for token, number in tokenizer.get_vocab().items() if number >= rows}
    special = {number for number, token in added.items() if token.special}
    if used := sorted(beyond.keys() - (special - written)):
        fault = f"{len(used):,} of its tokens, the first {beyond[used[0]]!r} with id {used[0]:,}"
        where = f"lie beyond the model's embedding, which has {rows:,} rows"
        fix = "Use the tokenizer that came with these weights, or enlarge and train the embedding."
        raise ModelError(f"The tokenizer does not fit the model: {fault}, {where}.", fix)


def check_weights(base: PreTrainedModel, missing: Collection[str]) -> None:
    """Checks that all weights that a text passes through were read and are finite. missing: names
    of weights that were in no file, which transformers has drawn at random. Raises ModelError: a
    weight was not read, or holds NaN or infinity."""
    reached = _reached(base)
    if absent := sorted(name for name in missing if name in reached):
        lacking = f"{len(absent):,} of its {len(reached):,} weights, for example {absent[0]}"
        fix = "Copy or download the whole model again."
        raise ModelError(f"The model's files lack {lacking}.", fix)
    numbers = {name: weight for name, weight in reached.items() if weight.is_floating_point()}
    sums = {name: weight.detach().sum() for name, weight in numbers.items()}
    if spoilt := [name for name, total in sums.items() if not total.isfinite()]:
        fault = f"{len(spoilt):,} of the model's weights hold NaN or infinity"
        fix = (
            "The files are damaged, or were already saved with this fault: download them "
            "again, or another revision."
        )
        raise ModelError(f"{fault}, for example {spoilt[0]}.", fix)


def lfs_pointers(folder: Path) -> list[str]:
    """Names of a folder's files that hold a Git LFS pointer in place of their content."""
    names = []
    for path in sorted((*folder.glob("*.json"), *folder.glob("*.safetensors"))):
        with path.open("rb") as file:
            names += [path.name] if file.read(len(LFS)) == LFS else []
    return names


def _reached(base: PreTrainedModel) -> dict[str, nn.Parameter]:
    """The weights that a text passes through: the text decoder's and the output head's."""
    modules = (decoder_of(base), base.get_output_embeddings())
    weights = (part.parameters() for part in modules if part is not None)
    parts = set(map(id, chain.from_iterable(weights)))
    return {name: weight for name, weight in base.named_parameters() if id(weight) in parts}


def check_number(file: str, name: str, value: object) -> None:
    """Checks that a setting of a model's folder is a number, or not set. Raises ModelError."""
    if not isinstance(value, int | float | None):
        message = f"In the model's {file}, {name} is {truncated(value)!r}, which is not a number."
        raise ModelError(message, "Correct it there, or download the model again.")


def reply_ends(base: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int] | None:
    """Ids that end a reply: of the model, the tokenizer, and the chat template's turns. No other
    generation setting is kept: greedy means argmax, without a repetition penalty (Qwen)."""
    own = base.generation_config.eos_token_id
    own = own if isinstance(own, list) else [own]
    for end in own:
        check_number("generation_config.json or config.json", "eos_token_id", end)
    ends = {tokenizer.eos_token_id, *own}
    if tokenizer.chat_template is not None:
        ends |= {*turn_end(tokenizer)[:1]} & {*tokenizer.added_tokens_decoder}
    return sorted(ends - {None}) or None


FAILURES = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, ImportError,
    ArithmeticError, AssertionError, MemoryError, SafetensorError, errors.StrictDataclassError,
)  # fmt: skip


@contextmanager
def named_failures(config: RunConfig) -> Iterator[None]:
    """A context that turns any failure into a ModelError with its cause and what to do."""
    try:
        yield
    except FAILURES as error:
        raise failure(error, config) from error


def failure(error: Exception, config: RunConfig) -> ModelError:
    why, fix = _reason(error, config)
    return ModelError(f"The model {config.model!r} cannot be loaded: {why}.", fix)


def _reason(error: Exception, config: RunConfig) -> tuple[str, str]:
    page, causes = f"https://huggingface.co/{config.model}", list(_causes(error))
    # the text of these errors is no sentence, so their class is named too
    own = isinstance(error, LookupError | TypeError | AttributeError)
    message = f"{type(error).__name__}: {error}" if own or not str(error) else str(error)

    def any_is(kind: type) -> bool:
        return any(isinstance(cause, kind) for cause in causes)

    if any_is(errors.GatedRepoError):
        fix = f"Accept its licence at {page}, then set HF_TOKEN to a token of that account."
        return "it is gated, and you have no access with this token, or no token", fix
    if any_is(errors.RevisionNotFoundError):
        return f"it has no revision {config.revision!r}", f"See {page}/tree/main."
    if any_is(errors.RepositoryNotFoundError):
        fix = "Check the name; for a private model set HF_TOKEN."
        return "the Hub has no such model, or it is private", fix
    if any(isinstance(cause, OSError) and cause.errno == errno.ENOSPC for cause in causes):
        return "the disk is full", "Make room, or set HF_HOME to a folder on another disk."
    if any(map(is_out_of_memory, causes)):
        return "the memory is full", "Load it in 4 bits (--four-bit), or use a smaller model."
    if any_is(errors.LocalEntryNotFoundError) or "We couldn't connect to" in message:
        off, hint = "HF_HUB_OFFLINE is set", ""
        if not constants.HF_HUB_OFFLINE:
            off = f"{constants.ENDPOINT} does not answer"
            hint = f" {connection_hint(constants.ENDPOINT)}"
        fix = f"Connect and try again, or name a folder that holds the model.{hint}"
        return f"no folder has this name, it was never downloaded here, and {off}", fix
    if "trust_remote_code" in message:
        why = "it comes with code of its own, which is never run here"
        return why, "Use a model that needs none."
    if "Repo id must" in message:
        return "no folder has this name, and no model of the Hub can have it", "Check the path."
    if pointers := lfs_pointers(Path(config.model)):
        fix = "Run `git lfs pull` in the folder, or download the model with `hf download`."
        return f"{pointers[0]} only stands for a file that Git LFS has not fetched", fix
    absent = "no file named" in message or "does not appear to have" in message
    if "safetensors" in message and absent:
        if Path(config.model).is_dir() and not any(Path(config.model).glob("*.bin")):
            fix = "Copy or download the whole model, with its *.safetensors files."
            return "its folder holds no weights", fix
        why = "it has no safetensors weights, and pickled ones are never read"
        return why, "Use another revision of it, or convert it to safetensors."
    why = next(iter(message.strip().splitlines()), "no reason is given").rstrip(".:")
    if "ignore_mismatched_sizes" in message:
        why = "its weights have other sizes than its config.json describes"
    return why, "Check the name, and that the folder or repository is complete."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and the chain of its causes: transformers wraps the Hub's errors."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
