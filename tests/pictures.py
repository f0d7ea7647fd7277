"""Makes the pictures of the README and the docs anew: of the page as it is, into assets/images, and figures of the
recorded rows, into assets/recorded.

    python tests/pictures.py
    python tests/pictures.py levels rates epochs tuned survival survival-real

All are of the runs that ship with the app, so nothing is trained; the page says of each which run it is.
"""

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from adapop.paths import ASSETS
from adapop.report.figures import as_html
from browsing import CHROMIUM, SECOND
from recorded_figures import DRAWN, FIGURES, RECORDED, drawn
from serving import served

OUT, WIDTH, HEIGHT = ASSETS / "images", 1280, 1000
PATIENCE = 120 * SECOND
SETTLED = 2 * SECOND  # until pictures have taken the window's width
RUN = "?run=example-adapop"
WIDTHS = {"tuned-front": 1500}  # of figures; this one has many names


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


def recorded(browser: Browser, name: str) -> None:
    """A figure of recorded rows, which carries what it draws."""
    figure, file = FIGURES[name](), RECORDED / f"{name}.png"
    size = {"width": WIDTHS.get(name, 1000), "height": figure.layout.height}
    page = browser.new_page(viewport=size, color_scheme="light")
    page.set_content(as_html(figure, library=True))
    page.wait_for_selector(".plotly :is(.barlayer, .scatterlayer) path", state="attached", timeout=PATIENCE)
    page.locator(".plotly").screenshot(path=file)
    page.close()
    about = PngInfo()
    about.add_text(DRAWN, json.dumps(drawn(figure), ensure_ascii=True), zip=True)
    small(file, pnginfo=about)


def small(file: Path, **more) -> None:
    """Saves a picture again, in a third of the bytes."""
    Image.open(file).convert("RGB").quantize(256).save(file, **more)
    print(file)


def main(names: list[str]) -> None:
    """Makes the named pictures, all by default."""
    names = names or [*FIGURES, *PICTURES]
    with ExitStack() as opened:
        playwright = opened.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name in (name for name in names if name in FIGURES):
            recorded(browser, name)
        of_page = [name for name in names if name not in FIGURES]
        if of_page:
            app = opened.enter_context(served(Path(opened.enter_context(tempfile.TemporaryDirectory()))))
        for name in of_page:
            query, prepared, height = PICTURES[name]
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
            page.set_default_timeout(PATIENCE)
            page.goto(app.address + query)
            element = prepared(page)
            page.wait_for_timeout(SETTLED)
            page.evaluate("scrollTo(0, 0)")
            file = OUT / f"{name}.png"
            (element or page).screenshot(path=file, animations="disabled")
            small(file)
            page.close()


if __name__ == "__main__":
    main(sys.argv[1:])
