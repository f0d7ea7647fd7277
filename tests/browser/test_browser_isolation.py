"""A read-only link in two real browsers: the owner copies it, a stranger looks and can do no more."""

from browsing import link_of, logged, open_tab, run_ids, says, start_run, state_is, visit


def test_a_copied_link_shows_the_run_and_gives_no_power_over_it(page, browser, address, runs_folder, visited):
    before = run_ids(runs_folder)
    start_run(page, epochs=1)
    state_is(page, "done")
    (run,) = run_ids(runs_folder) - before
    assert not (runs_folder / run / "link").exists(), "shared before anybody asked"
    link = link_of(page)
    assert "?run=view-" in link and run not in link
    with visit(browser, address, "?" + link.partition("?")[2]) as stranger:
        state_is(stranger, "done")
        logged(stranger, "Epoch 1 saved.")  # the address leads to the Run screen
        says(stranger, "#watched", "You are watching AdaPop, 1 epoch", "seed 0")
        stranger.wait_for_selector("#stop[disabled]")
        assert stranger.locator("#start").is_hidden()
        assert stranger.locator("#resume").is_hidden()
        open_tab(stranger, "Probe")
        stranger.fill("#prompt textarea, #prompt input", "Who wrote the book Hamlet?")
        stranger.click("#ask")
        stranger.get_by_text("opened by a read-only link").first.wait_for()
        assert run not in stranger.content()
        stranger.reload()
        state_is(stranger, "done")
        stranger.click("#own-run")
        open_tab(stranger, "Run")
        stranger.wait_for_selector("#start:not([disabled])")
        assert stranger.locator("#watched").is_hidden()
    with visit(browser, address, "?" + link.partition("?")[2], storage_state=visited) as stranger:
        state_is(stranger, "done")
        stranger.reload()
        stranger.click("#own-run")
        stranger.wait_for_selector("#own-run", state="hidden")
        open_tab(stranger, "Run")
        assert link_of(stranger) != link
        stranger.reload()
        state_is(stranger, "done")
        open_tab(stranger, "Probe")
        stranger.fill("#prompt textarea, #prompt input", "Who wrote the book Hamlet?")
        stranger.click("#ask")
        stranger.locator("#answers .answer").first.wait_for()
