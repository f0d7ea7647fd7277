"""Checks of a model: config.json and tokenizer before gigabytes are loaded, the weights after."""

from collections.abc import Collection
from inspect import signature
from itertools import chain
from pathlib import Path

import torch
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
from adapop.model.chat import encode_prompt, turn_end
from adapop.model.memory import FOUR_BITS

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
    ModelError: it is no language model, or cannot give the logits of chosen positions alone."""
    text = shape.get_text_config()
    for name, most in MOST.items():
        least = 0 if "expert" in name else 1
        # first without getattr, which raises where a size differs by layer (Gemma 4)
        size = vars(text).get(text.attribute_map.get(name, name)) or getattr(text, name, None)
        if isinstance(size, int) and not least <= size <= most:
            bounds = f"{least} to {most:,} can be laid out"
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
        message = f"{name} cannot give the logits of chosen positions alone: no logits_to_keep."
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
        some = f"{len(used):,} of its tokens, the first {beyond[used[0]]!r} with id {used[0]:,}"
        where = f"lie beyond the model's embedding, which has {rows:,} rows"
        fix = "Use the tokenizer that came with these weights, or enlarge and train the embedding."
        raise ModelError(f"The tokenizer does not fit the model: {some}, {where}.", fix)


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
        some = f"{len(spoilt):,} of the model's weights hold NaN or infinity"
        fix = "The files are damaged, or were saved so: download them again, or another revision."
        raise ModelError(f"{some}, for example {spoilt[0]}.", fix)


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
        message = f"In the model's {file}, {name} is {truncated(value)!r}, which is no number."
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
