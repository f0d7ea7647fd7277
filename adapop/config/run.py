"""What a run is: one frozen `RunConfig`, stored as one JSON beside the run. Defaults are those of the paper's main
tables (Borisiuk et al. 2026; METHODS 1.5, 2.0)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from adapop.assets import as_kind, parse_json
from adapop.errors import ConfigError, shown
from adapop.facts.fact import SANDBOX
from adapop.popularity.beta import BetaMap

PAPER_RATE = 1e-4  # paper, main tables
ALL_LINEAR = "all-linear"  # as a target: every linear layer but the output head
REFERENCES = ("epoch_1", "start")
CHOICES = {
    "scores": ("given", "shuffled", "inverted"),
    "missing_score": ("error", "drop", "uniform"),
    "controller": ("dual", "fixed", "primal"),
    "retain_signal": ("full", "ema", "ema-rows"),
    "retain_loss": ("own", "kl"),
    "normalise": ("token", "example", "example-both"),
    "last_step": ("even", "short", "rolled"),
    "schedule": ("constant", "linear"),
    "precision": ("auto", "bfloat16", "float32"),
    "reference": REFERENCES,
    "measure": ("every-epoch", "end", "off"),
    "asking": ("auto", "chat", "chat-examples", "text-examples"),
    "answers": ("auto", "as-given", "own-words"),
    "unknown": ("auto", "keep", "drop"),
    "start": ("as-given", "sft"),
}
SEED_LIMIT = 2**63
EVERY_RUN = {"beta", "lora_targets"}  # settings that were never left out; the others have defaults
LEAST, MOST = 1e-12, 1e30  # of a setting that must be above 0, and of any: float32 ends at 3e38
MOST_WHOLE = 10**6
POSITIVE = (  # other numbers may be 0
    "epochs", "batch", "learning_rate", "clip", "floor", "lora_rank", "lora_alpha", "max_new_tokens", "start_epochs",
    "start_rate",
)  # fmt: skip


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers, apart from the facts themselves. `make_config` makes one."""

    model: str = SANDBOX
    """"sandbox" or "people", "smollm2" or "gemma3-270m" (from Python packages), a Hub id, or the
    path of a folder (safetensors only) or of a GGUF file."""
    revision: str | None = None
    """Branch, tag or commit of the Hub's repository; None for its main branch."""
    facts: str = SANDBOX
    """Where the facts come from: a set's name or a file's path. The facts themselves lie in the run's folder."""
    method: str = "adapop"
    """Key of `METHODS`, or "package.module:Class" for a method of one's own."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """The method's own arguments: fields of its `Objective`."""
    preset: str = "paper"
    """Key of `PRESETS`, "authors" or "tuned"; it has set what is set here, and decides how beta-mean is settled."""
    beta: BetaMap | None = None
    """Map from score to exponent; None for the anchors that suit the set, see
    `popularity.calibration.auto_anchors`. A run records its map."""
    scores: str = "given"
    """Scores as "given", or, as controls, "shuffled" or "inverted" among the facts to forget."""
    missing_score: str = "error"
    """A fact without a score, where the method needs one: refuse ("error"), "drop" it, or "uniform": beta = 1."""
    controller: str = "dual"
    """Of the retain weight: "dual" (AdaPop's), "fixed", or "primal" (PDU's). See `training.controller`."""
    alpha0: float = 0.5
    """Retain weight before the first epoch, at least 0."""
    dual_step: float = 0.1
    """eta, how fast lambda follows the drift; at least 0."""
    tolerance: float = 0.1
    """epsilon, the relative drift of the retain loss that is let pass; at least 0."""
    lam_max: float = 5.0
    """Upper limit of lambda."""
    floor: float = 1e-8
    """xi, least value of the reference that drift is divided by, in nats; above 0."""
    reference: str = "epoch_1"
    """What drift is measured against: the retain loss after "epoch_1" (paper), or at the "start"."""
    alpha_max: float | None = None
    """Controller "dual": largest retain weight, at least 0; None for alpha0 + lam_max (paper). Its code stops at 1."""
    retain_bound: float = 0.3
    """Controller "primal": the retain loss that is let pass, in nats per token."""
    warmup: int = 3
    """Controller "primal": epochs before it moves."""
    dual_rows: int = 0
    """Controller "primal": it moves once for so many rows of a step, as its code does in each micro-batch; 0 for once
    a step."""
    retain_signal: str = "full"
    """What the controller watches: the "full" retain set (paper), an "ema" of the steps' retain losses, or
    "ema-rows" (its code): of single rows."""
    retain_loss: str = "own"
    """The method's "own" retain loss, or "kl": from the original model's predictions of the retained answers."""
    normalise: str = "token"
    """Forget loss averaged per "token" (paper) or per "example"; "example-both" (its code): the retain loss too."""
    include_tail: bool = False
    """Whether the end-of-turn tokens are pushed on too; for comparison only."""
    learning_rate: float = PAPER_RATE
    """Of AdamW, above 0."""
    schedule: str = "constant"
    """"constant", or "linear": one epoch of warm-up, then down to 0."""
    epochs: int = 5
    """Passes over the forget set, above 0."""
    batch: int = 32
    """Forget rows in an optimiser step, at most; as many retain rows are drawn with replacement."""
    last_step: str = "even"
    """Where an epoch's rows fill no last batch: "even" spreads them over all steps, "short" leaves few for the last
    one, "rolled" keeps them for the next epoch (its code, by HF's Trainer). See `training.steps`."""
    micro_batch: int = 0
    """Rows in a forward pass, 0 for as many as memory takes; the gradient does not depend on it."""
    weight_decay: float = 0.0
    """Of AdamW, on the adapter's weights; at least 0."""
    clip: float = 1.0
    """Largest norm of a step's gradient, above 0."""
    lora_rank: int = 32
    """Rank of the adapter."""
    lora_alpha: int = 64
    """The adapter's update is scaled by lora_alpha / lora_rank."""
    lora_targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
    """Names of the linear layers that get an adapter, or ("all-linear",): all but the output head."""
    lora_layers: tuple[int, ...] | None = None
    """In which blocks, counted from 0; None for all."""
    seed: int = 0
    """Of adapter, order and pairing; at least 0 and below 2^63."""
    precision: str = "auto"
    """Of the frozen weights: "bfloat16" or "float32"; "auto" is bfloat16 (paper) on a GPU, on a CPU
    the faster of the two in a short trial, and recorded as what it came to. Losses are float32
    always."""
    four_bit: bool = False
    """Whether the frozen weights are kept in NF4 (needs a GPU and bitsandbytes)."""
    system: str | None = None
    """System prompt; None for what the benchmark asks with, see `facts.benchmarks.system_prompt`."""
    asking: str = "chat"
    """How the model is asked: in "chat", in chat after three examples ("chat-examples"), as text
    after three examples ("text-examples"), or "auto": as it answers most of the facts at once."""
    answers: str = "as-given"
    """Which words are scored: the answers "as-given", right behind the question, the model's
    "own-words", where they stand in its own reply, or "auto": own words where it says more before
    it answers."""
    unknown: str = "keep"
    """Facts to forget that the model does not answer: "keep" or "drop" them, or "auto": drop, but
    of a benchmark."""
    start: str = "as-given"
    """The original model: the one "as-given", or "sft": first an adapter is taught the questions to
    forget and to retain, and merged into it."""
    start_epochs: int = 5
    """Start "sft": passes over those questions, above 0."""
    start_rate: float = PAPER_RATE
    """Start "sft": learning rate of AdamW, above 0."""
    max_new_tokens: int = 64
    """Most tokens of a generated answer; of real models it is what their own answers need, if
    that is less."""
    frames: int = 1
    """How often in an epoch it is recorded where each fact stands, see `training.frames`; 0 for never. Decides no
    other number."""
    measure: str = "every-epoch"
    """When it is asked what the model still answers: the facts to forget after "every-epoch" and the full tables at the
    end, those at the "end" alone, or "off": nothing, until the run is probed. Decides nothing of what is trained."""
    measure_per_tier: int | None = 0
    """Most facts of each group and tier that are asked then, spread evenly over their scores, those
    not to forget in one other wording each; 0 for all, none for 24 on a CPU and all on a GPU."""
    cosine: bool = False
    """Whether answers are also compared by MiniLM cosine (needs its weights)."""

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            check_choice(name, getattr(self, name), known)
        for name in ("model", "facts", "method", "preset"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(f"{name} is {shown(getattr(self, name))!r}.", "It must be text.")
        if not isinstance(self.arguments, dict):
            raise ConfigError(f"arguments is {shown(self.arguments)!r}.", "Give them by name.")
        if type(self.seed) is not int or not 0 <= self.seed < SEED_LIMIT:
            raise ConfigError(
                f"seed is {shown(repr(self.seed))}.", "It must be a whole number of at least 0 and below 2^63."
            )
        for name in NUMBERS:
            if name not in MAYBE or getattr(self, name) is not None:
                _check_number(name, getattr(self, name))
        if self.start == "sft" and self.four_bit:
            raise ConfigError('Start "sft" cannot be merged into 4-bit weights.', "Leave out four_bit.")
        for name, value in self.arguments.items():
            if isinstance(value, (int, float)) and not abs(value) <= MOST:
                raise ConfigError(f"The argument {name} is {shown(repr(value))}.", f"It may be {MOST:g} at most.")

    def to_json(self) -> str:
        """The configuration as JSON, the file beside every run."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, source: str = "") -> RunConfig:
        """The configuration of a run's JSON. source: where it lies, for messages.

        Raises:
            ConfigError: a setting this version does not know, or that is of another type or out of
            its range.
        """
        try:
            content = parse_json(text)
            content.setdefault("last_step", "short")  # as all runs were before there was a choice
            if lacking := EVERY_RUN - content.keys():
                raise ValueError(f"it has no {', '.join(sorted(lacking))}")
            if unknown := content.keys() - {item.name for item in fields(cls)}:
                raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.", "Remove them or update AdaPop.")
            return as_kind(content, cls)
        except (ValueError, AttributeError) as error:
            message, fix = f"This is no run's configuration ({error}).", "Start the run again."
        except ConfigError as error:
            message, fix = error.message, error.fix
        raise ConfigError(f"{source}: {message}" if source else message, fix)


KINDS = {item.name: item.type for item in fields(RunConfig) if item.name != "seed"}  # its range is its own
NUMBERS = tuple(name for name, kind in KINDS.items() if kind.startswith(("int", "float")))
WHOLE = tuple(name for name in NUMBERS if KINDS[name].startswith("int"))
MAYBE = tuple(name for name in NUMBERS if "None" in KINDS[name])  # may be None


def _check_number(name: str, value: object) -> None:
    """Raises:
    ConfigError: a setting is no number, or out of its range.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ConfigError(f"{name} is {shown(repr(value))}.", "It must be a number.")
    if name in WHOLE:
        least, most, kind = int(name in POSITIVE), MOST_WHOLE, "whole number"
    else:
        least, most, kind = LEAST if name in POSITIVE else 0, MOST, "finite number"
    if not least <= value <= most or (name in WHOLE and value != int(value)):
        raise ConfigError(f"{name} is {shown(repr(value))}.", f"It must be a {kind} from {least:g} to {most:,g}.")


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raises:
    ConfigError: the value is none of the known ones.
    """
    if value not in known:
        raise ConfigError(f"{name} is {shown(value)!r}.", f"Use one of {', '.join(known)}.")
