"""A causal language model with a LoRA adapter: unlearned while it is on, original while it is off.

There is never a second copy of the weights. Losses are computed at answer tokens only, and in
float32 from the logits on, whatever precision the model runs in. It replies (`Replying`) in batches
that fit into memory; the original's replies are cached.
"""

import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from peft import PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import CausalLMOutputWithPast

from adapop.errors import ConfigError, ModelError
from adapop.model.adapter import blocks_of
from adapop.model.asking import Prompted
from adapop.model.catalogue import row_bytes
from adapop.model.generation import replies
from adapop.model.out_of_memory import free_bytes, in_pieces
from adapop.model.packing import packed_lines, packs, read_as
from adapop.model.precision import NARROW, full_precision, widened
from adapop.model.tokens import AnswerTokens, FirstToken, JointPass, Row, Scored, collate, pooled
from adapop.online.cache import Cache, cache_root
from adapop.remark import Remark

MOST_ROWS = 256  # rows generated or scored at once, except on a GPU
SHARE = 0.8  # share of a GPU's free memory to use, because the cache grows in steps
Work = Callable[[Sequence[Any], int], Iterator[Any]]  # (rows, most rows at once) -> results
Divided = Callable[[Sequence[Any], int, Work], Iterator[Any]]


class Replying(Prompted):
    """A network with its tokenizer, which continues prompts."""

    def __init__(self, network: PeftModel, tokenizer: PreTrainedTokenizerBase, system: str) -> None:
        super().__init__(tokenizer, system)
        self.network, self.device = network, next(network.parameters()).device
        self.reply_cache: ReplyCache | None = None  # replies of the original model
        self.adapter_off = False
        # called with the number of replies just written
        self.on_replies: Callable[[int], None] = lambda rows: None
        self.most_rows = sys.maxsize if self.device.type == "cuda" else MOST_ROWS
        # divides work on pieces of at most `size` rows among processes
        self.divided: Divided = lambda rows, size, work: work(rows, size)

    @property
    def base(self) -> PreTrainedModel:
        """The network without its adapter."""
        return cast(PreTrainedModel, self.network.get_base_model())

    @property
    def shape(self) -> dict[str, Any]:
        """The entries of its config.json, also under transformers' common names."""
        config = self.base.config.get_text_config()
        return config.to_dict() | {name: getattr(config, name) for name in config.attribute_map}

    def generate(
        self, questions: Sequence[str], max_new_tokens: int = 16, batch: int | None = None, **drawn
    ) -> list[str]:
        """Replies, one per question, without special tokens: greedy, or sampled with `drawn`.

        batch: most rows at once, by default `at_once`; never more than `most_rows`, which falls
        when memory runs out. drawn: sampling arguments of transformers' `generate`, such as
        top_p."""
        rows = self.prompts(questions)
        return [text.strip() for text, *_ in self.replies(rows, max_new_tokens, batch, **drawn)]

    @torch.no_grad()
    def replies(
        self, rows: Sequence[Row], max_new_tokens: int, batch: int | None = None, **drawn
    ) -> list[tuple]:
        """For each row (reply, *`FirstToken` of its answer), or (reply,) without an answer. The
        reply is as from `generate`, but white space around it is kept."""
        cache = self.reply_cache if self.adapter_off and not drawn else None
        cached = cache.of(self, rows, max_new_tokens) if cache else {}
        self.on_replies(len(cached))
        new = [i for i in range(len(rows)) if i not in cached]
        order = sorted(new, key=lambda i: len(rows[i].prompt))
        self.network.eval()
        write = partial(self._generate, max_new_tokens=max_new_tokens, **drawn)
        size, written = batch or self.at_once(rows, max_new_tokens), []
        for piece in self.in_pieces([rows[i] for i in order], size, write):
            self.on_replies(len(piece))
            written += piece
        fresh = dict(zip(order, written))
        if cache:
            cache.keep(self, rows, max_new_tokens, fresh)
        return [reply for _, reply in sorted((cached | fresh).items())]

    def at_once(self, rows: Sequence[Row], new_tokens: int = 0) -> int:
        """Number of rows to score at once, or to continue if new_tokens is given. On a GPU as many
        as fit into its free memory, estimated from the model's shape; elsewhere `MOST_ROWS`."""
        if self.device.type != "cuda" or not rows:
            return MOST_ROWS
        tokens, answer = max(row.length for row in rows), max(len(row.answer) for row in rows)
        width = next(self.base.get_input_embeddings().parameters()).element_size()
        try:
            needed = row_bytes(self.shape, width, tokens, answer, new_tokens)
        except KeyError:  # a model without attention, whose rows take little memory
            return MOST_ROWS
        return max(1, int(SHARE * free_bytes(self.device)) // needed)

    def in_pieces(self, rows: Sequence, size: int, work: Callable[[Sequence], Any]) -> Iterator:
        """Results of `work`, which runs the model, piece by piece, see `out_of_memory.in_pieces`.
        Once memory ran out, all later pieces are as small as those that fitted."""
        halved = partial(setattr, self, "most_rows")

        def of(rows: Sequence, size: int) -> Iterator:
            return in_pieces(rows, min(size, self.most_rows), work, halved)

        return self.divided(rows, min(size, self.most_rows), of)

    def _generate(self, rows: Sequence[Row], max_new_tokens: int, **drawn) -> list[tuple]:
        watchers = [FirstToken([row.answer[0] for row in rows])] if rows[0].answer else []
        pad, prompts = self.pad_id, [row.prompt for row in rows]
        written = replies(self.network, prompts, max_new_tokens, pad, watchers, self.ends, **drawn)
        texts = self.tokenizer.batch_decode(written, skip_special_tokens=True)
        return list(zip(texts, *(column for watcher in watchers for column in watcher.confidences)))

    @property
    def pad_id(self) -> int:
        """The id that fills a batch up: masked, so any does where the tokenizer has none."""
        return self.tokenizer.pad_token_id or 0

    @property
    def gpus(self) -> range:
        """The GPUs whose random state the model may use; none on the CPU."""
        return range(torch.cuda.device_count() if self.device.type == "cuda" else 0)

    def sample(
        self, questions: Sequence[str], seed: int, max_new_tokens: int, **drawn: Any
    ) -> list[str]:
        """Replies sampled with a seed, see `generate`. Leaves torch's random state as it is."""
        with torch.random.fork_rng(devices=self.gpus):
            torch.manual_seed(seed)
            return self.generate(questions, max_new_tokens, **drawn)


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
        self.whole = True  # whether all weights are in this process, see `training.sharded`
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
            message = f"{kind} cannot compute the logits of chosen positions only: {why}."
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


def seeded(seed: int, *stream: int) -> torch.Generator:
    """The random generator for a purpose, `stream`: the same draws for a seed in every process."""
    mixed = seed
    for number in stream:
        mixed = (mixed * 1_000_003 + number + 1) % (2**63 - 1)
    return torch.Generator().manual_seed(mixed)


# Replies of original models, cached on disk so that each is generated once: a damaged one is
# generated again. Safe to delete.

log = logging.getLogger(__name__)

MOST_BYTES = 4 * 2**30  # of weights: hashing more takes longer than generating replies again
FOLDER = "replies"


class ReplyCache:
    """Greedy replies of original models, by model, way of asking, limit, prompt and the answer's
    first token."""

    def __init__(self, weights: str) -> None:
        """weights: a model hash (`digest`). Raises ConfigError: the cache folder is unusable."""
        self._weights, self._cache = weights, Cache(cache_root() / FOLDER)

    def of(self, model: Replying, rows: Sequence[Row], tokens: int) -> dict[int, tuple]:
        """Index of a row -> its known reply, as `AdaptedModel.replies` returns it."""
        names = self._names(model, rows, tokens)
        try:
            known = cast("dict[str, list]", self._cache.get_all(names))
        except ConfigError as error:
            log.warning("%s The replies are generated again.", error.message)
            known = {}
        return {place: tuple(known[name]) for place, name in enumerate(names) if name in known}

    def keep(
        self, model: Replying, rows: Sequence[Row], tokens: int, replies: Mapping[int, tuple]
    ) -> None:
        """Stores new replies by the index of their row; a reply to a row with an answer is also
        stored for the prompt alone. Ignores errors of the disk."""
        answering = [rows[place] for place in replies]
        bare = self._names(model, [replace(row, answer=()) for row in answering], tokens)
        first_replies = {name: reply[:1] for name, reply in zip(bare, replies.values())}
        first_replies |= zip(self._names(model, answering, tokens), replies.values())
        with suppress(ConfigError):
            self._cache.put_all(first_replies)

    def _names(self, model: Replying, rows: Sequence[Row], tokens: int) -> list[str]:
        common = json.dumps([self._weights, model.way, tokens])
        texts = (f"{common}{(row.prompt, row.answer[:1])!r}" for row in rows)
        return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def cache_for(model: AdaptedModel) -> ReplyCache | None:
    """The stored replies of this model's original; None on a GPU, for weights above `MOST_BYTES` or
    divided among processes, or without a usable cache folder."""
    if not model.whole:
        return None
    base = model.network.get_base_model()
    weights = [(name, value) for name, value in base.state_dict().items() if "lora_" not in name]
    if model.device.type != "cpu" or sum(value.nbytes for _, value in weights) > MOST_BYTES:
        return None
    try:
        return ReplyCache(digest(cast(PreTrainedModel, base)))
    except ConfigError:
        return None


def digest(base: PreTrainedModel) -> str:
    """A hash of a model's weights as they are in memory, its config, the tokens that end a reply,
    and the versions of torch and transformers."""
    config = {**base.config.to_dict(), "_name_or_path": ""}  # it may move
    about = [torch.__version__, transformers.__version__, base.generation_config.eos_token_id]
    shape = json.dumps([*about, config], sort_keys=True, default=str)
    hashed = hashlib.blake2b(shape.encode(), digest_size=16)
    for name, value in base.state_dict().items():
        if "lora_" not in name:
            hashed.update(name.replace("base_layer.", "").encode())
            flat = value.detach().contiguous().reshape(-1)  # a number alone has no bytes to view
            hashed.update(flat.view(torch.uint8).numpy())
    return hashed.hexdigest()
