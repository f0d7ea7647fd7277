"""What `bench tuned` may choose for each arm: the ranges, written down before the trials that are kept. No torch.

They were changed once, before any winner was run on the test half, and all trials made until then were thrown away:
weight decay ended at 1, and bounded targets need up to 4; and a search without `MOVES` found nothing in 40 trials for
arms that do better at their own preset, moved by hand.

Every arm chooses its rate, weight decay and epochs, a retain weight where it has one, and the arguments of its own
method. A factor of the whole forget loss (`gamma` of SatImp, SimNPO and TPO) is left out: under AdamW it does what the
retain weight and the rate do. AdaPop's presets "gentle" and "stress" are points of its own space.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapop.config.run import RunConfig
from adapop.experiments.item import Arm, Ground, Item
from adapop.experiments.plans import CONTROL_ARMS, METHOD_ARMS
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR, BetaMap

DIVERGENCES = (
    "total-variation", "kl", "pearson", "jensen-shannon", "jeffrey", "reverse-kl", "squared-hellinger", "neyman",
)  # fmt: skip
DIGITS = 3  # significant ones of a number that is tried, so that what is reported is what was run


@dataclass(frozen=True)
class Range:
    """Numbers from low to high. log: drawn evenly in the logarithm. whole: whole numbers."""

    low: float
    high: float
    log: bool = True
    whole: bool = False

    def near(self, value: float) -> float:
        """The number of the range that is nearest to a value, rounded to what is tried."""
        inside = min(max(value, self.low), self.high)
        return round(inside) if self.whole else min(max(float(f"{inside:.{DIGITS}g}"), self.low), self.high)


Space = Mapping[str, Range | tuple]

COMMON: Space = {
    "learning_rate": Range(1e-4, 1e-2),
    "weight_decay": Range(0.0, 4.0, log=False),
    "epochs": Range(3, 10, log=False, whole=True),
}
ALPHA: Space = {"alpha0": Range(0.02, 20.0)}
DUAL: Space = {
    **ALPHA,
    "dual_step": Range(0.01, 3.0),
    "tolerance": Range(0.0, 0.3, log=False),
    "reference": ("epoch_1", "start"),
}
CURVE: Space = {"beta.rare": Range(0.2, 2.0), "beta.ratio": Range(0.02, 1.0)}  # at the paper's anchors, in its clips
LEARNT = ("relation", "second")  # where the sandbox's wrong answers may come from; its model writes none when asked
BLOCKS: Space = {"alpha0": Range(0.05, 2000.0), "arguments.layer": (0, 1, 2)}
OWN: dict[str, Space] = {
    "adapop": {**DUAL, **CURVE},
    "satimp": {**ALPHA, "arguments.b1": Range(0.3, 10.0), "arguments.b2": Range(0.01, 2.0)},
    "wga": {**ALPHA, "arguments.beta": Range(0.1, 3.0)},
    "npo": {**ALPHA, "arguments.beta": Range(0.02, 2.0)},
    "gd": ALPHA,
    "ga": {},
    "tpo": {**ALPHA, "arguments.beta": Range(0.02, 2.0)},
    "altpo": {
        **ALPHA, "arguments.beta": Range(0.02, 2.0), "arguments.count": (1, 5), "arguments.source": LEARNT,
    },
    "simnpo": {
        **ALPHA, "arguments.beta": Range(0.5, 10.0), "arguments.delta": Range(0.0, 2.0, log=False),
    },
    "npo-sam": {**ALPHA, "arguments.beta": Range(0.02, 2.0), "arguments.rho": Range(1e-3, 0.3)},
    "undial": {**ALPHA, "arguments.beta": Range(1.0, 30.0)},
    "pdu": {
        "alpha0": Range(0.5, 200.0), "dual_step": Range(0.05, 20.0), "retain_bound": Range(0.01, 1.0),
        "warmup": Range(0, 5, log=False, whole=True),
    },
    "rmu": {**BLOCKS, "arguments.coefficient": Range(0.5, 100.0)},
    "adaptive-rmu": {**BLOCKS, "arguments.scale": Range(0.5, 20.0)},
    "flat": {**ALPHA, "arguments.divergence": DIVERGENCES, "arguments.several": (False, True)},
    "ceu": ALPHA,
    "redirect": {
        **ALPHA, "arguments.kappa": Range(0.0, 0.6, log=False), "arguments.source": LEARNT,
        "arguments.share": Range(0.0, 0.9, log=False), "arguments.over": (1, 2, 3, 4, 6),
    },
}  # fmt: skip
OF_CONTROLS: dict[str, Space] = {
    "shuffled": OWN["adapop"],
    "inverted": OWN["adapop"],
    "alpha-fixed": {**ALPHA, **CURVE},
    "beta-mean": {**DUAL, "beta.all": Range(0.05, 2.0)},
    "beta-1": DUAL,
    "beta-0.1": DUAL,
    "as-released": OWN["adapop"],
}

# What every arm tries first, from its preset on: values, and factors where a name ends in *.
MOVES: tuple[Mapping[str, float], ...] = (
    {},
    {"learning_rate *": 2},
    {"learning_rate *": 0.5},
    {"weight_decay": 2},
    {"epochs": 10},
    {"epochs": 10, "weight_decay": 2},
    {"epochs": 10, "weight_decay": 2, "learning_rate *": 2},
    {"weight_decay": 4, "learning_rate *": 2},
    {"alpha0 *": 4},
    {"alpha0 *": 0.25},
    {"epochs": 10, "weight_decay": 1, "alpha0 *": 0.25},
)


@dataclass(frozen=True)
class Search:
    """An arm and what may be chosen for it."""

    arm: Arm
    space: Space
    near: bool = False
    """Whether it is also chosen for the right answer not to be the second guess, which asks more of it than of the
    others. So is our own method, and the one of the literature that comes nearest to it."""


def _searches() -> dict[str, Search]:
    methods = {arm.method: arm for arm in METHOD_ARMS}
    spaces = {name: {**COMMON, **own} for name, own in OWN.items()}
    ours = spaces["redirect"]
    even = {name: among for name, among in ours.items() if name != "arguments.kappa"}
    spread = ("arguments.share", "arguments.over")
    bounded = {name: among for name, among in ours.items() if name not in spread} | {
        "arguments.target": ("relabel", "swap", "move", "level"),
        "arguments.floor": Range(0.03, 3.0),
    }
    shuffled = {"scores": "shuffled"}
    return {
        **{name: Search(methods[name], space, near=name == "redirect") for name, space in spaces.items()},
        **{name: Search(CONTROL_ARMS[name], {**COMMON, **own}) for name, own in OF_CONTROLS.items()},
        # whether scores earn their place in it: weights that ignore them, and weights from shuffled ones
        "redirect-even": Search(Arm("Redirect, κ = 0", "redirect"), even, near=True),
        "redirect-shuffled": Search(Arm("Redirect, scores shuffled", "redirect", changes=shuffled), ours, near=True),
        "redirect-bounded": Search(Arm("Redirect, other targets", "redirect"), bounded, near=True),
        "altpo-near": Search(Arm("AltPO, second guess", "altpo"), spaces["altpo"], near=True),
    }


SEARCHES = _searches()


def with_point(arm: Arm, point: Mapping[str, Any]) -> Arm:
    """The arm with a value for each name of its space."""
    changes: dict[str, Any] = {"arguments": {}}
    for name, value in point.items():
        kind, _, own = name.rpartition(".")
        if kind == "arguments":
            changes["arguments"][own] = value
        elif not kind:
            changes[name] = value
    if "beta.rare" in point:
        rare, ratio = point["beta.rare"], point["beta.ratio"]
        changes["beta"] = BetaMap.from_anchors((RARE_ANCHOR[0], rare), (POPULAR_ANCHOR[0], rare * ratio))
    if "beta.all" in point:
        changes["beta"] = BetaMap.constant(point["beta.all"])
    if "layer" in changes["arguments"]:  # blocks above it have no gradient
        changes["lora_layers"] = tuple(range(changes["arguments"]["layer"] + 1))
    return replace(arm, changes={**arm.changes, **changes})


def preset_point(search: Search, arguments: Mapping[str, Any], ground: Ground | None = None) -> dict[str, Any]:
    """The arm's preset as it is, as near as the ranges allow. arguments: all of its method's. ground: None for the
    sandbox; another has rates of its own."""
    config = Item(search.arm, 0, ground=ground).config
    return {name: _chosen(among, _value(config, name, arguments)) for name, among in search.space.items()}


def first_points(search: Search, arguments: Mapping[str, Any], ground: Ground | None = None) -> list[dict[str, Any]]:
    """What is tried before anything is proposed: the preset, and `MOVES` from it, each point once. A move of what the
    arm has not is left out of it. Called as `preset_point`."""
    preset, found = preset_point(search, arguments, ground), []
    for move in MOVES:
        point = dict(preset)
        for name, number in move.items():
            plain = name.removesuffix(" *")
            if plain in point:
                point[plain] = search.space[plain].near(point[plain] * number if plain != name else number)
        if point not in found:
            found.append(point)
    return found


def _chosen(among: Range | tuple, value: Any) -> Any:
    if isinstance(among, Range):
        return among.near(value)
    return value if value in among else among[0]


def _value(config: RunConfig, name: str, arguments: Mapping[str, Any]) -> Any:
    kind, _, own = name.rpartition(".")
    if kind == "arguments":
        return arguments[own]
    rare, popular = config.beta(RARE_ANCHOR[0]), config.beta(POPULAR_ANCHOR[0])
    return {"beta.rare": rare, "beta.ratio": popular / rare, "beta.all": (rare * popular) ** 0.5}.get(
        name, getattr(config, name, None)
    )
