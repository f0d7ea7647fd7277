"""Checks before a run starts: its problems, doubts and costs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain

from tokenizers import Tokenizer

from adapop.config.methods import METHODS
from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, ModelError, truncated
from adapop.facts.fact import GROUPS, FactSet
from adapop.facts.retain import fitted
from adapop.facts.text import normalized
from adapop.facts.weak import weak_answers
from adapop.facts.world import sandbox_facts
from adapop.model.catalogue import SANDBOX_MODEL, footprint, oracle_for, preset_of, shape_of
from adapop.model.converted import files_of, is_gguf
from adapop.paths import SHIPPED
from adapop.popularity.beta import SCORELESS
from adapop.popularity.calibration import auto_anchors, warnings_of
from adapop.probes.verdict import KNOWN_FROM
from adapop.remark import Remark, sentences
from adapop.runs.amount import total_steps
from adapop.runs.pace import Pace
from adapop.training.steps import spans

WEAK_NAMED = 5  # most weak answers named in a remark, which counts all

MEMORY, TERMS = ("memory_least", "memory_of_gpu"), ("licence", "oracle_beside")  # kinds of remarks
ROW_TOKENS = 128  # estimate for a question with chat template and system prompt
TEMPLATE_TOKENS = 2  # role tokens before question and answer: assets/sandbox/chat_template.jinja


@dataclass(frozen=True)
class Preflight:
    """The results of the checks before a run."""

    problems: tuple[str | Remark, ...] = ()
    """Reasons why the run cannot start."""
    doubts: tuple[Remark, ...] = ()
    """Doubts to know of, which do not prevent the run."""
    counts: Remark | None = None
    """How many facts and steps the run has; None if the settings are invalid."""
    costs: tuple[str | Remark, ...] = ()
    """What the run needs: memory, time, terms; a model's own note is a text."""

    @property
    def memory(self) -> list[Remark]:
        """The least memory, from the costs, if it can be estimated without the model."""
        return [cost for cost in self.costs if isinstance(cost, Remark) and cost.kind in MEMORY]

    @property
    def terms(self) -> list[str | Remark]:
        """Those of the costs that a user should read before the first use of a real model."""
        return [cost for cost in self.costs if isinstance(cost, str) or cost.kind in TERMS]

    @property
    def readiness(self) -> str:
        """ "invalid" or "ready"."""
        return "invalid" if self.problems else "ready"

    def check(self, reader: str = "page") -> None:
        """Raises AdaPopError: the first of the problems, in a reader's terms (`Remark.text`)."""
        for problem in sentences(self.problems, reader):
            raise AdaPopError(problem)


def preflight(facts: FactSet, config: RunConfig, pace: Pace | None = None) -> Preflight:
    """Checks a set and its settings without loading a model. pace: of the model's finished runs on
    this machine."""
    facts, given = fitted(facts, config.model), facts
    facts = without_unscored(facts) if config.missing_score == "drop" else facts
    lacking = lacks(facts)
    problems = [*([lacking] if lacking else []), *_of_file(config.model)]
    doubts = [*_of_overlap(facts), *_of_weak(facts), *_of_retain(facts, given)]
    if config.model in SHIPPED and config.start == "as-given":  # else it is taught them first
        doubts += _of_world(facts, config.model)
    doubts += [Remark("best_flatters")] if config.keep == "best" else []
    counts, costs = _counts(facts, config), []
    config = config if config.beta else replace(config, beta=auto_anchors(facts).beta)
    if follows_scores(config) and config.beta.b:
        stopping, doubtful = _of_scores(facts, config)
        problems, doubts = problems + stopping, doubts + doubtful
    if facts.forget and config.model in SHIPPED:
        longest = _longest(facts, config.model)
        costs.append(Remark("longest_row", {"tokens": longest}))
        if longest > SANDBOX_MODEL["max_position_embeddings"]:
            context = {"context": SANDBOX_MODEL["max_position_embeddings"]}
            problems += [Remark("too_long", {"tokens": longest} | context)]
        needs = footprint(SANDBOX_MODEL, config, longest).total
        costs += [_time(facts, config, pace), Remark("memory_more", {"bytes": needs})]
    elif facts.forget:
        costs += [memory_of(config), _time(facts, config, pace), *terms_of(config)]
    return Preflight(tuple(problems), tuple(doubts), counts, tuple(costs))


def memory_of(config: RunConfig) -> Remark:
    """The least memory that a run with a real model takes, without loading it."""
    from adapop.model.precision import has_gpu  # imports torch, which loading needs anyway

    shape = shape_of(config.model)
    if shape is None:
        return Remark("memory_unknown")
    least = {"bytes": footprint(shape, config, ROW_TOKENS, rows=1).total, "tokens": ROW_TOKENS}
    return Remark("memory_of_gpu" if has_gpu(config) else "memory_least", least)


def terms_of(config: RunConfig) -> list[str | Remark]:
    """Terms of a real model: its precision here, its licence, and other notes."""
    from adapop.model.precision import emulated_bfloat16

    model, remarks = preset_of(config.model), [*emulated_bfloat16(config)]
    if model and config.model == model.id and model.gated:
        remarks.append(Remark("licence", {"licence": model.licence, "page": model.page}))
    if oracle_for(config.model) and config.start == "as-given" and config.measure != "off":
        weights = footprint(model.shape, config, ROW_TOKENS, rows=1).weights
        values = {"model": model.oracle, "bytes": weights, "sets": " and ".join(model.never_read)}
        remarks += [Remark("oracle_beside", values)]
    return [*remarks, model.note] if model and model.note else remarks


def _counts(facts: FactSet, config: RunConfig) -> Remark:
    """How many facts and steps the run has, and facts per step where not every batch is full."""
    rows = len(facts.forget)
    values = {"facts": rows, "retain": len(facts.retain), "holdout": len(facts.holdout)}
    values |= {"steps": total_steps(rows, config) if rows else 0, "epochs": config.epochs}
    steps = spans(rows, config.batch, config.last_step, epoch=1) if rows else ()
    sizes = {stop - start for start, stop in steps}
    if sizes <= {config.batch}:
        return Remark("counts", values)
    return Remark("counts_uneven", values | {"sizes": " or ".join(map(str, sorted(sizes)))})


def without_unscored(facts: FactSet) -> FactSet:
    """The set without facts that have no score, as a run that drops them sees it."""
    return replace(facts, forget=tuple(fact for fact in facts.forget if fact.score is not None))


def without_unknown(facts: FactSet, recall: Mapping[str, float]) -> FactSet:
    """The set without the facts that the model did not answer; unchanged if it answered none.
    recall: fact id -> recall, [0, 1]; a fact that is absent counts as answered."""
    known = tuple(fact for fact in facts.forget if recall.get(fact.id, KNOWN_FROM) >= KNOWN_FROM)
    if not known or len(known) == len(facts.forget):
        return facts
    note = Remark("facts_left_out", {"facts": len(facts.forget) - len(known)})
    return replace(facts, forget=known, notes=(*facts.notes, note))


def lacks(facts: FactSet) -> Remark | None:
    """The required group (forget or retain) that the set lacks; None if it has both."""
    if facts.forget and facts.retain:
        return None
    return Remark("no_retain" if facts.forget else "no_forget")


def _of_retain(facts: FactSet, given: FactSet) -> list[Remark]:
    """A remark that the retain set is the included one about cities. given: the set before it was
    completed for the model."""
    if facts.retain == given.retain:
        return []
    return [Remark("cities_retained", {"retain": len(facts.retain), "holdout": len(facts.holdout)})]


def _of_file(model: str) -> list[str]:
    """How to install or download a model's GGUF file or the package with it, if missing."""
    try:
        if is_gguf(model):
            files_of(model)
    except ModelError as error:
        return [str(error)]
    return []


def _of_overlap(facts: FactSet) -> list[Remark]:
    """Remarks if questions are both to forget and to retain, or if no answer is."""
    forgotten = {normalized(fact.question) for fact in facts.forget}
    twice = [fact for fact in facts.retain if normalized(fact.question) in forgotten]
    remarks = [Remark("both_ways", {"questions": len(twice)})] if twice else []
    answers = {normalized(fact.answer) for fact in facts.forget}
    shared = answers & {normalized(fact.answer) for fact in facts.retain}
    if answers and not shared and facts.retain:
        remarks.append(Remark("answers_apart"))
    return remarks


@cache
def _read_by(model: str) -> frozenset[str]:
    """The questions of a shipped model's world."""
    world = sandbox_facts(model)
    groups = (getattr(world, group) for group in GROUPS)
    return frozenset(normalized(fact.question) for fact in chain.from_iterable(groups))


def read_none(model: str, facts: FactSet) -> bool:
    """Whether a shipped model has read none of the questions to forget."""
    return _read_by(model).isdisjoint(normalized(fact.question) for fact in facts.forget)


def _of_world(facts: FactSet, model: str) -> list[Remark]:
    """A remark that a shipped model has read none of these questions."""
    new = facts.forget and read_none(model, facts)
    return [Remark("not_its_world", {"questions": len(facts.forget)})] if new else []


def _of_weak(facts: FactSet) -> list[Remark]:
    """Remarks on answers to forget that a reply may contain by chance, with the reason."""
    weak = weak_answers(facts.forget)
    if not weak:
        return []
    named = "; ".join(f"{truncated(fact.answer)} ({kind})" for fact, kind in weak[:WEAK_NAMED])
    more = f"; and {len(weak) - WEAK_NAMED:,} more" if len(weak) > WEAK_NAMED else ""
    return [Remark("weak_answers", {"answers": len(weak), "named": named + more})]


def _of_scores(facts: FactSet, config: RunConfig) -> tuple[list[Remark], list[Remark]]:
    """(problems, doubts) about the scores under the beta map."""
    unknown = facts.unknown_scores
    if unknown and config.missing_score == "error":
        if len(unknown) == len(facts.forget):
            titles = " or ".join(METHODS[name].title for name in SCORELESS)
            return [Remark("no_scores", {"methods": titles})], []
        return [Remark("no_score", {"facts": len(unknown)})], []
    doubts = [Remark("no_score_uniform", {"facts": len(unknown)})] if unknown else []
    scores = [fact.score for fact in facts.forget if fact.score is not None]
    return [], doubts + warnings_of(scores, config.beta)


def _time(facts: FactSet, config: RunConfig, pace: Pace | None) -> Remark:
    if pace is None:
        return Remark("time_unknown")
    seconds = pace.seconds(config.epochs, total_steps(len(facts.forget), config) // config.epochs)
    return Remark("time_by_last_run", {"seconds": seconds + pace.teaching(config, facts)})


@cache
def _tokenizer(model: str) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(SHIPPED[model] / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # control tokens are read as letters
    return tokenizer


@lru_cache(maxsize=8)
def _longest(facts: FactSet, model: str) -> int:
    """Tokens of the longest question with its answer, in a shipped model's chat template."""
    members, encode = [*facts.forget, *facts.retain], _tokenizer(model).encode_batch
    questions = encode([fact.question for fact in members], add_special_tokens=False)
    answers = encode([fact.answer for fact in members], add_special_tokens=False)
    lengths = (len(one.ids) + len(other.ids) for one, other in zip(questions, answers))
    return TEMPLATE_TOKENS + max(lengths)
