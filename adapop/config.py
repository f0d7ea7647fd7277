"""What a run is: one frozen `RunConfig`, stored as one JSON beside the run, and the presets people start from.

Defaults name their source. "paper" is Borisiuk et al. 2026 (METHODS 1.5, 2.0); "sandbox" is our own choice for the
shipped model, made by the rule that `SANDBOX_RATES` states.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from adapop.beta import BetaMap
from adapop.controller import REFERENCES, Controller, DualAscent, FixedAlpha, PrimalDual
from adapop.errors import ConfigError
from adapop.methods import METHODS

SANDBOX = "sandbox"
# The rule for a method's rate on the sandbox, the same for all (`bench rates` makes the trials again): among RATES that
# keep trained retain recall >= RETAIN_KEPT after 5 epochs at seed 0, the lowest whose recall on the trained forget
# questions is <= FORGOTTEN, else the one with the lowest such recall; if none keeps the retain facts, the one that
# keeps most. Holdout, rewordings, utility and probes play no part.
RATES = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
RETAIN_KEPT, FORGOTTEN = 0.95, 1 / 3
SANDBOX_RATES = {
    "adapop": 2e-3,
    "wga": 2e-3,
    "gd": 5e-4,
    "npo": 2e-3,
    "ga": 2.5e-4,
    "undial": 4e-3,
    "rmu": 4e-3,
    "adaptive-rmu": 2.5e-4,
    "pdu": 2.5e-4,
    "npo-sam": 5e-4,
    "simnpo": 4e-3,
    "satimp": 4e-3,
    "altpo": 2e-3,
    "flat": 2.5e-4,
    "tpo": 4e-3,
    "ceu": 2.5e-4,
}
PAPER_RATE = 1e-4  # paper, main tables
ALL_LINEAR = "all-linear"  # as a target: every linear layer but the output head
SCORES = ("given", "shuffled", "inverted")
MISSING_SCORE = ("error", "drop", "uniform")
SCHEDULES = ("constant", "linear")
CONTROLLERS = ("dual", "fixed", "primal")
SEED_LIMIT = 2**63
POSITIVE = (
    "epochs",
    "batch",
    "learning_rate",
    "clip",
    "floor",
    "lora_rank",
    "lora_alpha",
    "max_new_tokens",
)
AT_LEAST_ZERO = (
    "alpha0", "dual_step", "tolerance", "lam_max", "retain_bound", "warmup", "weight_decay", "seed", "micro_batch",
)  # fmt: skip


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers, apart from the facts themselves.

    model: "sandbox", a Hub id, or a folder; revision: of the Hub's. four_bit: its frozen weights in NF4 (a GPU and
    bitsandbytes). system: the system prompt, None for what the benchmark asks with, see `benchmarks.system_prompt`.
    method: name of an objective; arguments: its fields.
    beta: map from score to exponent. scores: use them as given, shuffled or inverted (controls).
    missing_score: what to do with a fact without a score when the method needs one: refuse, drop it, or beta = 1.
    controller: "dual" or "fixed"; alpha0 ... reference: see `DualAscent`. "primal": PDU's, with retain_bound (nats)
    and warmup (epochs), see `PrimalDual`.
    retain_signal: the controller watches the "full" retain set (paper) or an "ema" of the training batches (its code).
    normalise: forget loss averaged per "token" (paper) or per "example" (its code).
    include_tail: also push on the end-of-turn tokens; for comparison only.
    batch: forget rows an optimiser step; as many retain rows are drawn with replacement. micro_batch: rows a forward
    pass, 0 for as many as memory takes; the gradient does not depend on it. schedule: "constant", or "linear": one
    epoch of warm-up, then down to 0.
    lora_targets: names of the layers that get an adapter, or ("all-linear",). lora_layers: in which blocks, counted
    from 0; None for all.
    """

    model: str = SANDBOX
    revision: str | None = None
    facts: str = SANDBOX
    method: str = "adapop"
    arguments: dict[str, Any] = field(default_factory=dict)
    preset: str = "paper"
    beta: BetaMap = BetaMap()
    scores: str = "given"
    missing_score: str = "error"
    controller: str = "dual"
    alpha0: float = 0.5
    dual_step: float = 0.1
    tolerance: float = 0.1
    lam_max: float = 5.0
    floor: float = 1e-8
    reference: str = "epoch_1"
    retain_bound: float = 0.3
    warmup: int = 3
    retain_signal: str = "full"
    normalise: str = "token"
    include_tail: bool = False
    learning_rate: float = PAPER_RATE
    schedule: str = "constant"
    epochs: int = 5
    batch: int = 32
    micro_batch: int = 0
    weight_decay: float = 0.0
    clip: float = 1.0
    lora_rank: int = 32
    lora_alpha: int = 64
    lora_targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
    lora_layers: tuple[int, ...] | None = None
    seed: int = 0
    precision: str = "bfloat16"
    four_bit: bool = False
    system: str | None = None
    max_new_tokens: int = 64
    cosine: bool = False

    def __post_init__(self) -> None:
        _one_of("scores", self.scores, SCORES)
        _one_of("missing_score", self.missing_score, MISSING_SCORE)
        _one_of("controller", self.controller, CONTROLLERS)
        _one_of("retain_signal", self.retain_signal, ("full", "ema"))
        _one_of("normalise", self.normalise, ("token", "example"))
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("precision", self.precision, ("bfloat16", "float32"))
        _one_of("reference", self.reference, REFERENCES)
        if not (isinstance(self.seed, int) and self.seed < SEED_LIMIT):
            raise ConfigError(f"seed is {self.seed!r}.", "It must be a whole number below 2^63.")
        for name in POSITIVE + AT_LEAST_ZERO:
            value = getattr(self, name)
            if not isinstance(value, (int, float)):
                raise ConfigError(f"{name} is {value!r}.", "It must be a number.")
            if not math.isfinite(value) or value < 0 or (value == 0 and name in POSITIVE):
                bound = "above" if name in POSITIVE else "at least"
                raise ConfigError(f"{name} is {value}.", f"It must be a finite number, {bound} 0.")

    @property
    def make_controller(self) -> Controller:
        """The controller these settings describe."""
        if self.controller == "fixed":
            return FixedAlpha(self.alpha0)
        if self.controller == "primal":
            return PrimalDual(self.alpha0, self.dual_step, self.retain_bound, self.warmup)
        return DualAscent(self.alpha0, self.dual_step, self.tolerance, self.lam_max, self.floor, self.reference)

    @property
    def follows_scores(self) -> bool:
        """Whether β comes from the facts' scores: the method weighs by it, and the preset sets no one β for all."""
        return METHODS[self.method].scored and "beta" not in PRESETS.get(self.preset, {})

    def to_json(self) -> str:
        """The configuration as JSON, the file beside every run."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """The configuration of a run's JSON.

        Raises:
            ConfigError: a setting this version does not know.
        """
        try:
            content = json.loads(text)
            unknown = set(content) - {item.name for item in fields(cls)}
            content["beta"] = BetaMap(**content["beta"])
            content["lora_targets"] = tuple(content["lora_targets"])
            if content.get("lora_layers") is not None:
                content["lora_layers"] = tuple(content["lora_layers"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"This is no run's configuration ({error}).", "Start the run again.") from None
        if unknown:
            raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.", "Remove them or update AdaPop.")
        return cls(**content)


# Presets of AdaPop; the controls are what a comparison needs to be evidence. Other methods have "paper", and AUTHORS
# where their own authors recommend something else.
AUTHORS = "authors"
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "gentle": {"alpha0": 1.0},
    "stress": {"reference": "start", "dual_step": 1.0},
    "alpha-fixed": {"controller": "fixed"},
    "shuffled": {"scores": "shuffled"},
    "inverted": {"scores": "inverted"},
    "beta-0.1": {"beta": BetaMap.constant(0.1)},
    "beta-1": {"beta": BetaMap.constant(1.0)},
    "beta-mean": {},  # the constant is the set's own mean beta, known once the facts are: see execution.prepared
}
SANDBOX_SETTINGS = {
    "batch": 16,
    "micro_batch": 16,
    "precision": "float32",
    "max_new_tokens": 3,
    "schedule": "linear",
    "lora_targets": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
}


def make_config(method: str = "adapop", preset: str = "paper", model: str = SANDBOX, **changes: Any) -> RunConfig:
    """The configuration of a method under a preset, on the sandbox or on a real model, with `changes` on top.

    `arguments` among the changes are put on top of the preset's, one by one.

    Raises:
        ConfigError: an unknown method, preset or setting, or a value out of range.
    """
    _one_of("method", method, tuple(METHODS))
    _one_of("preset", preset, (*PRESETS, AUTHORS))
    if preset not in presets_of(method, model):
        if preset == AUTHORS:
            message = f"{METHODS[method].title} has no preset of its authors here: it would change nothing."
            raise ConfigError(message, "Use 'paper'.")
        message = f"The preset {preset!r} changes AdaPop; {method} has nothing it would change."
        raise ConfigError(message, f"Use {' or '.join(map(repr, presets_of(method, model)))}.")
    unknown = set(changes) - {item.name for item in fields(RunConfig)}
    if unknown:
        raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.", "See RunConfig for those that exist.")
    settings = _merged(_settings(method, preset, model), changes)
    return replace(RunConfig(), **{"method": method, "preset": preset, "model": model, **settings})


def presets_of(method: str, model: str = SANDBOX) -> tuple[str, ...]:
    """The presets that change something of a method, the paper's first."""
    if method == "adapop":
        return tuple(PRESETS)
    differs = _settings(method, AUTHORS, model) != _settings(method, "paper", model)
    return ("paper", AUTHORS) if differs else ("paper",)


def _settings(method: str, preset: str, model: str) -> dict[str, Any]:
    """What a method's preset sets. On the sandbox the rates of `authors` are those of `paper`, for theirs were found on
    models thousands of times as large; what else they choose stays theirs, but for the blocks, of which it has four."""
    chosen = METHODS[method]
    parts = [{"controller": chosen.controller, "alpha0": chosen.alpha0}, chosen.settings]
    if model == SANDBOX:
        parts.append(SANDBOX_SETTINGS)
    if preset == AUTHORS:
        parts.append(chosen.authors)
    if model == SANDBOX:
        parts += [chosen.sandbox, {"learning_rate": SANDBOX_RATES[method]}]
    return _merged(*parts, PRESETS.get(preset, {}))


def _merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, later ones over earlier; so are a method's arguments, one by one."""
    arguments = {name: value for part in parts for name, value in part.get("arguments", {}).items()}
    merged = {name: value for part in parts for name, value in part.items()}
    return {**merged, "arguments": arguments} if arguments else merged


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name} is {value!r}.", f"Use one of {', '.join(known)}.")
