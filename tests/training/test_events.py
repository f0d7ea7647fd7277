import json
import math
from dataclasses import fields

from adapop.errors import RunError
from adapop.probes.distance import Distance, FactDistance, ForgetQuality, GroupDistance, Membership
from adapop.training import frames
from adapop.training.controller import Drift
from adapop.training.events import (
    EVENTS,
    ROW,
    ComparedToOracle,
    EpochDone,
    Event,
    Measured,
    Measuring,
    RunDone,
    RunFailed,
    RunStarted,
    RunStopped,
    Saved,
    StepDone,
    Teaching,
    current,
    from_json,
    to_json,
)
from adapop.training.frames import Frame, Scores, due, until
from raised import raised

ODD = 'a "quoted" <b>name</b>\u2028\nwith 🦜'
SCORES = {"forget": Scores((0.98765, 1.0, 0.00004), (1, 2, 1728)), "holdout": Scores((0.5,), (3,))}
WHOLE = Frame(8, 0.5, SCORES, ("Kubrick", "“é”\n", ""))


def started(resumed_from: int = 0) -> RunStarted:
    return RunStarted(
        run="r", model="sandbox", method="wga", facts=ODD, forget=3, retain=4, holdout=5, epochs=4, steps=2,
        resumed_from=resumed_from)  # fmt: skip


def step(epoch: int, number: int) -> StepDone:
    return StepDone(
        run="r", time=1.5, epoch=epoch, step=number, forget_loss=-0.25, nll_forget=1.25, nll_by_tier={"rare": 2.5},
        nll_retain=None, gradient_norm=0.5, learning_rate=1e-3)  # fmt: skip


def epoch_done(epoch: int) -> EpochDone:
    return EpochDone(
        run="r", epoch=epoch, retain_loss=1.5, reference=None, drift=0.5, lam=0.04, alpha=0.54, start_loss=1.0,
    )  # fmt: skip


def measured(epoch: int, full: bool = False) -> Measured:
    row = {"group": "forget", "tier": "all", "form": "direct", "facts": 3, "recall": 0.5, "cosine": None}
    return Measured(run="r", epoch=epoch, rows=(row,), full=full)


SAMPLES = {
    "run_started": started(2), "step_done": step(1, 2), "epoch_done": epoch_done(1),
    "measured": measured(1, full=True),
    "teaching": Teaching(run="r", epoch=1, epochs=5, step=2, steps=3),
    "measuring": Measuring(run="r", epoch=1, asked=2, of=3),
    "compared_to_oracle": ComparedToOracle(run="r", epoch=4, distance=Distance((FactDistance("a", "rare", "direct",
     1e-9, 0.05, 0.01, 0.25),), (GroupDistance("forget", "all", "direct", 1, 0.5, 1.0),), ForgetQuality(1e-12, -12.0,
     0.4, True), 0.5, 0.75, (Membership("mia_loss", 0.25, 0.5),))),
    "saved": Saved(run="r", epoch=1), "run_stopped": RunStopped(run="r", epoch=1),
    "run_failed": RunFailed(run="r", message=ODD, fix="Lower the rate."),
    "run_done": RunDone(run="r", epoch=4, seconds=9.5, notes=("one", ODD))}  # fmt: skip


def test_every_kind_is_one_line_that_comes_back_and_what_is_no_event_is_refused():
    assert set(SAMPLES) == set(EVENTS)
    for kind, event in SAMPLES.items():
        line = to_json(event)
        assert "\n" not in line and from_json(line) == event and json.loads(line)["kind"] == kind == event.kind
    assert epoch_done(2).row == Drift(2, 1.5, None, 0.5, 0.04, 0.54, 1.0)
    assert json.loads(to_json(epoch_done(2)))["drift_from_start"] == 0.5, "the line has it, as before"
    for number in (math.nan, math.inf):
        rows = ({"recall": number},)
        for event in (RunDone(run="r", epoch=1, seconds=number), Measured(run="r", epoch=1, rows=rows)):
            raised(RunError, "is not finite", to_json, event)
    for line in ('{"kind": "run_paused", "run": "r"}', '{"run": "r"}'):
        raised(RunError, "Unknown event kind", from_json, line)
    from adapop.probes.measure import Measurement  # which loads torch

    assert {item.name for item in fields(Measurement)} == ROW
    (row,) = measured(1).rows
    for wrong in ({"recal": 0.5}, {"tier": None}, {"facts": 0}, {"recall": 1.5}):
        raised((ValueError, TypeError), "", from_json, to_json(Measured(run="r", epoch=1, rows=({**row, **wrong},))))


FIRST_TWO_EPOCHS = [
    started(), epoch_done(0), measured(0), step(1, 1), step(1, 2), epoch_done(1), measured(1), Saved(run="r", epoch=1),
    step(2, 1), step(2, 2), epoch_done(2), measured(2), Saved(run="r", epoch=2)]  # fmt: skip


def test_a_log_reads_as_an_uninterrupted_one_however_often_it_was_resumed():
    rest = [step(3, 1), step(3, 2), epoch_done(3), measured(3), Saved(run="r", epoch=3)]
    for interrupted in (
        [], [step(3, 1)], [step(3, 1), RunStopped(run="r", epoch=2)],
        [step(3, 1), RunFailed(run="r", message="out of memory")],
        [step(3, 1), step(3, 2), epoch_done(3), measured(3)],  # killed before the checkpoint was complete
    ):  # fmt: skip
        log = [*FIRST_TWO_EPOCHS, *interrupted, started(2), *rest]
        assert current(log) == [*FIRST_TWO_EPOCHS, started(2), *rest]
    log = [*FIRST_TWO_EPOCHS, started(2), step(3, 1), started(1), step(2, 1)]
    assert current(log) == [*FIRST_TWO_EPOCHS[:8], started(2), started(1), step(2, 1)]
    rest: list[Event] = [measured(0, full=True), measured(2, full=True)]
    assert current([*FIRST_TWO_EPOCHS, rest[0], started(2), *rest]) == [*FIRST_TWO_EPOCHS, started(2), *rest]
    for log in ([], FIRST_TWO_EPOCHS, [*FIRST_TWO_EPOCHS, RunStopped(run="r", epoch=2)]):
        assert current(log) == log
    # It has no epoch to go on from, so it measures epoch 0 and makes all steps again.
    first = [started(), epoch_done(0), measured(0), step(1, 1)]
    for end in ([], [RunStopped(run="r", epoch=0)]):
        assert current(first + end + first) == [started(), *first]


def test_a_frame_is_one_line_and_older_ones_stay():
    line = frames.to_json(WHOLE)
    assert "\n" not in line and json.loads(line)["forget"] == {"p": [0.9877, 1.0, 0.0], "rank": [1, 2, 1728]}
    read = frames.from_json(line)
    assert (read.step, read.epoch, read.answers) == (8, 0.5, WHOLE.answers)
    assert read.scores["holdout"] == WHOLE.scores["holdout"] and frames.from_json(frames.to_json(read)) == read
    recorded = [Frame(step, step / 16, {}) for step in (0, 8, 16, 24)]
    assert until(recorded, 16) == tuple(recorded[:3])
    assert until(recorded[1:], 16) == until([], 16) == (), "without its beginning it is no recording"
    for wrong in ("", "[]", '{"step": 1}', '{"step": 1, "epoch": 1, "answers": [], "forget": 3}'):
        raised((ValueError, TypeError, KeyError, AttributeError), "", frames.from_json, wrong)
    for steps, count, wanted in (
        (16, 2, {8, 16}), (16, 0, set()), (1, 2, {1}), (3, 2, {2, 3}), (2, 100, {1, 2}), (1000, 3, {333, 667, 1000}),
    ):  # fmt: skip
        assert due(steps, count) == wanted, "spread over an epoch, and they end with it"
