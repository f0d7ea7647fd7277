"""The sources of scores by name: how each is listed and described, which choices it reads, and how
it is made. The page, the API and the command line offer what stands here."""

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


@dataclass(frozen=True)
class Source:
    """A source of scores, as users choose it."""

    title: str
    """Its name in a list."""
    about: str
    """What its scores are, and what is sent to whom, in Markdown."""
    reads: tuple[str, ...]
    """The fields of `Choices` that it reads."""
    make: Callable[[FactSet, Choices, Progress, Cache], Proxy]
    """Makes the proxy. Raises ConfigError: a choice is missing, or out of range."""


def _corpus(facts: FactSet, chosen: Choices, progress: Progress, cache: Cache) -> Proxy:
    if chosen.text is None:
        raise ConfigError("There is no text to count in.", "Upload one.")
    return CorpusCounts(progress, chosen.text, chosen.combine, other_facts(facts))


SOURCES = {
    "wikidata": Source(
        "Wikidata: sitelinks and statements",
        "How many Wikipedias and Wikidata statements cover the subject and answer. **The names "
        "of the subjects, relations and answers are sent to www.wikidata.org**, one after the "
        "other; this takes about a second for each new name. What is found is kept: stop and go on "
        "when you like.",
        ("formula", "language"),
        lambda _, chosen, *online: Wikidata(*online, chosen.formula, language=chosen.language),
    ),
    "pageviews": Source(
        "Wikipedia page views",
        "How often people read the subject's Wikipedia article, in views a month. **The names of "
        "the subjects, relations and answers are sent to www.wikidata.org**, which knows the "
        "article; **its title goes to wikimedia.org.** Views span five orders of magnitude: fit "
        "the curve to them on Run.",
        ("language", "year"),
        lambda _, chosen, *online: PageViews(*online, chosen.language, chosen.year),
    ),
    "infinigram": Source(
        "Corpus counts: infini-gram",
        "How often a pretraining corpus names the subject and the answer. **The names of the "
        "subjects and answers are sent to api.infini-gram.io.** Counts run over four orders of "
        "magnitude: fit the curve to them on Run.",
        ("index", "combine"),
        lambda _, chosen, *online: InfiniGram(*online, chosen.index, chosen.combine),
    ),
    "judge": Source(
        "LLM judge",
        "A language model rates how common each fact is, from 0 to 10,000, three times in "
        "different orders. **The facts are sent to the judge's endpoint.** A fact that it does not "
        "rate three times stays unknown.",
        (),
        lambda facts, chosen, *online: judge_from_environment(*online),
    ),
    "corpus": Source(
        "Counts in a text of mine",
        "How many lines of a text name the subject and the answer, as whole words. The text is "
        "counted on the machine that runs this page and sent nowhere else.",
        ("combine", "text"),
        _corpus,
    ),
}
