"""The LoRA adapter of a base model: the layers that get it, and errors where targets match none.

In a model for images or sound too, only the text decoder gets it: text reaches no other part.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import peft
import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from adapop.config.run import ALL_LINEAR, RunConfig
from adapop.errors import ModelError
from adapop.remark import Remark

# least share of the blocks, and of the usual targets, that must have an adapter
LEAST = 0.5
ATTENTION = re.compile(r"attn|attention")


def decoder_of(base: PreTrainedModel) -> nn.Module:
    """The text decoder. Some models (ModernBERT's) call their output layer `decoder`."""
    decoder = base.get_decoder()
    return base.base_model if isinstance(decoder, nn.Linear) else decoder


def blocks_of(base: PreTrainedModel) -> Sequence[nn.Module]:
    """The text decoder's blocks in order; empty if the decoder keeps them in no list."""
    decoder, count = decoder_of(base), _blocks(base)
    lists = (part for part in decoder.modules() if isinstance(part, nn.ModuleList))
    whole = (part for part in lists if len(part) == count)
    return getattr(decoder, "layers", None) or next(whole, ())


def with_adapter(
    base: PreTrainedModel, config: RunConfig, adapter: Path | None = None
) -> PeftModel:
    """The base with a fresh adapter (seeded), or with the saved one in `adapter`. Raises
    ModelError: a target or a block is not there, or most blocks would get no adapter."""
    if adapter is not None:
        # peft would take the GPU that torch reports, on ZeroGPU even before one is lent
        place = str(base.device)
        return PeftModel.from_pretrained(base, str(adapter), is_trainable=True, torch_device=place)
    torch.manual_seed(config.seed)
    linear, targets = _linear(base), config.lora_targets
    everywhere = targets == (ALL_LINEAR,)
    lora = peft.LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=0.0,
        bias="none",
        target_modules=_short(linear) if everywhere else list(targets),
        exclude_modules=_outside(base),
        layers_to_transform=_layers(base, config.lora_layers),
        # Conv1D, as in GPT-2, stores its weights transposed
        fan_in_fan_out=bool(linear) and all(isinstance(layer, Conv1D) for layer in linear.values()),
        task_type="CAUSAL_LM",
    )
    try:
        network = peft.get_peft_model(base, lora)
    except ValueError as error:
        if not everywhere and not _matched(targets, [*dict(base.named_modules())]):
            raise _unknown(base, targets) from error
        reason = str(error).splitlines()[0].rstrip(".")
        others = ",".join(name for name in _short(linear) if f"'{name}'" not in reason)
        message = f"peft cannot put an adapter on these layers: {reason}."
        raise ModelError(message, f"Use --targets {others} (lora_targets).") from error
    _check(network, config)
    return network


@torch.no_grad()
def merge_into_base(network: PeftModel, state: Mapping[str, Tensor]) -> None:
    """Adds a second adapter of the same shape to the base's weights; the model's adapter stays."""
    own = {name: value.clone() for name, value in peft.get_peft_model_state_dict(network).items()}
    peft.set_peft_model_state_dict(network, dict(state))
    for layer in network.modules():
        if isinstance(layer, LoraLayer):
            weight = layer.get_base_layer().weight
            weight += layer.get_delta_weight("default").to(weight.dtype)
    peft.set_peft_model_state_dict(network, own)


def concatenated(
    first: Mapping[str, Tensor], second: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], int]:
    """(weights, rank) of one adapter that adds exactly what two of the same strength add: their
    ranks one after the other, as peft's `cat`. Where only one of them adapts a layer, zeros stand
    for the other. Raises ModelError: they hold other weights than LoRA's, or several ranks."""
    axes = {key: _rank_axis(key) for key in sorted({*first, *second})}
    ranks = []
    for part in (first, second):
        sizes = {one.shape[axes[key]] for key, one in part.items() if axes[key] is not None}
        if len(sizes) != 1 or None in axes.values():
            message = "The two adapters cannot be combined: each must be LoRA of a single rank."
            raise ModelError(message, "Choose only linear layers (lora_targets).")
        ranks += sizes
    joined = {}
    for key, axis in axes.items():
        tensors = []
        for part, rank in zip((first, second), ranks):
            shape = [*(first if key in first else second)[key].shape]
            shape[axis] = rank
            tensors.append(part[key].float().cpu() if key in part else torch.zeros(shape))
        joined[key] = torch.cat(tensors, axis).contiguous()
    return joined, sum(ranks)


def _rank_axis(key: str) -> int | None:
    """The axis of an adapter's weight that is its rank; None if it is no weight of LoRA."""
    name = key.removesuffix(".weight").rpartition(".")[2]
    return {"lora_A": 0, "lora_embedding_A": 0, "lora_B": 1, "lora_embedding_B": 1}.get(name)


def left_out(network: PeftModel, config: RunConfig) -> tuple[Remark, ...]:
    """Notes on usual targets that the model lacks, and on blocks without an adapter."""
    notes, (bare, blocks) = [], _bare(network, config)
    if missing := _missing(network, config):
        targeted = network.base_model.targeted_module_names
        on = ", ".join(sorted({name.rpartition(".")[2] for name in targeted}))
        notes.append(Remark("targets_missing", {"names": ", ".join(missing), "adapted": on}))
    if bare:
        notes.append(Remark("blocks_without_adapter", {"count": bare, "blocks": blocks}))
    return tuple(notes)


def _check(network: PeftModel, config: RunConfig) -> None:
    """Refuses an adapter that leaves out what the user named, or most of the model."""
    base, missing, named = network.get_base_model(), _missing(network, config), config.lora_targets
    head = base.get_output_embeddings()
    if hasattr(head, "lora_A") and head.weight is base.get_input_embeddings().weight:
        message = "The output layer is also the embedding: merged, its adapter would change both."
        raise ModelError(message, "Leave it out of lora_targets.")
    if missing and (named != RunConfig.lora_targets or len(missing) > LEAST * len(named)):
        raise _unknown(base, missing)
    bare, blocks = _bare(network, config)
    if bare > LEAST * blocks:
        count = f"{blocks - bare} of the model's {blocks} blocks"
        message = f"Only {count} have layers called {', '.join(named)}."
        fix = f"{_advice(base)} To change only these few blocks, name them in lora_layers."
        raise ModelError(f"{message} {_have(base)}", fix)


def _unknown(base: PreTrainedModel, missing: Sequence[str]) -> ModelError:
    message = f"The model has no layers called {', '.join(missing)}. {_have(base)}"
    return ModelError(message, _advice(base))


def _have(base: PreTrainedModel) -> str:
    return f"Its linear layers: {', '.join(_short(_linear(base)))}."


def _advice(base: PreTrainedModel) -> str:
    """The option that puts an adapter on this model's attention, or on all linear layers."""
    places = enumerate(blocks_of(base))
    blocks = {id(layer): place for place, block in places for layer in block.modules()}
    attention = {name: layer for name, layer in _linear(base).items() if ATTENTION.search(name)}
    reached = {blocks[id(layer)] for layer in attention.values() if id(layer) in blocks}
    everything = f"--targets {ALL_LINEAR}"
    if len(reached) < len(blocks_of(base)) or not reached:
        return f"Use {everything} (lora_targets)."
    own = ",".join(_short(attention))
    return f"Use --targets {own} (lora_targets; its attention), or {everything}."


def _missing(network: PeftModel, config: RunConfig) -> list[str]:
    """The named targets that match no layer, except names of experts, which peft itself drops."""
    left = network.peft_config["default"].target_modules
    matched = _matched(config.lora_targets, network.base_model.targeted_module_names)
    return [name for name in config.lora_targets if name in left and name not in matched]


def _matched(targets: Sequence[str], names: Sequence[str]) -> set[str]:
    return {target for target in targets for name in names if f".{name}".endswith(f".{target}")}


def _bare(network: PeftModel, config: RunConfig) -> tuple[int, int]:
    """(blocks without an adapter, blocks that should have one)."""
    blocks = blocks_of(network.get_base_model())
    layers = range(len(blocks)) if config.lora_layers is None else config.lora_layers
    chosen = [block for place, block in enumerate(blocks) if place in layers]
    adapted = [any(hasattr(part, "lora_A") for part in block.modules()) for block in chosen]
    return adapted.count(False), len(chosen)


def _linear(base: PreTrainedModel) -> dict[str, nn.Module]:
    """The text decoder's linear layers by name, without the output head and Llama 4's routers."""
    decoder, head = decoder_of(base), base.get_output_embeddings()
    parts = {id(part) for part in decoder.modules()}
    layers = {
        name.replace(".base_layer", ""): layer
        for name, layer in base.named_modules()
        if isinstance(layer, (nn.Linear, Conv1D)) and layer is not head and id(layer) in parts
    }
    named = {name: layer for name, layer in layers.items() if ".lora_" not in name}
    return {name: layer for name, layer in named.items() if not name.endswith(".router")}


def _short(layers: dict[str, nn.Module]) -> list[str]:
    """The last part of each layer's name; the last two parts where the last is a number."""
    parts = (name.split(".") for name in layers)
    return sorted({".".join(own[-2:] if own[-1].isdigit() else own[-1:]) for own in parts})


def _outside(base: PreTrainedModel) -> str | None:
    """A pattern for all names outside the text decoder, which get no adapter; None without any."""
    if base.config.get_text_config() is base.config:
        return None
    names = (name for name, part in base.named_modules() if part is decoder_of(base))
    return next((rf"(?!{re.escape(name)}\.).*" for name in names if name), None)


def _blocks(base: PreTrainedModel) -> int:
    """Number of blocks by the model's config; 0 if it gives none (BLT)."""
    return getattr(base.config.get_text_config(), "num_hidden_layers", 0)


def _layers(base: PreTrainedModel, chosen: tuple[int, ...] | None) -> list[int] | None:
    """The chosen blocks; None for all. Raises ModelError: one does not exist; peft ignores it."""
    count = _blocks(base)
    if chosen is not None and (missing := [layer for layer in chosen if not 0 <= layer < count]):
        named = ", ".join(map(str, missing))
        message = f"lora_layers names {named}, but the model's {count} blocks are numbered from 0."
        raise ModelError(message, "Name blocks that exist.")
    return None if chosen is None else list(chosen)


def check_gradients(network: PeftModel) -> None:
    """Checks after the first backward pass that every LoRA B has a gradient to learn from. Raises
    ModelError: some have none (gradient checkpointing without input gradients), or all are 0."""
    named = network.named_parameters()
    gradients = {name: weight.grad for name, weight in named if weight.requires_grad}
    if all(gradient is not None and not gradient.any() for gradient in gradients.values()):
        why = "to this model every answer in it has p = 1 or p = 0"
        fix = (
            "The model cannot learn anything from these facts. Check the model, the facts and "
            "the method."
        )
        raise ModelError(f"The gradient of the first step is exactly 0: {why}.", fix)
    added = {name: gradient for name, gradient in gradients.items() if "lora_B" in name}
    dead = [name for name, grad in added.items() if grad is None or not grad.any()]
    if dead:
        fault = f"{len(dead)} adapter weights got no gradient in the first step"
        block = "a method that reads one block needs lora_layers up to it"
        inputs = "with gradient checkpointing, inputs must require gradients"
        fix = f"Check lora_targets; {block}; {inputs}."
        raise ModelError(f"{fault}, for example {dead[0]}.", fix)
