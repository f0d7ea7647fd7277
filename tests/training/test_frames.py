"""What a run records to be watched: when, how it is written, and what is left of it where a run goes on."""

import json

import pytest

from adapop.training.frames import Frame, Scores, due, from_json, to_json, until

WHOLE = Frame(
    8,
    0.5,
    {"forget": Scores((0.98765, 1.0, 0.00004), (1, 2, 1728)), "holdout": Scores((0.5,), (3,))},
    ("Kubrick", "“é”\n", ""),
)


@pytest.mark.parametrize(
    ("steps", "frames", "wanted"),
    [
        (16, 2, {8, 16}), (16, 1, {16}), (16, 0, set()), (1, 2, {1}), (3, 2, {2, 3}),
        (16, 16, set(range(1, 17))), (2, 100, {1, 2}), (1000, 3, {333, 667, 1000}),
    ],
)  # fmt: skip
def test_frames_are_spread_over_an_epoch_and_end_with_it(steps, frames, wanted):
    assert due(steps, frames) == wanted


def test_a_frame_is_one_line_and_older_ones_stay():
    line = to_json(WHOLE)
    assert "\n" not in line
    assert json.loads(line)["forget"] == {"p": [0.9877, 1.0, 0.0], "rank": [1, 2, 1728]}
    read = from_json(line)
    assert (read.step, read.epoch, read.answers) == (8, 0.5, WHOLE.answers)
    assert read.scores["holdout"] == WHOLE.scores["holdout"]
    assert from_json(to_json(read)) == read
    frames = [Frame(step, step / 16, {}) for step in (0, 8, 16, 24)]
    assert [frame.step for frame in until(frames, 16)] == [0, 8, 16]
    assert until(frames[1:], 16) == (), "without its beginning it is no recording"
    assert until([], 16) == ()


@pytest.mark.parametrize("line", ["", "[]", '{"step": 1}', '{"step": 1, "epoch": 1, "answers": [], "forget": 3}'])
def test_what_is_no_frame_is_refused(line):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        from_json(line)
