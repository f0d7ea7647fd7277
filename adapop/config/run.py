"""What a run is: one frozen `RunConfig`, stored as one JSON beside the run. Defaults are those of the paper's main
tables (Borisiuk et al. 2026; METHODS 1.5, 2.0)."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from adapop.errors import ConfigError
from adapop.facts.fact import SANDBOX
from adapop.popularity.beta import BetaMap

PAPER_RATE = 1e-4  # paper, main tables
ALL_LINEAR = "all-linear"  # as a target: every linear layer but the output head
SCORES = ("given", "shuffled", "inverted")
MISSING_SCORE = ("error", "drop", "uniform")
SCHEDULES = ("constant", "linear")
CONTROLLERS = ("dual", "fixed", "primal")
REFERENCES = ("epoch_1", "start")
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
        check_choice("scores", self.scores, SCORES)
        check_choice("missing_score", self.missing_score, MISSING_SCORE)
        check_choice("controller", self.controller, CONTROLLERS)
        check_choice("retain_signal", self.retain_signal, ("full", "ema"))
        check_choice("normalise", self.normalise, ("token", "example"))
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("precision", self.precision, ("bfloat16", "float32"))
        check_choice("reference", self.reference, REFERENCES)
        if not (isinstance(self.seed, int) and self.seed < SEED_LIMIT):
            raise ConfigError(f"seed is {self.seed!r}.", "It must be a whole number below 2^63.")
        for name in POSITIVE + AT_LEAST_ZERO:
            value = getattr(self, name)
            if not isinstance(value, (int, float)):
                raise ConfigError(f"{name} is {value!r}.", "It must be a number.")
            if not math.isfinite(value) or value < 0 or (value == 0 and name in POSITIVE):
                bound = "above" if name in POSITIVE else "at least"
                raise ConfigError(f"{name} is {value}.", f"It must be a finite number, {bound} 0.")

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


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raises:
    ConfigError: the value is none of the known ones.
    """
    if value not in known:
        raise ConfigError(f"{name} is {value!r}.", f"Use one of {', '.join(known)}.")
