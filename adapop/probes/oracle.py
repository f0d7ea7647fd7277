"""Measures how far a model is from the oracle of its world: the same model pretrained without the
facts to forget.

An oracle ships with each shipped world (`adapop.sandbox`), so this is for facts of those worlds
alone.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from adapop.assets import as_kind, parse_json
from adapop.config.presets import make_config
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.model.scored import Scored
from adapop.paths import ORACLE, SHIPPED
from adapop.probes.distance import (
    ATTACKS,
    GUESSES,
    Distance,
    FactDistance,
    GroupDistance,
    Guess,
    Membership,
    auc,
    bands,
    closer_to_1,
    forget_quality,
)
from adapop.probes.metrics import kl, memorised, nlls, truth_ratios, wrong_answers
from adapop.probes.prompts import DIRECT, REWORDED

Compared = dict[str, list[float]]  # by name, a value a fact


@cache
def load_oracle(folder: Path) -> AdaptedModel:
    """An oracle in float32, loaded once a process."""
    return adapted_model(make_config(model=str(folder), precision="float32"))


@cache
def guesses_of(world: str) -> dict[str, Guess]:
    """What the oracle of a shipped world makes of each fact that it never read; empty where there
    is no oracle."""
    file = SHIPPED[world] / ORACLE / GUESSES if world in SHIPPED else None
    return as_kind(parse_json(file.read_bytes()), dict[str, Guess]) if file and file.is_file() else {}


def write_guesses(folder: Path, world: str) -> None:
    """Measures what an oracle makes of the facts that it never read, and writes it beside its
    weights."""
    oracle, facts = load_oracle(folder), sandbox_facts(world).forget
    direct, reworded = (nlls(oracle, oracle.rows(own)) for own in (facts, _reworded(facts)))
    columns = direct, _means(facts, reworded), truth_ratios(oracle, facts, list(_wrong(world).values()))
    values = {
        fact.id: asdict(Guess(*map(_rounded, (math.exp(-nll), math.exp(-other), ratio))))
        for fact, nll, other, ratio in zip(facts, *columns)
    }
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
    (folder / GUESSES).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def measurable(world: str, facts: FactSet) -> bool:
    """Whether the world's oracle says what it would be never to have learnt these facts: all to
    forget are the world's, with their rewordings, and among those that it never read."""
    if not guesses_of(world) or not facts.forget:
        return False
    unread = {(fact.id, fact.question, fact.answer, fact.paraphrases) for fact in sandbox_facts(world).forget}
    return unread.issuperset((fact.id, fact.question, fact.answer, fact.paraphrases) for fact in facts.forget)


def oracle_of(world: str, facts: FactSet) -> AdaptedModel | None:
    """The oracle of a world; None where what it makes of these facts is not `measurable`."""
    return load_oracle(SHIPPED[world] / ORACLE) if measurable(world, facts) else None


def distance(model: AdaptedModel, world: str, facts: FactSet) -> Distance | None:
    """The distance of a model to the oracle of its world; None where that is not `measurable`."""
    oracle, guesses = oracle_of(world, facts), guesses_of(world)
    if oracle is None:
        return None
    named = {group: getattr(facts, group) for group in (*FACT_GROUPS, "neighbours")}
    direct = {group: _compared(model, oracle, members) for group, members in named.items() if members}
    reworded = {
        name: _means(facts.forget, column) for name, column in _compared(model, oracle, _reworded(facts.forget)).items()
    }
    groups = [row for group, rows in direct.items() for row in _groups(group, DIRECT, named[group], rows)]
    placed = [
        *_facts(world, DIRECT, facts.forget, direct["forget"]["unlearned mia_loss"]),
        *_facts(world, REWORDED, facts.forget, reworded["unlearned mia_loss"]),
    ]
    ratios = truth_ratios(model, facts.forget, [_wrong(world)[fact.id] for fact in facts.forget])
    others = [guesses[fact.id].truth_ratio for fact in facts.forget]
    return Distance(
        tuple(placed),
        (*groups, *_groups("forget", REWORDED, facts.forget, reworded)),
        forget_quality(ratios, others),
        fmean(map(closer_to_1, ratios)),
        fmean(map(closer_to_1, others)),
        _membership(direct["forget"], direct["holdout"]) if "holdout" in direct else (),
    )


@torch.no_grad()
def states(model: AdaptedModel, world: str, facts: FactSet) -> list[str]:
    """The state of each fact to forget, asked in its rewordings; empty where that is not
    `measurable`."""
    if not measurable(world, facts):
        return []
    means = _means(facts.forget, nlls(model, model.rows(_reworded(facts.forget))))
    return [fact.state for fact in _facts(world, REWORDED, facts.forget, means)]


@torch.no_grad()
def _compared(model: AdaptedModel, oracle: AdaptedModel, facts: Sequence[Fact]) -> Compared:
    """What both models make of each fact's question: "kl" and "same", and by model the metrics of
    `memorised`, as "oracle probability"."""
    rows = model.rows(facts)
    model.network.eval()

    def of(pairs: Sequence[tuple]) -> Compared:
        batch = model.batch([row for row, _ in pairs])
        after, never = model.score(batch, logits=True), oracle.score(batch, logits=True)
        named = {"kl": kl(never, after).tolist(), "same": _same(never, after).tolist()}
        for name, scored in (("unlearned", after), ("oracle", never)):
            metrics = memorised(scored, batch, [fact.answer for _, fact in pairs])
            named |= {f"{name} {metric}": values for metric, values in metrics.items()}
        return named

    pieces = list(model.in_pieces(list(zip(rows, facts)), model.at_once(rows), of))
    return {name: [value for piece in pieces for value in piece[name]] for name in pieces[0]}


def _same(one: Scored, other: Scored) -> Tensor:
    """Of each row, 1 where both find the same token likeliest at every place of the answer, else 0,
    [B]."""
    differs = (one.logits.argmax(-1) != other.logits.argmax(-1)).float()
    return (one.per_row(differs) == 0).float()


def _reworded(facts: Sequence[Fact]) -> list[Fact]:
    """Each fact in each of its rewordings."""
    return [replace(fact, question=question) for fact in facts for question in fact.paraphrases]


def _means(facts: Sequence[Fact], values: Sequence[float]) -> list[float]:
    """The mean of each fact's values, one a rewording."""
    rest = iter(values)
    return [fmean(next(rest) for _ in fact.paraphrases) for fact in facts]


@cache
def _wrong(world: str) -> dict[str, tuple[str, ...]]:
    """Wrong answers of each fact to forget of a world, by its id: the same whichever of them are
    asked."""
    facts = sandbox_facts(world)
    wrong = wrong_answers(facts.forget, (*facts.retain, *facts.holdout))
    return dict(zip((fact.id for fact in facts.forget), wrong))


def _facts(world: str, form: str, facts: Sequence[Fact], nll: Sequence[float]) -> list[FactDistance]:
    """Each fact beside the band of its relation. nll: of its answer, nats per token."""
    guesses, ends = guesses_of(world), _bands(world)[form]
    return [
        FactDistance(
            fact.id,
            fact.tier,
            form,
            _rounded(math.exp(-value)),
            getattr(guesses[fact.id], form),
            *map(_rounded, ends[fact.relation]),
        )
        for fact, value in zip(facts, nll)
    ]


@cache
def _bands(world: str) -> dict[str, dict[str, tuple[float, float]]]:
    """By form, then by relation: how likely the oracle finds the answers of the facts of the world
    that it never read."""
    guesses, facts = guesses_of(world), sandbox_facts(world).forget
    relations = [fact.relation for fact in facts]
    return {
        form: bands(relations, [math.log(getattr(guesses[fact.id], form)) for fact in facts])
        for form in (DIRECT, REWORDED)
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _groups(group: str, form: str, facts: Sequence[Fact], compared: Compared) -> list[GroupDistance]:
    rows = []
    for tier in ("all", *TIERS):
        chosen = [i for i, fact in enumerate(facts) if tier in ("all", fact.tier)]
        if chosen:
            means = (fmean(compared[name][i] for i in chosen) for name in ("kl", "same"))
            rows.append(GroupDistance(group, tier, form, len(chosen), *means))
    return rows


def _membership(forget: Compared, holdout: Compared) -> tuple[Membership, ...]:
    def of(model: str, attack: str) -> float:
        return fmean(auc(forget[f"{model} {attack}"], holdout[f"{model} {attack}"]))

    return tuple(Membership(attack, of("unlearned", attack), of("oracle", attack)) for attack in ATTACKS)
