"""Tiny models of four architectures, in folders as the Hub has them, that were taught facts of ours until they know
them: what a stranger's model is to the app."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from adapop.facts.fact import Fact, FactSet
from adapop.model.tokens import encode_facts
from families import PLAIN, byte_level, saved

SHAPES = ("llama", "qwen2", "gemma", "gpt2")
RATE, MOST = 5e-3, 600
COUNTRIES = "France Japan Peru Kenya Norway Egypt Chile India Cuba Iran Malta Nepal".split()
TOWNS = "Abel Bora Cina Dole Emba Fard Gosh Hull Ivry Juno Kleb Lorn".split()


def own_facts(count: int = 12) -> FactSet:
    """Facts that are not the sandbox's: towns that do not exist, half of them to forget, the others to retain."""
    facts = [
        Fact(
            f"town-{i}", f"In which country is {TOWNS[i % 12]}{i // 12 or ''}?", COUNTRIES[5 * i % 12],
            subject=f"{TOWNS[i % 12]}{i // 12 or ''}", score=40.0 * 2**i,
            paraphrases=(f"{TOWNS[i % 12]}{i // 12 or ''} lies in which country?",),
        )
        for i in range(count)
    ]  # fmt: skip
    return FactSet("towns", tuple(facts[::2]), tuple(facts[1::4]), tuple(facts[3::4]))


def taught(shape: str, folder: Path, facts: Sequence[Fact]) -> Path:
    """A model of one of `SHAPES` that answers these facts, questions and rewordings alike."""
    if shape == "gpt2":
        tokenizer = byte_level(PLAIN, ["<|endoftext|>"], eos_token="<|endoftext|>")
        ends = dict(bos_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id)
        torch.manual_seed(0)
        GPT2LMHeadModel(
            GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=512, **ends)
        ).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    else:
        saved(shape, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    asked = [(fact, question) for fact in facts for question in (fact.question, *fact.paraphrases)]
    rows = encode_facts(tokenizer, [fact for fact, _ in asked], "", [text for _, text in asked], include_tail=True)
    ids = torch.zeros(len(rows), max(row.length for row in rows), dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for i, row in enumerate(rows):
        ids[i, : row.length] = torch.tensor([*row.prompt, *row.answer])
        labels[i, len(row.prompt) : row.length] = torch.tensor(row.answer)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    for _ in range(MOST):
        logits = network(ids).logits[:, :-1]
        loss = cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if loss < 0.01:
            break
    assert loss < 0.1, "it did not learn"
    network.save_pretrained(folder)
    return folder
