"""How long runs take, against what was said before anything was loaded: [METHOD].

Models of random weights go through whole runs, measurements and checkpoints included; their answers never end. Without
a GPU that is counted in seconds of one thread's work, for other processes would stretch those of the clock.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.experiments.speed.shapes import SHAPES, random_facts, random_model
from adapop.facts.fact import FactSet
from adapop.model.catalogue import MODELS
from adapop.model.chat import encode_prompt, plain
from adapop.runs.device import device_rates, seconds_of
from adapop.runs.execute import execute, prepare
from adapop.runs.forecast import forecast
from adapop.runs.preflight import steps_of
from adapop.training.events import Event, RunFailed, StepDone

EPOCHS, BATCH, NEW_TOKENS = 2, 8, 16
ROUNDS = 5  # of all cases, by turns


def _llama(hidden: int, layers: int, inner: int, heads: tuple[int, int], vocabulary: int) -> dict[str, Any]:
    shape = {"hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": inner, "vocab_size": vocabulary}
    counted = {"num_attention_heads": heads[0], "num_key_value_heads": heads[1], "tie_word_embeddings": True}
    return {"model_type": "llama", **shape, **counted}


SMALL = {
    "10 M": _llama(256, 10, 768, (4, 2), 8_192),
    "50 M": _llama(512, 12, 1536, (8, 4), 32_768),
    "135 M": dict(MODELS["HuggingFaceTB/SmolLM2-135M-Instruct"].shape),
}


def main(method: str) -> None:
    """Prints a line for each shape and precision: medians of several rounds, and how far their ratios were apart."""
    torch.set_num_threads(1)
    gpu = torch.cuda.is_available()
    shapes = {**SMALL, **(SHAPES if gpu else {})}
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {
        (name, precision): [] for precision in ("float32", "bfloat16") for name in shapes
    }
    for _ in range(ROUNDS):
        for (name, precision), rounds in found.items():
            device_rates.cache_clear()  # a shared machine is not always as fast
            rounds.append(compared(shapes[name], method, precision, 64 if gpu else 8))
    print(f"{'shape':<16}{'precision':<12}{'estimate, s':>12}{'measured, s':>12}{'ratio':>20}{'of a step':>12}")
    for (name, precision), rounds in found.items():
        said, taken, step = (median(column) for column in zip(*rounds))
        ratios = sorted(one / other for one, other, _ in rounds)
        ratio = f"{median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
        print(f"{name:<16}{precision:<12}{said:>12.1f}{taken:>12.1f}{ratio:>20}{step:>12.2f}")


def compared(shape: dict[str, Any], method: str, precision: str, rows: int) -> tuple[float, float, float]:
    """(estimated, measured) seconds of a run of so many facts to forget and as many to retain, and the ratio of the two
    for its steps alone."""
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    config = make_config(
        method, model="random", precision=precision, epochs=EPOCHS, batch=BATCH, max_new_tokens=NEW_TOKENS, system=""
    )
    groups = [tuple(random_facts(rows, seed)) for seed in range(3)]
    reworded = tuple(replace(fact, paraphrases=(f"{fact.question} India",)) for fact in groups[0])
    facts = FactSet("random", reworded, groups[1], groups[2][: rows // 2])
    model = random_model(shape, config, "cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = model.tokenizer
    around = len(encode_prompt(tokenizer, "India")) - len(plain(tokenizer, "India"))
    before = forecast(
        model.shape, config, facts, device_rates(precision, clock), lambda text: len(plain(tokenizer, text)), around
    )
    with tempfile.TemporaryDirectory() as folder:
        found: list[float] = []
        run = prepare(config, facts, Path(folder))
        taken = seconds_of(lambda: found.extend(_steps(execute(run, model), clock)), clock)
    steps = steps_of(facts, config)
    return before.seconds(EPOCHS, steps // EPOCHS), taken, before.step * steps / sum(found)


def _steps(events: Iterable[Event], clock: Callable[[], float]) -> Iterator[float]:
    """Seconds of each step of a run.

    Raises:
        RunError: it failed.
    """
    last = clock()
    for event in events:
        if isinstance(event, RunFailed):
            raise RunError(event.message, event.fix)
        if isinstance(event, StepDone):
            yield clock() - last
        last = clock()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "adapop")
