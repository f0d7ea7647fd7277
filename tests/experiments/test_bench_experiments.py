import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from statistics import fmean

import pytest

from adapop.config.presets import SANDBOX_RATES, make_config
from adapop.errors import ModelError
from adapop.experiments import plans, results, trial
from adapop.experiments.engine import finished
from adapop.experiments.plans import Arm, Item, World, build, folder_of, over_seeds
from adapop.experiments.results import COLUMNS, ORACLE, ORACLE_EPOCHS, RETAINED, Results
from adapop.experiments.run import EXPERIMENTS, Experiment, Place, run, write
from adapop.experiments.sweep import choice_table
from adapop.experiments.tables import controller_table, outcome_table
from adapop.facts.fact import scores_of
from adapop.facts.world import sandbox_facts
from adapop.model.loading import adapted_model
from adapop.paths import ROOT, commit
from adapop.popularity.beta import BetaMap
from adapop.probes.ask import ask
from adapop.probes.oracle import guesses_of
from adapop.runs.run import Run
from adapop.sandbox import pretrain
from bench_rows import WRITTEN
from raised import raised
from waiting import wait_until

TINY = (Arm("AdaPop", "adapop"), Arm("WGA", "wga"))
ITEMS = over_seeds(TINY, (0,), True)
MEASURED = [name for name in COLUMNS if name not in ("seconds", "peak_mb", "commit")]
IN_ONE = partial(finished, processes=1)
COUNTED = ("corpus-subject", "corpus-subject+object")  # in the whole corpus of the sandbox


def placed(folder, items, *tables):
    return Place("tiny", folder, (0,), True, Experiment("Tiny", "Does it work?", lambda *_: items, tables, ()))


@pytest.mark.slow
def test_rows_do_not_depend_on_the_number_of_processes_and_nothing_is_done_twice(recorded, tmp_path):
    place, straight, messages = placed(tmp_path, ITEMS, outcome_table), Results(tmp_path / "straight.csv"), []
    assert run(place, partial(finished, processes=2), messages.append) == {}
    straight.append(recorded)
    (row,) = straight.rows().values()
    other = place.results.rows()[row["key"]]
    assert len(place.results.rows()) == 2
    assert {name: row[name] for name in MEASURED} == {name: other[name] for name in MEASURED}
    messages.clear()
    before = place.results.path.read_bytes()
    assert run(place, IN_ONE, messages.append) == {} and messages == []
    assert place.results.path.read_bytes() == before
    text = write(place)
    assert "| AdaPop | 0.002 |" in text and "2 runs, seeds 0; code: 2 at " in text
    assert place.file(".md").exists() and place.file("-table.csv").exists() and place.file(".html").exists()


@pytest.mark.slow
def test_after_ctrl_c_and_a_kill_of_everything_it_goes_on_where_it_was(tmp_path):
    command = [sys.executable, "-m", "adapop", "bench", "ablation", "--quick", "--processes", "1", "--out", tmp_path]
    stored = tmp_path / "ablation-quick.csv"

    def lines():
        return stored.read_bytes().count(b"\n") if stored.exists() else 0

    first = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: lines() >= 2)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=30)
    assert first.returncode == 130 and "Traceback" not in said and "interrupted" in said
    second = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = lines()
    wait_until(lambda: lines() > done)
    second.kill()
    second.wait()
    whole = stored.read_bytes()
    stored.write_bytes(whole + b'1234,"half a li')
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    left = 8 - whole.count(b"\n")
    assert f"{7 - left} runs " in again.stderr and f"{left} to do." in again.stderr
    content = stored.read_bytes()
    assert content.startswith(whole) and content.count(b"\n") == 8
    assert "AdaPop, α fixed, β = 0.1" in again.stdout and "min left" in again.stderr


def test_what_another_experiment_has_done_is_taken_over(tmp_path):
    item = ITEMS[0]
    Place("main", tmp_path, (0,), True).results.append({**WRITTEN, "key": item.key, "arm": "by its other name"})
    place = placed(tmp_path, [item])
    assert list(place.rows_by_arm()) == ["AdaPop"], "a table needs no run either"
    assert run(place, IN_ONE, lambda line: None) == {}
    assert [row["arm"] for row in place.results.rows().values()] == ["AdaPop"]


def test_rows_of_other_code_are_kept_and_told(tmp_path):
    place, messages = placed(tmp_path, ITEMS, controller_table), []
    for item, made in zip(ITEMS, ("0ld", commit())):
        place.results.append({**WRITTEN, "key": item.key, "arm": item.arm.title, "failed": "no", "commit": made})
    assert run(place, IN_ONE, messages.append) == {}
    (line,) = messages
    assert line.startswith("1 of 2 rows ") and "1 at 0ld" in line and "tiny-quick.csv" in line
    assert "2 runs, seeds 0; code: " in write(place) and "1 at 0ld" in write(place)


@pytest.fixture(scope="module")
def recorded():
    return trial.result(Item(TINY[0], 0, quick=True))


def test_a_run_that_diverges_is_a_row_and_a_sandbox_that_is_not_there_is_none(tmp_path):
    item = Item(Arm("WGA, far too fast", "wga", changes={"learning_rate": 1e30}), 0, quick=True)
    row = trial.result(item)
    assert "not finite" in row["failed"] and row["rate"] == 1e30
    assert "forget_reworded_all" not in row and row["config"]
    raised(ModelError, "nowhere", trial.result, Item(replace(TINY[1], world=World("nowhere")), 0, quick=True), tmp_path)


@pytest.mark.slow
def test_every_measurement_has_its_column(recorded):
    row = recorded
    beside_oracle = () if guesses_of("sandbox") else (*ORACLE, *ORACLE_EPOCHS)
    unmeasured = {"commit", "shares", "metrics", *results.NEIGHBOURS, *results.RECOVERY_CHECKS, *results.COSINES}
    assert set(row) == set(COLUMNS) - unmeasured - {*beside_oracle}
    assert len(row["levels_reworded"]) == 8 and len(row["lam"]) == len(row[RETAINED]) == 3
    assert row[RETAINED][-1] == row["retain_direct_all"]
    assert fmean(row["levels_reworded"]) == pytest.approx(row["forget_reworded_all"], abs=1e-5), "four facts a level"


@pytest.mark.parametrize(
    "scores", ["noisy", "swapped", "confidence", *(pytest.param(name, marks=pytest.mark.slow) for name in COUNTED)]
)
def test_other_scores_change_the_push_and_not_the_tiers(scores, tmp_path):
    arm = Arm("AdaPop", "adapop", scores=scores)
    made = trial.prepared(Item(arm, 1, quick=True), tmp_path, None)
    own = trial.prepared(Item(TINY[0], 1, quick=True), tmp_path, None)
    assert isinstance(made, Run) and made.facts.forget == own.facts.forget
    assert made.betas.keys() == own.betas.keys() and made.betas != own.betas
    given = trial.other_scores(scores, 1)
    assert made.betas == {fact.id: BetaMap()(given[fact.id]) for fact in made.facts.forget}


def test_the_surer_the_model_is_the_higher_the_score():
    given, forget = trial.other_scores("confidence", 0), sandbox_facts().forget
    own = scores_of(forget)
    assert sorted(given.values()) == sorted(own.values()), "the same scores, dealt out anew"
    some = forget[::51]
    told = ask(adapted_model(make_config()), [fact.question for fact in some], [fact.answer for fact in some], 1)
    sure = {fact.id: reply.original.gold_logprob for fact, reply in zip(some, told)}
    risen = [given[fact] for fact in sorted(sure, key=sure.get)]
    assert risen == sorted(risen) and len({*risen}) > 2


def test_quantile_anchors_are_those_of_the_whole_set(tmp_path):
    made = trial.prepared(Item(Arm("AdaPop", "adapop", anchors="quantiles"), 0, quick=True), tmp_path, None)
    assert made.config.beta == BetaMap.from_quantiles(scores_of(sandbox_facts().forget).values())


def test_a_key_names_what_is_computed():
    item = Item(TINY[0], 0)
    assert item.key == Item(replace(TINY[0], title="by another name"), 0).key
    others = [
        Item(TINY[0], 1), Item(TINY[0], 0, quick=True), Item(replace(TINY[0], preset="gentle"), 0), Item(TINY[1], 0),
        Item(replace(TINY[0], scores="noisy"), 0), Item(replace(TINY[0], anchors="quantiles"), 0),
        Item(replace(TINY[0], changes={"learning_rate": 1e-3}), 0), Item(replace(TINY[0], world=World("narrow")), 0),
        Item(replace(TINY[0], world=World("narrow", hidden=64)), 0)]  # fmt: skip
    assert len({item.key, *(other.key for other in others)}) == 10
    own = Item(plans.at_rate(TINY[0], SANDBOX_RATES["adapop"]), 0)
    assert own.key == item.key, "the sweep's run at a method's own rate is the main comparison's"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_plan_can_be_configured_and_names_its_arms_once(name):
    for quick in (True, False):
        items = EXPERIMENTS[name].plan((0, 1), quick, {})
        assert len({item.title for item in items}) == len({item.key for item in items}) == len(items)
        assert items[0].seed == 0 and len(items) % 2 == 0


def test_anchors_are_moved_one_number_at_a_time():
    """From (100, 1.5) and (3000, 0.1): the end that stays put has its β of before."""
    items = {item.arm.title: item for item in plans.coefficients((0,), False, {})}
    assert {"WGA", "NPO"} <= items.keys() and len(items) == 1 + 8 + 8 + 2
    moved = items["AdaPop, β of the rare anchor +20%"].config.beta
    assert (moved(100), moved(3000)) == (pytest.approx(1.8), pytest.approx(0.1))
    moved = items["AdaPop, score of the popular anchor -20%"].config.beta
    assert (moved(100), moved(2400)) == (pytest.approx(1.5), pytest.approx(0.1))


@pytest.mark.slow
def test_a_small_sandbox_is_built_once_and_used(tmp_path, monkeypatch):
    corpus = pretrain.corpus
    monkeypatch.setattr(pretrain, "corpus", lambda *arguments: corpus(*arguments)[:2000])
    world = World("small", hidden=8, exposures=0.002, spread=0.0)
    assert build(world, tmp_path) == "small"
    assert [*tmp_path.iterdir()] == [folder_of(world, tmp_path)]
    assert folder_of(replace(world, hidden=16), tmp_path) != folder_of(world, tmp_path), "a name may be given again"
    weights = folder_of(world, tmp_path) / "model.safetensors"
    made = weights.stat().st_mtime_ns
    assert build(world, tmp_path) == "small" and weights.stat().st_mtime_ns == made
    row = trial.result(Item(replace(TINY[1], world=world), 0, quick=True), tmp_path)
    assert row["world"] == "small" and not row["failed"] and row["levels_direct"]


def test_the_command_prints_a_table_of_what_is_there_and_refuses_nonsense(tmp_path, cli):
    assert choice_table({}).title in cli("bench", "rates", "--table", "--out", tmp_path).out
    assert not (tmp_path / "rates.csv").exists()
    assert "--seeds" in cli("bench", "main", "--seeds", "0", "--out", tmp_path, status=2).err
