"""What an app printed of requests that failed: in a line of ours, or in Gradio's own checks of values."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from adapop.paths import ROOT

BEGINNINGS = ("an event failed", "a request failed", "work that a page watched failed", "a run failed")
PLACE = 'File "'
OURS = f"{PLACE}{ROOT / 'adapop'}"


def failures(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """(ours, Gradio's): the failures among what an app printed, each with its kind and place, which stand in the same
    line or the next."""
    ours, others = [], []
    for line, following in pairwise([*lines, ""]):
        if line.startswith(BEGINNINGS):
            words = line.strip() if PLACE in line else f"{line.strip()} {following.strip()}"
            (others if PLACE in words and OURS not in words else ours).append(words)
    return ours, others
