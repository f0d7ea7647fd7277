"""A causal language model with a LoRA adapter: on, it is the unlearned model, off, the original.

There is never a second copy of the weights. Losses are computed at answer tokens only, and in
float32 from the logits on, whatever precision the model runs in.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerBase
from transformers.utils import ModelOutput

from adapop.errors import ModelError
from adapop.model.adapter import blocks_of
from adapop.model.asking import Prompted
from adapop.model.generation import replies
from adapop.model.memory import row_bytes
from adapop.model.original import KeptReplies
from adapop.model.out_of_memory import free_bytes, in_pieces
from adapop.model.packing import packed_lines, packs, read_as
from adapop.model.precision import NARROW, full_precision, widened
from adapop.model.scored import FirstToken, JointPass, Scored, pooled
from adapop.model.tokens import AnswerTokens, Row, collate
from adapop.remark import Remark

# peft reads an attribute of transformers by its old name; a user can do nothing about it
warnings.filterwarnings(
    "ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning
)
# the oldest transformers we support does not have the new name
warnings.filterwarnings(
    "ignore", message="`gradient_checkpointing_enable` is deprecated", category=FutureWarning
)

MOST_ROWS = 256  # rows generated or measured at once, but for a GPU
SHARE = 0.8  # of a GPU's free memory: what is kept grows in pieces
Work = Callable[[Sequence[Any], int], Iterator[Any]]  # gives the results for rows, so many at once
Divided = Callable[[Sequence[Any], int, Work], Iterator[Any]]


class AdaptedModel(Prompted):
    """Base model and LoRA adapter: scores answer tokens, generates, switches the adapter off."""

    def __init__(
        self, model: PeftModel, tokenizer: PreTrainedTokenizerBase, system: str = ""
    ) -> None:
        super().__init__(tokenizer, system)
        self.network = model
        self.reply_cache: KeptReplies | None = None  # what the original said before
        self.adapter_off = False
        self.notes: tuple[str | Remark, ...] = ()  # what to know of it
        self.device, self.recomputes = next(model.parameters()).device, False
        # called with the number of replies just written
        self.on_replies: Callable[[int], None] = lambda rows: None
        self.most_rows = sys.maxsize if self.device.type == "cuda" else MOST_ROWS
        # how the work on pieces of at most so many rows is divided among processes
        self.divided: Divided = lambda rows, size, work: work(rows, size)
        self._joint: JointPass | None = None
        head = model.get_base_model().get_output_embeddings()
        # then only what `score` gives has logits in float32
        self.narrow = head.weight.dtype in NARROW
        if self.narrow:  # given a slice, torch on a CPU would copy this layer for each row
            head.register_forward_pre_hook(
                lambda module, inputs: (inputs[0].contiguous(), *inputs[1:])
            )

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The trainable (adapter) parameters, in a fixed order."""
        return [parameter for parameter in self.network.parameters() if parameter.requires_grad]

    @property
    def blocks(self) -> Sequence[torch.nn.Module]:
        """The text decoder's blocks in order; empty if the base keeps them in no list."""
        return blocks_of(self.network.get_base_model())

    @property
    def shape(self) -> dict[str, Any]:
        """The entries of its config.json, also under transformers' common names."""
        config = self.network.get_base_model().config.get_text_config()
        return {
            **config.to_dict(),
            **{name: getattr(config, name) for name in config.attribute_map},
        }

    @property
    def context(self) -> int | None:
        """How many tokens the model can read at once; None if its config.json names no limit."""
        return getattr(
            self.network.get_base_model().config.get_text_config(), "max_position_embeddings", None
        )

    @cached_property
    def packs(self) -> bool:
        """Whether rows that begin alike can share their beginning; tried when it first matters."""
        able = packs(
            self.network.get_base_model(), lambda batch: self.forward(batch.to(self.device)).logits
        )
        if not able:
            self.notes += (
                "The rows begin alike, but this model's layers cannot share that: each is read by "
                "itself.",
            )
        return able

    def batch(self, rows: Sequence[Row]) -> AnswerTokens:
        """The rows on the model's device: packed where that saves work, and the model allows it."""
        lines = packed_lines(rows)
        return collate(rows, self.tokenizer.pad_token_id, lines if lines and self.packs else ()).to(
            self.device
        )

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
    def together(self, whole: AnswerTokens, *parts: AnswerTokens) -> Iterator[None]:
        """A context in which scoring the parts takes one forward pass. whole: the rows of all
        parts, in their order. Passes without gradient stay separate."""
        self._joint = JointPass(whole, parts)
        try:
            yield
        finally:
            self._joint = None

    def recompute(self) -> None:
        """Turns gradient checkpointing on: less memory, about a third more time."""
        self.network.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False}
        )
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
        with self._read(block) as states:
            output = self.forward(batch, hidden)
        chosen = full_precision(output.logits)
        nll = cross_entropy(chosen, batch.target, reduction="none")
        gold = chosen.gather(1, batch.target.unsqueeze(1)).squeeze(1)
        averaged = pooled(output.hidden_states[-4:], batch) if hidden else None
        states_at = None
        if block is not None:
            both = torch.stack([batch.predicts, batch.reads])
            states_at = full_precision(batch.at(states[0], both))
        return Scored(
            nll, batch.row, batch.rows, chosen if logits else None, averaged, states_at, gold
        )

    def forward(self, batch: AnswerTokens, hidden: bool = False) -> ModelOutput:
        """What transformers gives for a batch, but with the logits [N, V] of the answer tokens'
        predictions alone: the output layer reads no other states, and multiplies in float32. What
        models do to logits afterwards (scaling, soft-capping) is element by element. hidden:
        whether to return the hidden states, [B, T, D] each.

        Raises:
            ModelError: the model computes its logits otherwise.
        """
        head = self.network.get_base_model().get_output_embeddings()
        hooks = (
            head.register_forward_pre_hook(
                lambda _, inputs: (batch.at(inputs[0], batch.predicts), *inputs[1:])
            ),
            head.register_forward_hook(widened),
        )
        try:
            with read_as(batch) as read:
                output = self.network(**read, output_hidden_states=hidden, use_cache=False)
        finally:
            for hook in hooks:
                hook.remove()
        if output.logits.shape[:-1] != batch.target.shape:
            kind = type(self.network.get_base_model()).__name__
            message = (
                f"{kind} cannot give the logits of chosen positions alone: its output layer is not "
                "used as such."
            )
            fix = "Use a model of another kind: nearly all causal models of transformers can."
            raise ModelError(message, fix)
        return output

    @torch.no_grad()
    def state_norm(self, batch: AnswerTokens, block: int) -> tuple[float, int]:
        """(mean norm of a block's output over the batch's tokens, its width D); the batch is not
        packed. Each row's first token is left out: in models like Llama its norm is huge."""
        batch = batch.to(self.device)
        with self._read(block) as states:
            self.forward(batch)
        states = full_precision(states[0])
        column = torch.arange(states.shape[1], device=states.device)
        counted = (column > 0) & (column < batch.lengths.unsqueeze(1))
        return states[counted].norm(dim=-1).mean().item(), states.shape[-1]

    @contextmanager
    def _read(self, block: int | None) -> Iterator[list[Tensor]]:
        """A context in which each forward pass appends the block's output, [B, T, D], to the list;
        with None, nothing. Raises ModelError without such a block."""
        states: list[Tensor] = []
        if block is None:
            yield states
            return
        blocks = self.blocks
        if not 0 <= block < len(blocks):
            count = f"{len(blocks)} blocks, counted from 0" if len(blocks) else "no list of blocks"
            message = f"The model has no block {block}: it has {count}."
            raise ModelError(message, "Set layer and lora_layers to match.")
        hook = blocks[block].register_forward_hook(
            lambda module, inputs, output: states.append(
                (output[0] if isinstance(output, tuple) else output).to(self.device)
            )
        )
        try:
            yield states
        finally:
            hook.remove()

    @torch.no_grad()
    def generate(
        self, questions: Sequence[str], max_new_tokens: int = 16, batch: int | None = None, **drawn
    ) -> list[str]:
        """Replies, one per question, without special tokens: greedy, or sampled with `drawn`.

        batch: rows at once, by default `at_once`; after memory has run out, no call takes more than
        then fitted. drawn: sampling arguments of transformers' `generate`, such as top_p.
        """
        rows = self.prompts(questions)
        return [text.strip() for text, *_ in self.replies(rows, max_new_tokens, batch, **drawn)]

    @torch.no_grad()
    def replies(
        self, rows: Sequence[Row], max_new_tokens: int, batch: int | None = None, **drawn
    ) -> list[tuple]:
        """Replies as of `generate`, with the space around them: (reply, *`FirstToken` of its
        answer) a row, (reply,) of rows without an answer."""
        cache = self.reply_cache if self.adapter_off and not drawn else None
        known = cache.of(self, rows, max_new_tokens) if cache else {}
        self.on_replies(len(known))
        new = [i for i in range(len(rows)) if i not in known]
        order = sorted(new, key=lambda i: len(rows[i].prompt))
        self.network.eval()
        write = partial(self._written, max_new_tokens=max_new_tokens, **drawn)
        written: list[tuple] = []
        for piece in self.in_pieces(
            [rows[i] for i in order], batch or self.at_once(rows, max_new_tokens), write
        ):
            self.on_replies(len(piece))
            written += piece
        fresh = dict(zip(order, written))
        if cache:
            cache.keep(self, rows, max_new_tokens, fresh)
        return [reply for _, reply in sorted((known | fresh).items())]

    def at_once(self, rows: Sequence[Row], new_tokens: int = 0) -> int:
        """How many of the rows to score at once, or with new_tokens to continue: on a GPU what its
        free memory has room for, by the model's shape; elsewhere `MOST_ROWS`."""
        if self.device.type != "cuda" or not rows:
            return MOST_ROWS
        tokens, answer = max(row.length for row in rows), max(len(row.answer) for row in rows)
        width = self.network.get_base_model().get_input_embeddings().weight.element_size()
        try:
            needed = row_bytes(self.shape, width, tokens, answer, new_tokens)
        except KeyError:  # a model without attention, whose rows take little
            return MOST_ROWS
        return max(1, int(SHARE * free_bytes(self.device)) // needed)

    def in_pieces(
        self, rows: Sequence[Any], size: int, work: Callable[[Sequence[Any]], Any]
    ) -> Iterator[Any]:
        """Results of work that runs the model, piece by piece, see `out_of_memory.in_pieces`: of no
        more rows than fitted when memory last ran out."""

        def of(rows: Sequence[Any], size: int) -> Iterator[Any]:
            return in_pieces(
                rows, min(size, self.most_rows), work, partial(setattr, self, "most_rows")
            )

        return self.divided(rows, min(size, self.most_rows), of)

    def _written(self, rows: Sequence[Row], max_new_tokens: int, **drawn) -> list[tuple]:
        watchers = [FirstToken([row.answer[0] for row in rows])] if rows[0].answer else []
        pad, prompts = self.tokenizer.pad_token_id, [row.prompt for row in rows]
        written = replies(self.network, prompts, max_new_tokens, pad, watchers, self.ends, **drawn)
        texts = self.tokenizer.batch_decode(written, skip_special_tokens=True)
        return list(zip(texts, *(column for watcher in watchers for column in watcher.confidences)))

    @property
    def gpus(self) -> range:
        """The GPUs that its random numbers may come from, none on the CPU."""
        return range(torch.cuda.device_count() if self.device.type == "cuda" else 0)

    def sample(
        self, questions: Sequence[str], seed: int, max_new_tokens: int, **drawn: float
    ) -> list[str]:
        """Sampled replies, see `generate`, by seed. Leaves torch's random state as it is."""
        with torch.random.fork_rng(devices=self.gpus):
            torch.manual_seed(seed)
            return self.generate(questions, max_new_tokens, **drawn)

    def adapter_state(self) -> dict[str, Tensor]:
        """The adapter's weights by name."""
        return get_peft_model_state_dict(self.network)

    def set_adapter_state(self, state: dict[str, Tensor]) -> None:
        """Loads saved adapter weights."""
        set_peft_model_state_dict(self.network, state)

    def save_adapter(self, folder: Path) -> None:
        """Writes the adapter in peft's format."""
        # else peft queries the Hub about them
        self.network.save_pretrained(str(folder), save_embedding_layers=False)
