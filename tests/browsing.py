"""The app in a real browser, for tests: fixtures, and the few things every test does. Skips where no Chromium is.

What the server sends is waited for, never looked at once: CI's machine may be many times slower than yours.
"""

import csv
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from adapop.runs.run import RUN_ID, Run
from scripted import ScriptedServer
from serving import served
from waiting import wait_until

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = '<img src=x onerror="window.hacked=1"> ${window.hacked=1} {{this}} \\u'
SECOND = 1000
PATIENCE = 120 * SECOND
LIST_OPEN = 5 * SECOND  # then a list that shows no such option has been closed
WINDOW, LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 1280, "height": 800}, {"width": 390, "height": 844}
PROMPT = "#prompt textarea, #prompt input"
# the app as `python app.py` starts it, except that Wikidata is where the test says, that a page looks less often at
# its run, since to show what it finds takes a browser without a GPU more time than the run itself, and that a run that
# Run starts asks few facts at its end, and one on facts typed in the Story few beside these: to ask all takes longer
# than its steps
START = """
import os, runpy
from dataclasses import replace
from adapop.popularity import pageviews, wikidata
from adapop.ui import page
from adapop.ui.run import launch
from adapop.ui.story import screen
page.TICK_SECONDS = 1.5
in_full = launch.config_at
def in_brief(*values):
    config = in_full(*values)
    return replace(config, measure_per_tier=config.measure_per_tier or 8)
launch.config_at = in_brief
typed_facts = screen.own_facts
def with_few_beside(*values):
    config, facts = typed_facts(*values)
    return config, replace(facts, retain=facts.retain[:32], holdout=facts.holdout[:32], utility=facts.utility[:8])
screen.own_facts = with_few_beside
here = os.environ["TEST_WIKIDATA"]
wikidata.Wikidata.__init__.__defaults__ = ("sitelinks+statements", here, "en")
pageviews.PageViews.__init__.__defaults__ = ("en", None, here, here)
runpy.run_path("app.py", run_name="__main__")
"""
# what came for the fields of a folded part is put into them a frame after it is opened, over what was typed before
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
PASTE = """(input, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  input.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""
STOP_AT_ONCE = """() => {
  const stop = document.querySelector("#stop");
  if (!stop || stop.disabled || !stop.checkVisibility()) return false;
  stop.click();
  return true;
}"""


@pytest.fixture(scope="session")
def wikidata():
    """What stands where Wikidata should be: a server on this machine."""
    with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def as_long_as_needed(fixture_name, config) -> str:
    """One app for all files, or for one where the slow ones are left out: at rest it takes a tenth of a core."""
    return "session" if config.getoption("markexpr") == "slow" else "module"


@pytest.fixture(scope=as_long_as_needed)
def address(tmp_path_factory, runs_folder, wikidata):
    """A running app of its own, on a port of its own."""
    places = {"ADAPOP_CACHE": str(tmp_path_factory.mktemp("cache")), "TEST_WIKIDATA": wikidata.url}
    with served(runs_folder, ("-c", START), **places) as app:
        yield app.address.rstrip("/")


@contextmanager
def launched(worker) -> Iterator[str]:
    """The app over a worker, in this process, as it is served everywhere; its address."""
    from adapop.ui import page as shell  # which loads gradio

    demo = shell.build(worker)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **shell.launch_options(worker, demo))
    yield url
    demo.close()


@pytest.fixture(scope=as_long_as_needed)
def browser():
    """Chromium, or a skip; no skip where ADAPOP_REQUIRE_BROWSER is set."""
    if CHROMIUM is None and not os.environ.get("ADAPOP_REQUIRE_BROWSER"):
        pytest.skip("no Chromium was found: install it, or set CHROMIUM, to run the browser tests")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])


@pytest.fixture
def page(browser, address):
    """A fresh page of the app. At the end: no script error, no hostile text executed, no request to another host."""
    with visit(browser, address) as page:
        yield page


@pytest.fixture(scope=as_long_as_needed)
def visited(browser, address, runs_folder):
    """What a browser holds whose page has started a run of one epoch on the sandbox, which has ended: another may begin
    with it. The page is closed meanwhile: to draw what the run comes to takes longer than the run."""
    before = run_ids(runs_folder)
    with visit(browser, address) as page:
        start_run(page, epochs=1)
        says(page, "#my-runs", "AdaPop 1")
        page.evaluate(TWO_FRAMES)  # until the browser has kept them
        held = page.context.storage_state()
    (name,) = run_ids(runs_folder) - before
    run = Run(runs_folder / name)
    wait_until(lambda: run.last_epoch == 1)
    wait_until(lambda: run.state == "done")
    return held


@contextmanager
def visit(browser, address: str, query: str = "?tab=facts", **options) -> Iterator:
    """A page in a browser of its own. query: of the address, which says what is opened. options: of the browser, see
    `Browser.new_context`."""
    context = browser.new_context(**{"viewport": WINDOW} | options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors, outside = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    own = address, "data:", "blob:"
    page.on("request", lambda request: None if request.url.startswith(own) else outside.append(request.url))
    page.goto(address + query)
    page.wait_for_selector("#strip .strip", state="attached")
    yield page
    if not page.is_closed():
        assert page.evaluate("window.hacked") is None
    assert errors == [], errors
    assert outside == []
    context.close()


def open_tab(page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def open_pressure(page) -> None:
    """Opens the panel of Run that shows the curve of β."""
    open_tab(page, "Run")
    unfold(page, "pressure-panel")


def reach_by_tab(page, place: str) -> None:
    """Presses Tab at most five times, and the links that skip, until the focus is there."""
    reached = f"document.activeElement.matches('{place}')"
    for _ in range(5):
        if not page.evaluate(reached):
            page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.skip')"):
            page.keyboard.press("Enter")
    assert page.evaluate(reached), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def state_is(page, *states: str, seconds: int = 240) -> None:
    """Waits until the run strip says one of the states; on the Story it is out of sight while there is no run."""
    strips = ", ".join(f"#strip .strip.{state}" for state in states)
    page.wait_for_selector(strips, state="attached", timeout=seconds * SECOND)


def says(page, place: str, *texts: str, timeout: float | None = None) -> None:
    """Waits until all the texts stand at a place. timeout: in milliseconds, None for the usual one."""
    from playwright.sync_api import expect

    for text in texts:  # a group of components is two elements of one id, one inside the other
        expect(page.locator(place).first).to_contain_text(text, timeout=timeout)


def shown(page, place: str, pattern: str) -> str:
    """Waits until a place shows what matches the pattern; returns its first group. In one step: an answer that was
    made before may arrive after, until the page has looked again."""
    script = "([place, pattern]) => document.querySelector(place)?.innerText.match(pattern)?.[1]"
    return page.wait_for_function(script, arg=[place, pattern]).json_value()


def upload(page, table: Path, *texts: str) -> None:
    """Brings a table of one's own, and waits until the notes about it say all the texts."""
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", table)
    says(page, "#notes", *texts)


def typed_cell(page, name: str, row: int):
    """A cell of the grid in which facts are typed."""
    return page.locator("#typed-grid").get_by_label(f"{name}, row {row}", exact=True)


def paste(cell, text: str) -> None:
    """Pastes a text into an input, as the browser does with what a spreadsheet copied."""
    cell.focus()
    cell.evaluate(PASTE, text)


def choose(page, place: str, name: str, exact: bool = False) -> None:
    """Chooses from the list of a box. What the server sends for the box closes its list, and a long list shows only its
    first hundred: it is opened again then, and the name is typed, as a visitor would."""
    from playwright.sync_api import TimeoutError as ListClosed

    box, option = page.locator(f"{place} input").first, page.get_by_role("option", name=name, exact=exact)
    for again in range(PATIENCE // LIST_OPEN):
        if again:
            box.blur()
        box.click()
        if again and box.is_editable():
            box.fill(name)
        with suppress(ListClosed):
            return option.click(timeout=LIST_OPEN)
    raise AssertionError(f"{place} offers no {name!r}: {page.get_by_role('option').all_inner_texts()}")


def show_advanced(page) -> None:
    if page.get_attribute("#advanced-switch", "aria-pressed") != "true":
        page.click("#advanced-switch")


def unfold(page, name: str) -> None:
    """Opens a folded part of a screen, if it is not open."""
    fold = page.locator(f"#{name} > button, #{name} > .label-wrap").first
    if "open" not in (fold.get_attribute("class") or "").split():
        fold.click()
        page.evaluate(TWO_FRAMES)


def start_run(page, epochs: int, **settings: int) -> None:
    """Starts a run with the page's facts, once the page says that it will be that one. settings: further ones, by
    name; ten epochs of the sandbox in steps of four facts (`batch`) take half a minute at least."""
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill(str(epochs))
    if settings:
        lines = [f"{name}={value}" for name, value in settings.items()]
        show_advanced(page)
        unfold(page, "advanced")
        page.fill("#knob-further textarea", "\n".join(lines))
        says(page, "#altered", *lines)
    page.get_by_text(f"in {epochs} epoch").first.wait_for()
    page.click("#start:not([disabled])")


def logged(page, text: str) -> None:
    """Waits until a line stands in the run's log, which is folded."""
    unfold(page, "log-fold")
    page.locator("#event-log").get_by_text(text).first.wait_for()


def stop_run(page) -> None:
    """Presses Stop as soon as it works, and waits until the run has stopped."""
    page.wait_for_function(STOP_AT_ONCE)
    state_is(page, "stopped")


def run_ids(runs_folder: Path) -> set[str]:
    return {path.name for path in runs_folder.iterdir() if RUN_ID.fullmatch(path.name)}


@contextmanager
def remembered(page) -> Iterator[None]:
    """Waits until the browser has kept what the block changed of the session."""
    session = "localStorage.getItem('adapop-session')"
    before = page.evaluate(session)
    yield
    page.wait_for_function(f"before => {session} !== before", arg=before)


def write_table(path: Path, rows: list[list[str]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def link_of(page) -> str:
    open_tab(page, "Run")
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    page.click("#copy-link")
    page.wait_for_function("window.copied")
    return page.evaluate("window.copied")
