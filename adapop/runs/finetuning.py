"""Fine-tuning before a run: an adapter learns the questions to forget and to retain, in all their
wordings, and is merged into the weights. The result is the run's original model.

The adapter is saved in the run's folder and, for other runs, in a cache, under a hash of weights,
settings and facts. A damaged adapter of the cache is trained again. The cache is safe to delete.
"""

import hashlib
import json
import logging
import math
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from adapop import sums
from adapop.assets import as_kind, parse_json
from adapop.errors import ConfigError, ModelError, RunError
from adapop.facts.fact import FACT_GROUPS, Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import merge_into_base
from adapop.online.cache import cache_root
from adapop.probes.judge import known_recall
from adapop.probes.matrix import MEASURABLE
from adapop.probes.measure import recall_by_fact
from adapop.probes.plan import evenly
from adapop.progress import Progress
from adapop.remark import Remark
from adapop.runs import files, measuring
from adapop.runs.amount import questions_taught
from adapop.runs.measuring import Heard, interruptible
from adapop.runs.result import ENOUGH, LOST
from adapop.runs.run import Run
from adapop.runs.weights import weights_of
from adapop.training.events import Teaching
from adapop.training.processes import Ranks
from adapop.training.steps import count

log = logging.getLogger(__name__)

FILE = "finetuned.safetensors"
FOLDER = "finetuned"  # in the cache folder
PIECE = 8  # rows in a forward pass
PER_TIER, ALL = 24, 72  # per group and tier asked before and after; of so few in a group, all are
LEARNED = 0.1  # nats per answer token: at 0.9 a token, short answers are said
RECENT = 4  # epochs whose losses are followed to estimate how many would do
SETTINGS = (
    "seed", "batch", "clip", "lora_rank", "lora_alpha", "lora_targets", "lora_layers", "precision",
    "system", "start_epochs", "start_rate", "max_new_tokens",
)  # fmt: skip


@dataclass(frozen=True)
class Finetuned:
    """The results and the cost of fine-tuning."""

    questions: int
    epochs: int
    rate: float
    steps: int
    seconds: float
    nll: float
    """Mean of the last epoch's losses, nats per answer token."""
    before: dict[str, float]
    """Group -> recall as trained, [0, 1], over all its facts, or `PER_TIER` a tier."""
    after: dict[str, float]
    """Group -> the same recall afterwards."""
    reused: bool = False
    """Whether the adapter came from the cache."""
    losses: tuple[float, ...] = ()
    """Mean loss of each epoch, nats per answer token; older versions saved none."""

    @property
    def enough(self) -> bool:
        """Whether so many facts to forget are answered that unlearning them will show."""
        return self.after["forget"] >= MEASURABLE

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was taught and learned, and what to change if that is too little, or if other facts
        were lost by it."""
        cost, held_out = (), (self.before.get("holdout", 0.0), self.after.get("holdout", 0.0))
        if held_out[0] >= ENOUGH and held_out[1] < LOST * held_out[0]:
            values = dict(zip(("before", "after"), held_out))
            cost = (Remark("taught_at_a_cost", values),)
        return self.remark, *self._too_little, *cost

    @property
    def _too_little(self) -> tuple[Remark, ...]:
        if self.enough:
            return ()
        values = {"before": self.before["forget"], "after": self.after["forget"]}
        if (epochs := enough_epochs(self.losses)) is None:
            return (Remark("taught_too_little", values | {"loss": self.nll}),)
        values |= {"now": self.epochs, "needed": epochs}
        return (Remark("taught_too_few_epochs", values),)

    @property
    def remark(self) -> Remark:
        recalls = (
            f"{name} {self.before[name]:.0%} → {self.after[name]:.0%}" for name in self.after
        )
        values = {name: getattr(self, name) for name in ("questions", "epochs", "rate", "steps")}
        values |= {"time": self.seconds, "recalls": ", ".join(recalls)}
        return Remark("fine_tuned_before" if self.reused else "fine_tuned", values)


def enough_epochs(losses: Sequence[float]) -> int | None:
    """An estimate of how many epochs bring the loss down to `LEARNED`. losses: the mean of each
    epoch so far. None if they do not tell: fewer than two, or the last is no lower than before.

    A loss falls in a straight line at first and exponentially in the end. Both lines through the
    last `RECENT` epochs are followed, and the geometric mean of the epochs that they need is
    taken."""
    recent = losses[-RECENT:]
    if len(recent) < 2 or not LEARNED < recent[-1] < recent[0]:
        return None
    first, last, gaps = recent[0], recent[-1], len(recent) - 1
    straight = gaps * (last - LEARNED) / (first - last)
    exponential = gaps * math.log(last / LEARNED) / math.log(first / last)
    return len(losses) + math.ceil(math.sqrt(straight * exponential))


def settle_start(run: Run, model: AdaptedModel, ranks: Ranks, heard: Heard) -> Finetuned | None:
    """Fine-tunes the model if the run's settings say so: trains the adapter or takes it from the
    cache, and saves it in the run's folder, once. Returns what it learned. heard: called with each
    `Teaching`. Raises ModelError: the model cannot be asked in chat. RunError: a gradient is not
    finite, or the disk is full. Stopped."""
    if run.config.start == "as-given":
        return None
    ranks.led(lambda: _keep(run, model, heard))
    return ranks.together(lambda: start_from(run, model))


def _keep(run: Run, model: AdaptedModel, heard: Heard) -> None:
    path = run.folder / FILE
    if path.exists():
        return
    file = _cached(run, model)
    known = _from_cache(file) if file else None
    state, about = known or _teach(run, model, heard)
    if file and not known:
        with suppress(OSError, RunError):  # the run goes on without a cached copy
            file.parent.mkdir(parents=True, exist_ok=True)
            files.keep(file, _packed(state, about))
    files.keep(path, _packed(state, replace(about, reused=bool(known))))


def _from_cache(file: Path) -> tuple[dict[str, Tensor], Finetuned] | None:
    """A cached adapter; None if there is none, or it is damaged, which the log then says."""
    if not file.exists():
        return None
    try:
        return _load(file)
    except RunError as error:
        log.warning("%s The adapter is trained again.", error.message)
        return None


def start_from(run: Run, model: AdaptedModel) -> Finetuned | None:
    """Merges the run's fine-tuned adapter, if any, into the base, and notes that. Raises
    RunError."""
    if run.config.start == "as-given":
        return None
    state, about = _load(run.folder / FILE)
    merge_into_base(model.network, state)
    model.notes = (*model.notes, *about.remarks)
    return about


def check_teachable(model: AdaptedModel) -> None:
    """Raises ModelError: the model cannot be asked in chat."""
    if not model.has_template:
        fix = "Leave out start."
        raise ModelError('Start "sft" teaches in chat, but this model has no chat template.', fix)


def count_asked(facts: FactSet) -> int:
    """How many questions are asked before teaching, and again after it."""
    return sum(map(len, _samples(facts).values()))


def _samples(facts: FactSet) -> dict[str, list[Fact]]:
    groups = {name: getattr(facts, name) for name in FACT_GROUPS}
    per_tier = {name: None if len(facts) <= ALL else PER_TIER for name, facts in groups.items()}
    return {name: evenly(facts, per_tier[name]) for name, facts in groups.items() if facts}


def taught_state(run: Run) -> dict[str, Tensor]:
    """The weights by name of the adapter that fine-tuning left in the run's folder. Raises
    RunError."""
    return _load(run.folder / FILE)[0]


def _teach(run: Run, model: AdaptedModel, heard: Heard) -> tuple[dict[str, Tensor], Finetuned]:
    config, facts, started = run.config, run.facts, time.monotonic()
    check_teachable(model)
    fresh = {name: value.clone() for name, value in model.adapter_state().items()}
    samples = _samples(facts)

    def recalls() -> dict[str, float]:
        measuring = run.reply_tokens, Progress(), known_recall
        values = {name: recall_by_fact(model, few, *measuring) for name, few in samples.items()}
        return {name: fmean(value.values()) for name, value in values.items()}

    try:
        with interruptible(run, model):
            before = recalls()
            questions = questions_taught(facts)
            steps, losses = _train(run, model, model.rows(questions, include_tail=True), heard)
            after = recalls()
        trained = model.adapter_state().items()
        state = {name: value.detach().cpu().clone() for name, value in trained}
    finally:
        model.set_adapter_state(fresh)
    taught = len(questions), config.start_epochs, config.start_rate, steps
    seconds, nll = round(time.monotonic() - started, 1), losses[-1]
    return state, Finetuned(*taught, seconds, nll, before, after, losses=tuple(losses))


def _train(run: Run, model: AdaptedModel, rows: list, heard: Heard) -> tuple[int, list[float]]:
    """Trains the adapter with AdamW. Returns the number of steps and each epoch's mean loss, nats
    per token. Raises RunError: a gradient is not finite."""
    config, steps, means, last_event = run.config, 0, [], 0.0
    rng, of = random.Random(config.seed), count(len(rows), config.batch, "short")
    optimizer = torch.optim.AdamW(model.parameters, lr=config.start_rate, weight_decay=0.0)
    model.network.train()
    for epoch in range(config.start_epochs):
        order, losses = rng.sample(rows, len(rows)), []
        for start in range(0, len(order), config.batch):
            if start == 0 or time.monotonic() - last_event >= measuring.LOG_EVERY:
                last_event = time.monotonic()
                place = {"epoch": epoch + 1, "epochs": config.start_epochs, "step": len(losses)}
                heard(run.append(Teaching(run=run.id, steps=of, **place)))
            step = order[start : start + config.batch]
            tokens = sum(len(row.answer) for row in step)
            optimizer.zero_grad(set_to_none=True)
            loss = 0.0
            for place in range(0, len(step), PIECE):
                part = model.score(model.batch(step[place : place + PIECE])).nll.sum() / tokens
                part.backward()
                loss += part.item()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters, config.clip)
            if not torch.isfinite(norm):
                fix = "Lower start_rate."
                raise RunError("Fine-tuning first: the gradient is not finite.", fix)
            optimizer.step()
            losses.append(loss)
            steps += 1
        means.append(fmean(losses))
    model.network.eval()
    for parameter in model.parameters:
        parameter.grad = None
    return steps, means


def _cached(run: Run, model: AdaptedModel) -> Path | None:
    """The cache's path of this adapter; None if its weights have no known files, or no cache."""
    weights = weights_of(run)
    if weights is None:
        return None
    groups = run.facts.forget, run.facts.retain
    facts = [[[fact.question, fact.answer] for fact in group] for group in groups]
    questions = [[fact.question, fact.answers] for fact in run.facts.holdout]
    settings = [getattr(run.config, name) for name in SETTINGS]
    rows = model.rows(questions_taught(run.facts)) if model.has_template else []
    ids = [(row.prompt, row.answer) for row in rows]  # tokenizer and chat template may change
    content = json.dumps([torch.__version__, weights.sha256, settings, facts, questions, ids])
    try:
        return cache_root() / FOLDER / f"{hashlib.sha256(content.encode()).hexdigest()}.safetensors"
    except ConfigError:
        return None


def _packed(state: dict[str, Tensor], about: Finetuned) -> bytes:
    return save(state, {"about": json.dumps(asdict(about))})


def _load(path: Path) -> tuple[dict[str, Tensor], Finetuned]:
    """The adapter and how it was made. Raises RunError: the file is missing or damaged."""
    with files.reading(path, "Put the file back, or start a new run."):
        sums.check(path)
        try:
            with safe_open(path, "pt") as file:
                about = as_kind(parse_json(file.metadata()["about"]), Finetuned)
                return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"it is not a file of tensors: {error}") from None
