"""Replies to many prompts at once; greedy ones skip the rows that are finished.

transformers' `generate` computes every row of a batch until the last one ends. Here finished rows
leave the batch, if a model's cache holds keys and values alone; the replies stay the same.
"""

from collections.abc import Sequence
from inspect import signature
from itertools import takewhile

import torch
from peft import PeftModel
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from adapop.model.tokens import common, to_continue

SHARED_FROM = 16  # tokens; reading a shorter common beginning once does not pay
TAKEN_OUT = 1 / 4  # share of rows that must be finished before they leave, which copies the rest


def can_drop_rows(base: PreTrainedModel) -> bool:
    """Whether `greedy` works: the model takes position ids and caches keys and values alone."""
    if "position_ids" not in signature(base.forward).parameters or base._is_stateful:
        return False
    return {*map(type, _cache(base).layers)} <= {DynamicLayer, DynamicSlidingWindowLayer}


def replies(
    network: PeftModel,
    prompts: Sequence[Sequence[int]],
    most: int,
    pad_id: int,
    watchers: Sequence[LogitsProcessor] = (),
    ends: frozenset[int] = frozenset(),
    **drawn,
) -> Tensor | list[list[int]]:
    """The ids that a model writes after each prompt: greedy, or sampled if `drawn` is given.

    most: tokens in a reply. watchers: processors that look at the logits of the first token, and
    maybe of later ones. ends: ids that end a reply, in addition to the model's own. drawn: sampling
    arguments of transformers' `generate`, such as temperature and top_p."""
    base = network.get_base_model()
    if not drawn and can_drop_rows(base):
        return greedy(network, base, prompts, most, pad_id, watchers, ends)
    read = to_continue(prompts, pad_id, base.device)
    ends = ends_of(base) | ends
    drawn = {"do_sample": bool(drawn), "eos_token_id": sorted(ends) or None, **drawn}
    drawn |= {"max_new_tokens": most, "pad_token_id": pad_id}
    output = network.generate(**read, logits_processor=LogitsProcessorList(watchers), **drawn)
    written = output[:, read["input_ids"].shape[1] :].tolist()
    return [list(takewhile(lambda token: token not in ends, ids)) for ids in written]


def ends_of(base: PreTrainedModel) -> frozenset[int]:
    """The ids that end every reply of a model, by its generation config."""
    named = base.generation_config.eos_token_id
    return frozenset({*(named if isinstance(named, list) else [named])} - {None})


@torch.no_grad()
def greedy(
    network: torch.nn.Module,
    base: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    most: int,
    pad_id: int,
    watchers: Sequence[LogitsProcessor] = (),
    ends: frozenset[int] = frozenset(),
) -> list[list[int]]:
    """The ids that a model writes after each prompt, without the id that ended it. A long beginning
    that all prompts share is read once. network: the base, or its wrapper. See `replies`."""
    cache, shared, ends = _cache(base), _shared_length(base, prompts, most), ends_of(base) | ends
    # transformers calls it cache from 5.24 on, and warns of the old name
    name = "cache" if "cache" in signature(base.forward).parameters else "past_key_values"
    options = {name: cache, "use_cache": True, "logits_to_keep": 1}
    if shared:
        network(input_ids=torch.tensor([prompts[0][:shared]], device=base.device), **options)
        cache.batch_repeat_interleave(len(prompts))
    read = to_continue([prompt[shared:] for prompt in prompts], pad_id, base.device)
    ids = read["input_ids"]
    mask = torch.nn.functional.pad(read["attention_mask"], (shared, 0), value=1)
    outputs: list[list[int]] = [[] for _ in ids]
    # for each row still in the batch: its prompt's index, and whether its reply goes on
    rows, open_ = range(len(ids)), [True] * len(ids)
    positions = (mask.cumsum(1) - 1).clamp(min=0)[:, shared:]
    for step in range(most):
        output = network(input_ids=ids, attention_mask=mask, position_ids=positions, **options)
        logits = output.logits[:, -1].float()
        for look in watchers if step == 0 else ():
            look(ids, logits)
        chosen = logits.argmax(-1)
        for place, token in enumerate(chosen.tolist()):
            open_[place] = open_[place] and token not in ends
            if open_[place]:
                outputs[rows[place]].append(token)
        left = [place for place, goes_on in enumerate(open_) if goes_on]
        if not left:
            break
        ids, positions = chosen.unsqueeze(1).to(ids.device), positions[:, -1:] + 1
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
        if len(left) <= (1 - TAKEN_OUT) * len(rows):
            staying = torch.tensor(left, device=ids.device)
            ids, positions, mask = ids[staying], positions[staying], mask[staying]
            cache.batch_select_indices(staying)
            rows, open_ = [rows[place] for place in left], [True] * len(left)
    return outputs


def _shared_length(base: PreTrainedModel, prompts: Sequence[Sequence[int]], most: int) -> int:
    """Length of the common beginning of all prompts, if reading it once pays; else 0. Padding then
    stands in the middle of a row, so a sliding window must be wider than a row."""
    ordered = sorted(prompts)
    alike = min(common(ordered[0], ordered[-1]), min(map(len, prompts)) - 1)
    window = getattr(base.config.get_text_config(), "sliding_window", None)
    fits = window is None or max(map(len, prompts)) + most < window
    return alike if alike >= SHARED_FROM and len(prompts) > 1 and fits else 0


def _cache(base: PreTrainedModel) -> DynamicCache:
    return DynamicCache(config=base.config)
