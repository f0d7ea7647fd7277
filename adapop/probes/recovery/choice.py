"""The recovery probes by name: what each costs, running one on a run's facts, and which facts came
back. No torch until a probe is run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.probes.plan import evenly
from adapop.progress import Progress

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

PER_TIER = 100  # facts; more would take longer and add little precision


@dataclass(frozen=True)
class Recovery:
    """A recovery probe as page and report show it."""

    title: str
    """What it is called on the page."""
    about: str
    """What it does, and its control: Markdown."""
    place: str
    """The field of a result's row that says in which form, place or layer, or with which bits."""
    marks: Mapping[str, str]
    """The marks in a row of its figure, each with the field of the result's row that it shows."""


RECOVERY = {
    "relearn": Recovery(
        "Relearning",
        "Trains briefly on a few forgotten facts and asks about the *other* ones. The control "
        "trains on invented ones.",
        "form",
        {"before": "before", "relearnt": "after", "control": "control"},
    ),
    "quantise": Recovery(
        "Rounding the weights",
        "Rounds the merged weights to bfloat16, 8 and 4 bits: rounding sometimes undoes a small "
        "change.",
        "bits",
        {"before": "unlearned", "rounded": "unlearned_rounded"},
    ),
    "sampling": Recovery(
        "Drawing many answers",
        "Draws sixteen answers at temperature 1: is the right one among them, and is its first "
        "token among the likeliest? The control is a wrong answer to such a question.",
        "place",
        {"found": "unlearned", "a wrong answer": "control"},
    ),
    "lens": Recovery(
        "Looking through the layers",
        "Reads after each layer whether the right answer is the likeliest: is it gone, or only "
        "overruled in the last layers?",
        "layer",
        {"found": "unlearned", "a wrong answer": "control"},
    ),
    "patch": Recovery(
        "Patching states",
        "Puts the original's inner states into the unlearned model, layer by layer, and the "
        "reverse: in which layers is the answer lost? The controls are a wrong answer of the same "
        "relation, and facts that were never known.",
        "layer",
        {"found": "unlearned", "never known": "never", "a wrong answer": "control"},
    ),
}


@dataclass(frozen=True)
class Cost:
    """The work of a probe: replies generated, training steps, prompts only scored."""

    answers: int = 0
    steps: int = 0
    prompts: int = 0

    def __str__(self) -> str:
        named = {"answers": self.answers, "training steps": self.steps}
        named["prompts to read"] = self.prompts
        return " and ".join(f"{count:,} {name}" for name, count in named.items() if count)


def cost(name: str, facts: FactSet) -> Cost:
    """The cost of a probe; its text is "" if the set does not allow the probe. Imports torch."""
    from adapop.probes.recovery import quantise, relearn, sampling

    forget, retain = evenly(facts.forget, PER_TIER), evenly(facts.retain, PER_TIER)
    count, forms = len(forget), fmean([1 + bool(fact.paraphrases) for fact in forget] or [0])
    others, trials = max(0, count - relearn.COUNT), 2 + bool(facts.utility)
    costs = {  # relearning asks before the first trial and after each
        "relearn": Cost(round((trials + 1) * others * forms), trials * relearn.STEPS),
        "quantise": Cost(answers=2 * (1 + len(quantise.BITS)) * (count + len(retain))),
        "sampling": Cost(answers=2 * sampling.SAMPLES * count, prompts=2 * count),
        "lens": Cost(prompts=2 * count),  # both models read every question
        "patch": Cost(prompts=4 * count),  # with own and with patched states
    }
    return costs[name]


def recover(
    name: str,
    model: AdaptedModel,
    facts: FactSet,
    max_new_tokens: int,
    progress: Progress,
    world: str = "",
) -> dict:
    """The result of a probe on at most `PER_TIER` facts per tier, as JSON values, and its seconds.
    world: the name of the original model; if it ships, its oracle is a control. Raises ConfigError:
    there is no such probe. AdaPopError: as the probe."""
    from adapop.probes.oracle import oracle_of
    from adapop.probes.recovery import lens, patch, quantise, relearn, sampling

    forget, retain = evenly(facts.forget, PER_TIER), evenly(facts.retain, PER_TIER)
    shared, unrelated = (max_new_tokens, progress), {"unrelated": facts.utility}
    oracle = oracle_of(world, facts) if name == "patch" else None
    probes = {
        "relearn": lambda: relearn.relearn(model, forget, *shared, **unrelated),
        "quantise": lambda: quantise.quantise(model, forget, retain, *shared),
        "sampling": lambda: sampling.sample(model, forget, *shared),
        "lens": lambda: lens.lens(model, forget, progress),
        "patch": lambda: patch.patch(model, forget, progress, oracle),
    }
    if name not in probes:
        raise ConfigError(f"There is no recovery probe {name!r}.", f"Choose {', '.join(RECOVERY)}.")
    started = time.monotonic()
    return asdict(probes[name]()) | {"seconds": time.monotonic() - started}


def recovered(results: Mapping[str, Mapping]) -> dict[str, frozenset[str]]:
    """Fact id -> names of the probes that brought the fact back. results: probe -> its result."""
    probes: dict[str, set[str]] = defaultdict(set)
    for name, result in results.items():
        for fact in result.get("returned", ()):
            probes[fact].add(name)
    return {fact: frozenset(names) for fact, names in probes.items()}
