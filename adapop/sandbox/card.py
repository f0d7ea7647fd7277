"""The card of a shipped model: its recall by exposure level, by form, and under each attack."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import fmean

import torch

from adapop.config.presets import make_config
from adapop.facts.fact import FACT_GROUPS, SANDBOX, TIERS, Fact
from adapop.facts.tiers import ON_SCALE
from adapop.facts.world import language
from adapop.facts.world.language import skills
from adapop.facts.world.world import (
    EXPOSURES_PER_SCORE,
    LEVELS,
    WorldFact,
    facts_of,
    parts_of,
    world,
)
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.model.tokens import encode_facts
from adapop.paths import ASSETS
from adapop.probes.oracle import write_guesses
from adapop.probes.recall import rouge_l_recall

MEASURABLE = 0.8
SPARE_TOKENS = 3  # for a reply that goes on after the answer
CARD = "README.md"
GROUP_TITLES = {"forget": "to forget", "retain": "retained", "holdout": "held out"}


def recalls(
    model: AdaptedModel,
    facts: Sequence[WorldFact],
    ask: Callable[[WorldFact], str],
    gold=lambda f: f.answer,
):
    """ROUGE-L recall of each fact, asked in the given form, [0, 1]."""
    longest = max(len(fact.parts) for fact in facts)
    answers = model.generate([ask(fact) for fact in facts], max_new_tokens=longest + SPARE_TOKENS)
    return [rouge_l_recall(gold(fact), answer) for fact, answer in zip(facts, answers)]


def card_text(folder: Path | None = None, name: str = SANDBOX) -> str:
    """The measured part of a world's model card, as Markdown tables. folder: of the build to
    measure, by default the shipped one."""
    config = make_config(model=name if folder is None else str(folder), precision="float32")
    model = adapted_model(config)
    forget, several = facts_of("forget", name), any(len(fact.parts) > 1 for fact in world(name))
    parameters = sum(p.numel() for n, p in model.network.named_parameters() if "lora" not in n)
    lines = [
        f"{parameters:,} parameters, {len(model.tokenizer):,} tokens, {len(world(name)):,} facts. "
        f"A score of s stands for {EXPOSURES_PER_SCORE:g} s exposures in pretraining.",
        "",
        "### Canonical question, all facts",
        "",
        f"| level | score | exposures | facts | recall | mean probability of "
        f"{'a token of ' * several}the answer |",
        "|---|---|---|---|---|---|",
    ]
    for level in range(LEVELS):
        facts = [fact for fact in world(name) if fact.level == level]
        recall = fmean(recalls(model, facts, language.question))
        scores, counts = [fact.score for fact in facts], [fact.exposures for fact in facts]
        cells = f"{_span(scores)} | {_span(counts)} | {len(facts)} | {recall:.3f}"
        lines.append(f"| {level} | {cells} | {_probability(model, facts):.3f} |")
    head = f"| form | {' | '.join(TIERS)} | |"
    lines += ["", "### Facts to forget, by form of the question", "", head, "|---|---|---|---|---|"]
    for form, ask in _forms().items():
        reverse = form == "reverse query"
        gold = attrgetter("subject" if reverse else "answer")
        by_tier = _by_tier(forget, recalls(model, forget, ask, gold))
        verdict = "" if min(by_tier) >= MEASURABLE else "not measurable"
        lines.append(f"| {form} | {' | '.join(f'{value:.2f}' for value in by_tier)} | {verdict} |")
    lines += ["", "### Not facts", "", "| family | questions | recall |", "|---|---|---|"]
    for family in dict.fromkeys(family for family, _, _ in skills()):
        rows = [(question, answer) for of, question, answer in skills() if of == family]
        answers = model.generate([question for question, _ in rows], max_new_tokens=4)
        recall = fmean([rouge_l_recall(gold, answer) for (_, gold), answer in zip(rows, answers)])
        lines.append(f"| {family} | {len(rows)} | {recall:.3f} |")
    return "\n".join(lines)


def oracle_text(folder: Path, name: str) -> str:
    """The measured part of an oracle's card: both models' recall, by group and tier."""
    configs = [make_config(model=model, precision="float32") for model in (name, str(folder))]
    shipped, oracle = map(adapted_model, configs)
    head = "| | asked | tier | facts | recall of the shipped model | of the oracle |"
    lines = [head, "|---|---|---|---|---|---|"]
    forms = {
        "as trained": language.question,
        "in other words": lambda fact: language.paraphrases(fact)[0],
    }
    for group in (*FACT_GROUPS, "neighbours"):
        if not (facts := facts_of(group, name)):  # only one world has neighbours
            continue
        title, tiers = GROUP_TITLES.get(group, group), [ON_SCALE.of(fact.score) for fact in facts]
        for form, ask in forms.items():
            pairs = list(zip(tiers, recalls(shipped, facts, ask), recalls(oracle, facts, ask)))
            for tier in TIERS:
                rows = [pair for pair in pairs if pair[0] == tier]
                means = " | ".join(f"{fmean(row[place] for row in rows):.3f}" for place in (1, 2))
                lines.append(f"| {title} | {form} | {tier} | {len(rows)} | {means} |")
    relations = [fact.relation for fact in facts_of("forget", name)]
    guess = fmean(1 / len(values) for relation in relations for values in parts_of(relation))
    lines += ["", f"A blind guess among the answers of the relation has a recall of {guess:.3f}."]
    return "\n".join(lines)


def write_card(folder: Path, name: str = SANDBOX) -> None:
    """Writes the card of a world's model into its folder: how it was made, and what is measured."""
    introduction = (ASSETS / name / "introduction.md").read_text(encoding="utf-8").strip()
    text = f"# The {name} model\n\n{introduction}\n\n{card_text(folder, name)}\n"
    (folder / CARD).write_text(text, encoding="utf-8")


def write_oracle_card(folder: Path, name: str) -> None:
    """Writes the card of a world's oracle into its folder, and the oracle's guesses of the facts it
    never read."""
    write_guesses(folder, name)
    text = (ASSETS / "sandbox" / "oracle.md").read_text(encoding="utf-8").strip().format(name=name)
    (folder / CARD).write_text(f"{text}\n\n{oracle_text(folder, name)}\n", encoding="utf-8")


@torch.no_grad()
def _probability(model: AdaptedModel, facts: Sequence[WorldFact]) -> float:
    trained = [Fact(fact.id, language.question(fact), fact.answer) for fact in facts]
    rows = encode_facts(model.tokenizer, trained)
    model.network.eval()
    nll = model.score(model.batch(rows)).nll
    return torch.exp(-nll).mean().item()


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _forms() -> dict[str, Callable[[WorldFact], str]]:
    forms = {"canonical question": language.question}
    for i in range(4):
        forms[f"rewording {i + 1}"] = lambda fact, i=i: language.paraphrases(fact)[i]
    forms["rewording never seen with these facts"] = language.unseen
    for kind in language.WRAPPERS:
        forms[kind] = partial(language.wrapped, kind=kind, rng=random.Random(0))
    return forms


def _by_tier(facts: Sequence[WorldFact], values: Sequence[float]) -> list[float]:
    tiers = [ON_SCALE.of(fact.score) for fact in facts]
    return [fmean([value for value, own in zip(values, tiers) if own == tier]) for tier in TIERS]
