"""Sentences of a report: what was done and the outcome; example facts with prompts and replies."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from adapop.config.methods import method_named
from adapop.errors import number_of
from adapop.facts.fact import TIERS, Fact, FactSet
from adapop.paths import SHIPPED
from adapop.probes.prompts import CHOICE, DIRECT, ProbeRow, named
from adapop.probes.recovery.choice import RECOVERY
from adapop.probes.verdict import answered
from adapop.remark import Remark, sentences
from adapop.report.contestants import lead_of
from adapop.report.record import Record, described_run
from adapop.report.table import percent, ranged, signed, tenths
from adapop.runs.pace import worked_before
from adapop.runs.result import judged
from adapop.training.events import (
    EpochDone,
    Measured,
    RunDone,
    RunFailed,
    RunStarted,
    RunStopped,
    Taught,
)

KEPT = {
    "retain": "the retain set",
    "holdout": "held-out facts",
    "neighbours": "other facts about the same subjects",
    "utility": "other questions",
}
PER_TIER = 4
PROMPTS = 4


def about(record: Record) -> list[tuple[str, str]]:
    """What a report is about, as (name, text): the model, the set with its facts by tier, the
    method, when it ran, and the hash of the facts, which a redacted report leaves out."""
    facts, config, events = record.facts, record.config, record.events
    tiers = _in_tiers(facts)
    by_tier = ", ".join(f"{count:,} {tier}" for tier, count in tiers.items() if count)
    forget = f"{number_of(len(facts.forget), 'fact')} ({by_tier})"
    other_sets = f"{len(facts.retain):,} in the retain set, {len(facts.holdout):,} held out"
    lines = [
        ("Model", config.model),
        ("Forget set", f"{facts.name}: {forget}; {other_sets}"),
        ("Method", f"{described_run(record)} ({record.state})"),
    ]
    if times := [event.time for event in events[:1] + events[-1:] if event.time]:
        days = [datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M") for time in times]
        lines.append(("Date", f"{' to '.join(dict.fromkeys(days))} UTC"))
    return lines if record.redacted else [*lines, ("SHA-256 of the facts", facts.sha256)]


def done(record: Record) -> list[str]:
    """Sentences on the run's aim, what it did, and how it ended."""
    config, facts, method = record.config, record.facts, method_named(record.config.method)
    model = f"the {config.model} model" if config.model in SHIPPED else config.model
    if config.unlearned:
        return [
            f"{config.unlearned} was unlearned elsewhere and opened beside its original, "
            f"{model}. Both were asked {number_of(len(facts.forget), 'fact')} to forget of the set "
            f"“{facts.name}”, {len(facts.retain):,} to retain and {len(facts.holdout):,} more. "
            "Nothing was trained here, and what the model was trained on is not known.",
            _end(record),
        ]
    return [
        f"{record.title} was to make {model} forget {number_of(len(facts.forget), 'fact')} of the "
        f"set “{facts.name}” and keep {len(facts.retain):,}; {len(facts.holdout):,} more were held "
        "out of training, to see what happens to the rest.",
        f"What {method.title} does: {method.about}",
        *_exponents(record),
        *_training(record),
        _end(record),
    ]


def outcome_lines(record: Record) -> list[str]:
    """Sentences on recall before and after, costs, and the run's notes."""
    before, after = record.before, record.after
    if before is None or after is None:
        return _progress(record)
    lines = [
        f"Asked as trained, it answered {percent(before.recall('forget'))} of the facts to forget "
        f"before and {percent(after.recall('forget'))} after{_by_tier(after, 'direct')}."
    ]
    reworded = after.recall("forget", "reworded")
    if reworded is None and (trained := lead_of([after], DIRECT)):
        lines[0] += f" The gap as trained: {signed(trained, named=True)}."
    if reworded is not None:
        gap = f" The gap: {signed(after.gap, named=True)}." if after.gap else ""
        tiers = _by_tier(after, "reworded")
        was = percent(before.recall("forget", "reworded"))
        lines.append(
            f"Asked in other words, it answered {was} before and {percent(reworded)} "
            f"after{tiers}.{gap}"
        )
    lines += _attacked(record)
    costs = [
        f"{name} from {percent(old)} to {percent(new)}"
        for group, name in KEPT.items()
        if (old := before.recall(group)) is not None and (new := after.recall(group)) is not None
    ]
    lines += [f"What it cost, asked as trained: {', '.join(costs)}."] if costs else []
    ends = record.of_kind(RunDone)[-1:]
    # The outcome is stated above; its words change with versions.
    outcome = getattr(still_answered(record), "kind", None)
    notes = [note for event in ends for note in event.notes if getattr(note, "kind", "") != outcome]
    return lines + sentences(notes)


def still_answered(record: Record) -> Remark | None:
    """In which ways of asking a run did not unlearn; None if it did, or was not measured."""
    config, epochs = record.config, record.of_kind(EpochDone)
    result = judged(record.before, record.after, config, len(record.facts.forget), epochs)
    return result.remark if result and not result.unlearned else None


def how_to_recover(record: Record) -> str | None:
    """The command for the recovery probes not yet run, else None. It omits the run's id, which
    gives control."""
    missing = [name for name in RECOVERY if name not in record.recovery]
    names = ",".join(missing) if record.recovery else "all"
    return f"python -m adapop probe RUN --recovery {names}" if missing else None


def popularity(facts: FactSet) -> str:
    """A sentence on the source of scores, facts per tier, and unknown scores."""
    scored = [fact for fact in facts.forget if fact.score is not None]
    if not scored:
        return "None of the facts to forget has a popularity score."
    sources = sorted({fact.score_source for fact in scored} - {""})
    tiers = _in_tiers(facts)
    counted = ", ".join(f"{count:,} {facts.tiers.label(tier)}" for tier, count in tiers.items())
    source = f" Score: {'; '.join(sources)}." if sources else ""
    return f"Of the facts to forget, by score: {counted} (no score).{source}"


def _in_tiers(facts: FactSet) -> dict[str, int]:
    """Tier, "unknown" last -> the number of facts to forget in it."""
    return {tier: sum(fact.tier == tier for fact in facts.forget) for tier in (*TIERS, "unknown")}


def _exponents(record: Record) -> list[str]:
    config, betas = record.config, record.betas
    if not betas:
        return []
    values = betas.values()
    if max(values) == min(values):
        return [f"Every fact had the exponent β = {min(values):.3g}, whatever its score."]
    beta = config.beta
    lines = [
        f"β = {beta.a:g}·score^−{beta.b:g}, between {beta.low:g} and {beta.high:g}, gave exponents "
        f"from {min(values):.2f} to {max(values):.2f}."
    ]
    if config.scores != "given":
        lines.append(f"The scores were {config.scores} first, as a control.")
    unknown = len(record.facts.unknown_scores)
    return lines + ([f"Facts without a score ({unknown:,}) had β = 1."] if unknown else [])


def _training(record: Record) -> list[str]:
    config, epochs, starts = record.config, record.of_kind(EpochDone), record.of_kind(RunStarted)
    if not starts:
        return []
    lines = [
        f"Planned: {number_of(config.epochs, 'epoch')} of "
        f"{number_of(starts[-1].steps, 'step')} ({config.batch} facts of the forget set per step) "
        f"at learning rate {config.learning_rate:g}, seed {config.seed}."
    ]
    if config.controller == "fixed":
        return [*lines, f"The retain weight was fixed at α = {config.alpha0:g}."]
    if epochs and config.controller == "primal":
        lines.append(
            f"The weight μ of the retain set ended at {epochs[-1].alpha:.3f} (its loss was "
            f"to stay within {config.retain_bound:g} nats)."
        )
    elif epochs:
        most = max(row.lam for row in epochs)
        lines.append(
            f"The controller raised λ to at most {most:.3f} (the tolerance for drift was "
            f"{config.tolerance:g}); the retain weight α ended at {epochs[-1].alpha:.3f}."
        )
    return lines


def _teaching(record: Record) -> str:
    """How long the model was taught before the run's own time; "" for a run that taught nothing."""
    notes = (note for event in record.of_kind(Taught) for note in event.notes)
    own = (note for note in notes if isinstance(note, Remark) and note.kind == "fine_tuned")
    times = (f", and {note.values['time']:.0f} s before that to teach the model" for note in own)
    return next(times, "")


def _end(record: Record) -> str:
    if not record.events:
        return "It has not begun."
    last = record.events[-1]
    start = datetime.fromtimestamp(record.events[0].time, UTC)
    began = f" It began on {start:%Y-%m-%d %H:%M UTC}."
    if isinstance(last, RunDone):
        seconds = worked_before(record.events) + last.seconds
        return f"It took {seconds:.1f} s{_teaching(record)}.{began}"
    if isinstance(last, RunStopped):
        why = " when its time on the accelerator was used up" if last.out_of_time else ""
        return f"It was stopped{why}; epoch {last.epoch} is the last that was finished.{began}"
    ending = f"{record.trained} is the last that was finished.{began}"
    if isinstance(last, RunFailed):
        return f"It failed: {last.message} {last.fix} Epoch {ending}"
    return f"It has not finished; epoch {ending}"


def _progress(record: Record) -> list[str]:
    """Sentences on the last epoch's quick measurement, for a run without a final measurement."""
    sentence = "There is no final measurement: it is made at the end of a run."
    quick = [event for event in record.of_kind(Measured) if not event.full]
    if not quick:
        return [sentence]
    last = quick[-1]
    answered = f"{percent(last.recall('forget'))} of the facts to forget{_by_tier(last, 'direct')}"
    return [sentence, f"After epoch {last.epoch}, it answered {answered}."]


def _by_tier(measured: Measured, form: str) -> str:
    rare, popular = (measured.recall("forget", form, tier) for tier in ("rare", "popular"))
    if rare is None or popular is None:
        return ""
    return f" (rare {tenths(rare)}, popular {tenths(popular)})"


def _attacked(record: Record) -> list[str]:
    worst = record.worst_attack("all")
    if worst is None:
        return []
    recall, facts = ranged(worst.unlearned.recall), number_of(worst.facts, "fact")
    return [f"Of the attacks, “{named(worst.kind)}” brings back most: {recall} over {facts}."]


@dataclass(frozen=True)
class Example:
    """A fact with some prompts: the trained question, then other forms, if possible those that
    leak.

    answerable: how many prompts the original answers. leaks: how many of these bring the answer
    back. Multiple choices are not counted. hidden: how many prompts are not shown."""

    fact: Fact
    verdict: str
    beta: float | None
    leaks: int
    answerable: int
    prompts: tuple[ProbeRow, ...]
    hidden: int


def examples(record: Record) -> list[Example]:
    """Four rare and four popular facts to forget, worst leaks first; else eight of any tier. None
    of a redacted record, which has no replies."""
    if record.redacted:
        return []
    rows: dict[str, list[ProbeRow]] = defaultdict(list)
    for row in record.rows:
        if row.group == "forget":
            rows[row.fact_id].append(row)
    every = [_example(record, fact, rows[fact.id]) for fact in record.facts.forget if rows[fact.id]]
    every.sort(key=lambda one: (-one.leaks / max(1, one.answerable), -one.leaks, one.fact.id))
    tiers = [[one for one in every if one.fact.tier == tier] for tier in ("rare", "popular")]
    chosen = [one for tier in tiers for one in tier[:PER_TIER]]
    return sorted(chosen or every[: 2 * PER_TIER], key=every.index)


def leaks(row: ProbeRow) -> bool:
    """Whether the unlearned model still gives an answer that the original gives."""
    return answered(row, row.original) and answered(row, row.unlearned)


def _example(record: Record, fact: Fact, rows: Sequence[ProbeRow]) -> Example:
    # One prompt of each form, a leaking one if there is one.
    first = {row.kind: row for row in sorted(rows, key=leaks)}

    def order(row: ProbeRow) -> tuple[bool, ...]:
        kind = row.kind
        return kind != DIRECT, row is not first[kind], not leaks(row), kind == CHOICE

    prompts = sorted(rows, key=order)
    fair = [row for row in rows if row.kind != CHOICE and answered(row, row.original)]
    return Example(
        fact=fact,
        verdict=record.verdicts[fact.id],
        beta=(record.betas or {}).get(fact.id),
        leaks=sum(map(leaks, fair)),
        answerable=len(fair),
        prompts=tuple(prompts[:PROMPTS]),
        hidden=len(rows[PROMPTS:]),
    )
