"""The configuration of a run: how a setting is declared, and all of them in one frozen `RunConfig`,
stored as JSON beside the run. The defaults are those of the paper's main tables (Borisiuk et al.
2026)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from adapop.assets import as_kind, parse_json, type_adapter
from adapop.config.methods import ADOPTED
from adapop.errors import ConfigError, did_you_mean, truncated
from adapop.facts.fact import SANDBOX
from adapop.popularity.beta import BetaMap

LEAST, MOST = 1e-12, 1e30  # least value above 0, and largest of any setting: float32 ends at 3e38
MOST_WHOLE = 10**6


@dataclass(frozen=True)
class Setting:
    """How one setting of a run may be set, and where."""

    kind: str = ""
    """Its type, as the annotation of its field writes it."""
    choices: tuple[str, ...] = ()
    """Its possible values, if they are a few texts."""
    positive: bool = False
    """Whether a number must be above 0; otherwise it may be 0."""
    short: str = ""
    """A short form of its option on the command line."""
    separate: bool = False
    """Whether it has its own option on the command line and its own argument in calls."""
    every: str = ""
    """For a list: the text that "all" on the page stands for."""
    most: int = MOST_WHOLE
    """The largest value of a whole number."""
    public: float | None = None
    """The largest value on a public page."""
    shared: bool = False
    """Whether all runs of a race take it from the Run tab if it was changed there: it is about the
    model or about measuring, not about a method."""
    compared: bool = True
    """Whether a value other than the paper's is listed beside its numbers. The other settings
    change none of them, or have a sentence of their own (`report.beside_paper`)."""

    @property
    def number(self) -> bool:
        """Whether the setting is a number, or may be one."""
        return self.kind.startswith(("int", "float"))

    @property
    def whole(self) -> bool:
        """Whether the setting is a whole number, or may be one."""
        return self.kind.startswith("int")

    @property
    def optional(self) -> bool:
        """Whether the setting may be None."""
        return "None" in self.kind


def setting(default: Any, *choices: str, **about: Any) -> Any:
    """A field of `RunConfig`. choices, about: fields of its `Setting`."""
    return field(default=default, metadata={"setting": Setting(choices=choices, **about)})


def check_number(name: str, value: object, about: Setting) -> None:
    """Raises ConfigError: a setting is no number, or out of its range."""
    message = f"{name} is {truncated(repr(value))}."
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ConfigError(message, "It must be a number.")
    least: float
    most: float
    if about.whole:
        least, most, kind = int(about.positive), about.most, "whole number"
    else:
        least, most, kind = LEAST if about.positive else 0, MOST, "finite number"
    if not least <= value <= most or (about.whole and type(value) is not int):
        bounds = f"{least:,} to {most:,}" if about.whole else f"{least:g} to {most:,g}"
        raise ConfigError(message, f"It must be a {kind} from {bounds}.")


def check_type(name: str, value: object, kind: object) -> None:
    """Raises ConfigError: a setting is not of its type, or a text is not Unicode."""
    try:
        type_adapter(kind).validate_python(value, strict=True)
        json.dumps(value, ensure_ascii=False, default=str).encode()  # also within lists
    except (ValidationError, UnicodeEncodeError) as error:
        reason = "It has a broken character (a lone surrogate)"
        if isinstance(error, ValidationError):
            reason = error.errors()[0]["msg"]
        raise ConfigError(f"{name} is {truncated(repr(value))}.", f"{reason}.") from None


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raises ConfigError: the value is unknown."""
    if value not in known:
        fix = f"{did_you_mean(value, known)}Use one of {', '.join(known)}."
        raise ConfigError(f"{name} is {truncated(value)!r}.", fix)


PAPER_RATE = 1e-4  # paper, main tables
OWN_OPTION = {"setting": Setting(separate=True)}
DEVICE = re.compile("auto|cpu|cuda(:[0-9]{1,3})?")
ALL_LINEAR = "all-linear"  # a target: every linear layer but the output head
SEED_LIMIT = 2**63
MOST_RANK = 8_192  # larger than layers are wide: it would take all memory
EVERY_RUN = {"beta", "lora_targets"}  # settings that every stored run has; others have defaults


@cache
def _types() -> dict[str, object]:
    return get_type_hints(RunConfig)


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run's numbers, except the facts. Made by `make_config`."""

    model: str = setting(SANDBOX, separate=True, compared=False)
    """"sandbox" or "people", "smollm2" or "gemma3-270m" (from Python packages), a Hub id, or the
    path of a folder (safetensors only) or of a GGUF file."""
    revision: str | None = setting(None, compared=False)
    """Branch, tag or commit of the Hub's repository; None for its main branch."""
    unlearned: str = setting("", separate=True, compared=False)
    """Of an adopted run, which trains nothing: the unlearned model, named as `model` is, or the
    path of a peft adapter's folder; "NAME@REVISION" for a revision of the Hub's. "" for a run that
    trains its own."""
    oracle: str = setting("", separate=True, compared=False)
    """A model that never learned the facts to forget, named as `unlearned` is. The run is
    compared with it. "" for the shipped one, if there is one."""
    facts: str = setting(SANDBOX, separate=True, compared=False)
    """Where the facts come from: a set's name or a file's path. The facts themselves lie in the
    run's folder."""
    method: str = setting("adapop", separate=True, compared=False)
    """Key of `METHODS`, or "package.module:Class" for a user's own method."""
    arguments: dict[str, Any] = field(default_factory=dict, metadata=OWN_OPTION)
    """The method's own arguments: fields of its `Objective`."""
    preset: str = setting("paper", separate=True, compared=False)
    """Key of `PRESETS`, "authors" or "tuned". Its settings are already in the fields here;
    "beta-mean" also decides how beta is set once the facts are known."""
    beta: BetaMap | None = setting(None, separate=True)
    """Map from score to exponent; None for the anchors that suit the set, see
    `popularity.calibration.auto_anchors`. A run records its map."""
    scores: str = setting("given", "given", "shuffled", "inverted", separate=True)
    """Scores as "given", or, as controls, "shuffled" or "inverted" among the facts to forget."""
    missing_score: str = setting("error", "error", "drop", "uniform")
    """What happens if the method needs a score and a fact has none: refuse ("error"), "drop" it, or
    "uniform": beta = 1."""
    controller: str = setting("dual", "dual", "fixed", "primal")
    """Controller of the retain weight: "dual" (AdaPop's), "fixed", or "primal" (PDU's). See
    `training.controller`."""
    alpha0: float = 0.5
    """Retain weight before the first epoch, at least 0."""
    dual_step: float = 0.1
    """eta, how fast lambda follows the drift; at least 0."""
    tolerance: float = 0.1
    """epsilon, the relative drift of the retain loss that is tolerated; at least 0."""
    lam_max: float = 5.0
    """Upper limit of lambda."""
    floor: float = setting(1e-8, positive=True)
    """xi, least value of the reference that drift is divided by, in nats; above 0."""
    reference: str = setting("epoch_1", "epoch_1", "start")
    """What drift is measured against: the retain loss after "epoch_1" (paper), or at "start"."""
    alpha_max: float | None = setting(None, compared=False)
    """Controller "dual": largest retain weight, at least 0; None for alpha0 + lam_max (paper). The
    paper's code stops at 1."""
    retain_bound: float = 0.3
    """Controller "primal": the retain loss that is tolerated, in nats per token."""
    warmup: int = 3
    """Controller "primal": epochs before it moves."""
    dual_rows: int = 0
    """Controller "primal": after how many rows of a step it moves (in PDU's code, after those of a
    micro-batch); 0 for one move per step."""
    retain_signal: str = setting("full", "full", "ema", "ema-rows", compared=False)
    """What the controller watches: the loss on the "full" retain set (paper), an "ema" of the
    steps' retain losses, or "ema-rows" (the paper's code): an ema over single rows."""
    retain_loss: str = setting("own", "own", "kl")
    """The method's "own" retain loss, or "kl": the divergence from the original model's predictions
    of the retained answers."""
    normalise: str = setting("token", "token", "example", "example-both", compared=False)
    """Forget loss averaged per "token" (paper) or per "example"; "example-both" (the paper's code):
    the retain loss too."""
    include_tail: bool = setting(False, compared=False)
    """Whether the end-of-turn tokens are unlearned too; for comparison only."""
    learning_rate: float = setting(PAPER_RATE, positive=True, short="--lr")
    """Learning rate of AdamW, above 0."""
    schedule: str = setting("constant", "constant", "linear")
    """"constant", or "linear": one epoch of warm-up, then down to 0."""
    epochs: int = setting(5, positive=True)
    """Passes over the forget set, above 0."""
    batch: int = setting(32, positive=True, public=64, shared=True)
    """Forget rows in an optimiser step, at most; as many retain rows are drawn with replacement."""
    last_step: str = setting("even", "even", "short", "rolled", compared=False)
    """If an epoch's rows do not fill its last batch: "even" spreads them over all steps, "short"
    leaves few for the last one, "rolled" keeps them for the next epoch (the paper's code, by HF's
    Trainer). See `training.steps`."""
    tier_pure: bool = setting(False)
    """Whether a step has facts of a single tier, while that tier fills a batch; the steps of the
    tiers take turns."""
    micro_batch: int = setting(0, compared=False)
    """Rows in a forward pass, 0 for as many as memory takes; the gradient does not depend on it."""
    weight_decay: float = 0.0
    """Weight decay of AdamW, on the adapter's weights; at least 0."""
    clip: float = setting(1.0, positive=True)
    """Largest norm of a step's gradient, above 0."""
    lora_rank: int = setting(
        32, positive=True, short="--rank", most=MOST_RANK, public=128, shared=True
    )
    """Rank of the adapter."""
    lora_alpha: int = setting(64, positive=True, shared=True)
    """The adapter's update is scaled by lora_alpha / lora_rank."""
    lora_targets: tuple[str, ...] = setting(
        ("q_proj", "k_proj", "v_proj", "o_proj"), short="--targets", every=ALL_LINEAR, shared=True
    )
    """Names of the linear layers with an adapter, or ("all-linear",): all but the output head."""
    lora_layers: tuple[int, ...] | None = setting(None, short="--layers", every="none", shared=True)
    """Blocks with an adapter, counted from 0, as text "0,1,2" or "0-2"; None for all."""
    seed: int = setting(0, compared=False)
    """Seed of adapter, order and pairing; at least 0 and below 2^63."""
    precision: str = setting("auto", "auto", "bfloat16", "float32")
    """Precision of the frozen weights: "bfloat16" or "float32"; "auto" is bfloat16 (paper) on a
    GPU, on a CPU the faster of the two in a short trial; the run records which. Losses are float32
    always."""
    device: str = setting("auto", compared=False)
    """Where the model is put: "auto" (the shipped ones on the CPU, others on a GPU if there is
    one), "cpu", "cuda", or "cuda:1" for the second GPU. Free to change before a run is resumed."""
    four_bit: bool = False
    """Whether the frozen weights are kept in NF4 (needs bitsandbytes)."""
    system: str | None = setting(None, compared=False)
    """System prompt; None for the benchmark's, see `facts.benchmarks.system_prompt`."""
    asking: str = setting("chat", "auto", "chat", "chat-examples", "text-examples", shared=True)
    """How the model is asked: in "chat", in chat after three examples ("chat-examples"), as text
    after three examples ("text-examples"), or "auto": the way in which it answers the most facts
    right away."""
    answers: str = setting("as-given", "auto", "as-given", "own-words", shared=True)
    """Which words are scored: the answers "as-given", right after the question; the model's
    "own-words", where they stand in its own reply; or "auto": own words if it talks before it
    answers."""
    unknown: str = setting("keep", "auto", "keep", "drop", shared=True)
    """Facts to forget that the model does not answer: "keep" or "drop" them, or "auto": drop,
    except for a benchmark."""
    start: str = setting("as-given", "as-given", "sft", shared=True, compared=False)
    """The original model: the one "as-given", or "sft": an adapter is first taught the questions to
    forget and to retain, in all wordings (a benchmark's only as it asks them), and merged into the
    model."""
    start_epochs: int = setting(5, positive=True, compared=False)
    """Start "sft": passes over those questions, above 0."""
    start_rate: float = setting(PAPER_RATE, positive=True, compared=False)
    """Start "sft": learning rate of AdamW, above 0."""
    max_new_tokens: int = setting(64, positive=True)
    """Longest generated answer, in tokens; less where a model's own are shorter; an included model
    always gets enough for the longest answer of the facts."""
    frames: int = setting(1, compared=False)
    """How often in an epoch each fact's probability is recorded; 0 for never. Changes no
    other number."""
    measure: str = setting("every-epoch", "every-epoch", "end", "off", shared=True, compared=False)
    """When the model's answers are measured: "every-epoch" (the facts to forget after each epoch,
    the full tables at the end), "end" (those tables alone), or "off" (not before the run is
    probed). Has no effect on training."""
    measure_per_tier: int | None = setting(0, shared=True, compared=False)
    """At most this many facts of each group and tier are asked, spread evenly over their scores;
    retained and held-out facts in one rewording each. 0: all. none: all on a GPU, 24 on a CPU (72
    if no fact to forget has a score)."""
    keep: str = setting("last", "last", "best", shared=True)
    """The epoch that is the run's result: the "last", or the "best": of the epochs that keep 0.95
    of the original's recall of facts to retain, the one with the least recall of reworded facts to
    forget (if none does, the one that keeps most). The questions that choose it also count in the
    results."""
    patience: int = setting(0, shared=True, compared=False)
    """Keep "best": training ends after this many epochs without a better one; 0 for never."""
    cosine: bool = setting(False, compared=False)
    """Whether answers are also compared by MiniLM cosine (needs its weights)."""

    def __post_init__(self) -> None:
        for name in ("model", "unlearned", "oracle", "facts", "method", "preset"):
            check_type(name, getattr(self, name), str)
        if not isinstance(self.arguments, dict):
            raise ConfigError(f"arguments is {truncated(self.arguments)!r}.", "Give them by name.")
        if type(self.seed) is not int or not 0 <= self.seed < SEED_LIMIT:
            fix = "It must be a whole number of at least 0 and below 2^63."
            raise ConfigError(f"seed is {truncated(repr(self.seed))}.", fix)
        for name, about in SETTINGS.items():
            value = getattr(self, name)
            if about.choices:
                check_choice(name, value, about.choices)
            elif about.number and name != "seed" and not (about.optional and value is None):
                check_number(name, value, about)
            elif not about.number:
                check_type(name, value, _types()[name])
            if isinstance(value, tuple) and not value:
                raise ConfigError(f"{name} is empty.", "Name some, or leave it out.")
        if bool(self.unlearned) != (self.method == ADOPTED):
            message = "Only an adopted run can name an unlearned model."
            raise ConfigError(message, "Open it with `adopt`.")
        if self.keep == "best" and self.measure != "every-epoch":
            message = "The best epoch is only known if every epoch is measured."
            raise ConfigError(message, 'Set measure to "every-epoch".')
        if self.patience and self.keep != "best":
            message = "patience has no effect unless the best epoch is kept."
            raise ConfigError(message, 'Set keep to "best".')
        if not DEVICE.fullmatch(self.device):
            fix = "Use auto, cpu, cuda, or cuda:1 for the second GPU."
            raise ConfigError(f"device is {truncated(repr(self.device))}.", fix)
        if self.start == "sft" and self.four_bit:
            message = 'Start "sft" cannot be merged into 4-bit weights.'
            raise ConfigError(message, "Leave out four_bit.")
        for name, value in self.arguments.items():
            if isinstance(value, (int, float)) and not abs(value) <= MOST:
                message = f"The argument {name} is {truncated(repr(value))}."
                raise ConfigError(message, f"It may be {MOST:g} at most.")

    def to_json(self) -> str:
        """The configuration as JSON, the file beside every run."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, source: str = "") -> RunConfig:
        """The configuration of a run's JSON. source: its file, for messages. Raises ConfigError: a
        setting this version does not know, or that is of another type or out of its range."""
        try:
            content = parse_json(text)
            if lacking := EVERY_RUN - content.keys():
                raise ValueError(f"it has no {', '.join(sorted(lacking))}")
            check_known(content, "Remove them or update AdaPop.")
            return as_kind(content, cls)
        except (ValueError, AttributeError) as error:
            message, fix = f"This is not a run's configuration ({error}).", "Start the run again."
        except ConfigError as error:
            message, fix = error.message, error.fix
        raise ConfigError(f"{source}: {message}" if source else message, fix)


# pydantic then takes the texts above as descriptions
RunConfig.__pydantic_config__ = ConfigDict(use_attribute_docstrings=True)  # type: ignore[attr-defined]
SETTINGS = {
    item.name: replace(item.metadata.get("setting", Setting()), kind=item.type)
    for item in fields(RunConfig)
}


def check_known(names: Iterable[str], fix: str) -> None:
    """Raises ConfigError: a name is of no setting. fix: what to do about it."""
    if unknown := sorted({*names} - SETTINGS.keys()):
        message = f"Unknown settings: {', '.join(map(truncated, unknown))}."
        raise ConfigError(message, did_you_mean(unknown[0], SETTINGS) + fix)


@cache
def meanings() -> dict[str, str]:
    """Setting -> its meaning, from the text below its declaration."""
    properties = TypeAdapter(RunConfig).json_schema()["properties"]
    return {name: " ".join(properties[name]["description"].split()) for name in SETTINGS}


# Settings from text, by name.

SEPARATE = tuple(name for name, about in SETTINGS.items() if about.separate)
# in a run this setting is the curve, given by anchors; as text, beta is an argument of WGA and NPO
BETA = "beta"
MOST_SPAN = 10_000  # numbers
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_settings(pairs: list[str]) -> dict[str, Any]:
    """Name -> value, from texts like "lora_rank=8"; names that are no setting go under `arguments`.
    Raises ConfigError: no =, a setting with its own option, or a value of another type."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, given, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not (given and name):
            fix = "Write NAME=VALUE, for example lora_rank=8."
            raise ConfigError(f"{truncated(pair)!r} sets nothing.", fix)
        if name in SEPARATE and name != BETA:
            fix = "Use its own option or argument."
            raise ConfigError(f"{name} is not set here.", fix)
        if name in SETTINGS and name != BETA:
            settings[name] = value_of(name, text.strip())
        else:
            settings.setdefault("arguments", {})[name] = _plain(text.strip())
    return settings


def value_of(name: str, text: str) -> Any:
    """A setting's value from text: "none" for None where that is allowed, and commas between the
    items of a list; of whole numbers, "0-14" means all from 0 to 14. Raises ConfigError: the text
    is of another type."""
    kind = SETTINGS[name].kind
    try:
        if SETTINGS[name].optional and text.lower() == "none":
            return None
        if kind.startswith("tuple"):
            parts = [part.strip() for part in text.split(",") if part.strip()]
            return (
                tuple(n for part in parts for n in _span(part)) if "int" in kind else tuple(parts)
            )
        if kind == "bool":
            return TRUTHS[text.lower()]
        return {"int": int, "float": float}.get(kind.partition(" ")[0], str)(text)
    except (ValueError, KeyError):
        message = f"{name} is {truncated(text)!r}, which is not of type {kind}."
        raise ConfigError(message, meanings()[name]) from None


def _span(text: str) -> range:
    """The whole numbers of "7", or of "0-14" with both ends. Raises ValueError: it is neither."""
    first, _, last = text.partition("-")
    span = range(int(first), int(last or first) + 1)
    if not span or len(span) > MOST_SPAN or text.endswith("-"):
        raise ValueError(text)
    return span


def _plain(text: str) -> Any:
    """The number, truth value or list in a text of JSON; any other text unchanged."""
    try:
        return parse_json(text)
    except ValueError:
        return text
