"""A causal language model with a LoRA adapter: unlearned while it is on, original while it is off.

There is never a second copy of the weights. Losses are computed at answer tokens only, and in
float32 from the logits on, whatever precision the model runs in.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerBase
from transformers.modeling_outputs import CausalLMOutputWithPast

from adapop.errors import ModelError
from adapop.model.adapter import blocks_of
from adapop.model.packing import packed_lines, packs, read_as
from adapop.model.precision import NARROW, full_precision, widened
from adapop.model.replying import MOST_ROWS as MOST_ROWS
from adapop.model.replying import Replying
from adapop.model.replying import Work as Work  # needed where work is divided
from adapop.model.scored import JointPass, Scored, pooled
from adapop.model.tokens import AnswerTokens, Row, collate
from adapop.remark import Remark

# peft reads an attribute of transformers by its old name; a user can do nothing about that warning
warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
# the oldest transformers we support does not have the new name
warnings.filterwarnings("ignore", "`gradient_checkpointing_enable` is deprecated", FutureWarning)


class AdaptedModel(Replying):
    """Base model and LoRA adapter: scores answer tokens, generates, switches the adapter off."""

    compares = True
    """Whether original and unlearned model share vocabulary and shape, so that their scores can be
    compared token by token; see `paired.PairedModel`."""

    def __init__(
        self, model: PeftModel, tokenizer: PreTrainedTokenizerBase, system: str = ""
    ) -> None:
        super().__init__(model, tokenizer, system)
        self.notes: tuple[Remark, ...] = ()
        self.recomputes = False
        self._joint: JointPass | None = None
        head = self.base.get_output_embeddings()
        # with narrow weights, only the logits that `score` returns are in float32
        self.narrow = head.weight.dtype in NARROW
        if self.narrow:  # given a slice, torch on a CPU would copy the output layer for each row
            head.register_forward_pre_hook(lambda _, inputs: (inputs[0].contiguous(), *inputs[1:]))

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The trainable (adapter) parameters, in a fixed order."""
        return [parameter for parameter in self.network.parameters() if parameter.requires_grad]

    @property
    def blocks(self) -> Sequence[torch.nn.Module]:
        """The text decoder's blocks in order; empty if the base keeps them in no list."""
        return blocks_of(self.base)

    @property
    def context(self) -> int | None:
        """How many tokens the model can read at once; None if its config.json names no limit."""
        return getattr(self.base.config.get_text_config(), "max_position_embeddings", None)

    @cached_property
    def packs(self) -> bool:
        """Whether rows that begin alike can share their beginning; tried at the first use."""
        able = packs(self.base, lambda batch: self.forward(batch.to(self.device)).logits)
        if not able:
            self.notes += (Remark("beginnings_not_shared"),)
        return able

    def batch(self, rows: Sequence[Row]) -> AnswerTokens:
        """The rows on the model's device, packed where that saves work and the model allows it."""
        lines = packed_lines(rows)
        packed = lines if lines and self.packs else ()
        return collate(rows, self.pad_id, packed).to(self.device)

    @contextmanager
    def original(self) -> Iterator[None]:
        """A context in which the adapter is off: the model before unlearning."""
        before, self.adapter_off = self.adapter_off, True
        try:
            with self.network.disable_adapter():
                yield
        finally:
            self.adapter_off = before

    @contextmanager
    def active(self) -> Iterator[None]:
        """A context in which this model's own adapter is on, where several share a base."""
        yield

    @contextmanager
    def together(self, whole: AnswerTokens, *parts: AnswerTokens) -> Iterator[None]:
        """A context in which all parts are scored in one forward pass, that of `whole`: the rows of
        all parts, in their order. Passes without gradient stay separate."""
        self._joint = JointPass(whole, parts)
        try:
            yield
        finally:
            self._joint = None

    def recompute(self) -> None:
        """Turns gradient checkpointing on, which takes less memory and about a third more time."""
        options = {"use_reentrant": False}
        self.network.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        self.network.enable_input_require_grads()
        self.recomputes = True

    def score(
        self,
        batch: AnswerTokens,
        logits: bool = False,
        hidden: bool = False,
        block: int | None = None,
    ) -> Scored:
        """The scores of a batch's answer tokens, teacher-forced. logits, hidden: whether to return
        them. block: the block whose `states` to return, counted from 0."""
        score = partial(self._scored, logits=logits, hidden=hidden, block=block)
        if self._joint is not None and torch.is_grad_enabled():
            share = self._joint.share(batch, (block, hidden, logits), score)
            if share is not None:
                return share
        return score(batch)

    def _scored(self, batch: AnswerTokens, logits: bool, hidden: bool, block: int | None) -> Scored:
        batch = batch.to(self.device)
        with self._capture(block) as states:
            output = self.forward(batch, hidden)
        chosen = full_precision(output.logits)
        nll = cross_entropy(chosen, batch.target, reduction="none")
        gold = chosen.gather(1, batch.target.unsqueeze(1)).squeeze(1)
        averaged = pooled(output.hidden_states[-4:], batch) if hidden else None
        states_at = None
        if block is not None:
            both = torch.stack([batch.predicts, batch.reads])
            states_at = full_precision(batch.at(states[0], both))
        chosen = chosen if logits else None
        return Scored(nll, batch.row, batch.rows, chosen, averaged, states_at, gold)

    def forward(self, batch: AnswerTokens, hidden: bool = False) -> CausalLMOutputWithPast:
        """The output of transformers for a batch, but with logits [N, V] for the predictions of
        answer tokens alone: the output layer reads no other states, and multiplies in float32. What
        models do to logits afterwards (scaling, soft-capping) is element by element. hidden:
        whether to return the hidden states too, [L, T, D] each. Raises ModelError: the model
        computes its logits in another way."""
        head = self.base.get_output_embeddings()

        def chosen(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return batch.at(inputs[0], batch.predicts), *inputs[1:]

        hooks = head.register_forward_pre_hook(chosen), head.register_forward_hook(widened)
        try:
            with read_as(batch) as read:
                output = self.network(**read, output_hidden_states=hidden, use_cache=False)
        finally:
            for hook in hooks:
                hook.remove()
        if output.logits.shape[:-1] != batch.target.shape:
            kind = type(self.base).__name__
            why = "its output layer is not used as such"
            message = f"{kind} cannot give the logits of chosen positions alone: {why}."
            fix = "Use a model of another kind: nearly all causal models of transformers can."
            raise ModelError(message, fix)
        return output

    @torch.no_grad()
    def state_norm(self, batch: AnswerTokens, block: int) -> tuple[float, int]:
        """(mean norm of a block's output over the batch's tokens, its width D); the batch is not
        packed. Each row's first token is left out: in models like Llama its norm is huge."""
        batch = batch.to(self.device)
        with self._capture(block) as captured:
            self.forward(batch)
        states = full_precision(captured[0])
        column = torch.arange(states.shape[1], device=states.device)
        counted = (column > 0) & (column < batch.lengths.unsqueeze(1))
        return states[counted].norm(dim=-1).mean().item(), states.shape[-1]

    @contextmanager
    def _capture(self, block: int | None) -> Iterator[list[Tensor]]:
        """A context in which each forward pass appends the block's output, [L, T, D], to the list.
        With None nothing is appended. Raises ModelError: there is no such block."""
        states: list[Tensor] = []
        if block is None:
            yield states
            return
        blocks = self.blocks
        if not 0 <= block < len(blocks):
            count = f"{len(blocks)} blocks, counted from 0" if len(blocks) else "no list of blocks"
            message = f"The model has no block {block}: it has {count}."
            raise ModelError(message, "Set layer and lora_layers to match.")

        def keep(module: Any, inputs: Any, output: Any) -> None:
            states.append((output[0] if isinstance(output, tuple) else output).to(self.device))

        hook = blocks[block].register_forward_hook(keep)
        try:
            yield states
        finally:
            hook.remove()

    def adapter_state(self) -> dict[str, Tensor]:
        """The adapter's weights by name."""
        return get_peft_model_state_dict(self.network)

    def set_adapter_state(self, state: dict[str, Tensor]) -> None:
        """Loads saved adapter weights."""
        set_peft_model_state_dict(self.network, state)

    def save_adapter(self, folder: Path) -> None:
        """Writes the adapter in peft's format."""
        # else peft queries the Hub about the embedding layers
        self.network.save_pretrained(str(folder), save_embedding_layers=False)
