"""The page: a header with the run strip, the Story, and four screens as tabs."""

import gc
import os
import sys
from collections.abc import Mapping
from functools import partial

# must be set before gradio is imported, to keep it silent
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
# a summary of all events after each of them, which nobody may see here
os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000000000")

import gradio as gr
from starlette.middleware import Middleware

from adapop.errors import RunError
from adapop.limits import UPLOAD, check_limits, is_public
from adapop.paths import ASSETS
from adapop.report.published import ARXIV, PAPER_PAGE, PAPER_TITLE
from adapop.runs import files
from adapop.runs.examples import example_of
from adapop.runs.run import runs_root
from adapop.service.cleanup import keep_clean
from adapop.service.worker import Accelerated, Worker
from adapop.ui import api, texts
from adapop.ui.access import may_control, shown_run
from adapop.ui.agents import served_beside_page
from adapop.ui.compare import race
from adapop.ui.compare import screen as compare
from adapop.ui.door.gate import Gate
from adapop.ui.events import keep_settings, prepare, turns_of
from adapop.ui.facts import screen as facts
from adapop.ui.parts import html
from adapop.ui.parts.download import DELETE_AFTER, DELETE_EVERY
from adapop.ui.probe import screen as probe
from adapop.ui.redaction import redact_logs
from adapop.ui.run import mine
from adapop.ui.run import screen as run
from adapop.ui.run import settings as run_settings
from adapop.ui.run.launch import UNSEEN, following
from adapop.ui.run.outcome import run_again
from adapop.ui.run.state import strip_of, view
from adapop.ui.session import Session, browser_state, new_session
from adapop.ui.story import screen as story
from adapop.ui.story.words import GLOSSARY
from adapop.ui.visitors import SENDER, trust_own_proxies
from adapop.ui.wiring import EACH, QUIET

TITLE = "AdaPop Explorer"
TAGLINE = "Making a model forget: why famous facts stay"
MODE_CPU = (
    "Runs use this machine's processor and take seconds with the sandbox. Recorded results are "
    "labelled as recorded."
)
MODE_GPU = "Larger models use the GPU, included ones the CPU. Recorded results are marked as such."
LINK_GONE = (
    "The run in this address was deleted or never existed. You now see this browser's own run, if "
    "there is one."
)
BACK_TO_OWN = "Back to my run"

# the paper whose method this is, below every screen
CREDITS = {
    "authors": "Borisiuk, Savchenko, Panchenko, Tutubalina 2026",
    "title": PAPER_TITLE,
    "address": PAPER_PAGE,
    "code": "https://github.com/Anya-wUw/open-unlearning",
    "citation": f"""@misc{{borisiuk2026adapop,
  title = {{{PAPER_TITLE.replace("LLM", "{LLM}")}}},
  author = {{Borisiuk, Anna and Savchenko, Andrey and Panchenko, Alexander and Tutubalina, Elena}},
  year = {{2026}}, eprint = {{{ARXIV}}}, archivePrefix = {{arXiv}}
}}""",
}
BELOW = CREDITS | {"glossary": [{"word": w, "meaning": m} for w, m in GLOSSARY.items()]}
TICK_SECONDS = 0.7
# how long a computing thread delays each step of the others: with Python's 0.005, answers beside
# one visitor's heavy events took three times as long
SWITCH_SECONDS = 0.0005
# searches among young objects to one among all, which stops everybody for a tenth of a second
LOOKS = 50
LONGEST = 2_000  # waiting events of all pages: a lecture hall that opens the page sends hundreds
THREADS = 400  # events at work at once: most of them wait, see `Usage.thread`
PAGES = 80  # whose state a public app keeps, the latest used; another restores its set
# what an address may open, see `tabOf` in "assets/page.js": tabs, and a panel of Run
TABS = ("facts", "pressure", "run", "probe", "compare")
# see `openTab` in "assets/page.js"
TAB_OPENED = "() => document.dispatchEvent(new CustomEvent('adapop-tab', {{ detail: '{}' }}))"
# of the bundled fonts' weights only these two hold every letter
SANS = gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700))
MONO = gr.themes.LocalFont("IBM Plex Mono", weights=(400, 700))
THEME = gr.themes.Base(
    primary_hue="indigo",
    secondary_hue="orange",
    neutral_hue="slate",
    font=[SANS, "ui-sans-serif", "system-ui", "sans-serif"],
    font_mono=[MONO, "ui-monospace", "monospace"],
)


def build(worker: Worker) -> gr.Blocks:
    """Builds the app. State and timer are laid out above the tabs: in a hidden tab they would
    stop."""
    cleaning = dict(delete_cache=(DELETE_EVERY, DELETE_AFTER))
    with gr.Blocks(title=TITLE, analytics_enabled=False, **cleaning) as demo:
        run_id, settings = browser_state("", "run"), browser_state([], "settings")
        session, another = new_session(demo), gr.State("")
        mode, strip, stop, back = _header()
        # `opened` starts it, when it knows which run to follow
        timer, story_timer = (gr.Timer(TICK_SECONDS, active=False) for _ in range(2))
        position, phase, readiness = gr.State(UNSEEN), gr.State(("", "")), gr.State("ready")
        loaded = gr.Textbox(visible="hidden", elem_id="settings-loaded")
        parts = another, position, phase, readiness, settings, loaded, timer, strip, stop
        follower = run.Follower(run_id, *parts)
        tabs, screen = _screens(worker, session, follower, story_timer)
        gr.HTML(html.values(BELOW), html_template=html.template("credits"), elem_id="credits")
        _wire_run(worker, demo, follower, tabs, screen, back)
        demo.load(partial(mode_of, worker), None, mode, concurrency_limit=None, **QUIET)
        api.build(worker, demo)
        prepare(demo, worker.usage, strip)
    keep_settings(demo)
    return demo


def _header() -> tuple[gr.HTML, gr.HTML, gr.Button, gr.Button]:
    """Lays out the header and the run strip. Returns the device's label, the strip, Stop, Back."""
    with gr.Row(elem_id="header-row"):
        title = html.values({"title": TITLE, "tagline": TAGLINE})
        gr.HTML(title, html_template=html.HEADER, scale=6)
        starting = html.values({"mode": "Starting …"})
        mode = gr.HTML(starting, html_template=html.MODE, scale=1, elem_id="mode")
        switches = {"advanced-switch": "Advanced", "theme": "Dark", "present": "Present"}
        for name, words in switches.items():  # see `shell` in "assets/page.js"
            gr.Button(words, size="sm", scale=0, min_width=80, elem_id=name)
    with gr.Row(elem_id="strip-row"):
        state = strip_of(view(None))
        strip = gr.HTML(state, html_template=html.STRIP, elem_id="strip", scale=6)
        small = dict(size="sm", scale=1)
        stop = gr.Button("Stop", interactive=False, min_width=80, elem_id="stop", **small)
        unseen = dict(visible=False, min_width=120, elem_id="own-run")
        back = gr.Button(BACK_TO_OWN, **unseen, **small)
    return mode, strip, stop, back


def _screens(
    worker: Worker, session: Session, follower: run.Follower, story_timer: gr.Timer
) -> tuple[gr.Tabs, run.RunScreen]:
    """Lays out the tabs; an opened tab puts its name into the address."""
    contest, my_runs = race.new_race(TICK_SECONDS), browser_state([], "runs")
    with gr.Tabs(elem_id="screens") as tabs:
        with gr.Tab("Story", id="story") as story_tab:
            story.build(worker, follower, story_timer)
        with gr.Tab("1 Facts", id="facts") as facts_tab:
            chosen = facts.build(worker, session, facts_tab, follower.settings)
        with gr.Tab("2 Run", id="run") as run_tab:
            elsewhere = chosen.missing, chosen.uploads.form.run, chosen.offers
            screen = run.build(worker, session, *elsewhere, follower)
            own_runs = mine.MyRuns(my_runs, *mine.build())
        with gr.Tab("3 Probe", id="probe") as probe_tab:
            probe.build(worker, session, follower, my_runs, probe_tab, screen.card.brief)
        with gr.Tab("4 Compare", id="compare") as compare_tab:
            raced = chosen.missing, contest, screen.settings.all
            compare.build(worker, session, *raced, my_runs, compare_tab)
    own_runs.wire(worker, follower, screen.over, contest.stored, run_tab)
    run_settings.follow_set(screen.settings, chosen.source)
    for tab in (story_tab, facts_tab, run_tab, probe_tab, compare_tab):
        tab.select(None, None, None, js=TAB_OPENED.format(tab.id), **QUIET)
    return tabs, screen


def _wire_run(
    worker: Worker,
    demo: gr.Blocks,
    follower: run.Follower,
    tabs: gr.Tabs,
    screen: run.RunScreen,
    back: gr.Button,
) -> None:
    """Wires the choice of the shown run: when the page opens, for its address, and by Back."""
    run_id, another, own = follower.run_id, follower.another, browser_state("", "own-run")

    def opened(name: str, request: gr.Request):
        """Updates that show the run in the address, ?run=LINK (read-only) or ?run=ID (as its
        owner), else the run that this browser viewed last. If both exist and the latter is the
        visitor's own, its id is stored for the button Back."""
        named = request.query_params.get("run")
        last = name
        if shown_run(worker, named):
            name = named
        elif named:
            gr.Warning(LINK_GONE)
        changes = screen.show(worker, name)
        if name != last:  # even an equal value would trigger a dozen events
            changes |= {run_id: name} | ({own: last} if may_control(worker, last) else {})
        if _opens_on_run(worker, request.query_params, name):
            changes[tabs] = gr.Tabs(selected="run")
        return changes

    settled = demo.load(opened, run_id, [run_id, own, tabs, *screen.outputs], **run.BY_TURNS)
    settled.then(None, run_id, None, js="(run) => adapop.forgetLink(run, true)", **QUIET)
    run_id.change(None, run_id, None, js="adapop.forgetLink", **EACH)
    run_id.change(lambda name: name, run_id, another, **EACH)
    # Back is visible while the page shows another run than this browser's own
    gr.on([demo.load, another.change], partial(_way_back, worker), run_id, back, **EACH)
    back.click(partial(_back_to, worker), [run_id, own], follower.follows, **QUIET)


def _way_back(worker: Worker, name: str) -> gr.Button:
    words = texts.RUN_YOURSELF if example_of(name) else BACK_TO_OWN
    watching = shown_run(worker, name) is not None and not may_control(worker, name)
    return gr.Button(words, visible=watching)


def _back_to(worker: Worker, name: str, own: str):
    """Updates of Back: to the visitor's own run; from an example, to a new own run of it."""
    if example := example_of(name):
        return run_again(worker, example)
    return following(own)


def _opens_on_run(worker: Worker, query: Mapping[str, str], name: str) -> bool:
    """Whether the page opens on Run: the address names no other tab, and it names a run or one is
    active. name: of the run shown."""
    if query.get("run"):
        elsewhere = query.get("tab") in TABS or "story" in query
        return shown_run(worker, query["run"]) is not None and not elsewhere
    now, _, _ = run.seen_of(worker, name, "ready")
    return now.ticking and not {"tab", "story"} & set(query)


def launch(accelerated: Accelerated | None = None, **options) -> None:
    """Builds and serves the app. Nothing leaves the machine: no analytics, monitoring, history or
    outside fonts. accelerated: lends the accelerator, None if this process owns it. options: of
    `gr.Blocks.launch`.

    Raises:
        RunError: the folder for runs cannot be used, or no port is free.
        ConfigError: a limit or the port is set to an invalid value.
    """
    check_limits()
    sys.setswitchinterval(SWITCH_SECONDS)
    worker = Worker(runs_root(), accelerated, SENDER.get)
    with files.writing(worker.root / "run"):
        worker.root.mkdir(parents=True, exist_ok=True)
    keep_clean(worker.root)
    demo = build(worker)
    trust_own_proxies()
    # the engine is imported once the page is served: on a busy machine, Gradio gives up after five
    # seconds without a server
    stays = not options.pop("prevent_thread_lock", False)
    options = launch_options(worker, demo) | options | {"prevent_thread_lock": True}
    redact_logs()
    try:
        demo.launch(**options)
    except OSError as error:
        fix = "Set GRADIO_SERVER_PORT to a free port, or end the program that uses it."
        raise RunError("The app found no free port to serve the page.", fix) from error
    # garbage is sought from now on, and never among the millions of objects of the page itself
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], LOOKS)
    gc.enable()
    worker.warm_up()
    if stays:
        demo.block_thread()


def mode_of(worker: Worker) -> dict:
    """The header's label of the device that runs use. Waits until the engine is imported."""
    name = worker.gpu()
    why = MODE_GPU if name else MODE_CPU
    return html.values({"mode": f"Runs on {name or 'CPU'}", "why": why})


def launch_options(worker: Worker, demo: gr.Blocks) -> dict:
    """Options for serving the app over a worker, the same for tests. Sets the app's queue."""
    demo.queue(max_size=LONGEST, default_concurrency_limit=None)
    gate = Middleware(Gate, worker.usage, turns_of(demo))
    return dict(
        max_threads=THREADS,
        state_session_capacity=PAGES if is_public() else 10 * PAGES,
        theme=THEME,
        css_paths=[ASSETS / "style.css", ASSETS / "story.css"],
        head=html.script(),
        js="() => adapop.start()",
        run_history=False,
        enable_monitoring=False,
        footer_links=["api"],
        max_file_size=f"{UPLOAD.value()}mb",
        app_kwargs={"middleware": [gate], **served_beside_page(worker)},
        ssr_mode=False,
        pwa=False,
        show_error=False,
        mcp_server=False,
        allowed_paths=[],
    )
