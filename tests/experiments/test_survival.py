import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from adapop.errors import DataError
from adapop.experiments import survival, survival_tables
from adapop.experiments.engine import finished
from adapop.experiments.results import append_line
from adapop.experiments.survival import Lost, Survival
from adapop.facts.tiers import TIERS


@pytest.mark.parametrize(
    ("looks", "lost"),
    [
        ("1111", None),
        ("1100", 2),
        ("1010", 3),  # it came back once: lost after that
        ("1001", None),  # it came back for good
        ("1000", 1),
        ("0110", 0),  # not held before training
    ],
)
def test_a_fact_is_lost_from_the_look_after_which_it_is_never_held_again(looks, lost):
    assert survival._lost([[look == "1"] for look in looks]) == (lost,)


def test_held_takes_every_token_of_the_answer_in_each_of_the_four_senses():
    facts = [
        [(0.1, 1), (0.2, 1), (0.2, 3)],  # trained question, first rewording, second
        [(0.1, 2), (0.2, 2), (0.2, 1)],
        [(0.1, 1), (0.2, 3), (0.2, 3)],
    ]
    reworded, half, top2, direct = survival._held(facts)
    assert reworded == [True, False, False]
    assert half == [True, True, False]
    assert top2 == [True, True, False]
    assert direct == [True, False, True]


def _row(**changes):
    lost = Lost((3, None, 0), (1, 2, None), (None, None, None), (4, 4, 4))
    about = dict(world="sandbox", method="wga", rate=1e-3, seed=3, epochs=16, looks=4, quick=False, facts="abc")
    return Survival(
        **{**about, "commit": "1", "nll": (0.1, 0.2, 0.3), "nll_reworded": (0.2, 0.2, 0.2), **changes}, lost=lost
    )


def test_rows_are_read_as_written_and_a_torn_last_line_is_made_again(tmp_path):
    path = tmp_path / survival.FILE
    assert survival.rows(path) == []
    append_line(path, _row())
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"world": "peo')
    append_line(path, _row(seed=4))
    assert survival.rows(path) == [_row(), _row(seed=4)]
    content = json.loads(path.read_text(encoding="utf-8").split("\n")[0])
    path.write_text(json.dumps(content | {"seed": "three"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1, is damaged"):
        survival.rows(path)


def _study(effect):
    """Rows of sandbox facts whose lives depend on exposures by `effect`, and on nothing else."""
    random = np.random.default_rng(0)
    facts = survival.facts_of("sandbox").forget
    logs = np.log([fact.score for fact in facts])
    logs = (logs - logs.mean()) / logs.std()
    rows = []
    for seed in (3, 4):
        looks = np.ceil(20 * random.exponential(np.exp(effect * logs))).astype(int)
        lives = tuple(None if look > 64 else int(look) for look in looks)
        nll = tuple(random.uniform(0.1, 0.5, len(facts)).tolist())
        row = _row(seed=seed, nll=nll, nll_reworded=nll[::-1])
        rows.append(replace(row, lost=Lost(lives, lives, lives, lives)))
    return rows


@pytest.mark.parametrize(("effect", "sign"), [(0.6, -1), (0.0, 0)])
def test_the_coefficient_is_found_where_there_is_one_and_not_where_there_is_none(effect, sign):
    pytest.importorskip("statsmodels")
    pytest.importorskip("lifelines")
    from adapop.experiments import survival_tables as tables

    frame = tables.frame_of(_study(effect), "reworded")
    for within in (False, True):
        found = tables.coefficient(frame, [tables.EXPOSURES, *tables.CONFIDENCE], within)
        assert found.low < -effect < found.high, "with a hazard of exp(-effect * exposures)"
        assert (found.high < 0) == (sign < 0)
    assert len(tables.life_table(_study(effect)).rows) == 1


@pytest.mark.slow
def test_a_quick_study_is_made_once_and_its_models_knew_the_facts(tmp_path):
    messages, engine = [], partial(finished, processes=1)
    assert survival.run(tmp_path, (0,), engine, True, messages.append, worlds=("sandbox", "people")) == {}
    rows = survival.rows(tmp_path / survival.FILE)
    assert {(row.world, row.method) for row in rows} == {(w, m) for w in ("sandbox", "people") for m in survival.RATES}
    for row in rows:
        count = len(survival.facts_of(row.world, quick=True).forget)
        assert len(row.nll) == len(row.nll_reworded) == len(row.lost.direct) == count
        assert sum(look == 0 for look in row.lost.direct) < count / 10, "the shipped models know their facts"
    assert survival.run(tmp_path, (0,), engine, True, messages.append, worlds=("sandbox", "people")) == {}
    assert survival.rows(tmp_path / survival.FILE) == rows and "0 to do" in messages[-1]


def test_every_curve_is_drawn_with_its_interval_around_it():
    rows = _study(0.6)
    figure = survival_tables.curves([*rows, *(replace(row, world="no-spread") for row in rows)])
    assert [note.text for note in figure.layout.annotations] == ["sandbox: WGA", "no-spread: WGA"]
    drawn = iter(figure.data)
    for low, high, line in zip(drawn, drawn, drawn):
        assert line.name in TIERS and low.name is high.name is None
        assert len(line.x) == 16 * 4 + 1 and line.y[0] == 1
        inside = np.array([line.y - low.y, high.y - line.y])
        assert inside.min() > -1e-9 and inside.max() > 0.02
