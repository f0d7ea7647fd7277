"""Chooses each method's learning rate on the sandbox by the rule stated in `config.RATES`, and prints every number.

The rule sees the forget facts' trained questions and the trained retain facts. Holdout, rewordings and probes are
printed by `run`, never used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from adapop.config import METHODS, RATES, RETAIN_KEPT, make_config
from adapop.metrics import rouge_l_recall
from adapop.model import AdaptedModel
from adapop.objectives import make_objective
from adapop.sandbox import sandbox_facts
from adapop.tokens import collate, encode_facts
from adapop.trainer import Trainer


@dataclass(frozen=True)
class Trial:
    """A method at one rate after 5 epochs, seed 0. forget_nll in nats per answer token; retain_recall in [0, 1]."""

    method: str
    rate: float
    forget_nll: float
    retain_recall: float


def trials() -> Iterator[Trial]:
    """Every method at every rate of the grid."""
    facts = sandbox_facts()
    for method in METHODS:
        for rate in RATES:
            config = make_config(method, learning_rate=rate)
            model = AdaptedModel.load(config)
            betas = None
            if "beta" in make_objective(method).uses:
                betas = [config.beta(fact.score) for fact in facts.forget]
            for _ in Trainer("rates", config, model, facts.forget, facts.retain, betas).train():
                pass
            answers = model.generate([fact.question for fact in facts.retain], config.max_new_tokens)
            recall = [rouge_l_recall(fact.answer, answer) for fact, answer in zip(facts.retain, answers)]
            with torch.no_grad():
                rows = encode_facts(model.tokenizer, facts.forget)
                nll = model.score(collate(rows, model.tokenizer.pad_token_id)).nll.mean().item()
            yield Trial(method, rate, nll, sum(recall) / len(recall))


def chosen(rows: list[Trial]) -> Trial:
    """The rule: most forget NLL among those that keep the retain facts; if none does, the most retain recall."""
    keeping = [row for row in rows if row.retain_recall >= RETAIN_KEPT]
    return max(keeping, key=lambda row: row.forget_nll) if keeping else max(rows, key=lambda row: row.retain_recall)


def main() -> None:
    """Prints the trials as they come, then the chosen rates."""
    print(f"{'method':<8}{'rate':>10}{'forget nll':>12}{'retain recall':>15}")
    found: dict[str, list[Trial]] = {}
    for trial in trials():
        found.setdefault(trial.method, []).append(trial)
        print(f"{trial.method:<8}{trial.rate:>10g}{trial.forget_nll:>12.3f}{trial.retain_recall:>15.3f}", flush=True)
    print("chosen: " + ", ".join(f"{method} {chosen(rows).rate:g}" for method, rows in found.items()))
