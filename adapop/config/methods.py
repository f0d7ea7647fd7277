"""The methods in words and numbers: what a list of choices shows, what a run starts from. No torch.

They are in `assets/methods.json`. Sources: the paper's runs where its scripts name a value, else
the nearest public LoRA port (METHODS 2.0 to 2.16); of `authors`, what stands under `why`. What a
method computes is in `adapop.objectives`, a file each.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapop.assets import read_json
from adapop.facts.fact import PEOPLE, SANDBOX

Settings = Mapping[str, int | float | str | tuple[int, ...] | tuple[str, ...] | dict[str, Any]]


@dataclass(frozen=True)
class Method:
    """A method of unlearning as users choose it. An `Objective` of the same name computes it."""

    title: str
    """What it is called on the page and in reports."""
    paper: str
    """Authors, venue and arXiv id; "" for a method of one's own."""
    about: str
    """What it does, in one sentence."""
    scored: bool = False
    """Whether it weighs facts by a popularity score that each must have."""
    scored_by: str = ""
    """The argument that must be set for scores to count, "" if they always do."""
    needs: str = ""
    """What else it needs to be given, "" for nothing."""
    controller: str = "fixed"
    """Of the retain weight: one of its choices in `config.run`."""
    alpha0: float = 1.0
    """The retain weight before the first epoch."""
    settings: Settings = field(default_factory=dict)
    """Other settings of the paper's runs, by the names of `RunConfig`."""
    authors: Settings = field(default_factory=dict)
    """What its own authors recommend where that differs from the paper's runs: the preset
    "authors"."""
    tuned: Settings = field(default_factory=dict)
    """What `bench tuned` chose for it on the shipped model: the preset "tuned" there."""
    people_tuned: Settings = field(default_factory=dict)
    """The same on the model of the second world (`bench tuned --world people --anew`)."""
    sandbox: Settings = field(default_factory=dict)
    """Settings for the shipped model alone, which has four blocks."""
    sandbox_rate: float = 2e-3
    """Learning rate on the shipped model, by the rule above `config.presets.RATES`. Of a method of
    one's own it is AdaPop's and WGA's, until somebody tries others."""
    people_rate: float | None = None
    """The same on the model of the second world; None where it is the first's."""
    packaged_rates: Mapping[str, float] = field(default_factory=dict)
    """Model of a Python package -> the rate that `bench real` chose for it as text; WGA's is that
    of its twin there, AdaPop with beta = 1."""
    why: str = ""
    """Why its numbers are what they are, for whoever changes them."""


METHODS = read_json("methods.json", dict[str, Method])


def tuned_on(method: Method, model: str) -> Settings:
    """The settings that a search chose for a method on a shipped model, empty where there was none
    or it found nothing better than to do next to nothing."""
    return {SANDBOX: method.tuned, PEOPLE: method.people_tuned}.get(model, {})


def method_named(name: str) -> Method:
    """The method of a run: one of `METHODS`, or a class of one's own, named "package.module:Class".

    Nothing is imported for it: where the class is not loaded, as on a page that shows a run, its
    name is all there is.
    """
    if name in METHODS:
        return METHODS[name]
    module, _, own = name.partition(":")
    own_class = getattr(sys.modules.get(module), own, None)
    about = getattr(own_class, "__doc__", None) or f"A method of one's own, {name}."
    first, scored = about.strip().splitlines()[0], "beta" in getattr(own_class, "uses", ())
    return Method(own or name, "", first, scored=scored)
