import time
from dataclasses import replace
from unittest.mock import Mock

import pytest

from adapop import Fact, FactSet, make_config
from adapop.facts.world import sandbox_facts
from adapop.probes.prompting import remarks_of
from adapop.report import figures
from adapop.runs.adopted import adopted_config
from adapop.runs.amount import few_steps
from adapop.runs.examples import example
from adapop.runs.lock import held
from adapop.runs.pace import Left, Wait, worked_before
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.training.events import Measured, Measuring, RunDone, RunFailed, RunStopped, Saved
from adapop.ui.api import Api
from adapop.ui.run import charts
from adapop.ui.run.charts import NOTHING
from adapop.ui.run.launch import UNSEEN, look
from adapop.ui.run.mine import to_lay_over
from adapop.ui.run.outcome import enough_steps
from adapop.ui.run.screen import RunScreen, banner_of
from adapop.ui.run.state import STATES, RunSeen, log_lines, view
from components import ANCHORS, run_values, stand_ins
from run_events import START, STEPS

DONE, SAVED = RunDone(run="r", epoch=2, seconds=9.0), Saved(run="r", epoch=1)
FAILED = RunFailed(run="r", message="Bang.", fix="Lower it.")
NOW, LATER = Wait(0, None), Wait(2, None)
BEGUN = (START, *STEPS[:5])
STOPPED, AGAIN = RunStopped(run="r", epoch=1), RunStopped(run="r", epoch=0)
CASES = [
    # what is seen of the run, readiness, expired -> state, start, stop, resume
    (None, "empty", False, "empty", False, False, False),
    (None, "invalid", False, "invalid", False, False, False),
    (None, "ready", False, "ready", True, False, False),
    (None, "ready", True, "expired", True, False, False),
    (None, "invalid", True, "expired", False, False, False),
    (RunSeen(wait=LATER), "ready", False, "queued", False, True, False),
    (RunSeen(wait=NOW), "ready", False, "starting", False, True, False),
    (RunSeen(stop_requested=True, wait=LATER), "ready", False, "stopping", False, False, False),
    (RunSeen(stop_requested=True, wait=NOW), "ready", False, "stopping", False, False, False),
    (RunSeen((START,), wait=NOW), "ready", False, "running", False, True, False),
    (RunSeen(BEGUN, wait=NOW, saved=1), "ready", False, "running", False, True, False),
    (RunSeen(BEGUN, wait=LATER, saved=1), "ready", False, "queued", False, True, False),
    (RunSeen(BEGUN, wait=NOW, saved=1), "invalid", False, "running", False, True, False),
    (RunSeen(BEGUN, True, wait=NOW, saved=1), "ready", False, "stopping", False, False, False),
    (RunSeen((START, *STEPS), wait=NOW, saved=1), "ready", False, "measuring", False, True, False),
    (RunSeen((START, *STEPS, DONE), saved=2), "ready", False, "done", True, False, False),
    (RunSeen((START, *STEPS, DONE), saved=2), "empty", False, "done", False, False, False),
    (RunSeen((START, AGAIN), True), "ready", False, "stopped", True, False, True),
    (RunSeen((START, STOPPED), True, saved=1), "ready", False, "stopped", True, False, True),
    (RunSeen((START, STOPPED), wait=NOW, saved=1), "ready", False, "starting", False, True, False),
    (RunSeen((START, STOPPED), wait=LATER, saved=1), "ready", False, "queued", False, True, False),
    (RunSeen((START, STOPPED), True, wait=LATER, saved=1), "ready", False, "stopping", False, False, False),
    (RunSeen(BEGUN, saved=1), "ready", False, "interrupted", True, False, True),
    (RunSeen(BEGUN, saved=1, elsewhere=True), "ready", False, "elsewhere", True, True, False),
    (RunSeen((START, STOPPED), saved=1, elsewhere=True), "ready", False, "elsewhere", True, True, False),
    (RunSeen(elsewhere=True), "ready", False, "elsewhere", True, True, False),
    (RunSeen(BEGUN, True, saved=1, elsewhere=True), "ready", False, "stopping", False, False, False),
    (RunSeen((START, *STEPS, DONE), saved=2, elsewhere=True), "ready", False, "done", True, False, False),
    (RunSeen(), "ready", False, "interrupted", True, False, True),
    (RunSeen((START, FAILED), wait=NOW, saved=1), "ready", False, "starting", False, True, False),
    (RunSeen((START, FAILED)), "ready", False, "failed", True, False, False),
    (RunSeen((START, FAILED), saved=1), "ready", False, "failed", True, False, True),
    (RunSeen((START, FAILED), saved=1), "invalid", False, "failed", False, False, True),
]


@pytest.mark.parametrize(("seen", "readiness", "expired", "state", "start", "can_stop", "resume"), CASES)
def test_states(seen, readiness, expired, state, start, can_stop, resume):
    now = view(seen, readiness, expired)
    assert now.state == state
    assert (now.can_start, now.can_stop, now.can_resume) == (start, can_stop, resume)
    assert now.label and 0 <= now.percent <= 100


def test_the_table_reaches_every_state_live_ones_tick_and_the_strip_says_what_they_are():
    assert {case[3] for case in CASES} == set(STATES)
    assert {name for name, state in STATES.items() if state.ticking} == {
        "queued", "starting", "running", "elsewhere", "stopping", "measuring"}  # fmt: skip
    assert view(RunSeen(BEGUN, elsewhere=True)).label == "Running elsewhere"
    assert "Bang. Lower it." in view(RunSeen((START, FAILED))).detail
    assert view(RunSeen(wait=Wait(1, 12.4))).detail.startswith("1 run before ")
    assert ", about 10 s. " in view(RunSeen(wait=Wait(1, 12.4))).detail
    assert "before this one, at least 3 min." in view(RunSeen(wait=Wait(1, 172.0, True))).detail
    assert "Epoch 1 of 2 is kept" in view(RunSeen((START, STOPPED), saved=1)).detail
    assert "No epoch" in view(RunSeen((START, AGAIN))).detail
    percents = [view(RunSeen((START, *STEPS[:n]), wait=NOW)).percent for n in range(1, 8)]
    assert percents == sorted({*percents})


def test_a_program_is_told_what_is_left_as_the_page_is(tmp_path, monkeypatch):
    worker, clock = Worker(tmp_path), iter(range(1_000, 2_000, 40))
    monkeypatch.setattr("adapop.runs.run.time", Mock(time=lambda: next(clock)))
    run = create_run(make_config(), FactSet("mine", (), ()), None, tmp_path)
    for event in (START, *STEPS[:2]):
        run.append(event)
    with held(run.folder):
        assert Api(worker).status(run.id)["left"] is None
        run.append(STEPS[2])
        status = Api(worker).status(run.id)
    assert status["left"] == {"seconds": 200.0, "covers": "steps", "text": "about 3 min of training left"}
    assert (status["state"], status["left"]["text"] in status["detail"]) == ("elsewhere", True)
    left = Api(worker).status(run.id)
    assert (left["state"], left["left"]) == ("interrupted", None), "nobody works on it any more"


def test_a_run_that_loads_or_asks_says_what_it_does_and_for_how_long():
    loading = view(RunSeen(wait=Wait(0, 0.0, worked=12.0, left=Left(95.0, "all"))))
    assert (loading.state, loading.detail) == ("starting", "loading the model · 12 s, about 95 s left")
    asking = Measuring(run="r", epoch=0, asked=24, of=60)
    said = view(RunSeen((asking,), wait=Wait(0, 0.0, worked=30.0))).detail
    assert said == "asking the original model, 24 of 60 questions · 30 s"
    assert "70 of 70 questions" in view(RunSeen((replace(asking, asked=70),), wait=NOW)).detail, "more than estimated"
    after = Measuring(run="r", epoch=1, asked=5, of=40)
    first = (START, *STEPS[: START.steps])
    assert view(RunSeen((*first, after), wait=NOW)).detail.startswith(
        "after epoch 1 of 2: asking, 5 of 40 questions · "
    )
    early = view(RunSeen((START,), wait=Wait(0, 0.0, left=Left(60.0, "all")))).detail
    assert early.endswith("about 60 s left"), "by earlier runs, before three steps are timed"


def test_the_final_measurement_names_its_part_and_what_is_left():
    def measured(epoch):
        return at(Measured(run="r", epoch=epoch, rows=(), full=True), 40.0 + 30 * epoch)

    events = [*(at(one, 5.0) for one in (START, *STEPS)), at(SAVED, 10.0)]
    at_500 = at(Measuring(run="r", epoch=0, asked=500, of=1500), 20.0)
    at_700 = replace(at_500, asked=700, time=24.0)  # too early to tell
    at_1000 = replace(at_500, asked=1000, time=30.0)  # a question takes 0.02 s
    for more, words in (
        ([], "1 of 2: the original model"),
        ([at_500], "1 of 2: the original model, 500 of 1,500 questions"),
        ([at_500, at_700], "1 of 2: the original model, 700 of 1,500 questions"),
        ([at_500, at_1000], "1 of 2: the original model, 1,000 of 1,500 questions, about 40 s left"),
        ([at_500, measured(0)], "2 of 2: the unlearned model"),
        ([measured(0), at_500, at_1000], "2 of 2: the unlearned model, 1,000 of 1,500 questions, about 10 s left"),
        ([at_500, measured(0), measured(1)], "compared with a model that never learnt the facts"),
    ):
        now = view(RunSeen((*events, *more), wait=NOW, saved=1))
        assert (now.state, now.detail.partition("final measurement")[2].lstrip(",: ")) == ("measuring", words)


def at(event, seconds: float):
    return replace(event, time=seconds)


def test_what_is_left_is_said_in_slices_and_from_the_third_step_on():
    """A run done an epoch at a time, with a pause of 50 s before the second: 10 s of work, then as much again."""
    now = time.time()
    first = [at(START, now - 70), *(at(one, now - 61) for one in STEPS[:4]), at(SAVED, now - 60)]
    slices = (*first, replace(START, resumed_from=1, time=now - 10))
    seen = view(RunSeen(slices, wait=NOW, saved=1))
    assert seen.detail == "epoch 2 of 2, step 1 of 4 · 10 s", "nothing is timed yet in this slice"
    timed = [at(one, now - 6 + 2 * number) for number, one in enumerate(STEPS[4:7])]
    third = view(RunSeen((*slices, *timed), wait=NOW, saved=1))
    assert third.detail.startswith("epoch 2 of 2, step 4 of 4 · 18 s, about 3 s left ")  # a step, and 1 s to save
    done = (*slices, *(at(one, now) for one in STEPS[4:6]), replace(DONE, time=now, seconds=10.0))
    assert view(RunSeen(done, saved=2)).detail == "2 epochs, 20 s"
    assert log_lines(done, make_config())[0] == "Done in 20.0 s."
    assert worked_before([]) == worked_before(first) == 0.0
    timed = [at(one, 10.0 + 40 * number) for number, one in enumerate(STEPS)]
    assert "left" not in view(RunSeen((START, *timed[:2]), wait=NOW)).detail
    assert view(RunSeen((START, *timed[:3]), wait=NOW)).detail.endswith("89 s, about 3 min of training left")
    elsewhere = view(RunSeen((START, *timed[:3]), elsewhere=True)).detail
    assert elsewhere.endswith("about 3 min of training left, in another process")
    assert "left" not in view(RunSeen((START, *timed), wait=NOW)).detail, "nobody knows how long it will measure"


def test_the_loss_table_follows_every_step(tmp_path):
    run = create_run(make_config(), FactSet("mine", (Fact("a", "Who?", "Ann"),)), None, tmp_path)
    begun = [START, *STEPS[:2]]
    pictures = stand_ins(charts.RunCharts)
    assert set(pictures.updates(run, begun, -1)) == set(pictures.all)
    changes = pictures.updates(run, [*begun, STEPS[2]], len(begun))
    assert [row[0] for row in changes[pictures.losses_twin]["rows"]] == ["0.25", "0.5", "0.75"]
    assert set(changes) == {pictures.losses, pictures.losses_twin}, "the pictures of an epoch wait for its end"


def test_an_adopted_run_shows_no_chart_of_training(tmp_path):
    pictures, facts = stand_ins(charts.RunCharts), FactSet("mine", (Fact("a", "Who?", "Ann"),))
    for config, trained in ((make_config(), True), (adopted_config("sandbox", "people"), False)):
        changes = pictures.updates(create_run(config, facts, None, tmp_path), [replace(START, steps=0)], -1)
        shown = [changes[one] for one in (pictures.losing, pictures.training, pictures.steering)]
        assert all((one["visible"] if isinstance(one, dict) else one.visible) == trained for one in shown)


def test_what_looks_at_the_settings_says_nothing_of_a_run_that_another_has_replaced(finished):
    """A page that opens asks with no run, and may be answered when it shows one: its charts would be hidden again."""
    worker = Worker(finished.folder.parent)
    inputs = ("loaded", [], {}, finished.facts, "error", ANCHORS, *run_values())

    def state(name: str, position: tuple) -> str:
        updates = look(worker, name, position, *inputs)
        return next(update["state"] for update in updates if isinstance(update, dict) and "state" in update)

    assert state("", UNSEEN) == "ready" and state("", (finished.id, 9)) == "done"
    assert state(finished.id, UNSEEN) == "done", "a run that has just begun: nothing of it was seen yet"
    assert state("gone-for-good", (finished.id, 9)) == "done"


def test_nothing_is_stored_before_what_was_stored_is_in_the_fields(finished):
    worker, inputs = Worker(finished.folder.parent), (finished.facts, "error", None, *run_values())
    before = run_values(batch=2)
    place = look(worker, "", UNSEEN, "loaded", before, {}, *inputs).index(run_values())
    assert look(worker, "", UNSEEN, "", before, {}, *inputs)[place] == before


@pytest.mark.parametrize(("epochs", "warned"), [(1, True), (2, False)])
def test_too_few_epochs_are_said_and_may_be_raised_before_the_start(finished, epochs, warned):
    worker, asked = Worker(finished.folder.parent), (finished.facts, "error", None, *run_values(epochs=epochs))
    plan, _, _, more, _, readiness, *_ = look(worker, "", UNSEEN, "loaded", [], {}, *asked)
    assert ("hardly" in str(plan), more.visible, readiness) == (warned, warned, "ready")
    of = make_config(epochs=epochs)
    pressed = enough_steps(finished.facts, of.model, of.method, of.preset, of.epochs, of.batch, of.learning_rate)
    raised = dict(zip(("epochs", "batch", "learning_rate"), pressed))
    assert not few_steps(len(finished.facts.forget), make_config(**raised)), "nothing is said after the press"


def test_before_the_first_run_a_recorded_one_is_shown_as_such(tmp_path):
    screen = stand_ins(RunScreen)
    updates = screen.show(Worker(tmp_path), "")
    assert set(updates) <= set(screen.outputs)
    watched = updates[screen.watched]
    assert watched["kind"] == "example" and watched["lines"][0].startswith("Recorded example: AdaPop, 5 epochs")
    assert updates[screen.field]["facts"]["title"] and updates[screen.charts.recall.plot].data
    assert updates[screen.form].visible and updates[screen.card.card] == {"kind": ""}
    own = create_run(make_config("wga"), sandbox_facts(), None, tmp_path)
    updates = screen.show(Worker(tmp_path), own.id, updates[screen.follower.position])
    assert updates[screen.watched]["kind"] == "hidden" and not updates[screen.charts.recall.plot].data


def test_how_many_facts_a_model_does_not_know_stands_above_its_run():
    left_out = "A run leaves out the facts that the model does not know: "
    for name, count in (("smollm2", 1), ("wga", 0)):
        run = example(name)
        lines = banner_of(run, False, remarks_of(run.prompting))["lines"]
        assert [line.startswith(left_out) for line in lines] == [True] * count


def test_another_run_is_laid_behind_the_one_shown(finished):
    worker, screen = Worker(finished.folder.parent), stand_ins(RunScreen)
    able = to_lay_over(worker, [{"id": finished.id, "name": "Mine 1"}], finished.id, "gone")
    assert (able.visible, able.value, able.choices[0]) == (True, "", NOTHING)
    assert {"example-wga", "example-adapop"} < {name for _, name in able.choices} and finished.id not in dict(
        able.choices
    )
    assert not to_lay_over(worker, [], "", "").visible, "nothing is shown"
    for over, legend in (("example-wga", ["earlier: WGA"]), ("", []), (finished.id, []), ("../gone", [])):
        for updates in (screen.lay_over(worker, finished.id, over), screen.show(worker, finished.id, over=over)):
            names = {line.name for line in updates[screen.charts.controller.plot].data}
            assert ({*legend} <= names) and ("earlier: WGA: λ" in names) == bool(legend)
            named = [line["name"] for line in updates[screen.charts.losses_legend]["lines"]]
            assert named == ["rare", "middle", "popular", "retain set", *legend]
            losses = updates[screen.charts.losses]  # nothing but data: see `RunCharts`
            assert {*losses["facts"]} == {*charts.LOSS_LINES}, "every line has its colour from the first drawing on"
            behind = losses[losses["facts"].isin(figures.EARLIER_COLOR)]["nats"].notna().any()
            assert behind == bool(legend) and losses["epoch"].max() == (5 if legend else 1)
