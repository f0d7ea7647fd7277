"""While a run measures it says how far that is; logs without it read as before."""

from adapop.runs import measuring
from adapop.runs.execute import execute, prepare
from adapop.training.events import Measured, Measuring, current
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
    begun = yielded[0]
    assert current([begun, heard[-1], begun]) == [begun, begun], "a resumed run begins its measurements anew"
