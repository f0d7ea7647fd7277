from dataclasses import replace

import pytest

from adapop.facts.fact import Fact
from adapop.paths import ASSETS
from adapop.report.table import percent
from adapop.training.frames import Frame, Scores
from adapop.ui.parts import field, html

SCRIPTS = "\n".join((ASSETS / f"{name}.js").read_text("utf-8") for name in html.SCRIPTS)
ROME = Fact("a", "What is the capital of Italy?", "Rome", "Italy", score=900.0)
PINNED = f"{ROME.question} Rome. Asked as trained, the model says "
STEP = Frame(0, 0.0, {"forget": Scores((0.9,), (1,))}, ("Rome",))
SHOWN = """([facts, motion, epoch]) => {
  const host = document.body.appendChild(document.createElement("div"));
  const shown = makeField(host, facts, motion, { name: "Facts" });
  const beside = makeMoment(host, facts, motion, [], shown.table);
  host.append(shown.table);
  shown.show(epoch);
  shown.pin(0, false);
  beside.show(epoch, 0);
  host.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
  const text = (name) => [name, host.querySelector("." + name).textContent];
  return Object.fromEntries(["pinned", "tip", "moment"].map(text));
}"""
# what a field says and writes into its picture, and the shares in the row of its first fact
TOLD = """([facts, motion, epoch, ends]) => {
  const host = document.body.appendChild(document.createElement("div")), drawn = [];
  const shown = makeField(host, facts, motion, { name: "Facts" }), fill = CanvasRenderingContext2D.prototype.fillText;
  host.append(shown.table);
  CanvasRenderingContext2D.prototype.fillText = function (text) { drawn.push(text); };
  shown.show(epoch, ends);
  CanvasRenderingContext2D.prototype.fillText = fill;
  shown.pin(0, false);
  host.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
  shown.table.open = true;
  shown.table.dispatchEvent(new Event("toggle"));
  const text = (name) => [name, host.querySelector("." + name).textContent];
  const row = [...host.querySelector("tbody tr").cells].slice(3).map((cell) => cell.textContent);
  host.remove();
  return { drawn, row, ...Object.fromEntries(["pinned", "tip"].map(text)) };
}"""
COUNT_WHO_LISTENS = """() => {
  const body = new Set(), theme = new Set();
  window.listening = { get body() { return body.size; }, get theme() { return theme.size; } };
  const wrap = (of, name, then) => {
    const original = of[name];
    of[name] = function (...given) { then(this, given); return original.apply(this, given); };
  };
  wrap(MutationObserver.prototype, "observe", (observer, [of]) => of === document.body && body.add(observer));
  wrap(MutationObserver.prototype, "disconnect", (observer) => body.delete(observer));
  wrap(EventTarget.prototype, "addEventListener", (of, [, heard]) => of instanceof MediaQueryList && theme.add(heard));
  wrap(EventTarget.prototype, "removeEventListener", (_, [, heard]) => theme.delete(heard));
}"""


@pytest.fixture(scope="module")
def scripts(browser):
    """A page that has these scripts and nothing else."""
    page = browser.new_page()
    page.set_content("<!doctype html><body></body>")
    page.add_script_tag(content=SCRIPTS)
    yield page
    page.close()


def displayed(scripts, epoch: float, *answers: tuple[str, ...], facts=(ROME,)) -> dict[str, str]:
    """What stands beside the field at an epoch. answers: in the frame before training and after each epoch."""
    scores = {"forget": Scores((0.9,) * len(facts), (1,) * len(facts))}
    frames = [replace(STEP, epoch=float(end), answers=said, scores=scores) for end, said in enumerate(answers)]
    return scripts.evaluate(SHOWN, [field.dots(facts), field.motion(frames, facts), epoch])


def test_of_what_was_not_asked_no_reply_is_told_and_an_empty_reply_is_one(scripts):
    never = displayed(scripts, 1, (), ())
    assert never["pinned"] == f"{ROME.question} Rome. stop following"
    assert "says" not in never["tip"] and "90% sure" in never["tip"]
    assert never["moment"].count("not asked then") == 2 and "nothing" not in never["moment"]
    assert "Unlearned, " not in never["moment"], "the scrubber says when"
    later = displayed(scripts, 2, (), (), ("Oslo",))
    assert later["pinned"].startswith(PINNED) and "says after epoch 2: Oslo. " in later["pinned"]
    assert later["moment"].count("not asked then") == 1
    once = displayed(scripts, 1, ("Rome",), ())
    assert "; said before" in once["moment"]
    silent = displayed(scripts, 1, ("Rome",), ("",))
    assert silent["pinned"].startswith(PINNED) and "says before: Rome, after epoch 1: nothing. " in silent["pinned"]
    assert "says after epoch 1: nothing ✗" in silent["tip"]
    assert "Unlearnednothing" in silent["moment"]


def test_a_reply_has_the_mark_that_python_gives_it(scripts):
    for reply, mark in (("It is rome.", " ✓"), ("Romeo", " ✗"), ("It is a long way to go. " * 4, "")):
        tip = displayed(scripts, 0, (reply[:80],))["tip"]
        assert f"says before: {reply[:80]}{mark}90%" in tip


def test_where_other_words_were_asked_the_dots_are_what_the_headline_counts(scripts):
    facts = [replace(ROME, id=str(number), score=score) for number, score in enumerate((100.0, 3000.0))]
    frames = [replace(STEP, epoch=end, scores={"forget": Scores((0.9, 0.5), (1, 1))}) for end in (0.0, 0.5, 1.0)]
    asked = {"answered": [None, None, [250, 1000]], "wordings": 4}
    motion = field.motion(frames, facts) | asked
    before, between, after, as_trained = (scripts.evaluate(TOLD, [field.dots(facts), motion, *at]) for at in (
        (0, True), (0.5, True), (1, True), (1, False)))  # fmt: skip
    for view in (before, between, as_trained):
        assert any(text.startswith("↑ how sure") for text in view["drawn"])
        assert "90% sure" in view["tip"] and "75.0" not in view["drawn"]
        assert {"rare 90%", "popular 50%"} <= set(view["drawn"]) and "other words" not in view["pinned"]
    assert {"↑ answered, in 4 other wordings", "rare 25.0%", "popular 100.0%", "75.0"} <= set(after["drawn"])
    assert "1 of 4 other wordings answered" in after["tip"]
    assert "the dot shows other wordings" in after["pinned"]
    assert after["row"] == ["90%", "90%", "25%"] and as_trained["row"] == after["row"][:2]
    mixed = scripts.evaluate(TOLD, [field.dots(facts), motion | {"wordings": None}, 1, True])
    assert not any(" 4 " in text for text in mixed["drawn"]) and "25% of its other" in mixed["tip"]


def test_a_fact_that_was_not_asked_in_other_words_is_not_drawn_at_the_end(scripts):
    facts = [replace(ROME, id=str(number), score=score) for number, score in enumerate((90.0, 100.0, 3000.0))]
    frames = [replace(STEP, epoch=end, scores={"forget": Scores((0.9, 0.8, 0.5), (1, 1, 1))}) for end in (0.0, 1.0)]
    motion = field.motion(frames, facts) | {"answered": [None, [None, 250, 1000]], "wordings": 4}
    before, after = (scripts.evaluate(TOLD, [field.dots(facts), motion, at, True]) for at in (0, 1))
    assert "rare 85%" in before["drawn"] and before["row"] == ["90%", "90%"]
    assert {"↑ answered, in 4 other wordings; 2 of 3 facts asked", "75.0"} <= set(after["drawn"])
    assert "1 of 4 other wordings answered" in after["tip"], "Home is the first that is drawn"
    assert after["row"] == ["90%", "90%", "not asked"]


def test_shares_are_rounded_as_python_does(scripts):
    values = [of / 2000 for of in range(2001)] + [one / 7 for one in range(8)]
    said = scripts.evaluate("all => all.map(percent)", values)
    assert said == [*map(percent, values)]


def test_a_small_score_is_not_shown_as_0_and_a_large_one_is_whole(scripts):
    said = scripts.evaluate("[7e-6, 0.0004, 0, 33.33333333, 1234567, 'unknown'].map(scoreWords)")
    assert said == ["0.000007", "0.0004", "0", "33.3333", "1,234,567", "unknown"]


def test_a_moment_is_after_an_epoch_only_when_it_has_ended(scripts):
    at = [0, 0.04, 0.97, 1, 1.003, 5]
    assert scripts.evaluate("at => at.map(moment)", at) == [
        "before", "in epoch 1", "in epoch 1", "after epoch 1", "in epoch 2", "after epoch 5"]  # fmt: skip


def test_a_field_that_has_left_the_page_hears_nothing_more(browser):
    page = browser.new_page()
    page.set_content("<!doctype html><body></body>")
    page.evaluate(COUNT_WHO_LISTENS)
    page.add_script_tag(content=SCRIPTS)
    displayed(page, 0, ("Rome",))
    page.wait_for_function("listening.body === 1 && listening.theme === 1")
    page.evaluate("window.host = document.querySelector('body > div'); host.remove()")
    page.wait_for_function("listening.body === 0 && listening.theme === 0")
    page.evaluate("document.body.append(host)")
    page.wait_for_function("listening.body === 1 && listening.theme === 1")
    page.close()


def test_a_table_says_when_it_leaves_facts_out(scripts):
    for count, rows, note in ((3, 3, ""), (700, 234, "One fact in 3 of 700, in order of popularity.")):
        facts = [replace(ROME, id=str(number), score=100.0 + number) for number in range(count)]
        displayed(scripts, 0, ("Rome",) * count, facts=facts)
        scripts.evaluate("[...document.querySelectorAll('details')].at(-1).open = true")
        table = scripts.locator("details").last
        table.locator("td").first.wait_for()
        assert table.locator("tbody tr").count() == rows
        assert "".join(table.locator(".note").all_inner_texts()) == note
