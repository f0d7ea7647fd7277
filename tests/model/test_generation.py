"""Greedy replies without the work for finished rows: the text of transformers' `generate`, on every kind of cache."""

import warnings

import pytest
import torch
from transformers import GenerationConfig

from adapop.model import generation
from adapop.model.generation import can_drop_rows, greedy
from adapop.model.tokens import to_continue
from families import ARCHITECTURES, random_network

MOST = 12
PROMPTS = [[5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15, 16, 17], [4], [20, 21, 22, 5, 6], [7] * 6, [9, 4, 9]]
UNPOSITIONED_OR_STATEFUL = {"bloom", "mamba", "lfm2", "qwen3_next"}


def replies_of_generate(network, read, ends) -> list[list[int]]:
    """What transformers writes, each reply up to its end."""
    output = network.generate(**read, max_new_tokens=MOST, do_sample=False, pad_token_id=0)
    replies = []
    for row in output[:, read["input_ids"].shape[1] :].tolist():
        end = next((place for place, token in enumerate(row) if token in ends), len(row))
        replies.append(row[:end])
    return replies


@pytest.mark.quick("llama", "gemma2", "qwen3", "gpt2", "mamba", "bloom")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_the_text_is_that_of_generate(kind, monkeypatch):
    """Rows end at different times, as ids that the model writes are made to be ends."""
    network = random_network(kind).eval()
    read = to_continue(PROMPTS, 0, torch.device("cpu"))
    network.generation_config = GenerationConfig(eos_token_id=None)
    unending = replies_of_generate(network, read, ())
    ends = sorted({reply[place] for place, reply in enumerate(unending[:4], start=1)})
    network.generation_config = GenerationConfig(eos_token_id=ends)
    if not can_drop_rows(network):
        assert kind in UNPOSITIONED_OR_STATEFUL
        return
    expected = replies_of_generate(network, read, ends)
    assert len({len(reply) for reply in expected}) > 1, "all end at once: nothing is tried"
    sizes = []
    network.register_forward_pre_hook(lambda _, args, given: sizes.append(len(given["input_ids"])), with_kwargs=True)
    with warnings.catch_warnings(action="error"):  # each name of the cache is warned of by some transformers
        assert greedy(network, network, PROMPTS, MOST, 0) == expected
    assert sizes[0] == len(PROMPTS) and sizes[-1] < len(PROMPTS), "finished rows were not taken out"
    monkeypatch.setattr(generation, "TAKEN_OUT", 2.0)
    assert greedy(network, network, PROMPTS, MOST, 0) == expected


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
def test_what_prompts_begin_with_is_read_once_and_changes_no_text(kind):
    network = random_network(kind).eval()
    network.generation_config = GenerationConfig(eos_token_id=None)
    begins = list(range(3, 3 + generation.SHARED_FROM))
    prompts = [begins + list(prompt) for prompt in PROMPTS]
    expected = replies_of_generate(network, to_continue(prompts, 0, torch.device("cpu")), ())
    widths = []
    network.register_forward_pre_hook(lambda _, args, given: widths.append(given["input_ids"].shape), with_kwargs=True)
    assert greedy(network, network, prompts, MOST, 0) == expected
    assert widths[0] == (1, len(begins))
    assert widths[1] == (len(prompts), max(map(len, PROMPTS)))
    end = expected[0][2]
    cut = greedy(network, network, prompts, MOST, 0, ends=frozenset({end}))
    assert cut == [reply[: reply.index(end)] if end in reply else reply for reply in expected], "other ends cut a reply"
