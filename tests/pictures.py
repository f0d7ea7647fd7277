"""Makes the pictures of the README and the docs anew: of the page as it is, into assets/images, and of the recorded
rows beside the oracle, of metrics, of survival and of epochs into assets/recorded.

    python tests/pictures.py
    python tests/pictures.py oracle metrics survival epochs

All are of the runs that ship with the app, so nothing is trained; the page says of each which run it is.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from adapop.config.methods import METHODS
from adapop.experiments import survival, survival_tables
from adapop.experiments.metrics import marks
from adapop.experiments.pictures import as_html, epochs, nearness
from adapop.paths import ASSETS
from adapop.report.figures import Figure
from bench_rows import by_arm
from browsing import CHROMIUM, SECOND
from serving import served

OUT, WIDTH, HEIGHT = ASSETS / "images", 1280, 1000
PATIENCE = 120 * SECOND
SETTLED = 2 * SECOND  # until pictures have taken the window's width
RUN = "?run=example-adapop"
RECORDED = ASSETS / "recorded"


def gap(page: Page) -> Locator:
    """The Story's fourth scene after five epochs: both clouds of AdaPop, the gap and the curve."""
    page.wait_for_selector("#story .anchors svg")
    picture = page.locator("#story section.here .picture")
    picture.evaluate("part => (part.style.padding = '12px')")
    return picture


def run(page: Page) -> None:
    """The Run screen with a fact pinned."""
    page.wait_for_selector("#recall-chart .plotly")
    page.locator("#fact-field .forget canvas").press("End")
    page.keyboard.press("Enter")
    page.locator("#fact-field .forget canvas").blur()


def probe(page: Page) -> None:
    """The Probe screen: a fact asked in every way, and both models' answers."""
    page.wait_for_selector("#recall-chart .plotly")  # the page knows its run
    page.get_by_role("tab", name="Probe").click()
    page.wait_for_selector("#every-way .every-way")
    page.wait_for_function("document.querySelector('#prompt textarea, #prompt input').value")
    page.click("#ask")
    page.locator("#answers").get_by_text("· Unlearned by").wait_for()  # not those recorded by probing


def compare(page: Page) -> None:
    page.locator("#compare-cost .plotly").wait_for()


PICTURES = {
    "gap": ("?story=4&epoch=5", gap, HEIGHT), "run": (RUN, run, 1640), "probe": (RUN, probe, 1500),
    "compare": ("?tab=compare", compare, 1430),
}  # fmt: skip


def beside_oracle() -> Figure:
    """The methods, without controls, that were measured against the oracle, by the papers' settings and tuned."""
    arms = by_arm(RECORDED / "main.csv") | by_arm(RECORDED / "tuned.csv", ", tuned")
    methods = {method.title for method in METHODS.values()}
    return nearness({title: rows for title, rows in arms.items() if title.removesuffix(", tuned") in methods})


FIGURES = {
    "oracle": beside_oracle,
    "metrics": lambda: marks(by_arm(RECORDED / "metrics.csv")),
    "survival": lambda: survival_tables.curves(survival.rows(RECORDED / survival.FILE)),
    "epochs": lambda: epochs(by_arm(RECORDED / "epochs-e35871e2.csv")),
}


def recorded(browser: Browser, name: str) -> None:
    figure = FIGURES[name]()
    page = browser.new_page(viewport={"width": 1000, "height": figure.layout.height}, color_scheme="light")
    page.set_content(as_html(figure, library=True))
    page.wait_for_selector(".plotly :is(.barlayer, .scatterlayer) path", state="attached", timeout=PATIENCE)
    page.locator(".plotly").screenshot(path=RECORDED / f"{name}.png")
    print(RECORDED / f"{name}.png")
    page.close()


def main(names: list[str]) -> None:
    """Makes the named pictures, all by default."""
    with tempfile.TemporaryDirectory() as runs, served(Path(runs)) as app, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name in names or (*PICTURES, *FIGURES):
            if name in FIGURES:
                recorded(browser, name)
                continue
            query, prepared, height = PICTURES[name]
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
            page.set_default_timeout(PATIENCE)
            page.goto(app.address + query)
            element = prepared(page)
            page.wait_for_timeout(SETTLED)
            page.evaluate("scrollTo(0, 0)")
            file = OUT / f"{name}.png"
            (element or page).screenshot(path=file, animations="disabled")
            Image.open(file).convert("RGB").quantize(256).save(file)  # a third of the bytes
            print(file)
            page.close()


if __name__ == "__main__":
    main(sys.argv[1:])
