"""The sources of scores by name, each made of what a person chose."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.facts.world import other_facts
from adapop.online.cache import Cache
from adapop.popularity.base import Proxy
from adapop.popularity.corpus import CorpusCounts
from adapop.popularity.infinigram import INDEXES, InfiniGram
from adapop.popularity.judge import judge_from_environment
from adapop.popularity.pageviews import PageViews
from adapop.popularity.wikidata import Wikidata
from adapop.progress import Progress


@dataclass(frozen=True)
class Choices:
    """What may be chosen of a source: each reads its own."""

    formula: str = "sitelinks+statements"
    """Of Wikidata's counts."""
    language: str = "en"
    """Of the names, for Wikidata and page views."""
    year: int | None = None
    """Of the page views; None for the last."""
    index: str = next(iter(INDEXES))
    """The corpus of infini-gram."""
    combine: str = "subject+object"
    """Which names are counted, in infini-gram and a text."""
    text: Path | None = None
    """File or folder to count in."""


def _corpus(facts: FactSet, chosen: Choices, progress: Progress, cache: Cache) -> Proxy:
    if chosen.text is None:
        raise ConfigError("There is no text to count in.", "Upload one.")
    return CorpusCounts(progress, chosen.text, chosen.combine, other_facts(facts))


SOURCES: dict[str, Callable[[FactSet, Choices, Progress, Cache], Proxy]] = {
    "wikidata": lambda _, chosen, *online: Wikidata(
        *online, chosen.formula, language=chosen.language
    ),
    "pageviews": lambda _, chosen, *online: PageViews(*online, chosen.language, chosen.year),
    "infinigram": lambda _, chosen, *online: InfiniGram(*online, chosen.index, chosen.combine),
    "judge": lambda facts, chosen, *online: judge_from_environment(*online),
    "corpus": _corpus,
}
