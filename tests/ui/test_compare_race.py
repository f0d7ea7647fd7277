from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from adapop import make_config, prepare
from adapop.errors import ConfigError, LimitError
from adapop.facts.fact import TIERS
from adapop.probes.prompts import REWORDED, plain
from adapop.report import figures
from adapop.report.contestants import OTHER_FACTS, contestants, recall_of
from adapop.report.paired import paired_records
from adapop.report.record import read_record
from adapop.runs.examples import example
from adapop.service.worker import Worker
from adapop.training.events import RunDone
from adapop.ui.access import shown_run
from adapop.ui.compare import by_epoch, entrants, race, recorded, results, screen
from adapop.ui.run.state import RunView
from adapop.ui.session import identity
from components import ANCHORS, run_values, stand_ins
from raised import raised
from records import FACTS, measured
from run_events import START
from taught import own_facts
from waiting import wait_until

SCREEN = stand_ins(screen.CompareScreen)
RESULTS, PICTURES = SCREEN.results, SCREEN.results.pictures


def begin(worker, facts, chosen, epochs=1, seeds=1, **changes):
    return race.begin(
        worker, identity(facts), facts, "error", ANCHORS, chosen, seeds, epochs, None, *run_values(**changes)
    )


def shown_of(worker, saved_race, last_seen=race.UNSEEN, choice=recorded.NONE, pair=(None, None)):
    """Updates by component of `SCREEN`."""
    return SCREEN.show(worker, saved_race, last_seen, "Llama DUET", choice, *pair)


@pytest.fixture(scope="module")
def worker(raced):
    return raced[0]


@pytest.fixture(scope="module")
def over(raced):
    return raced[1]


def test_every_contestant_and_seed_is_a_run_on_the_same_facts(worker, over):
    now = race.standing(worker, over)
    assert (len(now.runs), now.finished, now.ticking) == (6, 6, False)
    configs = [run.config for run in now.runs]
    assert [(one.method, one.preset, one.seed) for one in configs[:3]] == [
        ("adapop", "paper", 0), ("adapop", "shuffled", 0), ("wga", "paper", 0)]  # fmt: skip
    assert {one.seed for one in configs[3:]} == {1}, "a whole field first"
    assert len({run.facts.sha256 for run in now.runs}) == 1
    assert now.shown["words"].startswith("6 of 6 runs finished")
    assert [line["name"] for line in now.shown["runs"]][1] == "AdaPop, shuffled, seed 0"


def test_page_shows_the_race_from_its_folders_alone(worker, over):
    again = Worker(worker.root)  # another process that never heard of it
    updates = shown_of(again, over)
    assert set(updates) == set(SCREEN.outputs), "all of it, and nothing that is no output"
    assert updates[SCREEN.progress]["runs"][0]["state"] == "done"
    assert (updates[SCREEN.start].interactive, updates[SCREEN.stop].visible) == (True, False)
    assert not updates[SCREEN.empty].visible and updates[PICTURES.column].visible and updates[RESULTS.race_only].visible
    follower = SCREEN.follower
    assert (updates[follower.last_seen], updates[follower.timer].active) == ((6, 24, {}), False)
    assert updates[PICTURES.words]["kind"] == "hidden", "nothing recorded unless somebody wants it"
    assert not set(RESULTS.all) & set(shown_of(again, over, last_seen=(6, 24, {}))), "nothing is drawn twice"
    live = shown_of(again, over, last_seen=(6, 23, {}))
    assert set(SCREEN.curves.all) <= set(live) and not set(RESULTS.all) & set(live), "an epoch draws the curves alone"
    named = [note.text for note in live[SCREEN.curves.picture.plot].layout.annotations]
    assert named[:3] == ["AdaPop", "AdaPop, shuffled", "WGA"] and {*named[3:]} == {*TIERS}, "panels, and lines"
    about = live[SCREEN.curves.picture.heading]["about"]
    assert about == f"1 epoch, rate 0.002, 2 seeds, {figures.LINES_AND_MARKS}"


def test_a_run_has_one_name_here_and_in_my_runs(worker, over):
    two = {"runs": over["runs"][1:3], "refused": []}
    my_runs = [{"id": name, "name": title} for name, title in zip(two["runs"], ("<b>mine", "WGA 7"))]
    updates = SCREEN.show(worker, two, race.UNSEEN, "Llama DUET", recorded.NONE, None, None, my_runs)
    assert [panel["title"] for panel in updates[SCREEN.fields]] == ["<b>mine", "WGA 7"]
    drawn = [note.text for note in updates[SCREEN.curves.picture.plot].layout.annotations]
    assert drawn[:2] == ["&lt;b&gt;mine", "WGA 7"]
    assert {*updates[PICTURES.gap.plot].layout.yaxis.ticktext} == {"original", "&lt;b&gt;mine", "WGA 7"}
    again = SCREEN.show(worker, two, updates[SCREEN.follower.last_seen], "", recorded.NONE, None, None, my_runs)
    assert SCREEN.fields not in again
    my_runs[0]["name"] = "other"
    again = SCREEN.show(
        worker, two, updates[SCREEN.follower.last_seen], "Llama DUET", recorded.NONE, None, None, my_runs
    )
    assert again[SCREEN.fields][0]["title"] == "other", "renamed at once"


def test_charts_have_the_runs_own_recall(worker, over):
    gap = shown_of(worker, over)[PICTURES.gap.plot]
    recalls = [run.measured().recall("forget", "reworded", "rare") for run in race.standing(worker, over).runs]
    wga = (recalls[2] + recalls[5]) / 2
    drawn = next(trace for trace in gap.data if trace.name == "rare")
    assert any(abs(x - wga) < 1e-9 for x in drawn.x)
    alone = shown_of(worker, {"runs": over["runs"][:1], "refused": []})
    (rare,) = [trace for trace in alone[SCREEN.curves.picture.plot].data if trace.name == "rare"]
    run = race.standing(worker, over).runs[0]
    ends = recall_of([run.measured()], "forget", REWORDED, "rare")
    assert rare.error_y.visible and ends.low < ends.high
    assert (rare.error_y.arrayminus[-1], rare.error_y.array[-1]) == (ends.mean - ends.low, ends.high - ends.mean)


def stored(root, seed, shares, **changes):
    """A run whose gap after each epoch is one of the shares."""
    run = prepare(make_config("wga", seed=seed, **changes), FACTS, root)
    for epoch, share in shares.items():
        run.append(measured(epoch, 0.0, share, 1.0, 1.0))
    return run


def test_an_epoch_is_drawn_where_all_seeds_measured_it_and_other_settings_apart(tmp_path):
    runs = [
        stored(tmp_path, 0, {0: 1.0, 1: 0.8, 2: 0.6}),
        stored(tmp_path, 1, {0: 1.0, 2: 0.2}),
        stored(tmp_path, 0, {0: 1.0, 1: 0.5, 3: 0.5}, learning_rate=0.5),
    ]
    by_contestant, _ = by_epoch._by_contestant(runs, {})
    assert {name: [*epochs] for name, epochs in by_contestant.items()} == {"WGA": [0, 2], "WGA (2)": [0, 1, 3]}
    best = stored(tmp_path, 0, {0: 1.0, 1: 0.5}, keep="best")
    names = [*by_epoch._by_contestant([*runs, best], {})[0]]
    assert names == ["WGA", "WGA (2)", "WGA (3)"], "which kept its best"
    control = prepare(make_config("adapop", "shuffled"), FACTS, tmp_path)
    ours = prepare(make_config("adapop"), FACTS, tmp_path)
    for run in (control, ours):
        run.append(measured(0, 1.0, 1.0, 1.0, 1.0))
    assert [*by_epoch._by_contestant([control, ours], {})[0]] == ["AdaPop, shuffled", "AdaPop"]


def test_two_contestants_are_set_against_each_other(worker, over):
    every = contestants(race.standing(worker, over).records)
    differences = results.settings_grid(every, "1", "3")
    rows = {row["name"]: [cell["value"] for cell in row["cells"]] for row in differences["rows"]}
    assert rows["method"] == ["adapop", "wga"] and "seed" not in rows
    both = [[read_record(shown_run(worker, run)) for run in over["runs"][place::3]] for place in (0, 2)]
    tested = {
        f"answered by this one alone, of {result.facts} facts, {plain(form)}": [result.only_first, result.only_second]
        for form, result in paired_records(*both).items()
    }
    assert tested and {name: [int(cell.split("\n")[0]) for cell in rows[name]] for name in tested} == tested
    assert str(differences).count("recall ") >= len(tested), "beside the count stands the difference with its interval"
    assert results.settings_grid(every, "3", "3")["rows"] == []
    updates, pair = shown_of(worker, over, pair=("3", "1")), RESULTS
    assert (updates[pair.first].value, updates[pair.second].value) == ("3", "1")
    assert {cell["value"] for row in updates[pair.differences]["rows"] for cell in row["cells"]} >= {"wga", "adapop"}
    for unknown in (("9", None), ("2", "9"), ("9", "1")):
        updates = shown_of(worker, over, pair=unknown)
        assert (updates[pair.first].value, updates[pair.second].value) == ("1", "2"), "of a race before"


def test_stop_is_idempotent_and_keeps_what_is_finished(worker, bare):
    saved_race = begin(worker, bare, ["wga/paper", "gd/paper", "npo/paper"], epochs=2)
    wait_until(lambda: race.standing(worker, saved_race).finished == 1)
    race.end(worker, saved_race)
    race.end(worker, saved_race)
    wait_until(lambda: not race.standing(worker, saved_race).ticking)
    states = [line["state"] for line in race.standing(worker, saved_race).shown["runs"]]
    assert (states[0], states[-1]) == ("done", "stopped")
    race.end(worker, saved_race)
    assert not race.standing(worker, saved_race).runs[0].stop_requested, "a finished run is not asked to stop"


def test_a_contestant_that_cannot_run_is_named_a_run_that_is_gone_leaves_and_the_others_race(worker, bare):
    unscored = replace(bare, forget=tuple(replace(fact, score=None) for fact in bare.forget))
    saved_race = begin(worker, unscored, ["adapop/paper", "wga/paper"])
    assert len(saved_race["runs"]) == 1 and saved_race["refused"][0].startswith("AdaPop cannot run: ")
    assert "no popularity scores" in race.standing(worker, saved_race).shown["refused"][0]
    race.end(worker, saved_race)
    raised(gr.Error, "no popularity scores", begin, worker, unscored, ["adapop/paper"])
    wait_until(lambda: not race.standing(worker, saved_race).ticking)
    gone = race.standing(worker, {"runs": ["npo-0123456789abcdef"], "refused": []}).shown
    assert not gone["shown"], "a deleted run leaves the comparison"


def test_runs_can_be_removed_one_by_one_and_all_at_once(worker, over):
    first, second, *rest = over["runs"]
    left = race.removed(race.removed(over, second), "run of somebody else")
    assert left["runs"] == [first, *rest] and race.standing(worker, left).finished == 5
    shown = race.standing(worker, left).shown["runs"]
    assert [line["id"] for line in shown] == left["runs"], "each line's button names its run"
    assert race.removed(left, "") == race.EMPTY and race.removed(None, "x")["runs"] == []
    assert shown_run(worker, second), "the run itself stays"
    updates = shown_of(worker, race.EMPTY, choice=recorded.SAME)
    assert updates[SCREEN.empty].visible and not updates[RESULTS.race_only].visible, "recorded pictures are back"
    assert updates[SCREEN.fields] == [] and not updates[SCREEN.curves.column].visible


def test_the_button_below_the_recorded_pictures_names_what_it_runs_and_runs_it(tmp_path, monkeypatch):
    submitted = []

    def submit(config, facts):
        submitted.append((config, facts))
        return SimpleNamespace(id=f"run-{len(submitted)}")

    monkeypatch.setattr(worker := Worker(tmp_path), "submit", submit)
    assert race.pictured() == "Run WGA, AdaPop and AdaPop (shuffled) on the sandbox (3 runs)"
    assert race.begin_pictured(worker) == {"runs": ["run-1", "run-2", "run-3"], "refused": []}
    for (config, facts), run in zip(submitted, map(example, ("wga", "adapop", "shuffled"))):
        filled = replace(config, beta=run.config.beta, system=run.config.system)  # what a run fills in
        assert (filled, facts.sha256) == (run.config, run.given.sha256), "the very runs that are shown"


def test_a_contestant_with_fewer_seeds_than_were_asked_for_was_started(tmp_path, bare, monkeypatch):
    def submit(config, facts):
        if len(begun) == 3:
            raise LimitError("Full.", "Wait.")
        begun.append(config)
        return SimpleNamespace(id=f"run-{len(begun)}")

    begun, worker = [], Worker(tmp_path)
    monkeypatch.setattr(worker, "submit", submit)
    refused = begin(worker, bare, ["adapop/paper", "wga/paper"], seeds=3)["refused"]
    since = {
        "WGA was not started from seed 1 on": "Full. Wait.",
        "AdaPop was not started from seed 2 on": "Full. Wait.",
    }
    assert dict(line.split(": ") for line in refused) == since


def test_the_time_left_counts_what_is_left_of_the_runs_that_will_run(raced, monkeypatch):
    worker, saved_race = raced
    run = shown_run(worker, saved_race["runs"][0])
    monkeypatch.setattr("time.time", lambda: 1000.0)
    ended, now = RunDone(run="done", epoch=1, seconds=60.0), replace(START, time=970.0)
    seen = {"done": [ended], "failed": [], "queued": [], "running": [now], "measuring": [replace(START, time=900.0)]}
    monkeypatch.setattr(race, "seen_of", lambda worker, name, readiness: (RunView(name), run, seen[name]))
    monkeypatch.setattr(race, "damage_of", lambda run: "")
    for names, left in ((["running"], "30 s"), (["running", "queued"], "90 s"), (["measuring"], "1 s")):
        words = race.standing(worker, {"runs": ["done", "failed", *names]}).shown["words"]
        assert f"1 of {2 + len(names)} runs done, about {left} left." in words


@pytest.mark.parametrize(("facts", "chosen", "seeds", "message"), [
    (None, ["wga/paper"], 1, "no usable facts"),
    ("bare", [], 1, "at least one method"),
    ("bare", [key for _, key in entrants.choices()], 3, "at most 24"),
])  # fmt: skip
def test_what_cannot_race_is_refused_in_words(worker, bare, facts, chosen, seeds, message):
    before = list(worker.root.iterdir())
    raised(gr.Error, message, begin, worker, bare if facts else None, chosen, seeds=seeds)
    assert list(worker.root.iterdir()) == before


def test_settings_of_tab_3_are_those_of_all_contestants(worker, bare):
    names, rates, given = ["adapop/paper", "simnpo/paper"], {}, (own_facts(), "error", ANCHORS)
    for rate in (None, "", 1e-5):
        configs = [entrants.config_in(*given, key, 1, rate, *run_values(model="a/b")) for key in names]
        rates[rate] = [config.learning_rate for config in configs]
    assert rates[1e-5] == [1e-5, 1e-5]
    with pytest.raises(ConfigError, match="'fast' is not a number"):
        entrants.config_in(own_facts(), "error", ANCHORS, names[0], 1, "fast", *run_values(model="a/b"))
    assert rates[""] == rates[None] == [make_config(key.partition("/")[0], model="a/b").learning_rate for key in names]
    chosen = run_values(model="a/b", asking="text-examples", measure_per_tier=None)
    config = entrants.config_in(own_facts(), "error", ANCHORS, "wga/paper", 1, "", *chosen)
    assert (config.asking, config.measure_per_tier) == ("text-examples", None)
    said = entrants.plan(worker, bare, "error", ANCHORS, ["wga/paper"], 1, 2, None, *run_values())
    assert said == race.html.listed([])


def test_what_cannot_be_of_tab_3_is_said_before_and_refused(worker, bare):
    before = list(worker.root.iterdir())
    plan = entrants.plan(worker, bare, "error", ANCHORS, ["wga/paper"], 1, 1, None, *run_values(batch=1.5))
    assert plan["kind"] == "bad" and "whole number" in plan["lines"][0]
    raised(gr.Error, "whole number", begin, worker, bare, ["wga/paper"], batch=1.5)
    assert list(worker.root.iterdir()) == before


def test_run_of_another_tab_joins_once(worker, over, bare):
    name = begin(worker, bare, ["ga/paper"])["runs"][0]
    joined_race = race.joined(worker, over, name)
    assert joined_race["runs"] == [*over["runs"], name]
    for known, joining in ((joined_race, name), (joined_race, ""), (None, "../../etc")):
        raised(gr.Error, "", race.joined, worker, known, joining)
    wait_until(lambda: not race.standing(worker, joined_race).ticking)
    warned = shown_of(worker, joined_race)[RESULTS.warnings]
    assert OTHER_FACTS in " ".join(warned["lines"])


@pytest.mark.parametrize("saved_race", [None, {}, [], "x", {"runs": "no"}, {"runs": [1, None, {}]}, {"runs": ["../x"]}])
def test_whatever_a_browser_sends_is_read_without_harm(worker, saved_race):
    now = race.standing(worker, saved_race)
    assert (now.runs, now.finished, now.ticking) == ((), 0, False)
    updates = shown_of(worker, saved_race)
    assert not (
        updates[PICTURES.column].visible or updates[RESULTS.race_only].visible or updates[SCREEN.follower.timer].active
    )
