"""Recorded frames of a run: how likely each fact's right answer is while the model forgets.

A frame is a line of JSON, read without torch:
{"step": 8, "epoch": 0.5, "forget": {"p": [0.9312, ...], "rank": [1, ...]}, ..., "answers": []}.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from adapop.assets import Count, Share, as_kind, parse_json
from adapop.sums import FIELD

DECIMALS = 4  # of a probability in the file
FIRST = 80  # characters of an answer that are kept


@dataclass(frozen=True)
class Scores:
    """How well the model knew the facts of a group, in their order, at a step. Teacher-forced."""

    p: tuple[Share, ...]
    """Probability of the right answer, [0, 1]: the geometric mean over its content tokens."""
    rank: tuple[Count, ...]
    """Rank of the right answer's first token among all tokens; 1 is the most likely."""


@dataclass(frozen=True)
class Frame:
    """The scores of the facts after a step."""

    step: Count
    """Optimiser steps taken so far; 0 is before training."""
    epoch: float
    """Step / steps in an epoch; a whole number where an epoch ends."""
    scores: Mapping[str, Scores]
    """Group -> scores. Always "forget": the facts to forget, asked directly. In frame 0 and where
    an epoch ends also "retain" and, unless only some facts are measured (`measure_per_tier`),
    "holdout" if there are any and "reworded": the facts to forget in their first rewording, if all
    have one."""
    answers: tuple[str | None, ...] = ()
    """The first `FIRST` characters of the greedy answer to each fact to forget, None for one that
    is not asked (`measure_per_tier`). Only in frame 0 and at the end of an epoch (`measure`)."""


def due(steps: int, frames: int) -> frozenset[int]:
    """The steps of an epoch, from 1, after which a frame is recorded: evenly spread, and the last.
    steps: number in an epoch. frames: most frames in an epoch; 0 for none."""
    return frozenset(round(steps * (index + 1) / frames) for index in range(frames)) - {0}


def to_json(frame: Frame) -> str:
    """One line of JSON, see the head of this file."""
    rounded = {
        name: asdict(replace(scores, p=tuple(round(value, DECIMALS) for value in scores.p)))
        for name, scores in frame.scores.items()
    }
    content = {"step": frame.step, "epoch": round(frame.epoch, DECIMALS), **rounded}
    content["answers"] = frame.answers
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def from_json(line: str) -> Frame:
    """The frame of a line of `to_json`. Raises ValueError, TypeError, KeyError, AttributeError: it
    is none."""
    content = parse_json(line)
    content.pop(FIELD, None)  # compared by who reads a whole file
    named = {name: content.pop(name) for name in ("step", "epoch", "answers")}
    frame = as_kind({**named, "scores": content}, Frame)
    groups = frame.scores.values()
    if "forget" not in frame.scores or any(len(one.p) != len(one.rank) for one in groups):
        raise ValueError("its groups are not whole")
    return frame


def until(frames: Iterable[Frame], step: int) -> tuple[Frame, ...]:
    """The frames up to the step from which a run resumes. Empty if the run's beginning was not
    recorded, because a recording is complete or absent."""
    earlier = tuple(frame for frame in frames if frame.step <= step)
    return earlier if earlier and earlier[0].step == 0 else ()
