"""General capability before and after unlearning: MMLU and HellaSwag as measured by `lm-eval`, and
RWKU's utility sets beyond factuality, with its passages for membership attacks.

lm-eval is given the loaded network. Given a name and `peft=` instead, it would cut the embeddings
of the unlearned model alone to the tokenizer's size, and could not read a base in 4 bits.

RWKU's sets are scored as its own code does (github.com/jinzhuoran/RWKU,
LLaMA-Factory/src/llmtuner/eval). Worked examples are the rows' own; TruthfulQA's six are left out,
and the text around a question is ours. `reason` compares whole answers; RWKU's code, given an
answer as one text, compares its single letters.
"""

import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from math import log2, sqrt
from statistics import fmean, stdev
from typing import Any

import nltk
import torch

from adapop.errors import ConfigError, ModelError
from adapop.facts.benchmarks import RWKU, checked_rows
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_answer
from adapop.model.tokens import Row
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.probes.distance import MIA_NAMES
from adapop.probes.metrics import memorised, nlls
from adapop.progress import Progress

LONG = 256  # tokens of a reply
LEAST = 0.2  # share of a passage's tokens that min-k looks at
NGRAMS = {2: 2 / 3, 3: 4 / 3}  # length -> weight of the entropy of such n-grams
Rows = Sequence[Mapping[str, Any]]
Values = dict[str, list[float]]  # metric -> a value per row


def general(model: AdaptedModel, rows: Rows) -> Values:
    """MMLU accuracy: whether the right choice's letter is the likeliest of the letters."""
    questions = []
    for row in rows:
        examples = ((_lettered(one), "ABCD"[one["answer"]]) for one in row["examples"])
        examples_text = "".join(f"{example}\nAnswer: {letter}\n\n" for example, letter in examples)
        letters = "ABCD"[: len(row["choices"])]
        questions += [(examples_text + _lettered(row), letters, row["answer"])]
    return {"accuracy": likeliest(model, questions, "Answer: ")}


def truthfulness(model: AdaptedModel, rows: Rows) -> Values:
    """TruthfulQA mc1: whether the true answer is likelier as a whole than each false one."""
    pairs = ((f"Q: {row['question']}", row["mc1_targets"]) for row in rows)
    questions = ((text, of["choices"], of["labels"].index(1)) for text, of in pairs)
    return {"mc1": likeliest(model, questions, "A: ")}


def reason(model: AdaptedModel, rows: Rows) -> Values:
    """BBH exact match: of the text behind "the answer is" in a reply, or of the whole reply."""
    prompts = []
    for place, row in enumerate(rows):
        text = f'{row["cot"].strip()}\n\nEnd with "the answer is" and the answer.'
        prompt = f"{text}\nQ: {row['question']}", "?", model.system, "A: "
        prompts += [Row(encode_answer(model.tokenizer, *prompt).prompt, (), place)]
    matches = []
    for row, (text, *_) in zip(rows, model.replies(prompts, LONG)):
        match = re.search(r"[tT]he answer is (.*?)\.", text)
        matches += [float(words(match[1] if match else text) == words(row["answer"]))]
    return {"exact match": matches}


def fluency(model: AdaptedModel, rows: Rows) -> Values:
    """Entropy (see `entropy`) of the text generated for an instruction."""
    texts = model.generate([f"Instruction: {row['instruction']}" for row in rows], LONG)
    return {"entropy": list(map(entropy, texts))}


@torch.no_grad()
def membership(model: AdaptedModel, rows: Rows) -> Values:
    """The mia scores of `memorised`: a higher one means that a passage looks less trained on.
    Passages are read without a chat template, as far as the model's context reaches."""
    values: Values = {name: [] for name in MIA_NAMES}
    model.network.eval()
    for place, row in enumerate(rows):
        ids = tuple(model.tokenizer(row["text"])["input_ids"][: model.context])
        batch = model.batch([Row(ids[:1], ids[1:], place)])
        scores = memorised(model.score(batch, logits=True), batch, [row["text"]], LEAST)
        values = {name: [*values[name], *scores[name]] for name in MIA_NAMES}
    return values


# Task -> its function, RWKU's set, and the columns that it reads.
SETS: dict[str, tuple[Callable[[AdaptedModel, Rows], Values], str, tuple[str, ...]]] = {
    "rwku-general": (general, "utility_general", ("question", "choices", "answer", "examples")),
    "rwku-reason": (reason, "utility_reason", ("question", "answer", "cot")),
    "rwku-truthfulness": (truthfulness, "utility_truthfulness", ("question", "mc1_targets")),
    "rwku-fluency": (fluency, "utility_fluency", ("instruction",)),
    "rwku-forget-passages": (membership, "mia_forget", ("text",)),
    "rwku-retain-passages": (membership, "mia_retain", ("text",)),
}


def likeliest(
    model: AdaptedModel, questions: Iterable[tuple[str, Sequence[str], int]], lead: str
) -> list[float]:
    """For each question 1 if its right choice is likelier as a whole than every other choice, else
    0. questions: (question, choices, index of the right one). lead: text before each choice."""
    best = []
    for question, choices, right in questions:
        about = model.system, lead
        encoded = (encode_answer(model.tokenizer, question, one, *about) for one in choices)
        rows = [Row(one.prompt, one.answer, place) for place, one in enumerate(encoded)]
        nll = [mean * len(row.answer) for mean, row in zip(nlls(model, rows), rows)]
        best.append(float(nll.pop(right) < min(nll)))
    return best


def words(text: str) -> list[str]:
    """The text's words in lower case, without punctuation and articles."""
    bare = "".join(sign for sign in text.lower() if sign not in string.punctuation)
    return [word for word in bare.split() if word not in ("a", "an", "the")]


def entropy(text: str) -> float:
    """Weighted mean entropy of a text's pairs and triples of words, in bits: low where it repeats
    itself. The text counts as one sentence: splitting it would need a download."""
    tokens, total = nltk.word_tokenize(text, preserve_line=True), 0.0
    for length, weight in NGRAMS.items():
        counts = Counter(nltk.ngrams(tokens, length))
        shares = [n / counts.total() for n in counts.values()]
        total -= weight * sum(share * log2(share) for share in shares)
    return total / len(NGRAMS)


def _lettered(row: Mapping[str, Any]) -> str:
    choices = (f"\n{name}. {text}" for name, text in zip("ABCD", row["choices"]))
    return f"Question: {row['question']}{''.join(choices)}"


# The paper's tasks and their metrics. Other tasks are not offered: some run downloaded code.
METRICS = {"mmlu": "acc", "hellaswag": "acc_norm"}
CPU_BATCH = 8
INSTALL = "pip install -U 'lm-eval>=0.4.13'"


@dataclass(frozen=True)
class Capability:
    """Both models' results on one task.

    task: lm-eval's name of it, or one of `rwku.SETS`. metric: "acc", or "acc_norm", where each
    option's log-probability is divided by its length in bytes; or a metric of `rwku`. original,
    unlearned: shares of right answers, [0, 1]; RWKU's entropy is in bits, its mia scores are those
    of `memorised`. *_stderr: standard errors; None for a single question."""

    task: str
    metric: str
    questions: int
    original: float
    unlearned: float
    original_stderr: float | None
    unlearned_stderr: float | None

    @property
    def difference(self) -> float:
        """unlearned - original, in the metric's unit; negative if capability was lost."""
        return self.unlearned - self.original


def capability(
    model: AdaptedModel,
    tasks: Sequence[str] = tuple(METRICS),
    limit: int | None = None,
    hub: Hub | None = None,
) -> tuple[Capability, ...]:
    """Results of both models, asked as the run asks (its chat template, with its examples if any),
    plus the task's own shots. lm-eval sets torch's seed. RWKU's sets come last. hub: where their
    rows are loaded from.

    limit: the most questions of a task, or of each of MMLU's 57 subjects. The data come from the
    Hub or its cache. Raises ConfigError: limit is below 1, or a task is unknown. ModelError,
    NetworkError: lm-eval is missing, or the data cannot be loaded."""
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}.", "It must be at least 1.")
    if unknown := [task for task in tasks if task not in (*METRICS, *SETS)]:
        fix = f"Choose {', '.join((*METRICS, *SETS))}."
        raise ConfigError(f"There is no capability task {unknown[0]!r}.", fix)
    standard = [task for task in tasks if task in METRICS]
    own = (row for task in tasks if task in SETS for row in _of_rwku(model, hub, task, limit))
    return (*(_standard(model, standard, limit) if standard else ()), *own)


def _of_rwku(
    model: AdaptedModel, hub: Hub | None, task: str, limit: int | None
) -> Iterator[Capability]:
    measure, config, columns = SETS[task]
    rows = checked_rows(hub or Hub(Progress(), Cache()), RWKU, config, "test", columns)[:limit]
    unlearned = measure(model, rows)
    with model.original():
        original = measure(model, rows)
    pairs = {metric: (values, unlearned[metric]) for metric, values in original.items()}
    for metric, both in pairs.items():
        errors = (stdev(values) / sqrt(len(rows)) if len(rows) > 1 else None for values in both)
        yield Capability(task, metric, len(rows), *map(fmean, both), *errors)


def _standard(
    model: AdaptedModel, tasks: Sequence[str], limit: int | None
) -> tuple[Capability, ...]:
    try:
        from lm_eval import simple_evaluate
        from lm_eval.models.huggingface import HFLM
    except ImportError as error:
        reason = f"Measuring general capability needs lm-eval ({error})."
        raise ModelError(reason, INSTALL) from error

    def shares() -> dict[str, dict]:
        batch = "auto" if model.device.type == "cuda" else CPU_BATCH
        lm = HFLM(pretrained=model.network, tokenizer=model.tokenizer, batch_size=batch)
        how = {"limit": limit, "apply_chat_template": True, "log_samples": False}
        return simple_evaluate(lm, tasks=list(tasks), **how)["results"]

    try:
        with redirect_stdout(sys.stderr):  # keeps lm-eval's prints out of our rows
            unlearned = shares()
            with model.original():
                original = shares()
    except (OSError, ImportError, KeyError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        fix = "Their data are downloaded once from the Hugging Face Hub: check the connection."
        raise ModelError(f"{', '.join(tasks)} cannot be measured: {reason}.", fix) from error
    if any("sample_len" not in original[task] for task in tasks):
        raise ModelError(
            "This version of lm-eval does not say how many questions it asked.", INSTALL
        )
    return tuple(_compared(task, METRICS[task], original[task], unlearned[task]) for task in tasks)


def _compared(task: str, metric: str, *both: dict) -> Capability:
    errors = (side[f"{metric}_stderr,none"] for side in both)  # "N/A" where there is none
    known = (error if isinstance(error, float) else None for error in errors)
    shares = (side[f"{metric},none"] for side in both)
    return Capability(task, metric, both[0]["sample_len"], *shares, *known)
