"""The fact sets: two shipped worlds, two sets made from the first, cities, benchmarks, a file."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from adapop.assets import read_json
from adapop.errors import DataError
from adapop.facts.benchmarks import duet, hubble_popqa, hubble_yago, rwku
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.files import Columns, FileTable, Rows, guessed, read_facts, read_table
from adapop.facts.retain import with_retain_rows
from adapop.facts.scale import INVENTED
from adapop.facts.world import sandbox_facts
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.paths import ASSETS, SHIPPED
from adapop.progress import Progress
from adapop.remark import Remark

DOWNLOADED: dict[str, Callable[[Hub], FactSet]] = {
    "duet": duet,
    "duet-rare": partial(duet, tiers=("rare",)),
    "duet-popular": partial(duet, tiers=("popular",)),
    "rwku": rwku,
    "hubble-popqa": hubble_popqa,
    "hubble-yago": hubble_yago,
}
CITIES = ASSETS / "sets" / "cities.csv"
EXAMPLES = ASSETS / "sets" / "cities-examples.csv"
# a rare and a popular fact to forget with the same answer; no rarer fact has such a counterpart
PAIR = ("director-paths-of-glory", "director-a-clockwork-orange")


@dataclass(frozen=True)
class ListedSet:
    """A set that can be picked by name, from `assets/sets/catalog.json`."""

    name: str
    title: str
    about: str
    """What it contains, in sentences for the user."""
    online: bool = False
    """Whether its rows are downloaded."""


ENTRIES = {entry.name: entry for entry in read_json("sets/catalog.json", tuple[ListedSet, ...])}


def load_facts(
    source: str | os.PathLike | Rows | FactSet,
    model: str = SANDBOX,
    progress: Progress | None = None,
    cache: Cache | None = None,
    retain: str | FactSet | Rows = "own",
    columns: Columns | None = None,
    drop_bad: bool = False,
) -> FactSet:
    """The named set, or the facts of a file or a table, completed with retain rows and a holdout.

    source: a set's name, a file's path, a table in memory as in `read_facts`, or a set that lacks
    retain rows. model: the name of the model, as in `RunConfig`, or anything else for a model in
    memory. progress, cache: used for a download. retain: the source of the retain rows, see
    `with_retain_rows`; or a table of them. columns: for a file or a table, field -> column, in
    place of the guess, see `read_facts`. drop_bad: leaves out facts whose score cannot be read.
    Raises DataError: no such set or file, an unusable file or table, or no retain rows for a model
    that is not shipped. NetworkError: a download failed. Stopped: somebody asked to stop."""
    if not isinstance(retain, (str, FactSet)):
        retain = read_facts(retain, group="retain")
    if not isinstance(source, FactSet):
        source = load_raw(source, progress, cache, columns, drop_bad)
    return with_retain_rows(source, model, retain)


def load_raw(
    source: str | os.PathLike | Rows,
    progress: Progress | None = None,
    cache: Cache | None = None,
    columns: Columns | None = None,
    drop_bad: bool = False,
) -> FactSet:
    """The set without added retain rows; otherwise as `load_facts`."""
    if not isinstance(source, (str, os.PathLike)):
        return _of_table(read_table(source), columns, drop_bad)
    if source in ENTRIES and columns:
        message = f"{source} is no file, so it has no columns to choose."
        raise DataError(message, "Leave --columns and --column out.")
    if source in SHIPPED:
        return sandbox_facts(source)
    makers = {"pair": _pair, "invented": _invented, "cities": _cities}
    if source in makers:
        return makers[source]()
    if source in ENTRIES:
        return DOWNLOADED[source](Hub(progress or Progress(), cache or Cache()))
    path = Path(source)
    if not os.path.isfile(path):  # unlike Path.is_file, false for a name no file can have
        names = ", ".join(ENTRIES)
        message = f"There is no set and no file called {source!r}."
        raise DataError(message, f"Use {names}, or the path of a file.")
    return _of_table(read_table(path), columns, drop_bad)


def _of_table(table: FileTable, columns: Columns | None, drop_bad: bool) -> FactSet:
    """columns: field -> column in place of the guess; other fields are guessed."""
    chosen = {**guessed(table.columns), **columns} if columns else None
    return table.facts(columns=chosen, drop_bad=drop_bad)


def model_of(source: str | None) -> str:
    """Name of the shipped model that belongs to a set, the sandbox's model for any other. A shipped
    set has its model's name, so this also gives the set that belongs to a model."""
    return source if source in SHIPPED else SANDBOX


def _pair() -> FactSet:
    """The sandbox's set with two facts to forget: same answer, far apart in popularity."""
    world = sandbox_facts()
    by_id = {fact.id: fact for fact in world.forget}
    rare, popular = (by_id[name] for name in PAIR)
    values: dict[str, Any] = {
        "answer": rare.answer, "rare": rare.subject, "popular": popular.subject,
        "rare_score": rare.score, "popular_score": popular.score,
    }  # fmt: skip
    notes = (Remark("pair", values), *world.notes)
    return replace(world, name="pair", forget=(rare, popular), notes=notes)


def _invented() -> FactSet:
    """The sandbox's set with invented facts to forget. Their score of 0 is known, not missing."""
    forget = read_facts(INVENTED).forget
    return replace(sandbox_facts(), name="invented", forget=forget, notes=(Remark("invented"),))


def _cities() -> FactSet:
    """Cities and their countries, for language models: the shipped models do not know them."""
    facts, examples = read_facts(CITIES), read_facts(EXAMPLES, group="examples").examples
    return replace(facts, examples=examples, notes=(Remark("cities"), *facts.notes))
