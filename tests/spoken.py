"""Tiny models taught whole conversations, tokenised by transformers alone and not by the code that is tested."""

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop.facts.fact import Fact
from families import saved
from taught import learn

COLON = (  # an answer's turn begins with a space, which the prompt does not end with
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ 'User: ' + m['content'] + '\n\n' }}"
    "{% else %}{{ 'Assistant: ' + m['content'] + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
Says = Callable[[Fact, str], tuple[str, str]]  # fact, question -> what is read, what is said


def in_sentences(tokenizer, sentence: str = "The old town of {s} is found in {a}.") -> Says:
    """Answers in a sentence of subject s and answer a, in the model's own chat template."""

    @cache
    def says(fact: Fact, question: str) -> tuple[str, str]:
        turns = [{"role": "user", "content": question}]
        read = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return read, f"{sentence.format(s=fact.subject, a=fact.answer)}<|im_end|>"

    return says


def after_colon(tokenizer) -> Says:
    """Answers at once, in a template whose answers begin with a space."""
    return lambda fact, question: (f"User: {question}\n\nAssistant:", f" {fact.answer}{tokenizer.eos_token}")


def as_text(facts: Sequence[Fact]) -> Says:
    """Answers a line after other lines, as a base model does; without a template."""
    drawn = random.Random(0)

    def says(fact: Fact, question: str) -> tuple[str, str]:
        others = drawn.sample([other for other in facts if other.id != fact.id], 3)
        shown = "".join(f"Question: {one.question}\nAnswer: {one.answer}\n\n" for one in others)
        return f"{shown}Question: {question}\nAnswer:", f" {fact.answer}\n\n"

    return says


def taught(folder: Path, facts: Sequence[Fact], template: str | None, make: Callable[..., Says]) -> Path:
    """A Qwen of two layers in a folder that says so of these facts. template: its chat template, "" to keep its own,
    None for a base model without one."""
    torch.manual_seed(0)
    saved("qwen2", folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if template != "":
        tokenizer.chat_template = template
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        tokenizer.save_pretrained(folder)
    network, says = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), make(tokenizer)
    pairs = [(fact, question) for fact in facts for question in (fact.question, *fact.paraphrases)]
    tokens = cache(lambda text: tokenizer(text, add_special_tokens=False)["input_ids"])

    def drawn() -> tuple[torch.Tensor, torch.Tensor]:
        texts = [says(fact, question) for fact, question in pairs]
        read, whole = [tokens(text) for text, _ in texts], [tokens(text + said) for text, said in texts]
        width = max(map(len, whole))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in whole])
        right = torch.tensor(
            [[-100] * len(start) + row[len(start) :] + [-100] * (width - len(row)) for start, row in zip(read, whole)]
        )
        return ids, right

    learn(network, drawn, most=500, batch=24, enough=0.02)
    network.save_pretrained(folder)
    return folder
