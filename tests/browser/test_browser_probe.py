from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from adapop.facts.world import sandbox_facts
from adapop.probes.plan import evenly
from browsing import PROMPT, choose, open_tab, says, show_advanced, state_is, stop_run, unfold, visit


@pytest.fixture(scope="module")
def page(browser, address, visited):
    """A page with a finished run of one epoch, on the Probe screen."""
    with visit(browser, address, storage_state=visited) as page:
        state_is(page, "done")
        open_tab(page, "Probe")
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        yield page


def test_probe_is_full_on_arrival_and_another_way_of_asking_brings_an_answer_back_at_once(browser, address):
    with visit(browser, address, "?tab=probe") as page:
        says(page, "#probe-notes", "AdaPop", "“python -m adapop sandbox examples”")
        says(page, "#answers", "Recorded", "Original", "Philippines", "Unlearned", "rank of the right answer")
        says(page, "#answers .answer.unlearned", "Greece", "Not brought back by this question")
        says(page, "#every-way", ", recorded", "The trained question")
        assert page.locator("#every-way tbody tr").count() >= 11
        assert page.input_value("#probe-run input").startswith("Example:")
        unfold(page, "leaks-fold")
        unfold(page, "recovery-fold")
        says(page, "#leak-chart-title", "Where it leaks", "recorded · forget set: 24 facts")
        page.wait_for_selector("#leak-chart .plotly")
        says(page, "#leak-verdicts", "Leaks in other words", "rare", "popular")
        page.locator("#leak-table [data-testid='cell-0-0']").wait_for()
        says(page, "#probe-own-only", "need a run of your own")
        for dead in ("#probe-all", "#stop-probing", "#recover", "#stop-recovery"):
            assert page.locator(dead).is_hidden()
        show_advanced(page)
        assert not page.locator("#make-report").is_visible(), "of what is no run there is none"
        choose(page, "#form", "Which country does Luzon belong to?")
        says(page, "#answers .answer.unlearned", "Philippines", "Still answered")
        page.click("#ask")
        says(page, "#answers", "recorded by", "Likeliest next words", "The exact prompt the models saw")
        page.click("#probe-own")  # which runs the very example anew
        state_is(page, "queued", "starting", "running", "measuring", "done")
        page.get_by_role("tab", name="Run", selected=True).wait_for()
        stop_run(page)  # nobody waits for it


def test_probe_shows_a_fact_of_the_run_of_the_address_that_comes_back(browser, address):
    with visit(browser, address, "?run=example-wga&tab=probe") as page:
        says(page, "#probe-notes", "WGA", "“python -m adapop sandbox examples”")
        says(page, "#answers", "Recorded", "Original", "Miyazaki", "Unlearned", "rank of the right answer")
        says(page, "#every-way", ", recorded", "The trained question")
        show_advanced(page)
        page.locator("#make-report").wait_for()


def test_all_ways_at_once_and_a_row_of_the_table(page):
    asked = evenly(sandbox_facts().forget, 8)[0].title  # one of those that are asked
    says(page, "#every-way", "One press asks them all")  # until the run is here, its facts may close the open list
    page.get_by_text("The link shows your other questions").wait_for()
    choose(page, "#fact", asked)
    says(page, "#every-way", "One press asks them all", asked)
    unfold(page, "leaks-fold")
    says(page, "#leak-words", "Not probed yet")
    page.click("#probe-all")
    page.wait_for_selector("#stop-probing")
    says(page, "#leak-verdicts", "rare", "popular", "facts")
    page.wait_for_selector("#stop-probing", state="hidden")
    says(page, "#every-way", ", recorded", "Original")  # of the fact that is shown, at once
    assert page.locator("#every-way .waiting").count() == 0
    page.wait_for_selector("#leak-chart .plotly")
    page.click("#leak-more")
    says(
        page,
        "#leak-lines",
        "It answers most when",
        "first or second guess for",
        "its mean rank among the answers to such questions",
    )
    page.wait_for_selector("#leak-intervals .plotly")
    cell = page.locator("#leak-table [data-testid='cell-3-0']")
    cell.scroll_into_view_if_needed()
    expect(page.locator("#probe-row")).not_to_be_in_viewport()
    subject = cell.inner_text().strip()
    cell.click()
    page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes({subject!r})")
    expect(page.locator("#probe-row")).to_be_in_viewport()
    says(page, "#every-way", subject, ", recorded")
    choose(page, "#leak-group", "Held-out facts")
    says(page, "#leak-verdicts", "etained")


def test_a_fact_is_sought_from_inside(page):
    unfold(page, "recovery-fold")
    page.get_by_label("Looking through the layers").click()
    page.get_by_text("prompts to read").wait_for()
    page.click("#recover")
    page.get_by_role("button", name="All numbers").click()
    says(page, "#recovery-table", "4, all", "rank")
    page.reload()
    state_is(page, "done")
    open_tab(page, "Probe")
    unfold(page, "leaks-fold")
    says(page, "#leak-verdicts", "popular")


def test_one_press_asks_a_fact_in_every_way_and_a_row_becomes_ones_own_question(page):
    open_tab(page, "Probe")
    page.click("#ask-every-way")
    says(page, "#every-way .ways-head", "asked just now", "yours")
    assert page.locator("#every-way tbody tr").count() >= 11
    row = page.locator("#every-way tbody tr").nth(1)
    question = row.locator(".prompt").inner_text()
    row.get_by_role("button", name="Change it").click()
    page.wait_for_function(f"text => document.querySelector('{PROMPT}').value === text", arg=question)
    page.wait_for_function("document.activeElement.closest('#prompt') !== null")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answers .answers")


def test_of_rows_pressed_at_once_the_last_counts_and_what_is_typed_after_it_stays(page):
    open_tab(page, "Probe")
    page.click("#ask-every-way")
    says(page, "#every-way .ways-head", "asked just now")
    rows, held = page.locator("#every-way tbody tr"), []
    page.route("**/queue/join*", lambda route: held.append(route))
    for row in (2, 3):
        with page.expect_request(lambda request: '"way":' in (request.post_data or "")):
            rows.nth(row).get_by_role("button", name="Change it").click()
    page.fill("#gold textarea, #gold input", "typed meanwhile")
    page.unroute("**/queue/join*")  # which lets go of those that were held
    question = rows.nth(3).locator(".prompt").inner_text()
    page.wait_for_function(f"text => document.querySelector('{PROMPT}').value === text", arg=question)
    page.wait_for_function("document.activeElement.closest('#prompt') !== null")
    assert page.input_value("#gold textarea, #gold input") == "typed meanwhile"


def test_of_two_questions_asked_at_once_the_last_is_answered(page):
    held = []  # the first is not answered before the second is asked
    page.route("**/queue/join*", lambda route: held.append(route))
    for question in ("Who wrote the book Hamlet?", "Who painted the painting Guernica?"):
        page.fill(PROMPT, question)
        page.click("#ask")
    page.unroute("**/queue/join*")  # which lets go of those that were held
    says(page, "#answers", "Who painted the painting Guernica? · Unlearned by")


def test_what_one_types_while_a_pinned_fact_is_filled_in_is_what_is_asked(browser, address, visited):
    question = "Who wrote the book Hamlet?"
    with visit(browser, address, "?tab=run", storage_state=visited) as page:
        for key in ("Home", "ArrowRight", "Enter"):
            page.locator("#fact-field .forget canvas").press(key)
        pinned = page.locator("#fact-field .pinned b").inner_text()
        sent = []  # opening the tab has asked for the pinned fact, and nothing is answered yet
        page.route("**/queue/join*", lambda route: sent.append(route))
        open_tab(page, "Probe")
        while not any("pin" in route.request.post_data for route in sent):
            page.wait_for_timeout(20)
        page.fill(PROMPT, question)
        page.unroute("**/queue/join*")  # which lets go of those that were held
        shown = "words => document.querySelector('#fact input').value.includes(words)"
        page.wait_for_function(shown, arg=pinned[-9:-1])
        page.click("#ask")
        says(page, "#answers", f"{question} · Unlearned by", "Original", "Unlearned")
        page.wait_for_url("**ask=Who+wrote+the+book+Hamlet**")
        assert page.input_value(PROMPT) == question
        open_tab(page, "Run")
        open_tab(page, "Probe")  # which reads the address again
        says(page, "#answers", f"{question} · Unlearned by")


def test_a_reload_shows_the_fact_and_the_question_that_were_asked(browser, address, visited):
    question = "Who wrote the book Hamlet?"
    with visit(browser, address, storage_state=visited) as page:
        open_tab(page, "Probe")
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        default = page.input_value("#fact input")
        page.click("#fact input")
        page.get_by_role("option").first.click()
        page.wait_for_function("before => document.querySelector('#fact input').value !== before", arg=default)
        fact = page.input_value("#fact input")
        page.fill(PROMPT, question)
        page.click("#ask")
        says(page, "#answers", f"{question} · Unlearned by", "Original")
        page.wait_for_url("**ask=Who+wrote+the+book+Hamlet**")
        page.reload()
        says(page, "#answers", "Recorded when it was asked", "Original")
        page.wait_for_function(f"words => document.querySelector('{PROMPT}').value === words", arg=question)
        page.wait_for_function("fact => document.querySelector('#fact input').value === fact", arg=fact)
        page.get_by_text("This small model knows").wait_for()  # among the last things that come with the tab
        assert (page.input_value(PROMPT), page.input_value("#fact input")) == (question, fact)


def test_a_reload_shows_the_fact_that_was_picked_last_and_how_many_are_asked(browser, address, visited):
    with visit(browser, address, storage_state=visited) as page:
        state_is(page, "done")
        open_tab(page, "Probe")
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        page.get_by_text("The link shows your other questions about this run too.").wait_for()
        page.fill(PROMPT, "Who wrote the book Hamlet?")
        page.click("#ask")
        page.wait_for_url("**ask=Who+wrote+the+book+Hamlet**")
        page.click("#fact input")
        page.get_by_role("option").nth(2).click()
        page.wait_for_url(lambda url: "fact=" in url and "ask=" not in url)
        fact, prompt = page.input_value("#fact input"), page.input_value(PROMPT)
        assert "Hamlet" not in prompt
        unfold(page, "leaks-fold")
        choose(page, "#leak-sample", "32 facts a tier")
        open_tab(page, "Run")
        page.wait_for_url(lambda url: "fact=" not in url)
        open_tab(page, "Probe")
        page.wait_for_url(lambda url: "fact=" in url)
        page.reload()
        state_is(page, "done")
        shown = "([place, words]) => document.querySelector(place)?.value === words"
        page.wait_for_function(shown, arg=["#fact input", fact])
        page.wait_for_function(shown, arg=[PROMPT, prompt])
        unfold(page, "leaks-fold")
        page.wait_for_function(shown, arg=["#leak-sample input", "32 facts a tier"])


def test_the_replies_of_the_fact_before_are_faint_until_those_of_the_picked_one_are_here(browser, address):
    with visit(browser, address, "?tab=probe") as page:
        says(page, "#every-way", ", recorded")
        page.locator("#every-way[aria-busy=false]").wait_for()
        before, held = page.locator("#every-way .prompt").first.inner_text(), []
        page.route("**/queue/join*", lambda route: held.append(route))
        page.click("#fact input")
        page.get_by_role("option").first.click()
        page.locator("#every-way[aria-busy=true]").wait_for()
        assert page.locator("#every-way .prompt").first.inner_text() == before
        assert float(page.eval_on_selector("#every-way", "one => getComputedStyle(one).opacity")) < 0.5
        page.unroute("**/queue/join*")  # which lets go of those that were held
        page.locator("#every-way[aria-busy=false]").wait_for()
        assert page.locator("#every-way .prompt").first.inner_text() != before


def test_a_link_s_samples_and_strength_leave_the_address_with_its_question(browser, address):
    with visit(browser, address, "?tab=probe&ask=Who&draw=4,1,7,1,0&strength=1.5") as page:
        page.wait_for_function(f"document.querySelector('{PROMPT}').value === 'Who'")
        open_tab(page, "Run")
        page.wait_for_url("**tab=run*")
        assert not {"ask", "draw", "strength"} & set(parse_qs(urlsplit(page.url).query))
