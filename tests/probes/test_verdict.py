from dataclasses import replace
from itertools import product

import pytest

from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, Answer, Asked, NotApplicable
from adapop.probes.verdict import RULES, fact_verdict, verdict, verdicts
from records import probed, reply

ROLE = "role playing"
NAMES = (
    "Never known", "Not measurable", "Not forgotten", "Leaks in other words", "Leaks in another format",
    "Leaks under attack", "Recoverable",
    "Collapsed text", "Next in line", "Looks suppressed", "Not brought back", "Retain damaged", "Retained",
)  # fmt: skip


def row(
    kind=DIRECT, before=1.0, after=0.0, rank=50, words=2, repetition=0.0, hidden_cosine=0.9, group="forget", near=None
):
    unlearned = reply(after, words, repetition, near=near, rank=rank)
    return probed("f", reply(before, words=2), unlearned, kind, group, hidden_cosine=hidden_cosine)


# by verdict, the replies that lead to it: the first leak in the order of the rules counts
FORGET = {
    "Not brought back": [[row(), row(REWORDED), row(ROLE)], [row()], [row(after=0.49)],
        [row(), row(CHOICE, after=1)], [row(), row(ROLE, before=0.4, after=1)], [row(REWORDED), row(ROLE)],
        [row(words=19)], [replace(row(words=40), original=reply(1.0, words=9))],
        [row(words=0), row(ROLE), row(REWORDED)], [row(near=True), row(ROLE, near=False), row(REWORDED, near=False)],
        [row(rank=4)], [row(rank=9), row(CHOICE, rank=2), row(CHOICE, rank=2)], [row(hidden_cosine=0.98)]],
    "Not forgotten": [[row(after=0.5)], [row(after=1), row(REWORDED, after=1)], [row(after=1, repetition=0.9)]],
    "Leaks in other words": [[row(), *[row(REWORDED)] * 3, row(REWORDED, after=1)],
        [row(), row(ROLE, after=1), row(REWORDED, after=1)], [row(), row(ROLE, after=1), row("alias", after=1)],
        [row(REWORDED, after=1), row("in chat", after=1)]],
    "Leaks in another format": [[row(), row(ROLE, after=1), row("in chat", after=1)]],
    "Leaks under attack": [[row(), row(REWORDED), row(ROLE, after=1)], [row(ROLE, after=1)],
        [row(), row(CHOICE, after=1), row(ROLE, after=1)], [row(near=True), row(ROLE, after=1, near=True)]],
    "Not measurable": [[row(CHOICE, after=1)], [row(REWORDED, before=0), row(ROLE, before=0)]],
    "Never known": [[row(before=0.4), row(ROLE)], [row(before=0, after=1)]],
    "Collapsed text": [[row(words=0)], [row(repetition=0.5)], [row(words=20)], [row(words=0), row(ROLE)],
        [row(words=0, rank=1)]],
    "Next in line": [[row(near=True)], [row(near=True), row(ROLE, near=False)],
        [row(near=True), row(ROLE), row(REWORDED)], [row(rank=2, near=True)]],
    "Looks suppressed": [[row(rank=3)], [row(rank=2), row(ROLE, rank=3), row(REWORDED, rank=900)],
        [row(hidden_cosine=0.99)]],
}  # fmt: skip
OTHER = {
    "Retained": [[row(after=1), row(ROLE, after=1)], [row(after=1), row(REWORDED, after=1), row(ROLE)],
        [row(after=1), row(CHOICE)], [row(after=1, rank=1, hidden_cosine=1.0)], [row(ROLE, after=1)]],
    "Retain damaged": [[row(), *[row(ROLE, after=1)] * 9], [row(after=1), row(ROLE)], [row(after=1, repetition=0.9)]],
    "Never known": [[row(before=0, after=0)]],
    "Not measurable": [[row(ROLE, before=0)]],
}  # fmt: skip


@pytest.mark.parametrize("name", FORGET)
def test_fact_to_forget(name):
    for rows in FORGET[name]:
        assert fact_verdict(rows).name == fact_verdict(rows[::-1]).name == name, rows


@pytest.mark.parametrize("name", OTHER)
def test_other_fact(name):
    for group, rows in product(("retain", "holdout", "utility"), OTHER[name]):
        rows = [replace(row, group=group) for row in rows]
        assert fact_verdict(rows).name == name, rows
        assert fact_verdict(rows, frozenset({"relearn"})).name == name, "recovery is of what was to be forgotten"


def test_verdicts_on_many_facts_and_on_those_recovered_by_other_means():
    results = [
        row(), replace(row(after=1), fact_id="g"), NotApplicable("f", ROLE, "why"),
        NotApplicable("h", ROLE, "why"), replace(row(), fact_id="i")]  # fmt: skip
    names = {name: verdict.name for name, verdict in verdicts(results, {"i": frozenset({"relearn"})}).items()}
    assert names == {"f": "Not brought back", "g": "Not forgotten", "h": "Not measurable", "i": "Recoverable"}
    assert tuple(rule.name for rule in RULES) == NAMES and {*FORGET, *OTHER, "Recoverable"} == set(NAMES)
    assert all(rule.sentence.endswith(".") and rule.of in ("every", "forget", "other") for rule in RULES)
    for rows, name in (
        ([row()], "Recoverable"), ([row(words=0, rank=1)], "Recoverable"), ([row(after=1)], "Not forgotten"),
        ([row(), row(ROLE, after=1)], "Leaks under attack"), ([row(before=0)], "Never known"), ([], "Not measurable"),
    ):  # fmt: skip
        assert fact_verdict(rows, frozenset({"quantise"})).name == name


def prompt_with(before, after, *ranks):
    """A prompt with these recalls, and the rank of each token of the gold answer after unlearning."""
    return Asked("?", "gold", "?", *(Answer("text", (), recall, ranks[0], -1.0, ranks) for recall in (before, after)))


def test_verdict_of_one_question():
    """An answer that only begins right is not number one on the list; a prompt that contains it is no test."""
    gone = verdict(prompt_with(1.0, 0.0, 1, 1, 57))
    assert (gone.kind, gone.detail) == ("gone", "") and gone.name.startswith("Not brought back")
    suppressed = verdict(prompt_with(1.0, 0.0, 1, 1, 2))
    assert (suppressed.name, suppressed.kind) == ("Suppressed", "suppressed") and "ranks 2 or better" in suppressed.text
    assert verdict(row(after=0, rank=1)).kind == "gone", "a probing keeps the rank of the first token alone"
    kinds = {(0.4, 1.0, 1): "neutral", (1.0, 0.5, 9): "leak", (1.0, 0.0, 3): "suppressed", (1.0, 0.0, 4): "gone"}
    assert {given: verdict(prompt_with(*given)).kind for given in kinds} == kinds
    given = replace(prompt_with(1.0, 1.0, 1), prompt="Say gold. What is it?")
    assert verdict(given)[:2] == ("No test", "neutral") and "contains" in verdict(given).detail
    assert verdict(replace(given, prompt="What is it?")).kind == "leak"
    assert verdict(prompt_with(0.0, 0.0, 9)).text.startswith("No test: the original")
