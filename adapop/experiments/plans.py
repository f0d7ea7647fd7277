"""The runs of each experiment. Experiments reuse each other's runs."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path

from adapop.config.methods import METHODS
from adapop.config.presets import RATES, SANDBOX_RATES
from adapop.experiments.item import Arm, Item, World, over_seeds
from adapop.experiments.results import Row
from adapop.paths import ORACLE, SANDBOX_FOLDER
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR, BetaMap

ADAPOP = "AdaPop"
CONTROLS = {
    "as-released": "as released",
    "gentle": "α₀ = 1",
    "stress": "stressed",
    "alpha-fixed": "α fixed",
    "shuffled": "scores shuffled",
    "inverted": "scores inverted",
    "beta-mean": "β = its mean",
    "beta-0.1": "β = 0.1",
    "beta-1": "β = 1",
}
PAPER = Arm(ADAPOP, "adapop")
METHOD_ARMS = tuple(Arm(METHODS[method].title, method) for method in METHODS)
CONTROL_ARMS = {name: Arm(f"{ADAPOP}, {what}", "adapop", name) for name, what in CONTROLS.items()}
# AdaPop itself, and methods whose α does not weigh the retain loss.
NOT_MATCHED = ("adapop", "rmu", "adaptive-rmu")
STEPS = (-0.2, 0.0, 0.2)  # relative changes of a, b and the anchors
BASELINE = Arm(METHODS["wga"].title, "wga")
# Models that know the facts and models that never read them, lightly trained on the retain facts
# alone: α0 leaves the forget loss a millionth of the weight.
ORACLE_WORLD = World(ORACLE)
_LIGHTLY = {"alpha0": 1e6, "epochs": 3, "measure": "off"}
KNOWS = Arm("Knows the facts", "gd", changes=_LIGHTLY)
NEVER_READ = replace(KNOWS, title="Never read them", world=ORACLE_WORLD)
# Methods whose models are measured by every metric.
READ = ("adapop", "wga", "npo", "satimp", "altpo", "tpo", "redirect")

WORLDS = (
    World("narrow", hidden=64),
    World("wide", hidden=192),
    World("half-spread", spread=0.5),
    World("no-spread", spread=0.0),
)
QUICK_WORLDS = (
    World("quick-narrow", hidden=16, exposures=0.005),
    World("quick-no-spread", hidden=16, exposures=0.005, spread=0.0),
)

RowsByKey = Mapping[str, Row]  # recorded rows by key
# Called with (seeds, quick, recorded rows).
Planner = Callable[[Sequence[int], bool, RowsByKey], list[Item]]


def planned(*arms: Arm, over: Sequence[Arm] = (), rates: Sequence[float] = ()) -> Planner:
    """A planner of these arms and, unless quick, of arms `over` at each rate, on every seed."""
    more = [at_rate(arm, rate) for arm in over for rate in rates]
    return lambda seeds, quick, known: over_seeds((*arms, *(() if quick else more)), seeds, quick)


def at_rate(arm: Arm, rate: float) -> Arm:
    changes = {**arm.changes, "learning_rate": rate}
    return replace(arm, title=f"{arm.title} at {rate:g}", changes=changes)


def swept(arms: Sequence[Arm], rates: Sequence[float] = RATES) -> Planner:
    return planned(*(at_rate(arm, rate) for arm in arms for rate in rates))


def coefficients(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
    """AdaPop with a, b, and each number of the two anchors changed by a fifth; WGA and NPO."""
    base, arms = BetaMap(), [PAPER]
    for a, b in product(STEPS, repeat=2):
        if a or b:
            changed = replace(base, a=base.a * (1 + a), b=base.b * (1 + b))
            arms.append(Arm(f"AdaPop, a {a:+.0%}, b {b:+.0%}", "adapop", changes={"beta": changed}))
    ends, parts = enumerate(("rare", "popular")), enumerate(("score", "β"))
    for (end, tier), (part, name), step in product(ends, parts, (STEPS[0], STEPS[-1])):
        anchors = [[*RARE_ANCHOR], [*POPULAR_ANCHOR]]
        anchors[end][part] *= 1 + step
        curve = BetaMap.from_anchors(*map(tuple, anchors))
        title = f"AdaPop, {name} of the {tier} anchor {step:+.0%}"
        arms.append(Arm(title, "adapop", changes={"beta": curve}))
    return over_seeds([*arms, BASELINE, Arm(METHODS["npo"].title, "npo")], seeds, quick)


# Every method with the paper's settings, then AdaPop's controls.
main_comparison = planned(PAPER, *CONTROL_ARMS.values(), *METHOD_ARMS[1:])
OTHER_RATES = tuple(rate for rate in RATES if rate != SANDBOX_RATES["adapop"])
# α dual or fixed, β by score or 0.1 for all facts (the paper's constant), at each rate.
LOW, FIXED, PURE = CONTROL_ARMS["beta-0.1"], {"controller": "fixed"}, {"tier_pure": True}
FIXED_LOW = replace(LOW, title="AdaPop, α fixed, β = 0.1", changes=FIXED)
PARTS = (PAPER, CONTROL_ARMS["alpha-fixed"], LOW, FIXED_LOW)
ONE_TIER = (
    replace(arm, title=f"{arm.title}, batches of one tier", changes=PURE)
    for arm in (PAPER, BASELINE)
)
ablated = partial(planned, *PARTS, BASELINE, *ONE_TIER, over=PARTS)
ablation = ablated(rates=OTHER_RATES)
wrong_scores = planned(
    PAPER,
    replace(PAPER, title="AdaPop, scores noisy", scores="noisy"),
    replace(PAPER, title="AdaPop, half swapped", scores="swapped"),
    replace(PAPER, title="AdaPop, tiers half swapped", scores="tiers-50"),
    replace(PAPER, title="AdaPop, tiers swapped", scores="tiers-100"),
    CONTROL_ARMS["shuffled"],
    CONTROL_ARMS["inverted"],
)
# Signals that need no network, at each rate: exposures, lines of the corpus, and how sure the model
# is of an answer before unlearning.
OWN_ANCHORS = replace(PAPER, title="AdaPop, own anchors", anchors="quantiles")
SIGNALS = (
    PAPER,
    replace(PAPER, title="AdaPop, counts", scores="corpus-subject"),
    replace(OWN_ANCHORS, title="AdaPop, counts, own anchors", scores="corpus-subject+object"),
    replace(PAPER, title="AdaPop, confidence", scores="confidence"),
    CONTROL_ARMS["beta-mean"],
)
proxies = planned(*SIGNALS, OWN_ANCHORS, over=SIGNALS, rates=OTHER_RATES)
# AdaPop, AdaPop with wrong scores and the paper's four baselines, as in the main comparison.
selected = planned(*METHOD_ARMS[:5], CONTROL_ARMS["shuffled"], CONTROL_ARMS["inverted"])
methods = planned(*METHOD_ARMS)

# Every method at every learning rate; a user's own model has other rates.
SWEPT = ("rates", "forgetting")


def worlds(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
    """AdaPop, shuffled scores and WGA in sandboxes of other sizes and other ranges of exposure."""
    arms = []
    for world in (None, *(QUICK_WORLDS if quick else WORLDS)):
        place = world.name if world else "shipped"
        arms += [
            replace(arm, title=f"{place}: {arm.title}", world=world)
            for arm in (PAPER, CONTROL_ARMS["shuffled"], BASELINE)
        ]
    return over_seeds(arms, seeds, quick)


def metrics(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
    """Models that know the facts, that never read them, and unlearned ones, by every metric."""
    off = {"measure": "off"}
    unlearned = [replace(arm, changes=off) for arm in METHOD_ARMS if arm.method in READ]
    items = over_seeds((KNOWS, NEVER_READ), seeds, quick) + over_seeds(unlearned, seeds, quick)
    return [replace(item, metrics=True) for item in items]


def matched_alpha(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
    """The other methods with their own α and, once AdaPop's runs are recorded, with the α of
    AdaPop's last epoch on the same seed."""
    held = []
    for arm in METHOD_ARMS:
        method = METHODS[arm.method]
        if arm.method not in NOT_MATCHED and method.controller == "fixed" and method.alpha0:
            held.append(arm)
    items = over_seeds((PAPER, *held), seeds, quick)
    for item in over_seeds((PAPER,), seeds, quick):
        row = known.get(item.key)
        if row and len(row["alpha"]) > 1 and not row["failed"]:
            alpha = row["alpha"][-2]  # the last value is set after the last epoch and never used
            title, changes = "{}, α of AdaPop", {"alpha0": alpha}
            given = [replace(arm, title=title.format(arm.title), changes=changes) for arm in held]
            items += over_seeds(given, (item.seed,), quick)
    return items


def folder_of(world: World, models: Path) -> Path:
    """Folder of a world's sandbox, named by a hash of its settings too, as a name may be reused."""
    if world == ORACLE_WORLD:
        return SANDBOX_FOLDER / ORACLE
    made_of = hashlib.sha256(json.dumps(asdict(world), sort_keys=True).encode()).hexdigest()
    return models / f"{world.name}-{made_of[:12]}"


def build(world: World, models: Path) -> str:
    """Pretrains the world's sandbox in its folder under `models`, unless it exists. Returns the
    world's name.

    Takes minutes on one core. After an interruption it continues where it stopped."""
    from adapop.sandbox.pretrain import PretrainConfig, Pretraining

    folder = folder_of(world, models)
    unfinished = models / f"writing-{folder.name}"
    if not folder.exists():
        shape = {"hidden": world.hidden, "feed_forward": 3 * world.hidden}
        config = PretrainConfig(**shape, exposures=world.exposures, spread=world.spread)
        unfinished.mkdir(parents=True, exist_ok=True)
        pretraining = Pretraining(config, unfinished)
        for _ in pretraining.train():
            pass
        pretraining.save(unfinished)
        os.replace(unfinished, folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    return world.name
