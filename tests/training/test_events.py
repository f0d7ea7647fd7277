import json
import math
from dataclasses import fields, replace

import pytest

from adapop.errors import RunError
from adapop.probes.distance import Distance, FactDistance, ForgetQuality, GroupDistance, Membership
from adapop.remark import Remark
from adapop.training import events, frames
from adapop.training.controller import Drift
from adapop.training.frames import Frame, Scores, due, until
from raised import raised
from run_events import START, step
from run_events import epoch as epoch_done

ODD = 'a "quoted" <b>name</b>\u2028\nwith 🦜'
SCORES = {"forget": Scores((0.98765, 1.0, 0.00004), (1, 2, 1728)), "holdout": Scores((0.5,), (3,))}
WHOLE = Frame(8, 0.5, SCORES, ("Kubrick", "“é”\n", ""))
DISTANCE = Distance(
    (FactDistance("a", "rare", "direct", 1e-9, 0.05, 0.01, 0.25),),
    (GroupDistance("forget", "all", "direct", 1, 0.5, 1.0),),
    ForgetQuality(1e-12, -12.0, 0.4, True), 0.5, 0.75, (Membership("mia_loss", 0.25, 0.5),),
)  # fmt: skip


def started(resumed_from: int = 0) -> events.RunStarted:
    return replace(START, facts=ODD, resumed_from=resumed_from)


def measured(epoch: int, full: bool = False) -> events.Measured:
    row = {"group": "forget", "tier": "all", "form": "direct", "facts": 3, "recall": 0.5, "cosine": None}
    return events.Measured(run="r", epoch=epoch, rows=(row,), full=full)


SAMPLES = {
    "run_started": started(2), "step_done": replace(step(1, 2), nll_retain=None),
    "epoch_done": replace(epoch_done(1), reference=None),
    "measured": measured(1, full=True),
    "taught": events.Taught(run="r", notes=(Remark("taught_too_little", {"before": 0.0, "after": 0.5, "loss": 2.0}),)),
    "teaching": events.Teaching(run="r", epoch=1, epochs=5, step=2, steps=3),
    "measuring": events.Measuring(run="r", epoch=1, asked=2, of=3),
    "compared_to_oracle": events.ComparedToOracle(run="r", epoch=4, distance=DISTANCE),
    "saved": events.Saved(run="r", epoch=1), "run_stopped": events.RunStopped(run="r", epoch=1),
    "run_failed": events.RunFailed(run="r", message=ODD, fix="Lower the rate."),
    "run_done": events.RunDone(run="r", epoch=4, seconds=9.5, notes=("one", ODD))}  # fmt: skip


def test_every_kind_is_one_line_that_comes_back_and_what_is_no_event_is_refused():
    assert set(SAMPLES) == set(events.EVENTS)
    for kind, event in SAMPLES.items():
        line = events.to_json(event)
        assert "\n" not in line and events.from_json(line) == event and json.loads(line)["kind"] == kind == event.kind
    assert epoch_done(2).row == Drift(2, 0.3, 0.2, 0.5, 0.04, 0.54, 0.2)
    assert json.loads(events.to_json(epoch_done(2)))["drift_from_start"] == pytest.approx(0.5)
    for number in (math.nan, math.inf):
        rows = ({"recall": number},)
        for event in (events.RunDone(run="r", epoch=1, seconds=number), events.Measured(run="r", epoch=1, rows=rows)):
            raised(RunError, "is not finite", events.to_json, event)
    for line in ('{"kind": "run_paused", "run": "r"}', '{"run": "r"}'):
        raised(RunError, "Unknown event kind", events.from_json, line)
    from adapop.probes.measure import Measurement  # which loads torch

    assert {item.name for item in fields(Measurement)} == events.ROW
    (row,) = measured(1).rows
    for wrong in ({"recal": 0.5}, {"tier": None}, {"facts": 0}, {"recall": 1.5}):
        line = events.to_json(replace(measured(1), rows=({**row, **wrong},)))
        raised((ValueError, TypeError), "", events.from_json, line)


def epoch(number: int) -> list[events.Event]:
    last = events.Saved(run="r", epoch=number)
    return [step(number, 1), step(number, 2), epoch_done(number), measured(number), last]


FIRST_TWO_EPOCHS = [started(), epoch_done(0), measured(0), *epoch(1), *epoch(2)]


def test_a_log_reads_as_an_uninterrupted_one_however_often_it_was_resumed():
    rest = epoch(3)
    for interrupted in (
        [], [step(3, 1)], [step(3, 1), events.RunStopped(run="r", epoch=2)],
        [step(3, 1), events.RunFailed(run="r", message="out of memory")],
        rest[:-1],  # killed before the checkpoint was complete
    ):  # fmt: skip
        log = [*FIRST_TWO_EPOCHS, *interrupted, started(2), *rest]
        assert events.current(log) == [*FIRST_TWO_EPOCHS, started(2), *rest]
    log = [*FIRST_TWO_EPOCHS, started(2), step(3, 1), started(1), step(2, 1)]
    assert events.current(log) == [*FIRST_TWO_EPOCHS[:8], started(2), started(1), step(2, 1)]
    rest: list[events.Event] = [measured(0, full=True), measured(2, full=True)]
    assert events.current([*FIRST_TWO_EPOCHS, rest[0], started(2), *rest]) == [*FIRST_TWO_EPOCHS, started(2), *rest]
    for log in ([], FIRST_TWO_EPOCHS, [*FIRST_TWO_EPOCHS, events.RunStopped(run="r", epoch=2)]):
        assert events.current(log) == log
    # It has no epoch to go on from, so it measures epoch 0 and makes all steps again.
    first = [started(), epoch_done(0), measured(0), step(1, 1)]
    for end in ([], [events.RunStopped(run="r", epoch=0)]):
        assert events.current(first + end + first) == [started(), *first]


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
    for steps, count, due_steps in (
        (16, 2, {8, 16}), (16, 0, set()), (1, 2, {1}), (3, 2, {2, 3}), (2, 100, {1, 2}), (1000, 3, {333, 667, 1000}),
    ):  # fmt: skip
        assert due(steps, count) == due_steps, "spread over an epoch, and they end with it"
