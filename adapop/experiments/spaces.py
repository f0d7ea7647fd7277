"""Search spaces of `bench tuned`, written down before the recorded trials. No torch.

They were changed once, before any winner was run on the test split, and all earlier trials were
thrown away. Weight decay had ended at 1, but bounded targets need up to 4; and without `MOVES` 40
trials found nothing for some arms that do better at their own preset, changed by hand.

Every arm chooses its rate, weight decay and epochs, a retain weight if it has one, and the
arguments of its own method. A factor of the whole forget loss (`gamma` of SatImp, SimNPO and TPO)
is left out: under AdamW the retain weight and the rate have the same effect. AdaPop's presets
"gentle" and "stress" are points of its own space. β is chosen at the paper's anchors, within the
paper's clips. Wrong answers come from the relation or are second choices: the sandbox's model
writes none when asked. The numbers are in `assets/experiments/searches.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adapop.assets import read_json
from adapop.config.run import RunConfig
from adapop.experiments.item import Arm, CustomData, Item
from adapop.experiments.plans import CONTROL_ARMS, METHOD_ARMS
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR, BetaMap

DIGITS = 3  # significant digits of a setting: the reported value is exactly the one run


@dataclass(frozen=True)
class Range:
    """An interval of numbers. log: sampled evenly in the logarithm. whole: integers."""

    low: int | float
    high: int | float
    log: bool = True
    whole: bool = False

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    def near(self, value: float) -> float:
        """The nearest number in the range, rounded to `DIGITS`."""
        if self.whole:
            return round(min(max(value, self.low), self.high))
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)


Space = Mapping[str, Range | tuple]
_Values = dict[str, Range | tuple[bool | int | str, ...]]


@dataclass(frozen=True)
class _Among:
    """The search space of a method or control: names of setting groups, then its own."""

    groups: tuple[str, ...] = ()
    own: _Values = field(default_factory=dict)

    @property
    def space(self) -> Space:
        """The whole space: settings common to every arm, groups, own settings."""
        groups = (_DATA.groups[name] for name in ("common", *self.groups))
        return {name: among for values in (*groups, self.own) for name, among in values.items()}


@dataclass(frozen=True)
class _Searches:
    """The content of `assets/experiments/searches.json`."""

    moves: tuple[dict[str, int | float], ...]
    groups: dict[str, _Values]
    methods: dict[str, _Among]
    controls: dict[str, _Among]


_DATA = read_json("experiments/searches.json", _Searches)
# What every arm tries first, relative to its preset: values, or factors if a name ends in *.
MOVES = _DATA.moves


@dataclass(frozen=True)
class Search:
    """An arm and its search space."""

    arm: Arm
    space: Space
    near: bool = False
    """Whether J also penalizes a right answer that stays among the first two guesses: a stricter
    objective than other arms have. True for our own method and the most similar one in the
    literature."""

    def has(self, point: Mapping[str, Any]) -> bool:
        return point.keys() == self.space.keys() and all(
            point[name] in among for name, among in self.space.items()
        )


def _searches() -> dict[str, Search]:
    methods = {arm.method: arm for arm in METHOD_ARMS}
    spaces = {name: among.space for name, among in _DATA.methods.items()}
    redirect = spaces["redirect"]
    even = {name: among for name, among in redirect.items() if name != "arguments.kappa"}
    shuffled = Arm("Redirect, scores shuffled", "redirect", changes={"scores": "shuffled"})
    return {
        **{
            name: Search(methods[name], space, name == "redirect") for name, space in spaces.items()
        },
        **{name: Search(CONTROL_ARMS[name], among.space) for name, among in _DATA.controls.items()},
        # These show whether scores help: weights without scores, and from shuffled ones.
        "redirect-even": Search(Arm("Redirect, κ = 0", "redirect"), even, near=True),
        "redirect-shuffled": Search(shuffled, redirect, near=True),
        "altpo-near": Search(Arm("AltPO, second guess", "altpo"), spaces["altpo"], near=True),
    }


SEARCHES = _searches()


def with_point(arm: Arm, point: Mapping[str, Any]) -> Arm:
    """The arm with the point's value for each name of its space."""
    changes: dict[str, Any] = {"arguments": {}}
    for name, value in point.items():
        kind, _, own = name.rpartition(".")
        if kind == "arguments":
            changes["arguments"][own] = value
        elif not kind:
            changes[name] = value
    if "beta.rare" in point:
        rare, ratio = point["beta.rare"], point["beta.ratio"]
        ends = (RARE_ANCHOR[0], rare), (POPULAR_ANCHOR[0], rare * ratio)
        changes["beta"] = BetaMap.from_anchors(*ends)
    if "beta.all" in point:
        changes["beta"] = BetaMap.constant(point["beta.all"])
    if "layer" in changes["arguments"]:  # blocks above this layer get no gradient
        changes["lora_layers"] = tuple(range(changes["arguments"]["layer"] + 1))
    return replace(arm, changes={**arm.changes, **changes})


def preset_point(
    search: Search, arguments: Mapping[str, Any], custom: CustomData | None = None
) -> dict[str, Any]:
    """The arm's preset, rounded and clipped to the ranges. arguments: all arguments of its method.
    custom: None for the sandbox; others have their own rates."""
    config = Item(search.arm, 0, custom=custom).config
    return {
        name: _chosen(among, _value(config, name, arguments))
        for name, among in search.space.items()
    }


def first_points(
    search: Search, arguments: Mapping[str, Any], custom: CustomData | None = None
) -> list[dict[str, Any]]:
    """The first trials: the preset and `MOVES` from it, without duplicates. Moves of settings that
    the arm lacks are left out. Arguments as in `preset_point`."""
    preset, points = preset_point(search, arguments, custom), []
    for move in MOVES:
        point = dict(preset)
        for name, number in move.items():
            plain = name.removesuffix(" *")
            if plain in point:
                moved = point[plain] * number if plain != name else number
                point[plain] = search.space[plain].near(moved)
        if point not in points:
            points.append(point)
    return points


def _chosen(among: Range | tuple, value: Any) -> Any:
    if isinstance(among, Range):
        return among.near(value)
    return value if value in among else among[0]


def _value(config: RunConfig, name: str, arguments: Mapping[str, Any]) -> Any:
    kind, _, own = name.rpartition(".")
    if kind == "arguments":
        return arguments[own]
    beta = config.beta or BetaMap()  # for the shipped sets
    rare, popular = beta(RARE_ANCHOR[0]), beta(POPULAR_ANCHOR[0])
    ratios = {"beta.rare": rare, "beta.ratio": popular / rare, "beta.all": (rare * popular) ** 0.5}
    return ratios.get(name, getattr(config, name, None))
