"""A run's results as DataFrames hold the numbers that its files hold."""

import pandas as pd

from adapop.errors import RunError
from adapop.training.events import Measured, StepDone
from raised import raised


def test_every_table_holds_the_runs_own_numbers(finished):
    steps, events = finished.rows("steps"), [event for event in finished.events() if isinstance(event, StepDone)]
    assert list(steps["forget_loss"]) == [event.forget_loss for event in events]
    assert list(steps["step"]) == list(range(1, len(events) + 1))
    rare = [event.nll_by_tier.get("rare") for event in events]
    assert [None if pd.isna(nll) else nll for nll in steps["nll_rare"]] == rare

    epochs = finished.rows("epochs")
    assert list(epochs["alpha"]) == [event.alpha for event in finished.epochs()]
    assert list(epochs["drift_from_start"]) == [event.row.drift_from_start for event in finished.epochs()]

    measured = finished.rows("measured")
    assert len(measured) == sum(len(event.rows) for event in finished.events() if isinstance(event, Measured))
    keys = {"full": True, "epoch": 1, "group": "forget", "form": "reworded", "tier": "popular"}
    (row,) = measured[(measured[list(keys)] == pd.Series(keys)).all(axis=1)].to_dict("records")
    assert row["recall"] == finished.measured().recall("forget", "reworded", "popular")

    facts = finished.rows("facts")
    assert list(facts["fact"])[: len(finished.facts.forget)] == [fact.id for fact in finished.facts.forget]
    forget = facts[facts["group"] == "forget"]
    assert dict(zip(forget["fact"], forget["beta"])) == finished.betas
    assert list(forget["after_reworded"]) == list(finished.measured().by_fact)
    assert list(forget["before"]) == list(finished.measured(before=True).direct_by_fact)
    assert facts[facts["group"] != "forget"][["after", "beta"]].isna().all(axis=None), "missing is not zero"

    frames, last = finished.rows("frames"), finished.frames()[-1]
    chosen = frames[(frames["step"] == last.step) & (frames["group"] == "forget")]
    assert list(chosen["p"]) == list(last.scores["forget"].p) and list(chosen["answer"]) == list(last.answers)
    assert set(frames["group"]) == set(last.scores)
    held_out = frames[frames["group"] == "holdout"]
    assert set(held_out["fact"]) == {fact.id for fact in finished.facts.holdout}

    probes, rows = finished.rows("probes"), finished.probes()
    assert len(probes) == len(rows) and set(probes["kind"]) == {row.kind for row in rows}
    asked = [row for row in rows if hasattr(row, "unlearned")]
    assert list(probes["unlearned_text"].dropna()) == [row.unlearned.text for row in asked]
    assert "Use one of steps" in raised(RunError, "no rows called 'step'", finished.rows, "step").fix
