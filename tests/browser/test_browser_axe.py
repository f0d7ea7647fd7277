import pytest
from axe_playwright_python.sync_playwright import Axe

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
NOTHING_EMPTY = "() => ![...document.querySelectorAll('.empty')].some((one) => one.checkVisibility())"  # of Gradio's
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_violation_on_any_screen(browser, address, theme):
    with visit(browser, address, color_scheme=theme, reduced_motion="reduce") as page:
        for name, drawn in SCREENS.items():
            open_pressure(page) if name == "Pressure" else open_tab(page, name)
            page.locator(drawn).first.wait_for()
            page.wait_for_function(NOTHING_EMPTY)
            found = Axe().run(page).response
            assert len(found["passes"]) > 5, "it looked"
            serious = [one for one in found["violations"] if one["impact"] in SERIOUS]
            places = [(one["id"], node["target"], node["html"][:200]) for one in serious for node in one["nodes"]]
            assert places == [], (name, theme)
