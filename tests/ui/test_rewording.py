"""Facts without rewordings: said on Facts and before Start, two ways to add some, and without them a gap as trained."""

from dataclasses import replace
from pathlib import Path

import pytest

from adapop.config.presets import make_config
from adapop.errors import DataError
from adapop.facts.fact import Fact, FactSet
from adapop.facts.reader import table_of
from adapop.facts.world import sandbox_facts
from adapop.probes.prompts import DIRECT
from adapop.probes.wording import from_templates
from adapop.report.record import read_record
from adapop.report.story import outcome_lines
from adapop.runs.result import result_of
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.training.events import RunDone
from adapop.ui.facts import rewording, upload
from adapop.ui.run import launch, mine, outcome
from adapop.ui.session import identity
from components import ANCHORS, run_values, stand_ins
from raised import raised
from records import measured

PARTS = stand_ins(rewording.Rewording)
TOLD = sandbox_facts().forget
BARE = tuple(Fact(f"row{place}", one.question, one.answer, score=one.score) for place, one in enumerate(TOLD))


def test_facts_of_the_world_get_its_rewordings_and_only_a_bare_set_is_offered_any():
    facts = FactSet("mine", (*BARE[:3], Fact("x", "Who?", "Nobody", score=70.0)))
    offered = PARTS.offered(facts)
    assert offered[PARTS.box].visible and "(3 of 4 facts)" in offered[PARTS.templates].value
    changed = PARTS.from_templates(identity(facts), facts)
    now = changed[PARTS.session.facts]
    assert [one.paraphrases for one in now.forget] == [*(one.paraphrases for one in TOLD[:3]), ()]
    assert changed[PARTS.status]["lines"] == ["3 of 4 facts now have rewordings."]
    assert not PARTS.offered(now)[PARTS.box].visible and not PARTS.offered(None)[PARTS.box].visible
    assert not from_templates(replace(BARE[0], answer="Nobody")), "another answer is another fact"


def test_without_rewordings_a_run_has_a_gap_as_trained_and_it_is_said_before_start(tmp_path):
    bare = FactSet("mine", BARE, sandbox_facts().retain, sandbox_facts().holdout)
    words = launch.look(Worker(tmp_path), "", launch.UNSEEN, "", [], {}, bare, "error", ANCHORS, *run_values())[0]
    assert not any("so few facts" in line for line in words["lines"])
    assert any("measured with the trained questions. The Facts screen can add" in line for line in words["lines"])
    strange = replace(bare, forget=(replace(BARE[0], question="Who?", answer="Nobody", subject="", relation=""),))
    words = launch.look(Worker(tmp_path), "", launch.UNSEEN, "", [], {}, strange, "error", ANCHORS, *run_values())[0]
    assert any("add a column “paraphrases”" in line for line in words["lines"]), "no button would do it"
    assert any("so few facts, one answer more or less is 100% of the result" in line for line in words["lines"])
    words = launch.look(
        Worker(tmp_path), "", launch.UNSEEN, "", [], {}, sandbox_facts(), "error", ANCHORS, *run_values()
    )[0]
    assert not any("as trained" in line for line in words["lines"])
    known = {fact.id: float(place < 4) for place, fact in enumerate(bare.forget)}
    for recall, said in ((known, True), ({}, False)):
        words = launch.look(Worker(tmp_path), "", launch.UNSEEN, "", [], recall, bare, "error", ANCHORS, *run_values())[
            0
        ]
        few = "so few facts that the model knows, one answer more or less is 25% of what it can forget"
        assert any(few in line for line in words["lines"]) == said
    run = create_run(make_config("wga"), bare, None, tmp_path)
    for epoch, ends in ((0, (1.0, 1.0)), (5, (0.1, 0.5))):
        event = measured(epoch, *ends, 1.0, 1.0)
        run.append(replace(event, rows=tuple(one for one in event.rows if one["form"] == DIRECT)))
    run.append(RunDone(run=run.id, epoch=5, seconds=1.0))
    assert run.measured().gap is None
    text = "+40.0 points (+22 to +55)"
    named = "+40.0 points (95% interval +22 to +55)"
    assert f"Gap as trained: {named}" in outcome.card_of(run, result_of(run))["about"]
    assert f"The gap as trained: {named}." in outcome_lines(read_record(run))[0]
    (line,) = mine.listed(Worker(tmp_path), [{"id": run.id, "name": "mine"}], "")
    assert line["gap"] == f"{text}, as trained"


@pytest.mark.parametrize("text", [
    "Who wrote Hamlet?\tShakespeare\t3766\nWho wrote Emma?\tAusten\t900",
    "Who wrote Hamlet?, Shakespeare, 3766\n\nWho wrote Emma?, Austen, 900\n",
    "question;answer;views\nWho wrote Hamlet?;Shakespeare;3766\nWho wrote Emma?;Austen;900",
])  # fmt: skip
def test_typed_and_pasted_facts_are_read_as_a_file(text):
    facts = table_of(Path(upload.typed_file(text))).facts()
    assert [(one.question, one.answer, one.score) for one in facts.forget] == [
        ("Who wrote Hamlet?", "Shakespeare", 3766.0), ("Who wrote Emma?", "Austen", 900.0)]  # fmt: skip
    raised(DataError, "Type a fact first", upload.typed_file, " \n")


@pytest.mark.parametrize(("column", "is_open"), [("views", False), ("freq", False), ("how known", True)])
def test_scores_are_guessed_by_usual_names_and_else_the_chooser_opens(tmp_path, events, column, is_open):
    path = tmp_path / "mine.csv"
    path.write_text(f"question,answer,{column}\nWho wrote Hamlet?,Shakespeare,3766\n", encoding="utf-8")
    changes = events.accept("own", str(path), "own", None)
    assert changes[events.form.mapping].open is is_open
