"""Replies of original models, cached on disk so that each is generated once: a damaged one is
generated again. Safe to delete."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import transformers
from transformers import PreTrainedModel

from adapop.errors import ConfigError
from adapop.model.tokens import Row
from adapop.online.cache import Cache, cache_root

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel, Replying

log = logging.getLogger(__name__)

MOST_BYTES = 4 * 2**30  # of weights: hashing more takes longer than generating replies again
FOLDER = "replies"


class ReplyCache:
    """Greedy replies of original models, by model, way of asking, limit, prompt and the answer's
    first token."""

    def __init__(self, weights: str) -> None:
        """weights: a model hash (`digest`). Raises ConfigError: the cache folder is unusable."""
        self._weights, self._cache = weights, Cache(cache_root() / FOLDER)

    def of(self, model: "Replying", rows: Sequence[Row], tokens: int) -> dict[int, tuple]:
        """Index of a row -> its known reply, as `AdaptedModel.replies` returns it."""
        names = self._names(model, rows, tokens)
        try:
            known = self._cache.get_all(names)
        except ConfigError as error:
            log.warning("%s The replies are generated again.", error.message)
            known = {}
        return {place: tuple(known[name]) for place, name in enumerate(names) if name in known}

    def keep(
        self, model: "Replying", rows: Sequence[Row], tokens: int, replies: Mapping[int, tuple]
    ) -> None:
        """Stores new replies by the index of their row; a reply to a row with an answer is also
        stored for the prompt alone. Ignores errors of the disk."""
        answering = [rows[place] for place in replies]
        bare = self._names(model, [replace(row, answer=()) for row in answering], tokens)
        first_replies = {name: reply[:1] for name, reply in zip(bare, replies.values())}
        first_replies |= zip(self._names(model, answering, tokens), replies.values())
        with suppress(ConfigError):
            self._cache.put_all(first_replies)

    def _names(self, model: "Replying", rows: Sequence[Row], tokens: int) -> list[str]:
        common = json.dumps([self._weights, model.way, tokens])
        texts = (f"{common}{(row.prompt, row.answer[:1])!r}" for row in rows)
        return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def cache_for(model: "AdaptedModel") -> ReplyCache | None:
    """The stored replies of this model's original; None on a GPU, for weights above `MOST_BYTES`,
    or without a usable cache folder."""
    base = model.network.get_base_model()
    weights = [(name, value) for name, value in base.state_dict().items() if "lora_" not in name]
    if model.device.type != "cpu" or sum(value.nbytes for _, value in weights) > MOST_BYTES:
        return None
    try:
        return ReplyCache(digest(base))
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
