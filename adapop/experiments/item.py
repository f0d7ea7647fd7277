"""One run of an experiment: method, settings, model or sandbox, seed and split. No torch.

The validation split may choose settings, the test split is reported. Holdout facts and utility
questions are split by fact, rewordings by position, so that settings chosen on some phrasings are
reported on others. The splits depend on the facts alone. Retained facts and facts to forget are the
same in both, as they are trained on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from adapop.config.presets import PRESETS, make_config
from adapop.config.run import RunConfig
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.facts.world.world import EXPOSURES_PER_SCORE
from adapop.popularity.beta import BetaMap
from adapop.popularity.calibration import auto_anchors
from adapop.probes.prompts import REWORDED

QUICK = {"epochs": 2, "batch": 4, "micro_batch": 4}
EIGHTH, QUICK_UTILITY = 8, 20  # of the facts, and of the utility questions, one is asked
ANCHORS = ("paper", "quantiles")
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
    return {tier: fmean(some) for tier, some in values.items() if some}
