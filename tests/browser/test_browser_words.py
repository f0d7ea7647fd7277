import pytest

from browsing import SECOND, open_tab, visit, write_table

SCREENS = {
    "Facts": "#strip-chart .plotly",
    "Run": "#preflight li",
    "Probe": "#probe-notes li:last-child",  # the others are seen under Advanced
    "Compare": "#compare-cost .plotly",
}
MOST_SCREENS = 3  # windows one above the other, on a phone too; two on a laptop
SIZES = ((1280, 800), (390, 844))
# what the address opens, and what is there once it is drawn
OPENED = {"tab=pressure": "#beta-curve .fact"}
OPENED |= {f"run=example-{name}&tab=run": "#outcome-chart .point" for name in ("adapop", "smollm2")}
OPENED["run=example-adapop&tab=probe"] = "#every-way tbody tr"


def takes_little_room(page, width: int, height: int, most: int = MOST_SCREENS) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(SECOND)  # what is drawn last
    assert page.evaluate("document.documentElement.scrollHeight") <= most * height, "too tall"
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "too wide"


@pytest.mark.parametrize("query", OPENED)
def test_what_an_address_opens_takes_few_screens(browser, address, query):
    with visit(browser, address, f"?{query}", viewport=dict(zip(("width", "height"), SIZES[0]))) as page:
        page.locator(OPENED[query]).first.wait_for()
        if "run=" in query:
            page.locator("#result b, #every-way tr").first.wait_for()
        if "pressure" in query:  # a panel of Run, which the address opens
            page.wait_for_function("new URL(location.href).searchParams.get('tab') === 'run'")
        for size in SIZES:
            takes_little_room(page, *size)


def test_every_screen_takes_few_screens(browser, address):
    with visit(browser, address) as page:
        for name, place in SCREENS.items():
            page.set_viewport_size(dict(zip(("width", "height"), SIZES[0])))
            open_tab(page, name)
            page.locator(place).first.wait_for()
            for size in SIZES:
                takes_little_room(page, *size)


def test_a_table_of_one_s_own_takes_few_screens_before_it_is_there_and_afterwards(browser, address, tmp_path):
    rows = [[f"What is the capital of the country {number}?", f"Town {number}", number**2] for number in range(1, 61)]
    table = write_table(tmp_path / "sixty.csv", [["question", "answer", "score"], *rows])
    with visit(browser, address, "?tab=facts") as page:
        page.get_by_text("My own facts").click()
        for there in ("No file yet", "Forget set: 60;"):
            if there != "No file yet":
                page.set_input_files("#upload input[type=file]", table)
            page.locator("#notes").get_by_text(there).wait_for()
            for size in SIZES:
                takes_little_room(page, *size)


def test_a_finished_run_of_one_s_own_and_every_screen_beside_it_too(browser, address, visited):
    with visit(browser, address, storage_state=visited) as page:
        for name, place in (SCREENS | {"Probe": "#ask-every-way", "Run": "#outcome-chart .point"}).items():
            open_tab(page, name)
            page.locator(place).first.wait_for()
            if name == "Run":  # its one epoch moves nothing, as the page says at Start too
                page.get_by_label("number input for Epochs").fill("5")
                page.get_by_text("in 5 epochs").first.wait_for()
            takes_little_room(page, *SIZES[0], most=2)
        open_tab(page, "Run")
        page.click(".my-runs summary")
        buttons = page.locator(".my-runs .acts button")
        buttons.last.wait_for()
        takes_little_room(page, *SIZES[1])
        boxes = [button.bounding_box() for button in buttons.all()]
        assert all(box["x"] + box["width"] <= 390 - 32 for box in boxes), "what can be done is seen without a swipe"
