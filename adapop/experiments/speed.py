"""`bench speed`: training beside the loops of other trainers; scoring, generation and a whole run.

The baselines are 1 x 32 (one row a pass, 32 passes a step, as the paper's authors train) and 8 x 4
(eight rows padded on the right, 4 passes, open-unlearning's default): logits at every position, and
a deep copy as NPO's reference. Nothing else slows them down. Each case has a process of its own, to
measure its own peak of memory. The sandbox asks its own facts, SmolLM2 those of `cities`; the 8B
shape has random weights and random facts as long as DUET's, because speed does not depend on the
values.
"""

import copy
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForCausalLM

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.catalogue import MODELS, footprint
from adapop.model.chat import encode_prompt
from adapop.model.generation import replies
from adapop.model.loading import adapted_model, load_tokenizer, steady_attention
from adapop.model.precision import set_products
from adapop.model.tokens import Row, encode_facts
from adapop.probes import measure
from adapop.probes.inspection import Question
from adapop.probes.strength import at
from adapop.probes.tokenwise import Column, inspect
from adapop.training.events import EpochDone, StepDone
from adapop.training.trainer import Trainer

LARGE, REAL = "Llama-3.1-8B", "smollm2"
SHAPE: Mapping[str, Any] = MODELS["meta-llama/Llama-3.1-8B-Instruct"].shape
BASELINES = {"1 x 32": 1, "8 x 4": 8}  # rows a pass
# Our rows a pass: on the sandbox in about the memory of the first and of the second baseline.
OURS = {"ours": 16, "ours, 32 rows a pass": 32}
# Forget rows, retain rows and epochs of a whole run: of 8B, the paper's DUET cities.
RUNS = {SANDBOX: (256, 256, 5), REAL: (64, 64, 5), LARGE: (964, 500, 5)}
ANSWER = 16  # tokens of a reply
STRIP, SAMPLES = 30, 16  # tokens of a reply that is read token by token; samples at once
NUMBERS = {  # name -> what it is, a ratio unless it names a unit
    "train": "training, tokens/s",
    "peak": "peak memory, MB",
    "score": "scoring, tokens/s",
    "generate": "generation, tokens/s",
    "run": "a whole run, s",
    "strip": f"both replies token by token, {STRIP} tokens / generating",
    "samples": f"{SAMPLES} samples at once / one",
    "slider": "strength of the unlearning, s",
}
BETA = 0.5  # of NPO
HOLDS = 2.5  # times the weights: the baselines copy the model, and a pass needs room
ROUNDS = 3  # of the sandbox, made alternately, since a machine's load varies


@dataclass(frozen=True)
class Case:
    """shape: one of `RUNS`. side: one of `BASELINES` or `OURS`. batch: forget rows a step,
    with as many to retain. warm, steps: untimed, then timed ones. rows: how many are scored and
    asked. whole: also time a whole run with its measurements."""

    shape: str
    side: str
    batch: int = 32
    warm: int = 1
    steps: int = 4
    rows: int = 256
    whole: bool = False

    def facts(self, count: int, seed: int) -> list[Fact]:
        if self.shape == LARGE:
            return random_facts(count, seed)
        own = sandbox_facts() if self.shape == SANDBOX else load_facts("cities", REAL)
        return list((own.forget if seed % 2 else own.retain)[:count])

    @property
    def config(self) -> RunConfig:
        """NPO, because it is the method whose reference model a trainer may copy."""
        rows = min(self.batch, {**BASELINES, **OURS}[self.side])
        sizes = {"batch": self.batch, "micro_batch": rows, "epochs": 10_000}
        precision = {SANDBOX: "float32", REAL: "auto", LARGE: "bfloat16"}[self.shape]
        return make_config("npo", model=self.shape, precision=precision, **sizes)


def main(sandbox: bool = False, real: bool = False, quick: bool = False) -> None:
    """Prints the tables. sandbox, real: of the sandbox or of SmolLM2 alone. quick: a step of a few
    rows and no whole run."""
    sizes = {"batch": 8, "warm": 0, "steps": 1, "rows": 8} if quick else {}
    for shape in [SANDBOX] if sandbox else [REAL] if real else RUNS:
        if shape == LARGE and not _holds_large():
            print(f"{LARGE}: not measured, since it needs a GPU that holds the model twice.")
            continue
        of_shape = {"batch": 8, "steps": 2, "rows": 32, **sizes} if shape == REAL else sizes
        cases = [
            Case(shape, side, whole=side == "ours" and not quick, **of_shape)
            for side in (*BASELINES, *OURS)
        ]
        rounds = range(ROUNDS if shape == SANDBOX and not quick else 1)
        numbers = [measured(case) for _ in rounds for case in cases]
        print(f"{shape}\n{table(numbers).to_string(na_rep='', float_format='{:,.2f}'.format)}\n")


def _holds_large() -> bool:
    weights = footprint(SHAPE, make_config(model=LARGE), 1).weights
    cuda = torch.cuda.is_available()
    return cuda and torch.cuda.get_device_properties(0).total_memory >= HOLDS * weights


def measured(case: Case) -> dict[str, Any]:
    """The numbers of a case, those of `NUMBERS` that it has, and its side; from a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(measure_case, case).result()


def table(numbers: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row a measurement, a column a side, the median of its rounds; then ours divided by each
    baseline."""
    by_side = pd.DataFrame(numbers).groupby("side", sort=False).median(numeric_only=True)
    sides = by_side.reindex(columns=[name for name in NUMBERS if name in by_side]).T
    for base in BASELINES:
        sides[f"ours / {base}"] = sides["ours"] / sides[base]
    return sides.dropna(how="all").rename(index=NUMBERS)


def measure_case(case: Case) -> dict[str, Any]:
    """Measures in this process, see `measured`."""
    cuda = case.shape == LARGE
    model = random_model(SHAPE, case.config, "cuda") if cuda else adapted_model(case.config)
    forget, retain = case.facts(8 * case.batch, 1), case.facts(8 * case.batch, 2)
    rows = [encode_facts(model.tokenizer, facts) for facts in (forget, retain)]
    before = _memory(cuda, reset=True)
    if case.side in BASELINES:
        steps: Iterator = npo_steps(model, *rows, case.config)
    else:
        events = Trainer("bench", case.config, model, forget, retain, None).train()
        steps = (event for event in events if isinstance(event, StepDone))
    seconds = [_seconds(lambda: next(steps)) for _ in range(case.warm + case.steps)][case.warm :]
    lengths = [row.length for part in rows for row in part]
    tokens = 2 * case.batch * sum(lengths) / len(lengths)
    numbers = {"side": case.side, "step": median(seconds), "train": tokens / median(seconds)}
    numbers["peak"] = (_memory(cuda) - before) / 1e6
    if case.side == "ours":
        numbers |= _reading(case, model) | ({} if cuda else _inspecting(case, model))
    if case.whole:
        numbers["run"] = _run_seconds(case, model)
    return numbers


def _reading(case: Case, model: AdaptedModel) -> dict[str, float]:
    """Tokens a second: of facts scored without gradients, and of replies of exactly `ANSWER`."""
    facts = case.facts(case.rows, 3)
    tokens = sum(row.length for row in encode_facts(model.tokenizer, facts))
    score_time = _seconds(Trainer("bench", case.config, model, facts[:1], facts, None).retain_loss)
    questions = [fact.question for fact in case.facts(case.rows, 4)]
    exactly: dict[str, Any] = {"do_sample": False, "min_new_tokens": ANSWER}
    reply_time = _seconds(lambda: model.generate(questions, ANSWER, **exactly))
    return {"score": tokens / score_time, "generate": len(questions) * ANSWER / reply_time}


@torch.no_grad()
def _inspecting(case: Case, model: AdaptedModel) -> dict[str, float]:
    """What Probe does to one question, each the median of three. Every reply has its full length,
    as no token ends one."""
    facts = case.facts(max(case.rows, 8), 5)
    ids = encode_prompt(model.tokenizer, facts[0].question, model.system)
    question = Question(facts[0].question, facts[0].answer)
    strengths = {"original": 0.0, "unlearned": 1.0}
    columns = [Column(name, lambda: model, strength) for name, strength in strengths.items()]

    def written(count: int = 0) -> None:
        drawn = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "num_return_sequences": count}
        replies(model.network, [ids], STRIP, model.pad_id, **(drawn if count else {}))

    def both() -> None:
        for column in columns:
            with column.speaking():
                written()

    def timed(work: Callable[[], object]) -> float:
        return median(_seconds(work) for _ in range(3))

    settings = model.base.generation_config
    ends, settings.eos_token_id = settings.eos_token_id, None
    whole = FactSet("bench", tuple(facts), ())
    numbers = {
        "strip": timed(lambda: inspect(columns, question, STRIP)) / timed(both),
        "samples": timed(lambda: written(SAMPLES)) / timed(lambda: written(1)),
        "slider": timed(lambda: at(model, whole, (0.0, 0.5), facts[0].id)),
    }
    settings.eos_token_id = ends
    return numbers


def _run_seconds(case: Case, model: AdaptedModel) -> float:
    """Seconds of a run with all its measurements, but without loading and checkpoints."""
    forget, retain, epochs = RUNS[case.shape]
    usual = make_config(model=case.shape).micro_batch
    config = replace(case.config, epochs=epochs, micro_batch=min(case.batch, usual))
    reworded = [
        replace(fact, paraphrases=fact.paraphrases[:1] or (fact.question,))
        for fact in case.facts(forget, 5)
    ]
    facts = FactSet("bench", tuple(reworded), tuple(case.facts(retain, 6)))
    trainer = Trainer("bench", config, model, facts.forget, facts.retain, None)

    def run() -> None:
        for event in trainer.train():
            if isinstance(event, EpochDone):
                measure.quick(model, facts, ANSWER)
        with model.original():
            measure.full(model, facts, ANSWER)
        measure.full(model, facts, ANSWER)

    return _seconds(run)


def npo_steps(
    model: AdaptedModel, forget: Sequence[Row], retain: Sequence[Row], config: RunConfig
) -> Iterator[None]:
    """Endless steps of NPO with a retain term in a plain loop, `config.micro_batch` rows a pass."""
    network = model.network
    reference = copy.deepcopy(network).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters, lr=config.learning_rate)
    network.train()
    forgetting, retaining = cycle(forget), cycle(retain)
    while True:
        for _ in range(config.batch // config.micro_batch):
            rows = [next(forgetting) for _ in range(config.micro_batch)]
            beside = [next(retaining) for _ in rows]
            log_ratio = -token_nll(network, rows, model.device).sum(1)
            with torch.no_grad():
                log_ratio = log_ratio + token_nll(reference, rows, model.device).sum(1)
            lengths = torch.tensor([len(row.answer) for row in beside], device=model.device)
            retained = token_nll(network, beside, model.device).sum(1) / lengths
            loss = -2 / BETA * logsigmoid(-BETA * log_ratio) + config.alpha0 * retained
            (loss.sum() / config.batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters, config.clip)
        optimizer.step()
        optimizer.zero_grad()
        yield


def token_nll(network: torch.nn.Module, rows: Sequence[Row], device: torch.device) -> Tensor:
    """Negative log-likelihood per token, [B, T - 1], 0 where no answer token is predicted, from the
    logits of all positions."""
    padded = [torch.tensor([*row.prompt, *row.answer], device=device) for row in rows]
    ids = pad_sequence(padded, batch_first=True)
    mask = pad_sequence([torch.ones_like(row) for row in padded], batch_first=True)
    labels = ids.masked_fill(mask == 0, -100)
    for label, row in zip(labels, rows):
        label[: len(row.prompt)] = -100
    logits = network(input_ids=ids, attention_mask=mask, use_cache=False).logits.float()
    predicted, right = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return cross_entropy(predicted, right, ignore_index=-100, reduction="none").view(len(rows), -1)


def _seconds(work: Callable[[], object]) -> float:
    """Seconds of one call, until the device has finished."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def _memory(cuda: bool, reset: bool = False) -> int:
    """The highest number of bytes in use, by the GPU's tensors or by this process. reset: forget
    the peak, and return what is in use now."""
    if cuda:
        if reset:
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated()
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def random_model(shape: Mapping[str, Any], config: RunConfig, device: str) -> AdaptedModel:
    """A model of the shape with random weights, a fresh adapter and the sandbox's tokenizer."""
    torch.manual_seed(config.seed)
    with torch.device(device):
        settings = AutoConfig.for_model(**shape)
        base = AutoModelForCausalLM.from_config(settings, dtype=getattr(torch, config.precision))
    steady_attention(base)
    set_products(config, base.device)
    base.generation_config.eos_token_id = None  # a random model must not end a reply early
    return AdaptedModel(with_adapter(base, config), load_tokenizer(make_config(model=SANDBOX)))


def random_facts(count: int, seed: int) -> list[Fact]:
    """Random facts with rows as long as DUET's, of about 71 tokens in Llama 3.1's chat template;
    the first 55 or so, its system prompt, are alike in all rows, whatever the seed."""
    words = sorted({fact.answer for fact in sandbox_facts().forget})  # one token each
    head = random.Random(0).choices(words, k=55)
    rng, facts = random.Random(seed), []
    for i in range(count):
        question = [*head, *rng.choices(words, k=rng.randint(8, 16))]
        answer = rng.choices(words, k=rng.randint(1, 4))
        score = rng.lognormvariate(6, 1.5)
        facts.append(Fact(f"{seed}-{i}", " ".join(question), " ".join(answer), score=score))
    return facts
