import shutil

import gradio as gr
import pytest

from adapop.runs.run import Run
from adapop.ui.run.field import RunField, _value_of

FIELD = RunField(gr.State())


def test_a_finished_run_is_shown_with_all_its_frames(finished):
    events, frames = finished.events(), finished.frames()
    value = FIELD.drawn(finished, events, -1)[FIELD.picture]
    assert len(frames) > 1
    assert value["motion"]["epoch"] == [round(frame.epoch, 3) for frame in frames]
    assert value["facts"]["question"] == [fact.question for fact in finished.facts.forget]
    (last,) = [one for one in value["shares"] if one["epoch"] == 1]
    assert last["reworded"]["all"] == finished.measured().recall("forget", "reworded"), "as its card has it"
    assert [one["wordings"] for one in value["shares"]] == ["in other words"] * 2
    assert finished.id not in str(value), "who has a link reads this too"
    events = finished.events()
    steps = [place for place, event in enumerate(events) if event.kind == "step_done"]
    last = finished.frames()[-1].step
    assert len(steps) == last, "the last frame is at the last step"
    assert FIELD.picture in FIELD.drawn(finished, events, steps[-1])
    assert FIELD.drawn(finished, [*events, events[steps[-1]]], len(events) + 1) == {}
    assert _value_of(finished, 0, 0, 0)["motion"]["epoch"] == [0], "a stopped run ends where it was saved"
    assert FIELD.drawn(None, [], -1) == {FIELD.picture: None}


@pytest.mark.parametrize("name", ["facts.jsonl", "frames.jsonl"])
def test_what_is_damaged_hides_the_picture_and_nothing_else(finished, tmp_path, name):
    run = Run(shutil.copytree(finished.folder, tmp_path / finished.id))
    (run.folder / name).write_text("no row\n", encoding="utf-8")
    assert FIELD.drawn(run, finished.events(), -1) == {FIELD.picture: None}
