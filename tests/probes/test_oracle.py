"""The model that never read the facts to forget, and what is measured against it."""

import json
from dataclasses import replace
from statistics import fmean

import pytest
import torch

from adapop.config.presets import make_config
from adapop.facts.fact import TIERS, Fact
from adapop.facts.world import sandbox_facts
from adapop.model.loading import adapted_model
from adapop.paths import ORACLE, SHIPPED
from adapop.probes.measure import recall_by_fact
from adapop.probes.oracle import distance, guesses_of, load_oracle, measurable, write_guesses
from adapop.progress import Progress
from adapop.sandbox.card import CARD, oracle_text


@pytest.fixture(scope="module")
def facts():
    return sandbox_facts()


@pytest.fixture(scope="module")
def oracle():
    torch.set_num_threads(1)
    return load_oracle(SHIPPED["sandbox"] / ORACLE)


def some(facts, **groups):
    return replace(facts, **{name: getattr(facts, name)[:count] for name, count in groups.items()})


def test_it_never_knew_the_facts_to_forget_and_knows_the_others(oracle, facts):
    for tier in TIERS:
        members = [fact for fact in facts.forget if fact.tier == tier]
        recalls = recall_by_fact(oracle, members, 3, Progress())
        assert fmean(recalls.values()) <= 0.2, tier
    for members in (facts.retain, facts.holdout):
        assert fmean(recall_by_fact(oracle, members[::4], 3, Progress()).values()) >= 0.95


def test_the_oracle_is_as_if_it_had_never_learnt(oracle, facts):
    found = distance(oracle, "sandbox", facts)
    assert max(row.kl for row in found.groups) < 1e-5 and {row.same for row in found.groups} == {1.0}
    assert found.quality.p_value > 0.99 and found.quality.distance < 0.02  # guesses are rounded to 4 digits
    assert found.truth_ratio == pytest.approx(found.oracle_truth_ratio, abs=1e-3)
    assert [attack.privleak for attack in found.membership] == pytest.approx([0] * 4, abs=1e-6)
    for form in ("direct", "reworded"):
        shares = found.shares(form)
        assert shares["as if never learnt"].mean == pytest.approx(0.95, abs=0.02)
        assert found.mostly(form, "under-forgotten") == ""


def test_the_shipped_model_has_forgotten_nothing(facts):
    chosen = some(facts, forget=256, retain=32, holdout=64)
    found = distance(adapted_model(make_config()), "sandbox", chosen)
    assert found.shares("reworded")["under-forgotten"].mean > 0.99
    assert found.quality.log10 < -50 and not found.quality.higher
    kl = {(row.group, row.form, row.tier): row.kl for row in found.groups}
    assert kl["forget", "direct", "all"] > 1 > 0.5 > kl["holdout", "direct", "all"]


def test_a_set_is_measured_only_where_the_oracle_read_none_of_it(facts):
    assert measurable("sandbox", facts) and measurable("sandbox", some(facts, forget=2))
    assert not measurable("smollm2", facts) and not measurable("sandbox", replace(facts, forget=facts.retain))
    own = Fact("own", "Who wrote Emma?", "Austen")
    assert not measurable("sandbox", replace(facts, forget=(*facts.forget, own)))
    assert not measurable("sandbox", some(facts, forget=0))
    assert distance(None, "./my-model", facts) is None


@pytest.mark.slow
@pytest.mark.parametrize("world", [world for world in SHIPPED if guesses_of(world)])
def test_the_card_and_the_guesses_are_what_is_measured(world, tmp_path):
    folder = SHIPPED[world] / ORACLE
    assert oracle_text(folder, world) in (folder / CARD).read_text(encoding="utf-8")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    write_guesses(tmp_path, world)
    guesses_of.cache_clear()
    again = guesses_of(world)
    (fresh, shipped) = (json.loads((place / "guesses.json").read_text("utf-8")) for place in (tmp_path, folder))
    assert fresh.keys() == shipped.keys() and len(again) >= 256
    for name, values in fresh.items():  # another CPU rounds otherwise: a unit of the fourth digit
        assert values == pytest.approx(shipped[name], rel=2e-3), name
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 2.4 * 10**6


def test_it_stays_on_the_cpu_beside_its_model_where_there_is_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    oracle = load_oracle.__wrapped__(SHIPPED["sandbox"] / ORACLE)
    assert oracle.network.device == adapted_model(make_config()).network.device == torch.device("cpu")
