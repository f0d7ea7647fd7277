from dataclasses import replace

import pytest

from adapop.facts.fact import Fact, FactSet
from adapop.probes.distance import (
    AS_NEVER_LEARNT,
    OVER,
    UNDER,
    Distance,
    FactDistance,
    ForgetQuality,
    GroupDistance,
    Membership,
)  # fmt: skip
from adapop.report.comparison import comparison
from adapop.report.distance import (
    _state,
    distance_chart,
    distance_sentence,
    distance_tables,
    membership_table,
    run_tables,
)
from adapop.report.page import rendered
from adapop.training.events import ComparedToOracle, Measured
from adapop.training.frames import Frame, Scores
from records import record

PLACES = [("rare", 0.001)] * 22 + [("rare", 0.05)] * 28 + [("popular", 0.05)] * 33 + [("popular", 0.9)] * 17
FACTS = [Fact(f"f{at}", "Who?", "He", "It", score=70.0 + at) for at in range(100)]
DISTANCE = Distance(
    tuple(
        FactDistance(f"f{at}", tier, form, p, 0.05, 0.01, 0.25)
        for form in ("direct", "reworded")
        for at, (tier, p) in enumerate(PLACES)
    ),
    (GroupDistance("forget", "all", "direct", 100, 0.5, 0.25),),
    ForgetQuality(1e-12, -12.0, 0.4, True),
    0.8,
    0.7,
    tuple(Membership(name, 0.1, 0.2) for name in ("mia_loss", "mia_min_k", "mia_min_k_plus_plus", "mia_zlib")),
)


SENTENCE = (
    "Forgotten as if never learnt: 61% (51 to 70%) of facts; over-forgotten 22% (15 to 31%), mostly rare; "
    "under-forgotten 17% (11 to 26%), mostly popular"
)
QUALITY = ["1e-12", "-12.0", "0.40", "prefers wrong answers more than the oracle", "0.80", "0.70"]


def test_the_sentence_the_picture_and_the_tables_hold_every_number():
    figure = distance_chart(DISTANCE, FACTS)
    assert distance_sentence(DISTANCE) == SENTENCE
    (words,) = figure.layout.annotations
    (band,) = figure.layout.shapes
    assert 10**words.y == pytest.approx(band.y1), "an annotation on a log axis takes the logarithm"
    states, groups, quality = distance_tables(DISTANCE)
    assert dict((row[0], row[1:]) for row in states.rows)["in other words, rare"][0] == "50"
    assert groups.rows == (("forget set, as trained, all", "100", "0.50", "25%"),)
    assert [cell for _, cell in quality.rows] == QUALITY
    common = {"tier": "all", "form": "direct", "recall": 0.5, "words": 1.0}
    scores = dict.fromkeys(("mia_loss", "mia_min_k", "mia_min_k_plus_plus", "mia_zlib"), 0.1)
    rows = ({**common, "group": "forget", "facts": 100, **scores}, {**common, "group": "holdout", "facts": 50})
    measured = Measured(run="r", epoch=5, rows=rows, full=True)
    first = membership_table(measured, measured, DISTANCE).rows[0]
    assert first == ("loss", "0.10 (0.04 to 0.25)", "0.10 (0.04 to 0.25)", "0.20", "+12%")
    assert membership_table(older := replace(measured, rows=rows[1:]), older, None) is None


def test_the_states_by_epoch_are_what_the_run_recorded():
    facts = FactSet("mine", tuple(FACTS))
    ps = [0.0] * 20 + [0.05] * 80
    frames = tuple(
        Frame(step, step / 8, {"forget": Scores(tuple(p), (1,) * 100)})
        for step, p in ((0, [0.9] * 100), (4, [0.9] * 100), (8, ps))
    )
    run = record("wga", after=(0.1, 0.2, 1.0, 1.0), facts=facts)
    told = ComparedToOracle(run="r", epoch=1, distance=DISTANCE)
    run = replace(run, events=(*run.events, told), frames=frames)
    (table,) = [table for table in run_tables(run) if table.head[0] == "epoch"]
    assert [row[0] for row in table.rows] == ["0", "1"]
    assert table.rows[0][1:] == ("0% (0 to 4%)", "0% (0 to 4%)", "100% (96 to 100%)")
    assert [cell.split(" (")[0] for cell in table.rows[1][1:]] == ["20%", "80%", "0%"]
    assert SENTENCE in rendered([run])
    assert [one.tier for one in comparison([run, run]).lines if one.metric == "over-forgotten"] == [
        "all", "rare", "popular"]  # fmt: skip


@pytest.mark.parametrize(("p", "state"), [
    (0.0, AS_NEVER_LEARNT), (0.0001, AS_NEVER_LEARNT), (0.3, AS_NEVER_LEARNT), (0.3001, UNDER)])  # fmt: skip
def test_a_frame_s_rounded_probability_is_not_taken_for_forgetting_too_much(p, state):
    assert _state(p, FactDistance("f", "rare", "direct", 0.0, 0.05, 0.00003, 0.3)) == state
    assert _state(p, FactDistance("f", "rare", "direct", 0.0, 0.05, 0.0002, 0.3)) == (OVER if p < 0.0002 else state)
