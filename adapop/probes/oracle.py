"""Measures how far a model is from its oracle, a model pretrained alike but without the facts to
forget.

An oracle ships with each shipped world (`adapop.sandbox`), for facts of that world alone. A real
model that was trained in a pair, as Hubble's are, has one too: its twin, which read none of the
planted facts, neither those to forget nor those to retain. So only facts to forget are compared
with it, without a membership attack: to the twin held-out facts are new too.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from adapop.assets import as_kind, parse_json
from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ModelError, RunError
from adapop.facts.fact import FACT_GROUPS, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.model.catalogue import oracle_for, preset_of
from adapop.model.loading import adapted_model
from adapop.model.out_of_memory import release
from adapop.model.paired import at
from adapop.model.tokens import AnswerTokens, Scored
from adapop.paths import ORACLE, SHIPPED
from adapop.probes import distance as distances
from adapop.probes.distance import FEWEST, GUESSES, MIA_NAMES, Distance, Guess, closer_to_1
from adapop.probes.measure import thinned
from adapop.probes.metrics import by_fact, kl, memorised, nlls, truth_ratios, wrong_answers
from adapop.probes.plan import in_tiers
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.remark import Remark

Compared = dict[str, list[float]]  # metric -> a value per fact
Probability = Mapping[str, Mapping[str, float]]
Bands = Mapping[str, Mapping[str, tuple[float, float]]]


@dataclass(frozen=True)
class Oracle:
    """A model that never read the facts to forget, and its predictions for them."""

    model: AdaptedModel
    probability: Probability
    """Form -> fact id -> probability of the right answer. `REWORDED` lacks facts without
    rewordings."""
    ratios: Mapping[str, float]
    """Fact id -> truth ratio, for facts that have wrong answers."""
    wrong: Mapping[str, Sequence[str]]
    """Fact id -> its wrong answers."""
    bands: Bands
    """Form -> relation -> the ends of `distance.bands`."""
    groups: tuple[str, ...] = (*FACT_GROUPS, "neighbours")
    """The groups compared: the facts to forget, and groups that oracle and model both read."""


@cache
def load_oracle(folder: Path) -> AdaptedModel:
    """An oracle in float32, loaded once per process."""
    return adapted_model(make_config(model=str(folder), precision="float32"))


@cache
def guesses_of(world: str) -> dict[str, Guess]:
    """Fact id -> guess of a shipped world's oracle, for facts it never read; {} without one."""
    if world not in SHIPPED or not (file := SHIPPED[world] / ORACLE / GUESSES).is_file():
        return {}
    return as_kind(parse_json(file.read_bytes()), dict[str, Guess])


def write_guesses(folder: Path, world: str) -> None:
    """Measures an oracle's guesses for the facts that it never read; writes them to its folder."""
    oracle, facts = load_oracle(folder), sandbox_facts(world).forget
    known = probability_of(oracle, facts)
    lines = []
    for fact, ratio in zip(facts, truth_ratios(oracle, facts, list(_wrong(world).values()))):
        guess = Guess(known[DIRECT][fact.id], known[REWORDED][fact.id], rounded(ratio))
        lines.append(f"  {json.dumps(fact.id)}: {json.dumps(asdict(guess))}")
    (folder / GUESSES).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def measurable(world: str, facts: FactSet) -> bool:
    """Whether a model can be compared with the world's oracle on these facts: all facts to forget
    are the world's, with their rewordings, and the oracle never read them."""
    if not guesses_of(world) or not facts.forget:
        return False

    def questions(members: Sequence[Fact]) -> set[tuple]:
        return {(fact.id, fact.question, fact.answer, fact.paraphrases) for fact in members}

    return questions(facts.forget) <= questions(sandbox_facts(world).forget)


def oracle_of(world: str, facts: FactSet) -> AdaptedModel | None:
    """The oracle of a world; None if these facts are not `measurable`."""
    return load_oracle(SHIPPED[world] / ORACLE) if measurable(world, facts) else None


def distance(model: AdaptedModel, world: str, facts: FactSet) -> Distance | None:
    """The distance of a model to its world's oracle; None if the facts are not `measurable`."""
    if not measurable(world, facts):
        return None
    ratios = {name: guess.truth_ratio for name, guess in guesses_of(world).items()}
    known, ends = _never_read(world)
    oracle = Oracle(load_oracle(SHIPPED[world] / ORACLE), known, ratios, _wrong(world), ends)
    return distance_to(model, oracle, facts)


def distance_to(model: AdaptedModel, oracle: Oracle, facts: FactSet) -> Distance:
    """The distance of a model to an oracle, on facts that `oracle.probability` has."""
    direct, groups = {}, []
    for group in oracle.groups:
        if members := getattr(facts, group):
            direct[group] = _metrics(model, oracle.model, members)
            groups += _groups(group, DIRECT, members, direct[group])
    known, ends = oracle.probability, oracle.bands
    placed = _facts(known, ends, DIRECT, facts.forget, direct["forget"]["unlearned mia_loss"])
    if reworded_facts := [fact for fact in facts.forget if fact.paraphrases]:
        compared = _metrics(model, oracle.model, reworded(reworded_facts))
        means = {name: means_of(reworded_facts, column) for name, column in compared.items()}
        groups += _groups("forget", REWORDED, reworded_facts, means)
        placed += _facts(known, ends, REWORDED, reworded_facts, means["unlearned mia_loss"])
    judged = [fact for fact in facts.forget if fact.id in oracle.ratios]
    ratios = truth_ratios(model, judged, [oracle.wrong[fact.id] for fact in judged])
    others = [oracle.ratios[fact.id] for fact in judged]
    attacked = _membership(direct["forget"], direct["holdout"]) if "holdout" in direct else ()
    means = (fmean(map(closer_to_1, values)) for values in (ratios, others))
    quality = distances.forget_quality(ratios, others)
    return Distance(tuple(placed), tuple(groups), quality, *means, attacked)


@torch.no_grad()
def states(model: AdaptedModel, world: str, facts: FactSet) -> list[str]:
    """The state of each fact to forget, asked reworded; empty if the facts are not `measurable`."""
    if not measurable(world, facts):
        return []
    means = means_of(facts.forget, nlls(model, model.rows(reworded(facts.forget))))
    return [fact.state for fact in _facts(*_never_read(world), REWORDED, facts.forget, means)]


def _metrics(model: AdaptedModel, oracle: AdaptedModel, facts: Sequence[Fact]) -> Compared:
    """Metric -> a value per fact, from its own question: "kl", "same", and for both models the
    metrics of `memorised` with the model's name in front, as "oracle probability"."""

    def of(batch: AnswerTokens, answers: Sequence[str]) -> Compared:
        after, never = model.score(batch, logits=True), oracle.score(batch, logits=True)
        named = {"kl": kl(never, after).tolist(), "same": _same(never, after).tolist()}
        for name, scored in (("unlearned", after), ("oracle", never)):
            metrics = memorised(scored, batch, answers)
            named |= {f"{name} {metric}": values for metric, values in metrics.items()}
        return named

    return by_fact(model, facts, of)


def _same(one: Scored, other: Scored) -> Tensor:
    """1 for each row in which both models predict the same answer tokens, else 0, [B]."""
    differs = (one.logits.argmax(-1) != other.logits.argmax(-1)).float()
    return (one.per_row(differs) == 0).float()


def reworded(facts: Sequence[Fact]) -> list[Fact]:
    """Each fact in each of its rewordings."""
    return [replace(fact, question=question) for fact in facts for question in fact.paraphrases]


def means_of(facts: Sequence[Fact], values: Sequence[float]) -> list[float]:
    """The mean of each fact's values. values: one per rewording, fact after fact."""
    rest = iter(values)
    return [fmean(next(rest) for _ in fact.paraphrases) for fact in facts]


@cache
def _wrong(world: str) -> dict[str, tuple[str, ...]]:
    """Fact id -> its wrong answers, for all facts to forget of a world, in the run or not."""
    facts = sandbox_facts(world)
    wrong = wrong_answers(facts.forget, facts.every)
    return dict(zip((fact.id for fact in facts.forget), wrong))


def _facts(
    probability: Probability, ends_of: Bands, form: str, facts: Sequence[Fact], nll: Sequence[float]
) -> list[distances.FactDistance]:
    """The distance of each fact, with its relation's band. nll: of its answer, nats per token."""
    known, ends, placed = probability[form], ends_of[form], []
    for fact, value in zip(facts, nll):
        beside = rounded(math.exp(-value)), known[fact.id], *map(rounded, ends[fact.relation])
        placed += [distances.FactDistance(fact.id, fact.tier, form, *beside)]
    return placed


@cache
def _never_read(world: str) -> tuple[Probability, Bands]:
    """`Oracle.probability` and `bands` of a shipped world's facts; loads no model."""
    guesses = guesses_of(world)
    forms = DIRECT, REWORDED
    known = {form: {name: getattr(one, form) for name, one in guesses.items()} for form in forms}
    return known, bands_of(sandbox_facts(world).forget, known)


def probability_of(oracle: AdaptedModel, facts: Sequence[Fact]) -> Probability:
    """`Oracle.probability` of facts."""
    others = [fact for fact in facts if fact.paraphrases]
    direct, by_wording = (nlls(oracle, oracle.rows(own)) for own in (facts, reworded(others)))
    forms = ((DIRECT, facts, direct), (REWORDED, others, means_of(others, by_wording)))
    return {
        form: {fact.id: rounded(math.exp(-nll)) for fact, nll in zip(members, values)}
        for form, members, values in forms
    }


def bands_of(facts: Sequence[Fact], probability: Probability) -> Bands:
    """`Oracle.bands` of facts that the oracle never read. probability: as `Oracle.probability`."""
    ends = {}
    for form, values in probability.items():
        if own := [fact for fact in facts if fact.id in values]:
            logs = [math.log(values[fact.id]) for fact in own]
            ends[form] = distances.bands([fact.relation for fact in own], logs)
    return ends


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _groups(
    group: str, form: str, facts: Sequence[Fact], compared: Compared
) -> list[distances.GroupDistance]:
    pairs = list(zip(compared["kl"], compared["same"]))
    return [
        distances.GroupDistance(group, tier, form, len(members), *map(fmean, zip(*members)))
        for tier, members in in_tiers(facts, pairs).items()
    ]


def _membership(forget: Compared, holdout: Compared) -> tuple[distances.Membership, ...]:
    def of(model: str, attack: str) -> float:
        return fmean(distances.auc(*(own[f"{model} {attack}"] for own in (forget, holdout))))

    both = ((attack, of("unlearned", attack), of("oracle", attack)) for attack in MIA_NAMES)
    return tuple(distances.Membership(*values) for values in both)


def compared(
    model: AdaptedModel, config: RunConfig, facts: FactSet
) -> tuple[Distance | None, tuple[Remark, ...]]:
    """A run's model against the oracle of its original, and remarks on obstacles; None if there is
    no oracle, or none for these facts. For a real model only the measured facts are compared, see
    `RunConfig.measure_per_tier`."""
    if not config.oracle and config.model in SHIPPED and config.start == "as-given":
        return (distance(model, config.model, facts) if model.compares else None), ()
    if not (place := place_of(config, facts)):
        return None, ()
    facts = thinned(facts, config.measure_per_tier)
    wrong = wrong_answers(facts.forget, facts.every)
    name = Path(config.oracle).name if config.oracle else preset_of(config.model).oracle
    if not any(wrong) or len(facts.forget) < FEWEST:  # no wrong answers, or no width of a band
        why = f"It takes {FEWEST} facts to forget, and wrong answers to some of them."
        values = {"model": name, "why": why}
        return None, (Remark("oracle_missing", values),) * bool(config.oracle)
    try:
        return distance_to(model, _twin(model, config, place, facts, wrong), facts), ()
    except (ModelError, RunError) as error:  # RunError: no memory for both
        why = error.message.replace(place, name)
        return None, (Remark("oracle_missing", {"model": name, "why": why}),)
    finally:
        release()


def place_of(config: RunConfig, facts: FactSet) -> str:
    """The place of a run's oracle: the one that its settings name, or the twin of a real model that
    never read these facts; "" without one. Shipped oracles are `oracle_of`."""
    if config.oracle or config.start != "as-given":
        return config.oracle
    place = oracle_for(config.model)
    return place if place and never_read(config.model, facts) else ""


def asked_alike(model: AdaptedModel, config: RunConfig, place: str) -> AdaptedModel:
    """The oracle at a place, asked as the model is. Raises ModelError: it cannot be loaded, or has
    another tokenizer."""
    twin = adapted_model(at(config, place))
    if twin.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise ModelError(f"The tokenizer of {place} differs from the model's.")
    twin.tokenizer, twin.system, twin.spoken = model.tokenizer, model.system, model.spoken
    return twin


def never_read(model: str, facts: FactSet) -> bool:
    """Whether the model's oracle never read the facts to forget, by the prefixes of their ids."""
    names = tuple(f"{name}-" for name in preset_of(model).never_read)
    return bool(facts.forget) and all(fact.id.startswith(names) for fact in facts.forget)


def _twin(
    model: AdaptedModel, config: RunConfig, place: str, facts: FactSet, wrong: list[tuple[str, ...]]
) -> Oracle:
    """The twin as an oracle, asked as the model is. wrong: wrong answers of the facts to forget.
    Raises ModelError: the twin cannot be loaded, or has another tokenizer."""
    if not config.oracle and Path(config.model).is_dir() and not Path(place).is_dir():
        raise ModelError(f"The folder {place} is missing beside the model's.")
    twin = asked_alike(model, config, place)
    forget, probability = facts.forget, probability_of(twin, facts.forget)
    judged = zip(forget, truth_ratios(twin, forget, wrong))
    ratios = {fact.id: ratio for fact, ratio in judged if ratio is not None}
    answers = {fact.id: own for fact, own in zip(forget, wrong)}
    ends = bands_of(forget, probability)
    return Oracle(twin, probability, ratios, answers, ends, ("forget",))
