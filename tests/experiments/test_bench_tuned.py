import random
from collections import Counter
from dataclasses import replace

import pytest

from adapop.config.methods import METHODS
from adapop.experiments import tuned
from adapop.experiments.results import ATTACK_KINDS
from adapop.experiments.tuned import objective
from adapop.experiments.validation import SPLITS, TEST, VALIDATION, facts_of, wordings_of
from adapop.facts.fact import Fact
from bench_rows import cells, recalls, row

REDIRECT, WGA = (METHODS[name].title for name in ("redirect", "wga"))


def test_what_was_minimized():
    assert objective(0.5, 0.93, 0.95, 0.97) == objective(0.5, 1, 1, 1) == 0.5
    assert objective(0.4, 0.83, 0.75, 0.96) == pytest.approx(0.4 + 2 * (0.1 + 0.2 + 0.01))


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


def test_doors_and_pairs_of_winners():
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
    assert tuned.recovery_table({"B": arms["B"]}) is tuned.pair_table(arms, "gone", ("A",), "T", "") is None
    pairs = tuned.pair_table(arms, "B", ("A", "gone"), "T", "")
    assert [dict(zip(pairs.head, line))["worst tier"] for line in pairs.rows] == ["+0.10"]


def test_only_variants_of_a_winner_are_compared_with_themselves_shuffled():
    titles = ("Redirect's settings, κ = 0.3", "WGA's settings, β by score (gentle curve)")
    shuffled = (f"{titles[0]}, scores shuffled", "WGA's settings, β by score (gentle curve, shuffled)")
    names = (REDIRECT, WGA, *titles, *shuffled, "AdaPop", "AdaPop, scores shuffled")
    arms = {name: [halved(1, 0.1 * place)] for place, name in enumerate(names)}
    assert [line[0] for line in tuned.shuffled_table(arms).rows] == [*titles]
    assert list(tuned.winners(arms)) == [REDIRECT, WGA, "AdaPop", "AdaPop, scores shuffled"]
    assert [line[0] for line in tuned.variant_table(arms, WGA).rows] == [titles[1], shuffled[1]]
    assert [line[0] for line in tuned.to_ours_table(arms).rows] == [WGA, "AdaPop", "AdaPop, scores shuffled"]
    assert tuned.shuffled_table({REDIRECT: arms[REDIRECT]}) is None


def test_the_mean_of_worlds():
    def runs(values):
        return [halved(seed, value, test_forget_top2_all=0.0) for seed, value in values.items()]

    rows = {
        "one: A": runs({1: 0.1, 2: 0.2}), "two: A": runs({1: 0.3, 2: 0.6, 3: 0.9}),
        f"one: {tuned.OURS}": runs({1: 0.1, 2: 0.1}), f"two: {tuned.OURS}": runs({1: 0.1, 2: 0.1}),
        "one: B": runs({1: 0.1})}  # fmt: skip
    means = tuned.mean_of_worlds(rows)
    worst = {row["seed"]: row["worst tier"] for row in means["A"]}
    assert worst == {1: pytest.approx(0.2), 2: pytest.approx(0.4)}
    assert "B" not in means and means["A"][0]["attacks"] is None, "a world that lacks it is not a zero"
    (line,) = tuned.worlds_difference_table(rows).rows
    assert line[0] == "A" and line[1].startswith("+0.20 (")
    assert [line[0] for line in tuned.worlds_table(rows).rows] == [tuned.OURS, "A"]
    rows["two: A"][0]["failed"] = "NaN"
    assert [row["failed"] for row in tuned.mean_of_worlds(rows)["A"]] == ["NaN", ""]


def test_the_command_prints_what_was_recorded_and_refuses_a_world_without_rows(tmp_path, cli):
    for wrong, error in ((["--world", "moon"], "half-spread"), (["--anew", "--world", "three"], "Use --world people")):
        assert error in cli("bench", "tuned", *wrong, "--out", tmp_path, status=2).err
    assert not list(tmp_path.iterdir())
    printed = cli("bench", "tuned", "--world", "three", "--out", tmp_path).out
    assert "commit 1e770910" in printed and f"| {REDIRECT} |" in printed
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
