"""The tour in a real browser: to the end, escaped in the middle, reloaded in the middle, and by a second visitor."""

import pytest

from browsing import SECOND, open_tab, state_is, write_table

PROMPT = "#prompt textarea, #prompt input"
FACTS = [["id", "question", "answer", "subject", "score"]]
FACTS += [["a", "Who wrote the book Hamlet?", "Shakespeare", "Hamlet", "3766"]]
FACTS += [["b", "Who wrote the book Cymbeline?", "Shakespeare", "Cymbeline", "70"]]


@pytest.fixture
def settled(page, tmp_path):
    """A page with an upload, anchors, a slider and a finished run of the visitor's own, looked at from Pressure."""
    page.set_default_timeout(60 * SECOND)
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", write_table(tmp_path / "mine.csv", FACTS))
    page.get_by_text("2 to forget").wait_for()
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("1")
    page.click("#start")
    state_is(page, "done")
    open_tab(page, "Probe")
    page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes('Hamlet')")
    page.fill(PROMPT, "Who wrote Hamlet, please?")
    open_tab(page, "Pressure")
    page.get_by_label("Popular anchor: score").fill("2500")
    page.get_by_label("number input for Confidence").fill("0.42")
    page.keyboard.press("Tab")
    page.wait_for_selector("#pressure-words >> text=At p = 0.42")
    return page


def is_settled(page, reloaded: bool = False) -> None:
    """Whether all of it is as the visitor left it."""
    page.wait_for_selector("#tour", state="detached")
    state_is(page, "done")
    if not reloaded:
        assert page.get_by_role("tab", name="Pressure").get_attribute("aria-selected") == "true"
    open_tab(page, "Facts")
    page.get_by_text("2 to forget").wait_for()
    page.wait_for_function("document.querySelector('#fact-table').textContent.includes('Cymbeline')")
    assert page.locator("#set input:checked").get_attribute("value") == "own"
    open_tab(page, "Pressure")
    page.wait_for_function("document.querySelector('#beta-curve').textContent.includes('2,500')")
    if not reloaded:
        page.wait_for_selector("#pressure-words >> text=At p = 0.42")
    open_tab(page, "Run")
    page.get_by_text("Epoch 1 saved.").wait_for()
    assert page.locator("#event-log >> text=Epoch 2 saved.").count() == 0
    open_tab(page, "Probe")
    page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes('Hamlet')")
    if not reloaded:
        page.wait_for_function(f"document.querySelector('{PROMPT}').value === 'Who wrote Hamlet, please?'")


def forward(page, to: int) -> None:
    """On to a card."""
    page.click("#tour-forward")
    page.wait_for_selector(f"#tour-text .count >> text={to} of 8")


def begin(page) -> None:
    page.click("#tour-open")
    page.wait_for_selector("#tour-text .count >> text=1 of 8")


def shared_runs(runs_folder) -> set[str]:
    return {path.parent.name for path in runs_folder.glob("*/shared")}


def in_view(page, elem_id: str) -> bool:
    """Whether the top of what a card talks about stands below the card and inside the window."""
    return page.evaluate(
        f"""() => {{ const target = document.getElementById('{elem_id}').getBoundingClientRect(),
        card = document.getElementById('tour').getBoundingClientRect();
        return target.top >= card.bottom && target.top < innerHeight - 40; }}"""
    )


def test_to_the_end_with_every_control_restored(settled, runs_folder):
    page = settled
    begin(page)
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert page.get_by_role("region", name="Tour, card 1 of 8").count() == 1
    page.get_by_role("radio", name="Paths of Glory").check()
    page.wait_for_function("document.querySelector('#fact-table').textContent.includes('Paths of Glory')")
    forward(page, 2)
    forward(page, 3)
    page.wait_for_selector("#pressure-words >> text=At p = 0.90")
    forward(page, 4)
    page.wait_for_selector("#pressure-words >> text=At p = 0.05")
    page.get_by_label("number input for Confidence").fill("0.3")
    page.keyboard.press("Tab")
    page.wait_for_selector("#tour-text >> text=It stands at 0.30")
    forward(page, 5)
    page.wait_for_selector("#tour-text >> text=After pass 5 of 5", timeout=120 * SECOND)
    assert page.locator("#stop").is_disabled()
    forward(page, 6)
    page.wait_for_selector("#tour-text >> text=blind spot")
    page.wait_for_selector("#controller-chart .plotly")
    forward(page, 7)
    page.wait_for_selector("#answers .answers", timeout=120 * SECOND)
    assert page.input_value(PROMPT) == "Who directed the film A Clockwork Orange?"
    page.click("#tour-forward")
    page.wait_for_selector("#tour-text >> text=in other words")
    page.wait_for_function(f"!document.querySelector('{PROMPT}').value.startsWith('Who directed the film')")
    page.wait_for_selector("#answers .answers")
    forward(page, 8)
    page.wait_for_selector("#tour-text >> text=You guessed Paths of Glory.", timeout=120 * SECOND)
    assert page.locator("#tour-text tbody tr").count() == 2
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
    page.keyboard.press("Escape")
    page.wait_for_selector("#tour", state="detached")
    page.wait_for_function("document.activeElement.id === 'tour-open'")
    is_settled(page)
    assert page.inner_text("#tour-open") == "3-minute tour"
    assert not before or shared_runs(runs_folder) == before


def test_reloaded_in_the_middle(settled):
    page = settled
    begin(page)
    for card in (2, 3, 4, 5):
        forward(page, card)
    page.reload()
    page.wait_for_selector("#strip .strip")
    is_settled(page, reloaded=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_another_visitor_sees_the_same_runs_on_any_screen(browser, address, runs_folder, width, scheme, tmp_path):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(60 * SECOND)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    begin(page)
    rings = ["fact-table", "strip-chart", "beta-curve", "confidence", "recall-chart", "controller-chart", "answers"]
    for card, ring in enumerate([*rings, "outcome-chart"], 1):
        page.wait_for_selector(f"#tour-text .count >> text={card} of 8")
        page.wait_for_selector(f"#{ring}")
        page.wait_for_timeout(1.5 * SECOND)
        assert in_view(page, ring), ring
        assert page.evaluate("document.documentElement.scrollWidth") <= width, ring
        page.screenshot(path=tmp_path / f"tour-{card}-{width}-{scheme}.png")
        if card < 8:
            page.click("#tour-forward")
        if card == 7:
            page.wait_for_selector("#tour-text >> text=in other words")
            page.click("#tour-forward")
    assert len(shared_runs(runs_folder)) == 2
    page.click("#tour-skip")
    page.wait_for_selector("#tour", state="detached")
    context.close()
