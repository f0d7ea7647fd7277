"""Activation patching: at which depth the unlearned model lost the answer (Ghandeharioun et al.,
ICML 2024, arXiv 2401.06102; Meng et al., NeurIPS 2022, arXiv 2202.05262).

The output of a layer of the original, at every position of the prompt, replaces that of the
unlearned model's layer. If later layers still read the answer from it, only earlier ones were
changed. In reverse, unlearned states in the original show at which depth the answer is lost. The
control is a wrong answer of the same relation, looked for in the patched unlearned model. Patched
after the last layer, a model predicts what the other one does.

A second control is facts never known. With an oracle, which never read the facts, its states are
put into the unlearned model too: answers that they bring back are not the original's knowledge.
Without one, facts that the original does not answer itself are the control.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from adapop.errors import ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens
from adapop.probes.recovery import base
from adapop.progress import Progress

ROWS = 64  # per forward pass, which holds the states of every layer and position
ORACLE, UNKNOWN = "oracle", "unknown"  # where the second control comes from
SIDES = ("unlearned", "original", "control", "never")


@dataclass(frozen=True)
class PatchedFact:
    """Whether the answer's first token is the likeliest: without a patch, then with states patched
    in after the first layer, the second, ...

    unlearned: the original's states in the unlearned model. original: the unlearned states in the
    original. control: a wrong answer, as `unlearned`; None where the facts have none. never: the
    oracle's states in the unlearned model; without an oracle, `unlearned` of facts that the
    original does not answer; else None."""

    id: str
    unlearned: tuple[bool, ...]
    original: tuple[bool, ...]
    control: tuple[bool, ...] | None
    never: tuple[bool, ...] | None


@dataclass(frozen=True)
class PatchedRow:
    """Shares of the facts of a tier, or of "all", [0, 1]: see `PatchedFact`. layer: 0 is without a
    patch. never_facts: number of facts behind `never`."""

    tier: str
    layer: int
    facts: int
    unlearned: float
    original: float
    control: float | None
    never: float | None
    never_facts: int


@dataclass(frozen=True)
class Patched:
    """The result of patching. layers: their number. never: source of these values, `ORACLE` or
    `UNKNOWN`."""

    rows: tuple[PatchedRow, ...]
    facts: tuple[PatchedFact, ...]
    layers: int
    never: str


def patch(
    model: AdaptedModel,
    facts: Sequence[Fact],
    progress: Progress,
    oracle: AdaptedModel | None = None,
) -> Patched:
    """How many answers the original's states bring back, layer by layer, and how many the unlearned
    states remove from the original. oracle: a model of the same shape that never read the facts.
    Raises ModelError: the model's blocks are not found in a list."""
    base.check(model, facts)
    if not model.compares:
        message = "Patching exchanges states, but these two models differ in states or tokens."
        raise ModelError(message, "The other probes work without it.")
    if not model.blocks:
        fix = "The other probes work without it."
        raise ModelError("Patching finds no list of blocks in this model.", fix)
    wrong = base.wrong_answers(facts, facts, seed=0)
    others = base.with_answers(facts, wrong)
    columns: tuple[list, list, list] = [], [], []
    never: list[list[bool] | None] = []
    with base.untouched(model), torch.no_grad():
        batches = base.opening_batches(model, facts, others, progress, ROWS, "Patched")
        for batch, other in batches:
            states = {name: _states(model, name, batch) for name in base.BOTH_MODELS}
            into_unlearned = _likeliest(model, "unlearned", batch, states["original"])
            into_original = _likeliest(model, "original", batch, states["unlearned"])
            placed = into_unlearned, into_original, into_unlearned
            targets = batch.target, batch.target, other.target
            for column, likeliest, target in zip(columns, placed, targets):
                column += (likeliest == target.unsqueeze(1)).tolist()
            if oracle:
                device = states["original"][0]
                read = [state.to(device) for state in _states(oracle, "original", batch)]
                likeliest = _likeliest(model, "unlearned", batch, read)
                never += (likeliest == batch.target.unsqueeze(1)).tolist()
    if not oracle:
        never = [None if out[0] else into for into, out, _ in zip(*columns)]
    by_fact = []
    for fact, into, out, instead, answer, unread in zip(facts, *columns, wrong, never):
        control = None if answer is None else tuple(instead)
        unknown = None if unread is None else tuple(unread)
        by_fact.append(PatchedFact(fact.id, tuple(into), tuple(out), control, unknown))
    kind = ORACLE if oracle else UNKNOWN
    return Patched(_rows(facts, by_fact), tuple(by_fact), len(model.blocks), kind)


@torch.no_grad()
def still_read(original: AdaptedModel, model: AdaptedModel, facts: Sequence[Fact]) -> list[float]:
    """For each fact, the share of layers of `model` whose states, put into `original`, still make
    it say the answer, [0, 1]. Both have the same shape; `model` is used with its present adapter.
    As gnueaj's unlearning depth score (arXiv 2605.24614), but judged by the likeliest token."""
    shares: list[float] = []
    for network in (original.network, model.network):
        network.eval()
    for start in range(0, len(facts), ROWS):
        batch = original.batch(base.openings(original, facts[start : start + ROWS]))
        likeliest = _likeliest(original, "original", batch, _states(model, "unlearned", batch))
        shares += (likeliest[:, 1:] == batch.target.unsqueeze(1)).float().mean(1).tolist()
    return shares


def _states(model: AdaptedModel, name: str, batch: AnswerTokens) -> list[Tensor]:
    """The output of each block of the named model, [B, T, D] each."""
    states: list[Tensor] = []
    with base.as_model(model, name), _hooked(model.blocks, lambda output: states.append(output)):
        model.score(batch)
    return states


def _likeliest(
    model: AdaptedModel, name: str, batch: AnswerTokens, states: Sequence[Tensor]
) -> Tensor:
    """The likeliest first token of each row: unpatched, then with each block's states: [B, 1+L]."""
    columns = []
    with base.as_model(model, name):
        for layer in range(len(states) + 1):
            blocks = [model.blocks[layer - 1]] if layer else []
            with _hooked(blocks, lambda output, layer=layer: states[layer - 1]):
                logits = model.score(batch, logits=True).logits
            base.check_logits(logits)
            columns.append(logits.argmax(-1))
    return torch.stack(columns, dim=1)


@contextmanager
def _hooked(blocks, replacement) -> Iterator[None]:
    """A context in which each block's output is replaced by `replacement` of it, unless that is
    None."""

    def hook(module, inputs, output):
        plain = output if isinstance(output, Tensor) else output[0]
        instead = replacement(plain)
        if instead is None:
            return None
        return instead if isinstance(output, Tensor) else (instead, *output[1:])

    hooks = [block.register_forward_hook(hook) for block in blocks]
    try:
        yield
    finally:
        for one in hooks:
            one.remove()


def _rows(facts: Sequence[Fact], by_fact: Sequence[PatchedFact]) -> tuple[PatchedRow, ...]:
    rows = []
    for tier, count, sides in base.sides_by_tier(facts, by_fact, SIDES):
        for layer in range(len(by_fact[0].original)):
            shares = [fmean(value[layer] for value in side) if side else None for side in sides]
            rows.append(PatchedRow(tier, layer, count, *shares, len(sides[-1])))
    return tuple(rows)
