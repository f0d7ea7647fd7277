"""The app in a real browser, for tests: fixtures, and the few things every test does. Skips where no Chromium is."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripted import ScriptedServer

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = '<img src=x onerror="window.hacked=1"> ${window.hacked=1} {{this}} \\u'
SECOND = 1000
# the app as `python app.py` starts it, except that Wikidata is where the test says
START = """
import os, runpy
from adapop.popularity import wikidata
wikidata.Wikidata.__init__.__defaults__ = ("sitelinks+statements", os.environ["TEST_WIKIDATA"], "en")
runpy.run_path("app.py", run_name="__main__")
"""


@pytest.fixture(scope="session")
def wikidata():
    """What stands where Wikidata should be: a server on this machine."""
    with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory):
    """Where the running app keeps its runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def address(tmp_path_factory, runs_folder, wikidata):
    """A running app of its own, on a port of its own."""
    folders = {"ADAPOP_RUNS": str(runs_folder), "ADAPOP_CACHE": str(tmp_path_factory.mktemp("cache"))}
    environment = {**os.environ, **folders, "TEST_WIKIDATA": wikidata.url}
    server = subprocess.Popen(
        [sys.executable, "-u", "-c", START],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    for line in server.stdout:
        said.append(line)
        if found := re.search(r"http://\S+", line):
            yield found.group()
            break
    else:
        pytest.fail("the app did not start:\n" + "".join(said))
    server.terminate()
    server.wait()


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a skip; no skip where ADAPOP_REQUIRE_BROWSER is set."""
    if CHROMIUM is None and not os.environ.get("ADAPOP_REQUIRE_BROWSER"):
        pytest.skip("no Chromium was found: install it, or set CHROMIUM, to run the browser tests")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])


@pytest.fixture
def page(browser, address):
    """A fresh page of the app. At the end: no script error, no hostile text executed, no request to another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    errors, outside = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: outside.append(request.url) if is_outside(request.url, address) else None)
    page.set_default_timeout(60 * SECOND)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    yield page
    assert page.evaluate("window.hacked") is None
    assert errors == []
    assert outside == []
    context.close()


def is_outside(url: str, address: str) -> bool:
    """Whether a request leaves the app."""
    return not url.startswith((address, "data:", "blob:"))


def open_tab(page, name: str) -> None:
    """Goes to a screen."""
    page.get_by_role("tab", name=name).click()


def state_is(page, *states: str, seconds: int = 120) -> None:
    """Waits until the run strip shows one of the states."""
    page.wait_for_selector(", ".join(f"#strip .strip.{state}" for state in states), timeout=seconds * SECOND)


def write_table(path: Path, rows: list[list[str]]) -> Path:
    """A CSV file of the rows."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path
