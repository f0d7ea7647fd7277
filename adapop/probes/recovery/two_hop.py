"""Two-hop questions: can the model still use a forgotten answer to answer another question?

"In which country was the author of Hamlet born?" needs the author, and where he was born (Zhong et
al., EMNLP 2023, arXiv 2305.14795). The control is the second hop alone, which names the forgotten
answer: if that is not answered either, the chain tells nothing about the fact. Chains with a part
that the original does not know are counted and left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from adapop.errors import DataError
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.probes.judge import known_recall
from adapop.probes.measure import recall_by_fact
from adapop.probes.recall import KNOWN_FROM
from adapop.probes.recovery.base import came_back, check, each_model, in_tiers
from adapop.progress import Progress

FORM = "two hops"


@dataclass(frozen=True)
class TwoHopRow:
    """Shares, [0, 1], of chains that the unlearned model answers, among the chains that the
    original knows, for a tier or "all".

    direct: the facts themselves. unlearned: the two-hop questions. control: the second hops."""

    tier: str
    form: str
    facts: int
    direct: float
    unlearned: float
    control: float


@dataclass(frozen=True)
class TwoHop:
    """The result. returned: ids of facts that are not answered directly, but whose two-hop question
    is. left_out: chains of which the original does not answer every part."""

    rows: tuple[TwoHopRow, ...]
    returned: tuple[str, ...]
    left_out: int


def chained(facts: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.has_chain]


def two_hop(
    model: AdaptedModel, facts: Sequence[Fact], max_new_tokens: int, progress: Progress
) -> TwoHop:
    """Asks both models the facts, second hops and two-hop questions. Raises DataError: no chain."""
    chains = chained(facts)
    if not chains:
        fix = "Add the columns two_hop, two_hop_answer and second_hop to the facts."
        raise DataError("No fact to forget brings a two-hop question.", fix)
    check(model, chains)
    last = [replace(fact, answer=fact.two_hop_answer, accepted=(), parts=()) for fact in chains]
    two_hops = [replace(fact, question=fact.two_hop) for fact in last]
    second_hops = [replace(fact, question=fact.second_hop) for fact in last]
    forms = chains, two_hops, second_hops

    def recalls(telling: Progress) -> list[dict[str, float]]:
        how = max_new_tokens, telling, known_recall
        return [recall_by_fact(model, form, *how) for form in forms]

    original, unlearned = each_model(model, progress, recalls)
    known = [fact for fact in chains if all(recall[fact.id] >= KNOWN_FROM for recall in original)]
    rows = []
    for tier, ids in in_tiers(known, [fact.id for fact in known]).items():
        shares = [fmean(recall[name] >= KNOWN_FROM for name in ids) for recall in unlearned]
        rows.append(TwoHopRow(tier, FORM, len(ids), *shares))
    returned = came_back(known, *unlearned[:2])
    return TwoHop(tuple(rows), returned, len(chains) - len(known))
