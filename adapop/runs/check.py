"""Checks before a run: the model's recall of the facts, the forms of questions in which forgetting
would show, the exponents, and the run's duration, from a timed step and timed answers."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

import torch

from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError
from adapop.facts.fact import FACT_GROUPS, GROUPS, TIERS, Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.objectives import make_objective
from adapop.popularity.calibration import ChosenAnchors, auto_anchors, meaning_of
from adapop.probes import measure
from adapop.probes.judge import known_recall
from adapop.probes.matrix import FEWEST, MEASURABLE
from adapop.probes.plan import Plan, Question, evenly, questions
from adapop.probes.prompting import Prompting, remarks_of
from adapop.probes.prompts import CHOICE, DIRECT, KINDS, Prompt
from adapop.probes.verdict import KNOWN_FROM
from adapop.probes.ways import CHAT, LEAST_TOKENS, examples_of, longest_answer
from adapop.progress import Progress
from adapop.remark import Remark, sentences
from adapop.runs.amount import few_facts, few_steps, questions_taught, total_steps
from adapop.runs.execute import settled
from adapop.runs.finetuning import check_teachable, count_asked
from adapop.runs.known import settle
from adapop.runs.pace import Pace
from adapop.runs.preflight import Preflight, preflight
from adapop.training.events import StepDone
from adapop.training.trainer import Trainer

# Per tier, asked as trained; so few that it takes seconds. Facts without scores have no tiers.
FACTS_ASKED = {"cuda": 64, "cpu": 16}
FORM_FACTS = {"cuda": 16, "cpu": 4}  # per tier, asked in each other form
DEVICES = {"cuda": "GPU", "cpu": "CPU"}
TIMED = 2  # steps; the first includes one-off work
TOO_FEW = 0.1  # least share of facts that the model must know: with fewer, forgetting hardly shows


@dataclass(frozen=True)
class KnownRow:
    """The original model's recall of a tier's facts, asked in one form."""

    form: str
    """The form of the question, one of `prompts.KINDS`."""
    tier: str
    """A tier of scores, "unknown" for facts without one, or "all" for all of them."""
    asked: int
    """How many facts were asked, at least 1."""
    recall: float
    """Mean recall, [0, 1]."""
    answered: int
    """How many of the asked facts are answered."""


@dataclass(frozen=True)
class Check:
    """The results of a check before a run."""

    config: RunConfig
    """The configuration that the run would use."""
    facts: FactSet
    """The facts that the run would use."""
    preflight: Preflight
    """The results of the checks that need no model."""
    known: tuple[KnownRow, ...]
    """A row for each form and tier."""
    recall: Mapping[str, float]
    """Fact id -> recall, [0, 1], for the facts that were asked as trained."""
    impossible: Mapping[str, str]
    """Form -> why no fact can be asked in it."""
    betas: Mapping[str, float] | None
    """Fact id -> exponent; None for a method that follows no scores."""
    pace: Pace | None
    """Measured here; None where a step fails."""
    device: str
    """The kind of device it was measured on, as torch names it: cpu or cuda."""
    prompting: Prompting | None = None
    """How the model would be asked; None for a shipped model, which is asked as it is."""
    peak: int | None = None
    """Bytes of the GPU's memory that the timed step took; None without a GPU."""
    waste: tuple[Remark, ...] = field(default=())
    """Reasons why the run would be useless."""
    asking: float = 0.0
    """Seconds of the questions before and after the teaching of start "sft"; else 0."""
    anchors: ChosenAnchors | None = None
    """Chosen for the set; None where the settings name them, or the method follows no scores."""
    notes: tuple[Remark, ...] = field(default=())
    """Notes on the model's precision, licence and terms."""

    @property
    def teaching(self) -> float | None:
        """Expected duration of start "sft", before the first epoch; 0 for a run that starts as
        given, None if a step fails."""
        return self.pace and self.pace.teaching(self.config, self.facts) + self.asking

    @property
    def seconds(self) -> float | None:
        """Expected duration of the run, without loading; None if a step fails."""
        steps = total_steps(len(self.facts.forget), self.config) // self.config.epochs
        return self.pace and self.pace.seconds(self.config.epochs, steps) + self.teaching

    @property
    def lines(self) -> list[str]:
        """All results in sentences for a program's author; those that prevent the run come last."""
        return self.lines_for("program")

    def lines_for(self, reader: str) -> list[str]:
        """All results in sentences for another reader, see `Remark.text`."""
        return sentences(self.remarks, reader)

    @property
    def remarks(self) -> list[str | Remark]:
        """All results as remarks; those that prevent the run come last."""
        config, lines = self.config, [self.preflight.counts]
        lines += [Remark("rate_and_batch", {"rate": config.learning_rate, "batch": config.batch})]
        lines += [*remarks_of(self.prompting), self._known(), *self._few_facts()]
        if config.start == "as-given":  # else what it answers now says nothing of the run
            lines += self._forms()
        lines += self._pressure()
        if self.peak is not None:
            lines.append(Remark("memory_of_step", {"bytes": self.peak}))
        else:
            lines += self.preflight.memory
        if self.pace:
            values = {"seconds": self.seconds, "device": DEVICES.get(self.device, self.device)}
            lines += [Remark("time_by_trial", values | asdict(self.pace))]
            if self.teaching:
                lines += [Remark("time_of_teaching", {"seconds": self.teaching})]
        return [*lines, *self.notes, *self.preflight.doubts, *self.preflight.problems, *self.waste]

    def as_json(self) -> dict[str, Any]:
        """All results as plain data. notes: of the set. dropped: rows that are not used."""
        return {
            **{group: len(getattr(self.facts, group)) for group in FACT_GROUPS},
            "notes": sentences(self.facts.notes, "program"),
            "dropped": [str(problem) for problem in self.facts.problems],
            "known": [asdict(row) for row in self.known],
            "recall": dict(self.recall),
            "prompting": self.prompting and asdict(self.prompting),
            "impossible": dict(self.impossible),
            "tiers": {**asdict(self.facts.tiers), "note": str(self.facts.tiers.note)},
            "anchors": self.anchors and asdict(self.anchors),
            "betas": self.betas and dict(self.betas),
            "pace": self.pace and asdict(self.pace),
            "seconds": self.seconds,
            "device": self.device,
            "gpu_bytes": self.peak,
            "problems": sentences((*self.preflight.problems, *self.waste), "program"),
            "doubts": sentences(self.preflight.doubts, "program"),
            "lines": self.lines,
        }

    def _known(self) -> Remark:
        if self.config.start == "sft":
            values = {"facts": len(self.recall), "epochs": self.config.start_epochs}
            values |= {"questions": len(questions_taught(self.facts))}
            return Remark("taught_first", values | {"answered": self._answered})
        own = [row for row in self.known if row.form == DIRECT and row.tier != "all"]
        label = self.facts.tiers.label
        tiers = ", ".join(f"{label(row.tier)} {row.recall:.2f}" for row in own)
        values = {"answered": self._answered, "facts": len(self.recall), "recalls": tiers}
        return Remark("answered_now", values)

    def _few_facts(self) -> list[Remark]:
        rows = len(self.facts.forget)
        if self.config.start == "sft":  # what it knows now says nothing of the run
            return few_facts(rows)
        known, asked = _known_of_asked(self.recall, self.prompting)
        return few_facts(rows, known if self.prompting else rows * known / asked)

    @property
    def _answered(self) -> int:
        return sum(value >= KNOWN_FROM for value in self.recall.values())

    def _forms(self) -> list[Remark]:
        rows, facts = [row for row in self.known if row.tier == "all"], len(self.facts.forget)
        low = [row for row in rows if row.recall < MEASURABLE]
        # A right choice may be a guess. And where fewer facts could be asked, the rest may be
        # answered.
        answered = [row for row in low if row.form != CHOICE and row.answered]
        part = [row for row in answered if row.answered >= FEWEST or row.asked < facts]
        forms = {
            "forms_measurable": [row.form for row in rows if row not in low],
            "forms_in_part": [f"{row.form} ({row.answered} of {row.asked})" for row in part],
            "forms_too_low": [f"{row.form} {row.recall:.2f}" for row in low if row not in part],
            "forms_impossible": [f"{name} ({why})" for name, why in self.impossible.items()],
        }
        joined = {kind: ", ".join(names) for kind, names in forms.items() if names}
        return [Remark(kind, {"forms": text, "least": MEASURABLE}) for kind, text in joined.items()]

    def _pressure(self) -> list[Remark]:
        known = [fact for fact in self.facts.forget if fact.score is not None]
        if self.betas is None or not known:
            return []
        scored = sorted((fact.score, self.betas[fact.id]) for fact in known)
        chosen = [self.anchors.remark] if self.anchors else []
        return [*chosen, meaning_of(scored[0][1], scored[-1][1], [*self.betas.values()])]


def check(
    config: RunConfig,
    facts: FactSet,
    model: AdaptedModel | None = None,
    progress: Progress | None = None,
) -> Check:
    """Checks the facts, settings and model that a run would use. The adapter is restored.

    model: with a fresh adapter; loaded by default. Raises DataError, ConfigError: as
    `runs.execute.prepare`. ModelError: as `model.loading.adapted_model`. Stopped."""
    progress = progress or Progress()
    auto = config.beta is None and follows_scores(config)
    config, facts, betas = settled(config, facts)
    anchors = auto_anchors(facts) if auto else None  # as the run's, before unknown facts go
    progress.say("Loading the model")
    model = model or adapted_model(config)
    device, tokens = model.device.type, config.max_new_tokens
    prompting, taught = None, config.start == "sft"
    if taught:  # how it is best asked, and what it knows, is found once it was taught
        check_teachable(model)
        model.ask(CHAT, examples_of(model.tokenizer, facts))
        tokens = min(tokens, max(LEAST_TOKENS, longest_answer(model, facts)))
    elif prompting := settle(model, facts, config, progress):
        facts, tokens = prompting.facts_of(facts), prompting.reply_tokens
    plan = preflight(facts, config)
    if anchors:  # they fit the whole set, of which these facts are a part
        doubts = (one for one in plan.doubts if one.kind != "other_scale")
        plan = replace(plan, doubts=tuple(doubts))
    with model.original():
        scored = any(fact.score is not None for fact in facts.forget)
        few = FACTS_ASKED.get(device, FACTS_ASKED["cuda"]) * (1 if scored else len(TIERS))
        sample = evenly(facts.forget, few)
        recalls, per_answer = _asked_as_trained(model, sample, tokens, progress)
        forms, impossible = {}, {}
        if not taught:
            forms, impossible = _other_forms(model, facts, tokens, progress)
    progress.say("Timing a step")
    pace, peak, failed = None, None, []
    try:
        pace, peak = _measured_pace(model, config, facts, betas, per_answer)
    except AdaPopError as error:
        failed = [Remark("step_fails", {"error": str(error)})]
    rows = {DIRECT: [(fact, recalls[fact.id]) for fact in sample], **forms}
    return Check(
        config=config,
        facts=facts,
        preflight=plan,
        known=tuple(row for form, pairs in rows.items() for row in _by_tier(form, pairs)),
        recall=recalls,
        impossible=impossible,
        betas=betas,
        pace=pace,
        device=device,
        prompting=prompting,
        peak=peak,
        waste=(*failed, *_waste(config, facts, recalls, prompting)),
        asking=2 * per_answer * count_asked(facts) if taught else 0.0,
        anchors=anchors,
        notes=model.notes,
    )


def _asked_as_trained(
    model: AdaptedModel, sample: Sequence[Fact], tokens: int, progress: Progress
) -> tuple[dict[str, float], float]:
    """Fact id -> recall, [0, 1]; and the seconds of an answer."""
    cache, model.reply_cache = model.reply_cache, None  # cached replies take no time
    try:
        # a warm-up: the first pass, and the first wrong reply that begins like the answer, which
        # loads a stemmer
        measure.recall_by_fact(model, sample[:1], tokens, progress, _judged_wrong)
        began = time.monotonic()
        recalls = measure.recall_by_fact(model, sample, tokens, progress, known_recall)
        return recalls, (time.monotonic() - began) / len(recalls)
    finally:
        model.reply_cache = cache


def _judged_wrong(ask: Prompt, reply: str) -> float:
    return known_recall(ask, f"{ask.gold[:1]}x")


def _measured_pace(
    model: AdaptedModel,
    config: RunConfig,
    facts: FactSet,
    betas: Mapping[str, float] | None,
    answered: float,
) -> tuple[Pace, int | None]:
    """The pace of a run by timed steps of its own, and the peak of the GPU's memory. answered:
    seconds per answer. The adapter is restored."""
    state = {name: value.clone() for name, value in model.adapter_state().items()}
    rows = TIMED * config.batch
    forget, retain = facts.forget[:rows], facts.retain[:rows]
    # Placeholders: a run would first choose wrong answers.
    if "alternates" in make_objective(config.method, config.arguments).needs:
        other = ("another answer",)
        forget = [replace(fact, alternates=fact.alternates or other) for fact in forget]
    exponents = betas and [betas[fact.id] for fact in forget]
    on_gpu = model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(model.device)
    try:
        with torch.random.fork_rng(devices=model.gpus):
            trainer = Trainer("check", replace(config, frames=0), model, forget, retain, exponents)
            began, seconds = time.monotonic(), []
            events = trainer.train()
            next(events)
            last = time.monotonic()
            read = (last - began) / len(retain)
            for event in events:
                if isinstance(event, StepDone):
                    seconds.append(time.monotonic() - last)
                if len(seconds) == TIMED:
                    break
                last = time.monotonic()
    finally:
        model.set_adapter_state(state)
        for parameter in model.parameters:
            parameter.grad = None
    whole = measure.thinned(facts, config.measure_per_tier)
    epoch = read * len(facts.retain)
    if config.measure == "every-epoch":
        epoch += answered * measure.questions_of(whole, whole=False, retained=config.keep == "best")
    # For each model's table, every fact is scored twice.
    compared = sum(len(getattr(whole, group)) for group in GROUPS)
    questions = measure.questions_of(whole, whole=True, ways=len(model.ways))
    end = (2 * answered * questions + 4 * read * compared) * (config.measure != "off")
    peak = torch.cuda.max_memory_allocated(model.device) if on_gpu else None
    return Pace(seconds[-1], epoch, end), peak


def _other_forms(
    model: AdaptedModel, facts: FactSet, tokens: int, progress: Progress
) -> tuple[dict[str, list[tuple[Fact, float]]], dict[str, str]]:
    """Form -> facts with the recall of their prompts; form -> why no fact can be asked in it."""
    few = FORM_FACTS.get(model.device.type, FORM_FACTS["cuda"])
    plan = Plan(KINDS[1:], ("forget",), few, max_new_tokens=tokens)
    pairs, impossible = {}, {}
    for kind, results in questions(facts, plan).items():
        prompts = [one for one in results if isinstance(one, Question)]
        if prompts:
            progress.say(f"Asking in other forms: {kind}")
            replies = zip(prompts, model.generate([one.prompt.text for one in prompts], tokens))
            pairs[kind] = [(one.fact, known_recall(one.prompt, text)) for one, text in replies]
        elif results:
            impossible[kind] = results[0].reason
    return pairs, impossible


def _by_tier(form: str, pairs: Sequence[tuple[Fact, float]]) -> list[KnownRow]:
    rows = []
    for tier in ("all", *TIERS, "unknown"):
        values = [value for fact, value in pairs if tier in ("all", fact.tier)]
        answered = sum(value >= KNOWN_FROM for value in values)
        rows += [KnownRow(form, tier, len(values), fmean(values), answered)] if values else []
    return rows


def _known_of_asked(recall: Mapping[str, float], prompting: Prompting | None) -> tuple[int, int]:
    """How many facts to forget the model knows, and of how many it was asked: all, if it was asked
    how it is best asked, else some. recall: see `Check`."""
    if prompting:
        return prompting.asked - len(prompting.unknown), prompting.asked
    return sum(value >= KNOWN_FROM for value in recall.values()), len(recall)


def _waste(
    config: RunConfig, facts: FactSet, recall: Mapping[str, float], prompting: Prompting | None
) -> list[Remark]:
    answered, count = _known_of_asked(recall, prompting)
    remarks = few_steps(len(facts.forget), config, refused_only=True)
    if answered < TOO_FEW * count and config.start == "as-given":
        remarks = [Remark("unknown_beforehand", {"answered": answered, "facts": count}), *remarks]
    return remarks
