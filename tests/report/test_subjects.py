from dataclasses import replace

from adapop import Fact, FactSet
from adapop.report.story import outcome_lines
from adapop.report.tables import subject_table
from records import record

NAMES = ("Nell Okabe", "Nell Okabe", "Ivo Brandt", "Ivo Brandt", "Nell Okabe")
FACTS = FactSet("own", tuple(Fact(f"{i}", f"Which {i}?", "x", subject=name) for i, name in enumerate(NAMES)))


def of_run(before, after, reworded=(), known=()):
    done = record("satimp", after=(0.2, 0.6, 1.0, 0.9), facts=FACTS)
    start, end, last = done.events
    start = replace(start, direct_by_fact=before, most_by_fact=known)
    end = replace(end, direct_by_fact=after, most_by_fact=reworded)
    return replace(done, events=(start, end, last))


def test_a_subject_says_how_many_of_its_facts_are_still_answered_and_in_which_way():
    reworded, known = (0.0, 0.75, 0.0, 0.25, None), (1.0, 0.0, 0.0, 0.0, None)
    told = of_run((1.0, 1.0, 1.0, 0.4, 1.0), (1.0, 0.0, 0.0, 0.0, 0.0), reworded, known)
    table = subject_table(told)
    assert table.rows == (
        ("Nell Okabe", "3", "3 of 3", "1 of 3", "1 of 2", "1 of 2", "2 of 3"),
        ("Ivo Brandt", "2", "1 of 2", "0 of 2", "0 of 2", "0 of 2", "0 of 2"),
    )


def test_without_rewordings_only_the_trained_question_counts_and_what_was_not_asked_is_no_zero():
    told = of_run((1.0, None, 1.0, 1.0, 1.0), (0.0, None, None, None, 0.0))
    assert subject_table(told).rows == (
        ("Ivo Brandt", "2", "2 of 2", "not asked", "not asked", "not asked", "not asked"),
        ("Nell Okabe", "3", "2 of 2", "0 of 2", "not asked", "not asked", "0 of 2"),
    )


def test_there_is_no_such_table_where_each_subject_has_one_fact_or_nothing_was_measured_by_fact():
    told = of_run((1.0,) * 5, (0.0,) * 5)
    alone = tuple(replace(fact, subject=fact.id) for fact in FACTS.forget)
    assert subject_table(replace(told, facts=replace(FACTS, forget=alone))) is None
    assert subject_table(of_run((), ())) is None


def test_what_is_answered_in_other_words_stands_beside_what_was_before():
    """Of a fact that was never answered so, 0% afterwards proves nothing."""
    done = record("satimp", after=(0.2, 0.6, 1.0, 0.9), facts=FACTS)
    reworded = [done.before.recall("forget", "reworded"), done.after.recall("forget", "reworded")]
    assert None not in reworded
    said = " ".join(outcome_lines(done))
    assert "Asked in other words, it answered {:.0%} before and {:.0%} after".format(*reworded) in said
