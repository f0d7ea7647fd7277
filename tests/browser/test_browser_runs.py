from adapop.facts.world import sandbox_facts
from browsing import (
    HOSTILE,
    LAPTOP,
    PHONE,
    SECOND,
    open_tab,
    reach_by_tab,
    says,
    start_run,
    state_is,
    stop_run,
    visit,
    write_table,
)

ADVANCED = ("#preset", "#rate", "#protects", "#advanced", "#check")


def test_start_is_in_sight_and_near_and_the_browser_keeps_what_is_switched_on(browser, address):
    with visit(browser, address, "?tab=run", viewport=PHONE, color_scheme="light") as page:
        says(page, "#preflight", "80 steps in 5 epochs")
        start = page.locator("#start:not([disabled])")
        start.wait_for()
        reach_by_tab(page, "#start")
        for window in (PHONE, LAPTOP):
            page.set_viewport_size(window)
            page.evaluate("scrollTo(0, 0)")
            box = start.bounding_box()
            assert box["y"] + box["height"] <= window["height"]
            for hidden in ADVANCED:
                assert page.locator(hidden).is_hidden(), hidden
        page.click("#advanced-switch")
        for there in ADVANCED:
            assert page.locator(there).is_visible(), there
        page.get_by_role("button", name="Dark").click()
        page.wait_for_function("document.body.classList.contains('dark')")
        page.reload()
        page.get_by_role("button", name="Light").wait_for()
        page.wait_for_function("document.body.classList.contains('dark')")
        page.wait_for_selector("#preset")
        assert page.get_attribute("#advanced-switch", "aria-pressed") == "true"


def test_from_a_table_to_a_live_run_and_what_it_came_to_nothing_is_out_of_sight(browser, address, tmp_path):
    world = sandbox_facts()
    some = {"forget": world.forget[::4][:60], "retain": world.retain[:6], "utility": world.utility[:2]}
    rows = [["question", "answer", "score", "group"]]
    rows += [[fact.question, fact.answer, fact.score, group] for group, facts in some.items() for fact in facts]
    with visit(browser, address, viewport=PHONE) as page:

        def in_sight(place, reach=844):
            box = page.locator(place).first.bounding_box()
            assert box["y"] >= 0 and box["y"] + min(box["height"], reach) <= 844, place

        in_sight("#set label:has-text('My own facts')")
        with page.expect_file_chooser() as files:  # opens by itself
            page.get_by_text("My own facts").click()
        page.locator("#notes").get_by_text("No file yet").wait_for()
        says(page, "#strip", "No usable facts")
        in_sight("#upload")
        files.value.set_files(write_table(tmp_path / "mine.csv", rows))
        page.get_by_text("Forget set: 60;").wait_for()
        open_tab(page, "Run")
        page.wait_for_selector("#start:not([disabled])")
        in_sight("#start")
        page.click("#start")
        state_is(page, "done")
        page.locator("#result .result").wait_for()
        in_sight("#result", 60)
        page.wait_for_function("!document.querySelector('#my-runs tbody').textContent.includes('running')")


def test_a_run_that_moved_nothing_says_so_and_its_button_makes_the_next_try(browser, address, visited):
    with visit(browser, address, storage_state=visited) as page:  # one epoch moves nothing
        state_is(page, "done")
        open_tab(page, "Run")
        says(page, "#result", "Nothing happened", "16 steps at rate 0.002 changed hardly any answer")
        assert page.locator("#result .result.nothing").is_visible()
        page.get_by_role("button", name="Ten times the steps").click()
        stop_run(page)  # at once: it trains for seconds only
        page.wait_for_function("document.querySelector('#epochs input[type=number]').value === '5'")
        says(page, "#my-runs", "AdaPop 1", "AdaPop 2")
        page.wait_for_selector("#resume.primary")
        page.wait_for_selector("#start:not(.primary)")


def test_a_run_is_renamed_picked_on_probe_and_compared(browser, address, visited):
    with visit(browser, address, storage_state=visited) as page:
        state_is(page, "done")
        open_tab(page, "Run")
        page.click("#my-runs summary")
        row = page.locator("#my-runs tbody tr").first
        row.get_by_role("button", name="Rename").click()
        row.locator("input").fill(HOSTILE)
        page.keyboard.press("Enter")
        says(page, "#my-runs th[scope=row]", HOSTILE[:40])
        page.reload()
        state_is(page, "done")
        open_tab(page, "Probe")
        page.wait_for_function("document.querySelector('#probe-run input').value.startsWith('<img')")
        open_tab(page, "Run")
        page.click("#my-runs summary")
        files = []
        page.on("download", lambda file: files.append(file.suggested_filename))
        row.get_by_role("button", name="Report").click()
        row.get_by_role("button", name="Report", disabled=False).wait_for()
        row.get_by_role("button", name="Open").click()
        page.wait_for_timeout(3 * SECOND)
        assert len(files) == 1 and files[0].endswith(".zip"), "once, and not again at the next press"
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("tab", name="Compare", selected=True).wait_for()
        page.locator("#race-fields canvas").first.wait_for()


def test_no_tab_forgets_the_runs_of_another(browser, address, visited):
    with visit(browser, address, storage_state=visited) as page:
        state_is(page, "done")
        open_tab(page, "Run")
        other = page.context.new_page()
        other.goto(f"{address}?tab=run")
        says(other, "#my-runs", "AdaPop 1")
        start_run(other, epochs=1)
        stop_run(other)
        says(other, "#my-runs", "AdaPop 2")
        says(page, "#my-runs", "AdaPop 2")  # without a reload
        page.click("#my-runs summary")
        page.locator("#my-runs tr").filter(has_text="AdaPop 1").get_by_role("button", name="Rename").click()
        page.locator("#my-runs th input").fill("Mine")
        page.keyboard.press("Enter")
        says(page, "#my-runs", "Mine", "AdaPop 2")
        other.reload()
        for row, name in enumerate(("AdaPop 2", "Mine")):
            says(other, f"#my-runs tr:nth-child({row + 1}) th[scope=row]", name)
        other.click("#my-runs summary")
        other.locator("#my-runs tr").filter(has_text="Mine").get_by_role("button", name="Open").click()
        other.locator("#my-runs tr.current").get_by_text("Mine").wait_for()


def test_a_bad_file_is_explained_on_the_page(page, tmp_path):
    (tmp_path / "own.csv").write_text(f"{HOSTILE},age\nx,1\n", encoding="utf-8")
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", tmp_path / "own.csv")
    page.get_by_text("has no question column").first.wait_for()
    open_tab(page, "Run")
    page.get_by_text("There are no usable facts").wait_for()
    page.wait_for_selector("#start:disabled")


def test_an_idle_page_asks_nothing(browser, address):
    with visit(browser, address) as page:
        urls = []
        page.on("request", lambda request: urls.append(request.url) if "queue/join" in request.url else None)
        for name in ("Run", "Probe", "Compare", "Facts"):
            open_tab(page, name)
            page.wait_for_timeout(SECOND)
        settled, quiet = len(urls), 0
        while quiet < 3 * SECOND:  # what a tab asks for when it opens may take its time
            page.wait_for_timeout(SECOND)
            quiet, settled = (quiet + SECOND, settled) if len(urls) == settled else (0, len(urls))
            assert settled < 60, "a page that nobody touches keeps asking"
