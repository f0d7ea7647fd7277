"""What an app printed of requests that failed: in a line of ours, or in Gradio's own checks of values."""

from __future__ import annotations

from collections.abc import Iterable

from adapop.paths import ROOT

BEGINNINGS = ("an event failed", "a request failed", "work that a page watched failed", "a run failed")
PLACE = '  File "'
OURS = f"{PLACE}{ROOT / 'adapop'}"
GATE = f"{PLACE}{ROOT / 'adapop' / 'ui' / 'middleware.py'}"  # stands in the path of every request that fails


def failures(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """(ours, Gradio's): the failures among what an app printed, each as its kind and its places, the last one first."""
    found: list[list[str]] = []
    for line in lines:
        if line.startswith(BEGINNINGS):
            found.append([line])
        elif found:
            found[-1].append(line)
    ours, others = [], []
    for told in found:
        places = [line for line in told if line.startswith(PLACE)]
        kind = next((line for line in told[1:] if line[:1].strip()), told[0])
        passed = GATE if told[0].startswith("a request failed") else "nothing"
        in_ours = any(line.startswith(OURS) and not line.startswith(passed) for line in places)
        (ours if in_ours or not places else others).append(" < ".join(map(str.strip, [kind, *reversed(places)])))
    return ours, others
