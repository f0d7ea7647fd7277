"""Compares several runs: differing settings, every metric and warnings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from adapop.errors import RunError, named_place
from adapop.facts.fact import TIERS, Fact
from adapop.facts.formulas import write_csv
from adapop.probes.distance import STATES
from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.probes.recall import KNOWN_FROM, best_recall
from adapop.remark import Remark
from adapop.report import real
from adapop.report.contestants import (
    Contestant,
    contestants,
    outcome_of,
    ranges_over,
    recall_of,
)
from adapop.report.distance import MEANING as MEANING_OF_STATES
from adapop.report.figures import Outcome
from adapop.report.figures.outcomes import ATTACKED, PANELS, no_contest
from adapop.report.paired import paired_table
from adapop.report.record import GROUP_NAMES, Record, name_of
from adapop.report.recorded import Recorded
from adapop.report.settings import differences
from adapop.report.table import Table, number, percent
from adapop.report.tables import DOWN, INTERNAL, LEVEL, METRICS, UP

REPLIES_NOTE = (
    "For each tier, the trained question on which the runs disagree most. These are examples, not "
    "evidence."
)

RECALL, GAP, LEAD, TOP2 = "recall", "gap", "popular − rare", "first or second guess"
KEPT = {
    "retain": "retain set (trained to be kept)",
    "holdout": "held-out facts (never trained on)",
    "neighbours": "about the same subjects (neighbours)",
    "utility": "other questions, such as sums (utility)",
}
BETTER = {DOWN: "lower", UP: "higher", LEVEL: "nearer to 0"}
MEANING = {metric.title: metric.meaning for metric in METRICS} | MEANING_OF_STATES
MEANING[TOP2] = (
    "share of facts whose right answer is the model's first or second guess, even if its reply "
    "does not say it"
)
FORGET, KEEP = "To forget: lower is better", "To keep: higher is better"
INSIDE = "Inside the models"


@dataclass(frozen=True)
class Line:
    """One metric of every contestant. arrow: which way is better. cells: one per contestant, None
    if not measured. notes: a short note per cell. counted: whether its ranges may be over facts."""

    arrow: str
    group: str
    form: str
    tier: str
    metric: str
    cells: tuple[Interval | None, ...]
    notes: tuple[str, ...] = ()
    counted: bool = True

    @property
    def section(self) -> str:
        if self.metric in (RECALL, GAP, LEAD):
            return FORGET if self.group == "forget" else KEEP
        return INSIDE

    @property
    def title(self) -> str:
        """The metric's name in plain words, with the better direction if its table lacks it."""
        form = PANELS[self.form]
        if self.metric == RECALL and self.group == "forget":
            return f"still answered, {form}: {self.tier}"
        if self.metric == RECALL:
            return f"{KEPT[self.group]}, {form}"
        if self.metric in (GAP, LEAD):
            named = "the gap, popular minus rare" if self.metric == GAP else "popular minus rare"
            return f"{named}, {form} (nearer to 0 is better)"
        by_tier = self.metric in (TOP2, *STATES)
        where = f"{form}: {self.tier}" if by_tier else GROUP_NAMES[self.group]
        return f"{self.metric}, {where} ({BETTER[self.arrow]} is better)"


@dataclass(frozen=True)
class Comparison:
    """contestants: runs grouped by all but their seed. settings: the settings in which they differ.
    lines: every metric. intervals: whether ranges are over facts or seeds. warnings: conclusions to
    avoid. outcomes: for the figures, the original first. form_words: the form in
    which forgetting is measured. replies, models: see `replies_table` and `models_table`."""

    contestants: tuple[Contestant, ...]
    settings: Table
    lines: tuple[Line, ...]
    intervals: tuple[str, ...]
    warnings: tuple[Remark, ...]
    outcomes: tuple[Outcome, ...]
    form_words: str
    replies: Table | None = None
    models: Table | None = None
    paired: Table | None = None
    """Differences tested on the same facts, see `report.paired`."""

    def heading(self, record: Record) -> str:
        """A run's heading: its contestant's number, its title, and its seed among several."""
        one = next(one for one in self.contestants if any(record is run for run in one.records))
        seed = f", seed {record.config.seed}" if len(one.records) > 1 else ""
        return f"{one.label}{seed}"

    @property
    def results(self) -> tuple[Table, ...]:
        return results_tables(self.lines, [one.name for one in self.contestants])


def comparison(records: Sequence[Record]) -> Comparison:
    compared = contestants(records)
    together = [one for one in compared if not one.apart] or compared
    reworded = [one.recall("forget", REWORDED, "all") for one in together if one.measured]
    form = DIRECT if None in reworded else REWORDED
    outcomes = [one.outcome(form) for one in compared if one.measured]
    begun = [before for one in together for run in one.records if (before := run.before)][:1]
    if begun and len({one.original for one in together}) == 1:
        outcomes.insert(0, outcome_of("", "original", partial(recall_of, begun), form))
    return Comparison(
        contestants=tuple(compared),
        settings=settings_of(compared),
        lines=tuple(lines_of(compared)),
        intervals=tuple(ranges_over(compared)),
        warnings=tuple(warnings_of(compared, outcomes)),
        outcomes=tuple(outcomes),
        form_words=PANELS[form],
        replies=replies_table(compared),
        models=models_table(compared),
        paired=paired_table([one.name for one in compared], [one.records for one in compared]),
    )


def models_table(compared: Sequence[Contestant]) -> Table | None:
    """Recall after unlearning by method and model; None if all runs are of one model."""
    runs = [(one.records[0].title, name_of(one.records[0].config.model), one) for one in compared]
    if len({model for _, model, _ in runs}) < 2:
        return None
    places = [("forget", REWORDED, tier) for tier in TIERS]
    places += [(group, DIRECT, "all") for group in KEPT]
    rows = []
    for title, model, one in sorted(runs, key=lambda run: run[:2]):
        recalls = (one.recall(*place) for place in places)
        shares = (percent(recall and recall.mean) for recall in recalls)
        rows.append((title, model, *shares, one.mark))
    note = "Still answered: the facts to forget in other words, the others as trained."
    return real.models_table(rows, (*KEPT, "run"), note)


def results_tables(lines: Sequence[Line], names: Sequence[str]) -> tuple[Table, ...]:
    """Tables of metrics, a column per contestant: facts to forget, facts to keep, and metrics from
    inside the model with an explanation of each."""
    tables = []
    for section in (FORGET, KEEP, INSIDE):
        own = [line for line in lines if line.section == section]
        metrics = dict.fromkeys(line.metric for line in own if section == INSIDE)
        words = {name: name.capitalize() if name == TOP2 else name for name in metrics}
        note = "\n".join(f"{words[name]}: {MEANING[name]}." for name in metrics)
        rows = tuple((line.title, *_cells(line)) for line in own)
        tables.append(Table(section, (section, *names), rows, note))
    return tuple(tables)


def settings_of(every: Sequence[Contestant]) -> Table:
    """The settings in which contestants differ, the facts included."""
    configs = [replace(one.records[0].config, seed=0) for one in every]
    rows = [(name, *values) for name, values in differences(configs)]
    for name, values in (
        ("seed", [", ".join(str(record.config.seed) for record in one.records) for one in every]),
        ("data (hash)", [one.sha256[:12] for one in every]),
        ("model (hash)", [getattr(one.records[0].weights, "sha256", "")[:12] for one in every]),
    ):
        rows += [(name, *values)] if len(set(values)) > 1 else []
    return Table("Settings that differ", ("setting", *(one.name for one in every)), tuple(rows))


def write_table(results: Comparison, out: Path) -> Path:
    """Saves every number as CSV, a row per contestant and metric. Raises RunError."""
    rows = list(table_rows(results))
    with named_place(out, RunError), open(out, "w", encoding="utf-8", newline="") as file:
        write_csv(file, list(rows[0]) if rows else ["contestant"], rows)
    return out


def table_rows(results: Comparison) -> Iterator[dict[str, object]]:
    for line in results.lines:
        for one, cell in zip(results.contestants, line.cells):
            if cell is not None:
                seeds = len(one.measured)
                if line.metric == TOP2:  # of those that were probed
                    seeds = sum(run.second_guess(line.tier) is not None for run in one.records)
                over = "seeds" if seeds > 1 and line.form != ATTACKED else "facts"
                ranged = line.counted or one.over == "seeds"
                yield {
                    "contestant": one.mark,
                    "method": one.records[0].config.method,
                    "preset": one.records[0].config.preset,
                    "seeds": seeds,
                    **{name: getattr(line, name) for name in ("group", "form", "tier", "metric")},
                    "better": BETTER[line.arrow],
                    "value": cell.mean,
                    "low": cell.low if ranged else None,
                    "high": cell.high if ranged else None,
                    "range_over": over * ranged,
                }


def lines_of(compared: Sequence[Contestant | Recorded]) -> Iterator[Line]:
    """Every metric that at least one contestant has."""
    return (line for line in _all_lines(compared) if any(line.cells))


def _all_lines(compared: Sequence[Contestant | Recorded]) -> Iterator[Line]:
    both, direct = (DIRECT, REWORDED), (DIRECT,)
    forms = {"forget": both, "retain": direct, "holdout": both, "neighbours": both}
    forms["utility"] = direct
    for group, form in ((group, form) for group, own in forms.items() for form in own):
        arrow = DOWN if group == "forget" else UP
        for tier in (*TIERS, "all") if group == "forget" else ("all",):
            cells = tuple(one.recall(group, form, tier) for one in compared)
            yield Line(arrow, group, form, tier, RECALL, cells)
        if group == "forget":
            metric = GAP if form == REWORDED else LEAD
            yield Line(LEVEL, group, form, "", metric, tuple(one.lead(form) for one in compared))
    for tier in (*TIERS, "all"):
        worst = [one.worst_attack(tier) for one in compared]
        cells = tuple(one and one.recall for one in worst)
        kinds = tuple(one.kind if one else "" for one in worst)
        yield Line(DOWN, "forget", ATTACKED, tier, RECALL, cells, kinds)
    for tier in (*TIERS, "all"):
        cells = tuple(one.second_guess(tier) for one in compared)
        yield Line(DOWN, "forget", REWORDED, tier, TOP2, cells)
    for state, arrow in zip(STATES, (DOWN, UP, DOWN)):
        for tier in ("all", *TIERS):
            cells = tuple(one.standing(state, tier) for one in compared)
            yield Line(arrow, "forget", REWORDED, tier, state, cells)
    for metric in METRICS:
        if metric.field in INTERNAL:
            for group, arrow in (("forget", metric.forget), ("holdout", metric.others)):
                cells = tuple(one.value(group, metric.field) for one in compared)
                yield Line(arrow, group, DIRECT, "all", metric.title, cells, counted=False)


def _cells(line: Line) -> list[str]:
    signed = "+" if line.metric in (GAP, LEAD) else ""
    cells = []
    for cell, note in zip(line.cells, line.notes or ("",) * len(line.cells)):
        parts = []
        if cell is not None and line.counted:
            # a gap's recalls stand above it: one decimal, so that a reader can subtract
            digits = 1 if line.section == FORGET else 0
            parts.append(f"{100 * cell.mean:{signed}.{digits}f}{' points' if signed else '%'}")
            span = f"{100 * cell.low:{signed}.0f} to {100 * cell.high:{signed}.0f}"
            parts.append(f"{span}{'' if signed else '%'}")
        elif cell is not None:
            parts.append(number(cell.mean))
            parts += [f"{number(cell.low)} to {number(cell.high)}"] * (cell.low < cell.high)
        cells.append("\n".join([*parts, *([note] if note else [])]))
    return cells


Replies = dict[str, tuple[str, str]]  # fact id -> replies of the original and the unlearned model


def warnings_of(compared: Sequence[Contestant], outcomes: Sequence[Outcome]) -> list[Remark]:
    """Remarks on conclusions that the comparison does not allow."""
    warnings = []
    configs = [one.records[0].config for one in compared]
    reasons = dict.fromkeys(one.apart for one in compared if one.apart)
    for reason in reasons:
        names = ", ".join(one.label for one in compared if one.apart == reason)
        warnings.append(Remark("apart", {"names": names, "reason": reason}))
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
    if no_contest(outcomes):
        warnings.append(Remark("no_contest"))
    if collapsed := [f"{one.label} ({one.collapsed})" for one in compared if one.collapsed]:
        warnings.append(Remark("collapsed", {"names": "; ".join(collapsed)}))
    return warnings


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
    return Table("One question of each tier, every run", head, tuple(rows), REPLIES_NOTE)


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
