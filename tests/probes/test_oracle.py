"""The model that never read the facts to forget, and what is measured against it; and that of a real model trained in a
pair: here the sandbox's model and its oracle in the places of Hubble's, whose distances are known."""

import json
import shutil
from dataclasses import replace
from statistics import fmean

import pytest
import torch

from adapop.config.presets import make_config
from adapop.facts.fact import TIERS, Fact
from adapop.facts.world import sandbox_facts
from adapop.model.catalogue import MODELS, oracle_for
from adapop.model.loading import adapted_model
from adapop.paths import ORACLE, SHIPPED
from adapop.probes.distance import AS_NEVER_LEARNT
from adapop.probes.measure import recall_by_fact
from adapop.probes.oracle import compared, distance, guesses_of, load_oracle, measurable, never_read, write_guesses
from adapop.progress import Progress
from adapop.report.distance import distance_sentence, distance_tables, run_tables
from adapop.report.record import read_record
from adapop.runs.execute import execute, prepare
from adapop.runs.preflight import preflight
from adapop.sandbox.pretrain import CARD, oracle_text
from adapop.training.events import ComparedToOracle, RunDone

PERTURBED, STANDARD = (f"allegrolab/hubble-1b-100b_toks-{kind}-hf" for kind in ("perturbed", "standard"))
AS_SHIPPED = dict(precision="float32", asking="chat", answers="as-given", unknown="keep", measure_per_tier=0)


@pytest.fixture(scope="module")
def oracle():
    torch.set_num_threads(1)
    return load_oracle(SHIPPED["sandbox"] / ORACLE)


def test_it_never_knew_the_facts_to_forget_and_knows_the_others(oracle, sandbox):
    for tier in TIERS:
        members = [fact for fact in sandbox.forget if fact.tier == tier]
        recalls = recall_by_fact(oracle, members, 3, Progress())
        assert fmean(recalls.values()) <= 0.2, tier
    for members in (sandbox.retain, sandbox.holdout):
        assert fmean(recall_by_fact(oracle, members[::4], 3, Progress()).values()) >= 0.95


def test_the_oracle_is_as_if_it_had_never_learnt(oracle, sandbox):
    comparison = distance(oracle, "sandbox", sandbox)
    assert max(row.kl for row in comparison.groups) < 1e-5 and {row.same for row in comparison.groups} == {1.0}
    assert comparison.quality.p_value > 0.99 and comparison.quality.distance < 0.02  # guesses are rounded to 4 digits
    assert comparison.truth_ratio == pytest.approx(comparison.oracle_truth_ratio, abs=1e-3)
    assert [attack.privleak for attack in comparison.membership] == pytest.approx([0] * 4, abs=1e-6)
    for form in ("direct", "reworded"):
        shares = comparison.shares(form)
        assert shares[AS_NEVER_LEARNT].mean == pytest.approx(0.95, abs=0.02)
        assert comparison.mostly(form, "under-forgotten") == ""


def test_the_shipped_model_has_forgotten_nothing(sandbox):
    chosen = replace(sandbox, retain=sandbox.retain[:32], holdout=sandbox.holdout[:64])
    comparison = distance(adapted_model(make_config()), "sandbox", chosen)
    assert comparison.shares("reworded")["under-forgotten"].mean > 0.99
    assert comparison.quality.log10 < -50 and not comparison.quality.higher
    kl = {(row.group, row.form, row.tier): row.kl for row in comparison.groups}
    assert kl["forget", "direct", "all"] > 1 > 0.5 > kl["holdout", "direct", "all"]


def test_a_set_is_measured_only_where_the_oracle_read_none_of_it(sandbox):
    assert measurable("sandbox", sandbox) and measurable("sandbox", replace(sandbox, forget=sandbox.forget[:2]))
    assert not measurable("smollm2", sandbox) and not measurable("sandbox", replace(sandbox, forget=sandbox.retain))
    own = Fact("own", "Who wrote Emma?", "Austen")
    assert not measurable("sandbox", replace(sandbox, forget=(*sandbox.forget, own)))
    assert not measurable("sandbox", replace(sandbox, forget=()))
    assert distance(None, "./my-model", sandbox) is None


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


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The folder of a model whose oracle lies beside it."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("pair")
    model = root / PERTURBED.rpartition("/")[2]
    shutil.copytree(SHIPPED["sandbox"], model, ignore=shutil.ignore_patterns(ORACLE))
    shutil.copytree(SHIPPED["sandbox"] / ORACLE, root / STANDARD.rpartition("/")[2])
    return model


@pytest.fixture(scope="module")
def planted():
    facts = sandbox_facts()
    return replace(facts, forget=tuple(replace(fact, id=f"hubble-popqa-{fact.id}") for fact in facts.forget))


def config_of(model, **changes):
    return make_config("wga", model=str(model), **AS_SHIPPED | changes)


def test_an_oracle_is_looked_for_where_the_model_came_from(pair, tmp_path):
    assert oracle_for(PERTURBED) == STANDARD
    assert oracle_for(str(pair)) == str(pair.with_name(STANDARD.rpartition("/")[2]))
    assert [oracle_for(name) for name in (STANDARD, "sandbox", f"me/{pair.name}", str(tmp_path), "none")] == [""] * 5
    named = {name: preset for name, preset in MODELS.items() if preset.oracle}
    assert len(named) == 2 and all("-perturbed-" in name for name in named)
    for name, preset in named.items():
        assert preset.oracle == name.replace("perturbed", "standard")
        assert preset.never_read == ("hubble-popqa", "hubble-yago")
        assert preset.shape == MODELS[preset.oracle].shape


def test_what_it_takes_is_said_before_and_nothing_is_loaded_that_could_not_be_compared(pair, planted):
    (cost,) = [one for one in preflight(planted, config_of(PERTURBED)).terms if getattr(one, "values", None)]
    assert cost.kind == "oracle_beside" and cost.values["model"] == STANDARD
    assert cost.values["bytes"] == pytest.approx(4 * 1.18e9, rel=0.05)  # float32
    kinds = {getattr(one, "kind", "") for one in preflight(planted, config_of(PERTURBED, start="sft")).costs}
    assert "oracle_beside" not in kinds
    own = replace(planted, forget=sandbox_facts().forget)
    assert never_read(PERTURBED, planted) and not never_read(PERTURBED, own)
    assert not never_read(PERTURBED, replace(planted, forget=(*planted.forget, own.forget[0])))
    assert not never_read(PERTURBED, replace(planted, forget=()))
    assert compared(None, config_of(pair), own) == (None, ())
    assert compared(None, config_of(pair, start="sft"), planted) == (None, ())
    assert compared(None, replace(config_of(pair), model="./another"), planted) == (None, ())


@pytest.mark.slow
def test_the_distance_to_a_twin_is_that_to_the_same_oracle_where_it_ships(pair, planted):
    model, config = adapted_model(config_of(pair)), config_of(pair)
    twin, remarks = compared(model, config, planted)
    shipped = distance(model, "sandbox", sandbox_facts())
    assert remarks == () and twin.membership == () and {row.group for row in twin.groups} == {"forget"}
    assert [row for row in shipped.groups if row.group == "forget"] == pytest.approx(list(twin.groups))
    for ours, theirs in zip(twin.facts, shipped.facts, strict=True):
        assert ours.id == f"hubble-popqa-{theirs.id}" and (ours.tier, ours.form) == (theirs.tier, theirs.form)
        for name in ("unlearned", "oracle", "low", "high"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=2e-3)
    assert (twin.truth_ratio, twin.quality.log10) == pytest.approx((shipped.truth_ratio, shipped.quality.log10))
    assert distance_sentence(twin) == distance_sentence(shipped) and len(distance_tables(twin)) == 3
    # Facts without rewordings are compared as trained.
    bare = replace(planted, forget=tuple(replace(fact, paraphrases=()) for fact in planted.forget[:64]))
    direct_only, _ = compared(model, config, bare)
    assert {fact.form for fact in direct_only.facts} == {"direct"} and len(direct_only.facts) == 64
    assert distance_sentence(direct_only).startswith(f"Forgotten {AS_NEVER_LEARNT}")


@pytest.mark.slow
def test_a_run_is_compared_with_the_facts_that_it_measures(pair, planted, tmp_path):
    few = replace(planted, forget=planted.forget[::7], retain=planted.retain[::15], holdout=(), neighbours=())
    run = prepare(config_of(pair, epochs=1, measure_per_tier=4), few, tmp_path)
    events = list(execute(run))
    (event,) = [event for event in events if isinstance(event, ComparedToOracle)]
    assert len(event.distance.of("direct")) == len(event.distance.of("reworded")) == 12
    assert all(fact.low < fact.high for fact in event.distance.facts), "few facts of a relation still have a band"
    assert isinstance(events[-1], RunDone)
    tables = {table.title: table for table in run_tables(read_record(run))}
    by_epoch = tables["Epoch by epoch, compared with a model that never learnt the facts"]
    assert [cells[0] for cells in by_epoch.rows] == ["0", "1"] and by_epoch.note.startswith("12 facts")


@pytest.mark.slow
def test_a_twin_that_is_not_there_or_does_not_fit_is_a_remark_and_the_run_goes_on(pair, planted, tmp_path):
    alone = shutil.copytree(pair, tmp_path / pair.name)
    few = replace(planted, forget=planted.forget[::15], retain=planted.retain[::64], holdout=(), neighbours=())
    run = prepare(config_of(alone, epochs=1), few, tmp_path)
    *_, done = execute(run)
    (missing,) = [note for note in done.notes if getattr(note, "kind", "") == "oracle_missing"]
    assert run.state == "done" and missing.values["model"] == STANDARD
    assert missing.text().startswith(f"Not compared with {STANDARD}") and str(tmp_path) not in missing.text()
    model = adapted_model(config_of(pair))
    twin, (remark,) = compared(model, replace(config_of(pair), model=PERTURBED), planted)
    assert twin is None and "HF_HUB_OFFLINE is set" in remark.text()
    copied = shutil.copytree(pair.parent, tmp_path / "pair") / pair.name
    path = copied.with_name(STANDARD.rpartition("/")[2]) / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    vocabulary = content["model"]["vocab"]
    one, other = list(vocabulary)[-2:]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    path.write_text(json.dumps(content), "utf-8")
    twin, (remark,) = compared(model, config_of(copied), planted)
    assert twin is None and "tokenizer" in remark.text() and str(tmp_path) not in remark.text()
