"""Chooses each method's learning rate on the sandbox by the rule stated in `config.RATES`, and prints every number.

The rule sees the forget facts' trained questions and the trained retain facts. Holdout, rewordings and probes are
printed by `run`, never used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from adapop.config import FORGOTTEN, METHODS, RATES, RETAIN_KEPT, make_config
from adapop.facts import Fact
from adapop.metrics import rouge_l_recall
from adapop.model import AdaptedModel
from adapop.objectives import make_objective
from adapop.sandbox import sandbox_facts
from adapop.trainer import Trainer


@dataclass(frozen=True)
class Trial:
    """A method at one rate after 5 epochs, seed 0: recall of the trained questions, [0, 1]."""

    method: str
    rate: float
    forget_recall: float
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
            yield Trial(method, rate, _recall(model, facts.forget), _recall(model, facts.retain))


def chosen(rows: list[Trial]) -> Trial:
    """The rule of `config.RATES`, applied to one method's trials in order of rate."""
    keeping = [row for row in rows if row.retain_recall >= RETAIN_KEPT]
    if not keeping:
        return max(rows, key=lambda row: row.retain_recall)
    enough = [row for row in keeping if row.forget_recall <= FORGOTTEN]
    return enough[0] if enough else min(keeping, key=lambda row: row.forget_recall)


def _recall(model: AdaptedModel, facts: Sequence[Fact]) -> float:
    answers = model.generate([fact.question for fact in facts], max_new_tokens=3)
    return fmean(rouge_l_recall(fact.answer, answer) for fact, answer in zip(facts, answers))


def main() -> None:
    """Prints the trials as they come, then the chosen rates."""
    print(f"{'method':<8}{'rate':>10}{'forget recall':>15}{'retain recall':>15}")
    found: dict[str, list[Trial]] = {}
    for trial in trials():
        found.setdefault(trial.method, []).append(trial)
        print(f"{trial.method:<8}{trial.rate:>10g}{trial.forget_recall:>15.3f}{trial.retain_recall:>15.3f}", flush=True)
    print("chosen: " + ", ".join(f"{method} {chosen(rows).rate:g}" for method, rows in found.items()))
