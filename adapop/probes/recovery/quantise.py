"""Quantising: whether rounding the weights brings forgotten facts back (Zhang et al., ICLR 2025,
arXiv 2410.16454).

Unlearning that changes weights by less than a rounding step is undone by quantisation. The merged
weights of base and adapter are rounded in every linear layer except the output head: row by row,
symmetrically about zero, to the nearest of 2^(bits-1) - 1 steps on either side, the last of which
is the row's largest weight. This is the simplest scheme; finer ones (groups within a row, NF4,
GPTQ) lose less. 16 bits are bfloat16, in which most models are published and merged ones are
exported. Embeddings, norms and the head are not rounded. The control is the original model, rounded
in the same way: the cost of rounding alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from adapop.errors import ConfigError, ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.probes.judge import known_recall
from adapop.probes.measure import recall_by_fact
from adapop.probes.recovery import base
from adapop.progress import Progress

BFLOAT16 = 16  # bits
BITS = (BFLOAT16, 8, 4)


@dataclass(frozen=True)
class QuantiseRow:
    """Mean recall of a group and tier's trained questions, [0, 1], before and after rounding.

    group: forget or retain. tier: of scores, or "all". bits: per rounded weight, 2 to 8, or
    16 for bfloat16."""

    group: str
    tier: str
    bits: int
    facts: int
    original: float
    original_rounded: float
    unlearned: float
    unlearned_rounded: float


@dataclass(frozen=True)
class Quantised:
    """The result of rounding. returned: ids of forgotten facts that came back with some number of
    bits. layers: number of linear layers that were rounded. weights: number of weights in them."""

    rows: tuple[QuantiseRow, ...]
    returned: tuple[str, ...]
    layers: int
    weights: int


def quantise(
    model: AdaptedModel,
    forget: Sequence[Fact],
    retain: Sequence[Fact],
    max_new_tokens: int,
    progress: Progress,
    bits: Sequence[int] = BITS,
) -> Quantised:
    """Both models' recall with their own and with rounded weights. The weights are restored. Raises
    ConfigError: other bits than 2 to 8 and 16. ModelError: no linear layers, or an adapter on
    others."""
    base.check(model, forget)
    if bad := [width for width in bits if not 2 <= width <= 8 and width != BFLOAT16]:
        fix = "Use 2 to 8 bits, or 16 for bfloat16."
        raise ConfigError(f"Weights cannot be rounded to {bad[0]} bits here.", fix)
    layers = _linear_layers(model)
    groups = {"forget": forget, "retain": retain}
    recall: dict[tuple[str, int | None], base.Recall] = {}
    parts = list(product((None, *bits), base.BOTH_MODELS))
    for part, (width, name) in enumerate(parts, start=1):
        merged = name == "unlearned"
        form = rounded_weights(model, width, merged) if width else nullcontext()
        weights = f"{width} bits" if width else "as it is"
        doing = f"{name.capitalize()} model, {weights} ({part} of {len(parts)})"
        within = base.within(progress, doing)
        with base.untouched(model), base.as_model(model, name), form:
            recall[name, width] = {
                group: recall_by_fact(model, facts, max_new_tokens, within, known_recall)
                for group, facts in groups.items()
            }
    rows: list[QuantiseRow] = []
    for width, (group, facts) in product(bits, groups.items()):
        rows += _rows(group, facts, width, recall)
    count = sum(layer.weight.numel() for layer, _ in layers)
    before, returned = recall["unlearned", None]["forget"], set()
    for width in bits:
        returned |= {*base.came_back(forget, before, recall["unlearned", width]["forget"])}
    return Quantised(tuple(rows), tuple(sorted(returned)), len(layers), count)


def rounded(weight: Tensor, bits: int) -> Tensor:
    """A weight matrix [out, in] in float32: rounded to bfloat16, or each row to steps symmetric
    about zero."""
    if bits == BFLOAT16:
        return weight.bfloat16().float()
    steps = 2 ** (bits - 1) - 1
    weight = weight.float()
    step = weight.abs().amax(dim=1, keepdim=True) / steps
    step = torch.where(step > 0, step, 1.0)  # a row of zeros
    return (weight / step).round() * step


@contextmanager
def rounded_weights(model: AdaptedModel, bits: int, merged: bool) -> Iterator[None]:
    """A context in which the linear layers have rounded weights. merged: whether the adapter is
    merged into them.

    Rounding is in float32, the result in the model's own precision. Each layer gets a new tensor
    and afterwards its own back, so the weights are restored exactly, and take twice the memory."""
    layers = _linear_layers(model)
    weights = [layer.weight.data for layer, _ in layers]
    # The cached replies are those of other weights.
    replies, model.reply_cache = model.reply_cache, None
    try:
        with torch.no_grad():
            for layer, adapted in layers:
                weight = layer.weight.float()
                if merged and adapted is not None:
                    names = adapted.active_adapters
                    weight = weight + sum(adapted.get_delta_weight(one).float() for one in names)
                turned = isinstance(layer, Conv1D)
                by_output = rounded(weight.T, bits).T if turned else rounded(weight, bits)
                layer.weight.data = by_output.to(layer.weight.dtype)
        with model.network.disable_adapter():  # it must not be added a second time
            yield
    finally:
        model.reply_cache = replies
        for (layer, _), weight in zip(layers, weights):
            layer.weight.data = weight


def _rows(
    group: str, facts: Sequence[Fact], bits: int, recall: dict[tuple[str, int | None], base.Recall]
) -> Iterator[QuantiseRow]:
    for tier, ids in base.in_tiers(facts, [fact.id for fact in facts]).items():
        means = {}
        for model, (suffix, width) in product(base.BOTH_MODELS, (("", None), ("_rounded", bits))):
            values = recall[model, width][group]
            means[model + suffix] = fmean(values[name] for name in ids)
        yield QuantiseRow(group, tier, bits, len(ids), **means)


def _linear_layers(model: AdaptedModel) -> list[tuple[nn.Linear | Conv1D, nn.Module | None]]:
    """Every linear layer of the base model except the output head, with peft's layer around it, if
    any. Those of GPT-2 are called Conv1D, and their weights are [in, out]. Raises ModelError."""
    head = model.network.get_base_model().get_output_embeddings()
    modules = dict(model.network.named_modules())
    adapted = [module for module in modules.values() if hasattr(module, "get_delta_weight")]
    around = {module.get_base_layer(): module for module in adapted}
    own = [module for name, module in modules.items() if "lora_" not in name]
    linear = [module for module in own if isinstance(module, (nn.Linear, Conv1D))]
    untied = [one for one in linear if head is None or one.weight is not head.weight]
    layers = [(module, around.get(module)) for module in untied]
    if any("experts" in name and one.ndim > 2 for name, one in model.network.named_parameters()):
        reason = "The model's experts are in no linear layer: most weights would not be rounded."
        raise ModelError(reason, "Use another probe.")
    if any(not layer.weight.is_floating_point() for layer, _ in layers):
        fix = "Use another probe."
        raise ModelError("The model's weights are rounded already: it was loaded in 4 bits.", fix)
    if not layers:
        fix = "Use another model."
        raise ModelError("The model has no linear layers that could be rounded.", fix)
    if others := around.keys() - {layer for layer, _ in layers}:
        kinds = ", ".join(sorted({type(layer).__name__ for layer in others}))
        other = f"{kinds}, or the output head"
        reason = f"The adapter is also on layers that are not rounded ({other})."
        raise ModelError(reason, "Rounding needs an adapter on linear layers only.")
    return layers
