"""RWKU's utility sets beyond factuality and its passages for membership attacks, scored as its own
code does (github.com/jinzhuoran/RWKU, LLaMA-Factory/src/llmtuner/eval).

Worked examples are the rows' own; TruthfulQA's six are left out, and the text around a question is
ours. `reason` compares whole answers; RWKU's code, given an answer as one text, compares its single
letters.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2
from typing import Any

import nltk
import torch

from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_answer
from adapop.model.tokens import Row
from adapop.probes.distance import MIA_NAMES
from adapop.probes.metrics import memorised, nlls

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
