"""What one should know before a run is started: what stands in its way, what is doubtful, what it will cost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tokenizers import Tokenizer

from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import ModelError, number_of, shown
from adapop.facts.fact import FactSet
from adapop.facts.real import borrowed
from adapop.facts.text import asked
from adapop.facts.weak import weak_answers
from adapop.model.catalogue import preset_of, shape_of
from adapop.model.converted import files_of, is_gguf
from adapop.model.footprint import SANDBOX_MODEL, Footprint, footprint
from adapop.paths import SHIPPED
from adapop.popularity.calibration import auto_anchors, warnings_of
from adapop.probes.verdict import KNOWN_FROM
from adapop.runs.pace import Pace, duration
from adapop.training.steps import count, spans

WEAK_NAMED = 5  # of them all are counted
MOVED_LITTLE = 2e-3  # steps times rate: at 1.5e-3 nothing was seen to go; the paper's runs on DUET make 1.6e-2

ROW_TOKENS = 128  # what a question with a chat template and a system prompt may have
TEMPLATE_TOKENS = 2  # who speaks, before question and answer: assets/sandbox/chat_template.jinja


@dataclass(frozen=True)
class Preflight:
    """What is known of a run before it starts, in sentences."""

    problems: tuple[str, ...] = ()
    """What stops it."""
    doubts: tuple[str, ...] = ()
    """What does not stop it, and should be known."""
    counts: str = ""
    """How many facts and steps the run has."""
    costs: tuple[str, ...] = ()
    """What it would take: memory, time, terms."""
    memory: str = ""
    """Of `costs` the least memory, where it is known without the model."""

    @property
    def readiness(self) -> str:
        """invalid or ready."""
        return "invalid" if self.problems else "ready"


@dataclass(frozen=True)
class ModelCosts:
    """What is known of a real model before it is loaded, in sentences."""

    memory: str
    memory_known: bool
    """Whether `memory` says the least that it takes."""
    time: str
    others: tuple[str, ...]
    """Its precision here, its licence, what to know of it."""


def preflight(facts: FactSet, config: RunConfig, pace: Pace | None = None) -> Preflight:
    """Looks at a set and its settings without loading a model. pace: of this model on this machine, None if no run has
    come to its end here."""
    facts = without_unscored(facts) if config.missing_score == "drop" else facts
    problems = [*_of_facts(facts, config.model), *_of_file(config.model)]
    doubts = [*_of_overlap(facts), *_of_weak(facts)]
    counts = (
        f"{number_of(len(facts.forget), 'fact')} to forget, {len(facts.retain):,} to retain, {len(facts.holdout):,} "
        f"held out: {number_of(steps_of(facts, config), 'step')} in {number_of(config.epochs, 'epoch')}"
        f"{_of_sizes(len(facts.forget), config)}."
    )
    costs, memory = [], ""
    config = config if config.beta else replace(config, beta=auto_anchors(facts).beta)
    if follows_scores(config) and config.beta.b:
        found, doubted = _of_scores(facts, config)
        problems, doubts = problems + found, doubts + doubted
    if facts.forget and config.model in SHIPPED:
        longest = _longest(facts, config.model)
        costs.append(f"Longest question and answer: {number_of(longest, 'token')}.")
        if longest > SANDBOX_MODEL["max_position_embeddings"]:
            problems.append(
                f"A question with its answer has {longest:,} tokens, and the model reads "
                f"{SANDBOX_MODEL['max_position_embeddings']:,}. Shorten it."
            )
        costs.append(_cost(facts, config, footprint(SANDBOX_MODEL, config, longest), pace))
    elif facts.forget:
        known = costs_of_model(facts, config, pace)
        memory = known.memory if known.memory_known else ""
        costs += [known.memory, known.time, *known.others]
    return Preflight(tuple(problems), tuple(doubts), counts, tuple(costs), memory)


def costs_of_model(facts: FactSet, config: RunConfig, pace: Pace | None = None) -> ModelCosts:
    """What a run with a real model takes, without loading it. pace: see `preflight`."""
    from adapop.model.precision import emulated_bfloat16, has_gpu  # torch, which whoever will load this needs anyway

    shape, model = shape_of(config.model), preset_of(config.model)
    memory, time = "Memory: known once the model is loaded.", "Time: known after the first steps."
    if shape is not None:
        least = footprint(shape, config, ROW_TOKENS, rows=1).total
        size = f"{least / 2**30:,.1f} GiB" if least >= 2**30 else f"{least / 2**20:,.0f} MiB"
        whose = " of the GPU's" if has_gpu() else ""
        memory = f"Memory: at least {size}{whose}, with one row of {ROW_TOKENS} tokens at a time."
    if pace:
        seconds = pace.seconds(config.epochs, steps_of(facts, config) // config.epochs)
        time = f"Time: about {duration(seconds)}, going by the last run here."
    others = [*emulated_bfloat16(config)]
    if model and config.model == model.id and model.gated:
        others.append(f"Its licence ({model.licence}) must be accepted at {model.page}, and HF_TOKEN be set.")
    notes = [model.note] if model and model.note else []
    return ModelCosts(memory, shape is not None, time, (*others, *notes))


def steps_of(facts: FactSet, config: RunConfig) -> int:
    """Optimiser steps of the whole run."""
    return count(len(facts.forget), config.batch, config.last_step) * config.epochs


def hardly_moves(facts: FactSet, config: RunConfig) -> list[str]:
    """That so few steps at so low a rate leave the model as it is, and what to raise; nothing where they do not."""
    steps = steps_of(facts, config)
    if steps * config.learning_rate >= MOVED_LITTLE:
        return []
    return [
        f"{number_of(steps, 'step')} at {config.learning_rate:g} will hardly change the model. "
        "Raise the learning rate (--lr) or the epochs (--epochs), or lower the batch (--batch), for more steps."
    ]


def _of_sizes(rows: int, config: RunConfig) -> str:
    """How many facts a step has, in words; "" where each has a whole batch."""
    sizes = {stop - start for start, stop in spans(rows, config.batch, config.last_step, epoch=1)} if rows else set()
    return f", of {' or '.join(map(str, sorted(sizes)))} facts" if sizes - {config.batch} else ""


def without_unscored(facts: FactSet) -> FactSet:
    """The set as a run sees it that drops facts without a score."""
    return replace(facts, forget=tuple(fact for fact in facts.forget if fact.score is not None))


def without_unknown(facts: FactSet, recall: Mapping[str, float]) -> FactSet:
    """The set without the facts that were asked and not answered. What was not asked stays.

    recall: by fact id.
    """
    kept = tuple(fact for fact in facts.forget if recall.get(fact.id, KNOWN_FROM) >= KNOWN_FROM)
    if not kept or len(kept) == len(facts.forget):
        return facts
    note = f"{len(facts.forget) - len(kept):,} facts that the original model cannot answer were left out."
    return replace(facts, forget=kept, notes=(*facts.notes, note))


def _of_facts(facts: FactSet, model: str) -> list[str]:
    if not facts.forget:
        return ["There is no fact to forget. Pick a set on tab 1, or add scores to the facts."]
    if not facts.retain:
        return ["There is nothing to retain. Choose facts to retain on tab 1."]
    return [" ".join(problem)] if (problem := borrowed(facts, model)) else []


def _of_file(model: str) -> list[str]:
    """That the GGUF file of a model is not there, or the package that brings it, and how to get
    it."""
    try:
        if is_gguf(model):
            files_of(model)
    except ModelError as error:
        return [str(error)]
    return []


def _of_overlap(facts: FactSet) -> list[str]:
    """Questions that stand in both groups, and what forgetting may take along: answers that must survive as well."""
    forgotten = {asked(fact.question) for fact in facts.forget}
    twice = [fact for fact in facts.retain if asked(fact.question) in forgotten]
    said = [f"To forget and to retain at once, so pulled both ways: {len(twice):,} of the questions."] if twice else []
    answers = {asked(fact.answer) for fact in facts.forget}
    shared = answers & {asked(fact.answer) for fact in facts.retain}
    if answers and not shared and facts.retain:
        said.append(
            "No answer to forget is also the answer of a retained fact: nothing teaches the model to keep the word "
            "and drop the fact."
        )
    return said


def _of_weak(facts: FactSet) -> list[str]:
    """Which answers to forget a reply may contain without answering, and why."""
    weak = weak_answers(facts.forget)
    if not weak:
        return []
    named = "; ".join(f"{shown(one.fact.answer)} ({one.kind})" for one in weak[:WEAK_NAMED])
    more = f"; and {len(weak) - WEAK_NAMED:,} more" if len(weak) > WEAK_NAMED else ""
    return [f"{number_of(len(weak), 'answer')} may stand in a reply that does not answer: {named}{more}."]


def _of_scores(facts: FactSet, config: RunConfig) -> tuple[list[str], list[str]]:
    """(problems, doubts) of the scores under the map."""
    unknown = facts.unknown_scores
    if unknown and config.missing_score == "error":
        problem = f"{_have(len(unknown))} no score. Decide on tab 1 what to do about it, or look popularity up."
        return [problem], []
    doubts = [f"{_have(len(unknown))} no score: β = 1 there."] if unknown else []
    return [], doubts + warnings_of([fact.score for fact in facts.forget if fact.score is not None], config.beta)


def _have(count: int) -> str:
    return f"{number_of(count, 'fact')} {'has' if count == 1 else 'have'}"


def _cost(facts: FactSet, config: RunConfig, needs: Footprint, pace: Pace | None) -> str:
    memory = f"about {needs.total / 2**20:,.0f} MiB beside the program itself."
    if pace is None:
        return f"Time: known after the first steps; memory: {memory}"
    seconds = pace.seconds(config.epochs, steps_of(facts, config) // config.epochs)
    return f"About {max(1, seconds):.0f} s, going by the last run here; {memory}"


@cache
def _tokenizer(model: str) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(SHIPPED[model] / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # what looks like a control token in a question is letters
    return tokenizer


@lru_cache(maxsize=8)
def _longest(facts: FactSet, model: str) -> int:
    """Tokens of the longest question with its answer, in a shipped model's chat template."""
    members = [*facts.forget, *facts.retain]
    questions, answers = (
        _tokenizer(model).encode_batch([getattr(fact, side) for fact in members], add_special_tokens=False)
        for side in ("question", "answer")
    )
    return TEMPLATE_TOKENS + max(len(one.ids) + len(other.ids) for one, other in zip(questions, answers))
