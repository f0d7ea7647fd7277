"""The tour in a real browser: to the end, escaped in the middle, reloaded in the middle, and by a second visitor."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browsing import PROMPT, SECOND, open_tab, remembered, says, start_run, state_is, visit, write_table

pytestmark = pytest.mark.slow

LONG = 360 * SECOND  # two runs of five epochs and every question in every form
TYPED = "Who wrote Hamlet, please?"
QUESTION = "Who directed the film A Clockwork Orange?"
FACTS = [["id", "question", "answer", "subject", "score"]]
FACTS += [["a", "Who wrote the book Hamlet?", "Shakespeare", "Hamlet", "3766"]]
FACTS += [["b", "Who wrote the book Cymbeline?", "Shakespeare", "Cymbeline", "70"]]


@pytest.fixture(scope="module")
def settlement(browser, address, tmp_path_factory):
    """What a browser holds of a visitor with an upload, an anchor and a finished run of their own."""
    with visit(browser, address) as page:
        page.get_by_text("My own facts").click()
        table = write_table(
            tmp_path_factory.mktemp("own") / "pair.csv", FACTS
        )  # named like the set that the tour lends
        page.set_input_files("#upload input[type=file]", table)
        says(page, "#notes", "2 to forget")
        start_run(page, epochs=1)
        state_is(page, "done")
        open_tab(page, "Pressure")
        with remembered(page):
            page.get_by_label("Popular anchor: score").fill("2500")
            page.keyboard.press("Tab")
        page.wait_for_function("document.querySelector('#beta-curve').textContent.includes('2,500')")
        yield page.context.storage_state()


@pytest.fixture
def settled(browser, address, settlement):
    """That visitor's page, with a prompt of their own and a slider, looked at from Pressure."""
    with visit(browser, address, storage_state=settlement) as page:
        state_is(page, "done")
        says(page, "#notes", "2 to forget")
        open_tab(page, "Probe")
        page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes('Hamlet')")
        page.fill(PROMPT, TYPED)
        open_tab(page, "Pressure")
        page.get_by_label("number input for Confidence").fill("0.42")
        page.keyboard.press("Tab")
        page.wait_for_selector("#pressure-words >> text=At p = 0.42")
        yield page


def is_settled(page, reloaded: bool = False) -> None:
    """Whether all of it is as the visitor left it."""
    page.wait_for_selector("#tour", state="detached")
    state_is(page, "done")
    if not reloaded:
        page.wait_for_selector("[role=tab][aria-selected=true] >> text=Pressure")
    open_tab(page, "Facts")
    says(page, "#notes", "2 to forget")
    says(page, "#fact-table", "Cymbeline")
    page.wait_for_selector("#set input[value=own]:checked")
    open_tab(page, "Pressure")
    page.wait_for_function("document.querySelector('#beta-curve').textContent.includes('2,500')")
    if not reloaded:
        page.wait_for_selector("#pressure-words >> text=At p = 0.42")
    open_tab(page, "Run")
    says(page, "#event-log", "Epoch 1 saved.")
    expect(page.locator("#event-log")).not_to_contain_text("Epoch 2 saved.")
    open_tab(page, "Probe")
    if reloaded:
        page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes('Hamlet')")
    else:
        expect(page.locator(PROMPT)).to_have_value(TYPED)
        page.wait_for_timeout(1 * SECOND)  # what the pickers answer each other does not replace it
        expect(page.locator(PROMPT)).to_have_value(TYPED)


def forward(page, to: int) -> None:
    """On to a card."""
    page.click("#tour-forward")
    page.wait_for_selector(f"#tour-text .count >> text={to} of 8")


def begin(page) -> None:
    page.click("#tour-open")
    page.wait_for_selector("#tour-text .count >> text=1 of 8")


def shared_runs(runs_folder) -> set[str]:
    return {path.parent.name for path in runs_folder.glob("*/shared")}


def in_view(page, elem_id: str) -> None:
    """Waits until the top of what a card talks about stands below the card and inside the window."""
    page.wait_for_function(
        f"""() => {{ const target = document.getElementById('{elem_id}')?.getBoundingClientRect(),
        card = document.getElementById('tour').getBoundingClientRect();
        return target && target.height && target.top >= card.bottom && target.top < innerHeight - 40; }}"""
    )


def test_to_the_end_with_every_control_restored(settled, runs_folder):
    page = settled
    begin(page)
    page.wait_for_function("document.activeElement.tagName === 'H2'")
    page.get_by_role("region", name="Tour, card 1 of 8").wait_for()
    page.get_by_role("radio", name="Paths of Glory").check()
    says(page, "#fact-table", "Paths of Glory")
    forward(page, 2)
    forward(page, 3)
    page.wait_for_selector("#pressure-words >> text=At p = 0.90")
    forward(page, 4)
    page.wait_for_selector("#pressure-words >> text=At p = 0.05")
    page.get_by_label("number input for Confidence").fill("0.3")
    page.keyboard.press("Tab")
    page.wait_for_selector("#tour-text >> text=stands at 0.30")
    forward(page, 5)
    page.wait_for_selector("#tour-text >> text=After pass 5 of 5", timeout=LONG)
    page.wait_for_selector("#stop[disabled]")
    forward(page, 6)
    page.wait_for_selector("#tour-text >> text=blind spot")
    page.wait_for_selector("#controller-chart .plotly")
    forward(page, 7)
    page.wait_for_selector("#answers .answers", timeout=LONG)
    expect(page.locator(PROMPT)).to_have_value(QUESTION)
    expect(page.locator("#answers pre")).to_contain_text(QUESTION)
    page.click("#tour-forward")
    page.wait_for_selector("#tour-text >> text=in other words")
    expect(page.locator(PROMPT)).not_to_have_value(QUESTION, timeout=LONG)
    page.wait_for_selector("#answers .answers")
    expect(page.locator("#answers pre")).to_contain_text(page.input_value(PROMPT))
    forward(page, 8)
    page.wait_for_selector("#tour-text >> text=You guessed Paths of Glory.", timeout=LONG)
    page.locator("#tour-text tbody tr").nth(1).wait_for()
    assert len(shared_runs(runs_folder)) == 2
    page.click("#tour-forward")
    is_settled(page)
    page.get_by_role("button", name="Tour again").wait_for()


def test_escaped_in_the_middle(settled, runs_folder):
    page = settled
    before = shared_runs(runs_folder)
    begin(page)
    forward(page, 2)
    page.focus("#tour-forward")
    for card in (3, 4, 5):
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f"#tour-text .count >> text={card} of 8")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#tour-text .count >> text=4 of 8")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#tour-text .count >> text=5 of 8")
    page.click("#method input")
    page.wait_for_selector("ul[role=listbox]")
    page.keyboard.press("Escape")
    page.wait_for_selector("ul[role=listbox]", state="detached")
    page.wait_for_selector("#tour-text .count >> text=5 of 8")
    page.focus("#tour-forward")
    page.keyboard.press("Escape")
    is_left(page)
    page.click("#tour-open")  # at once, while the page is still being put back
    page.wait_for_selector("#tour-text .count >> text=1 of 8")
    forward(page, 2)
    page.keyboard.press("Escape")
    is_left(page)
    is_settled(page)
    says(page, "#tour-open", "3-minute tour")
    assert not before or shared_runs(runs_folder) == before


def is_left(page) -> None:
    """Waits until the tour is over and its button has the focus; it keeps it."""
    page.wait_for_selector("#tour", state="detached")
    page.wait_for_function("document.activeElement.id === 'tour-open'")
    page.wait_for_timeout(0.5 * SECOND)
    assert page.evaluate("document.activeElement.id") == "tour-open"


def test_reloaded_in_the_middle(settled):
    page = settled
    begin(page)
    for card in (2, 3, 4, 5):
        forward(page, card)
    page.reload()
    page.wait_for_selector("#strip .strip")
    is_settled(page, reloaded=True)


@pytest.mark.parametrize("width", [390, 1280])
def test_another_visitor_sees_the_same_runs_on_any_screen(browser, address, runs_folder, width, tmp_path):
    """Pictures of every card are kept in $ADAPOP_SCREENSHOTS, if it is set."""
    kept = Path(os.environ.get("ADAPOP_SCREENSHOTS") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)
    options = {"viewport": {"width": width, "height": 844}, "reduced_motion": "reduce"}
    rings = ["fact-table", "strip-chart", "beta-curve", "confidence", "recall-chart", "controller-chart", "answers"]
    with visit(browser, address, **options) as page:
        begin(page)
        for card, ring in enumerate([*rings, "outcome-chart"], 1):
            page.wait_for_selector(f"#tour-text .count >> text={card} of 8")
            in_view(page, ring)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, ring
                page.screenshot(path=kept / f"tour-{card}-{width}-{scheme}.png")
            if card < 8:
                page.click("#tour-forward")
            if card == 7:
                page.wait_for_selector("#tour-text >> text=in other words")
                page.click("#tour-forward")
        assert len(shared_runs(runs_folder)) == 2
        page.click("#tour-skip")
        page.wait_for_selector("#tour", state="detached")
