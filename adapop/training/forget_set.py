"""The forget set for a method: encoded once, with the method's data, and split into batches.

Everything that depends on the original model (nll, logits, norm of its states) is computed here,
before training. The base never changes, so a resumed run computes the same numbers.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

import torch
from torch import Tensor

from adapop.config.run import RunConfig
from adapop.facts.fact import Fact
from adapop.model.adapted import MOST_ROWS, AdaptedModel
from adapop.model.tokens import Row, collate, encode_facts, on_device
from adapop.objectives import ForgetBatch, Objective
from adapop.objectives.alternates import check_alternates
from adapop.objectives.tpo import unwanted

FORWARD = 16  # times as many rows: without gradients they take about the same memory
FIRST_ROWS = 64  # rows that a method gets in `begin`


class ForgetSet:
    """Forget rows, one per fact in order. notes: from `begin`. forward_rows: rows in a pass without
    gradient."""

    def __init__(
        self,
        config: RunConfig,
        objective: Objective,
        model: AdaptedModel,
        facts: Sequence[Fact],
        betas: Sequence[float] | None,
    ) -> None:
        """betas: exponent of each fact, None for methods that use none. Raises DataError: a fact
        lacks what the method needs."""
        self.model = model
        self.rows = model.rows(facts, include_tail=config.include_tail)
        few = FORWARD * config.micro_batch
        self.forward_rows = min(MOST_ROWS, few) if few else model.at_once(self.rows)
        self._betas: Tensor | None = None
        if betas is not None:
            self._betas = torch.tensor(betas, dtype=torch.float32, device=model.device)
        self._others = _others(config, objective, model, facts)
        self._unwanted = _unwanted(self.rows) if "words" in objective.needs else None
        compares = "reference" in objective.needs
        self._reference = self._scored(self.rows) if compares else None
        self._other_references = [self._scored(turn) for turn in self._others if compares]
        tokens = collate(self.rows[:FIRST_ROWS], model.pad_id).to(model.device)
        model.network.eval()
        begun = objective.begin(model, tokens, config.seed)
        self._target, self.notes = begun.target, begun.notes

    def batch(self, rows: Sequence[Row], epoch: int) -> ForgetBatch:
        """The rows as a batch. If several texts replace an answer, each epoch (from 1) takes the
        next one."""
        tokens = self.model.batch(rows)
        device = tokens.ids.device
        inputs: dict = {"tokens": tokens, "target": self._target}
        if self._betas is not None:
            inputs["beta"] = self._betas[tokens.fact[tokens.row]]
        if self._unwanted is not None:
            unwanted = torch.cat([self._unwanted[row.fact] for row in rows])
            inputs["unwanted"] = on_device(unwanted, device)
        if self._reference is not None:
            reference = _joined(self._reference, rows, device)
            inputs["reference_nll"], inputs["reference_gold"] = reference
        if self._others:
            turn = (epoch - 1) % len(self._others)
            inputs["other"] = self.model.batch([self._others[turn][row.fact] for row in rows])
            if self._other_references:
                reference = _joined(self._other_references[turn], rows, device)
                inputs["other_reference_nll"], _ = reference
        return ForgetBatch(**inputs)

    @torch.no_grad()
    def _scored(self, rows: Sequence[Row]) -> list[Tensor]:
        """For each row [2, n]: nll and raw gold logit of its n answer tokens under the original."""
        self.model.network.eval()
        pairs: list[Tensor] = []
        with self.model.original():
            for both in self.model.in_pieces(rows, self.forward_rows, self._nll_and_gold):
                pairs += both
        return pairs

    def _nll_and_gold(self, rows: Sequence[Row]) -> tuple[Tensor, ...]:
        scored = self.model.score(self.model.batch(rows))
        lengths = [len(row.answer) for row in rows]
        return torch.stack([scored.nll, scored.gold]).cpu().split(lengths, dim=1)


def _joined(reference: Sequence[Tensor], rows: Sequence[Row], device: torch.device) -> Tensor:
    return on_device(torch.cat([reference[row.fact] for row in rows], dim=1), device)


def _others(
    config: RunConfig, objective: Objective, model: AdaptedModel, facts: Sequence[Fact]
) -> list[list[Row]]:
    """Lists of rows that replace the answers; the epochs take turns through them.

    A refusal ends as the chat template ends a turn, because the model must learn to stop there.
    """
    if "refusal" in objective.needs:
        texts = getattr(objective, "refusals", None) or (objective.refusal,)  # type: ignore[attr-defined]
        turns: list[list[Row]] = []
        for turn in range(min(len(texts), config.epochs)):
            answers = cycle(texts[turn:] + texts[:turn])
            refusing = [replace(fact, answer=text) for fact, text in zip(facts, answers)]
            # it replaces the whole reply, not only the answer in it
            turns += [encode_facts(model.tokenizer, refusing, model.system, include_tail=True)]
        return turns
    if "alternates" not in objective.needs:
        return []
    check_alternates(facts)
    count = max(len(fact.alternates) for fact in facts)
    return [
        model.rows(
            [replace(fact, answer=fact.alternates[turn % len(fact.alternates)]) for fact in facts],
            include_tail=config.include_tail,
        )
        for turn in range(count)
    ]


def _unwanted(rows: Sequence[Row]) -> list[Tensor]:
    """For each row, [n]: which answer tokens carry the fact; the end of the turn does not."""
    return [torch.tensor(unwanted(row.text, row.spans) + (False,) * row.tail) for row in rows]
