import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from adapop.config.methods import METHODS
from adapop.config.presets import PRESETS, make_config
from adapop.errors import ConfigError, DataError
from adapop.experiments import trial, tuned, tuning, winners
from adapop.experiments.item import Item
from adapop.experiments.results import ATTACK_KINDS, RECOVERY_CHECKS
from adapop.experiments.run import Place
from adapop.experiments.spaces import MOVES, SEARCHES, Range, first_points, preset_point, with_point
from adapop.experiments.tuning import best_of, objective, search, trials_file, trials_of
from adapop.experiments.validation import SPLITS, TEST, VALIDATION, facts_of, wordings_of
from adapop.facts.fact import Fact
from adapop.objectives import make_objective
from adapop.objectives.flat import DIVERGENCES
from adapop.popularity.beta import BetaMap
from bench_rows import cells, recalls, row
from raised import raised

BROKEN = ["", "[]", "7", "[" * 100_000, '{"number": 0}', "\udcff"]
OTHERWISE = [{"J": "low"}, {"J": float("nan")}, {"point": []}, {"worst": "x"}, {"failed": 1}]


def test_what_is_searched():
    assert objective(0.5, 0.93, 0.95, 0.97) == objective(0.5, 1, 1, 1) == 0.5
    assert objective(0.4, 0.83, 0.75, 0.96) == pytest.approx(0.4 + 2 * (0.1 + 0.2 + 0.01))
    assert pytest.approx(1 + 2 * (0.93 + 0.95 + 0.97)) == tuning.WORST
    presets = {wanted.arm.preset for wanted in SEARCHES.values() if wanted.arm.method == "adapop"}
    assert {wanted.arm.method for wanted in SEARCHES.values()} == set(METHODS)
    assert presets == set(PRESETS) - {"gentle", "stress"}
    assert set(SEARCHES["flat"].space["arguments.divergence"]) == set(DIVERGENCES)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_range_can_be_run_and_is_searched_from_the_preset(name):
    method_search = SEARCHES[name]
    config = Item(method_search.arm, 0).config
    arguments = vars(make_objective(config.method, config.arguments))
    preset = preset_point(method_search, arguments)
    assert preset.keys() == method_search.space.keys()
    assert preset["learning_rate"] == config.learning_rate and preset["epochs"] == config.epochs
    corners = [{**preset, key: end} for key, among in method_search.space.items() for end in ends(among)]
    for point in (preset, *corners):
        made = Item(with_point(method_search.arm, point), 0).config
        make_objective(made.method, made.arguments)
        assert made.preset == method_search.arm.preset and made.learning_rate == point["learning_rate"]
        assert all(made.arguments[key.removeprefix("arguments.")] == point[key] for key in point if "arguments" in key)
    assert len({Item(with_point(method_search.arm, point), 0).key for point in corners}) >= len(corners) // 2
    points = first_points(method_search, arguments)
    assert 8 <= len(points) <= len(MOVES)
    every = len(points) == len(MOVES) or "alpha0" not in method_search.space
    assert every or points[0]["alpha0"] in ends(method_search.space["alpha0"])
    assert points[1] == {**points[0], "learning_rate": pytest.approx(2 * points[0]["learning_rate"])}
    for point in points:
        for key, among in method_search.space.items():
            assert among.low <= point[key] <= among.high if isinstance(among, Range) else point[key] in among


def ends(among):
    return (among.low, among.high) if isinstance(among, Range) else among


def test_what_is_chosen_reaches_the_run():
    point = {"learning_rate": 1e-3, "beta.rare": 1.0, "beta.ratio": 0.1, "epochs": 4}
    config = Item(with_point(SEARCHES["adapop"].arm, point), 0).config
    assert config.beta(100) == pytest.approx(1.0) and config.beta(3000) == pytest.approx(0.1) and config.epochs == 4
    assert Item(with_point(SEARCHES["beta-mean"].arm, {"beta.all": 0.4}), 0).config.beta == BetaMap.constant(0.4)
    steered = Item(with_point(SEARCHES["rmu"].arm, {"arguments.layer": 2}), 0).config
    assert steered.arguments["layer"] == 2 and steered.lora_layers == (0, 1, 2)
    assert Range(1e-4, 1e-2).near(0.00123456) == 0.00123
    assert Range(1e-4, 1e-2).near(0.0) == 1e-4 and Range(3, 10, False, True).near(6.6) == 7


@pytest.fixture
def invented(monkeypatch):
    """Trials that take no time: J has its least at a rate of 1e-3. Every point that was tried."""
    points = []

    def run_trial(wanted, point, quick, custom):
        points.append(dict(point))
        return {"J": abs(point["learning_rate"] - 1e-3), "worst": 0.5, "failed": "", "seconds": 0.1}

    monkeypatch.setattr(tuning, "run_trial", run_trial)
    return points


def test_an_interrupted_search_goes_on_as_if_it_had_not_been(invented, tmp_path):
    assert search("wga", tmp_path / "a", 14) == 14
    whole, invented[:] = list(invented), []
    for trials in (1, 5, 11, 14):
        search("wga", tmp_path / "b", trials)
    assert invented == whole and len({str(point) for point in whole}) == 14
    assert search("wga", tmp_path / "b", 14) == 0
    rates = [point["learning_rate"] for point in whole]
    assert rates[0] == 2e-3 and min(rates[10:], key=lambda rate: abs(rate - 1e-3)) == pytest.approx(1e-3, rel=0.5)


def test_trials_of_other_ranges_are_refused(invented, tmp_path):
    search("wga", tmp_path, 12)
    path = trials_file(tmp_path, "wga")
    path.write_text(path.read_text(encoding="utf-8").replace('"epochs": 5', '"epochs": 99'), encoding="utf-8")
    assert "--out" in raised(ConfigError, "other ranges", search, "wga", tmp_path, 13).fix


@pytest.mark.parametrize("damage", [*BROKEN, *OTHERWISE], ids=lambda damage: repr(damage)[:20])
def test_a_damaged_trial_is_named(invented, tmp_path, damage):
    search("wga", tmp_path, 2)
    path = trials_file(tmp_path, "wga")
    first, second = path.read_text(encoding="utf-8").splitlines()
    damaged = damage if isinstance(damage, str) else json.dumps(json.loads(second) | damage)
    path.write_text(f"{first}\n{damaged}\n", encoding="utf-8", errors="surrogateescape")
    assert raised(DataError, r"wga\.jsonl, line 2 is damaged", trials_of, path).fix.startswith("Move the file ")


def test_without_optuna_one_is_told_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    assert "pip install" in raised(ConfigError, "Optuna", search, "wga", tmp_path, 1).fix


def test_the_best_come_first():
    assert best_of([{"J": 0.5}, {"J": 0.4, "a": 1}, {"J": 0.4, "a": 2}])["a"] == 1
    seen = {"A": [halved(1, 0.6), halved(2, 0.5)], "B": [halved(1, 0.3), halved(2, 0.4, forget_reworded_all=1.0)]}
    table = winners.test_table(seen)
    assert [line[0] for line in table.rows] == ["B", "A"]
    best = cells(table, "B")
    assert best["worst tier"].startswith("0.35 (") and best["all"].startswith("0.35 (")
    assert best["J"].startswith(f"{0.35 + 2 * (0.93 - 0.9):.2f} (")
    assert winners.score(row(1)) is None, "missing is not zero"


def halved(seed, test, validation=0.0, **more):
    names = ("forget_reworded_rare", "forget_reworded_middle", "forget_reworded_popular", "forget_reworded_all")
    split = {f"test_{name}": test for name in names} | {f"validation_{name}": validation for name in names}
    split |= {"test_holdout_direct_all": 0.9, "test_utility": 1.0, "validation_holdout_direct_all": 0.1}
    split["validation_utility"] = 1.0
    return row(seed, **{**recalls(0.9, 0.9, 0.2), **split, **more})


def test_winners_are_planned_once_their_search_is_done(invented, tmp_path):
    for name, trials in (("npo", 3), ("ga", 2)):
        search(name, tmp_path, trials)
    own = tuned.experiment(tmp_path, 3, ("npo", "ga"))
    items = Place("tuned", tmp_path, (1, 2), own=own).items({})
    assert [(item.arm.method, item.seed, item.recovery) for item in items] == [("npo", 1, True), ("npo", 2, True)]
    best = best_of(trials_of(trials_file(tmp_path, "npo")))["point"]
    assert items[0].config.learning_rate == best["learning_rate"]
    assert items[0].key != replace(items[0], recovery=False).key, "a run that was not probed is another one"
    three = Place("three", tmp_path, (1,), own=tuned.experiment(tmp_path, 3, ("npo",), tuned.THREE)).items({})
    assert [one.arm.title for one in three] == ["sandbox: NPO", "half-spread: NPO", "people: NPO"]
    assert three[0].key == items[0].key and three[2].config.max_new_tokens == 5
    (line,) = winners.winner_table({"npo": trials_of(trials_file(tmp_path, "npo"))}).rows
    assert line[0] == "NPO" and f"learning_rate {best['learning_rate']:g}" in line[-1]


def test_doors_and_pairs_of_winners():
    broken = halved(2, 0.3, **{f"attack {kind}": None for kind in ATTACK_KINDS})
    probed = {f"attack {kind}": 0.1 for kind in ATTACK_KINDS}
    probed |= {"attack role playing": 0.5, "attack reverse query": None, "attack multiple choice": 0.9}
    known = {"rounded": 0.2, "test_forget_top2_all": 0.4}
    arms = {"A": [halved(1, 0.4, **probed, **known), broken], "B": [halved(1, 0.3)]}
    table = winners.recovery_table(arms)
    assert [line[0] for line in table.rows] == ["A"], "an arm that was not probed has no line"
    of_a = cells(table, "A")
    assert (of_a["attacks"], of_a["hardest attack"]) == (f"{(6 * 0.1 + 0.5) / 7:.2f}", "0.50")
    assert (of_a["rounded"], of_a["sampled"]) == ("0.20", "")
    assert winners.recovery_table({"B": arms["B"]}) is winners.pair_table(arms, "gone", ("A",), "T", "") is None
    pairs = winners.pair_table(arms, "B", ("A", "gone"), "T", "")
    assert [dict(zip(pairs.head, line))["worst tier"] for line in pairs.rows] == ["+0.10"]
    (line,) = winners.shuffled_table(arms, {"A": "B", "gone": "B"}).rows
    assert line[0] == "A" and winners.shuffled_table(arms, {"gone": "B"}) is None


def test_how_far_a_search_went():
    space, parts = SEARCHES["npo"].space, {"worst": 0.2, "holdout": 1.0, "utility": 1.0, "retain": 1.0}
    inside = {name: among.near((among.low * among.high) ** 0.5 or 1.0) for name, among in space.items()}
    point = {**inside, "epochs": 10, "weight_decay": 0.0}
    trials = [{"J": 1.5, "point": inside}] * 11 + [{"J": 0.4, "point": point, **parts}]
    (line,) = winners.search_table({"npo": trials}).rows
    assert line == ("NPO", "1.500", "0.400", "1", "epochs 10")
    assert winners.search_table({"npo": trials[:11]}).rows[0][-1] == "", "who did nothing stopped nowhere"
    arms = {"NPO": [halved(1, 0.6, 0.5)], "GA": [halved(1, 0.6)]}
    (line,) = winners.luck_table(arms, {"npo": trials, "gd": trials}).rows
    validation = objective(0.5, 0.1, arms["NPO"][0]["validation_utility"], arms["NPO"][0]["retain_direct_all"])
    assert line[:3] == ("NPO", "0.20", f"{validation:.2f}")


def test_the_mean_of_worlds():
    def runs(values):
        return [halved(seed, value, test_forget_top2_all=0.0) for seed, value in values.items()]

    rows = {
        "one: A": runs({1: 0.1, 2: 0.2}), "two: A": runs({1: 0.3, 2: 0.6, 3: 0.9}),
        f"one: {winners.OURS}": runs({1: 0.1, 2: 0.1}), f"two: {winners.OURS}": runs({1: 0.1, 2: 0.1}),
        "one: B": runs({1: 0.1})}  # fmt: skip
    means = winners.mean_of_worlds(rows)
    worst = {row["seed"]: row["worst tier"] for row in means["A"]}
    assert worst == {1: pytest.approx(0.2), 2: pytest.approx(0.4)}
    assert "B" not in means and means["A"][0]["attacks"] is None, "a world that lacks it is not a zero"
    (line,) = winners.worlds_difference_table(rows).rows
    assert line[0] == "A" and line[1].startswith("+0.20 (")
    assert [line[0] for line in winners.worlds_table(rows).rows] == [winners.OURS, "A"]
    rows["two: A"][0]["failed"] = "NaN"
    assert [row["failed"] for row in winners.mean_of_worlds(rows)["A"]] == ["NaN", ""]


def test_the_command_refuses_what_it_cannot_search(tmp_path, cli):
    for wrong, error in (
        (["--arms", "magic"], "magic"), (["--world", "moon"], "half-spread"),
        (["--anew", "--world", "three"], "Use --world people")):  # fmt: skip
        assert error in cli("bench", "tuned", *wrong, "--out", tmp_path, status=2).err
    assert not list(tmp_path.iterdir())


def test_a_search_elsewhere_begins_at_the_rate_of_that_world(tmp_path, monkeypatch):
    trials = []

    def measured(item, folder):
        trials.append((item.custom.facts.name, item.config.model, item.config.learning_rate, item.seed))
        return {"J": 1.0, "top2": 0.0}

    monkeypatch.setattr(tuning, "_measure", measured)
    assert search("npo", tmp_path, 3, custom=tuned.searched_on("people")) == 3
    rate = make_config("npo", model="people").learning_rate
    assert trials == [("people", "people", rate * factor, 0) for factor in (1, 2, 0.5)]
    assert rate != make_config("npo").learning_rate


@pytest.mark.slow
def test_two_trials_of_one_method_and_their_winner(tmp_path, cli):
    command = ("bench", "tuned", "--arms", "altpo", "--trials", 2, "--quick", "--processes", 1, "--out", tmp_path)
    said = cli(*command)
    assert "search altpo: 2 trials made" in said.err and winners.test_table({}).title in said.out
    path = trials_file(tmp_path / "tuned-quick-trials", "altpo")
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one["number"] for one in found] == [0, 1] and found[0]["point"] != found[1]["point"]
    (made,) = Place("tuned", tmp_path, (1,), quick=True).results.rows().values()
    assert made["seed"] == 1 and made["test_utility"] is not None and made["test_forget_top2_all"] is not None
    assert made["attack prefix injection"] is not None and made["attack reverse query"] is None, "it is not taught that"
    assert None not in [made[name] for name in RECOVERY_CHECKS if "attack" not in name]
    before = path.read_bytes()
    cli(*command)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_trial_measures_what_the_whole_run_measures():
    """The same item by both ways: J's parts are those of the row's validation half."""
    wga = SEARCHES["wga"]
    point = preset_point(wga, {"beta": 1.0})
    quick, whole = tuning.run_trial(wga, point, True), trial.result(Item(with_point(wga.arm, point), 0, True))
    assert (quick["holdout"], quick["utility"], quick["retain"]) == (
        whole["validation_holdout_direct_all"], whole["validation_utility"], whole["retain_direct_all"])  # fmt: skip
    assert quick["worst"] == max(whole[f"validation_forget_reworded_{tier}"] for tier in ("rare", "middle", "popular"))


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
