"""One prompt's outcome in words. The rules are few and printed; a low score shows that this prompt failed, no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

KNOWN_FROM = 0.5
SUPPRESSED_UP_TO = 3


def verdict(asked: Asked) -> tuple[str, str]:
    """(words, kind) for a prompt with a gold answer. kind: "neutral", "leak" or "gone".

    Rules, first match: the original did not say it -> never known; the unlearned one says it -> still known;
    its gold rank is at most 3 -> suppressed; else not recovered by this prompt.
    """
    if asked.original.recall < KNOWN_FROM:
        return "Never known: the original cannot answer this prompt either", "neutral"
    if asked.unlearned.recall >= KNOWN_FROM:
        return "Still known: the answer came back", "leak"
    if asked.unlearned.gold_rank <= SUPPRESSED_UP_TO:
        return f"Suppressed: not said, but still number {asked.unlearned.gold_rank} on the list", "leak"
    return "Not recovered by this prompt", "gone"
