"""All probes at once: every fact in every form to both models, where it leaks, and verdicts."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import gradio as gr
import pandas as pd

from adapop.errors import Stopped, number_of
from adapop.facts.fact import FACT_GROUPS
from adapop.probes.matrix import Cell, LeakMatrix, leak_matrix
from adapop.probes.plan import Plan
from adapop.probes.prompts import (
    DIRECT,
    EVERY_KIND,
    KINDS,
    REWORDED,
    NotApplicable,
    ProbeRow,
    named,
    plain,
)
from adapop.probes.recovery.choice import recovered
from adapop.probes.verdict import RULES, verdicts
from adapop.report import figures
from adapop.report.record import GROUP_NAMES, described_run
from adapop.report.table import percent, ranged, signed
from adapop.report.tables import verdict_table
from adapop.runs.examples import example_of
from adapop.runs.run import Run
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import probed_run, refused, run_to_ask
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.run.screen import Follower
from adapop.ui.session import browser_state
from adapop.ui.wiring import (
    EACH,
    EACH_IN_TURN,
    LAST_STAYS,
    QUIET,
    StartStop,
    error_of,
    followed,
    offload,
)

LEAK_TABLE = (
    "How many answers come back, in %: each row is a way of asking, each column a popularity "
    "tier, for both models. –: not measurable, because the original cannot answer that form "
    "either. *: measured only on the facts that it answers in that form. Point at a cell for the "
    "name of the attack, the intervals, and how often the right answer is the first or second "
    "guess."
)
KIND_TABLE = (
    "Answers that come back from the unlearned model, one row for each way of asking, with 95% "
    "intervals over facts. Hollow marks: the original."
)
LEAK_NAME = "Where it leaks"
LEAKS_EMPTY = (
    "Not probed yet. Probing asks about facts of each tier, spread over its scores: directly, in "
    "other words, in up to nine attacks and, with a larger model, in chat or as text, whichever "
    "the run did not use. The fact shown above may not be among them."
)

GROUPS = [*zip(("Forget set", "Retain set", "Held-out facts"), FACT_GROUPS)]
SAMPLES = [("8 facts a tier", 8), ("32 facts a tier", 32), ("all facts", 0)]
BEFORE = ("fact", "popularity", "verdict")
LONGER_STAYS = "Stopped. The earlier answers stay, because there are more of them."
EMPTY_TABLE = pd.DataFrame(columns=[*BEFORE, *map(plain, KINDS), "id"])


@dataclass(frozen=True)
class Leaks:
    """The components that show a probing. status: its progress, or that there is none yet. results:
    hidden until there are any. measured: their epoch, prominent while Run's scrubber is at another.
    counts: of verdicts. more: further notes on the matrix, folded. group: of facts."""

    status: gr.HTML
    results: gr.Column
    measured: gr.HTML
    counts: gr.HTML
    more: gr.HTML
    heatmap: Chart
    intervals: Chart
    table: gr.Dataframe
    group: gr.Dropdown
    work: StartStop

    @property
    def pictures(self) -> list[gr.Component]:
        """The components that `show` updates."""
        words = [self.status, self.results, self.measured, self.counts, self.more]
        return [*words, *self.heatmap.all, *self.intervals.all, self.table]

    def show(self, run: Run | None, group: str) -> dict:
        """Updates that show the run's last probing of a group of facts."""
        rows = run.probes() if run else None
        if not rows:
            empty = html.listed([LEAKS_EMPTY])
            return {self.status: empty, self.results: gr.Column(visible=False)}
        matrix = leak_matrix(rows)
        results = verdicts(rows, recovered(run.recovery())).items()
        words = {fact: verdict.name for fact, verdict in results}
        counts = verdict_table(matrix.verdicts_by_tier(words, group))
        names = {fact.id: fact.title for fact in getattr(run.facts, group)}
        about = _about(run, rows, group)
        pair = bool(run.config.unlearned)  # of which there is no other epoch
        measured = None if pair else {"epoch": run.chosen_epoch or run.epochs()[-1].epoch}
        return {
            self.status: html.listed([]),
            self.counts: grid_of(replace(counts, note="Verdicts")),
            self.more: html.listed(leak_lines(matrix, group, pair)),
            self.results: gr.Column(visible=True),
            self.measured: measured,
            **self.heatmap.updates(figures.leak_heatmap(matrix, group), about),
            **self.intervals.updates(figures.recall_by_kind(matrix, group), about),
            self.table: _table(matrix, words, names, group),
        }

    async def probe(self, worker: Worker, name: str, per_tier: int):
        """Probes the run, with the choice of a group locked; yields progress. Results, even those
        before a stop, are saved in the run."""

        def begun() -> tuple:
            run = run_to_ask(worker, name)
            plan = Plan(per_tier=per_tier or None, max_new_tokens=run.reply_tokens)
            return run, run.probed_at, *worker.work_on(run, jobs.probe_models, plan)

        run, before, future, progress = await offload(worker.usage, begun)
        async for line in followed(future, progress):
            locked = {self.group: gr.Dropdown(interactive=False)}
            yield {self.status: html.listed([line]), **locked, **self.work.busy(progress)}
        yield {self.group: gr.Dropdown(interactive=True), **self.work.idle()}

        def left() -> tuple:
            return run.probes(), run.probed_at

        if error := error_of(future):
            stopped = isinstance(error, Stopped)
            rows, probed_at = await offload(worker.usage, left) if stopped else (None, None)
            if rows is None:  # else those of a stopped probing, or of an earlier one, are shown
                raise refused(error)
            if probed_at == before:
                gr.Info(LONGER_STAYS)


def build(
    worker: Worker,
    follower: Follower,
    opened: gr.State,
    picked: tuple[gr.Dropdown, gr.Dropdown],
    wire_pick: Callable,
) -> tuple[gr.Row, Callable]:
    """Lays the section out. Returns the part that is only for one's own runs, and what wires an
    event after all facts were asked. opened: changes when the tab is opened. picked: the screen's
    choices of a group and of a fact, which a click on a row sets. wire_pick: wires what follows it,
    see `ProbeScreen.wire`."""
    narrow = dict(min_width=170, scale=0)
    with gr.Row(elem_classes="beside"):
        group = gr.Dropdown(GROUPS, value="forget", label="Group", elem_id="leak-group", **narrow)
        with gr.Row(visible=False, elem_classes="beside") as own:
            about = dict(label="How many", elem_id="leak-sample")
            sample = gr.Dropdown(SAMPLES, value=8, **about, **narrow)
            about = dict(variant="primary", elem_id="probe-all")
            start = gr.Button("Ask these facts", **about, **narrow)
            stop = gr.Button("Stop", visible=False, scale=0, min_width=90, elem_id="stop-probing")
            if worker.is_lent:
                gr.Markdown(cost_of_asking(LONG_SECONDS))
    words = html.lines("leak-words", html.listed([LEAKS_EMPTY]))
    with gr.Column(visible=False) as results:
        places = _results()
    leaks = Leaks(words, results, *places, group, StartStop(start, stop, gr.State(None)))

    def show_group(name: str, group_now: str):
        return leaks.show(probed_run(worker, name), group_now)

    run_id, changed = follower.run_id, [words, group, *leaks.work.all]
    probing = start.click(partial(leaks.probe, worker), [run_id, sample], changed, **QUIET)
    leaks.work.wire_stop()
    looked, inputs = [opened.change, follower.another.change], [run_id, group]
    gr.on(looked, show_group, inputs, leaks.pictures, **EACH_IN_TURN)
    probing.then(show_group, inputs, leaks.pictures, **EACH_IN_TURN)  # of the run open by now
    group.change(show_group, inputs, leaks.pictures, **LAST_STAYS)
    table = leaks.table
    clicked = table.select(_fact_clicked, group, [*picked], js="adapop.toWays", **EACH_IN_TURN)
    wire_pick(clicked.then)
    stored = browser_state(8, "many")
    sample.input(None, sample, stored, js="many => many", **EACH)
    gr.on([opened.change, stored.change], _many, stored, sample, **EACH)
    return own, probing.then


def _many(stored: object) -> int | dict:
    """How many facts a tier were asked for last, by what the browser stores."""
    return stored if stored in [count for _, count in SAMPLES] else gr.skip()


def _results() -> tuple[gr.HTML, gr.HTML, gr.HTML, Chart, Chart, gr.Dataframe]:
    """Lays out the results: measured, counts, more, heat map, intervals, table of facts."""
    empty = figures.empty(LEAKS_EMPTY)
    heatmap = chart(empty, "leak-chart", LEAK_NAME, LEAK_TABLE)
    measured = html.drawn(None, "measured", "leak-moment", "setBack")
    counts = grid("leak-verdicts")
    gr.Markdown("Recall of each fact, %. Press a fact to see its replies at the top.")
    about = dict(label="Fact by fact", show_label=False, elem_id="leak-table")
    looks = dict(interactive=False, max_height=360, max_chars=60, show_search="filter")
    table = gr.Dataframe(EMPTY_TABLE, datatype=_datatypes(len(KINDS)), **about, **looks)
    with gr.Accordion("Rules and ranges", open=False, elem_id="leak-more"):
        more = html.lines("leak-lines")
        intervals = chart(empty, "leak-intervals", LEAK_NAME, KIND_TABLE)
        gr.Markdown("\n".join(f"- **{rule.name}**: {rule.sentence}" for rule in RULES))
    return measured, counts, more, heatmap, intervals, table


def _about(run: Run, rows: Sequence[ProbeRow | NotApplicable], group: str) -> str:
    """The line under a chart: the run, the facts that were probed, the tiers, the gap."""
    probed = {row.fact_id for row in rows if isinstance(row, ProbeRow) and row.group == group}
    recorded = ", recorded" if example_of(run.id) else ""
    facts = f"{GROUP_NAMES[group]}: {number_of(len(probed), 'fact')}"
    about = f"{described_run(run)}{recorded} · {facts} · {run.facts.tiers.text}"
    after = run.measured()
    return f"{about} · gap over all facts {signed(after.gap)}" if after and after.gap else about


def leak_lines(matrix: LeakMatrix, group: str, pair: bool = False) -> list[str]:
    """The matrix in sentences: where answers leak most, and what could not be measured. pair: of
    models that were opened, not trained here, so that nobody knows the trained question."""
    lines = []
    cells = [cell for cell in matrix.cells if (cell.group, cell.tier) == (group, "all")]
    fair = [cell for cell in cells if cell.measurable and not cell.chance]
    if fair:
        worst = max(fair, key=lambda cell: cell.unlearned.recall.mean)
        recall = worst.unlearned.recall
        trained = (percent(cell.unlearned.recall.mean) for cell in cells if cell.kind == DIRECT)
        most = f"It answers most when asked “{named(worst.kind)}”: {ranged(recall)}"
        directly = texts.ASKED_DIRECTLY if pair else texts.AS_TRAINED
        lines.append(f"{most}; {directly} {next(trained, 'not asked')}.")
    reworded = (cell for cell in cells if cell.kind == REWORDED)
    lines += [second_guess_line(cell) for cell in reworded if cell.unlearned.near is not None]
    if blind := [named(cell.kind) for cell in cells if not cell.measurable]:
        lines.append(f"Not measurable, because the original fails too: {', '.join(blind)}.")
    incomplete = [cell for cell in cells if cell.facts < cell.asked]
    if part := [f"{named(cell.kind)}: {cell.facts} of {cell.asked}" for cell in incomplete]:
        of_these = "Measured only on the facts that the original answers in that form"
        lines.append(f"*{of_these}: {'; '.join(part)}.")
    skipped = Counter()
    for left_out in matrix.not_asked:
        skipped[left_out.kind] += left_out.facts
    names = [f"{named(kind)}: {number_of(count, 'fact')}" for kind, count in skipped.items()]
    if names:
        lines.append(f"Facts that cannot be asked in a form, over all groups: {'; '.join(names)}.")
    return lines


def second_guess_line(cell: Cell) -> str:
    """How often the right answer is still the first or second guess. Requires `near`."""
    rank = cell.unlearned.relation_rank
    mean = ""
    if rank:
        mean = f", and its mean rank among the answers to such questions is {rank:.1f}"
    near = percent(cell.unlearned.near)
    guessed = "Asked in other words, the right answer is the first or second guess"
    return f"{guessed} for {near} of the facts{mean}."


def _table(
    matrix: LeakMatrix, words: dict[str, str], names: dict[str, str], group: str
) -> gr.Dataframe:
    """The facts, a column per form that was asked. words, names: verdict and title by fact id."""
    kinds_asked = {cell.kind for cell in matrix.cells}
    kinds = [kind for kind in EVERY_KIND if kind in KINDS or kind in kinds_asked]
    rows = []
    for row in matrix.facts:
        recalls = (row.unlearned.get(kind) for kind in kinds)
        shares = (None if recall is None else round(100 * recall) for recall in recalls)
        name = names.get(row.fact_id, row.fact_id)
        if row.group == group:
            rows.append([name, row.tier, words[row.fact_id], *shares, row.fact_id])
    head = [*BEFORE, *map(plain, kinds), "id"]
    return gr.Dataframe(pd.DataFrame(rows, columns=head), datatype=_datatypes(len(kinds)))


def _datatypes(kinds: int) -> list[str]:
    return [*["str"] * len(BEFORE), *["number"] * kinds, "str"]


def _fact_clicked(group: str, event: gr.SelectData):
    """Group and id of the fact whose row was clicked."""
    row = event.row_value  # it comes from the browser
    return (group, row[-1]) if row and isinstance(row, list) else gr.skip()
