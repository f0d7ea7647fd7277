"""Whether a model can be used: what is known from its config.json and tokenizer, before gigabytes are loaded, and
whether the weights are whole afterwards."""

from collections.abc import Collection
from inspect import signature

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
from adapop.errors import ModelError
from adapop.model.chat import encode_prompt, turn_end
from adapop.model.footprint import FOUR_BITS

KINDS = (AutoModelForCausalLM, AutoModelForImageTextToText)


def outline_of(shape: PretrainedConfig) -> tuple[type, PreTrainedModel]:
    """(the class of transformers that loads models of this kind, one of this shape without weights).

    Raises:
        ModelError: it is no language model, or cannot give the logits of chosen positions alone.
    """
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
        message = f"{name} cannot give the logits of chosen positions alone: it knows no logits_to_keep."
        raise ModelError(message, "Use a model of another kind: nearly all causal models of transformers know it.")
    message = f"A model of the kind {shape.model_type!r} does not write text from left to right."
    raise ModelError(message, "Use a causal language model.")


def weight_bytes(outline: PreTrainedModel, config: RunConfig) -> float:
    """Bytes of the outline's weights as they will be loaded. In 4 bits are the linear layers but the output layer."""
    width = getattr(torch, config.precision).itemsize
    whole = width * sum(weight.numel() for weight in outline.parameters())
    if not config.four_bit:
        return whole
    linear = [part for part in outline.modules() if isinstance(part, nn.Linear)]
    narrow = sum(part.weight.numel() for part in linear if part is not outline.get_output_embeddings())
    return whole - (width - FOUR_BITS) * narrow


def check_vocabulary(outline: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Checks that the model has a vector for every token that a text or the chat template can become.

    Raises:
        ModelError: it has none for some. Special tokens that are never written (Gemma 3's image token) may lack one.
    """
    rows, added = outline.get_input_embeddings().weight.shape[0], tokenizer.added_tokens_decoder
    written = {*encode_prompt(tokenizer, "?"), *turn_end(tokenizer), tokenizer.pad_token_id}
    beyond = {number: token for token, number in tokenizer.get_vocab().items() if number >= rows}
    used = sorted(number for number in beyond if number in written or number not in added or not added[number].special)
    if used:
        raise ModelError(
            f"The tokenizer does not fit the model: {len(used):,} of its tokens, the first {beyond[used[0]]!r} with id "
            f"{used[0]:,}, lie beyond the model's embedding, which has {rows:,} rows.",
            "Use the tokenizer that came with these weights, or enlarge the embedding and train it.",
        )


def check_weights(base: PreTrainedModel, missing: Collection[str]) -> None:
    """Checks that all weights that a text passes through were read, and are finite.

    missing: names of the weights that no file had; transformers has drawn them at random.

    Raises:
        ModelError: some were not read, or hold NaN or infinity.
    """
    reached = _reached(base)
    if absent := sorted(name for name in missing if name in reached):
        raise ModelError(
            f"The model's files lack {len(absent):,} of its {len(reached):,} weights, for example {absent[0]}.",
            "Copy or download the whole model again.",
        )
    sums = {name: weight.detach().sum() for name, weight in reached.items() if weight.is_floating_point()}
    if spoilt := [name for name, total in sums.items() if not total.isfinite()]:
        raise ModelError(
            f"{len(spoilt):,} of the model's weights hold NaN or infinity, for example {spoilt[0]}.",
            "The files are damaged, or were saved so: download the model again, or use another revision of it.",
        )


def _reached(base: PreTrainedModel) -> dict[str, nn.Parameter]:
    """The weights that a text passes through: the text decoder's and the output head's."""
    head = base.get_output_embeddings()
    parts = {id(weight) for part in (base.get_decoder(), head) if part is not None for weight in part.parameters()}
    return {name: weight for name, weight in base.named_parameters() if id(weight) in parts}
