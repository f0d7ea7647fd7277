"""All probes at once: both models are asked facts in every form; shows what leaks where, and a verdict on each fact."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import partial

import gradio as gr
import pandas as pd

from adapop.errors import Stopped
from adapop.probes.matrix import Cell, LeakMatrix, leak_matrix
from adapop.probes.plan import Plan
from adapop.probes.prompts import DIRECT, KINDS, REWORDED
from adapop.probes.recovery.choice import recovered
from adapop.probes.verdict import RULES, verdicts
from adapop.report import figures
from adapop.report.record import described
from adapop.report.table import percent, ranged
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import refused, run_to_ask, shown_run
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.parts.field import script
from adapop.ui.wiring import EACH_IN_TURN, LAST_STAYS, QUIET, StartStop, failure_of, followed

GROUPS = [("Facts to forget", "forget"), ("Retained facts", "retain"), ("Held-out facts", "holdout")]
SAMPLES = [("8 facts a tier", 8), ("32 facts a tier", 32), ("all facts", 0)]
EMPTY_TABLE = pd.DataFrame(columns=["fact", "tier", "verdict", *KINDS, "id"])


@dataclass(frozen=True)
class Leaks:
    """The components that show a probing. found: what is hidden until there is something to see. measured: says after
    which epoch, and sets the pictures back while the Run screen's scrubber stands elsewhere."""

    said: gr.HTML
    found: gr.Column
    measured: gr.HTML
    heatmap: Chart
    intervals: Chart
    table: gr.Dataframe
    work: StartStop

    @property
    def pictures(self) -> list[gr.Component]:
        """What `show` changes."""
        return [self.said, self.found, self.measured, *self.heatmap.parts, *self.intervals.parts, self.table]

    def show(self, run: Run | None, group: str) -> dict:
        """Updates that show what the run's last probing found of a group of facts."""
        rows = run.probes() if run else None
        if not rows:
            return {self.said: html.listed([texts.LEAKS_EMPTY]), self.found: gr.Column(visible=False)}
        matrix = leak_matrix(rows)
        words = {fact: verdict.name for fact, verdict in verdicts(rows, recovered(run.recovery())).items()}
        about = f"{described(run.config)} · {dict(map(reversed, GROUPS))[group].lower()}"
        names = {fact.id: fact.title for fact in getattr(run.facts, group)}
        return {
            self.said: html.listed(leak_lines(matrix, words, group)),
            self.found: gr.Column(visible=True),
            self.measured: {"epoch": run.last_epoch or run.epochs()[-1].epoch},
            **self.heatmap.drawn(figures.leak_heatmap(matrix, group), about),
            **self.intervals.drawn(figures.recall_by_kind(matrix, group), about),
            self.table: _table(matrix, words, names, group),
        }

    async def probe(self, worker: Worker, name: str, per_tier: int, group: str):
        """Probes the run when its turn comes, and yields how far it is, then what was found, also when it was
        stopped."""
        run = run_to_ask(worker, name)
        plan = Plan(per_tier=per_tier or None, max_new_tokens=run.config.max_new_tokens)
        future, progress = worker.probe(run, plan)
        async for line in followed(future, progress):
            yield {self.said: html.listed([line]), **self.work.busy(progress)}
        yield {**await asyncio.to_thread(self.show, run, group), **self.work.idle()}
        error = failure_of(future)
        stopped = isinstance(error, Stopped) and run.probes() is not None  # what it found is on the screen
        if error and not stopped:
            raise refused(error)


def build(worker: Worker, run_id: gr.BrowserState, tab: gr.Tab, fact: gr.Dropdown, picked: gr.Dropdown) -> gr.Button:
    """Lays the section out, and returns what starts it. fact, picked: the screen's choice of a fact and its group,
    which a click on a row sets."""
    gr.Markdown(f"### Every way at once\n{texts.LEAKS_ABOUT}")
    with gr.Row():
        sample = gr.Dropdown(SAMPLES, value=8, label="How many", min_width=130, scale=1)
        group = gr.Dropdown(GROUPS, value="forget", label="Show", min_width=150, scale=1, elem_id="leak-group")
        start = gr.Button(
            "Probe all ways", variant="primary", min_width=140, scale=1, elem_id="probe-all", elem_classes="tall"
        )
        stop = gr.Button("Stop", min_width=80, scale=0, interactive=False, elem_id="stop-probing", elem_classes="tall")
    if worker.is_lent:
        gr.Markdown(cost_of_asking(LONG_SECONDS))
    said = gr.HTML(html.listed([texts.LEAKS_EMPTY]), html_template=html.LINES, elem_id="leak-words")
    with gr.Column(visible=False) as found:
        template = '<div class="measured"></div>'  # no text goes through the template: the script puts it in as text
        measured = gr.HTML(None, html_template=template, js_on_load=script("kit", "set-back"), elem_id="leak-moment")
        pictures = _pictures()
    with gr.Accordion("The rules behind the verdicts", open=False):
        gr.Markdown("\n".join(f"- **{rule.name}**: {rule.sentence}" for rule in RULES))
    work = StartStop(start, stop, gr.State(None))
    leaks = Leaks(said, found, measured, *pictures, work)

    def shown(name: str, wanted: str):
        run = shown_run(worker, name)
        return leaks.show(run, wanted) | ({} if run else {said: html.listed([texts.PROBE_OWN_ONLY])})

    start.click(partial(leaks.probe, worker), [run_id, sample, group], [*leaks.pictures, *work.all], **QUIET)
    work.wire_stop()
    tab.select(shown, [run_id, group], leaks.pictures, concurrency_limit=1, **QUIET)
    group.change(shown, [run_id, group], leaks.pictures, **LAST_STAYS)
    leaks.table.select(_fact_clicked, group, [picked, fact], **EACH_IN_TURN)
    return start


def _pictures() -> tuple[Chart, Chart, gr.Dataframe]:
    """Heat map, recall in each form with its intervals, and the table of facts."""
    heatmap = chart(figures.empty(texts.LEAKS_EMPTY), "leak-chart", texts.LEAK_NAME, texts.LEAK_TABLE)
    intervals = chart(figures.empty(texts.LEAKS_EMPTY), "leak-intervals", texts.LEAK_NAME, texts.KIND_TABLE)
    gr.Markdown(texts.LEAK_FACTS)
    table = gr.Dataframe(
        EMPTY_TABLE,
        label="By fact: % of the right answer that comes back",
        datatype=["str", "str", "str", *["number"] * len(KINDS), "str"],
        interactive=False,
        max_height=360,
        max_chars=60,
        show_search="filter",
        elem_id="leak-table",
    )
    return heatmap, intervals, table


def leak_lines(matrix: LeakMatrix, words: dict[str, str], group: str) -> list[str]:
    """The matrix in sentences: verdicts by tier, where it leaks most, and what could not be measured."""
    lines = []
    for tier, counts in matrix.verdicts_by_tier(words, group).items():
        named = ", ".join(f"{count} {word.lower()}" for word, count in counts.most_common())
        lines.append(f"{tier.capitalize()} ({counts.total()} facts): {named}.")
    cells = [cell for cell in matrix.cells if (cell.group, cell.tier) == (group, "all")]
    fair = [cell for cell in cells if cell.measurable and not cell.chance]
    if fair:
        worst = max(fair, key=lambda cell: cell.unlearned.recall.mean)
        recall = worst.unlearned.recall
        direct = next((percent(cell.unlearned.recall.mean) for cell in cells if cell.kind == DIRECT), "not asked")
        lines.append(f"The unlearned model answers most under “{worst.kind}”: {ranged(recall)}, directly {direct}.")
    lines += [second_guess_line(cell) for cell in cells if cell.kind == REWORDED and cell.unlearned.near is not None]
    if blind := [cell.kind for cell in cells if not cell.measurable]:
        lines.append(f"Not measurable, for the original fails too: {', '.join(blind)}.")
    if part := [f"{cell.kind} ({cell.facts} of {cell.asked})" for cell in cells if cell.facts < cell.asked]:
        lines.append(f"*Of the facts alone that the original answers in that form: {', '.join(part)}.")
    skipped = Counter()
    for left_out in matrix.not_asked:
        skipped[left_out.kind] += left_out.facts
    if skipped:
        lines.append("Not applicable: " + ", ".join(f"{kind} ({count} facts)" for kind, count in skipped.items()) + ".")
    return lines


def second_guess_line(cell: Cell) -> str:
    """How near the right answers of a cell still are, which the replies do not show. Its `near` is not None."""
    rank = cell.unlearned.relation_rank
    among = "" if rank is None else f", and on average number {rank:.1f} among the answers of its relation"
    near = percent(cell.unlearned.near)
    return f"Asked in other words, the right answer is the first or second guess of {near} of the facts{among}."


def _table(matrix: LeakMatrix, words: dict[str, str], names: dict[str, str], group: str) -> pd.DataFrame:
    rows = [
        [
            names.get(row.fact_id, row.fact_id),
            row.tier,
            words[row.fact_id],
            *(None if kind not in row.unlearned else round(100 * row.unlearned[kind]) for kind in KINDS),
            row.fact_id,
        ]
        for row in matrix.facts
        if row.group == group
    ]
    return pd.DataFrame(rows, columns=EMPTY_TABLE.columns)


def _fact_clicked(group: str, event: gr.SelectData):
    """Group and id of the fact whose row was clicked."""
    row = event.row_value  # it comes from the browser
    return (group, row[-1]) if row and isinstance(row, list) else gr.skip()
