"""The gap is one number: of one run, every screen, the report, the API and the command line say the same."""

import json
import re
from argparse import Namespace
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from statistics import fmean

import gradio as gr
import pytest

from adapop import cli
from adapop.cli import printing
from adapop.config.presets import make_config
from adapop.facts.tiers import TIERS
from adapop.report import figures, table, write_report
from adapop.report.comparison import comparison, table_rows
from adapop.report.record import read_record
from adapop.report.recorded import results
from adapop.runs.examples import example
from adapop.runs.listed import all_runs
from adapop.runs.result import result_of
from adapop.runs.states import STEPS
from adapop.service.worker import Worker
from adapop.training.events import Measured
from adapop.ui.api import Api
from adapop.ui.compare import by_epoch
from adapop.ui.parts import field
from adapop.ui.probe import leaks
from adapop.ui.run import outcome
from adapop.ui.story.content import story
from tiny_runs import ran

TEXT = {"wga": "+57.0 points (+44 to +67)", "adapop": "+13.2 points (-1 to +27)"}


@pytest.fixture(params=TEXT)
def name(request):
    return request.param


def recalls_of(name: str) -> tuple[float, float]:
    """Rare and popular recall in all held-out rewordings, read off the log by hand."""
    lines = map(json.loads, (example(name).folder / "events.jsonl").read_text("utf-8").splitlines())
    (rows,) = (line["rows"] for line in lines if line.get("full") and line["epoch"])
    place = {"group": "forget", "form": "reworded"}
    found = {row["tier"]: row["recall"] for row in rows if place.items() <= row.items()}
    return found["rare"], found["popular"]


def test_every_place_says_the_same_of_one_run(name, tmp_path):
    run, text = example(name), TEXT[name]
    rare, popular = recalls_of(name)
    gap = run.measured().gap
    assert gap.mean == pytest.approx(popular - rare) and table.signed(gap) == text
    assert run.measured(before=True).gap.mean == 0

    (state,) = [one for one in story()["states"] if (one["name"], one["epochs"], one["anchors"]) == (name, 5, None)]
    assert table.signed(type(gap)(**state["gap"])) == text, "Story"
    tiers, letters = story()["facts"]["tier"], [ord(letter) - ord("A") for letter in state["by_fact"]]
    drawn = [[share for share, tier in zip(letters, tiers) if tier == end] for end in ("popular", "rare")]
    assert (fmean(drawn[0]) - fmean(drawn[1])) / STEPS == pytest.approx(gap.mean), "its dots"

    card = outcome.card_of(run, result_of(run))["about"]
    named = table.signed(gap, named=True)
    assert f"Gap: {named}." in card, "Run"
    events = [event for event in run.events() if isinstance(event, Measured)]
    chart, left = figures.recall_chart(events, 5), run.measured().recall("forget", "reworded")
    marks = {item.name.split(",")[0]: item.y[-1] for item in chart.data if "all other" in (item.name or "")}
    assert (marks["rare"], marks["popular"]) == (rare, popular), "the ends of its chart"
    assert f"gap {text.split()[0]}" in [note.text for note in chart.layout.annotations], "its bracket"
    motion, tiers = field.motion_of(run, field.frames_of(run)), field.dots(run.facts.forget)["tier"]
    ends = [[share for share, tier in zip(motion["answered"][-1], tiers) if tier == end] for end in ("popular", "rare")]
    assert (fmean(ends[0]) - fmean(ends[1])) / field.SURE == pytest.approx(gap.mean, abs=1 / field.SURE), "its dots"
    assert motion["wordings"] == 4 and motion["answered"][1:-1] == [None] * (len(run.frames()) - 2)
    table_at_end = field.shares(run.events())[-1]
    assert f"{100 * left:.0f}% are" in card
    assert (table_at_end["reworded"]["all"], table_at_end["wordings"]) == (left, "in other words"), "its table"

    with gr.Blocks():
        found = leaks.Leaks(gr.HTML(), gr.Column(), *leaks._results(), gr.Dropdown(), None)
    shown = str(found.show(run, "forget")[found.heatmap.heading])
    assert f"all facts {text}" in shown, "Probe"

    other = "adapop" if name == "wga" else "wga"
    contest = comparison([read_record(run), read_record(example(other))])
    assert contest.contestants[0].lead("reworded") == contest.outcomes[1].lead("reworded") == gap, "Compare"
    rows = [row for row in table_rows(contest) if row["metric"] == "gap" and row["contestant"] == "1"]
    assert [(row["value"], row["low"]) for row in rows] == [(gap.mean, gap.low)]
    assert any(text in cell.replace("\n", " (") + ")" for part in contest.results for row in part.rows for cell in row)

    epochs, ends = by_epoch._by_contestant([run, example(other)], {})
    drawn = by_epoch._lines(epochs, ends, "reworded").data
    assert rare in [item.y[0] for item in drawn if item.name == "rare, all other wordings"]

    page = write_report([run], tmp_path / "report.html").read_text("utf-8")
    assert set(re.findall(r"gap: ([^<&]*?points \([^)]*\))", page, re.I)) == {named}, "report"

    status = Api(Worker(tmp_path)).status(run.id)
    assert status["gap"] == {"mean": gap.mean, "low": gap.low, "high": gap.high}, "API"

    assert f"gap: {text}" in printing.result_text(run), "command line"


def test_where_only_some_facts_are_asked_the_dots_are_theirs(small):
    wordless, *others = small.forget
    facts = replace(small, forget=(replace(wordless, paraphrases=()), *others), holdout=(), utility=())
    run = ran(make_config(epochs=1, measure_per_tier=2), facts)
    after, tiers = run.measured(), field.dots(facts.forget)["tier"]
    shares = dict(zip(facts.forget, field.motion_of(run, field.frames_of(run))["answered"][-1], strict=True))
    drawn = {
        tier: [share for share, its in zip(shares.values(), tiers) if its == tier and share is not None]
        for tier in TIERS
    }
    assert {len(tier_shares) for tier_shares in drawn.values()} <= {1, 2} and shares[facts.forget[0]] is None
    for tier, tier_shares in drawn.items():
        recall = after.recall("forget", "reworded", tier)
        assert fmean(tier_shares) / field.SURE == pytest.approx(recall, abs=1 / field.SURE)


def test_the_list_of_runs_has_it_and_nothing_else_is_the_gap(monkeypatch):
    """Not of the trained question, not of one rewording after an epoch, and of recorded runs the same difference."""
    monkeypatch.setenv("ADAPOP_RUNS", str(example("wga").folder.parent))
    assert "example-wga" in [run.id for run in all_runs()]
    with redirect_stdout(StringIO()) as output:
        cli.runs.runs(Namespace(delete=[], json=True))
    rows = {row["run"]: row for row in map(json.loads, output.getvalue().splitlines())}
    assert rows["example-wga"]["gap"]["mean"] == example("wga").measured().gap.mean
    quick = [event for event in example("wga").events() if getattr(event, "full", None) is False]
    assert len(quick) == 6 and not any(event.gap for event in quick)
    assert not any("gap" in (note.text or "") for note in figures.recall_chart(quick, 5).layout.annotations)
    one = next(one for one in results() if (one.method, one.preset) == ("wga", "paper"))
    assert one.gap == one.lead("reworded") and one.gap.mean > 0.4
