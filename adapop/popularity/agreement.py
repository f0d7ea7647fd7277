"""The agreement of two popularity proxies on the same facts.

Pearson is computed in log space, because scores span orders of magnitude; Spearman on ranks,
because scales differ. Two distant clusters alone give a high Pearson."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import pandas as pd

from adapop.errors import ConfigError, DataError, truncated
from adapop.facts.fact import Fact
from adapop.facts.text import normalized
from adapop.facts.tiers import POPULAR_FROM
from adapop.popularity.beta import BetaMap
from adapop.remark import Remark

FEWEST = 3  # facts with two scores
NUMBERED = re.compile(r"row-\d+")  # ids given by `read_facts` to rows without one


@dataclass(frozen=True)
class Agreement:
    """The comparison of two proxies on the facts that both have scored.

    facts: their number. unknown: number of facts that only one has scored. pearson_log: Pearson
    correlation of log(1 + score), spearman: rank correlation, both in [-1, 1]; None where a proxy
    gives all facts one score. same_label: share of the facts that both put on the same side of
    their own median, [0, 1]. discordant: ids of the other facts, largest difference in rank first.
    beta_shift: mean absolute difference of beta with one map for both; own_beta_shift: the same
    with a map from each proxy's quantiles, None where its scores give no anchors."""

    facts: int
    unknown: int
    pearson_log: float | None
    spearman: float | None
    same_label: float
    discordant: tuple[str, ...]
    beta_shift: float
    own_beta_shift: float | None
    same_tier: float | None = None
    """Share of the facts that both call popular (a score of 1,000 or more) or both rare, [0, 1].
    This is the paper's label agreement; popular begins at 1,000 both on Wikidata's scale and on
    that of its judge. None where a proxy calls all facts the same."""


def agreement(
    first: Mapping[str, float | None], second: Mapping[str, float | None], beta: BetaMap
) -> Agreement:
    """The comparison of two proxies' scores, by fact id. Unknown scores (None) are left out, never
    taken as zero. Raises DataError: fewer than three facts are scored by both."""
    table = pd.DataFrame({"first": first, "second": second}, dtype=float)
    by_one = table.notna().sum(axis=1) == 1
    table = table.reindex(list(first)).dropna()
    if len(table) < FEWEST:
        message = f"Only {len(table)} facts are scored by both, too few to compare."
        raise DataError(message, "Compare two scorings of the same facts.")
    ranks = table.rank()
    above_median = table > table.median()
    popular = table >= POPULAR_FROM
    differs = above_median["first"] != above_median["second"]
    apart = (ranks["first"] - ranks["second"]).abs()[differs]
    same_tier = float((popular["first"] == popular["second"]).mean())
    try:
        own_shift = _shift(table, *(BetaMap.from_quantiles(table[side]) for side in table))
    except ConfigError:
        own_shift = None
    return Agreement(
        facts=len(table),
        unknown=int(by_one.sum()),
        pearson_log=_correlation((table + 1).map(math.log)),
        spearman=_correlation(ranks),
        same_label=1 - float(differs.mean()),
        discordant=tuple(apart.sort_values(ascending=False, kind="stable").index),
        beta_shift=_shift(table, beta, beta),
        own_beta_shift=own_shift,
        same_tier=same_tier if (popular.nunique() > 1).all() else None,
    )


def joined(first: Sequence[Fact], second: Sequence[Fact]) -> tuple[Fact, ...]:
    """The second set's facts with the ids of the same facts in the first. Facts are matched by id;
    if both sets only number their rows, by question, unless a set has a question twice. Raises
    DataError: an id has different questions in the two sets."""
    ids = {normalized(fact.question): fact.id for fact in first}
    texts = [normalized(fact.question) for fact in second]
    numbered = all(NUMBERED.fullmatch(fact.id) for fact in (*first, *second))
    if numbered and (len(ids), len(set(texts))) == (len(first), len(second)):
        new = [ids.get(question, f"second-{fact.id}") for question, fact in zip(texts, second)]
        return tuple(replace(fact, id=name) for name, fact in zip(new, second))
    questions = {fact.id: fact.question for fact in first}
    for fact in second:
        question = questions.get(fact.id, fact.question)
        if normalized(question) != normalized(fact.question):
            one, other = truncated(question), truncated(fact.question)
            message = f"{fact.id} is {one!r} in one set and {other!r} in the other."
            raise DataError(message, "Give the same facts the same ids in both.")
    return tuple(second)


def remarks_of(result: Agreement, first: str, second: str) -> list[Remark]:
    """Remarks on the comparison. first, second: the names of the two proxies."""
    remarks = [Remark("both_scored", {"first": first, "second": second, "facts": result.facts})]
    remarks += [Remark("one_scored", {"facts": result.unknown})] if result.unknown else []
    ranks = {"spearman": _number(result.spearman), "pearson": _number(result.pearson_log)}
    remarks.append(Remark("correlation", ranks | {"same": result.same_label}))
    if result.same_tier is not None:
        remarks.append(Remark("same_tier", {"popular": POPULAR_FROM, "same": result.same_tier}))
    shift, own = {"shift": result.beta_shift}, result.own_beta_shift
    if own is None:
        return [*remarks, Remark("beta_shift_no_anchors", shift)]
    return [*remarks, Remark("beta_shift", shift | {"own": own})]


def _correlation(table: pd.DataFrame) -> float | None:
    """Pearson's r of the two columns, None if either is constant."""
    value = table["first"].corr(table["second"]) if (table.nunique() > 1).all() else None
    return None if value is None or pd.isna(value) else float(value)


def _shift(table: pd.DataFrame, first: BetaMap, second: BetaMap) -> float:
    return fmean(abs(first(a) - second(b)) for a, b in zip(table["first"], table["second"]))


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"
