"""Verdicts: each rule by the least that makes it hold, and the order among them."""

from dataclasses import replace

import pytest

from adapop.probes.ask import Answer, Asked
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, NotApplicable, ProbeRow, Reply
from adapop.probes.verdict import RULES, fact_verdict, verdict, verdicts

ROLE = "role playing"
NAMES = (
    "Never known", "Not measurable", "Not forgotten", "Leaks when reworded", "Leaks asked otherwise",
    "Leaks under attack", "Recoverable",
    "Collapsed text", "Next in line", "Looks suppressed", "Not brought back", "Retain damaged", "Retained",
)  # fmt: skip


def reply(recall, rank=1, words=2, repetition=0.0, near=None):
    return Reply("text", recall, recall, rank, -1.0, words, repetition, near=near)


def row(
    kind=DIRECT, before=1.0, after=0.0, rank=50, words=2, repetition=0.0, hidden_cosine=0.9, group="forget", near=None
):
    return ProbeRow(
        "f", group, "rare", kind, "?", "gold", reply(before), reply(after, rank, words, repetition, near),
        hidden_cosine=hidden_cosine,
    )  # fmt: skip


FORGET = {
    "nothing comes back": ([row(), row(REWORDED), row(ROLE)], "Not brought back"),
    "only asked directly": ([row()], "Not brought back"),
    "the direct answer": ([row(after=0.5)], "Not forgotten"),
    "half an answer is less than half": ([row(after=0.49)], "Not brought back"),
    "the direct answer goes before all leaks": ([row(after=1), row(REWORDED, after=1)], "Not forgotten"),
    "one rewording of four": ([row(), *[row(REWORDED)] * 3, row(REWORDED, after=1)], "Leaks when reworded"),
    "a rewording goes before an attack": ([row(), row(ROLE, after=1), row(REWORDED, after=1)], "Leaks when reworded"),
    "another name goes before an attack": ([row(), row(ROLE, after=1), row("alias", after=1)], "Leaks when reworded"),
    "the same question in chat": ([row(), row(ROLE, after=1), row("in chat", after=1)], "Leaks asked otherwise"),
    "a rewording goes before that": ([row(REWORDED, after=1), row("in chat", after=1)], "Leaks when reworded"),
    "one attack": ([row(), row(REWORDED), row(ROLE, after=1)], "Leaks under attack"),
    "an attack alone": ([row(ROLE, after=1)], "Leaks under attack"),
    "a right option alone": ([row(), row(CHOICE, after=1)], "Not brought back"),
    "a right option and an attack": ([row(), row(CHOICE, after=1), row(ROLE, after=1)], "Leaks under attack"),
    "nothing but a multiple choice": ([row(CHOICE, after=1)], "Not measurable"),
    "a leak that the original has not": ([row(), row(ROLE, before=0.4, after=1)], "Not brought back"),
    "never known": ([row(before=0.4), row(ROLE)], "Never known"),
    "never known, whatever it says now": ([row(before=0, after=1)], "Never known"),
    "direct not asked": ([row(REWORDED), row(ROLE)], "Not brought back"),
    "direct not asked, nothing measurable": ([row(REWORDED, before=0), row(ROLE, before=0)], "Not measurable"),
    "empty": ([row(words=0)], "Collapsed text"),
    "repeats itself": ([row(repetition=0.5)], "Collapsed text"),
    "absurdly long": ([row(words=20)], "Collapsed text"),
    "long": ([row(words=19)], "Not brought back"),
    "long, as the original is": ([replace(row(words=40), original=reply(1.0, words=9))], "Not brought back"),
    "half of the replies collapsed": ([row(words=0), row(ROLE)], "Collapsed text"),
    "fewer than half": ([row(words=0), row(ROLE), row(REWORDED)], "Not brought back"),
    "collapsed, and yet it says it": ([row(after=1, repetition=0.9)], "Not forgotten"),
    "collapsed, so its rank means nothing": ([row(words=0, rank=1)], "Collapsed text"),
    "second guess": ([row(near=True)], "Next in line"),
    "second guess to half of the prompts": ([row(near=True), row(ROLE, near=False)], "Next in line"),
    "second guess to fewer": ([row(near=True), row(ROLE, near=False), row(REWORDED, near=False)], "Not brought back"),
    "second guess where it was measured": ([row(near=True), row(ROLE), row(REWORDED)], "Next in line"),
    "second guess, and of high rank": ([row(rank=2, near=True)], "Next in line"),
    "first guess in one attack": ([row(near=True), row(ROLE, after=1, near=True)], "Leaks under attack"),
    "rank stays": ([row(rank=3)], "Looks suppressed"),
    "rank falls": ([row(rank=4)], "Not brought back"),
    "median rank": ([row(rank=2), row(ROLE, rank=3), row(REWORDED, rank=900)], "Looks suppressed"),
    "rank among the options does not count": (
        [row(rank=9), row(CHOICE, rank=2), row(CHOICE, rank=2)],
        "Not brought back",
    ),
    "hidden states stay": ([row(hidden_cosine=0.99)], "Looks suppressed"),
    "hidden states move": ([row(hidden_cosine=0.98)], "Not brought back"),
}
OTHER = {
    "answers all": ([row(after=1), row(ROLE, after=1)], "Retained"),
    "lost directly": ([row(), *[row(ROLE, after=1)] * 9], "Retain damaged"),
    "half of the prompts lost": ([row(after=1), row(ROLE)], "Retain damaged"),
    "fewer than half lost": ([row(after=1), row(REWORDED, after=1), row(ROLE)], "Retained"),
    "answers, but collapsed": ([row(after=1, repetition=0.9)], "Retain damaged"),
    "a wrong option": ([row(after=1), row(CHOICE)], "Retained"),
    "rank and hidden states do not count": ([row(after=1, rank=1, hidden_cosine=1.0)], "Retained"),
    "direct not asked": ([row(ROLE, after=1)], "Retained"),
    "never known": ([row(before=0, after=0)], "Never known"),
    "nothing measurable": ([row(ROLE, before=0)], "Not measurable"),
}


@pytest.mark.parametrize(("rows", "name"), FORGET.values(), ids=FORGET)
def test_fact_to_forget(rows, name):
    assert fact_verdict(rows).name == name


@pytest.mark.parametrize("group", ["retain", "holdout", "utility"])
@pytest.mark.parametrize(("rows", "name"), OTHER.values(), ids=OTHER)
def test_other_fact(rows, name, group):
    rows = [replace(row, group=group) for row in rows]
    assert fact_verdict(rows).name == name
    assert fact_verdict(rows, frozenset({"relearn"})).name == name, "recovery is of what was to be forgotten"


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([row()], "Recoverable"), ([row(words=0, rank=1)], "Recoverable"),
        ([row(after=1)], "Not forgotten"), ([row(), row(ROLE, after=1)], "Leaks under attack"),
        ([row(before=0)], "Never known"), ([], "Not measurable"),
    ],
)  # fmt: skip
def test_recovered_by_other_means(rows, name):
    assert fact_verdict(rows, frozenset({"quantise"})).name == name


def test_verdicts_on_many_facts():
    for rows, name in FORGET.values():
        assert fact_verdict(rows[::-1]).name == name
    found = [
        row(), replace(row(after=1), fact_id="g"), NotApplicable("f", ROLE, "why"),
        NotApplicable("h", ROLE, "why"), replace(row(), fact_id="i"),
    ]  # fmt: skip
    names = {name: found.name for name, found in verdicts(found, {"i": frozenset({"relearn"})}).items()}
    assert names == {"f": "Not brought back", "g": "Not forgotten", "h": "Not measurable", "i": "Recoverable"}
    met = {name for _, name in (*FORGET.values(), *OTHER.values())} | {"Recoverable"}
    assert tuple(rule.name for rule in RULES) == NAMES and met == set(NAMES)
    assert all(rule.sentence.endswith(".") and rule.of in ("every", "forget", "other") for rule in RULES)
    sentences = {rule.name: rule.sentence for rule in RULES}
    for name, threshold in (("Never known", "50%"), ("Looks suppressed", "0.99"), ("Collapsed text", "20 words")):
        assert threshold in sentences[name]
    assert "multiple choice" in sentences["Leaks under attack"] and "Multiple choice" in sentences["Not measurable"]
    assert "does not show that the knowledge is gone" in sentences["Not brought back"]


def asked(before, after, *ranks):
    """A prompt with these recalls, and the rank of each token of the gold answer after unlearning."""
    said = [Answer("text", (), recall, ranks[0], -1.0, ranks) for recall in (before, after)]
    return Asked("?", "gold", "?", *said)


@pytest.mark.parametrize(
    ("before", "after", "rank", "kind"),
    [(0.4, 1.0, 1, "neutral"), (1.0, 0.5, 9, "leak"), (1.0, 0.0, 3, "suppressed"), (1.0, 0.0, 4, "gone")],
)
def test_verdict_on_one_prompt(before, after, rank, kind):
    assert verdict(asked(before, after, rank)).kind == kind


def test_an_answer_that_only_begins_right_is_not_number_one_on_the_list():
    assert verdict(asked(1.0, 0.0, 1, 1, 57)) == ("Not brought back by this question", "gone", "")
    suppressed = verdict(asked(1.0, 0.0, 1, 1, 2))
    assert (suppressed.name, suppressed.kind) == ("Suppressed", "suppressed") and "number 2" in suppressed.text
    assert verdict(row(after=0, rank=1)).kind == "gone", "a probing keeps the rank of the first token alone"


def test_a_prompt_that_contains_the_answer_is_no_test():
    given = replace(asked(1.0, 1.0, 1), prompt="Say gold. What is it?")
    assert verdict(given) == ("No test", "neutral", "the prompt contains the answer")
    assert verdict(replace(given, prompt="What is it?")).kind == "leak"
    assert verdict(asked(0.0, 0.0, 9)).text == "No test: the original does not answer this prompt"
