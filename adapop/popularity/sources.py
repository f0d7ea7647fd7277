"""The sources of scores by name, each built from a user's choices."""

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
    """The options of all sources; each source reads only its own fields."""

    formula: str = "sitelinks+statements"
    """Which of Wikidata's counts are summed."""
    language: str = "en"
    """Language of the names, for Wikidata and page views."""
    year: int | None = None
    """Year of the page views; None for the last whole one."""
    index: str = next(iter(INDEXES))
    """The corpus of infini-gram."""
    combine: str = "subject+object"
    """Which names are counted, by infini-gram and in a text."""
    text: Path | None = None
    """File or folder in which names are counted."""


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
