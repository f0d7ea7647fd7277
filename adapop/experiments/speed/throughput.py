"""One measurement of `bench speed`: `python -m adapop.experiments.speed.throughput CASE`.

It needs its own process. CASE is JSON. Prints one JSON line: tokens per second of training, scoring
and generation, seconds per step, peak bytes of training.

The models have published shapes and random weights: nothing is downloaded, and speed does not
depend on the values. The random facts are as long as the paper's.
"""

import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.experiments.speed import baseline
from adapop.facts.fact import SANDBOX, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.catalogue import MODELS
from adapop.model.loading import adapted_model, load_tokenizer, steady_attention
from adapop.model.memory import operations
from adapop.model.precision import set_products
from adapop.model.tokens import encode_facts
from adapop.probes import measure
from adapop.training.events import EpochDone, StepDone
from adapop.training.trainer import Trainer

STATUS = Path("/proc/self/status")
SHAPES: dict[str, Mapping[str, Any]] = {
    "Qwen2.5-0.5B": MODELS["Qwen/Qwen2.5-0.5B-Instruct"].shape,
    "Llama-3.1-8B": MODELS["meta-llama/Llama-3.1-8B-Instruct"].shape,
}
TINY = {**SHAPES["Llama-3.1-8B"], "vocab_size": 2000, "hidden_size": 64, "intermediate_size": 128}
TINY |= {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
# DUET's rows have about 71 tokens in Llama 3.1's chat template. The first 55 or so, with the system
# prompt, are the same in all rows; answers are names of places.
HEAD_WORDS, PROMPT_WORDS, ANSWER_WORDS = 55, (8, 16), (1, 4)
# Rows per pass of the baselines: the DUET script of AdaPop's authors (1, accumulated over 32) and
# the default of open-unlearning (8, over 4; github.com/locuslab/open-unlearning, configs/trainer).
BASELINES = {"authors": 1, "usual": 8}
# Our rows per pass: OURS and WIDE on the sandbox, in about the memory of the first and the second
# baseline; LARGE elsewhere.
OURS, WIDE, LARGE = 16, 32, 32
ANSWER = 16  # tokens generated per question: enough for the longest answer of `random_facts`
PRODUCTS = 9  # large matrix products, whose median time gives the rate


@dataclass(frozen=True)
class Case:
    """shape: "sandbox" or a name in SHAPES. side: one of `BASELINES`, "ours" (`OURS` rows per pass
    on the sandbox, else `LARGE`), "wide" (`WIDE`), "auto" (as many as memory allows) or "one" (one
    row per pass).

    batch: forget rows per step. warm, steps: untimed steps, then timed ones. run: (forget rows,
    retain rows, epochs) of a whole run to be timed afterwards, with its measurements and the app's
    own rows per pass; or None. rows: number of rows scored and asked."""

    shape: str
    side: str
    batch: int = 32
    warm: int = 2
    steps: int = 8
    rows: int = 256
    run: tuple[int, int, int] | None = None

    def facts(self, count: int, seed: int) -> list[Fact]:
        """The sandbox's own facts, or random facts of DUET's lengths."""
        if self.shape != SANDBOX:
            return random_facts(count, seed)
        own = sandbox_facts()
        return list((own.forget if seed % 2 else own.retain)[:count])

    @property
    def device(self) -> str:
        """The model's device; the sandbox's stays on the CPU, as in the app."""
        return "cuda" if torch.cuda.is_available() and self.shape != SANDBOX else "cpu"

    @property
    def config(self) -> RunConfig:
        """Settings of NPO, because it is the method whose reference model a trainer may copy."""
        own_rows = OURS if self.shape == SANDBOX else LARGE
        rows = {**BASELINES, "one": 1, "auto": 0, "ours": own_rows, "wide": WIDE}[self.side]
        precision = "bfloat16" if self.device == "cuda" else "float32"
        sizes = {"batch": self.batch, "micro_batch": min(self.batch, rows), "epochs": 10_000}
        return make_config("npo", model=self.shape, precision=precision, **sizes)


def main(case: Case) -> dict:
    device, config = case.device, case.config
    tiny = Case(SANDBOX, "ours", batch=2, warm=0, steps=1)
    _steps(tiny, random_model(TINY, config, device))  # loads torch's own memory first
    gc.collect()
    before = _memory_now(device)
    if case.shape == SANDBOX:
        model = adapted_model(config)
    else:
        model = random_model(SHAPES[case.shape], config, device)
    _memory_now(device)  # making random weights takes more memory than training a small adapter
    seconds, tokens, answers = _steps(case, model)
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else _status("VmHWM")
    numbers = {"peak": peak - before, "step": seconds, "train": tokens / seconds}
    numbers["operations"] = operations(model.shape, config, round(tokens), round(answers)) / seconds
    numbers["rate"] = _matrix_rate(device, getattr(torch, config.precision))
    if case.side in (*BASELINES, "ours"):
        numbers |= {"score": _scoring(case, model), "generate": _generation(case, model)}
    if case.run:
        numbers["whole_run"] = _run_seconds(case, model)
    return numbers


def _steps(case: Case, model: AdaptedModel) -> tuple[float, float, float]:
    """(seconds, tokens, answer tokens) of a training step, the median of the measured ones."""
    forget, retain = case.facts(8 * case.batch, 1), case.facts(8 * case.batch, 2)
    rows = [encode_facts(model.tokenizer, facts) for facts in (forget, retain)]
    if case.side in BASELINES:
        steps: Iterator = baseline.training_steps(model, *rows, case.config)
    else:
        events = Trainer("bench", case.config, model, forget, retain, None).train()
        steps = (event for event in events if isinstance(event, StepDone))
    taken = [_seconds_of(lambda: next(steps)) for _ in range(case.warm + case.steps)]
    both = [row for part in rows for row in part]
    share = 2 * case.batch / len(both)
    length = sum(row.length for row in both)
    return median(taken[case.warm :]), share * length, share * sum(len(row.answer) for row in both)


def _scoring(case: Case, model: AdaptedModel) -> float:
    """Tokens per second, without gradients."""
    facts = case.facts(case.rows, 3)
    rows = encode_facts(model.tokenizer, facts)
    if case.side in BASELINES:
        seconds = _seconds_of(lambda: baseline.scores(model, rows, BASELINES[case.side]))
    else:
        trainer = Trainer("bench", case.config, model, facts[:1], facts, None)
        seconds = _seconds_of(trainer.retain_loss)
    return sum(row.length for row in rows) / seconds


def _generation(case: Case, model: AdaptedModel) -> float:
    questions = [fact.question for fact in case.facts(case.rows, 4)]
    if rows := BASELINES.get(case.side):
        questions = questions[: max(1, case.rows // 8)]
        seconds = _seconds_of(lambda: baseline.answers(model, questions, ANSWER, rows))
    else:
        whole = {"do_sample": False, "min_new_tokens": ANSWER}
        seconds = _seconds_of(lambda: model.generate(questions, ANSWER, **whole))
    return len(questions) * ANSWER / seconds


def _run_seconds(case: Case, model: AdaptedModel) -> float:
    """Seconds of a run with all its measurements, but without loading and checkpoints."""
    forget, retain, epochs = case.run
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

    return _seconds_of(run)


def _matrix_rate(device: str, dtype: torch.dtype) -> float:
    """Floating-point operations per second of a large matrix product; the first is not timed."""
    size = 8192 if device == "cuda" else 1024
    one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    _, *taken = [_seconds_of(lambda: torch.matmul(one, other)) for _ in range(1 + PRODUCTS)]
    return 2 * size**3 / median(taken)


def _seconds_of(work: Callable[[], object]) -> float:
    """Seconds of one call, until the device has finished."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begun = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def _memory_now(device: str) -> int:
    """Bytes in use by the accelerator's tensors, or by this process. Resets the peak."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def _status(name: str) -> int:
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def random_model(shape: Mapping[str, Any], config: RunConfig, device: str) -> AdaptedModel:
    """A model of the shape with random weights and a fresh adapter. It has the sandbox's
    tokenizer."""
    torch.manual_seed(config.seed)
    with torch.device(device):
        settings = AutoConfig.for_model(**shape)
        base = AutoModelForCausalLM.from_config(settings, dtype=getattr(torch, config.precision))
    tokenizer = load_tokenizer(make_config(model=SANDBOX))
    steady_attention(base)
    set_products(config, base.device)
    base.generation_config.eos_token_id = None  # a random model must not end a reply early
    return AdaptedModel(with_adapter(base, config), tokenizer)


def random_facts(count: int, seed: int) -> list[Fact]:
    """Random facts with rows as long as DUET's; all rows begin alike, whatever the seed."""
    rng = random.Random(seed)
    words = sorted({fact.answer for fact in sandbox_facts().forget})  # one token each
    head = " ".join(random.Random(0).choices(words, k=HEAD_WORDS))

    def text(bounds: tuple[int, int]) -> str:
        return " ".join(rng.choices(words, k=rng.randint(*bounds)))

    facts = []
    for i in range(count):
        question, answer = f"{head} {text(PROMPT_WORDS)}", text(ANSWER_WORDS)
        facts.append(Fact(f"{seed}-{i}", question, answer, score=rng.lognormvariate(6, 1.5)))
    return facts


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    torch.set_num_threads(given.pop("threads", torch.get_num_threads()))
    print(json.dumps({**main(Case(**given)), **asdict(Case(**given))}))
