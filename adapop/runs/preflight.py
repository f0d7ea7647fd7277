"""What one should know before a run is started: what stands in its way, what is doubtful, what it will cost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tokenizers import Tokenizer

from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import number_of
from adapop.facts.fact import FactSet
from adapop.facts.real import borrowed
from adapop.facts.text import asked
from adapop.model.catalogue import preset_of, shape_of
from adapop.model.footprint import SANDBOX_MODEL, Footprint, footprint
from adapop.paths import SHIPPED
from adapop.popularity.calibration import warnings_of
from adapop.probes.verdict import KNOWN_FROM
from adapop.runs.pace import Pace, duration
from adapop.runs.run import Run
from adapop.training.events import RunStarted
from adapop.training.steps import count, spans

KNOWN = 0.5  # share of the facts that the original should answer
LEFT = 0.02  # a change of recall that is none
MOVED_LITTLE = 2e-3  # steps times rate: at 1.5e-3 nothing was seen to go; the paper's runs on DUET make 1.6e-2
LOST = 0.5  # of what the original answers of the utility questions: with less left the model is damaged
ENOUGH = 0.1  # with fewer of them answered before, a fall would not show
SURVIVING = {
    "utility": "the non-fact questions",
    "retain": "the facts to retain",
    "holdout": "the facts held out",
}

ROW_TOKENS = 128  # what a question with a chat template and a system prompt may have
TEMPLATE_TOKENS = 2  # who speaks, before question and answer: assets/sandbox/chat_template.jinja


@dataclass(frozen=True)
class Preflight:
    """What is known of a run before it starts, in sentences."""

    problems: tuple[str, ...] = ()
    """What stops it."""
    doubts: tuple[str, ...] = ()
    """What does not stop it, and should be known."""
    plan: tuple[str, ...] = ()
    """What would happen, and what it would cost."""

    @property
    def readiness(self) -> str:
        """invalid or ready."""
        return "invalid" if self.problems else "ready"


def preflight(facts: FactSet, config: RunConfig, pace: Pace | None = None) -> Preflight:
    """Looks at a set and its settings without loading a model. pace: of this model on this machine, None if no run has
    come to its end here."""
    facts = without_unscored(facts) if config.missing_score == "drop" else facts
    problems, doubts = _of_facts(facts, config.model), _of_overlap(facts)
    plan = [
        f"{number_of(len(facts.forget), 'fact')} to forget, {len(facts.retain):,} to retain, {len(facts.holdout):,} "
        f"held out: {number_of(steps_of(facts, config), 'step')} in {number_of(config.epochs, 'epoch')}"
        f"{_of_sizes(len(facts.forget), config)}."
    ]
    if follows_scores(config) and config.beta.b:
        found, doubted = _of_scores(facts, config)
        problems, doubts = problems + found, doubts + doubted
    if facts.forget and config.model in SHIPPED:
        longest = _longest(facts, config.model)
        plan.append(f"Longest question and answer: {number_of(longest, 'token')}.")
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
    from adapop.model.precision import emulated_bfloat16, has_gpu  # torch, which whoever will load this needs anyway

    shape, model = shape_of(config.model), preset_of(config.model)
    said = ["Memory: known once the model is loaded.", "Time: known after the first steps."]
    if shape is not None:
        least = footprint(shape, config, ROW_TOKENS, rows=1).total
        size = f"{least / 2**30:,.1f} GiB" if least >= 2**30 else f"{least / 2**20:,.0f} MiB"
        whose = " of the GPU's" if has_gpu() else ""
        said[0] = f"Memory: at least {size}{whose}, with one row of {ROW_TOKENS} tokens at a time."
    if pace:
        seconds = pace.seconds(config.epochs, steps_of(facts, config) // config.epochs)
        said[1] = f"Time: about {duration(seconds)}, going by the last run here."
    said += emulated_bfloat16(config)
    if model and config.model == model.id and model.gated:
        said.append(f"Its licence ({model.licence}) must be accepted at {model.page}, and HF_TOKEN be set.")
    return said + ([model.note] if model and model.note else [])


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
    before = run.measured(before=True)
    if before is None:
        return (*said, "Nothing was measured, as the run's settings say (measure: off). Probe it to see what is left.")
    known = before.recall("forget")
    if known < KNOWN:
        said.append(
            f"The original model answers only {known:.0%} of these facts: what was never known cannot be forgotten."
        )
    unmoved = nothing_forgotten(run)
    return (*said, *([unmoved] if unmoved else []), *_damage(run))


def nothing_forgotten(run: Run) -> str:
    """A sentence: that a finished run made nothing forgotten, and what to raise; "" if it did, or if the original model
    knew none of it."""
    before, after = run.measured(before=True), run.measured()
    if before is None or after is None:
        return ""
    was, now = before.recall("forget"), after.recall("forget")
    if was < LEFT or now < was - LEFT:
        return ""
    start = next(event for event in run.events() if isinstance(event, RunStarted))
    steps = start.steps * start.epochs
    return (
        f"Nothing was forgotten: recall of the facts to forget was {was:.2f} and is {now:.2f}, after "
        f"{number_of(steps, 'step')} at {run.config.learning_rate:g}. Raise the learning rate (--lr) "
        "or the epochs (--epochs), or lower the batch, which gives more steps."
    )


def _damage(run: Run) -> list[str]:
    """What the utility questions and the facts that must survive say of the model's health, against before."""
    before, after, said = run.measured(before=True), run.measured(), []
    for group, what in SURVIVING.items():
        was, now = before.recall(group), after.recall(group)
        if now is None or now >= LOST * was:
            continue
        if was >= ENOUGH:
            said.append(
                f"The model is badly damaged: only {now:.0%} of {what} still work, of {was:.0%} before. Lower the "
                "learning rate (--lr) or the epochs (--epochs), or raise the weight of what is retained (--alpha0)."
            )
    was = before.recall("utility")
    if was is not None and was < ENOUGH:
        said.append(
            f"Whether the model is damaged is not seen: it answered only {was:.0%} of the other questions before."
        )
    return said
