from browsing import (
    HOSTILE,
    link_of,
    logged,
    open_pressure,
    open_tab,
    paste,
    remembered,
    run_ids,
    says,
    show_advanced,
    start_run,
    state_is,
    stop_run,
    typed_cell,
    upload,
    visit,
    write_table,
)
from serving import served


def upload_two(page, tmp_path) -> None:
    rows = [["id", "question", "answer", "subject", "score"]]
    rows += [["a", "Who wrote the book Hamlet?", "Shakespeare", "H", "9"]]
    rows += [["b", f"Who is {HOSTILE}?", HOSTILE, HOSTILE, "500"], ["c", "Who?", "", "", "5"]]
    with remembered(page):
        upload(page, write_table(tmp_path / "mine.csv", rows), "Forget set: 2;")


def test_an_upload_survives_a_reload_and_a_look_at_another_set(page, tmp_path):
    upload_two(page, tmp_path)
    page.reload()
    says(page, "#notes", "Forget set: 2;", "row 4, 'answer'")
    page.wait_for_selector("#set input[value=own]:checked")
    page.get_by_text("Its file was not kept").wait_for()
    page.get_by_label("Retain set", exact=True).click()
    page.get_by_role("option").last.click()
    says(page, "#notes", "upload it again to choose other columns")
    page.get_by_text("One pair").click()
    says(page, "#notes", "Both answers are Kubrick")
    page.get_by_text("Invented facts").click()
    says(page, "#notes", "invented")
    page.get_by_text("My own facts").click()
    says(page, "#notes", "row 4, 'answer'")
    assert page.get_by_text("not in the list of choices").count() == 0
    page.click("#run-own-facts")  # one press where the file was chosen
    page.wait_for_function("new URL(location.href).searchParams.get('tab') === 'run'")
    state_is(page, "done")  # two facts: seconds
    open_tab(page, "Facts")
    page.set_input_files("#upload input[type=file]", write_table(tmp_path / "wrong.csv", [["name"], ["Hamlet"]]))
    page.get_by_text("Its file was not kept").first.wait_for(state="detached")


def test_after_a_reload_on_another_tab_a_file_can_be_dropped_facts_typed_and_rewordings_added(page, tmp_path):
    upload_two(page, tmp_path)
    for tab in ("run", ""):
        page.goto(f"{page.url.split('?')[0]}?tab={tab}")
        if tab:  # the set is back before the tab with its upload is there
            says(page, "#preflight", "Forget set: 2 facts")
        open_tab(page, "Facts")
        says(page, "#notes", "Forget set: 2;")
        page.wait_for_selector("#upload input[type=file]", state="attached")
        page.locator("#typed-facts").wait_for()
    page.click("#typed-facts > button")
    paste(typed_cell(page, "Question", 1), "Who wrote the book Hamlet?\tShakespeare\t3766\nWho is it?\tHe\t70")
    page.click("#use-typed")
    title = page.get_by_text("typed, forget set of 2 facts")  # the notes on the uploaded set say the same
    title.wait_for(state="attached")
    says(page, "#rewordings", "These facts have no rewordings")
    page.get_by_role("button", name="Add rewordings from templates (1 of 2 facts)").click()
    says(page, "#reword-words", "1 of 2 facts now have rewordings")
    page.locator("#rewordings").wait_for(state="hidden")


def test_edited_scores_and_anchors_survive_a_reload_but_a_picked_set_is_as_shipped(page):
    with remembered(page):
        page.get_by_text("One pair").click()
    says(page, "#notes", "Both answers are Kubrick")
    page.locator("#fact-table").get_by_text("Paths of Glory").first.click()
    says(page, "#detail", "Paths of Glory")  # sooner, its own score comes after what is typed
    page.locator("#detail input").fill("77")
    with remembered(page):
        page.get_by_role("button", name="Set this score").click()
    page.locator("#fact-table").get_by_text("edited").first.wait_for()
    open_pressure(page)
    show_advanced(page)
    with remembered(page):
        page.locator("#anchors input").first.fill("50")
        page.locator("#anchors input").first.blur()
    page.reload()
    open_pressure(page)
    page.wait_for_function("document.querySelector('#anchors input')?.value === '50'")
    open_tab(page, "Facts")
    page.locator("#fact-table").get_by_text("edited").first.wait_for()
    page.wait_for_selector("#set input[value=pair]:checked")
    page.get_by_text("Sandbox world").click()
    says(page, "#notes", "Forget set: 256;")
    page.get_by_text("One pair").click()
    says(page, "#notes", "Both answers are Kubrick")
    page.locator("#fact-table").get_by_text("exposures in pretraining").locator("visible=true").first.wait_for()
    page.locator("#fact-table").get_by_text("edited").first.wait_for(state="detached")


def test_a_server_that_forgot_the_page_starts_nothing_else_and_the_set_is_put_back(browser, tmp_path):
    """It remembers one page; a second one makes it forget the first."""
    folder = tmp_path / "runs"
    one_page = "import runpy; from adapop.ui import page; page.PAGES = 0.1; runpy.run_path('app.py', {}, '__main__')"
    with served(folder, ("-c", one_page)) as app, visit(browser, app.address.rstrip("/")) as page:
        upload_two(page, tmp_path)
        open_tab(page, "Run")
        with visit(browser, app.address.rstrip("/")) as second:
            says(second, "#notes", "Forget set: 256;")
        page.click("#start")
        page.get_by_text("no longer had the set that this page shows").wait_for()
        open_tab(page, "Facts")
        says(page, "#notes", "Forget set: 2;")
        assert run_ids(folder) == set()
        open_tab(page, "Run")
        start_again(page)
        runs = run_ids(folder)  # two where an answer took so long that Start was pressed once more
        assert runs
        assert all("Hamlet" in (folder / run / "facts.jsonl").read_text(encoding="utf-8") for run in runs)


def start_again(page) -> None:
    """Presses Start as the refusal says. The set comes back after the refusal is shown: sooner, it is refused again."""
    from playwright.sync_api import TimeoutError

    for seconds in (15, 15, 240):
        for close in page.locator(".toast-close").all():  # what was said may lie over the button
            close.click()
        page.click("#start")
        try:
            return state_is(page, "starting", "running", "measuring", "done", seconds=seconds)
        except TimeoutError as error:
            late = error
    raise late


def test_a_run_is_found_by_every_page_of_its_owner_and_a_copied_link_gives_no_power_over_it(
    page, browser, address, runs_folder, visited
):
    before = run_ids(runs_folder)
    start_run(page, epochs=2)
    state_is(page, "starting", "running", "measuring", "done")
    second = page.context.new_page()
    second.goto(address)
    state_is(second, "starting", "running", "measuring", "done")
    again = page.context.new_page()
    page.close()
    second.close()
    again.goto(address)
    state_is(again, "done")
    (run,) = run_ids(runs_folder) - before
    assert not (runs_folder / run / "link").exists(), "shared before anybody asked"
    link = link_of(again)
    assert "?run=view-" in link and run not in link
    with visit(browser, address, "?run=../../etc") as stranger:
        state_is(stranger, "ready")
    with visit(browser, address, "?" + link.partition("?")[2], storage_state=visited) as stranger:
        state_is(stranger, "done")
        logged(stranger, "Epoch 2 saved.")  # the address leads to the Run screen
        says(stranger, "#watched", "You are watching AdaPop, 2 epochs", "seed 0")
        stranger.wait_for_selector("#stop[disabled]")
        assert stranger.locator("#start").is_hidden()
        assert stranger.locator("#resume").is_hidden()
        open_tab(stranger, "Probe")
        stranger.locator("#asks-nothing").get_by_text("read-only link").wait_for()
        stranger.wait_for_selector("#ask[disabled]")
        assert run not in stranger.content()
        stranger.reload()
        state_is(stranger, "done")
        stranger.click("#own-run")
        stranger.wait_for_selector("#own-run", state="hidden")
        open_tab(stranger, "Run")
        stranger.wait_for_selector("#start:not([disabled])")
        assert "You are watching" not in stranger.locator("#watched").text_content()
        assert link_of(stranger) != link
        stranger.reload()
        state_is(stranger, "done")
        open_tab(stranger, "Probe")
        stranger.fill("#prompt textarea, #prompt input", "Who wrote the book Hamlet?")
        stranger.click("#ask")
        stranger.locator("#answers .answer").first.wait_for()


def is_on(page, tab: str, step: int = 1) -> None:
    """Waits until a tab is open, and its address is the page's."""
    page.wait_for_selector(f"[role=tab][data-tab-id={tab}][aria-selected=true]")
    if tab != "story":
        page.wait_for_function("tab => new URL(location.href).searchParams.get('tab') === tab", arg=tab)
        return
    page.wait_for_selector(f"#story section.here[aria-label^='Scene {step} ']")
    query = "new URL(location.href).searchParams"
    page.wait_for_function(f"step => !{query}.has('tab') && ({query}.get('story') ?? 1) == step", arg=step)


def test_the_browsers_back_and_forward_go_through_tabs_and_steps_without_a_new_page(browser, address):
    with visit(browser, address, "") as page:
        is_on(page, "story")
        page.evaluate("window.same = true")
        page.click("#story .forward")
        is_on(page, "story", 2)
        for tab in ("Facts", "Run", "Compare"):
            open_tab(page, tab)
            is_on(page, tab.lower())
        for back in ("run", "facts"):
            page.go_back()
            is_on(page, back)
        page.go_forward()
        is_on(page, "run")
        page.evaluate("history.go(-2)")
        is_on(page, "story", 2)
        page.go_back()
        is_on(page, "story", 1)
        page.evaluate("history.go(4)")
        is_on(page, "compare")
        page.evaluate("history.back(), setTimeout(() => history.forward(), 30)")  # sooner than a tab is drawn
        page.wait_for_timeout(500)
        is_on(page, "compare")
        page.go_back()
        page.go_back()
        is_on(page, "facts")
        open_tab(page, "Story")  # from here on another way forward
        is_on(page, "story", 1)  # where its step was left
        page.go_back()
        is_on(page, "facts")
        assert page.evaluate("window.same") is True
        page.reload()
        is_on(page, "facts")
        page.go_back()
        is_on(page, "story", 2)
        for _ in range(3):  # turned fast
            for tab in ("Probe", "Run"):
                open_tab(page, tab)
                page.wait_for_timeout(100)
        page.wait_for_timeout(2500)  # what came late has come
        is_on(page, "run")


def test_back_leaves_a_run_under_way_as_it_is_and_brings_no_forgotten_link_back(browser, address):
    with visit(browser, address, "?run=example-wga") as page:
        is_on(page, "run")
        for name in ("Facts", "Run"):  # entries with the link in them
            open_tab(page, name)
            is_on(page, name.lower())
        page.get_by_role("button", name="Run it yourself").click()
        state_is(page, "running")
        page.wait_for_function("!new URL(location.href).searchParams.has('run')")
        for name in ("facts", "run"):
            page.go_back()
            is_on(page, name)
            assert "run=example" not in page.url
        stop_run(page)
        page.reload()
        state_is(page, "stopped")
        is_on(page, "run")
