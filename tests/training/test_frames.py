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


def test_a_frame_is_one_line_and_older_ones_stay():
    line = to_json(WHOLE)
    assert "\n" not in line
    assert json.loads(line)["forget"] == {"p": [0.9877, 1.0, 0.0], "rank": [1, 2, 1728]}
    read = from_json(line)
    assert (read.step, read.epoch, read.answers) == (8, 0.5, WHOLE.answers)
    assert read.scores["holdout"] == WHOLE.scores["holdout"] and from_json(to_json(read)) == read
    frames = [Frame(step, step / 16, {}) for step in (0, 8, 16, 24)]
    assert until(frames, 16) == tuple(frames[:3])
    assert until(frames[1:], 16) == until([], 16) == (), "without its beginning it is no recording"
    for wrong in ("", "[]", '{"step": 1}', '{"step": 1, "epoch": 1, "answers": [], "forget": 3}'):
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            from_json(wrong)
    for steps, count, wanted in (
        (16, 2, {8, 16}), (16, 0, set()), (1, 2, {1}), (3, 2, {2, 3}), (2, 100, {1, 2}), (1000, 3, {333, 667, 1000}),
    ):  # fmt: skip
        assert due(steps, count) == wanted, "spread over an epoch, and they end with it"
