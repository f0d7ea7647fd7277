"""Runs that outlive the page, in a real browser: settings kept, a second tab, a link, a deleted run, screenshots."""

import os
import shutil
from pathlib import Path

import pytest

from browsing import SECOND, open_tab, state_is

SCREENS = ("Facts", "Pressure", "Run", "Probe", "Compare")


def short_run(page) -> str:
    """Starts a run of one epoch and waits for its end. Returns the path of its link."""
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("1")
    page.click("#start")
    state_is(page, "done")
    page.wait_for_selector("#copy-link")
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    page.click("#copy-link")
    page.get_by_text("Link copied").wait_for()
    return page.evaluate("window.copied")


def test_the_plan_follows_the_settings_and_a_reload_keeps_them(page):
    open_tab(page, "Run")
    page.get_by_text("80 steps in 5 epochs").wait_for()
    page.get_by_label("number input for Epochs").fill("2")
    page.get_by_text("32 steps in 2 epochs").wait_for()
    page.click("#advanced")
    page.fill("#knob-tolerance input", "0.3")
    page.get_by_text("Changed: ε, drift that is tolerated: 0.3 (preset 0.1)").wait_for()
    page.wait_for_timeout(1.5 * SECOND)  # until the browser has kept it
    page.reload()
    open_tab(page, "Run")
    page.get_by_text("32 steps in 2 epochs").wait_for()
    page.get_by_text("Changed: ε, drift that is tolerated: 0.3 (preset 0.1)").wait_for()
    page.click("#advanced")
    page.get_by_role("button", name="Back to the preset's values").click()
    page.get_by_text("Changed: ε").wait_for(state="hidden")


def test_another_method_brings_its_own_settings(page):
    open_tab(page, "Run")
    page.click("#advanced")
    page.click("#method input")
    page.get_by_role("option", name="WGA").click()
    page.wait_for_function("document.querySelector('#knob-alpha0 input').value === '1'")
    page.get_by_text("Changed:").wait_for(state="hidden")


def test_a_second_tab_a_closed_page_and_a_second_device_find_the_run(browser, address):
    mine, theirs = browser.new_context(), browser.new_context()
    page = mine.new_page()
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("3")
    page.click("#start")
    state_is(page, "starting", "running", "measuring")
    second = mine.new_page()
    second.goto(address)
    state_is(second, "starting", "running", "measuring", "done")
    page.close()
    second.close()
    back = mine.new_page()
    back.goto(address)
    state_is(back, "starting", "running", "measuring", "done")
    state_is(back, "done")
    open_tab(back, "Run")
    back.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    back.click("#copy-link")
    back.get_by_text("Link copied").wait_for()
    phone = theirs.new_page()
    phone.goto(back.evaluate("window.copied"))
    state_is(phone, "done")
    open_tab(phone, "Run")
    phone.get_by_text("Epoch 3 saved.").wait_for()
    stranger = browser.new_context().new_page()
    stranger.goto(f"{address}?run=../../etc")
    state_is(stranger, "ready")
    stranger.context.close()
    mine.close()
    theirs.close()


def test_stop_twice_is_stop_once(page):
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("10")  # long enough to be stopped
    page.get_by_text("160 steps in 10 epochs").wait_for()
    page.click("#start")
    state_is(page, "running")
    page.evaluate("const stop = document.querySelector('#stop'); stop.click(); stop.click();")
    state_is(page, "stopped")
    assert "kept" in page.inner_text("#strip") or "No epoch" in page.inner_text("#strip")
    page.wait_for_selector("#start:not(:disabled)")


def test_a_deleted_run_is_expired_and_can_be_started_again(page, runs_folder):
    link = short_run(page)
    shutil.rmtree(runs_folder / link.partition("run=")[2])
    page.reload()
    state_is(page, "expired")
    assert "deleted" in page.inner_text("#strip")
    open_tab(page, "Run")
    page.get_by_text("16 steps in 1 epoch.").wait_for()
    page.click("#start")
    state_is(page, "done")


def test_a_slash_goes_to_the_question_box(page):
    for _ in range(30):  # the page's keys work a moment after its first picture
        page.keyboard.press("/")
        page.wait_for_timeout(0.5 * SECOND)
        if page.evaluate("document.activeElement.closest('#prompt') !== null"):
            break
    else:
        pytest.fail("the slash did not go to the question box")
    page.keyboard.press("Control+A")
    page.keyboard.type("a/b")
    assert page.input_value("#prompt textarea, #prompt input") == "a/b"


def test_every_chart_has_its_numbers_as_a_table(page):
    short_run(page)
    for chart in ("controller-chart", "loss-chart", "recall-chart", "outcome-chart"):
        page.click(f"#{chart}-twin summary")
        assert page.locator(f"#{chart}-twin tbody tr").count() >= 1
    open_tab(page, "Pressure")
    page.click("#push-curves-twin summary")
    assert page.locator("#push-curves-twin thead th").count() == 4
    page.click("#beta-curve-twin summary")
    assert page.locator("#beta-curve-twin tbody tr").count() >= 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_screen_is_wider_than_the_window(browser, address, tmp_path, width, scheme):
    """Pictures of every screen are kept in $ADAPOP_SCREENSHOTS, if it is set."""
    kept = Path(os.environ.get("ADAPOP_SCREENSHOTS") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    short_run(page)
    for name in SCREENS:
        open_tab(page, name)
        page.wait_for_timeout(0.7 * SECOND)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        picture = kept / f"{name.lower()}-{width}-{scheme}.png"
        page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 20_000, name
    page.close()
