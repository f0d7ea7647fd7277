"""What a screen says before anybody does anything: few words, on few screens, on a phone too."""

import pytest

from browsing import SECOND, open_tab, visit

pytestmark = pytest.mark.slow

MOST_WORDS = 90
SCREENS = {
    "Facts": "#strip-chart .plotly",
    "Pressure": "#relative-push .plotly",
    "Run": "#preflight li",
    "Probe": "#probe-recorded li",
    "Compare": "#compare-cost .plotly",
}
MOST_SCREENS = 2
# what the address opens, and what is there once it is drawn
OPENED = {f"tab={name.lower()}": place for name, place in SCREENS.items()}
OPENED |= {f"run=example-{name}&tab=run": "#outcome-chart .point" for name in ("adapop", "wga", "smollm2")}
OPENED |= {f"run=example-{name}&tab=probe": "#every-way tbody tr" for name in ("adapop", "wga")}
# words that can be seen, without those of tables and of axes
WORDS = """() => {
  const panel = [...document.querySelectorAll('[role=tabpanel]')].find((one) => one.offsetParent);
  const walker = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT), said = [];
  for (let node; (node = walker.nextNode()); ) {
    const at = node.parentElement;
    const left = at.closest('table, svg, style, .grid, #fact-table, #leak-table');
    if (left || !at.checkVisibility({ visibilityProperty: true })) continue;
    said.push(...node.textContent.split(/\\s+/).filter((word) => /\\p{L}|\\p{N}/u.test(word)));
  }
  return said;
}"""


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_says_little_before_anybody_does_anything(page, name):
    open_tab(page, name)
    page.locator(SCREENS[name]).first.wait_for()
    said = page.evaluate(WORDS)
    assert len(said) > 15, "the counter sees nothing"
    assert len(said) <= MOST_WORDS, " ".join(said)


@pytest.mark.parametrize("query", [query for query in OPENED if query.startswith("run=")])
def test_a_recorded_run_says_little_too(browser, address, query):
    with visit(browser, address, f"?{query}") as page:
        page.locator(OPENED[query]).first.wait_for()
        page.locator("#result b, #every-way tr").first.wait_for()
        said = page.evaluate(WORDS)
        assert len(said) > 15, "the counter sees nothing"
        assert len(said) <= MOST_WORDS, " ".join(said)


def test_every_screen_says_little_beside_a_finished_run_of_one_s_own(browser, address, visited):
    with visit(browser, address, storage_state=visited, viewport={"width": 1280, "height": 800}) as page:
        for name, place in (SCREENS | {"Run": "#outcome-chart .point", "Probe": "#ask-every-way"}).items():
            open_tab(page, name)
            page.locator(place).first.wait_for()
            page.wait_for_timeout(SECOND)
            said = page.evaluate(WORDS)
            assert 15 < len(said) <= MOST_WORDS, " ".join(said)
            assert page.evaluate("document.documentElement.scrollHeight") <= MOST_SCREENS * 800, name


def test_a_finished_run_of_one_s_own_and_the_list_of_them_take_two_screens_of_a_phone(browser, address, visited):
    with visit(browser, address, "?tab=run", storage_state=visited, viewport={"width": 390, "height": 844}) as page:
        page.locator("#outcome-chart .point").first.wait_for()
        buttons = page.locator(".my-runs .acts button")
        buttons.last.wait_for()
        page.wait_for_timeout(SECOND)
        assert page.evaluate("document.documentElement.scrollHeight") <= MOST_SCREENS * 844
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        boxes = [button.bounding_box() for button in buttons.all()]
        assert all(box["x"] + box["width"] <= 390 - 32 for box in boxes), "what can be done is seen without a swipe"


def test_what_explains_a_setting_beside_a_run_is_there_where_one_comes_to_it(browser, address, visited):
    with visit(browser, address, storage_state=visited) as page:
        open_tab(page, "Run")
        page.locator("#outcome-chart .point").first.wait_for()
        about = page.locator("#run-row .info-text")
        assert not any(one.is_visible() for one in about.all())
        page.get_by_label("Method").first.focus()
        page.locator("#run-row").get_by_text("Pushes each fact by its popularity").wait_for()


@pytest.mark.parametrize("step", range(1, 7))
def test_a_step_of_the_story_says_little_too(browser, address, step):
    with visit(browser, address, f"?story={step}") as page:
        page.locator(f"#story section[aria-label^='Step {step} ']:not([hidden]) .words").wait_for()
        said = page.evaluate(WORDS)
        assert len(said) > 15, "the counter sees nothing"
        assert len(said) <= MOST_WORDS, " ".join(said)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_nothing_is_taller_than_two_screens_nor_wider_than_one(browser, address, width, height):
    tall = {}
    for query, place in OPENED.items():
        with visit(browser, address, f"?{query}", viewport={"width": width, "height": height}) as page:
            page.locator(place).first.wait_for()
            page.wait_for_timeout(SECOND)  # what is drawn last
            tall[query] = round(page.evaluate("document.documentElement.scrollHeight") / height, 2)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, query
    assert max(tall.values()) <= MOST_SCREENS, tall
