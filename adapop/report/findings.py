"""Results of a comparison: findings, warnings, and every run's replies to the same questions."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from adapop.facts.fact import TIERS, Fact
from adapop.probes.intervals import Interval, apart
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.probes.recall import KNOWN_FROM, best_recall
from adapop.remark import Remark
from adapop.report.contestants import Contestant, but_for_seed
from adapop.report.figures import Outcome
from adapop.report.figures import outcomes as contest
from adapop.report.figures.captions import NOTHING_FORGOTTEN
from adapop.report.figures.outcomes import beats, clearly, contests, pareto_front
from adapop.report.record import Record
from adapop.report.table import Table, percent, reading, signed

# Names of the compared difference, with rewordings and without.
LEADS = {
    REWORDED: ("gap", "The gap, recall of popular minus rare facts in other words,"),
    DIRECT: ("lead of popular facts", "Recall of popular minus rare facts, asked as trained,"),
}
Replies = dict[str, tuple[str, str]]  # fact id -> replies of the original and the unlearned model


def range_text(cell: Interval, sign: str = "") -> str:
    return f"{100 * cell.low:{sign}.0f} to {100 * cell.high:{sign}.0f}{'' if sign else ' %'}"


def warnings_of(compared: Sequence[Contestant]) -> list[Remark]:
    """Remarks on conclusions that the comparison does not allow."""
    warnings = []
    configs = [one.records[0].config for one in compared]
    if apart := [f"{one.label} ({one.apart})" for one in compared if one.apart]:
        warnings.append(Remark("apart", {"names": "; ".join(apart)}))
    own = [config for config in configs if config.method == "adapop"]
    scored = any(config.beta is None or config.beta.b for config in own)
    if scored and not any(config.scores == "shuffled" for config in configs):
        warnings.append(Remark("no_control"))
    alphas = sorted({config.alpha0 for config in configs})
    if scored and len(alphas) > 1:
        listed = ", ".join(f"{alpha:g}" for alpha in alphas)
        warnings.append(Remark("unequal_weights", {"alphas": listed}))
    if unmeasured := [one.label for one in compared if not one.measured]:
        warnings.append(Remark("unmeasured", {"names": ", ".join(unmeasured)}))
    probed = [one.label for one in compared if any(record.matrix.cells for record in one.records)]
    unprobed = [one.label for one in compared if one.label not in probed]
    if unprobed and probed:
        warnings.append(Remark("unprobed", {"names": ", ".join(unprobed)}))
    return warnings


def findings_of(compared: Sequence[Contestant], outcomes: Sequence[Outcome]) -> list[Remark]:
    """Remarks on gaps, controls, the Pareto front and collapsed runs."""
    placed = [one for one in compared if one.measured and not (one.collapsed or one.apart)]
    form = contest.compared_form(outcomes)
    if contest.no_contest(outcomes):
        findings = [Remark("no_contest", {"title": NOTHING_FORGOTTEN})]
    else:
        findings = [*_leads(placed, form), *_control(placed, form), *_front(outcomes)]
    if collapsed := [f"{one.label} ({one.collapsed})" for one in compared if one.collapsed]:
        findings.append(Remark("collapsed", {"names": "; ".join(collapsed)}))
    return findings


def _leads(placed: Sequence[Contestant], form: str) -> list[Remark]:
    leads = [(one, lead) for one in placed if (lead := one.lead(form))]
    leads.sort(key=lambda pair: abs(pair[1].mean))
    if len(leads) < 2:
        return []
    (narrow, least), (wide, most) = leads[0], leads[-1]
    ends = {"wide": _with_rest(wide, most, form), "narrow": _with_rest(narrow, least, form)}
    return [Remark("leads", {"what": LEADS[form][1]} | ends)]


def _with_rest(one: Contestant, lead: Interval, form: str) -> str:
    """A contestant's label, its lead of popular facts, and its recall of all facts to forget, as
    text."""
    rest = one.recall("forget", form, "all")
    return f"{one.label}, {signed(lead)}, which answers {percent(rest.mean)} of all"


def _control(placed: Sequence[Contestant], form: str) -> list[Remark]:
    """Remarks on AdaPop against itself with wrong scores, the only evidence that popularity
    matters."""
    findings = []
    pairs = ((one, other) for one in placed for other in placed if one.original == other.original)
    for one, other in pairs:
        config, control = (but_for_seed(own.records[0].config) for own in (one, other))
        alike = replace(control, scores="given", preset=config.preset) == config
        if alike and config.scores == "given" and control.scores != "given":
            findings += _verdict(one, other, form)
    return findings


def _verdict(one: Contestant, other: Contestant, form: str) -> list[Remark]:
    """A remark on whether wrong scores changed the gap: whether ranges over facts, then over seeds,
    are apart."""
    lead, control = one.lead_over_facts(form), other.lead_over_facts(form)
    if lead is None or control is None:
        return []
    seeds = min(len(one.measured), len(other.measured))
    if not apart(lead, control):
        kind = "control_overlaps"
    elif seeds > 1 and not apart(one.lead(form), other.lead(form)):
        kind = "control_seeds_overlap"
    else:
        kind = "control_differs_in_seeds" if seeds > 1 else "control_differs"
    values = {"what": LEADS[form][0], "name": one.label, "seeds": seeds}
    values |= {"control": signed(control), "lead": signed(lead)}
    return [Remark(kind, values | {"scores": other.records[0].config.scores})]


def _front(outcomes: Sequence[Outcome]) -> list[Remark]:
    """Remarks on the outcomes on the Pareto front and those behind it."""
    front = pareto_front(outcomes)
    if sum(map(contests, outcomes)) < 2:
        return []
    shares = (f"{percent(one.forget.mean)} left, {percent(one.holdout.mean)} kept" for one in front)
    named = "; ".join(f"{one.label} ({share})" for one, share in zip(front, shares))
    findings = [Remark("front", {"names": named})]
    for one in outcomes:
        beaters = [other for other in front if contests(one) and beats(other, one)]
        if beaters:
            close = not any(clearly(one, by) for by in beaters)
            names = {"name": one.label, "by": ", ".join(other.label for other in beaters)}
            findings.append(Remark("behind_in_range" if close else "behind", names))
    return findings


def replies_table(compared: Sequence[Contestant]) -> Table | None:
    """The replies to one trained question of each tier, a row per contestant (its first seed). None
    if the runs have different facts or models, or no question that the original answers was asked
    in all of them."""
    if len({one.original for one in compared}) != 1:
        return None
    records = [one.records[0] for one in compared]
    replies_by_run = [_replies(record) for record in records]
    first = replies_by_run[0]
    shared = set.intersection(*map(set, replies_by_run))
    shared_facts = [fact for fact in records[0].facts.forget if fact.id in shared]
    known = [fact for fact in shared_facts if _right(fact, first[fact.id][0])]
    tiers = ([fact for fact in known if fact.tier == tier] for tier in TIERS)
    facts = [fact for tier in tiers if (fact := _disputed(tier, replies_by_run))]
    if not facts:
        return None
    rows = [
        ("right answer", *(fact.answer for fact in facts)),
        ("original", *(first[fact.id][0] for fact in facts)),
    ]
    for one, replies in zip(compared, replies_by_run):
        rows.append((one.label, *(replies[fact.id][1] for fact in facts)))
    head = ("", *(f"{fact.question} ({fact.tier})" for fact in facts))
    return Table("One question, every run", head, tuple(rows), reading("replies"))


def _replies(record: Record) -> Replies:
    """Replies to the facts to forget: from a run's first frame and that of its result, else from
    its probes."""
    before, *later = record.frames or [None]
    ends = [frame for frame in later if record.after and frame.epoch == record.after.epoch]
    if ends and before.answers and ends[0].answers:
        pairs = zip((fact.id for fact in record.facts.forget), zip(before.answers, ends[0].answers))
        return {name: pair for name, pair in pairs if None not in pair}
    rows = [row for row in record.rows if (row.group, row.kind) == ("forget", DIRECT)]
    return {row.fact_id: (row.original.text, row.unlearned.text) for row in rows}


def _disputed(facts: Sequence[Fact], replies_by_run: Sequence[Replies]) -> Fact | None:
    """The fact for which the share of runs that still answer it is closest to half (the first of
    equals); None without facts."""

    def from_half(fact: Fact) -> float:
        return abs(fmean(_right(fact, replies[fact.id][1]) for replies in replies_by_run) - 0.5)

    return min(facts, key=from_half, default=None)


def _right(fact: Fact, reply: str) -> bool:
    return best_recall(fact.answers, reply) >= KNOWN_FROM
