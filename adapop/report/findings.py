"""Sentences of a comparison: findings, and warnings against conclusions."""

from collections.abc import Sequence
from dataclasses import replace

from adapop.probes.intervals import Interval, apart
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.contestants import Contestant, but_for_seed
from adapop.report.figures import Outcome
from adapop.report.figures.outcomes import beats, clearly, compared_form, contests, no_contest, pareto_front
from adapop.report.figures.titles import NOTHING_FORGOTTEN
from adapop.report.table import percent, signed

# what is compared where there are rewordings, and where there are none
LEADS = {
    REWORDED: ("gap", "The gap, recall of popular minus rare facts in other words,"),
    DIRECT: ("lead of popular facts", "Recall of popular minus rare facts, asked as trained,"),
}


def in_range(cell: Interval, sign: str = "") -> str:
    """The range as text."""
    return f"{100 * cell.low:{sign}.0f} to {100 * cell.high:{sign}.0f}{'' if sign else ' %'}"


def warnings_of(compared: Sequence[Contestant]) -> list[str]:
    """Warnings against conclusions, a sentence each."""
    warnings = []
    configs = [one.records[0].config for one in compared]
    if len({one.sha256 for one in compared}) > 1:
        warnings.append("These runs did not work on the same facts, so their numbers do not compare.")
    scored = any(config.method == "adapop" and (config.beta is None or config.beta.b) for config in configs)
    if scored and not any(config.scores == "shuffled" for config in configs):
        warnings.append(
            "No run here had its scores shuffled. Without that control a difference is no evidence that popularity "
            "is what made it: python -m adapop run --preset shuffled"
        )
    held = sorted({config.alpha0 for config in configs})
    if scored and len(held) > 1:
        warnings.append(
            f"The weight of the retained facts is not the same (α₀ = {', '.join(f'{alpha:g}' for alpha in held)}): who "
            "holds them less firmly forgets more and keeps less. AdaPop with α₀ = 1 is the preset gentle."
        )
    if unmeasured := [one.mark for one in compared if not one.measured]:
        warnings.append(f"Not measured at their end, because they never came to it: {', '.join(unmeasured)}.")
    unprobed = [one.mark for one in compared if not any(record.matrix.cells for record in one.records)]
    if unprobed and len(unprobed) < len(compared):
        warnings.append(f"Not probed, so without attacks: {', '.join(unprobed)}.")
    return warnings


def findings_of(compared: Sequence[Contestant], outcomes: Sequence[Outcome]) -> list[str]:
    """Findings: gaps, controls, the Pareto front, collapsed runs."""
    placed, form = [one for one in compared if one.measured and not one.collapsed], compared_form(outcomes)
    if no_contest(outcomes):
        findings = [f"{NOTHING_FORGOTTEN}. Race again with more epochs or a higher learning rate."]
    else:
        findings = [*_leads(placed, form), *_control(placed, form), *_front(outcomes)]
    if collapsed := [f"{one.label} ({one.collapsed})" for one in compared if one.collapsed]:
        findings.append(f"Collapsed, and so out of the contest: {'; '.join(collapsed)}.")
    return findings


def _leads(placed: Sequence[Contestant], form: str) -> list[str]:
    leads = sorted(((one, lead) for one in placed if (lead := one.lead(form))), key=lambda pair: abs(pair[1].mean))
    if len(leads) < 2:
        return []
    (narrow, least), (wide, most) = leads[0], leads[-1]
    return [
        f"{LEADS[form][1]} is widest for "
        f"{_with_rest(wide, most, form)}, and narrowest for {_with_rest(narrow, least, form)}. It is narrow as well "
        "where nothing was forgotten, or all."
    ]


def _with_rest(one: Contestant, lead: Interval, form: str) -> str:
    """A contestant with the lead of its popular facts and its recall over all facts to forget."""
    rest = one.recall("forget", form, "all")
    return f"{one.label}, {signed(lead)}, which answers {percent(rest.mean)} of all"


def _control(placed: Sequence[Contestant], form: str) -> list[str]:
    """AdaPop against itself with wrong scores, a sentence each: the only evidence that popularity
    matters."""
    findings = []
    for one in placed:
        for other in placed:
            config, control = but_for_seed(one.records[0].config), but_for_seed(other.records[0].config)
            alike = replace(control, scores="given", preset=config.preset) == config
            if alike and config.scores == "given" and control.scores != "given":
                findings += _verdict(one, other, form)
    return findings


def _verdict(one: Contestant, other: Contestant, form: str) -> list[str]:
    """Whether wrong scores changed the gap: they did if neither the range over facts nor that over
    seeds overlaps."""
    lead, control = one.lead_over_facts(form), other.lead_over_facts(form)
    if lead is None or control is None:
        return []
    seeds = min(len(one.measured), len(other.measured))
    if not apart(lead, control):
        verdict = "The ranges overlap, so this is no evidence that the scores made a difference."
    elif seeds > 1 and not apart(one.lead(form), other.lead(form)):
        verdict = "Seed by seed the two overlap, though: this is no evidence that the scores made a difference."
    else:
        beyond = f"in each of {seeds} seeds" if seeds > 1 else "for this seed"
        verdict = f"The ranges do not overlap: the scores made a difference here, {beyond}."
    return [
        f"With its scores {other.records[0].config.scores}, the {LEADS[form][0]} of {one.label} is {signed(control)} "
        f"instead of {signed(lead)}, 95 % over facts. {verdict}"
    ]


def _front(outcomes: Sequence[Outcome]) -> list[str]:
    """Sentences on the Pareto front."""
    front = pareto_front(outcomes)
    if sum(map(contests, outcomes)) < 2:
        return []
    named = "; ".join(
        f"{one.label} ({percent(one.forget.mean)} left, {percent(one.holdout.mean)} kept)" for one in front
    )
    findings = [f"On the Pareto front, where nobody else forgets as much and keeps as much: {named}."]
    for one in outcomes:
        beaters = [other for other in front if contests(one) and beats(other, one)]
        if beaters:
            close = not any(clearly(one, by) for by in beaters)
            by = ", ".join(other.label for other in beaters)
            findings.append(f"Behind it: {one.label}, beaten by {by}{', but within the ranges' if close else ''}.")
    return findings
