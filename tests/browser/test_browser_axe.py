import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from browsing import open_pressure, open_tab, visit

# by screen, what is there once it is drawn
SCREENS = {
    "Story": "#story section.here",
    "Facts": "#fact-table [data-testid='cell-0-0']",
    "Run": "#recall-chart .plotly",
    "Pressure": "#beta-curve .fact",
    "Probe": "#fact input",
    "Compare": "#compare-cost .plotly",
}
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_violation_on_any_screen(browser, address, theme):
    with visit(browser, address, color_scheme=theme, reduced_motion="reduce") as page:
        for name, drawn in SCREENS.items():
            open_pressure(page) if name == "Pressure" else open_tab(page, name)
            page.locator(drawn).first.wait_for()
            found = Axe().run(page).response
            assert len(found["passes"]) > 5, "it looked"
            serious = [one for one in found["violations"] if one["impact"] in SERIOUS]
            places = [(one["id"], node["target"], node["html"][:200]) for one in serious for node in one["nodes"]]
            assert places == [], (name, theme)


def test_arrow_keys_turn_the_tabs_and_a_key_opens_a_word_of_the_glossary(browser, address):
    with visit(browser, address, "?story=1") as page:
        page.locator("#story section.here").wait_for()
        for key, name in (("ArrowRight", "Facts"), ("End", "Compare"), ("ArrowRight", "Story")):
            page.locator("[role=tab][aria-selected=true]:visible").press(key)
            tab = page.get_by_role("tab", name=name)
            expect(tab).to_be_focused()
            expect(tab).to_have_attribute("aria-selected", "true")
        word, meaning = (page.locator(f"#story {one}", has_text="popularity gap") for one in (".word", ".meaning"))
        word.press("Enter")
        expect(meaning).to_contain_text("minus that of rare ones")
        page.keyboard.press("Escape")
        expect(meaning).to_be_hidden()
