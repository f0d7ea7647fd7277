"""End states of many sandbox runs, recorded by `COMMAND`: the Story's pictures move between them.

Each run has the numbers behind the gap and behind its cost: for each fact to forget, in how many of
its held-out rewordings it is still answered; for each held-out fact, whether it is. Three families
are recorded, all with seed 0: the methods of `LENGTHS` trained for up to 10 epochs, each length a
run of its own; AdaPop for `EPOCHS` epochs with beta through every pair of `BETAS` at the two anchor
scores, equal ones (beta constant) among them; and other and tuned methods, as long as their own
settings say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from adapop.assets import Count, Share, read_json
from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.facts.world import sandbox_facts
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.popularity.calibration import anchored
from adapop.runs import files
from adapop.training.events import Measured, RunFailed

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

NAME = "states.json"
COMMAND = "python -m adapop sandbox build --part states"  # makes them again
SETTINGS: dict[str, dict[str, Any]] = {
    "wga": {"method": "wga"},
    "adapop": {"method": "adapop"},
    "shuffled": {"method": "adapop", "preset": "shuffled"},
}
# trained as long as their settings say; tuned: as a search chose them, see `bench tuned`
RIVALS: dict[str, dict[str, Any]] = {
    "satimp": {"method": "satimp"},
    "adapop-tuned": {"method": "adapop", "preset": "tuned"},
    "wga-tuned": {"method": "wga", "preset": "tuned"},
    "altpo-tuned": {"method": "altpo", "preset": "tuned"},
    "redirect-tuned": {"method": "redirect", "preset": "tuned"},
}
LENGTHS = dict.fromkeys(("wga", "adapop"), (1, 2, 3, 4, 5, 6, 8, 10))
BETAS = (0.05, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0)
EPOCHS = 5
STEPS = 24  # levels of a recall: the mean of four recalls that are multiples of 1/2 or 1/3
ZERO = ord("A")  # the letter for level 0
Anchors = tuple[float, float] | None  # beta at the rare and at the popular anchor score


@dataclass(frozen=True)
class State:
    """Where a run ended. Shares are recalls in [0, 1]."""

    name: str
    """A name of `SETTINGS` or `RIVALS`, or "original" for the model before any run."""
    epochs: Count
    """Number of epochs trained; 0 for the original."""
    anchors: tuple[float, float] | None
    """Beta at the rare and at the popular anchor score, None where the preset sets beta."""
    by_fact: str
    """`Measured.by_fact`, one letter per fact: A for 0, B for 1 / `STEPS`, ... Y for 1."""
    held_out: str
    """`Measured.held_out_by_fact` in the same letters."""
    gap: tuple[float, float, float]
    """`Measured.gap`: its mean, low and high."""
    tiers: tuple[Share, Share, Share]
    """Recall of rare, middle and popular facts to forget, in all their held-out rewordings."""
    left: Share
    """Recall of all facts to forget, in all their held-out rewordings."""
    holdout: Share
    """Recall of held-out facts, asked as trained."""


@lru_cache(maxsize=1)
def states() -> tuple[State, ...]:
    """All recorded states. Raises DataError: the file cannot be parsed."""
    return tuple(read_json(NAME, list[State]))


def planned() -> Iterator[tuple[str, int, Anchors]]:
    """Name, epochs and anchors of every recorded run except the original."""
    yield from ((name, EPOCHS, None) for name in SETTINGS)
    pairs = ((rare, popular) for rare in BETAS for popular in BETAS if popular <= rare)
    paper = (RARE_ANCHOR[1], POPULAR_ANCHOR[1])  # that pair's run is in the other family
    yield from (("adapop", EPOCHS, pair) for pair in pairs if pair != paper)
    lengths = ((name, epochs) for name, lengths in LENGTHS.items() for epochs in lengths)
    yield from ((name, epochs, None) for name, epochs in lengths if epochs != EPOCHS)
    yield from ((name, make_config(**of).epochs, None) for name, of in RIVALS.items())


def state_of(name: str, epochs: int, anchors: Anchors, measured: Measured) -> State:
    """The state that a full measurement describes."""
    gap = measured.gap
    reworded = partial(measured.recall, "forget", "reworded")
    return State(
        name=name,
        epochs=epochs,
        anchors=anchors,
        by_fact=_letters(measured.by_fact),
        held_out=_letters(measured.held_out_by_fact),
        gap=(gap.mean, gap.low, gap.high),
        tiers=tuple(map(reworded, ("rare", "middle", "popular"))),
        left=reworded(),
        holdout=measured.recall("holdout"),
    )


def _letters(recalls: Iterable[float]) -> str:
    return "".join(chr(ZERO + round(STEPS * recall)) for recall in recalls)


def make(out: Path) -> Iterator[str]:
    """Makes the runs that the file lacks and adds them one by one. Yields a line about each run
    before it starts."""
    rows = json.loads(out.read_text(encoding="utf-8")) if out.exists() else []
    recorded = {(one["name"], one["epochs"], tuple(one["anchors"] or ())) for one in rows}
    for name, epochs, anchors in planned():
        if (name, epochs, anchors or ()) in recorded:
            continue
        yield f"{name}, {epochs} epochs, β {anchors or 'as the preset has it'}"
        model = _trained(name, epochs, anchors)
        if not rows:
            with model.original():
                rows.append(asdict(state_of("original", 0, None, _measured(model))))
        rows.append(asdict(state_of(name, epochs, anchors, _measured(model))))
        files.write_text(out, json.dumps(rows, indent=0))


def _trained(name: str, epochs: int, anchors: Anchors) -> AdaptedModel:
    """The model at the end of a new run. Raises RunError: it failed."""
    from adapop.model.loading import adapted_model
    from adapop.runs.execute import execute, prepare

    pairs = zip((RARE_ANCHOR[0], POPULAR_ANCHOR[0]), anchors or ())
    betas = {"beta": anchored(*pairs)} if anchors else {}
    config = make_config(
        **(SETTINGS | RIVALS)[name], epochs=epochs, frames=0, measure="off", **betas
    )
    with TemporaryDirectory() as folder:
        run = prepare(config, sandbox_facts(), Path(folder))
        model = adapted_model(run.config)
        for event in execute(run, model):
            if isinstance(event, RunFailed):
                raise RunError(event.message, event.fix)
    return model


def _measured(model: AdaptedModel) -> Measured:
    """The final measurement of a run, restricted to the facts to forget and held out."""
    from adapop.probes.measure import full

    facts = replace(sandbox_facts(), retain=(), neighbours=(), utility=())
    measured = full(model, facts, make_config().max_new_tokens)
    rows = tuple(map(asdict, measured.rows))
    of_facts = {
        "by_fact": tuple(measured.by_fact.values()),
        "held_out_by_fact": tuple(measured.held_out_by_fact.values()),
    }
    return Measured(run="", epoch=0, rows=rows, full=True, **of_facts)
