"""What came of one prompt: a row of every probe table, the same in memory, on disk and in a report. No torch.

Each value is there for the original and for the unlearned model, on the same prompt with the same budget.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """One model's answer to one prompt.

    text: the greedy answer. recall: best ROUGE-L recall over the answers that count, accents folded, [0, 1]; strict:
    the same as `rouge_score` computes it. gold_rank: of the first gold token, 1 is best. gold_logprob: of the whole
    gold answer, nats. words: length of the answer. repetition: share of its word pairs that came before, [0, 1].
    cosine: MiniLM cosine with the gold answer, None where it was not measured.
    """

    text: str
    recall: float
    strict: float
    gold_rank: int
    gold_logprob: float
    words: int
    repetition: float
    cosine: float | None = None


@dataclass(frozen=True)
class ProbeRow:
    """One prompt to both models.

    group: forget, retain, holdout or utility. tier: of the fact's score. kind: one of `prompts.KINDS`. score: of the
    fact, None if unknown. chance: recall of a blind guess. delta_rank, hidden_cosine, kl: teacher-forced on the gold
    answer's content tokens, unlearned against original (METHODS 3.3).
    """

    fact_id: str
    group: str
    tier: str
    kind: str
    prompt: str
    gold: str
    original: Reply
    unlearned: Reply
    score: float | None = None
    chance: float = 0.0
    delta_rank: float = 0.0
    hidden_cosine: float = 1.0
    kl: float = 0.0
