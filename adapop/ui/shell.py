"""The page: a header with the run strip, and four screens as tabs."""

from __future__ import annotations

import os
import secrets
from functools import partial
from pathlib import Path

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # must be set before gradio is imported, to keep it silent

import gradio as gr

from adapop.runs import runs_root
from adapop.sandbox import sandbox_facts
from adapop.ui import cards, copy, facts, pressure, probe, run
from adapop.ui.session import new_session
from adapop.worker import Worker

TICK_SECONDS = 0.7
STYLE = Path(__file__).resolve().parents[2] / "assets" / "style.css"
# of the bundled fonts' weights only these two hold every letter
THEME = gr.themes.Base(
    primary_hue="indigo",
    secondary_hue="orange",
    neutral_hue="slate",
    font=[gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), "ui-sans-serif", "system-ui", "sans-serif"],
    font_mono=[gr.themes.LocalFont("IBM Plex Mono", weights=(400, 700)), "ui-monospace", "monospace"],
)


def build(worker: Worker) -> gr.Blocks:
    """The whole app over a worker. State and timer sit at the top level: inside a hidden tab they do not live."""
    with gr.Blocks(title=copy.TITLE, analytics_enabled=False, delete_cache=(3600, 7200)) as demo:
        run_id = gr.BrowserState("", storage_key="adapop-run", secret=_secret(worker.root))
        session = new_session()
        gr.HTML(
            cards.values({"title": copy.TITLE, "tagline": copy.TAGLINE, "mode": "Live on this machine"}),
            html_template=cards.HEADER,
        )
        with gr.Row(elem_id="strip-row"):
            strip = gr.HTML(run.strip_of(run.EMPTY), html_template=cards.STRIP, elem_id="strip", scale=6)
            stop = gr.Button("Stop", interactive=False, size="sm", scale=1, min_width=80, elem_id="stop")
        follower = run.Follower(run_id, gr.State(-1), gr.Timer(TICK_SECONDS), strip, stop)
        gr.Markdown(copy.INTRO)
        with gr.Tabs():
            with gr.Tab("1 Facts") as facts_tab:
                missing = facts.build(worker, session, facts_tab)
            with gr.Tab("2 Pressure"):
                pressure.build(session, sandbox_facts())
            with gr.Tab("3 Run"):
                shown = run.build(worker, session, missing, follower)
            with gr.Tab("4 Probe") as probe_tab:
                probe.build(worker, run_id, probe_tab)
        restored = partial(run.show, worker, last_seen=-1)
        demo.load(restored, run_id, shown, api_visibility="private", show_progress="hidden")
    return demo


def launch(**options) -> None:
    """Builds and serves the app. Nothing leaves the machine: no analytics, monitoring, history or outside fonts."""
    worker = Worker(runs_root())
    worker.root.mkdir(parents=True, exist_ok=True)
    demo = build(worker)
    worker.warm_up()
    demo.queue(max_size=32, default_concurrency_limit=8).launch(**launch_options() | options)


def launch_options() -> dict:
    """How the app is served, everywhere and in tests."""
    return dict(
        theme=THEME,
        css_paths=str(STYLE),
        run_history=False,
        enable_monitoring=False,
        footer_links=[],
        max_file_size="64mb",
        ssr_mode=False,
        pwa=False,
        show_error=False,
        mcp_server=False,
        allowed_paths=[],
    )


def _secret(root: Path) -> str:
    """The key that seals what the browser keeps; one per installation, so that a restart finds the page's run again."""
    path = root / ".browser-secret"
    if not path.exists():
        root.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(32), encoding="utf-8")
    return path.read_text(encoding="utf-8")
