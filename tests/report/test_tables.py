from adapop.report.tables import metrics_table, verdict_table
from adapop.training.events import Measured
from records import row


def test_a_verdict_that_a_column_has_none_of_is_a_zero_and_one_that_nobody_has_no_row():
    table = verdict_table(
        {"rare": {"Not brought back": 1200}, "popular": {"Not brought back": 1, "Leaks when reworded": 2}}
    )
    assert table.head == ("", "rare", "popular")
    assert set(table.rows) == {
        ("Not brought back", "1,200", "1"),
        ("Leaks when reworded", "0", "2"),
        ("facts", "1,200", "3"),
    }


def test_without_wrong_answers_the_table_says_what_a_truth_ratio_needs():
    inside = {"delta_logprob": -1.0, "probability": 0.5}
    needs = "it needs wrong answers"
    for metrics, said in ((inside, True), (inside | {"truth_ratio": 0.5}, False), ({"delta_logprob": -1.0}, False)):
        after = Measured(run="r", epoch=1, rows=(row("forget", "direct", "all", 0.5, **metrics),), full=True)
        assert (needs in metrics_table(after).note) == said
