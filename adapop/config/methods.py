"""The methods in words and the settings that a run starts from (`assets/methods.json`). No torch.

Values are from the scripts of the paper's runs where these name them, else from the nearest public
LoRA port; the sources of `authors` stand under `why`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapop.assets import read_json
from adapop.facts.fact import PEOPLE, SANDBOX

ADOPTED = "adopted"  # the method of a run whose unlearned model was made elsewhere
Settings = Mapping[str, int | float | str | tuple[int, ...] | tuple[str, ...] | dict[str, Any]]


@dataclass(frozen=True)
class Method:
    """A method of unlearning as users choose it. An `Objective` of the same name computes it."""

    title: str
    """What it is called on the page and in reports."""
    paper: str
    """Authors, venue and arXiv id; "" for a user's own method."""
    about: str
    """What it does, in one sentence."""
    family: str = "your own"
    """How it makes a model forget, in a word or two: the page lists methods by family."""
    scored: bool = False
    """Whether it weighs facts by a popularity score that each must have."""
    scored_by: str = ""
    """The argument without which scores do not count, "" if they always do."""
    needs: str = ""
    """What else it must be given, "" for nothing."""
    controller: str = "fixed"
    """Controller of the retain weight: a choice of `RunConfig.controller`."""
    alpha0: float = 1.0
    """The retain weight before the first epoch."""
    settings: Settings = field(default_factory=dict)
    """Other settings of the paper's runs, by the names of `RunConfig`."""
    authors: Settings = field(default_factory=dict)
    """What its authors recommend where that differs from the paper's runs: preset "authors"."""
    tuned: Settings = field(default_factory=dict)
    """What the recorded searches chose for it on the sandbox's model: preset "tuned" there. They
    are code of commit 1e770910; `bench tuned` prints their rows."""
    people_tuned: Settings = field(default_factory=dict)
    """The same on the model of the world of people (`bench tuned --world people --anew`)."""
    sandbox: Settings = field(default_factory=dict)
    """Settings for the shipped models alone, which have four blocks."""
    sandbox_rate: float = 2e-3
    """Learning rate on the sandbox's model, by the rule above `config.presets.RATES`. For a user's
    own method it is the rate of AdaPop and WGA, until somebody tries others."""
    people_rate: float | None = None
    """The same on the model of the world of people; None if that is `sandbox_rate`."""
    packaged_rates: Mapping[str, float] = field(default_factory=dict)
    """Model from a Python package -> the rate that `bench real` chose for it when asked as text.
    WGA's is that of AdaPop with beta = 1, which is the same method."""
    why: str = ""
    """The reasons for its numbers, with their sources."""


METHODS = read_json("methods.json", dict[str, Method])


def tuned_on(method: Method, model: str) -> Settings:
    """The settings that a search chose for a method on a shipped model; empty without a search, or
    if the search found nothing better than hardly any training."""
    return {SANDBOX: method.tuned, PEOPLE: method.people_tuned}.get(model, {})


def method_named(name: str) -> Method:
    """The method of a run: one of `METHODS`, `ADOPTED` for a model that was unlearned elsewhere, or
    a user's own class, named "package.module:Class". The class is not imported: if its module is
    not loaded, as on a page that shows a run, only its name is known."""
    if name in METHODS:
        return METHODS[name]
    if name == ADOPTED:
        about = "A model that was unlearned elsewhere; nothing was trained here."
        return Method("Adopted", "", about)
    module, _, own = name.partition(":")
    own_class = getattr(sys.modules.get(module), own, None)
    about = (getattr(own_class, "__doc__", None) or "").strip() or f"A method of your own, {name}."
    first, scored = about.splitlines()[0], "beta" in getattr(own_class, "uses", ())
    return Method(own or name, "", first, scored=scored)
