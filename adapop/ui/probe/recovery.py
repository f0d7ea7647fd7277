"""Getting facts back from inside the model, four ways, each with its control and its cost."""

from __future__ import annotations

import gradio as gr
import pandas as pd

from adapop.probes.recovery.choice import RECOVERY, cost
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import LONG_SECONDS, cost_of_asking
from adapop.ui import texts
from adapop.ui.access import refused, run_to_control, shown_run
from adapop.ui.parts import html
from adapop.ui.wiring import LAST_STAYS, QUIET, StartStop, failure_of, followed

HIDDEN_COLUMNS = ("original_rank", "unlearned_rank", "control_rank")


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
    table = gr.Dataframe(
        pd.DataFrame(), show_label=False, interactive=False, max_height=320, visible=False, elem_id="recovery-table"
    )
    work = StartStop(start, stop, gr.State(None))

    def found(run: Run | None, wanted: str) -> dict:
        result = run.recovery().get(wanted) if run else None
        if result is None:
            return {said: html.listed(["Not tried yet."]), table: gr.Dataframe(visible=False)}
        shown = gr.Dataframe(recovery_table(result), visible=True)
        return {said: html.listed(recovery_lines(wanted, result)), table: shown}

    def recovered(name: str, wanted: str):
        run = run_to_control(worker, name)
        if run is None or run.last_epoch is None:
            raise gr.Error("There is no unlearned model yet. Let a run finish its first epoch.", duration=None)
        future, progress = worker.recover(run, wanted)
        for line in followed(future, progress):
            yield {said: html.listed([line]), **work.busy(progress)}
        yield {**found(run, wanted), **work.idle()}
        if error := failure_of(future):
            raise refused(error)

    def shown(name: str, wanted: str):
        run = shown_run(worker, name)
        return {about: _about(run, wanted), **found(run, wanted)}

    start.click(recovered, [run_id, probe], [said, table, *work.all], **QUIET)
    work.wire_stop()
    tab.select(shown, [run_id, probe], [about, said, table], concurrency_limit=1, **QUIET)
    probe.change(shown, [run_id, probe], [about, said, table], **LAST_STAYS)


def _about(run: Run | None, wanted: str) -> str:
    """What a probe does and, where there is a run, what it will cost."""
    priced = f" *It takes {cost(wanted, run.facts)}.*" if run else ""
    return texts.RECOVERY_DETAIL[wanted] + priced


def recovery_table(result: dict) -> pd.DataFrame:
    """What a recovery probe found, a row a measurement."""
    frame = pd.DataFrame(result["rows"]).round(3)
    frame = frame.drop(columns=[name for name in HIDDEN_COLUMNS if name in frame])
    return frame.rename(columns=lambda name: name.replace("_", " "))


def recovery_lines(name: str, result: dict) -> list[str]:
    """What a recovery probe found, in sentences with its control."""
    rows = [row for row in result["rows"] if row["tier"] == "all"]
    if name == "relearn":
        lines = [
            f"Asked {row['form']}, {row['facts']} other facts: {row['before']:.2f} before, {row['after']:.2f} after "
            f"training on {len(result['trained'])} forgotten facts, {row['control']:.2f} after training on as many "
            "invented ones."
            for row in rows
        ]
    elif name == "quantise":
        lines = [
            f"{row['bits']} bits, {row['group']}: {row['unlearned']:.2f} → {row['unlearned_rounded']:.2f} unlearned, "
            f"{row['original']:.2f} → {row['original_rounded']:.2f} original."
            for row in rows
        ]
    elif name == "sampling":
        lines = [
            f"Within {row['place']}: {row['unlearned']:.2f} unlearned, {row['original']:.2f} original"
            + (f", a wrong answer {row['control']:.2f}." if row["control"] is not None else ".")
            for row in rows
        ]
    else:
        lines = [
            f"After layer {row['layer']} the answer leads for {row['unlearned']:.2f} of the facts in the unlearned "
            f"model, {row['original']:.2f} in the original."
            for row in rows
        ]
    if "returned" in result:
        lines.append(f"Facts that came back: {len(result['returned'])}.")
    return [*lines, f"Took {result['seconds']:.1f} s."]
