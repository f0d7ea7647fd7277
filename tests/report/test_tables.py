from adapop.report.tables import metrics_table, verdict_table
from adapop.training.events import Measured
from records import row


def test_tables_say_what_is_missing():
    table = verdict_table(
        {"rare": {"Not brought back": 1200}, "popular": {"Not brought back": 1, "Leaks when reworded": 2}}
    )
    assert table.head == ("", "rare", "popular")
    assert set(table.rows) == {
        ("Not brought back", "1,200", "1"),
        ("Leaks when reworded", "0", "2"),
        ("facts", "1,200", "3"),
    }
    inside = {"delta_logprob": -1.0, "probability": 0.5}
    needs = "it needs wrong answers"
    for metrics, said in ((inside, True), (inside | {"truth_ratio": 0.5}, False), ({"delta_logprob": -1.0}, False)):
        after = Measured(run="r", epoch=1, rows=(row("forget", "direct", "all", 0.5, **metrics),), full=True)
        assert (needs in metrics_table(after).note) == said
