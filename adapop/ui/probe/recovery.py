"""Recovers facts from inside the model in six ways, each with its control and its cost."""

import gradio as gr

from adapop.probes.recovery.choice import RECOVERY, cost
from adapop.report import figures
from adapop.report.record import described
from adapop.report.recovery import came_back, recovery_figure, recovery_table
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import refused, run_to_ask, shown_run
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.run.screen import Follower
from adapop.ui.wiring import EACH_IN_TURN, LAST_STAYS, QUIET, StartStop, error_of, followed, offload


def build(worker: Worker, follower: Follower, tab: gr.Tab) -> gr.Column:
    """Lays the section out. Returns the part that is only for one's own runs."""
    with gr.Column(visible=False) as section:
        probe = gr.Radio(
            texts.RECOVERY_CHOICES, value=RECOVERY[0], label="Try to get the facts back by …"
        )
        about = gr.Markdown(texts.RECOVERY_DETAIL[RECOVERY[0]])
        with gr.Row(elem_classes="beside"):
            start = gr.Button(
                "Try it", variant="primary", scale=0, min_width=150, elem_id="recover"
            )
            stop = gr.Button("Stop", visible=False, scale=0, min_width=90, elem_id="stop-recovery")
        if worker.is_lent:
            gr.Markdown(cost_of_asking(LONG_SECONDS))
        words, shown_column, picture, table = _results_column()
    places = [words, shown_column, *picture.parts, table]
    work = StartStop(start, stop, gr.State(None))

    def results_of(run: Run | None, chosen: str) -> dict:
        result = run.recovery().get(chosen) if run else None
        if result is None:
            return {words: html.listed(["Not tried yet."]), shown_column: gr.Column(visible=False)}
        back = came_back(result, run.facts.forget)
        return {
            words: html.listed([back] if back else []),
            shown_column: gr.Column(visible=True),
            **picture.updates(recovery_figure(chosen, result), described(run.config)),
            table: grid_of(recovery_table(chosen, result)),
        }

    async def recovered(name: str, chosen: str):
        run = await offload(worker.ledger, run_to_ask, worker, name)
        future, progress = await offload(worker.ledger, worker.recover, run, chosen)
        async for line in followed(future, progress):
            yield {
                words: html.listed([line]),
                probe: gr.Radio(interactive=False),
                **work.busy(progress),
            }
        changes = await offload(worker.ledger, results_of, run, chosen)
        yield {**changes, probe: gr.Radio(interactive=True), **work.idle()}
        if error := error_of(future):
            raise refused(error)

    def about_probe(name: str, chosen: str):
        run = shown_run(worker, name)
        return {about: _about(run, chosen), **results_of(run, chosen)}

    inputs = [follower.run_id, probe]
    start.click(recovered, inputs, [*places, probe, *work.all], **QUIET)
    work.wire_stop()
    gr.on(
        [tab.select, follower.another.change], about_probe, inputs, [about, *places], **EACH_IN_TURN
    )
    probe.change(about_probe, inputs, [about, *places], **LAST_STAYS)
    return section


def _results_column() -> tuple[gr.HTML, gr.Column, Chart, gr.HTML]:
    """Lays out a probe's result: sentences, and a chart and a table, hidden until there is a
    result."""
    words = gr.HTML(
        html.listed(["Not tried yet."]), html_template=html.LINES, elem_id="recovery-words"
    )
    with gr.Column(visible=False) as shown_column:
        picture = chart(figures.empty(""), "recovery-chart", "")
        with gr.Accordion("All numbers", open=False):
            table = grid("recovery-table")
    return words, shown_column, picture, table


def _about(run: Run | None, probe: str) -> str:
    """What a probe does and, if there is a run, its expected cost."""
    price = str(cost(probe, run.facts)) if run else ""
    priced = f" *It takes {price}.*" if price else ""
    return texts.RECOVERY_DETAIL[probe] + priced
