"""What a run records to be watched: how likely each fact's right answer is, now and then while the
model forgets.

A frame is a line of JSON: {"step": 8, "epoch": 0.5, "forget": {"p": [0.9312, ...], "rank": [1,
...]}, ..., "answers": []}. It is read without torch.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from adapop.assets import Count, Share, as_kind, parse_json

DECIMALS = 4  # of a probability in the file
FIRST = 80  # characters of an answer are kept: its first tokens


@dataclass(frozen=True)
class Scores:
    """How well the model as it was knew every fact of a group, in the order of the run's facts.
    Teacher-forced."""

    p: tuple[Share, ...]
    """Probability of the right answer, [0, 1]: the geometric mean over its content tokens."""
    rank: tuple[Count, ...]
    """Of the right answer's first token among all tokens, 1 is the most likely."""


@dataclass(frozen=True)
class Frame:
    """The facts as they stood after a step."""

    step: Count
    """Optimiser steps taken so far; 0 is before training."""
    epoch: float
    """Step / steps of an epoch; whole where an epoch ends."""
    scores: Mapping[str, Scores]
    """"forget" always: the facts to forget, asked directly. In frame 0 and where an epoch ends
    also "reworded", the same facts each asked in its first rewording (absent where a fact has
    none), "retain" and "holdout" (if any); where only some facts are measured
    (`measure_per_tier`), no "reworded" and "holdout"."""
    answers: tuple[str, ...] = ()
    """The first `FIRST` characters of the greedy answer to each fact to forget, in frame 0 and
    where an epoch ends if all of them are asked there (see `measure` and `measure_per_tier` of
    `RunConfig`); else none."""


def due(steps: int, frames: int) -> frozenset[int]:
    """The steps of an epoch, from 1, after which a frame is recorded: evenly spread, the last among
    them. steps: how many an epoch has. frames: how many frames it gets at most; 0 for none."""
    return frozenset(round(steps * (index + 1) / frames) for index in range(frames)) - {0}


def to_json(frame: Frame) -> str:
    """One line of JSON, see above."""
    rounded = {
        name: asdict(replace(scores, p=tuple(round(value, DECIMALS) for value in scores.p)))
        for name, scores in frame.scores.items()
    }
    content = {
        "step": frame.step,
        "epoch": round(frame.epoch, DECIMALS),
        **rounded,
        "answers": frame.answers,
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def from_json(line: str) -> Frame:
    """The frame of a line that `to_json` wrote. Raises ValueError, TypeError, KeyError,
    AttributeError: it is none."""
    content = parse_json(line)
    named = {name: content.pop(name) for name in ("step", "epoch", "answers")}
    frame = as_kind({**named, "scores": content}, Frame)
    if "forget" not in frame.scores or any(
        len(group.p) != len(group.rank) for group in frame.scores.values()
    ):
        raise ValueError("its groups are not whole")
    return frame


def until(frames: Iterable[Frame], step: int) -> tuple[Frame, ...]:
    """The frames of a run that goes on after a step: those up to it. None where the run's beginning
    was not recorded, so that a recording is whole or there is none."""
    earlier = tuple(frame for frame in frames if frame.step <= step)
    return earlier if earlier and earlier[0].step == 0 else ()
