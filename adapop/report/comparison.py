"""Compares several runs: differing settings, every metric, findings and warnings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from adapop.errors import RunError
from adapop.facts.fact import TIERS
from adapop.facts.formulas import write_csv
from adapop.probes.distance import STATES
from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.remark import Remark
from adapop.report import real
from adapop.report.contestants import (
    OVER_FACTS,
    OVER_SEEDS,
    Contestant,
    contestants,
    outcome_of,
    recall_of,
)
from adapop.report.distance import MEANING as MEANING_OF_STATES
from adapop.report.figures import Outcome
from adapop.report.figures.outcomes import ATTACKED, PANELS
from adapop.report.findings import findings_of, in_range, replies_table, warnings_of
from adapop.report.record import GROUP_NAMES, Record, name_of
from adapop.report.recorded import Recorded
from adapop.report.settings import differences
from adapop.report.table import Table, number, percent
from adapop.report.tables import DOWN, LEVEL, METRICS, UP

GUESSED = (
    "of how many facts the right answer is the model's first or second guess, which its "
    "reply does not show"
)
INTERNAL = ("delta_logprob", "delta_rank", "hidden_cosine", "kl")
RECALL, GAP, LEAD, TOP2 = "recall", "gap", "popular − rare", "first or second guess"
KEPT = {
    "retain": "trained to be kept (retained)",
    "holdout": "never trained on (held out)",
    "neighbours": "akin to what was forgotten (neighbours)",
    "utility": "no facts at all, such as sums (utility)",
}
BETTER = {DOWN: "lower", UP: "higher", LEVEL: "nearer to 0"}
MEANING = {metric.title: metric.meaning for metric in METRICS} | {TOP2: GUESSED} | MEANING_OF_STATES
FORGET, KEEP, INSIDE = (
    "To forget: lower is better",
    "To keep: higher is better",
    "Inside the models",
)


@dataclass(frozen=True)
class Line:
    """One metric of every contestant. arrow: which way is better. cells: None where not measured;
    notes: a word on each. counted: its range may be over facts."""

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
        """The table it belongs to."""
        if self.metric in (RECALL, GAP, LEAD):
            return FORGET if self.group == "forget" else KEEP
        return INSIDE

    @property
    def title(self) -> str:
        """The number's name in plain words; which way is better if its table does not say."""
        form = PANELS[self.form]
        if self.metric == RECALL:
            return f"{'still answered' if self.group == 'forget' else KEPT[self.group]}, {form}" + (
                f": {self.tier}" if self.group == "forget" else ""
            )
        if self.metric in (GAP, LEAD):
            named = "the gap, popular minus rare" if self.metric == GAP else "popular minus rare"
            return f"{named}, {form} (nearer to 0 is better)"
        where = (
            f"{form}: {self.tier}" if self.metric in (TOP2, *STATES) else GROUP_NAMES[self.group]
        )
        return f"{self.metric}, {where} ({BETTER[self.arrow]} is better)"


@dataclass(frozen=True)
class Comparison:
    """contestants: runs that differ in more than their seed. settings: in what they differ. lines:
    every metric. intervals: what the ranges are over, a sentence each. warnings: what not to
    conclude. findings: what came of it. outcomes: what is drawn, the original first. form_words: in
    which form forgetting is counted. replies: of every run to the same questions. models: by
    model."""

    contestants: tuple[Contestant, ...]
    settings: Table
    lines: tuple[Line, ...]
    intervals: tuple[str, ...]
    warnings: tuple[Remark, ...]
    findings: tuple[Remark, ...]
    outcomes: tuple[Outcome, ...]
    form_words: str
    replies: Table | None = None
    models: Table | None = None

    def heading(self, record: Record) -> str:
        """A run's heading: its contestant's number, its title, and its seed among several."""
        one = next(one for one in self.contestants if any(record is run for run in one.records))
        seed = f", seed {record.config.seed}" if len(one.records) > 1 else ""
        return f"{one.label}{seed}"

    @property
    def results(self) -> tuple[Table, ...]:
        """Every metric, a column per contestant: see `results_tables`."""
        return results_tables(self.lines, [one.name for one in self.contestants])


def comparison(records: Sequence[Record]) -> Comparison:
    """Compares runs, in the order given."""
    compared = contestants(records)
    reworded = [one.recall("forget", REWORDED, "all") for one in compared if one.measured]
    form = DIRECT if None in reworded else REWORDED
    outcomes = [one.outcome(form) for one in compared if one.measured]
    begun = [record.before for record in records if record.before is not None][:1]
    if begun and len({(one.sha256, one.records[0].config.model) for one in compared}) == 1:
        outcomes.insert(0, outcome_of("", "original", partial(recall_of, begun), form))
    return Comparison(
        tuple(compared),
        settings_of(compared),
        tuple(lines_of(compared)),
        tuple(_intervals(compared)),
        tuple(warnings_of(compared)),
        tuple(findings_of(compared, outcomes)),
        tuple(outcomes),
        PANELS[form],
        replies_table(compared),
        models_table(compared),
    )


def models_table(compared: Sequence[Contestant]) -> Table | None:
    """What is still answered by method and model; None where all ran on one model."""
    runs = [(one.records[0].title, name_of(one.records[0].config.model), one) for one in compared]
    if len({model for _, model, _ in runs}) < 2:
        return None
    places = [
        *(("forget", REWORDED, tier) for tier in TIERS),
        *((group, DIRECT, "all") for group in KEPT),
    ]
    rows = []
    for title, model, one in sorted(runs, key=lambda run: run[:2]):
        recalls = (one.recall(*place) for place in places)
        rows.append(
            (title, model, *(percent(recall and recall.mean) for recall in recalls), one.mark)
        )
    note = "Still answered: the facts to forget in other words, the others as trained."
    return real.models_table(rows, (*KEPT, "run"), note)


def results_tables(lines: Sequence[Line], names: Sequence[str]) -> tuple[Table, ...]:
    """Tables of metrics, a column per contestant: facts to forget, facts to keep, and metrics from
    inside the model with an explanation of each."""
    rows = {
        section: [line for line in lines if line.section == section]
        for section in (FORGET, KEEP, INSIDE)
    }
    metrics = dict.fromkeys(line.metric for line in rows[INSIDE])
    notes = {
        INSIDE: "\n".join(
            f"{name.capitalize() if name == TOP2 else name}: {MEANING[name]}." for name in metrics
        )
    }
    return tuple(
        Table(
            section,
            (section, *names),
            tuple((line.title, *_cells(line)) for line in own),
            notes.get(section, ""),
        )
        for section, own in rows.items()
    )


def settings_of(every: Sequence[Contestant]) -> Table:
    """The settings in which contestants differ, the facts included."""
    rows = [
        (name, *values)
        for name, values in differences([replace(one.records[0].config, seed=0) for one in every])
    ]
    for name, values in (
        ("seed", [", ".join(str(record.config.seed) for record in one.records) for one in every]),
        ("data (hash)", [one.sha256[:12] for one in every]),
    ):
        rows += [(name, *values)] if len(set(values)) > 1 else []
    return Table("Settings that differ", ("setting", *(one.name for one in every)), tuple(rows))


def write_table(results: Comparison, out: Path) -> Path:
    """Saves every number as CSV, a row per contestant and metric. Raises RunError: the file cannot
    be written."""
    rows = list(table_rows(results))
    try:
        with open(out, "w", encoding="utf-8", newline="") as file:
            write_csv(file, list(rows[0]) if rows else ["contestant"], rows)
    except OSError as error:
        raise RunError(
            f"{out} cannot be written ({error.strerror}).", "Choose another place."
        ) from None
    return out


def table_rows(results: Comparison) -> Iterator[dict[str, object]]:
    """Rows of that CSV."""
    for line in results.lines:
        for one, cell in zip(results.contestants, line.cells):
            if cell is not None:
                ranged = line.counted or one.over == "seeds"
                yield {
                    "contestant": one.mark,
                    "method": one.records[0].config.method,
                    "preset": one.records[0].config.preset,
                    "seeds": len(one.measured),
                    "group": line.group,
                    "form": line.form,
                    "tier": line.tier,
                    "metric": line.metric,
                    "better": BETTER[line.arrow],
                    "value": cell.mean,
                    "low": cell.low if ranged else None,
                    "high": cell.high if ranged else None,
                    "range_over": one.over if ranged else "",
                }


def lines_of(compared: Sequence[Contestant | Recorded]) -> Iterator[Line]:
    """Every metric that at least one contestant has."""
    return (line for line in _all_lines(compared) if any(line.cells))


def _all_lines(compared: Sequence[Contestant | Recorded]) -> Iterator[Line]:
    for group, form, arrow in (
        ("forget", DIRECT, DOWN),
        ("forget", REWORDED, DOWN),
        ("retain", DIRECT, UP),
        ("holdout", DIRECT, UP),
        ("holdout", REWORDED, UP),
        ("neighbours", DIRECT, UP),
        ("neighbours", REWORDED, UP),
        ("utility", DIRECT, UP),
    ):
        for tier in (*TIERS, "all") if group == "forget" else ("all",):
            yield Line(
                arrow,
                group,
                form,
                tier,
                RECALL,
                tuple(one.recall(group, form, tier) for one in compared),
            )
        if group == "forget":
            metric = GAP if form == REWORDED else LEAD
            yield Line(LEVEL, group, form, "", metric, tuple(one.lead(form) for one in compared))
    for tier in (*TIERS, "all"):
        worst = [one.worst_attack(tier) for one in compared]
        cells = tuple(one and one.recall for one in worst)
        yield Line(
            DOWN,
            "forget",
            ATTACKED,
            tier,
            RECALL,
            cells,
            tuple(one.kind if one else "" for one in worst),
        )
    for tier in (*TIERS, "all"):
        yield Line(
            DOWN, "forget", REWORDED, tier, TOP2, tuple(one.second_guess(tier) for one in compared)
        )
    for state, arrow in zip(STATES, (DOWN, UP, DOWN)):
        for tier in ("all", *TIERS):
            yield Line(
                arrow,
                "forget",
                REWORDED,
                tier,
                state,
                tuple(one.standing(state, tier) for one in compared),
            )
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
        if cell is not None:
            ranged = line.counted or cell.low < cell.high
            share = f"{100 * cell.mean:{signed}.0f}{' points' if signed else ' %'}"
            parts.append(share if line.counted else number(cell.mean))
            parts += [
                in_range(cell, signed)
                if line.counted
                else f"{number(cell.low)} to {number(cell.high)}"
            ] * ranged
        cells.append("\n".join([*parts, *([note] if note else [])]))
    return cells


def _intervals(compared: Sequence[Contestant]) -> list[str]:
    seeds = sorted({len(one.measured) for one in compared if one.over == "seeds"})
    notes = [OVER_FACTS] if any(one.over == "facts" for one in compared) else []
    return notes + [OVER_SEEDS.format(seeds=" or ".join(map(str, seeds)))] * bool(seeds)
