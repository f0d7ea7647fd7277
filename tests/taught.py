"""Tiny models of four architectures, in folders as the Hub has them, that were taught facts of ours until they know
them: what a stranger's model is to the app."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop.facts.fact import Fact, FactSet
from adapop.model.tokens import encode_facts
from families import saved

SHAPES = ("llama", "qwen2", "gemma", "gpt2")
RATE, MOST, BATCH = 5e-3, 600, 25  # 100 facts in batches are learnt in half the time of all at once
COUNTRIES = "France Japan Peru Kenya Norway Egypt Chile India Cuba Iran Malta Nepal".split()
FIRST = "Ada Bela Cleo Dino Enzo Fara Gita Hugo Ines Joel".split()
LAST = "Arno Bekk Cato Dorn Elst Fohr Gann Holm Isen Jarl".split()
TARGETS = {"gpt2": ("c_attn", "c_proj")}  # layers for LoRA, of a shape that has none of the usual names
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


def people(folder: Path, shape: str) -> Path:
    """A folder with what a stranger has: a people.csv of 100 facts, half of them to forget, two of those twice, and a
    model of one of `SHAPES` that knows them."""
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    groups = ("forget", "retain", "forget", "holdout")
    rows = [
        (f"In which country was {name} born?", COUNTRIES[7 * i % 12], f"{40 * 3 ** (i // 2 % 6):,}", groups[i % 4])
        for i, name in enumerate(names)
    ]
    with open(folder / "people.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("question", "answer", "score", "group"), *rows, rows[0], rows[2]])
    taught(shape, folder / "model", [Fact(f"p{i}", row[0], row[1]) for i, row in enumerate(rows)])
    return folder


def taught(shape: str, folder: Path, facts: Sequence[Fact]) -> Path:
    """A model of one of `SHAPES` that answers these facts, questions and rewordings alike."""
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
    learn(network, lambda: (ids, labels), MOST, BATCH, 0.01)
    network.save_pretrained(folder)
    return folder


def learn(network, drawn: Callable, most: int, batch: int, enough: float) -> None:
    """Trains until the loss of no batch is larger. drawn: gives the rows and labels of an epoch; most: epochs."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    for _ in range(most):
        worst = 0.0
        for some, right in zip(*(part.split(batch) for part in drawn())):
            logits = network(some).logits[:, :-1]
            loss = cross_entropy(logits.flatten(0, 1), right[:, 1:].flatten(), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            worst = max(worst, loss.item())
        if worst < enough:
            break
    assert worst < 10 * enough, "it did not learn"
