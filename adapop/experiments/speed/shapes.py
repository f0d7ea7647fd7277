"""Models of published shapes with random weights, made in place: nothing is downloaded, and speed
does not depend on what weights are. Facts of the paper's size come with them."""

import random
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.facts.fact import SANDBOX, Fact
from adapop.facts.world import sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.catalogue import MODELS
from adapop.model.loading import load_tokenizer, steady_attention
from adapop.model.precision import set_products

SHAPES: dict[str, Mapping[str, Any]] = {
    "Qwen2.5-0.5B": MODELS["Qwen/Qwen2.5-0.5B-Instruct"].shape,
    "Llama-3.1-8B": MODELS["meta-llama/Llama-3.1-8B-Instruct"].shape,
}
# DUET's rows have about 71 tokens in Llama 3.1's chat template, of which the first 55 or so, with
# the system prompt, are the same in all; their answers are names of places
HEAD_WORDS, PROMPT_WORDS, ANSWER_WORDS = 55, (8, 16), (1, 4)


def random_model(shape: Mapping[str, Any], config: RunConfig, device: str) -> AdaptedModel:
    """A model of the shape with a fresh adapter. It reads and writes with the sandbox's tokenizer,
    whose ids every vocabulary has."""
    torch.manual_seed(config.seed)
    with torch.device(device):
        settings = AutoConfig.for_model(**shape)
        base = AutoModelForCausalLM.from_config(settings, dtype=getattr(torch, config.precision))
    tokenizer = load_tokenizer(make_config(model=SANDBOX))
    steady_attention(base)
    set_products(config, base.device)
    base.generation_config.eos_token_id = None  # random words never end
    return AdaptedModel(with_adapter(base, config), tokenizer)


def random_facts(count: int, seed: int) -> list[Fact]:
    """Facts without sense, whose rows are as long as those of DUET and begin alike, whatever the
    seed."""
    rng = random.Random(seed)
    words = sorted({fact.answer for fact in sandbox_facts().forget})  # a token each
    head = " ".join(random.Random(0).choices(words, k=HEAD_WORDS))

    def text(bounds: tuple[int, int]) -> str:
        return " ".join(rng.choices(words, k=rng.randint(*bounds)))

    return [
        Fact(f"{seed}-{i}", f"{head} {text(PROMPT_WORDS)}", text(ANSWER_WORDS), score=rng.lognormvariate(6, 1.5))
        for i in range(count)
    ]
