from dataclasses import replace

import pytest

from adapop.experiments import tables, trial
from adapop.experiments.plans import Arm, CustomData, Item
from adapop.facts.world import sandbox_facts
from adapop.report.record import read_record
from adapop.report.story import outcome_lines
from adapop.report.tables import recall_table
from bench_rows import SEEN, row
from tiny_runs import trained


@pytest.fixture(scope="module")
def few():
    people = sandbox_facts("people")

    def some(facts):
        return tuple(replace(fact, paraphrases=fact.paraphrases[:2]) for fact in facts[::48])

    groups = {group: some(getattr(people, group)) for group in ("forget", "retain", "holdout", "neighbours")}
    return replace(people, **groups, utility=people.utility[::160])


def test_a_run_measures_neighbours_and_tables_have_them(few, tmp_path):
    run = trained(few, tmp_path, "wga", model="people")
    before, after = run.measured(before=True), run.measured()
    assert before.recall("neighbours") == 1 and after.recall("neighbours", "reworded") is not None
    assert run.facts.neighbours == few.neighbours
    assert any(line[0] == "neighbours, as trained" for line in recall_table(before, after).rows)
    assert any("the same subjects from 100" in line for line in outcome_lines(read_record(run)))
    assert "neighbours" not in tables.outcome_table(SEEN).head
    seen = {**SEEN, "GD": [row(0, "gd", neighbours_direct_all=0.25)]}
    table = tables.outcome_table(seen)
    place = table.head.index("neighbours")
    assert {line[0]: line[place] for line in table.rows} == {"AdaPop": "", "WGA": "", "GD": "0.25"}


@pytest.mark.slow
def test_the_second_world_is_a_ground_of_experiments(few):
    world = CustomData(few, "people", {})
    item = Item(Arm("WGA", "wga", changes={"epochs": 1}), 1, custom=world)
    assert (item.config.model, item.config.facts) == ("people", "people")
    values = trial.result(item)
    assert values["failed"] == "" and 0 <= values["neighbours_direct_all"] <= 1
    assert "levels" not in values or not values["levels"]
