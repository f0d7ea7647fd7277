"""A cell of the side-by-side with the paper."""

from adapop.report.beside_paper import _ours
from adapop.training.events import Measured
from records import measured, row


def test_recall_is_said_both_ways_where_they_differ():
    rows = (row("forget", "direct", "all", 0.75, strict=0.5), row("retain", "direct", "all", 0.75, strict=0.75))
    found = Measured(run="r", epoch=1, rows=rows, full=True)
    assert _ours(found, "forget") == "0.500 (accents ignored: 0.750)"
    assert _ours(found, "retain") == "0.750" and _ours(found, "holdout") == "–"
    older = measured(1, 0.2, 0.4, 1.0, 1.0)  # of a run that was made before this was measured
    assert _ours(older, "retain") == "1.000"
