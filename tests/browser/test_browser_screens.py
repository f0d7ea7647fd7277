"""Every screen fits its window: how tall and how wide it is, no word of a picture cut off, and what axe finds."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from browsing import LAPTOP, PHONE, open_tab, show_advanced, state_is, unfold, visit, write_table

# by screen, what is there once it is drawn
SCREENS = {
    "Pressure": "#beta-curve .fact",  # a panel of Run, which the address opens
    "Story": "#story section.here",
    "Facts": "#strip-chart .plotly",
    "Run": "#recall-chart .plotly",
    "Probe": "#probe-notes li:last-child",  # the others are seen under Advanced
    "Compare": "#compare-cost .plotly",
}
# the same of who has a run of one's own
OWN = {
    "Facts": "#strip-chart .plotly",
    "Run": "#outcome-chart .point",
    "Probe": "#ask-every-way",
    "Compare": "#compare-cost .plotly",
}
NOTHING_EMPTY = "() => ![...document.querySelectorAll('.empty')].some((one) => one.checkVisibility())"  # of Gradio's
SERIOUS = ("serious", "critical")
# what is drawn last has come: the page has had its size for twenty frames, and no colour is on its way
AT_REST = """() => new Promise((done) => {
  let last = "", same = 0;
  const look = () => {
    const { scrollHeight, scrollWidth } = document.documentElement, now = `${scrollWidth} ${scrollHeight}`;
    const moves = document.getAnimations().some((one) => one instanceof CSSTransition);
    same = now === last && !moves ? same + 1 : 0;
    last = now;
    if (same < 20) requestAnimationFrame(look); else done();
  };
  look();
})"""
# words of a picture that stand beyond its edge, by more than a pixel, upon its button, or upon the title of an axis
CUT_OFF = """() => {
  const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
  const within = (a, b) => a.left > b.left - 1 && a.right < b.right + 1 && a.top > b.top - 1 && a.bottom < b.bottom + 1;
  const plots = [...document.querySelectorAll('.js-plotly-plot')].filter((plot) => plot.checkVisibility());
  return plots.flatMap((plot) => {
    const edge = plot.getBoundingClientRect(), button = plot.querySelector('.modebar')?.getBoundingClientRect();
    const titles = [...plot.querySelectorAll('text[class$=title]')];
    const texts = [...plot.querySelectorAll('.main-svg text')].filter((text) => text.getBoundingClientRect().width);
    return texts.filter((text) => {
      const box = text.getBoundingClientRect(), others = titles.filter((title) => title !== text);
      const covered = others.some((title) => meet(box, title.getBoundingClientRect()));
      return !within(box, edge) || covered || (button && meet(box, button));
    }).map((text) => text.textContent);
  });
}"""


def in_scheme(page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.body.classList.contains('dark') === {str(scheme == 'dark').lower()}")
    page.evaluate(AT_REST)


def fits(page, window: dict[str, int], most: int = 3) -> None:
    """The screen is no wider than a window, and as tall as so many of them at most."""
    page.set_viewport_size(window)
    page.evaluate(AT_REST)
    assert page.evaluate("document.documentElement.scrollHeight") <= most * window["height"], "too tall"
    assert page.evaluate("document.documentElement.scrollWidth") <= window["width"], "too wide"


def axe_finds_nothing_serious(page, name: str) -> None:
    page.wait_for_function(NOTHING_EMPTY)
    for theme in ("light", "dark"):
        in_scheme(page, theme)
        found = Axe().run(page).response
        assert len(found["passes"]) > 5, "it looked"
        serious = [one for one in found["violations"] if one["impact"] in SERIOUS]
        places = [(one["id"], node["target"], node["html"][:200]) for one in serious for node in one["nodes"]]
        assert places == [], (name, theme)


def test_every_screen_takes_few_windows_and_axe_finds_nothing_serious(browser, address):
    with visit(browser, address, "?tab=pressure", viewport=PHONE, reduced_motion="reduce") as page:
        for name, drawn in SCREENS.items():
            if name != "Pressure":
                open_tab(page, name)
            page.locator(drawn).first.wait_for()
            if name == "Pressure":
                page.wait_for_function("new URL(location.href).searchParams.get('tab') === 'run'")
            if name != "Story":  # which is scrolled
                fits(page, PHONE)
                fits(page, LAPTOP)
            axe_finds_nothing_serious(page, name)


@pytest.mark.parametrize("name", ["adapop", "smollm2"])
def test_what_a_link_to_a_recorded_run_opens_takes_few_windows(browser, address, name):
    with visit(browser, address, f"?run=example-{name}&tab=run", viewport=LAPTOP) as page:
        for place in ("#outcome-chart .point", "#result b"):
            page.locator(place).first.wait_for()
        fits(page, LAPTOP)
        fits(page, PHONE)
        if name == "adapop":
            open_tab(page, "Probe")
            page.locator("#every-way tbody tr").first.wait_for()
            fits(page, PHONE)
            fits(page, LAPTOP)


def test_a_table_of_one_s_own_takes_few_windows_before_it_is_there_and_afterwards(browser, address, tmp_path):
    rows = [[f"What is the capital of the country {number}?", f"Town {number}", number**2] for number in range(1, 61)]
    table = write_table(tmp_path / "sixty.csv", [["question", "answer", "score"], *rows])
    with visit(browser, address, "?tab=facts") as page:
        page.get_by_text("My own facts").click()
        for there in ("No file yet", "Forget set: 60;"):
            if there != "No file yet":
                page.set_input_files("#upload input[type=file]", table)
            page.locator("#notes").get_by_text(there).wait_for()
            fits(page, LAPTOP)
            fits(page, PHONE)


@pytest.mark.parametrize("window", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_beside_a_run_of_one_s_own_every_screen_fits_and_nothing_is_cut_off(browser, address, visited, window):
    with visit(browser, address, viewport=window, storage_state=visited) as page:
        state_is(page, "done")
        for name, drawn in OWN.items():
            open_tab(page, name)
            page.locator(drawn).first.wait_for()
            if name == "Run":  # its one epoch moves nothing, as the page says at Start too
                page.get_by_label("number input for Epochs").fill("5")
                page.get_by_text("in 5 epochs").first.wait_for()
            if window == LAPTOP:
                fits(page, LAPTOP, most=2)
            elif name == "Run":
                page.click(".my-runs summary")
                buttons = page.locator(".my-runs .acts button")
                buttons.last.wait_for()
                fits(page, PHONE)
                boxes = [button.bounding_box() for button in buttons.all()]
                assert all(box["x"] + box["width"] <= 390 - 32 for box in boxes), "what can be done is seen at once"
            if name == "Run":
                show_advanced(page)
                page.click("#training button")
                for panel in ("pressure-panel", "fading"):
                    unfold(page, panel)
            for scheme in ("light", "dark"):
                in_scheme(page, scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= window["width"], name
                assert page.evaluate(CUT_OFF) == [], name
                if name == "Run":
                    ink = page.locator("#loss-chart svg text").first.evaluate("one => getComputedStyle(one).fill")
                    assert ink == page.evaluate("getComputedStyle(document.body).color"), scheme
            if name == "Run" and window == LAPTOP:
                for chart in ("controller-chart", "loss-chart", "recall-chart", "outcome-chart"):
                    page.click(f"#{chart}-twin summary")
                    page.locator(f"#{chart}-twin tbody tr").first.wait_for()  # each has its numbers
                page.click("#advanced-switch")
