"""The sixteen methods in words and numbers, without torch: what a list of choices shows and what a run starts from.

Sources: the paper's runs where its scripts name a value, else the method's own paper (METHODS 2.0 to 2.16). What a
method computes is in `adapop.objectives`, a file each.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """One method of unlearning, as a user chooses it. What it computes is an `Objective` of the same name."""

    title: str
    """What it is called on the page and in reports."""
    paper: str
    """Authors, venue and arXiv id; "" for a method of one's own."""
    about: str
    """What it does, in one sentence."""
    scored: bool = False
    """Whether it needs a popularity score for each fact."""
    needs: str = ""
    """What else it needs to be given, "" for nothing."""
    controller: str = "fixed"
    """Of the retain weight: one of `CONTROLLERS`."""
    alpha0: float = 1.0
    """The retain weight before the first epoch."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other settings of the paper's runs, by the names of `RunConfig`."""
    authors: Mapping[str, Any] = field(default_factory=dict)
    """What its own authors recommend where that differs from the paper's runs: the preset "authors"."""
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    """Settings for the shipped model alone, which has four blocks."""


# RMU reads the output of one block, so only the blocks up to it learn: block 7 of 32 in the paper. The sandbox has 4:
# block 1 is the first whose attention reads what another block has made of the subject. (Block 2, tried
# once at rate 4e-3, forgets a little more: recall .48 against .58. Block 1 was kept.)
TO_BLOCK_7 = {"lora_layers": tuple(range(8))}
IN_SANDBOX = {"arguments": {"layer": 1}, "lora_layers": (0, 1)}

METHODS: dict[str, Method] = {
    "adapop": Method(
        "AdaPop",
        "Borisiuk et al. 2026",
        "Pushes each fact by its popularity, and lets a controller set how firmly the rest is held.",
        scored=True,
        controller="dual",
        alpha0=0.5,
    ),
    "wga": Method(
        "WGA",
        "Wang et al., ICLR 2025, arXiv 2502.19301",
        "Pushes on a word the harder the surer the model still is of it, alike for all facts.",
    ),
    "gd": Method(
        "Gradient difference",
        "Liu, Liu and Stone, CoLLAs 2022, arXiv 2203.12817",
        "Pushes on all words alike, while the facts to retain are trained on.",
    ),
    "npo": Method(
        "NPO",
        "Zhang, Lin, Bai and Mei, COLM 2024, arXiv 2404.05868",
        "Pushes each answer below what the original model gives it, ever more gently.",
        authors={"arguments": {"beta": 0.1}},
    ),
    "ga": Method(
        "Gradient ascent",
        "Jang et al., ACL 2023, arXiv 2210.01504",
        "Pushes on all words alike, with nothing to hold the rest in place.",
        alpha0=0.0,
    ),
    "undial": Method(
        "UNDIAL",
        "Dong, Lin, Belkin, Huerta and Vulić, NAACL 2025, arXiv 2402.10052",
        "Teaches the model its own original predictions with the right word lowered.",
        alpha0=0.1,
        authors={"arguments": {"beta": 10.0}, "alpha0": 0.0, "lora_rank": 8, "lora_alpha": 16},
    ),
    "rmu": Method(
        "RMU",
        "Li et al., ICML 2024, arXiv 2403.03218",
        "Steers the inner states on forget facts towards one random direction and holds those on the others.",
        settings=TO_BLOCK_7,
        authors={
            "arguments": {"coefficient": 6.5},
            "alpha0": 1200.0,
            "lora_layers": (5, 6, 7),
            "lora_targets": ("down_proj",),
            "learning_rate": 5e-5,
        },
        sandbox=IN_SANDBOX,
    ),
    "adaptive-rmu": Method(
        "Adaptive RMU",
        "Dang et al., AAAI 2025, arXiv 2408.06223",
        "RMU with a target as long as the model's own states are, times five.",
        alpha0=1200.0,
        settings={"lora_layers": (5, 6, 7)},
        authors={"lora_targets": ("down_proj",), "learning_rate": 5e-5},
        sandbox=IN_SANDBOX,
    ),
    "pdu": Method(
        "PDU",
        "Entesari et al., NeurIPS 2025, arXiv 2506.05314",
        "Flattens the predictions on forget facts, and weighs the others by how far their loss is above a bound.",
        controller="primal",
        # a deviation: the paper's runs take this step once a row, ours once a step (`training.controller.PrimalDual`)
        settings={"dual_step": 1.0, "retain_bound": 0.3, "warmup": 3},
        authors={"alpha0": 50.0},
    ),
    "npo-sam": Method(
        "NPO-SAM",
        "Fan et al., ICML 2025, arXiv 2502.05374",
        "NPO that looks for a place where small changes of the weights do not bring the facts back.",
    ),
    "simnpo": Method(
        "SimNPO",
        "Fan et al., NeurIPS 2025, arXiv 2410.07163",
        "NPO without the original model to compare with, by the mean loss of an answer's words.",
    ),
    "satimp": Method(
        "SatImp",
        "Yang et al., ICML 2025, arXiv 2505.11953",
        "Pushes on words the model is sure of, but leaves those it is entirely sure of and those it has let go.",
        alpha0=0.1,
        authors={"arguments": {"gamma": 0.1}, "alpha0": 1.0},  # their file in open-unlearning; their README is `paper`
    ),
    "altpo": Method(
        "AltPO",
        "Mekala et al., COLING 2025, arXiv 2409.13474",
        "Teaches a plausible wrong answer in place of the right one.",
        needs="a plausible wrong answer for each fact; where a set brings none, one is found or written",
        authors={"arguments": {"beta": 0.1}, "learning_rate": 5e-5, "epochs": 2},
        sandbox={"arguments": {"source": "relation"}},
    ),
    "flat": Method(
        "FLAT",
        "Wang et al., ICLR 2025, arXiv 2410.11143",
        "Teaches a refusal in place of the answer, with nothing to hold the rest in place.",
        alpha0=0.0,
        authors={"learning_rate": 1e-5},
    ),
    "tpo": Method(
        "TPO",
        "Zhou et al., AAAI 2026, arXiv 2506.03142",
        "Lowers the words that carry the fact, and keeps the small words around them.",
        authors={"arguments": {"beta": 0.32, "gamma": 1.0}},
    ),
    "ceu": Method(
        "CE-U",
        "Yang 2025, arXiv 2503.01224",
        "Teaches the model its own predictions with the right word struck out, with nothing to hold the rest in place.",
        alpha0=0.0,
        authors={"learning_rate": 2e-6},
    ),
}


def method_named(name: str) -> Method:
    """The method of a run: one of `METHODS`, or a class of one's own, named "package.module:Class".

    Nothing is imported for it: where the class is not loaded, as on a page that shows a run, its name is all there is.
    """
    if name in METHODS:
        return METHODS[name]
    module, _, own = name.partition(":")
    found = getattr(sys.modules.get(module), own, None)
    about = (getattr(found, "__doc__", None) or f"A method of one's own, {name}.").strip().splitlines()[0]
    return Method(own or name, "", about, scored="beta" in getattr(found, "uses", ()))
