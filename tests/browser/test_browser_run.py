import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from adapop.report import figures
from browsing import (
    PROMPT,
    SECOND,
    choose,
    logged,
    open_tab,
    run_ids,
    says,
    show_advanced,
    shown,
    start_run,
    state_is,
    stop_run,
    unfold,
    visit,
)

RUN_SHOWN = "AdaPop, 5 epochs, rate 0.002, seed 0"

KEPT = "localStorage.getItem('adapop-settings')"
# by screen, what is drawn last on it
DRAWN = {
    "Facts": "#fact-table [data-testid='cell-0-0']",
    "Run": "#outcome-chart .plotly",
    "Probe": "#fact input",
    "Compare": "#race-empty",
}
# Stop and the strip must come together: a click on a button that is not there yet is lost
STOP_WHEN_RUNNING = """() => { const strip = document.getElementById('strip'), stop = document.getElementById('stop');
  new MutationObserver(() => setTimeout(() => {
    if (strip.querySelector('.strip.running') && !window.clicked) { window.clicked = true; stop.click(); }
  }, 50)).observe(strip, { childList: true, subtree: true, attributes: true }); }"""
IS_KEPT = r"Epoch (\d+) of 10 is kept"
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


def test_the_plan_follows_the_settings_which_a_reload_keeps_and_a_method_changes(page):
    open_tab(page, "Run")
    page.get_by_text("80 steps in 5 epochs").wait_for()
    page.get_by_label("number input for Epochs").fill("2")
    page.get_by_text("32 steps in 2 epochs").wait_for()
    show_advanced(page)
    unfold(page, "protects")
    before = page.evaluate(KEPT)
    page.fill("#knob-tolerance input", "0.3")
    page.get_by_text("Changed: ε, drift that is tolerated: 0.3 (preset 0.1)").wait_for()
    page.wait_for_function(f"before => {KEPT} !== before", arg=before)
    page.reload()
    open_tab(page, "Run")
    page.get_by_text("32 steps in 2 epochs").wait_for()
    page.get_by_text("Changed: ε, drift that is tolerated: 0.3 (preset 0.1)").wait_for()
    unfold(page, "advanced")
    page.get_by_role("button", name="Back to the preset's values").click()
    page.get_by_text("Changed: ε").wait_for(state="hidden")
    unfold(page, "protects")
    choose(page, "#method", "WGA")
    page.wait_for_function("document.querySelector('#knob-alpha0 input').value === '1'")  # another method's own
    page.get_by_text("Changed:").wait_for(state="hidden")


def test_a_set_brings_the_model_that_it_is_about(page):
    model_is = "title => document.querySelector('#model input').value.startsWith(title)"
    page.get_by_text("Invented people").click()
    page.get_by_text("288 to forget, 256 to retain, 192 held out").wait_for()
    open_tab(page, "Run")
    page.wait_for_function(model_is, arg="People")
    page.get_by_text("90 steps in 5 epochs").wait_for()
    page.get_by_text("Changed:").wait_for(state="hidden")
    open_tab(page, "Facts")
    page.get_by_text("One pair").click()
    open_tab(page, "Run")
    page.wait_for_function(model_is, arg="Sandbox")


def test_one_scrubber_drives_all_that_shows_a_moment_and_the_address_keeps_it(browser, address):
    with visit(browser, address, "?run=example-adapop", reduced_motion="reduce") as page:
        page.locator("#recall-chart .cursor").wait_for()
        scrubber = page.locator("#fact-field .scrubber input")
        place = "document.querySelector('#recall-chart .cursor').style.left"
        leaks, answers = page.locator("#fact-field .leaks"), page.locator("#fact-field .answer.unlearned")
        says(page, "#fact-field .leaks", "after epoch 5")
        ends = leaks.inner_text(), answers.inner_text(), page.evaluate(place)
        held = page.locator("#fact-field .clouds > :last-child")
        assert held.locator(".of").inner_text() == "Held-out facts, never trained on"
        assert "after epoch 5" in held.locator("canvas").get_attribute("aria-label"), "the cost, at the same moment"
        scrubber.press("Home")
        says(page, "#fact-field .leaks", "before")
        assert "before" in held.locator("canvas").get_attribute("aria-label")
        assert {*leaks.locator("td").all_inner_texts()} == {"100%"}
        says(page, "#fact-field .answer.unlearned", "not begun")
        assert page.evaluate(f"parseFloat({place})") < float(ends[2].removesuffix("px")) / 2
        page.locator("#fact-field .forget canvas").press("Home")
        page.keyboard.press("Enter")
        for _ in range(4):
            scrubber.press("ArrowRight")
        says(page, "#fact-field .leaks", "after epoch 2")
        assert "epoch=2" in page.url and "pin=" in page.url
        locators = (leaks, answers, page.locator("#fact-field .moment .asked"))
        now = [one.inner_text() for one in locators]
        page.reload()
        says(page, "#fact-field .leaks", "after epoch 2")
        assert "epoch=2" in page.url and "pin=" in page.url
        assert now == [one.inner_text() for one in locators]
        assert page.locator("#fact-field .leaks .set-back").count() == 0
        scrubber.press("ArrowRight")
        says(page, "#fact-field .leaks", "last asked after epoch 2")
        assert page.locator("#fact-field .leaks .set-back").count() == 1


HOME_AT_ONCE = """() => {
  document.querySelector("[role=tab][data-tab-id=run]").click();
  document.querySelector("#fact-field .scrubber input").dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
}"""


def test_a_moment_chosen_as_soon_as_run_is_open_stays_in_the_address(page):
    """The tab tells the page that it is open a little after it is."""
    here = "new URL(location.href).searchParams"
    open_tab(page, "Run")
    page.locator("#fact-field .scrubber input").wait_for()
    open_tab(page, "Probe")
    page.wait_for_function(f"{here}.get('tab') === 'probe'")
    page.evaluate(HOME_AT_ONCE)
    page.wait_for_function(f"{here}.get('tab') === 'run'")
    assert page.evaluate(f"{here}.get('epoch')") == "0"


def test_every_view_follows_the_newest_frame_until_the_visitor_goes_back(page):
    start_run(page, epochs=10, batch=2)
    page.get_by_text("Recorded example:").wait_for(state="hidden")
    scrubber = page.locator("#fact-field .scrubber input")
    frame, newest = (f"Number(document.querySelector('#fact-field .scrubber input')?.{at})" for at in ("value", "max"))
    cursor = "parseFloat(document.querySelector('#recall-chart .cursor').style.left)"

    def grown() -> None:
        """Waits until there is a newer frame, and the chart of recall has its line."""
        page.wait_for_function(f"last => {newest} > last", arg=page.evaluate(newest))
        page.locator("#recall-chart .cursor").wait_for()

    scrubber.wait_for()
    grown()
    moments = []
    for _ in range(2):
        grown()
        at, last = page.evaluate(f"[{frame}, {newest}]")
        assert at == last > 0, "follows"
        moments.append((page.evaluate(cursor), page.inner_text("#fact-field .when")))
    assert moments[0][0] < moments[1][0] and moments[0][1] != moments[1][1], "and so does what stands beside"
    for key in ("Home", "ArrowRight"):
        scrubber.press(key)
    back = page.evaluate(f"[{frame}, document.querySelector('#fact-field .moment').innerText]")
    grown()
    assert page.evaluate(f"[{frame}, document.querySelector('#fact-field .moment').innerText]") == back, "stays"
    assert page.evaluate(f"{frame} < {newest}")
    scrubber.press("End")
    grown()
    assert page.evaluate(f"{frame} === {newest}"), "follows again"
    stop_run(page)


def test_what_leaks_says_after_which_epoch_it_was_measured_wherever_the_scrubber_stands(browser, address):
    with visit(browser, address, "?run=example-adapop&epoch=2", reduced_motion="reduce") as page:
        says(page, "#fact-field .leaks", "after epoch 2")
        open_tab(page, "Probe")
        unfold(page, "leaks-fold")
        says(page, "#leak-moment", "Measured after epoch 5, and not after epoch 2")
        says(page, "#leak-chart-title", RUN_SHOWN)
        open_tab(page, "Run")
        page.locator("#fact-field .scrubber input").press("End")
        open_tab(page, "Probe")
        says(page, "#leak-moment", "Measured after epoch 5.")


def test_pictures_stay_drawn_when_the_address_changes(browser, address):
    with visit(browser, address, "?run=example-adapop", reduced_motion="reduce") as page:
        page.locator("#outcome-chart .points path").first.wait_for()
        says(page, "#recall-chart-title", RUN_SHOWN)
        assert RUN_SHOWN not in page.inner_text("#outcome-chart-title"), "said once, for all pictures"
        again = []
        page.on("request", lambda request: again.append(request.url) if request.resource_type == "other" else None)
        page.locator("#fact-field .scrubber input").press("Home")
        assert "epoch=0" in page.url
        page.set_viewport_size({"width": 1000, "height": 900})
        page.wait_for_function("document.querySelector('#outcome-chart .main-svg').clientWidth < 1000")
        assert page.locator("[clip-path*='//']").count() == 0, "clips of another address are not found"
        assert again == [], "the page was asked for as if it were a picture"
        page.goto(address + "?story=2")
        page.locator("#story section.here canvas").first.wait_for()
        assert page.locator("#strip").is_hidden(), "a finished run needs no room of the Story"


COUNT_STORED = """(() => {
  const store = Storage.prototype.setItem;
  window.stored = 0;
  Storage.prototype.setItem = function (key, text) {
    if (key === "adapop-settings") window.stored += 1;
    return store.call(this, key, text);
  };
})()"""


def test_a_reload_that_another_cuts_short_keeps_the_settings(page):
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("10")
    page.get_by_text("in 10 epochs").first.wait_for()
    page.add_init_script(COUNT_STORED)
    page.reload()
    page.wait_for_function("window.stored >= 2")  # the first is what the browser had
    page.reload()
    page.get_by_text("in 10 epochs").first.wait_for()


def test_a_run_is_stopped_resumed_found_by_a_reload_and_expires_when_it_is_deleted(page, runs_folder):
    before = run_ids(runs_folder)
    page.evaluate(STOP_WHEN_RUNNING)
    start_run(page, epochs=10, batch=2)  # long enough to be stopped after its first epoch
    state_is(page, "stopped")
    page.click("#resume")
    logged(page, "Epoch 1 saved.")
    page.goto(page.url.partition("?")[0])
    page.wait_for_selector("#stop:not([disabled])")
    expect(page.locator("#start")).to_be_visible()
    page.goto(page.url.partition("?")[0] + "?story=3")
    page.wait_for_selector("#story section.here[aria-label^='Scene 3 ']")
    stop_run(page)
    open_tab(page, "Run")  # the Story shows no run that is over
    last_epoch = int(shown(page, "#strip", IS_KEPT))
    page.locator("#my-runs tr.current").get_by_text("stopped").wait_for()
    page.click("#resume")
    page.locator("#my-runs tr.current").get_by_text("under way").wait_for()
    logged(page, f"Epoch {last_epoch + 1} saved.")
    stop_run(page)
    page.wait_for_selector("#resume:not([disabled])")
    assert int(shown(page, "#strip", IS_KEPT)) > last_epoch, "it went on where it was"
    (run,) = run_ids(runs_folder) - before
    shutil.rmtree(runs_folder / run)
    page.reload()
    state_is(page, "expired")
    page.locator("#strip").get_by_text("deleted").wait_for()
    open_tab(page, "Run")
    page.get_by_text("1,280 steps in 10 epochs").wait_for()
    page.wait_for_selector("#start:not([disabled])")


def test_a_new_run_brings_its_charts_into_view_and_leaves_neither_answers_nor_the_moment_of_the_last(page):
    def rest() -> None:
        page.locator("#fact-field .scrubber input").press("Home")
        page.wait_for_function("new URL(location.href).searchParams.get('epoch') === '0'")

    start_run(page, epochs=10, batch=2)  # still going when it is looked at: at its end a card stands above the charts
    place = "document.querySelector('#fact-field .forget canvas')?.getBoundingClientRect().bottom"
    page.wait_for_function(f"{place} <= innerHeight")
    stop_run(page)
    start_run(page, epochs=1)
    state_is(page, "done")
    open_tab(page, "Probe")
    page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
    page.click("#ask")
    page.wait_for_selector("#answers .answers")
    open_tab(page, "Run")
    rest()
    start_run(page, epochs=1)
    page.wait_for_function("!new URL(location.href).searchParams.has('epoch')")
    state_is(page, "done")
    open_tab(page, "Probe")
    page.wait_for_selector("#answers .empty")
    open_tab(page, "Run")
    rest()
    open_tab(page, "Story")
    page.wait_for_function("!['tab', 'epoch'].some((name) => new URL(location.href).searchParams.has(name))")


def test_the_losses_have_their_lines_however_the_page_came_to_show_the_run(browser, address, visited):
    """A plot of Gradio that is drawn anew loses the data that come meanwhile."""
    line = "line => [...document.querySelectorAll('#loss-chart .mark-line path')].some((path) =>"
    drawn = f"{line} path.getAttribute('stroke') === line && (path.getAttribute('d') ?? '').length > 50)"
    last = """epoch => Math.max(...[...document.querySelectorAll('#loss-chart .role-axis-label text')]
      .filter((one) => one.closest('[aria-label^="X-axis"]')).map((one) => Number(one.textContent))) === epoch"""
    for kept, epochs in ((None, 5), (visited, 1)):  # the recorded run, and one of the visitor's own
        with visit(browser, address, "?tab=run", storage_state=kept) as page:
            for color in figures.LOSS_COLOR.values():
                if color != figures.LOSS_COLOR["to forget"]:  # of a run without scores
                    page.wait_for_function(drawn, arg=color)
            page.wait_for_function(last, arg=epochs)
            assert page.locator("#loss-legend span").all_inner_texts() == ["rare", "middle", "popular", "retained"]
            if kept:
                choose(page, "#lay-over", "Example: WGA")
                page.wait_for_function(drawn, arg=figures.EARLIER_COLOR["earlier run"])
                page.wait_for_function(last, arg=5)
                says(page, "#loss-legend", "earlier: WGA")


@pytest.mark.parametrize("width", [390, 1280])
def test_no_screen_is_wider_than_the_window(browser, address, visited, tmp_path, width):
    """Pictures of every screen are kept in $ADAPOP_SCREENSHOTS, if it is set."""
    folder = Path(os.environ.get("ADAPOP_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    with visit(browser, address, viewport={"width": width, "height": 900}, storage_state=visited) as page:
        state_is(page, "done")
        for name, last in DRAWN.items():
            open_tab(page, name)
            page.locator(last).first.wait_for(state="attached")
            if name == "Run":
                show_advanced(page)
                page.click("#training button")
                for panel in ("pressure-panel", "fading"):
                    unfold(page, panel)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.wait_for_function(f"document.body.classList.contains('dark') === {str(scheme == 'dark').lower()}")
                page.wait_for_timeout(0.3 * SECOND)  # until its charts have taken the window's width
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                assert page.evaluate(CUT_OFF) == [], name
                if name == "Run":
                    ink = page.locator("#loss-chart svg text").first.evaluate("one => getComputedStyle(one).fill")
                    assert ink == page.evaluate("getComputedStyle(document.body).color"), scheme
                picture = folder / f"{name.lower()}-{width}-{scheme}.png"
                page.screenshot(path=picture, full_page=True)
                assert picture.stat().st_size > 20_000, name
            if name == "Run" and width > 390:
                for chart in ("controller-chart", "loss-chart", "recall-chart", "outcome-chart"):
                    page.click(f"#{chart}-twin summary")
                    page.locator(f"#{chart}-twin tbody tr").first.wait_for()  # each has its numbers
