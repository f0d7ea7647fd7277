"""The page's states as a table: from events to words and controls."""

import pytest

from adapop.config import make_config
from adapop.events import EpochDone, Measured, RunDone, RunFailed, RunStarted, RunStopped, StepDone
from adapop.ui.view import log_lines, view

START = RunStarted(
    run="r", time=1.0, model="sandbox", method="adapop", facts="f", forget=8, retain=8, holdout=8, epochs=2, steps=4
)


def step(epoch: int, number: int) -> StepDone:
    return StepDone(
        run="r",
        time=2.0,
        epoch=epoch,
        step=number,
        forget_loss=-1.0,
        nll_forget=1.0,
        nll_by_tier={"rare": 1.0},
        nll_retain=0.2,
        gradient_norm=1.0,
        learning_rate=1e-3,
    )


def epoch(number: int, drift: float = 0.5, lam: float = 0.04) -> EpochDone:
    return EpochDone(
        run="r",
        epoch=number,
        retain_loss=0.3,
        reference=0.2,
        drift=drift,
        lam=lam,
        alpha=0.5 + lam,
        start_loss=0.2,
        drift_from_start=0.5,
    )


DONE = RunDone(run="r", epoch=2, seconds=9.0)
FAILED = RunFailed(run="r", message="Bang.", fix="Lower it.")
STEPS = [step(1, n) for n in (1, 2, 3, 4)] + [step(2, n) for n in (1, 2, 3, 4)]
CASES = [
    # events, stop requested, ahead, saved -> state, start, stop, resume
    ([], False, 2, False, "queued", False, True, False),
    ([], False, 0, False, "starting", False, True, False),
    ([START], False, 0, False, "running", False, True, False),
    ([START, *STEPS[:5]], False, 0, True, "running", False, True, False),
    ([START, *STEPS[:5]], True, 0, True, "stopping", False, False, False),
    ([START, *STEPS], False, 0, True, "measuring", False, False, False),
    ([START, *STEPS, DONE], False, None, True, "done", True, False, False),
    ([START, RunStopped(run="r", epoch=0)], True, None, False, "stopped", True, False, True),
    ([START, RunStopped(run="r", epoch=1)], True, None, True, "stopped", True, False, True),
    ([START, *STEPS[:5]], False, None, True, "interrupted", True, False, True),
    ([START, RunStopped(run="r", epoch=1)], False, 0, True, "starting", False, True, False),
    ([START, RunStopped(run="r", epoch=1)], False, 2, True, "queued", False, True, False),
    ([START, FAILED], False, 0, True, "starting", False, True, False),
    ([], False, None, False, "interrupted", True, False, True),
    ([START, FAILED], False, None, False, "failed", True, False, False),
    ([START, FAILED], False, None, True, "failed", True, False, True),
]


@pytest.mark.parametrize(("events", "stop", "ahead", "saved", "state", "start", "can_stop", "resume"), CASES)
def test_states(events, stop, ahead, saved, state, start, can_stop, resume):
    now = view(events, stop, ahead, saved)
    assert now.state == state
    assert (now.can_start, now.can_stop, now.can_resume) == (start, can_stop, resume)
    assert now.label
    assert 0 <= now.percent <= 100


def test_every_live_state_ticks_and_no_other():
    ticking = {view(*case[:4]).state: view(*case[:4]).ticking for case in CASES}
    assert {state for state, ticks in ticking.items() if ticks} == {
        "queued",
        "starting",
        "running",
        "stopping",
        "measuring",
    }


def test_a_failure_says_what_to_do():
    assert "Bang. Lower it." in view([START, FAILED], False, None, False).detail


def test_progress_grows_with_the_steps():
    percents = [view([START, *STEPS[:n]], False, 0, False).percent for n in range(1, 8)]
    assert percents == sorted(percents)
    assert len(set(percents)) == len(percents)


def test_the_log_compares_drift_with_the_tolerance():
    lines = log_lines([START, epoch(1, drift=0.05, lam=0.0), epoch(2, drift=0.5)], make_config())
    assert "drift 0.500 > 0.1" in lines[0]
    assert "drift 0.050 ≤ 0.1" in lines[1]


def test_the_log_tells_recall_by_tier():
    rows = ({"group": "forget", "tier": tier, "form": "direct", "recall": 0.25} for tier in ("all", "rare", "popular"))
    (line,) = log_lines([Measured(run="r", epoch=1, rows=tuple(rows))], make_config())
    assert "rare 0.25, popular 0.25" in line


def test_a_fixed_alpha_never_claims_to_react():
    (line,) = log_lines([epoch(1, drift=0.5, lam=0.0)], make_config("wga"))
    assert "α stays 0.500" in line
    assert "λ" not in line
