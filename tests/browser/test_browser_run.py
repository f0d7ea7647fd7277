import shutil

from playwright.sync_api import expect

from adapop.report import figures
from browsing import (
    PROMPT,
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

SLOWLY = {"batch": 4}  # many steps
KEPT = "localStorage.getItem('adapop-settings')"
# Stop and the strip must come together: a click on a button that is not there yet is lost
STOP_WHEN_RUNNING = """() => { const strip = document.getElementById('strip'), stop = document.getElementById('stop');
  new MutationObserver(() => setTimeout(() => {
    if (strip.querySelector('.strip.running') && !window.clicked) { window.clicked = true; stop.click(); }
  }, 50)).observe(strip, { childList: true, subtree: true, attributes: true }); }"""
IS_KEPT = r"Epoch (\d+) of 10 is kept"
# in Present, on a screen 1,920 wide: so many plotly charts are seen, and their words are 24 pixels high
READ_IN_A_HALL = """charts => {
  const seen = [...document.querySelectorAll(".js-plotly-plot")].filter((one) => one.checkVisibility());
  const texts = seen.flatMap((one) => [...one.querySelectorAll("text")]);
  const words = texts.filter((one) => one.getClientRects().length && one.textContent.trim());
  const high = (one) => {
    const picture = one.closest("svg"), wide = picture.getBoundingClientRect().width;
    return (parseFloat(getComputedStyle(one).fontSize) * wide) / picture.width.baseVal.value;
  };
  return seen.length >= charts && words.length && words.every((one) => high(one) >= 24);
}"""
# a line of the chart of losses, by its colour; the last number of its axis
LOSS_IS_DRAWN = """line => [...document.querySelectorAll('#loss-chart .mark-line path')].some((path) =>
  path.getAttribute('stroke') === line && (path.getAttribute('d') ?? '').length > 50)"""
LAST_EPOCH_IS = """epoch => Math.max(...[...document.querySelectorAll('#loss-chart .role-axis-label text')]
  .filter((one) => one.closest('[aria-label^="X-axis"]')).map((one) => Number(one.textContent))) === epoch"""
IN_SIGHT = "document.querySelector('#fact-field .forget canvas')?.getBoundingClientRect().bottom <= innerHeight"
HOME_AT_ONCE = """() => {
  document.querySelector("[role=tab][data-tab-id=run]").click();
  document.querySelector("#fact-field .scrubber input").dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
}"""
COUNT_STORED = """(() => {
  const store = Storage.prototype.setItem;
  window.stored = 0;
  Storage.prototype.setItem = function (key, text) {
    if (key === "adapop-settings") window.stored += 1;
    return store.call(this, key, text);
  };
})()"""


def test_the_plan_follows_the_settings_which_a_cut_short_reload_keeps_and_a_set_and_a_method_change(page):
    model_is = "title => document.querySelector('#model input').value.startsWith(title)"
    for name, model, steps in (("Invented people", "People", 90), ("Sandbox world", "Sandbox", 80)):
        page.get_by_text(name).click()
        open_tab(page, "Run")
        page.wait_for_function(model_is, arg=model)  # which the set is about
        page.get_by_text(f"{steps} steps in 5 epochs").wait_for()
        page.get_by_text("Changed:").wait_for(state="hidden")
        open_tab(page, "Facts")
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("2")
    page.get_by_text("32 steps in 2 epochs").wait_for()
    show_advanced(page)
    unfold(page, "protects")
    before = page.evaluate(KEPT)
    page.fill("#knob-tolerance input", "0.3")
    page.get_by_text("Changed: ε, drift that is tolerated: 0.3 (preset 0.1)").wait_for()
    page.wait_for_function(f"before => {KEPT} !== before", arg=before)
    page.add_init_script(COUNT_STORED)
    page.reload()
    page.wait_for_function("window.stored >= 2")  # the first is what the browser had
    page.reload()
    page.get_by_text("32 steps in 2 epochs").wait_for()
    page.get_by_text("Changed: ε, drift that is tolerated: 0.3 (preset 0.1)").wait_for()
    unfold(page, "advanced")
    page.get_by_role("button", name="Back to the preset's values").click()
    page.get_by_text("Changed: ε").wait_for(state="hidden")
    unfold(page, "protects")
    choose(page, "#method", "WGA")
    page.wait_for_function("document.querySelector('#knob-alpha0 input').value === '1'")  # another method's own
    page.get_by_text("Changed:").wait_for(state="hidden")

    here = "new URL(location.href).searchParams"
    page.locator("#fact-field .scrubber input").wait_for()
    open_tab(page, "Probe")
    page.wait_for_function(f"{here}.get('tab') === 'probe'")
    page.evaluate(HOME_AT_ONCE)  # the tab tells the page that it is open a little after it is
    page.wait_for_function(f"{here}.get('tab') === 'run'")
    assert page.evaluate(f"{here}.get('epoch')") == "0", "the moment stays in the address"


def losses_are_drawn(page, epochs: int) -> None:
    """Waits until each line of the chart of losses is there: a plot of Gradio that is drawn anew loses the data that
    come meanwhile."""
    for color in figures.LOSS_COLOR.values():
        if color != figures.LOSS_COLOR["forget set"]:  # of a run without scores
            page.wait_for_function(LOSS_IS_DRAWN, arg=color)
    page.wait_for_function(LAST_EPOCH_IS, arg=epochs)
    assert page.locator("#loss-legend span").all_inner_texts() == ["rare", "middle", "popular", "retain set"]


def test_one_scrubber_drives_all_that_shows_a_moment_and_the_address_keeps_it(browser, address):
    with visit(browser, address, "?run=example-adapop", reduced_motion="reduce") as page:
        page.locator("#recall-chart .cursor").wait_for()
        losses_are_drawn(page, 5)
        says(page, "#recall-chart-title", RUN_SHOWN)
        assert RUN_SHOWN not in page.inner_text("#outcome-chart-title"), "said once, for all pictures"
        scrubber = page.locator("#fact-field .scrubber input")
        place = "document.querySelector('#recall-chart .cursor').style.left"
        leaks, answers = page.locator("#fact-field .leaks"), page.locator("#fact-field .answer.unlearned")
        says(page, "#fact-field .leaks", "after epoch 5")
        end = page.evaluate(place)
        held = page.locator("#fact-field .clouds > :last-child")
        assert held.locator(".of").inner_text() == "Held-out facts"
        assert "after epoch 5" in held.locator("canvas").get_attribute("aria-label"), "the cost, at the same moment"
        scrubber.press("Home")
        says(page, "#fact-field .leaks", "before")
        assert "before" in held.locator("canvas").get_attribute("aria-label")
        assert {*leaks.locator("td").all_text_contents()} == {"100%"}
        says(page, "#fact-field .answer.unlearned", "not begun")
        assert page.evaluate(f"parseFloat({place})") < float(end.removesuffix("px")) / 2
        page.locator("#fact-field .forget canvas").press("Home")
        page.keyboard.press("Enter")
        for _ in range(4):
            scrubber.press("ArrowRight")
        says(page, "#fact-field .leaks", "after epoch 2")
        assert "epoch=2" in page.url and "pin=" in page.url
        locators = (leaks, answers, page.locator("#fact-field .moment .asked"))
        now = [one.text_content() for one in locators]
        page.reload()
        says(page, "#fact-field .leaks", "after epoch 2")
        assert "epoch=2" in page.url and "pin=" in page.url
        assert now == [one.text_content() for one in locators]
        assert page.locator("#fact-field .leaks .set-back").count() == 0

        open_tab(page, "Probe")
        unfold(page, "leaks-fold")
        says(page, "#leak-moment", "Measured after epoch 5, and not after epoch 2")
        says(page, "#leak-chart-title", RUN_SHOWN)
        open_tab(page, "Run")
        scrubber.press("ArrowRight")
        says(page, "#fact-field .leaks", "last asked after epoch 2")
        assert page.locator("#fact-field .leaks .set-back").count() == 1
        scrubber.press("End")
        open_tab(page, "Probe")
        says(page, "#leak-moment", "Measured after epoch 5.")
        open_tab(page, "Run")

        page.locator("#outcome-chart .points path").first.wait_for()
        again = []
        page.on("request", lambda request: again.append(request.url) if request.resource_type == "other" else None)
        scrubber.press("Home")
        assert "epoch=0" in page.url
        page.set_viewport_size({"width": 1000, "height": 900})
        page.wait_for_function("document.querySelector('#outcome-chart .main-svg').clientWidth < 1000")
        assert page.locator("[clip-path*='//']").count() == 0, "clips of another address are not found"
        assert again == [], "the page was asked for as if it were a picture"
        open_tab(page, "Story")
        page.locator("#story section.here").wait_for()
        page.locator("#strip").wait_for(state="hidden")  # a finished run needs no room of the Story


def test_in_present_the_type_of_every_chart_is_read_from_the_last_row(browser, address):
    hall = {"width": 1920, "height": 1080}
    with visit(browser, address, "?run=example-adapop&tab=run", viewport=hall) as page:
        page.locator("#outcome-chart .point").first.wait_for(state="attached")
        page.click("#present")
        for name, charts in {"Run": 3, "Compare": 2, "Facts": 1}.items():
            open_tab(page, name)
            page.wait_for_function(READ_IN_A_HALL, arg=charts)


def test_a_new_run_comes_into_view_and_is_followed_until_the_visitor_goes_back(page):
    start_run(page, epochs=10, **SLOWLY)  # still going when it is looked at: at its end a card stands above the charts
    page.wait_for_function(IN_SIGHT)
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


def test_a_run_is_stopped_resumed_found_by_a_reload_and_expires_when_it_is_deleted(page, runs_folder):
    before = run_ids(runs_folder)
    page.evaluate(STOP_WHEN_RUNNING)
    start_run(page, epochs=10, **SLOWLY)  # long enough to be stopped after its first epoch
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
    page.click("#my-runs summary")
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
    page.get_by_text("640 steps in 10 epochs").wait_for()
    page.wait_for_selector("#start:not([disabled])")


def test_a_new_run_leaves_neither_answers_nor_the_moment_of_the_last(browser, address, visited):
    with visit(browser, address, "?tab=run", storage_state=visited) as page:

        def rest() -> None:
            page.locator("#fact-field .scrubber input").press("Home")
            page.wait_for_function("new URL(location.href).searchParams.get('epoch') === '0'")

        state_is(page, "done")
        open_tab(page, "Probe")
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        page.click("#ask")
        page.wait_for_selector("#answers .answers")
        open_tab(page, "Run")
        rest()
        start_run(page, epochs=1, measure_per_tier=4)
        page.wait_for_function("!new URL(location.href).searchParams.has('epoch')")
        state_is(page, "done")
        open_tab(page, "Probe")
        page.wait_for_selector("#answers .empty")
        open_tab(page, "Run")
        rest()
        open_tab(page, "Story")
        page.wait_for_function("!['tab', 'epoch'].some((name) => new URL(location.href).searchParams.has(name))")


def test_the_losses_of_one_s_own_run_have_their_lines(browser, address, visited):
    with visit(browser, address, "?tab=run", storage_state=visited) as page:
        losses_are_drawn(page, 1)
        choose(page, "#lay-over", "Example: WGA")
        page.wait_for_function(LOSS_IS_DRAWN, arg=figures.EARLIER_COLOR["earlier run"])
        page.wait_for_function(LAST_EPOCH_IS, arg=5)
        says(page, "#loss-legend", "earlier: WGA")
