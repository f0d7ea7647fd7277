"""Recovers facts from inside the model in five ways, each with its control and its cost."""

import gradio as gr

from adapop.probes.recovery.choice import RECOVERY, cost
from adapop.report import figures
from adapop.report.record import described_run
from adapop.report.recovery import came_back, recovery_figure, recovery_sentence, recovery_table
from adapop.runs.run import Run
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui.access import refused, run_to_ask, shown_run
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.run.screen import Follower
from adapop.ui.wiring import EACH_IN_TURN, LAST_STAYS, QUIET, StartStop, error_of, followed, offload

NOT_TRIED = html.listed(["Not tried yet."])


def build(worker: Worker, follower: Follower, opened: gr.State) -> gr.Column:
    """Lays the section out. Returns the part that is only for one's own runs."""
    with gr.Column(visible=False) as section:
        choices = [(probe.title, name) for name, probe in RECOVERY.items()]
        first = choices[0][1]
        probe = gr.Radio(choices, value=first, label="Try to get the facts back by …")
        about = gr.Markdown(RECOVERY[first].about)
        with gr.Row(elem_classes="beside"):
            named = dict(variant="primary", min_width=150, elem_id="recover")
            start = gr.Button("Try it", scale=0, **named)
            stop = gr.Button("Stop", visible=False, scale=0, min_width=90, elem_id="stop-recovery")
        if worker.is_lent:
            gr.Markdown(cost_of_asking(LONG_SECONDS))
        words, results, picture, table = _lay_out_results()
    work = StartStop(start, stop, gr.State(None))

    async def recovered(name: str, chosen: str):
        run = await offload(worker.usage, run_to_ask, worker, name)
        work_on = worker.work_on, run, jobs.recover_facts, chosen
        future, progress = await offload(worker.usage, *work_on)
        async for line in followed(future, progress):
            locked = {probe: gr.Radio(interactive=False)}
            yield {words: html.listed([line]), **locked, **work.busy(progress)}
        yield {probe: gr.Radio(interactive=True), **work.idle()}
        if error := error_of(future):
            raise refused(error)

    def about_probe(name: str, chosen: str):
        run = shown_run(worker, name)
        result = run.recovery().get(chosen) if run else None
        updates = {about: _about(run, chosen), results: gr.Column(visible=result is not None)}
        if result is None:
            return updates | {words: NOT_TRIED}
        lines = recovery_sentence(chosen, result), came_back(result, run.facts.forget)
        updates |= {words: html.listed([*filter(None, lines)])}
        updates |= picture.updates(recovery_figure(chosen, result), described_run(run))
        return updates | {table: grid_of(recovery_table(chosen, result))}

    inputs, outputs = [follower.run_id, probe], [about, words, results, *picture.all, table]
    probing = start.click(recovered, inputs, [words, probe, *work.all], **QUIET)
    probing.then(about_probe, inputs, outputs, **EACH_IN_TURN)  # of the run open by now
    work.wire_stop()
    gr.on([opened.change, follower.another.change], about_probe, inputs, outputs, **EACH_IN_TURN)
    probe.change(about_probe, inputs, outputs, **LAST_STAYS)
    return section


def _lay_out_results() -> tuple[gr.HTML, gr.Column, Chart, gr.HTML]:
    """Lays out a probe's result: sentences, and a column, hidden until there is one, with chart and
    table."""
    words = html.lines("recovery-words", NOT_TRIED)
    with gr.Column(visible=False) as column:
        picture = chart(figures.empty(""), "recovery-chart", "Answers found")
        with gr.Accordion("All numbers", open=False):
            table = grid("recovery-table")
    return words, column, picture, table


def _about(run: Run | None, probe: str) -> str:
    """What a probe does and, if there is a run, its expected cost."""
    price = ""
    if run:
        jobs.engine()  # before another import: two at once, in two threads, fail
        price = str(cost(probe, run.facts))
    return RECOVERY[probe].about + (f" *It takes {price}.*" if price else "")
