"""One run of an experiment (method, settings, model or sandbox, seed and split), and the runs of
each experiment, which reuse each other's. No torch.

The validation split may choose settings, the test split is reported. Holdout facts and utility
questions are split by fact, rewordings by position, so that settings chosen on some phrasings are
reported on others. The splits depend on the facts alone. Retained facts and facts to forget are the
same in both, as they are trained on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from adapop.config.methods import METHODS
from adapop.config.presets import PRESETS, RATES, SANDBOX_RATES, make_config
from adapop.config.run import RunConfig
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.facts.world.world import EXPOSURES_PER_SCORE
from adapop.paths import ORACLE, SANDBOX_FOLDER
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR, BetaMap
from adapop.popularity.calibration import auto_anchors
from adapop.probes.prompts import REWORDED

QUICK = {"epochs": 2, "batch": 4, "micro_batch": 4}
EIGHTH, QUICK_UTILITY = 8, 20  # of the facts, and of the utility questions, one is asked
VALIDATION, TEST = "validation", "test"
SPLITS = (VALIDATION, TEST)

# Settings newer than the recorded rows. A key leaves a setting out if it has this value.
SINCE = {
    "four_bit": False, "frames": 0, "last_step": "even", "retain_loss": "own", "alpha_max": None,
    "dual_rows": 0, "measure": "every-epoch", "measure_per_tier": 0, "asking": "chat",
    "answers": "as-given", "unknown": "keep", "tier_pure": False, "start": "as-given",
    "start_epochs": 5, "start_rate": 1e-4, "keep": "last", "patience": 0, "device": "auto",
    "unlearned": "", "oracle": "",
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """A sandbox to build and use in place of the shipped one. hidden: width, a multiple of 4;
    feed-forward layers have three times as much. exposures: how often pretraining shows a fact per
    point of score. spread: exponent of the range of exposures; 1 as shipped, 0 shows all facts
    equally often."""

    name: str
    hidden: int = 128
    exposures: float = EXPOSURES_PER_SCORE
    spread: float = 1.0


@dataclass(frozen=True)
class Arm:
    """One row of a comparison: everything that determines a run except its seed.

    changes: settings of `RunConfig` on top of method and preset. scores: a kind of
    `trial.other_scores`; "shuffled" and "inverted" are presets. anchors: of the beta map, the
    paper's or the 5% and 95% quantiles of the scores. world: None for the shipped sandbox."""

    title: str
    method: str
    preset: str = "paper"
    changes: Mapping[str, Any] = field(default_factory=dict)
    scores: str = "given"
    anchors: str = "paper"
    world: World | None = None


@dataclass(frozen=True)
class CustomData:
    """Facts, model and settings in place of the sandbox. Arms and presets override `changes`."""

    facts: FactSet
    model: str
    changes: Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """One run: an arm with a seed. quick: two epochs on an eighth of the facts, for tests. custom:
    None for the sandbox. recovery: whether to run `cells.recovery_checks` on the model. split: for
    a real model, which split of the facts is asked, one of `SPLITS`, else ""; see `cells.shares`.
    metrics: whether to measure only `cells.known`."""

    arm: Arm
    seed: int
    quick: bool = False
    custom: CustomData | None = None
    recovery: bool = False
    split: str = ""
    metrics: bool = False

    @property
    def config(self) -> RunConfig:
        """The run's configuration, before `anchors` and `world` are applied. Raises ConfigError."""
        custom, of_preset = self.custom, PRESETS.get(self.arm.preset, {})
        changes: dict[str, Any] = {}
        if custom:
            changes = {"model": custom.model, "facts": custom.facts.name, **custom.changes}
        changes = {name: value for name, value in changes.items() if name not in of_preset}
        changes |= {"seed": self.seed, "frames": 0, **self.arm.changes}
        changes |= QUICK if self.quick else {}
        config = make_config(self.arm.method, self.arm.preset, **changes)
        if config.beta is not None:
            return config
        return replace(config, beta=auto_anchors(custom.facts).beta if custom else BetaMap())

    @property
    def key(self) -> str:
        """A hash of all settings; equal across experiments and versions of the code."""
        arm = self.arm
        settings = json.loads(self.config.to_json())
        # None means the benchmark's system prompt; these facts have none.
        settings["system"] = settings["system"] or ""
        decided = {
            "config": dict(pair for pair in settings.items() if pair not in SINCE.items()),
            "scores": arm.scores,
            "anchors": arm.anchors,
            "world": asdict(arm.world) if arm.world else None,
            "quick": self.quick,
        }
        # Newer than the recorded rows: left out of the key while unset.
        later = {"facts": self.custom and self.custom.facts.sha256, "doors": self.recovery}
        later |= {"half": self.split, "metrics": self.metrics}
        decided |= {name: value for name, value in later.items() if value}
        return hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        return f"{self.arm.title}, seed {self.seed}"


def over_seeds(arms: Iterable[Arm], seeds: Sequence[int], quick: bool) -> list[Item]:
    """Every arm with every seed, seed by seed: if stopped early, arms have equally many runs."""
    chosen = list(arms)
    return [Item(arm, seed, quick) for seed in seeds for arm in chosen]


def facts_for(quick: bool, facts: FactSet | None = None) -> FactSet:
    """The facts, by default the sandbox's. quick: every eighth of them from rare to famous, so that
    all exposure levels occur; facts without a score come last."""
    facts = facts or sandbox_facts()
    if not quick:
        return facts
    ordered = {
        group: sorted(getattr(facts, group), key=lambda fact: (fact.score is None, fact.score or 0))
        for group in (*FACT_GROUPS, "neighbours")
    }
    groups = {group: tuple(members[::EIGHTH]) for group, members in ordered.items()}
    return replace(facts, **groups, utility=facts.utility[::QUICK_UTILITY])


def facts_of(facts: Sequence[Fact], split: str) -> tuple[Fact, ...]:
    """The facts of one split, in their order. Facts go alternately to both splits, ordered by
    score, then by relation, so that sizes differ by at most one, overall and for each score."""

    def order(fact: Fact) -> tuple[bool, float, str, str]:
        # Sorted by a hash last: a fixed pseudo-random order, independent of file order and
        # alphabet.
        drawn = hashlib.sha256(fact.id.encode()).hexdigest()
        return fact.score is None, fact.score or 0.0, fact.relation, drawn

    by_level = sorted(facts, key=order)
    chosen = {fact.id for place, fact in enumerate(by_level) if SPLITS[place % 2] == split}
    return tuple(fact for fact in facts if fact.id in chosen)


def wordings_of(fact: Fact, split: str) -> tuple[str, ...]:
    """Rewordings of one split: first, third, ... for validation; a single one is in both."""
    return fact.paraphrases[SPLITS.index(split) :: 2] or fact.paraphrases


def questions_of(facts: FactSet, split: str) -> dict[str, list[tuple[Fact, tuple[str, ...]]]]:
    """Result column without its tier -> facts with their questions in this split."""
    holdout = facts_of(facts.holdout, split)
    return {
        f"forget_{REWORDED}": _reworded(facts.forget, split),
        "holdout_direct": [(fact, (fact.question,)) for fact in holdout],
        "holdout_reworded": _reworded(holdout, split),
        "utility": [(fact, (fact.question,)) for fact in facts_of(facts.utility, split)],
    }


def _reworded(facts: Sequence[Fact], split: str) -> list[tuple[Fact, tuple[str, ...]]]:
    return [(fact, wordings_of(fact, split)) for fact in facts if fact.paraphrases]


def by_tier(
    members: Sequence[tuple[Fact, Sequence[str]]], recall: Mapping[tuple[str, str], float]
) -> dict[str, float]:
    """Tier or "all" -> the mean over its facts. recall: by fact id and question."""
    values: dict[str, list[float]] = {tier: [] for tier in ("all", *TIERS)}
    for fact, questions in members:
        mean = fmean(recall[fact.id, question] for question in questions)
        for tier in {"all", fact.tier} & values.keys():
            values[tier].append(mean)
    return {tier: fmean(recalls) for tier, recalls in values.items() if recalls}


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

RowsByKey = Mapping[str, dict[str, Any]]  # recorded rows by key
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
