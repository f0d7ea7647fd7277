from adapop.report.tables import verdict_table


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
