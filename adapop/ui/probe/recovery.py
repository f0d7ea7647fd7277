"""Getting facts back from inside the model, four ways, each with its control and its cost."""

from __future__ import annotations

import gradio as gr

from adapop.probes.recovery.choice import RECOVERY, cost
from adapop.report.recovery import recovery_table
from adapop.report.table import Table
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import refused, shown_run, steered
from adapop.ui.parts import html
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.wiring import LAST_STAYS, failure_of, lines_until_done

NOTHING = Table("", (), ())


def build(worker: Worker, run_id: gr.BrowserState, tab: gr.Tab) -> None:
    """Lays the section out."""
    gr.Markdown(f"### From inside\n{texts.RECOVERY_ABOUT}")
    with gr.Row():
        probe = gr.Radio(
            texts.RECOVERY_CHOICES, value=RECOVERY[0], label="Try to get the facts back by …", min_width=320, scale=3
        )
        start = gr.Button("Try it", variant="primary", min_width=120, scale=1, elem_id="recover", elem_classes="tall")
        stop = gr.Button("Stop", min_width=80, scale=0, interactive=False, elem_id="stop-recovery", elem_classes="tall")
    if worker.is_lent:
        gr.Markdown(cost_of_asking(LONG_SECONDS))
    about = gr.Markdown(texts.RECOVERY_DETAIL[RECOVERY[0]])
    said = gr.HTML(html.listed(["Not tried yet."]), html_template=html.LINES, elem_id="recovery-words")
    table = grid("recovery-table")
    at_work = gr.State(None)

    def recovered(name: str, wanted: str):
        yield from _recovered(worker, name, wanted)

    def shown(name: str, wanted: str):
        run = shown_run(worker, name)
        return (_about(run, wanted), *_shown(run, wanted))

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    start.click(recovered, [run_id, probe], [said, table, start, stop, at_work], **quiet)
    stop.click(lambda progress: progress.stop() if progress else None, at_work, None, **quiet)
    tab.select(shown, [run_id, probe], [about, said, table], concurrency_limit=1, **quiet)
    probe.change(shown, [run_id, probe], [about, said, table], **quiet, **LAST_STAYS)


def _about(run: Run | None, wanted: str) -> str:
    """What a probe does and, where there is a run, what it will cost."""
    priced = f" *It takes {cost(wanted, run.facts)}.*" if run else ""
    return texts.RECOVERY_DETAIL[wanted] + priced


def _recovered(worker: Worker, name: str, wanted: str):
    """Runs a recovery probe when its turn comes, and shows what it found."""
    run = steered(worker, name)
    if run is None or run.last_epoch is None:
        raise gr.Error("There is no unlearned model yet. Let a run finish its first epoch.", duration=None)
    future, progress = worker.recover(run, wanted)
    for line in lines_until_done(future, progress):
        yield html.listed([line]), gr.skip(), gr.Button(interactive=False), gr.Button(interactive=True), progress
    idle = (gr.Button(interactive=True), gr.Button(interactive=False), None)
    yield *_shown(run, wanted), *idle
    if error := failure_of(future):
        raise refused(error)


def _shown(run: Run | None, wanted: str):
    result = run.recovery().get(wanted) if run else None
    if result is None:
        return html.listed(["Not tried yet."]), grid_of(NOTHING)
    return html.listed([], "hidden"), grid_of(recovery_table(wanted, result))
