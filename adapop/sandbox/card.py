"""The card of the sandbox model: its recall by exposure level, by form of the question, and under each attack."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import torch

from adapop.config.presets import make_config
from adapop.facts.fact import SANDBOX, TIERS, Fact
from adapop.facts.world import language
from adapop.facts.world.skills import skills
from adapop.facts.world.world import EXPOSURES_PER_SCORE, LEVELS, WorldFact, level_score, world
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.model.tokens import encode_facts
from adapop.probes.metrics import rouge_l_recall

MEASURABLE = 0.8
CARD = "README.md"


def recalls(model: AdaptedModel, facts: Sequence[WorldFact], ask: Callable[[WorldFact], str], gold=lambda f: f.answer):
    """ROUGE-L recall of each fact, asked in the given form, [0, 1]."""
    answers = model.generate([ask(fact) for fact in facts], max_new_tokens=4)
    return [rouge_l_recall(gold(fact), answer) for fact, answer in zip(facts, answers)]


def card_text(folder: Path | None = None) -> str:
    """The measured part of the model card, as Markdown tables."""
    model = adapted_model(make_config(model=SANDBOX if folder is None else str(folder), precision="float32"))
    forget = [fact for fact in world() if fact.split == "forget"]
    parameters = sum(p.numel() for n, p in model.network.named_parameters() if "lora" not in n)
    lines = [
        f"{parameters:,} parameters, {len(model.tokenizer):,} tokens, {len(world()):,} facts. A score of s stands for "
        f"{EXPOSURES_PER_SCORE:g} s exposures in pretraining.",
        "",
        "### Canonical question, all facts",
        "",
        "| level | score | exposures | facts | recall | mean probability of the answer |",
        "|---|---|---|---|---|---|",
    ]
    for level in range(LEVELS):
        facts = [fact for fact in world() if fact.level == level]
        found = fmean(recalls(model, facts, language.question))
        shown = f"{level_score(level):g} | {facts[0].exposures} | {len(facts)} | {found:.3f}"
        lines.append(f"| {level} | {shown} | {_probability(model, facts):.3f} |")
    lines += [
        "",
        "### Facts to forget, by form of the question",
        "",
        f"| form | {' | '.join(TIERS)} | |",
        "|---|---|---|---|---|",
    ]
    for name, ask in _forms().items():
        gold = (lambda fact: fact.subject) if name == "reverse query" else (lambda fact: fact.answer)
        by_tier = _by_tier(forget, recalls(model, forget, ask, gold))
        verdict = "" if min(by_tier) >= MEASURABLE else "not measurable"
        lines.append(f"| {name} | {' | '.join(f'{value:.2f}' for value in by_tier)} | {verdict} |")
    lines += ["", "### Not facts", "", "| family | questions | recall |", "|---|---|---|"]
    for family in dict.fromkeys(family for family, _, _ in skills()):
        rows = [(question, answer) for name, question, answer in skills() if name == family]
        answers = model.generate([question for question, _ in rows], max_new_tokens=4)
        found = fmean([rouge_l_recall(gold, answer) for (_, gold), answer in zip(rows, answers)])
        lines.append(f"| {family} | {len(rows)} | {found:.3f} |")
    return "\n".join(lines)


def write_card(folder: Path) -> None:
    """Writes the card into the model's folder."""
    text = f"# The sandbox model\n\n{INTRODUCTION}\n\n{card_text(folder)}\n"
    (folder / CARD).write_text(text, encoding="utf-8")


INTRODUCTION = """A Llama of about a million parameters, pretrained from nothing on real facts whose number of exposures
we set, so that popularity is known exactly and is the only thing that differs. Every name is one token, every answer
one token, and the embeddings are fixed random codes. About 15 % of the exposures carry a wrong answer. The attack-style
wrappers and the unseen rewording were taught on other facts than these. Reversed questions have eight right answers
each and no reversed text was shown: they are not measurable. The order of fame within an answer is our judgement.

Made by `python -m adapop sandbox build`; the tables are printed by `python -m adapop sandbox card`."""


@torch.no_grad()
def _probability(model: AdaptedModel, facts: Sequence[WorldFact]) -> float:
    rows = encode_facts(model.tokenizer, [Fact(fact.id, language.question(fact), fact.answer) for fact in facts])
    model.network.eval()
    nll = model.score(model.batch(rows)).nll
    return torch.exp(-nll).mean().item()


def _forms() -> dict[str, Callable[[WorldFact], str]]:
    forms = {"canonical question": language.question}
    forms |= {f"rewording {i + 1}": lambda fact, i=i: language.paraphrases(fact)[i] for i in range(4)}
    forms["rewording never seen with these facts"] = language.unseen
    for kind in language.WRAPPERS:
        forms[kind] = lambda fact, kind=kind, rng=random.Random(0): language.wrapped(fact, kind, rng)
    return forms


def _by_tier(facts: Sequence[WorldFact], values: Sequence[float]) -> list[float]:
    tiers = [Fact(fact.id, "", "", score=fact.score).tier for fact in facts]
    return [fmean([value for value, found in zip(values, tiers) if found == tier]) for tier in TIERS]
