from contextlib import nullcontext
from threading import Event

import pytest

from adapop.model.adapted import AdaptedModel
from adapop.runs.examples import example
from adapop.service.links import link_of
from adapop.service.worker import Worker
from browsing import HOSTILE, PROMPT, choose, launched, says, unfold, visit
from tiny_runs import copied

QUESTION, ANSWER = "Which country owns the island Luzon?", "Philippines"


@pytest.fixture(scope="module")
def own_root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def own_worker(own_root):
    return Worker(own_root)


@pytest.fixture(scope="module")
def own_address(own_worker):
    with launched(own_worker) as url:
        yield url.rstrip("/")


@pytest.fixture
def probing(browser, own_address):
    """The Probe screen over the example, with its first fact's question filled in."""
    with visit(browser, own_address, "?tab=probe") as page:
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        yield page


def asked(page, question=QUESTION, answer=ANSWER):
    """Asks, and returns each column's first token with its share, as a screen reader hears it."""
    page.fill(PROMPT, question)
    page.fill("#gold textarea, #gold input", answer)
    page.click("#ask")
    says(page, "#answers", f"{question[:40].strip()}")
    page.wait_for_selector("#answers .token")
    return [card.locator(".token").first.get_attribute("aria-label") for card in page.locator("#answers .answer").all()]


def by_transformers():
    """(the original's, the unlearned model's) first token and its share in percent, by transformers and peft alone."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from adapop.paths import SHIPPED

    run, folder = example("adapop"), SHIPPED["sandbox"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    load = lambda: AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()  # noqa: E731
    heard = []
    for model in (load(), PeftModel.from_pretrained(load(), run.checkpoint(run.chosen_epoch)).eval()):
        with torch.no_grad():
            share, token = model(**ids).logits[0, -1].softmax(-1).max(-1)
        heard.append(f"{tokenizer.decode(token)}, {100 * share:.0f}%")
    return heard


@pytest.mark.parametrize("swapped", [False, True])
def test_the_column_original_is_the_original_and_swapped_weights_would_be_seen(probing, monkeypatch, swapped):
    if swapped:  # the fault of which other tools have had reports: the base column answers as the tuned model
        monkeypatch.setattr(AdaptedModel, "original", lambda model: nullcontext())
    heard = [label.split(", the models part")[0] for label in asked(probing)]
    original, unlearned = by_transformers()
    assert original != unlearned
    assert heard == ([unlearned, unlearned] if swapped else [original, unlearned])


def test_tokens_are_walked_by_keys_and_a_pressed_alternative_is_gone_on_from(browser, own_address, probing):
    page = probing
    asked(page)
    for name in ("original", "unlearned"):
        about = page.locator(f"#answers .answer.{name} .strip-about").inner_text()
        assert about == f"Tokens of {name.capitalize()}: the darker, the surer"
    says(page, "#answers .likely", "Likeliest next words at token 1 of Original", ANSWER, "Unlearned")
    page.locator("#answers .answer .token").first.focus()
    page.keyboard.press("ArrowRight")
    says(page, "#answers .likely", "at token 2 of Original", "end")
    page.keyboard.press("ArrowLeft")
    other = page.locator("#answers .likely .go-on").nth(1)
    word = other.inner_text().strip()
    other.click()
    page.wait_for_selector("#answers .token.given")
    for card in page.locator("#answers .answer").all():
        assert card.locator(".token.given").all_inner_texts() == [f" {word}"]
        assert card.locator(".text").inner_text().startswith(word)
    page.wait_for_function("word => new URL(location.href).searchParams.get('begun') === word", arg=word)
    told = [card.inner_text() for card in page.locator("#answers .answer .text").all()]
    with visit(browser, own_address, page.url.removeprefix(own_address)) as other:
        other.wait_for_selector("#answers .token.given")
        assert [card.inner_text() for card in other.locator("#answers .answer .text").all()] == told
    asked(page)
    page.wait_for_function("!new URL(location.href).searchParams.has('begun')")
    unfold(page, "more-asking")
    page.fill("#begun textarea, #begun input", "It is")
    choose(page, "#beside-two", "A model that never knew these facts")
    page.keyboard.press("Escape")
    page.click("#ask")
    says(page, "#answers", "Never knew", "It is", "Right answer next")
    assert page.locator("#answers .answer").count() == 3


def test_a_hostile_question_is_text_in_every_token(probing):
    asked(probing, HOSTILE, HOSTILE)
    assert probing.evaluate("window.hacked") is None and probing.locator("#answers img").count() == 0
    says(probing, "#answers pre", "<img src=x")


def test_a_link_opens_the_same_question_on_a_phone_and_a_recorded_one_is_replayed(browser, own_address, probing):
    page, phone = probing, {"viewport": {"width": 390, "height": 844}}
    unfold(page, "more-asking")
    page.fill("#begun textarea, #begun input", "It is")
    choose(page, "#beside-two", "A model that never knew these facts")
    page.keyboard.press("Escape")
    asked(page, "Who wrote the book Hamlet?", "Shakespeare")
    page.wait_for_function("new URL(location.href).searchParams.get('ask') === 'Who wrote the book Hamlet?'")
    told = [card.inner_text() for card in page.locator("#answers .answer .text").all()]
    unfold(page, "more-fold")
    page.fill("#samples input", "5")
    page.click("#draw-samples")
    says(page, "#drawn-samples", "Hamlet", "5 samples")
    page.locator("#strength input[type=number]").fill("0.5")
    page.locator("#strength input[type=number]").press("Enter")
    says(page, "#strength-result", "at strength 0.5")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click("#copy-question")
    address = page.wait_for_function("window.copied").json_value()
    with visit(browser, own_address, address.removeprefix(own_address), **phone) as other:
        says(other, "#answers", "Asked again just now", "Never knew")
        other.wait_for_selector("#answers .token.given")
        assert [card.inner_text() for card in other.locator("#answers .answer .text").all()] == told
        assert other.input_value(PROMPT) == "Who wrote the book Hamlet?"
        says(other, "#drawn-samples", "Hamlet", "5 samples")
        assert other.inner_text("#drawn-samples") == page.inner_text("#drawn-samples")
        says(other, "#strength-result", "at strength 0.5")
        assert other.inner_text("#strength-result") == page.inner_text("#strength-result")
        assert other.input_value("#strength input[type=number]") == "0.5"
        assert other.evaluate("document.documentElement.scrollWidth") <= 390
        cut = "(one) => one.scrollWidth > one.clientWidth"
        assert other.eval_on_selector(".strength", cut) is False, "every number is in sight"
    query = "?tab=probe&run=example-wga&ask=Which+country+owns+the+island+Luzon%3F&gold=Philippines&fact=island-luzon"
    with visit(browser, own_address, query, **phone) as other:
        says(other, "#answers", "Recorded by probing", ANSWER)


def test_what_a_link_opens_is_said_at_once_and_what_is_typed_meanwhile_is_not_opened_over(browser, own_address):
    with browser.new_context() as context:
        page, query = context.new_page(), "?tab=probe&ask=Who+wrote+the+book+%3Cb%3EHamlet%3C/b%3E%3F"
        page.route("**/queue/join*", lambda route: None)  # the server answers nothing
        held = []  # Gradio's own scripts
        page.route("**/assets/*.js", lambda route: held.append(route))
        page.goto(own_address + query, wait_until="commit")
        says(page, ".early .opening", "Opening the question “Who wrote the book <b>Hamlet</b>?” …")
        for route in held:  # which grows while they are let go
            route.continue_()
        page.unroute("**/assets/*.js")
        says(page, "#answers .empty", "Opening the question “Who wrote the book <b>Hamlet</b>?” …")
        says(page, "#every-way", "Opening …", "asked one fact in every way")
        assert page.locator(".early").count() == 0
        page.fill(PROMPT, "Who?")
        says(page, "#answers .empty", "Press “Ask both models”")


def test_by_a_read_only_link_it_is_said_beforehand_that_nothing_can_be_asked(browser, own_address, own_root, finished):
    run = copied(finished, own_root)
    link, phone = link_of(run), {"viewport": {"width": 390, "height": 844}}
    with visit(browser, own_address, f"?run={run.id}&tab=probe&ask=Who+wrote+Hamlet%3F&gold=Shakespeare") as page:
        says(page, "#answers", "Asked again just now")
        told = page.locator("#answers .tokens").all_inner_texts()
    with visit(
        browser, own_address, f"?run={link}&tab=probe&ask=Who+wrote+Hamlet%3F&gold=Shakespeare", **phone
    ) as page:
        says(page, "#answers", "Recorded when it was asked", "Likeliest next words at token 1 of Original")
        assert page.locator("#answers .tokens").all_inner_texts() == told and page.locator(".go-on").count() == 0
    with visit(browser, own_address, f"?run={link}&tab=probe&ask=Who%3F") as page:
        page.locator("#asks-nothing").get_by_text("Opened by a read-only link").wait_for()
        for closed in ("#ask", "#ask-every-way", PROMPT):
            page.locator(closed).and_(page.locator(":disabled")).first.wait_for()
        says(page, "#every-way", "seed 0, recorded")
        says(page, "#answers", "This question was not recorded. Whoever made the run")
        page.locator("#every-way [data-way]").nth(1).click()
        asked = page.locator("#every-way .prompt").nth(1).inner_text()
        page.wait_for_function(f"text => document.querySelector('{PROMPT}').value === text", arg=asked)
        says(page, "#answers", "Recorded by probing")
        choose(page, "#probe-run", "Example: WGA")
        page.locator("#ask").and_(page.locator(":enabled")).wait_for()
        assert page.locator("#asks-nothing").is_hidden()


def test_an_answer_that_comes_after_another_run_was_chosen_is_not_shown_beside_its_name(browser, own_worker, probing):
    page, goes_on = probing, Event()
    own_worker._line.question(goes_on.wait)
    try:
        page.click("#ask-every-way")
        says(page, "#every-way", "A run is in progress")
        page.click("#ask")
        says(page, "#answers", "A run is in progress")
        choose(page, "#probe-run", "Example: WGA")
        says(page, "#every-way .ways-head", "WGA", "recorded")
        says(page, "#answers", "Recorded by probing")
    finally:
        goes_on.set()
    own_worker._line.question(int).result()  # both were answered by now
    fact = page.input_value("#fact input")
    page.click("#ask")
    says(page, "#answers", "Unlearned by WGA")
    assert page.input_value("#fact input") == fact
    assert "WGA" in page.inner_text("#every-way .ways-head")


def test_a_fact_pinned_on_run_comes_along_to_probe(browser, own_address):
    with visit(browser, own_address, "?run=example-wga&tab=run&pin=5") as page:
        page.wait_for_function("document.body.dataset.pinned === '5'")
        question = example("wga").facts.forget[5].question
        page.get_by_role("tab", name="Probe").click()
        page.wait_for_function(f"text => document.querySelector('{PROMPT}')?.value === text", arg=question)
        says(page, "#every-way", "ways to ask about this fact")


def test_samples_strength_and_layers_of_the_question(probing):
    page = probing
    unfold(page, "more-fold")
    page.click("#draw-samples")
    says(page, "#drawn-samples", "the usual reply", "give it away (95% interval")
    page.locator("#strength input[type=number]").fill("0.5")
    page.locator("#strength input[type=number]").press("Enter")
    says(page, "#strength-result", "at strength 0.5", "This fact", "Popular")
    page.click("#see-layers")
    says(page, "#layer-grid", "Original", "Difference", "layer")
    page.locator("#layer-grid td").nth(1).focus()
    says(page, "#layer-grid .told", "Layer 4", "likeliest there")
    page.click("#every-way [data-only]")
    assert page.locator("#every-way tbody tr.same").first.is_hidden()
