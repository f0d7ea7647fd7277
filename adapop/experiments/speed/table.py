"""The table of `bench speed`: training, scoring and generation here, and in public trainers.

Each case has its own process (`adapop.experiments.speed.throughput`), to measure its own peak of
memory.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import median
from typing import Any

import torch

from adapop.config.presets import make_config
from adapop.experiments.speed import waiting
from adapop.experiments.speed.throughput import ANSWER, BASELINES, SHAPES, WIDE, Case
from adapop.facts.fact import SANDBOX
from adapop.model.memory import footprint
from adapop.paths import ROOT

DUET = (964, 500, 5)  # forget rows, retain rows, epochs: the paper's DUET city run
ROUNDS = 5  # timed for the sandbox
SIDES = (*BASELINES, "ours", "auto", "one")
OF_SANDBOX = (*BASELINES, "ours", "wide", "one")
RUN = (256, 256, 5)  # forget rows, retain rows, epochs of the sandbox
UNMEASURED = "not measured: it needs a GPU that holds the model twice"
HOLDS = 2.5  # times the weights: the baselines copy the reference model, and a pass needs room
GIGABYTE = 1e9
# glibc keeps freed pieces of up to 32 MB, as much as the sandbox needs. So peaks of the sandbox are
# measured in processes that return pieces of 32 KB and more at once, which slows all sides.
RETURNED = {"MALLOC_MMAP_THRESHOLD_": "32768", "MALLOC_TRIM_THRESHOLD_": "32768"}
BESIDE = """1 x 32: one row a pass, 32 passes a step, as the paper's authors train.
8 x 4: eight rows, padded on the right, 4 passes, which is the default of open-unlearning.
Goals are in the order of "against them": how many times the speed, or the memory.
"""
# Goals of a row against 1 x 32 and 8 x 4.
GOALS = {
    "sandbox, training step": ">= 5, -",
    f"sandbox, {WIDE} rows a pass": "-, >= 2",
    "sandbox, peak memory, GB": "<= 1, -",
    f"sandbox, the same, {WIDE} rows": "-, <= 1",
    "Qwen2.5-0.5B, training step": ">= 4, >= 2",
    "Llama-3.1-8B, a whole run, s": ">= 40, >= 6; <= 70 s",
}
OTHERS = {
    "wide": f"{WIDE} rows a pass",
    "auto": "as many rows a pass as fit",
    "one": "one row a pass",
}
HELD = {
    "ours": "peak memory, GB",
    "wide": f"the same, {WIDE} rows",
    "auto": "the same, as many rows",
    "one": "the same, one row",
}
WHAT = {"train": "training step", "score": "scoring", "generate": "generation"}


def main(sandbox: bool = False) -> None:
    """Prints the table. sandbox: only the sandbox, in some minutes, then the waiting times."""
    heads = "".join(f"{name:>10}" for name in ("1 x 32", "8 x 4", "ours"))
    print(BESIDE)
    print(f"{'tokens a second':<38}{heads}{'against them':>16}{'of peak rate':>14}{'goal':>22}")
    sides = [Case(SANDBOX, side, warm=1, steps=4) for side in OF_SANDBOX]
    sides = [replace(case, run=RUN) if case.side == "ours" else case for case in sides]
    rounds = [[_measured(case) for case in sides] for _ in range(ROUNDS)]
    small = [replace(case, steps=1, rows=8, run=None) for case in sides]
    peaks = [{"peak": _measured(case, RETURNED)["peak"]} for case in small]
    _rows(SANDBOX, [_medians(same) | peak for same, peak in zip(zip(*rounds), peaks)])
    if sandbox:
        print()
        waiting.main()
        return
    for shape in SHAPES:
        cases = _cases(shape)
        if cases:
            _rows(shape, [_measured(case) for case in cases])
        for row in _missing(shape, cases):
            print(f"{row:<38}{UNMEASURED:<60}{GOALS.get(row, ''):>22}".rstrip(), flush=True)


def _cases(shape: str) -> list[Case]:
    """The cases to measure here; without a GPU, 8-row steps on the small shape in float32."""
    if torch.cuda.is_available():
        weights = footprint(SHAPES[shape], make_config(model=shape), 1).weights
        if torch.cuda.get_device_properties(0).total_memory < HOLDS * weights:
            return []
        steps = {side: 2 if side in (*BASELINES, "one") else 8 for side in SIDES}
        cases = [Case(shape, side, warm=1, steps=count) for side, count in steps.items()]
        whole = shape == "Llama-3.1-8B"
        return [replace(one, run=DUET) if whole and one.side == "ours" else one for one in cases]
    sides = (*BASELINES, "ours", "one") if shape == "Qwen2.5-0.5B" else ()
    return [Case(shape, side, batch=8, warm=1, steps=2, rows=16) for side in sides]


def _missing(shape: str, cases: Sequence[Case]) -> list[str]:
    """Parts of a shape that these cases lack: the training step, and a whole run with a goal."""
    step, run = f"{shape}, training step", f"{shape}, a whole run, s"
    measured = {step: bool(cases), run: any(case.run for case in cases) or run not in GOALS}
    return [row for row, any_case in measured.items() if not any_case]


def _medians(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number of a case. runs: made alternately, as a machine's load varies."""
    numeric = [key for key, value in runs[0].items() if isinstance(value, (int, float))]
    return runs[0] | {key: median(one[key] for one in runs) for key in numeric}


def _measured(case: Case, allocator: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The numbers that a case's process prints. allocator: glibc's settings, as environment
    variables."""
    module = "adapop.experiments.speed.throughput"
    command = [sys.executable, "-m", module, json.dumps(asdict(case))]
    environment = {**os.environ, **(allocator or {})}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def _rows(shape: str, sides: list[dict[str, Any]]) -> None:
    by_side = {one["side"]: one for one in sides}
    bases, own = [by_side[side] for side in BASELINES], by_side["ours"]
    for key, what in WHAT.items():
        share = f"{own['operations'] / own['rate']:.0%}" if key == "train" else ""
        _row(f"{shape}, {what}", [base[key] for base in bases], own[key], share)
    for side, what in OTHERS.items():
        if other := by_side.get(side):
            share = f"{other['operations'] / other['rate']:.0%}"
            _row(f"{shape}, {what}", [base["train"] for base in bases], other["train"], share)
    for side, what in HELD.items():
        if side in by_side:
            peaks = [base["peak"] / GIGABYTE for base in bases]
            _row(f"{shape}, {what}", peaks, by_side[side]["peak"] / GIGABYTE, "", 3)
    if own["run"]:
        seconds = [_of_parts(base, own["run"]) for base in bases]
        faster = [base / own["whole_run"] for base in seconds]
        _row(f"{shape}, a whole run, s", seconds, own["whole_run"], "", ratios=faster)


def _of_parts(base: dict[str, Any], run: Sequence[int]) -> float:
    """Estimated seconds of a baseline's whole run, which would take hours, from its measured
    rates."""
    forget, retain, epochs = run
    length = base["train"] * base["step"] / (2 * base["batch"])
    steps = epochs * forget / base["batch"] * base["step"]
    # The full tables score both models, before and after.
    scored = (epochs + 1) * retain + 2 * 2 * (forget + retain)
    questions = epochs * 2 * forget + 2 * (2 * forget + retain)
    return steps + scored * length / base["score"] + questions * ANSWER / base["generate"]


def _row(
    what: str,
    bases: Sequence[float],
    own: float,
    share: str,
    digits: int = 0,
    ratios: Sequence[float] | None = None,
) -> None:
    """Prints a row. ratios: ours against the baselines, if they are not the plain quotients."""
    values = "".join(f"{value:>10,.{digits}f}" for value in (*bases, own))
    against = "".join(f"{ratio:>8.2f}" for ratio in ratios or [own / base for base in bases])
    print(f"{what:<38}{values}{against}{share:>14}{GOALS.get(what, ''):>22}".rstrip(), flush=True)
