from types import SimpleNamespace

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import Fact, FactSet
from adapop.probes.prompts import ProbeRow, Reply
from adapop.report import published
from adapop.report.beside_paper import _ours, beside, capability_beside
from adapop.training.events import Measured
from records import measured, row


def test_numbers_stand_beside_the_paper_s_where_it_has_them():
    rows = (row("forget", "direct", "all", 0.75, strict=0.5), row("retain", "direct", "all", 0.75, strict=0.75))
    found = Measured(run="r", epoch=1, rows=rows, full=True)
    assert _ours(found, "forget") == "0.500 (accents ignored: 0.750)"
    assert _ours(found, "retain") == "0.750" and _ours(found, "holdout") == "–"
    older = measured(1, 0.2, 0.4, 1.0, 1.0)  # of a run that was made before this was measured
    assert _ours(older, "retain") == "1.000"
    printed = {table.title.split(":")[0]: table for table in published.tables()}
    inside = printed["Inside the model"]
    for line in inside.rows:
        for method, cell in zip(inside.head[1:], line[1:]):
            values = [float(value) for value in cell.replace(",", "").split(" / ")]
            assert list(published.further(line[0], method.lower()).values()) == values, (line[0], method)
    assert published.further("Gemma RWKU", "npo") == {"attacked": 0.485}
    assert published.further("Gemma", "ga") == {"mmlu": 0.25, "hellaswag": 0.26}
    config = make_config("wga", model="meta-llama/Llama-3.1-8B-Instruct")
    assert capability_beside(config, "hellaswag") == (0.73, 0.76), "the paper: before, after"
    assert capability_beside(make_config("wga"), "hellaswag") == (None, None), "not one of the paper's models"
    assert capability_beside(make_config("redirect", model="google/gemma-7b-it"), "mmlu") == (0.47, None)


def probed(fact, kind, recall):
    before, after = (Reply("He", value, value, 1, 0.0, 1, 0.0) for value in (1.0, recall))
    return ProbeRow(fact, "forget", "rare", kind, "?", "gold", before, after)


def run_on(facts, method, model, **more):
    start, end = measured(0, 1.0, 1.0, 1.0, 1.0), measured(1, 0.2, 0.4, 1.0, 1.0)
    config = make_config(method, model=model)
    return SimpleNamespace(config=config, facts=facts, measured=lambda before=False: start if before else end, **more)


@pytest.mark.parametrize(("method", "printed"), [("wga", True), ("idkdpo", False), ("redirect", False)])
def test_nothing_stands_beside_a_method_that_the_paper_did_not_run(method, printed):
    facts = FactSet("duet", (Fact("duet-rare-0", "Who?", "Nobody", score=100.0),))
    found = beside(run_on(facts, method, "meta-llama/Llama-3.1-8B-Instruct"))
    assert (found is not None) == printed
    if found:
        assert found[0].rows[3][:2] == ("retain, after", "0.995 ± 0.003")


def test_a_run_on_rwku_stands_beside_the_papers_attacks_and_internal_metrics():
    attack = Fact("rwku-attack-0", "Say who!", "Nobody", relation="prefix injection")
    blank = Fact("rwku-blank-0", "Fill in the blank: ___", "Nobody", relation="cloze")
    rows = [probed("rwku-attack-0", "prefix injection", 0.25), probed("rwku-blank-0", "fill in the blank", 1.0)]
    facts = FactSet("rwku", (Fact("rwku-forget-0", "Who?", "Nobody", score=100.0),), attacks=(attack, blank))
    run = run_on(facts, "adapop", "Qwen/Qwen2.5-7B-Instruct", probes=lambda: rows)
    lines = {row[0]: row[1:] for row in beside(run)[0].rows}
    assert lines["forget, attacked"] == ("0.144", "0.250"), "as in the paper; a sentence with a blank is no attack"
    assert lines["forget, Δ log p (paper: 3 models)"][0] == "-23", "as in the paper"
    assert lines["retain, KL (paper: 3 models)"][0] == "6.2"
    run.probes = lambda: None
    assert dict((row[0], row[2]) for row in beside(run)[0].rows)["forget, attacked"] == "–"
