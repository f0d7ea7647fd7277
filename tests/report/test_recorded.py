import json
from dataclasses import replace
from math import sqrt
from types import SimpleNamespace

import pytest

from adapop.config.presets import make_config, presets_of
from adapop.errors import ConfigError
from adapop.facts.fact import Fact, FactSet
from adapop.popularity.beta import BetaMap
from adapop.probes.distance import OVER, UNDER
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report import figures, published, real, recorded
from adapop.report.beside_paper import _our_recall, beside, capability_beside
from adapop.report.comparison import comparison
from adapop.training.events import Measured
from adapop.ui.compare import recorded as layer
from components import stand_ins
from fact_files import write
from raised import raised
from records import ADAPOP, WGA, measured, probed, record
from records import row as measured_row

T_OF_THREE = 4.303  # 97.5% quantile of Student's t with two degrees of freedom


def row(key="k", method="wga", preset="paper", recall=0.5, failed="", **changes):
    """A line of the file. recall: of rare facts to forget; that of popular ones is a quarter more."""
    settings = [name for name in ("epochs", "beta", "seed") if name in changes]
    config = make_config(method, preset, **{name: changes.pop(name) for name in settings})
    line = {
        "key": key, "method": method, "preset": preset, "scores": "given", "anchors": "paper", "world": "",
        "quick": "0", "seed": str(config.seed), "failed": failed, "facts": "0123456789abcdef", "commit": "abc1234",
        "config": config.to_json(), "forget_reworded_rare": str(recall), "forget_reworded_popular": str(recall + 0.25),
        "forget_reworded_all": str(recall), "holdout_reworded_all": "0.9", "forget_all_kl": "2.0", "utility": "",
    }  # fmt: skip
    return line | changes


def read(tmp_path, rows, of=recorded.results):
    columns = dict.fromkeys({name for row in rows for name in row}, "")
    path = write(tmp_path, "rows.csv", [columns | row for row in rows])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recorded, "FILES", (path,))
        patched.setattr(recorded, "TUNED_FILE", path)
        of.cache_clear()
        try:
            return of()
        finally:
            of.cache_clear()


def test_means_and_intervals_that_end_where_recall_or_a_metric_ends(tmp_path):
    (one,) = read(tmp_path, [row(str(seed), recall=value, seed=seed) for seed, value in enumerate((0.4, 0.5, 0.6))])
    recall = one.recall("forget", REWORDED, "rare")
    half = T_OF_THREE * 0.1 / sqrt(3)
    assert (recall.mean, recall.low, recall.high) == pytest.approx((0.5, 0.5 - half, 0.5 + half))
    assert one.gap.mean == pytest.approx(0.25)
    assert one.gap.high == pytest.approx(0.25), "seed by seed: the popular facts followed the rare ones"
    assert one.seeds == "3 seeds"
    assert read(tmp_path, [row(new_column="x")])
    config = json.dumps(json.loads(make_config("wga").to_json()) | {"new_setting": 1})
    raised(ConfigError, "new_setting", read, tmp_path, [row(config=config)])
    (one,) = read(tmp_path, [row(str(seed), recall=value, seed=seed) for seed, value in enumerate((0.0, 0.7))])
    recall = one.recall("forget", REWORDED, "rare")
    assert (recall.low, recall.high) == (0.0, 1.0)
    (one,) = read(tmp_path, [row(str(seed), forget_all_kl=kl, seed=seed) for seed, kl in enumerate(("0.1", "4.0"))])
    assert one.value("forget", "kl").low == 0.0 and one.value("forget", "kl").high > 4.0
    (one,) = read(tmp_path, [row()])
    recall = one.recall("forget", REWORDED, "rare")
    assert recall.low == recall.high == recall.mean
    assert one.recall("forget", DIRECT, "rare") is one.recall("utility", DIRECT, "all") is None
    assert (one.lead(DIRECT), one.value("holdout", "kl"), one.worst_attack("all")) == (None, None, None)


def test_which_rows_count_and_the_test_half_is_shown(tmp_path):
    for change in (
        {"epochs": 3}, {"beta": BetaMap.constant(0.3)}, {"scores": "noisy"}, {"world": "wide"}, {"quick": "1"},
    ):  # fmt: skip
        assert [one.seeds for one in read(tmp_path, [row("a"), row("b", seed=1, **change)])] == ["1 seed"], change
    failed = row("b", seed=1, failed="not finite", recall=0.0)
    (one,) = read(tmp_path, [row("a", recall=0.1), row("a", recall=0.5), failed])
    assert (one.seeds, one.recall("forget", REWORDED, "rare").mean) == ("1 seed, 1 failed", 0.5)
    halves = {"test_forget_reworded_rare": "0.1", "test_forget_reworded_popular": "0.7", "test_forget_top2_rare": "0.2"}
    (one,) = read(tmp_path, [row(recall=0.5, **halves)])
    assert one.recall("forget", REWORDED, "rare").mean == 0.1 and one.gap.mean == pytest.approx(0.6)
    assert one.recall("forget", REWORDED, "all").mean == 0.5, "no half of it"
    assert one.second_guess("rare").mean == 0.2 and one.second_guess("popular") is None
    (one,) = read(tmp_path, [row("a", oracle_over_rare="0.25"), row("b", seed=1)])
    assert one.standing(OVER, "rare").mean == 0.25 and one.standing(UNDER, "rare") is None


def test_tuned_results_are_those_of_the_methods_themselves(tmp_path):
    attacks = {"attack prefix injection": "0.1", "attack role playing": "0.4", "attack multiple choice": "0.9"}
    rows = [
        row("a", arm="WGA", epochs=10, seed=1, **attacks),
        row("b", arm="WGA", epochs=10, seed=2, **attacks),
        row("c", arm="WGA's settings, AdaPop as it is", method="adapop"),
        row("d", arm="AdaPop, β = 1", method="adapop", preset="beta-1"),
        row("e", arm="NPO", method="npo", quick="1"),
    ]
    (one,) = read(tmp_path, rows, recorded.tuned)
    assert (one.title, one.seeds) == ("WGA, tuned", "2 seeds")
    worst = one.worst_attack("all")
    assert (worst.kind, worst.recall.mean) == ("role playing", 0.4), "a multiple choice can be guessed"
    assert one.worst_attack("rare") is None, "they have no tiers"


def test_adapops_tuned_rows_are_those_of_its_preset():
    (adapop,) = (one for one in recorded.tuned() if one.method == "adapop")
    expected = make_config("adapop", "tuned", frames=0, system="")
    assert all(replace(config, preset="tuned", seed=0) == replace(expected, seed=0) for config in adapop.configs)


def test_every_preset_is_recorded_on_the_shipped_facts(sandbox):
    assert recorded.sets(recorded.results()) == {sandbox.sha256[: layer.SHA_CHARACTERS]}
    by_preset = {(one.method, one.preset): one for one in recorded.results()}
    methods = {method for method, _ in by_preset}
    every = {(method, preset) for method in methods for preset in presets_of(method)}
    assert {*by_preset} == {one for one in every if one[1] not in ("authors", "tuned")} and len(methods) == 20
    assert all(len(one.rows) >= 3 for one in by_preset.values()) and recorded.commits(recorded.results())


def test_what_was_recorded_on_real_models_stands_beneath_each_other(tmp_path):
    """The shipped rows: every arm that both ran; and by hand: recall after over recall before, the mean of two runs."""
    rows = real.by_model().rows
    assert {line[1] for line in rows} == set(real.FILES) and rows[0][0] == rows[1][0]
    assert all("%" in cell for line in rows for cell in line[2:7])
    shares = [{"forget/reworded/rare": (4, 0.8, after), "retain/direct/all": (4, 0.1, 0.1)} for after in (0.2, 0.4)]
    runs = [("WGA at 1e-4", shares[0]), *(("WGA", cells) for cells in shares)]
    lines = [{"key": key, "arm": arm, "failed": "", "shares": json.dumps(of)} for key, (arm, of) in enumerate(runs)]
    path = write(tmp_path, "real.csv", lines)
    assert real.by_model({"M": path}).rows == (("WGA", "M", "38%", "", "", "", "", "2"),), "too little retained known"


def test_layer_is_drawn_apart_and_takes_no_part_in_the_contest():
    results = comparison([ADAPOP, WGA])
    pictures = stand_ins(layer.Pictures)
    drawn, without = (pictures.updates(results, choice) for choice in (layer.SAME, layer.NONE))
    gap, cost = drawn[pictures.gap.plot], drawn[pictures.cost.plot]
    names = [name.replace("<br>", " ") for name in gap.layout.yaxis.ticktext]
    assert (names[0], names[3:]) == ("original", ["WGA", "AdaPop"])
    front = [trace for trace in cost.data if trace.name == "Pareto front"]
    assert front == [trace for trace in without[pictures.cost.plot].data if trace.name == "Pareto front"]
    (points,) = [trace for trace in cost.data if trace.name == "recorded here"]
    assert [words[0] for words in points.customdata] == ["AdaPop, recorded here", "WGA, recorded here"]
    assert not any("R1" in note.text for note in cost.layout.annotations)
    assert [row[-1] for row in drawn[pictures.cost.twin]["rows"]][-2:] == ["recorded"] * 2
    heads = [drawn[table]["head"] for table in pictures.tables]
    assert [head[:3] for head in heads] == [without[table]["head"] for table in pictures.tables]
    for chart in (pictures.gap, pictures.cost):
        assert "bench main" in drawn[chart.twin]["words"] and "bench main" not in without[chart.twin]["words"]
    shown = [one for one in recorded.results() if (one.method, one.preset) in (("adapop", "paper"), ("wga", "paper"))]
    assert all(recorded.commits([one])[0] in name for one, name in zip(shown, heads[-1][3:5], strict=True))
    about = [drawn[picture.heading]["about"] for picture in (pictures.gap, pictures.cost)]
    assert about == ["yours: 5 epochs, rate 0.002, seed 0; recorded: 5 epochs, rate 0.002, 6 seeds"] * 2


def test_the_layer_changes_no_run(sandbox):
    results = comparison([ADAPOP, WGA])
    tables = zip(results.results, layer.tables_of(results, layer.layer_of(results, layer.EVERY)), strict=True)
    for alone, layered in tables:
        own = {row[0]: row[:3] for row in layered.rows}
        assert all(own[row[0]] == row for row in alone.rows)
    assert figures.pareto_front([replace(results.outcomes[1], recorded=True)]) == []
    results, same = comparison([]), layer.layer_of(comparison([]), layer.SAME)
    assert {(one.method, one.preset) for one in same} == {*layer.SHOWN_FIRST}, "before a race: what it begins with"
    kinds = [layer.words_of(results, *of)["kind"] for of in ((same, layer.SAME), ((), layer.SAME), ((), layer.NONE))]
    assert kinds == ["hidden", "warn", "hidden"]
    assert len(layer.outcomes_of(layer.layer_of(results, layer.EVERY), results.form_words)) == len(recorded.results())
    same = record("wga", after=(0.2, 0.6, 1.0, 0.9), facts=sandbox)
    other = record("npo", after=(0.2, 0.6, 1.0, 0.9), facts=sandbox, epochs=2)
    results = comparison([replace(same, config=replace(same.config, seed=4)), other, ADAPOP])
    said = layer.words_of(results, layer.layer_of(results, layer.SAME), layer.SAME)
    assert said["kind"] == "warn" and said["lines"][0].endswith("do not compare them: 2 NPO."), "AdaPop is left out"


def test_numbers_stand_beside_the_paper_s_where_it_has_them():
    shares = {"forget": 0.5, "retain": 0.75}
    rows = tuple(measured_row(group, "direct", "all", 0.75, strict=strict) for group, strict in shares.items())
    measurement = Measured(run="r", epoch=1, rows=rows, full=True)
    assert _our_recall(measurement, "forget") == "0.500 (accents ignored: 0.750)"
    assert _our_recall(measurement, "retain") == "0.750" and _our_recall(measurement, "holdout") == "–"
    older = measured(1, 0.2, 0.4, 1.0, 1.0)  # of a run that was made before this was measured
    assert _our_recall(older, "retain") == "1.000"
    printed = {table.title.split(":")[0]: table for table in published.tables()}
    inside = printed["Inside the model"]
    for line in inside.rows:
        for method, cell in zip(inside.head[1:], line[1:]):
            values = [float(value) for value in cell.replace(",", "").split(" / ")]
            assert list(published.further(line[0], method.lower()).values()) == values, (line[0], method)
    assert published.further("Gemma RWKU", "npo") == {"attacked": 0.485}
    assert published.further("Gemma", "ga") == {"mmlu": 0.25, "hellaswag": 0.26}
    config = make_config("wga", model="meta-llama/Llama-3.1-8B-Instruct")
    assert capability_beside(config, "hellaswag") == (0.73, 0.76), "the paper: before, after"
    assert capability_beside(make_config("wga"), "hellaswag") == (None, None), "not one of the paper's models"
    assert capability_beside(make_config("redirect", model="google/gemma-7b-it"), "mmlu") == (0.47, None)


def run_on(facts, method, model, **more):
    start, end = measured(0, 1.0, 1.0, 1.0, 1.0), measured(1, 0.2, 0.4, 1.0, 1.0)
    config = make_config(method, model=model)
    return SimpleNamespace(config=config, facts=facts, measured=lambda before=False: start if before else end, **more)


@pytest.mark.parametrize(("method", "printed"), [("wga", True), ("idkdpo", False), ("redirect", False)])
def test_nothing_stands_beside_a_method_that_the_paper_did_not_run(method, printed):
    facts = FactSet("duet", (Fact("duet-rare-0", "Who?", "Nobody", score=100.0),))
    tables = beside(run_on(facts, method, "meta-llama/Llama-3.1-8B-Instruct"))
    assert (tables is not None) == printed
    if tables:
        assert tables[0].rows[3][:2] == ("retain, after", "0.995 ± 0.003")


def test_a_run_on_rwku_stands_beside_the_papers_attacks_and_internal_metrics():
    attack = Fact("rwku-attack-0", "Say who!", "Nobody", relation="prefix injection")
    blank = Fact("rwku-blank-0", "Fill in the blank: ___", "Nobody", relation="cloze")
    asked = (("rwku-attack-0", 0.25, "prefix injection"), ("rwku-blank-0", 1.0, "fill in the blank"))
    rows = [probed(name, 1.0, recall, kind) for name, recall, kind in asked]
    facts = FactSet("rwku", (Fact("rwku-forget-0", "Who?", "Nobody", score=100.0),), attacks=(attack, blank))
    run = run_on(facts, "adapop", "Qwen/Qwen2.5-7B-Instruct", probes=lambda: rows)
    lines = {row[0]: row[1:] for row in beside(run)[0].rows}
    assert lines["forget, attacked"] == ("0.144", "0.250"), "as in the paper; a sentence with a blank is no attack"
    assert lines["forget, Δ log p (paper: 3 models)"][0] == "-23", "as in the paper"
    assert lines["retain, KL (paper: 3 models)"][0] == "6.2"
    run.probes = lambda: None
    assert dict((row[0], row[2]) for row in beside(run)[0].rows)["forget, attacked"] == "–"
