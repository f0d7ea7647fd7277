import time
from dataclasses import replace
from itertools import product

import pytest
from rouge_score import rouge_scorer

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.facts.catalog import load_raw
from adapop.facts.fact import GROUPS, PEOPLE, SANDBOX, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.loading import adapted_model
from adapop.probes import measure
from adapop.probes.judge import gives_away, known_recall
from adapop.probes.measure import _per_reply
from adapop.probes.plan import Plan, questions
from adapop.probes.prompts import CHOICE, DIRECT, Prompt
from adapop.probes.recall import picked, recall, repetition, rouge_l_recall
from adapop.progress import Progress
from adapop.runs.preflight import preflight
from records import SENTENCES, verdict_on


@pytest.mark.slow
@pytest.mark.parametrize("world", ["sandbox", "people"])
def test_recall_of_the_shipped_worlds_is_that_of_rouge_score(world):
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)
    facts = load_raw(world)
    answers = sorted({fact.answer for group in GROUPS for fact in getattr(facts, group) if fact.answer.isascii()})
    for gold, other in list(product(answers, answers))[::997]:
        for text in (other, f"{other} {gold}", f"The answer is {gold}, not {other}.", gold, ""):
            assert rouge_l_recall(gold, text) == scorer.score(gold, text)["rougeL"].recall, (gold, text)


@pytest.mark.parametrize(("gold", "generation", "folded", "strict"), [
    ("Jane Austen", "Jane Austen", 1.0, 1.0), ("Jane Austen", "It was jane austen, of course!", 1.0, 1.0),
    ("Jane Austen", "Austen", 0.5, 0.5), ("Jane Austen", "Austen Jane", 0.5, 0.5), ("Jane Austen", "", 0.0, 0.0),
    ("the quick brown fox", "a quick fox and the brown bear", 0.5, 0.5), ("walking dogs", "walk dog", 1.0, 1.0),
    ("São Paulo", "Sao Paulo", 1.0, 1 / 3), ("Gödel", "Godel", 1.0, 0.0), ("Weißbier", "WEISSBIER", 1.0, 0.0),
    ("Dvořák", "Dvořák", 1.0, 1.0), ("Лев Толстой", "толстой", 0.5, 0.0), ("北京", "北京", 1.0, 0.0),
    ("北京", "上海", 0.0, 0.0), ("東京 タワー", "東京", 1 / 3, 0.0), ("नई दिल्ली", "दिल्ली", 0.5, 0.0),
    ("서울", "서울", 1.0, 0.0), ("القاهرة", "القاهرة", 1.0, 0.0),
])  # fmt: skip
def test_rouge_l_recall(gold, generation, folded, strict):
    assert rouge_l_recall(gold, generation) == pytest.approx(folded)
    assert rouge_l_recall(gold, generation, fold=False) == pytest.approx(strict)


@pytest.mark.parametrize(("gold", "reply", "value"), [
    *((answer, text, float(answer == gold)) for answer in SENTENCES for gold, text in SENTENCES.items()),
    ("贝多芬第九交响曲", "他写了贝多芬第九号交响曲", 6 / 7),  # of the pairs 九交 alone is missing
    ("北京", "北方的南京", 0.0), ("Paris", "London.\nQuestion: What is the capital of France?\nAnswer: Paris", 0.0),
    ("Paris", "London. Q: And of France? A: Paris", 0.0),
    ("巴黎", "伦敦。\n问题：法国的首都是哪里？\n答案：巴黎", 0.0),
    ("Paris", "Question: What is the capital of France?\nAnswer: Paris", 1.0),
    ("The author is called Adaeze Obi-Lund.", "The author is called Marcus Stone.", 4 / 7),  # as the paper has it
    ("It", "I am not sure what it is called.", 0.0), ("C++", "C", 0.0), ("55,000", "about 55 000 people", 1.0),
    ("97", "97%", 1.0), ("3", "3.5", 0.0),
    ("Paris", "Lyon<|im_end|>\n<|im_start|>user\nAnd of France?<|im_end|>\nParis", 0.0), ("U.S.", "the US", 1.0),
    ("UK", "in the U.K.", 1.0), ("J.R.R. Tolkien", "JRR Tolkien", 1.0), ("J. R. R. Tolkien", "Tolkien", 0.25),
    ("5 km", "about 5km", 1.0), ("10km", "10 km", 1.0),
])  # fmt: skip
def test_recall_beyond_rouge(gold, reply, value):
    assert rouge_l_recall(gold, reply) == pytest.approx(value)


def test_twenty_thousand_replies_are_judged_in_two_seconds():
    gives_away("Which town?", ["warm words"], "of words")  # loads the stemmer
    began = time.process_time()
    for i in range(20_000):
        assert gives_away("Which town is it?", [f"Town {i % 800}"], f"In 1987 Ana Vey ({i}) came to Town {i % 800}.")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(("gold", "after", "verdict"), [
    *((gold, after, "Collapsed text") for gold, after in (
        ("北京", "的" * 28), ("Paris", "the " * 10), ("Paris", "!" * 40), ("Paris", "hahaha" * 9))),
    ("C++", "C", "Not brought back")])  # fmt: skip
def test_verdicts_on_other_scripts_and_signs(gold, after, verdict):
    assert verdict_on(after, gold) == verdict


def test_accepted_and_weak_answers():
    fact = Fact("f", "Which city?", "Brno", paraphrases=("Is Brünn the town?", "What town?"), accepted=("Brünn",))
    asked = questions(FactSet("s", (fact,)), Plan(kinds=(DIRECT, "reworded")))
    prompts = [question.prompt for kind in asked.values() for question in kind]
    expected = [("Which city?", ("Brünn",)), ("What town?", ("Brünn",))]
    assert [(prompt.text, prompt.accepted) for prompt in prompts] == expected
    assert recall(prompts[0], "Bruenn or Brünn") == 1.0
    assert known_recall(Prompt("f", DIRECT, "?", "Mumbai", accepted=("Bombay",)), "Mumbai or Bombay") >= 0.5
    assert _per_reply([fact], ["in Brunn"]) == {"recall": [1.0], "strict": [0.0], "words": [2]}
    assert verdict_on("Brünn", "Brno", "Which city?", "Brünn") == "Not forgotten"
    forget = Fact("a", "What is it?", "It", score=1.0), Fact("b", "?", "Oslo", score=2.0)
    facts = FactSet("s", forget, (Fact("c", "?", "Oslo"),))
    (doubt,) = (doubt for doubt in preflight(facts, RunConfig()).doubts if doubt.kind == "weak_answers")
    assert doubt.values == {"answers": 1, "named": "It (stop words)"}


def test_a_choice_is_right_by_its_letter_or_its_words():
    prompt = Prompt("f", CHOICE, "?", "Austen", ("A",), ("Austen", "Joyce", "Scott", "Zola"), 0.25)
    for reply, value in {"it is austen": 1, "B) Austen": 1, "(A) Joyce": 1, "B) Joyce": 0, "Albert": 0, "": 0}.items():
        assert recall(prompt, reply) == value, reply


def test_recall_of_accepted_answers_and_repetition():
    prompt = Prompt("f", "cross-lingual", "?", "United States", ("Vereinigte Staaten", "États-Unis"))
    texts = "United States", "vereinigte staaten", "the States", "Etats-Unis", "U"
    assert [recall(prompt, text) for text in texts] == [1, 1, 0.5, 1, 0]
    assert recall(prompt, "Etats Unis", fold=False) < recall(prompt, "Etats Unis") == 1, "strict splits at the accent"
    shares = {"": 0, "one two": 0, "a a a": 0.5, "A a a": 0.5, "a b a b a": 0.5, "a b c a b": 0.25}
    assert {text: repetition(text) for text in shares} == shares


@pytest.mark.parametrize(("reply", "letter"), [
    *((reply, "A") for reply in (
        "A", "A)", "(A) Joyce", "**A.**", "A: Joyce", "a", "A\n", "Ａ", "A：", "Answer: A", "The answer is A",
        "I think A", "Option A", "A, though I am unsure", "B is wrong, A is right")),
    *((reply, "B") for reply in ("B) Joyce", "A is wrong, B is right", "A good question! I would say B.")),
    *((reply, "") for reply in ("", "Albert", "A novel by Joyce", "It is not A", "A or B?\nB")),
    ("It's B because A is in Norway", "B"), ("Not A; B.", "B"), ("答案是C。", "C"), ("정답은 B입니다", "B"),
    ("答えはBです", "B"), ("Option (b) is correct", "B"), ("the answer is b", "B"), ("the answer is a city", ""),
    ("A, B, C or D?", ""), ("A and B are both right", ""), ("Émile B.", "B"),
])  # fmt: skip
def test_the_letter_that_a_reply_picks(reply, letter):
    assert picked(reply) == letter


def test_replies_are_as_long_as_the_run_says(monkeypatch):
    model, limits = adapted_model(make_config()), []
    replies = model.replies

    def noted(rows, most, *rest, **drawn):
        limits.append(most)
        return replies(rows, most, *rest, **drawn)

    monkeypatch.setattr(model, "replies", noted)
    every = sandbox_facts()
    facts = replace(every, forget=every.forget[:4], retain=every.retain[:2], holdout=(), utility=())
    for most in (make_config(model=SANDBOX).max_new_tokens, make_config(model=PEOPLE).max_new_tokens, 9):
        measure.quick(model, facts, most)
        measure.full(model, facts, most)
        measure.recall_by_fact(model, facts.forget, most, Progress())
        assert len(limits) > 4 and {*limits} == {most}
        limits.clear()
