"""What one should know before a run is started: what stands in its way, what is doubtful, what it will cost."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tokenizers import Tokenizer

from adapop.config.methods import method_named
from adapop.config.run import RunConfig
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.text import asked
from adapop.model.catalogue import preset_of, shape_of
from adapop.model.footprint import SANDBOX_MODEL, Footprint, footprint
from adapop.paths import SANDBOX_FOLDER
from adapop.popularity.calibration import warnings_of
from adapop.runs.pace import Pace, duration
from adapop.runs.run import Run
from adapop.training.steps import count

SANDBOX_SECONDS = 0.17  # a step with its share of the measurements, two CPU cores: bench speed, 13.7 s over 80 steps

ROW_TOKENS = 128  # what a question with a chat template and a system prompt may have
TEMPLATE_TOKENS = 2  # who speaks, before question and answer: assets/sandbox/chat_template.jinja


@dataclass(frozen=True)
class Preflight:
    """problems stop a run before it starts; doubts do not; plan says what would happen and what it would cost."""

    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()

    @property
    def readiness(self) -> str:
        """invalid or ready."""
        return "invalid" if self.problems else "ready"


def preflight(facts: FactSet, config: RunConfig, pace: Pace | None = None) -> Preflight:
    """Looks at a set and its settings without loading a model. pace: of this model on this machine, None if no run has
    come to its end here."""
    facts = without_unscored(facts) if config.missing_score == "drop" else facts
    problems, doubts = _of_facts(facts), _of_overlap(facts)
    plan = [
        f"{len(facts.forget):,} facts to forget, {len(facts.retain):,} to retain, {len(facts.holdout):,} held out: "
        f"{steps_of(facts, config):,} steps in {config.epochs} epoch{'' if config.epochs == 1 else 's'}."
    ]
    if method_named(config.method).scored and config.beta.b:
        found, doubted = _of_scores(facts, config)
        problems, doubts = problems + found, doubts + doubted
    if facts.forget and config.model == SANDBOX:
        longest = _longest(facts)
        plan.append(f"Longest question and answer: {longest:,} tokens.")
        if longest > SANDBOX_MODEL["max_position_embeddings"]:
            problems.append(
                f"A question with its answer has {longest:,} tokens, and the model reads "
                f"{SANDBOX_MODEL['max_position_embeddings']:,}. Shorten it."
            )
        plan.append(_cost(facts, config, footprint(SANDBOX_MODEL, config, longest), pace))
    elif facts.forget:
        plan += costs_of_model(facts, config, pace)
    return Preflight(tuple(problems), tuple(doubts), tuple(plan))


def costs_of_model(facts: FactSet, config: RunConfig, pace: Pace | None = None) -> list[str]:
    """What is known of a real model before it is loaded, in sentences: memory, time, licence. pace: see `preflight`."""
    shape, model = shape_of(config.model), preset_of(config.model)
    said = ["Memory: known once the model is loaded.", "Time: known after the first steps."]
    if shape is not None:
        least = footprint(shape, config, ROW_TOKENS, rows=1).total
        size = f"{least / 2**30:,.1f} GiB" if least >= 2**30 else f"{least / 2**20:,.0f} MiB"
        said[0] = f"Memory: at least {size} of the GPU's, with one row of {ROW_TOKENS} tokens at a time."
    if pace:
        seconds = pace.seconds(config.epochs, steps_of(facts, config) // config.epochs)
        said[1] = f"Time: about {duration(seconds)}, going by the last run here."
    from adapop.model.precision import emulated_bfloat16  # torch, which whoever will load this model needs anyway

    said += emulated_bfloat16(config)
    if model and config.model == model.id and model.gated:
        said.append(f"Its licence ({model.licence}) must be accepted at {model.page}, and HF_TOKEN be set.")
    return said + ([model.note] if model and model.note else [])


def steps_of(facts: FactSet, config: RunConfig) -> int:
    """Optimiser steps of the whole run."""
    return count(len(facts.forget), config.batch, config.last_step) * config.epochs


def without_unscored(facts: FactSet) -> FactSet:
    """The set as a run sees it that drops facts without a score."""
    return replace(facts, forget=tuple(fact for fact in facts.forget if fact.score is not None))


def _of_facts(facts: FactSet) -> list[str]:
    if not facts.forget:
        return ["There is no fact to forget. Pick a set on tab 1, or add scores to the facts."]
    return [] if facts.retain else ["There is nothing to retain. Choose facts to retain on tab 1."]


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


def _of_scores(facts: FactSet, config: RunConfig) -> tuple[list[str], list[str]]:
    """(problems, doubts) of the scores under the map."""
    unknown = facts.unknown_scores
    if unknown and config.missing_score == "error":
        problem = f"{_have(len(unknown))} no score. Decide on tab 1 what to do about it, or look popularity up."
        return [problem], []
    doubts = [f"{_have(len(unknown))} no score: β = 1 there."] if unknown else []
    return [], doubts + warnings_of([fact.score for fact in facts.forget if fact.score is not None], config.beta)


def _have(count: int) -> str:
    return "1 fact has" if count == 1 else f"{count:,} facts have"


def _cost(facts: FactSet, config: RunConfig, needs: Footprint, pace: Pace | None) -> str:
    source = "going by the last run here" if pace else "where we measured it, on two CPU cores"
    steps = steps_of(facts, config)
    seconds = pace.seconds(config.epochs, steps // config.epochs) if pace else steps * SANDBOX_SECONDS
    return f"About {max(1, seconds):.0f} s, {source}; about {needs.total / 2**20:,.0f} MiB beside the program itself."


@cache
def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(SANDBOX_FOLDER / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # what looks like a control token in a question is letters
    return tokenizer


@lru_cache(maxsize=8)
def _longest(facts: FactSet) -> int:
    """Tokens of the longest question with its answer, in the sandbox's chat template."""
    members = [*facts.forget, *facts.retain]
    questions, answers = (
        _tokenizer().encode_batch([getattr(fact, side) for fact in members], add_special_tokens=False)
        for side in ("question", "answer")
    )
    return TEMPLATE_TOKENS + max(len(one.ids) + len(other.ids) for one, other in zip(questions, answers))


def remarks(run: Run) -> tuple[str, ...]:
    """About its controller and its model's health, in sentences."""
    config, epochs = run.config, run.epochs()
    said = []
    if config.controller == "dual" and all(row.lam == 0 for row in epochs):
        said.append("The controller was never activated: drift stayed within tolerance, so lambda is 0 throughout.")
        worst = max(row.drift_from_start for row in epochs)
        if worst > config.tolerance:
            said.append(
                f"Against the loss before training, though, the retain loss rose by up to {worst:.0%}: the reference "
                "is taken after epoch 1, so what was damaged before is not seen."
            )
    known = run.measured(before=True).recall("forget")
    if known < 0.5:
        said.append(
            f"The original model answers only {known:.0%} of these facts: what was never known cannot be forgotten."
        )
    utility = run.measured().recall("utility")
    if utility is not None and utility < 0.5:
        said.append(f"The model is badly damaged: only {utility:.0%} of the non-fact questions still work.")
    return tuple(said)
