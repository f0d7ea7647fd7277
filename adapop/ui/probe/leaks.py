"""All probes at once: every fact in every form to both models, what leaks where, and the verdict on each fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import gradio as gr
import pandas as pd

from adapop.errors import Stopped
from adapop.probes.matrix import LeakMatrix, leak_matrix
from adapop.probes.plan import Plan
from adapop.probes.prompts import KINDS
from adapop.probes.recovery.choice import recovered
from adapop.probes.verdict import RULES, verdicts
from adapop.report import figures
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import refused, shown_run, steered
from adapop.ui.parts import html
from adapop.ui.parts.chart import chart, drawn
from adapop.ui.wiring import EACH_IN_TURN, LAST_STAYS, failure_of, lines_until_done

GROUPS = [("Facts to forget", "forget"), ("Retained facts", "retain"), ("Held-out facts", "holdout")]
SAMPLES = [("8 facts a tier", 8), ("32 facts a tier", 32), ("all facts", 0)]
EMPTY_TABLE = pd.DataFrame(columns=["fact", "tier", "verdict", *KINDS, "id"])


def build(worker: Worker, run_id: gr.BrowserState, tab: gr.Tab, fact: gr.Dropdown, picked: gr.Dropdown) -> None:
    """Lays the section out. fact, picked: the screen's choice of a fact and its group, which a click on a row sets."""
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
        heatmap, intervals, table = _pictures()
    with gr.Accordion("The rules behind the verdicts", open=False):
        gr.Markdown("\n".join(f"- **{rule.name}**: {rule.sentence}" for rule in RULES))
    at_work = gr.State(None)

    def probed(name: str, per_tier: int, wanted: str):
        yield from _probed(worker, name, per_tier, wanted)

    def shown(name: str, wanted: str):
        return _shown(shown_run(worker, name), wanted)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    pictures = [said, found, *heatmap, *intervals, table]
    start.click(probed, [run_id, sample, group], [*pictures, start, stop, at_work], **quiet)
    stop.click(lambda progress: progress.stop() if progress else None, at_work, None, **quiet)
    tab.select(shown, [run_id, group], pictures, concurrency_limit=1, **quiet)
    group.change(shown, [run_id, group], pictures, **quiet, **LAST_STAYS)
    table.select(_chosen, group, [picked, fact], **quiet, **EACH_IN_TURN)


def _pictures() -> tuple[tuple[gr.Plot, gr.HTML], tuple[gr.Plot, gr.HTML], gr.Dataframe]:
    """Heat map, the gap in each form, and the table: hidden by their column until there is something to see."""
    heatmap = chart(figures.empty(texts.LEAKS_EMPTY), "leak-chart")
    intervals = chart(figures.empty(texts.LEAKS_EMPTY), "leak-intervals")
    gr.Markdown(texts.LEAK_FACTS)
    table = gr.Dataframe(
        EMPTY_TABLE,
        label="By fact",
        datatype=["str", "str", "str", *["number"] * len(KINDS), "str"],
        interactive=False,
        max_height=360,
        max_chars=60,
        show_search="filter",
        elem_id="leak-table",
    )
    return heatmap, intervals, table


def _probed(worker: Worker, name: str, per_tier: int, wanted: str):
    """Probes the run when its turn comes, tells how far it is, and shows what was found, also when it was stopped."""
    run = steered(worker, name)
    if run is None or run.last_epoch is None:
        raise gr.Error("There is no unlearned model yet. Let a run finish its first epoch.", duration=None)
    plan = Plan(per_tier=per_tier or None, max_new_tokens=run.config.max_new_tokens)
    future, progress = worker.probe(run, plan)
    busy = (gr.Button(interactive=False), gr.Button(interactive=True), progress)
    for line in lines_until_done(future, progress):
        yield html.listed([line]), *[gr.skip()] * 6, *busy
    idle = (gr.Button(interactive=True), gr.Button(interactive=False), None)
    yield *_shown(run, wanted), *idle
    error = failure_of(future)
    stopped = isinstance(error, Stopped) and run.probes() is not None  # what it found is on the screen
    if error and not stopped:
        raise refused(error)


def _shown(run: Run | None, group: str):
    """What the run's last probing found: sentences, heat map, the gap in each form with its intervals, and table."""
    rows = run.probes() if run else None
    if not rows:
        return html.listed([texts.LEAKS_EMPTY]), gr.Column(visible=False), *[gr.skip()] * 5
    matrix = leak_matrix(rows)
    words = {fact: verdict.name for fact, verdict in verdicts(rows, recovered(run.recovery())).items()}
    names = {fact.id: fact.title for fact in getattr(run.facts, group)}
    return (
        html.listed(leak_lines(matrix, words, group)),
        gr.Column(visible=True),
        *drawn(figures.leak_heatmap(matrix, group), texts.LEAK_TABLE),
        *drawn(figures.recall_by_kind(matrix, group), texts.KIND_TABLE),
        _table(matrix, words, names, group),
    )


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
        lines.append(
            f"The unlearned model answers most under “{worst.kind}”: {recall.mean:.2f} "
            f"({recall.low:.2f} to {recall.high:.2f}, 95 % over facts), directly {_direct(cells)}."
        )
    if blind := [cell.kind for cell in cells if not cell.measurable]:
        lines.append(f"Not measurable, for the original fails too: {', '.join(blind)}.")
    skipped = Counter()
    for left_out in matrix.not_asked:
        skipped[left_out.kind] += left_out.facts
    if skipped:
        lines.append("Not applicable: " + ", ".join(f"{kind} ({count} facts)" for kind, count in skipped.items()) + ".")
    return lines


def _direct(cells: Sequence) -> str:
    found = [cell.unlearned.recall.mean for cell in cells if cell.kind == KINDS[0]]
    return f"{found[0]:.2f}" if found else "not asked"


def _table(matrix: LeakMatrix, words: dict[str, str], names: dict[str, str], group: str) -> pd.DataFrame:
    rows = [
        [
            names.get(row.fact_id, row.fact_id),
            row.tier,
            words[row.fact_id],
            *(None if kind not in row.unlearned else round(row.unlearned[kind], 2) for kind in KINDS),
            row.fact_id,
        ]
        for row in matrix.facts
        if row.group == group
    ]
    return pd.DataFrame(rows, columns=EMPTY_TABLE.columns)


def _chosen(group: str, event: gr.SelectData):
    """The fact of the row that was clicked, put into the screen's choice."""
    row = event.row_value
    return (gr.skip(), gr.skip()) if not row else (group, row[-1])
