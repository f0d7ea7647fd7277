"""A cell of the side-by-side with the paper."""

from types import SimpleNamespace

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import Fact, FactSet
from adapop.report.beside_paper import _ours, beside
from adapop.training.events import Measured
from records import measured, row


def test_recall_is_said_both_ways_where_they_differ():
    rows = (row("forget", "direct", "all", 0.75, strict=0.5), row("retain", "direct", "all", 0.75, strict=0.75))
    found = Measured(run="r", epoch=1, rows=rows, full=True)
    assert _ours(found, "forget") == "0.500 (accents ignored: 0.750)"
    assert _ours(found, "retain") == "0.750" and _ours(found, "holdout") == "–"
    older = measured(1, 0.2, 0.4, 1.0, 1.0)  # of a run that was made before this was measured
    assert _ours(older, "retain") == "1.000"


@pytest.mark.parametrize(("method", "printed"), [("wga", True), ("idkdpo", False), ("rt", False), ("redirect", False)])
def test_nothing_stands_beside_a_method_that_the_paper_did_not_run(method, printed):
    start, end = measured(0, 1.0, 1.0, 1.0, 1.0), measured(1, 0.2, 0.4, 1.0, 1.0)
    run = SimpleNamespace(
        config=make_config(method, model="meta-llama/Llama-3.1-8B-Instruct"),
        facts=FactSet("duet", (Fact("duet-rare-0", "Who?", "Nobody", score=100.0),)),
        measured=lambda before=False: start if before else end,
    )
    found = beside(run)
    assert (found is not None) == printed
    if found:
        assert found[0].rows[3][:2] == ("retain, after", "0.995 ± 0.003")
