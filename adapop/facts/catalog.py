"""The sets one can pick: the sandbox's own and two cut from it, two benchmarks, or a file of one's own."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from adapop.errors import DataError
from adapop.facts.benchmarks import duet, rwku
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.files import read_facts
from adapop.facts.retain import completed
from adapop.facts.world import sandbox_facts
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.paths import ASSETS
from adapop.progress import Progress

INVENTED = ASSETS / "sets" / "invented.csv"
# of the facts to forget that share an answer and are rare and popular by tier, none is rarer than the first of these
PAIR = ("director-paths-of-glory", "director-a-clockwork-orange")


@dataclass(frozen=True)
class Entry:
    """A set by name. about: what it is, for a reader who sees it first. online: its rows are downloaded."""

    name: str
    title: str
    about: str
    online: bool = False


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry(
            SANDBOX,
            "Sandbox world",
            "256 facts to forget about books, films, cities and more. The sandbox model saw each of them as often as "
            "its score says, so popularity is the only thing in which they differ.",
        ),
        Entry(
            "pair",
            "One pair",
            "Two films by one director, one that the sandbox model saw often and one that it saw ten times less. The "
            "smallest set that shows the popularity gap.",
        ),
        Entry(
            "invented",
            "Invented facts",
            "A control: 32 facts about things that do not exist. No text ever showed them, so their popularity is "
            "zero, and there is nothing to forget.",
        ),
        Entry(
            "duet",
            "DUET",
            "482 rare and 482 popular facts about cities, with the scores the AdaPop paper used. Downloaded from the "
            "Hugging Face Hub. Meant for a large model; the sandbox model never saw these questions.",
            online=True,
        ),
        Entry(
            "rwku",
            "RWKU",
            "Questions about 200 famous people, with attack prompts. It has no scores: look them up first. Downloaded "
            "from the Hugging Face Hub. Meant for a large model; the sandbox model never saw these questions.",
            online=True,
        ),
    )
}


def load_facts(
    source: str,
    model: str = SANDBOX,
    progress: Progress | None = None,
    cache: Cache | None = None,
    retain: str | FactSet = "own",
) -> FactSet:
    """The named set, or the facts of a file, made complete: with retain rows and with a holdout.

    progress, cache: of a download. retain: what is to survive, see `retain.completed`.

    Raises:
        DataError: no such set or file, an unusable file, or no retain rows for a model that is not the sandbox.
        NetworkError: a download failed.
        Stopped: somebody asked to stop.
    """
    return completed(_brought(source, progress, cache), model, retain)


def _brought(source: str, progress: Progress | None, cache: Cache | None) -> FactSet:
    """The set as it is."""
    if source == SANDBOX:
        return sandbox_facts()
    if source == "pair":
        return _pair()
    if source == "invented":
        return _invented()
    if source in ENTRIES:
        hub = Hub(progress or Progress(), cache or Cache())
        return duet(hub) if source == "duet" else rwku(hub)
    path = Path(source)
    if not os.path.isfile(path):  # unlike Path.is_file, false for a name no file can have
        names = ", ".join(ENTRIES)
        raise DataError(f"There is no set and no file called {source!r}.", f"Use {names}, or the path of a file.")
    return read_facts(path)


def _pair() -> FactSet:
    """Two facts of one answer, far apart in popularity, in the sandbox's world."""
    world = sandbox_facts()
    by_id = {fact.id: fact for fact in world.forget}
    rare, popular = (by_id[name] for name in PAIR)
    note = (
        f"Both answers are {rare.answer}: {rare.subject} has a score of {rare.score:,.0f}, {popular.subject} of "
        f"{popular.score:,.0f}."
    )
    return replace(world, name="pair", forget=(rare, popular), notes=(note, *world.notes))


def _invented() -> FactSet:
    """Facts that no text ever showed: their score of zero is known, not missing."""
    forget = read_facts(INVENTED).forget
    note = "These facts are invented. Nothing ever showed them to a model, so a score of 0 is what they have."
    return replace(sandbox_facts(), name="invented", forget=forget, notes=(note,))
