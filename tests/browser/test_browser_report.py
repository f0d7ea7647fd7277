import re

import pytest

from adapop.report import write_report
from adapop.runs.examples import example
from hostile_runs import HOSTILE, hostile_run


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_report_opens_offline_in_a_browser(browser, finished, other, tmp_path, width, scheme):
    path = write_report([finished, other], tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    tab, errors, urls = context.new_page(), [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: urls.append(request.url))
    tab.goto(path.as_uri())
    drawn = "[...document.querySelectorAll('figure')].every(figure => figure.querySelector('.main-svg'))"
    tab.wait_for_function(drawn)
    assert errors == [] and [url for url in urls if not url.startswith("data:")] == [path.as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 29)"}[scheme]
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    rights = "[...document.querySelectorAll('figure .main-svg')].map(one => one.getBoundingClientRect().right)"
    assert max(tab.evaluate(rights)) <= width
    context.close()


def test_in_the_dark_a_report_s_intervals_and_numbers_are_seen(browser, tmp_path):
    path = write_report([example("adapop")], tmp_path / "report.html")
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    tab.goto(path.as_uri())
    tab.wait_for_function(
        "document.querySelector('figure .yerror') && document.querySelector('figure .textpoint text')"
    )
    rgb = "(of, name) => getComputedStyle(of)[name].match(/[\\d.]+/g).map(Number)"
    for place, name in ((".yerror", "stroke"), (".textpoint text", "fill")):
        color = tab.locator(f"figure {place}").first.evaluate(f"one => ({rgb})(one, '{name}')")
        assert min(color[:3]) > 150 and color[3:] in ([], [1]), f"{place} stands out from the dark ground"
    tab.close()


@pytest.mark.parametrize("names", [("adapop",), ("wga", "adapop", "shuffled")])
def test_a_report_is_at_most_six_screens(browser, tmp_path, names):
    path = write_report([example(name) for name in names], tmp_path / "report.html")
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(path.as_uri())
    tab.wait_for_function("document.querySelector('figure .main-svg')")
    assert 1 < tab.evaluate("document.documentElement.scrollHeight") / 800 <= 6
    tab.close()


def test_hostile_text_stays_text(browser, tmp_path):
    run = hostile_run(tmp_path)
    path = write_report([run, run], tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert "<img" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    context = browser.new_context()
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(path.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
    shown = " ".join(tab.inner_text("body").split())
    assert shown.count(" ".join(HOSTILE.split())) > 10 and tab.evaluate("window.hacked") is None
    assert tab.evaluate("document.querySelectorAll('img').length") == 0 and errors == []
    context.close()
