import random
from collections import Counter
from dataclasses import replace

import pytest

from adapop.config.methods import METHODS
from adapop.experiments import tuned
from adapop.experiments.plans import SPLITS, TEST, VALIDATION, facts_of, wordings_of
from adapop.experiments.results import ATTACK_KINDS
from adapop.facts.fact import Fact
from bench_rows import cells, recalls, row

REDIRECT = METHODS["redirect"].title


def test_the_best_come_first():
    seen = {"A": [halved(1, 0.6), halved(2, 0.5)], "B": [halved(1, 0.3), halved(2, 0.4, forget_reworded_all=1.0)]}
    table = tuned.test_table(seen)
    assert [line[0] for line in table.rows] == ["B", "A"]
    best = cells(table, "B")
    assert best["worst tier"].startswith("0.35 (") and best["all"].startswith("0.35 (")
    assert best["J"].startswith(f"{0.35 + 2 * (0.93 - 0.9):.2f} (")
    assert tuned.score(row(1)) is None, "missing is not zero"


def halved(seed, test, validation=0.0, **more):
    names = ("forget_reworded_rare", "forget_reworded_middle", "forget_reworded_popular", "forget_reworded_all")
    split = {f"test_{name}": test for name in names} | {f"validation_{name}": validation for name in names}
    split |= {"test_holdout_direct_all": 0.9, "test_utility": 1.0, "validation_holdout_direct_all": 0.1}
    split["validation_utility"] = 1.0
    return row(seed, **{**recalls(0.9, 0.9, 0.2), **split, **more})


def test_an_attack_that_could_not_be_measured_is_left_out_of_the_mean():
    broken = halved(2, 0.3, **{f"attack {kind}": None for kind in ATTACK_KINDS})
    probed = {f"attack {kind}": 0.1 for kind in ATTACK_KINDS}
    probed |= {"attack role playing": 0.5, "attack reverse query": None, "attack multiple choice": 0.9}
    known = {"rounded": 0.2, "test_forget_top2_all": 0.4}
    arms = {"A": [halved(1, 0.4, **probed, **known), broken], "B": [halved(1, 0.3)]}
    table = tuned.recovery_table(arms)
    assert [line[0] for line in table.rows] == ["A"], "an arm that was not probed has no line"
    of_a = cells(table, "A")
    assert (of_a["attacks"], of_a["hardest attack"]) == (f"{(6 * 0.1 + 0.5) / 7:.2f}", "0.50")
    assert (of_a["rounded"], of_a["sampled"]) == ("0.20", "")
    assert tuned.recovery_table({"B": arms["B"]}) is None


def test_the_command_prints_what_was_recorded_and_refuses_a_world_without_rows(tmp_path, cli):
    for wrong, error in ((["--world", "moon"], "half-spread"), (["--anew", "--world", "three"], "Use --world people")):
        assert error in cli("bench", "tuned", *wrong, "--out", tmp_path, status=2).err
    assert not list(tmp_path.iterdir())
    printed = cli("bench", "tuned", "--world", "three", "--out", tmp_path).out
    assert "commit 1e770910" in printed and f"| sandbox: {REDIRECT} |" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tuned-three-table.csv", "tuned-three.html", "tuned-three.md"]  # fmt: skip


def test_the_halves_are_fixed_and_whole(sandbox):
    first, second = (facts_of(sandbox.holdout, half) for half in SPLITS)
    assert {*first} | {*second} == {*sandbox.holdout} and not {*first} & {*second}
    levels = [Counter(fact.score for fact in half) for half in (first, second)]
    assert levels[0] == levels[1] and set(levels[0].values()) == {16}
    relations = [Counter(fact.relation for fact in half) for half in (first, second)]
    assert relations[0] == relations[1]
    facts = list(sandbox.holdout)
    before = {fact.id for fact in facts_of(facts, TEST)}
    random.Random(0).shuffle(facts)
    assert {fact.id for fact in facts_of(facts, TEST)} == before
    assert [fact for fact in facts if fact.id in before] == list(facts_of(facts, TEST))
    families = [{fact.relation for fact in facts_of(sandbox.utility, half)} for half in SPLITS]
    assert families[0] == families[1] == {fact.relation for fact in sandbox.utility}
    fact = sandbox.forget[0]
    assert len(fact.paraphrases) == 4
    assert wordings_of(fact, VALIDATION) == fact.paraphrases[::2]
    assert wordings_of(fact, TEST) == fact.paraphrases[1::2]
    alone = replace(fact, paraphrases=("Only this?",))
    assert wordings_of(alone, VALIDATION) == wordings_of(alone, TEST) == ("Only this?",)
    assert wordings_of(replace(fact, paraphrases=()), TEST) == ()


@pytest.mark.parametrize("counts", [(3, 3, 3), (1, 2, 5), (1,), ()])
def test_odd_levels_leave_the_halves_within_one_fact(counts):
    facts = [Fact(f"{level}-{i}", "?", "a", score=level) for level, count in enumerate(counts) for i in range(count)]
    sizes = [Counter(fact.score for fact in facts_of(facts, half)) for half in SPLITS]
    assert abs(sizes[0].total() - sizes[1].total()) <= 1
    assert all(abs(sizes[0][level] - sizes[1][level]) <= 1 for level in range(len(counts)))
