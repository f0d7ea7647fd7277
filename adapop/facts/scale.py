"""The scale of a set's scores, which decides its tiers and the anchors of β."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from adapop.facts.benchmarks import DUET_SUM, benchmark_of
from adapop.facts.fact import WRITTEN, Fact, FactSet
from adapop.facts.files import read_facts
from adapop.facts.tiers import COLUMN, ON_SCALE, SCALE, UNKNOWN, Tiers, of_column, terciles
from adapop.facts.world import EXPOSURES, sandbox_facts
from adapop.paths import ASSETS, SHIPPED

INVENTED = ASSETS / "sets" / "invented.csv"
WIKIDATA, EDITED = "Wikidata", "edited"  # how the source of such a score begins
# sources of scores in shipped sets and DUET, which were made for Wikidata's scale
OWN_SOURCES = (EXPOSURES, DUET_SUM, "invented")
SILENT = ("", EDITED, "constant", "column ")  # sources that name no scale


def with_tiers(facts: FactSet, anew: bool = False) -> FactSet:
    """The set with the tier of each fact, and a note on them.

    Tiers from a column of the file stay. Shipped sets and benchmarks get the tiers of Wikidata's
    scale; other sets get terciles of their forget scores, for all groups. Tiers decided before
    stay, even if facts have been left out since. anew: replaces them, after scores changed."""
    tiers = _tiers_of(facts, anew)
    groups = {group: getattr(facts, group) for group in WRITTEN}
    groups = {group: tuple(_in_tier(one, tiers) for one in rows) for group, rows in groups.items()}
    notes = facts.notes
    if tiers != facts.tiers:
        notes = (*(note for note in notes if note != facts.tiers.note), *filter(None, [tiers.note]))
    return replace(facts, **groups, tiers=tiers, notes=notes)


def on_wikidata_scale(facts: FactSet) -> bool:
    """Whether the scores of the facts to forget are on the scale of the paper's anchors."""
    sources = _sources(facts)
    others = {source for source in sources if not source.startswith((WIKIDATA, *OWN_SOURCES))}
    if _is_listed(facts):
        return all(source == "" or source.startswith(SILENT[1:]) for source in others)
    return bool(sources) and others <= {EDITED} and others != sources


def places(facts: Iterable[Fact]) -> set[tuple[str, str]]:
    """Id and question of each fact: another file may use the same ids."""
    return {(fact.id, fact.question) for fact in facts}


@cache
def shipped_places() -> set[tuple[str, str]]:
    """`places` of the forget facts of every shipped set."""
    worlds = (fact for name in SHIPPED for fact in sandbox_facts(name).forget)
    return places((*worlds, *read_facts(INVENTED).forget))


def _tiers_of(facts: FactSet, anew: bool) -> Tiers:
    if facts.tiers.source and not anew:
        return facts.tiers
    if facts.tiers.source == COLUMN:
        return of_column((fact.own_tier, fact.score) for fact in facts.forget)
    scores = [fact.score for fact in facts.forget if fact.score is not None]
    listed = _is_listed(facts) or all(source.startswith(OWN_SOURCES) for source in _sources(facts))
    if not scores:
        return Tiers()  # decided later, once there are scores
    return ON_SCALE if listed and on_wikidata_scale(facts) else terciles(scores)


def _in_tier(fact: Fact, tiers: Tiers) -> Fact:
    if tiers.source == COLUMN:
        tier = fact.own_tier or UNKNOWN
    else:
        tier = "" if tiers.source in ("", SCALE) or fact.score is None else tiers.of(fact.score)
    return fact if fact.own_tier == tier else replace(fact, own_tier=tier)


def _sources(facts: FactSet) -> set[str]:
    """Sources of the forget scores; for a control ("shuffled, of Wikidata") the true source."""
    scored = [fact for fact in facts.forget if fact.score is not None]
    return {fact.score_source.rpartition(", of ")[2] for fact in scored}


def _is_listed(facts: FactSet) -> bool:
    """Whether all facts to forget are of shipped sets, or of one benchmark."""
    return benchmark_of(facts) is not None or places(facts.forget) <= shipped_places()
