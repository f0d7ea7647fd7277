"""While a run measures it says how far that is; logs without it read as before."""

from adapop.runs import measuring
from adapop.runs.execute import execute, prepare
from adapop.training.events import Measured, Measuring, RunStarted, current, from_json, to_json
from adapop.ui.run.state import RunSeen, view
from tiny_runs import tiny_config


def test_a_measurement_that_takes_long_is_told(tiny, monkeypatch):
    monkeypatch.setattr(measuring, "SAID_EVERY", 0.0)
    run, heard = prepare(tiny_config(), tiny), []
    yielded = list(execute(run, heard=heard.append))
    assert not any(isinstance(event, Measuring) for event in yielded)
    assert [event for event in run.events() if isinstance(event, Measuring)] == heard
    last = {}
    for event in run.events():
        if isinstance(event, Measuring):
            assert event.asked > last.get("asked", 0)
            last = {"asked": event.asked, "of": event.of}
        elif isinstance(event, Measured):
            assert last["asked"] == last["of"], "all questions are counted"
            last = {}
    assert from_json(to_json(heard[-1])) == heard[-1]

    begun = next(event for event in yielded if isinstance(event, RunStarted))
    steps = [event for event in yielded if event.kind == "step_done"]
    now = view(RunSeen((begun, *steps, heard[-1]), ahead=0))
    said = f"asking after the last epoch, {heard[-1].asked:,} of {heard[-1].of:,} questions"
    assert (now.state, now.detail) == ("measuring", said)
    assert current([begun, heard[-1], begun]) == [begun, begun], "a resumed run begins its measurements anew"
