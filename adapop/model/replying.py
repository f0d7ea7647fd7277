"""A model that replies, in batches that fit into memory; the original's replies are cached."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapop.model.asking import Prompted
from adapop.model.generation import replies
from adapop.model.memory import row_bytes
from adapop.model.original import ReplyCache
from adapop.model.out_of_memory import free_bytes, in_pieces
from adapop.model.scored import FirstToken
from adapop.model.tokens import Row

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
        return self.network.get_base_model()

    @property
    def shape(self) -> dict[str, Any]:
        """The entries of its config.json, also under transformers' common names."""
        config = self.network.get_base_model().config.get_text_config()
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
        width = self.base.get_input_embeddings().weight.element_size()
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
        self, questions: Sequence[str], seed: int, max_new_tokens: int, **drawn: float
    ) -> list[str]:
        """Replies sampled with a seed, see `generate`. Leaves torch's random state as it is."""
        with torch.random.fork_rng(devices=self.gpus):
            torch.manual_seed(seed)
            return self.generate(questions, max_new_tokens, **drawn)
