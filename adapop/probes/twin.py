"""The oracle of a real model trained in a pair, as Hubble's are: its twin, which lacks some texts.

The twin read none of the planted facts, neither those to forget nor those to retain. So only facts
to forget are compared, without a membership attack: to the twin held-out facts are new too.
"""

from pathlib import Path

from adapop.config.run import RunConfig
from adapop.errors import ModelError, RunError
from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.catalogue import oracle_for, preset_of
from adapop.model.loading import adapted_model
from adapop.model.out_of_memory import release
from adapop.model.paired import at
from adapop.paths import SHIPPED
from adapop.probes import oracle
from adapop.probes.distance import FEWEST, Distance
from adapop.probes.measure import thinned
from adapop.probes.metrics import truth_ratios, wrong_answers
from adapop.remark import Remark


def compared(
    model: AdaptedModel, config: RunConfig, facts: FactSet
) -> tuple[Distance | None, tuple[Remark, ...]]:
    """A run's model against the oracle of its original, and remarks on obstacles; None if there is
    no oracle, or none for these facts. For a real model only the measured facts are compared, see
    `RunConfig.measure_per_tier`."""
    if not config.oracle and config.model in SHIPPED and config.start == "as-given":
        return (oracle.distance(model, config.model, facts) if model.compares else None), ()
    if not (place := place_of(config, facts)):
        return None, ()
    facts = thinned(facts, config.measure_per_tier)
    wrong = wrong_answers(facts.forget, (*facts.retain, *facts.holdout))
    name = Path(config.oracle).name if config.oracle else preset_of(config.model).oracle
    if not any(wrong) or len(facts.forget) < FEWEST:  # no wrong answers, or no width of a band
        why = f"It takes {FEWEST} facts to forget, and wrong answers to some of them."
        values = {"model": name, "why": why}
        return None, (Remark("oracle_missing", values),) * bool(config.oracle)
    try:
        return oracle.distance_to(model, _twin(model, config, place, facts, wrong), facts), ()
    except (ModelError, RunError) as error:  # RunError: no memory for both
        why = error.message.replace(place, name)
        return None, (Remark("oracle_missing", {"model": name, "why": why}),)
    finally:
        release()


def place_of(config: RunConfig, facts: FactSet) -> str:
    """The place of a run's oracle: the one that its settings name, or the twin of a real model that
    never read these facts; "" without one. Shipped oracles are `oracle.oracle_of`."""
    if config.oracle or config.start != "as-given":
        return config.oracle
    place = oracle_for(config.model)
    return place if place and never_read(config.model, facts) else ""


def asked_alike(model: AdaptedModel, config: RunConfig, place: str) -> AdaptedModel:
    """The oracle at a place, asked as the model is. Raises ModelError: it cannot be loaded, or has
    another tokenizer."""
    twin = adapted_model(at(config, place))
    if twin.tokenizer.get_vocab() != model.tokenizer.get_vocab():
        raise ModelError(f"The tokenizer of {place} is another one than the model's.")
    twin.tokenizer, twin.system, twin.spoken = model.tokenizer, model.system, model.spoken
    return twin


def never_read(model: str, facts: FactSet) -> bool:
    """Whether the model's oracle never read the facts to forget, by the prefixes of their ids."""
    names = tuple(f"{name}-" for name in preset_of(model).never_read)
    return bool(facts.forget) and all(fact.id.startswith(names) for fact in facts.forget)


def _twin(
    model: AdaptedModel, config: RunConfig, place: str, facts: FactSet, wrong: list[tuple[str, ...]]
) -> oracle.Oracle:
    """The twin as an oracle, asked as the model is. wrong: wrong answers of the facts to forget.
    Raises ModelError: the twin cannot be loaded, or has another tokenizer."""
    if not config.oracle and Path(config.model).is_dir() and not Path(place).is_dir():
        raise ModelError(f"There is no folder {place} beside the model's.")
    twin = asked_alike(model, config, place)
    forget, probability = facts.forget, oracle.probability_of(twin, facts.forget)
    judged = zip(forget, truth_ratios(twin, forget, wrong))
    ratios = {fact.id: ratio for fact, ratio in judged if ratio is not None}
    answers = {fact.id: own for fact, own in zip(forget, wrong)}
    ends = oracle.bands_of(forget, probability)
    return oracle.Oracle(twin, probability, ratios, answers, ends, ("forget",))
