from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from adapop.config.presets import make_config, untouched
from adapop.errors import LimitError
from adapop.runs.examples import example
from adapop.runs.execute import execute, prepare
from adapop.runs.lock import QUEUED, held
from adapop.runs.result import result_of
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.training.events import RunFailed, RunStopped
from adapop.ui.run import mine, outcome, settings
from adapop.ui.run.screen import RunScreen, field_updates, value_of_field
from browsing import HOSTILE
from components import stand_ins
from raised import raised
from run_events import START, STEPS
from tiny_runs import copied, tiny_config

CHOSEN = {"source": "sandbox"}  # what a browser has stored
FIELD, CARD = gr.State(), stand_ins(outcome.Card)


@pytest.fixture
def worker(tmp_path):
    return Worker(tmp_path / "runs")


def press(worker, entries, current, race=None, **event):
    return mine.pressed(worker, entries, current, race or {"runs": [], "refused": []}, SimpleNamespace(**event))


def test_the_card_leads_to_probe_and_says_what_was_known_which_epoch_is_kept_and_why():
    run = example("adapop")
    updates = CARD.updates(run, owned=True)
    about = updates[CARD.card]["about"]
    assert updates[CARD.card]["kind"] == "half" and about.startswith(
        "45% are still answered when asked in other words, 100% were before."
    )
    assert about.endswith("Held-out facts answered: 81%, 100% before."), "the cost stands beside it"
    assert updates[CARD.card]["title"] == "AdaPop: At least half forgotten"
    of_another = outcome.card_of(example("smollm2"), result_of(example("smollm2")))
    assert of_another["title"].startswith("AdaPop on smollm2: ")
    assert updates[CARD.probe].visible and not updates[CARD.next_run].visible
    assert CARD.updates(None, owned=True)[CARD.card] == {"kind": ""}
    assert outcome.card_of(run, replace(result_of(run), after=0.1))["kind"] == "forgot"
    run = example("wga")
    for before, others_unknown in ((0.23, True), (0.9, False)):
        about = outcome.card_of(run, replace(result_of(run), before=before))["about"]
        assert (outcome.RESULT_FEW in about) is others_unknown
    for best, why in (("best_kept", "that keep 95%"), ("most_kept", "No epoch keeps 95%"), ("", "")):
        about = outcome.card_of(run, replace(result_of(run), best=best))["about"]
        assert (("Epoch 5 of 5 is kept" in about), why in about) == (bool(best), True)
    card = outcome.card_of(run, result_of(run))
    assert card["kind"] == "some_ways" and card["title"] == "WGA: Still known in some ways of asking"
    assert card["about"].startswith(
        "When asked in other words, 53% are still answered. At least half is forgotten only when asked as trained ("
    )
    broken = replace(result_of(run), kind="damaged", lost=("retain", 1.0, 0.2))
    assert "the retain set only" in (about := outcome.card_of(run, broken)["about"]) and "Not forgotten: " in about


def test_a_run_whose_numbers_broke_is_damaged_and_tried_again_at_the_usual_rate(tmp_path, tiny):
    run = prepare(tiny_config(epochs=3, learning_rate=1e30), tiny, tmp_path)
    assert [*execute(run)][-1].diverged
    updates = CARD.updates(run, owned=True)
    assert updates[CARD.card]["kind"] == "damaged" and "no longer finite" in updates[CARD.card]["about"]
    usual = untouched(run.config).learning_rate
    assert updates[CARD.next_run].visible and updates[CARD.next_run].value == f"Try rate {usual:g}"
    screen = stand_ins(RunScreen)
    buttons = screen.show(worker := Worker(tmp_path), run.id)
    assert not buttons[screen.resume].visible, "it would end so again"
    worker.submit = lambda config, facts: run
    model, method, preset = run.config.model, run.config.method, run.config.preset
    assert outcome.start_next(worker, run.id, model, method, preset)[3:] == (3, run.config.batch, usual)
    for form in (("people", method, preset), (model, "npo", preset), (model, method, "gentle")):
        assert outcome.start_next(worker, run.id, *form)[3:] == (gr.skip(),) * 3, "the form holds another method"


def test_a_public_page_makes_no_run_of_a_model_or_a_length_that_it_does_not_offer(worker, tiny, public, monkeypatch):
    raised(gr.Error, "does not run that model", outcome.run_again, worker, example("smollm2"))
    monkeypatch.setenv("ADAPOP_MAX_EPOCHS", "3")
    raised(gr.Error, "ADAPOP_MAX_EPOCHS", outcome.run_again, worker, example("adapop"))
    raised(LimitError, "ADAPOP_MAX_EPOCHS", worker.submit, make_config(), tiny)


def test_results_of_another_set_step_aside_by_name(worker, tiny):
    run = create_run(make_config(), tiny, None, worker.root)
    other = replace(tiny, name=HOSTILE, forget=tiny.retain)
    said = outcome.set_note(worker, run.id, other, CHOSEN)
    assert said["name"] == tiny.name and "<" not in said["now"] and "$" not in said["now"]
    assert outcome.set_note(worker, run.id, tiny, CHOSEN) == {"name": ""}
    rescored = replace(tiny, forget=tuple(replace(fact, score=5.0) for fact in tiny.forget))
    assert outcome.set_note(worker, run.id, rescored, CHOSEN) == {"name": ""}, "the same facts"
    assert outcome.set_note(worker, run.id, replace(tiny, forget=(*tiny.forget, *tiny.retain)), CHOSEN) == {"name": ""}
    assert all(outcome.set_note(worker, one, other, CHOSEN) == {"name": ""} for one in ("example-adapop", ""))
    assert outcome.set_note(worker, run.id, other, {}) == {"name": ""}, "a link was opened, and no set chosen"


def test_a_run_and_those_of_a_race_are_remembered_once_and_others_never(worker, tiny):
    first, second = (create_run(make_config(method), tiny, None, worker.root).id for method in ("adapop", "wga"))
    entries = mine.remembered(worker, None, first, {"runs": [second, "example-wga", 7]})
    assert [entry["id"] for entry in entries] == [first, second]
    assert [entry["name"] for entry in entries] == ["AdaPop 2", "WGA 1"]
    assert mine.remembered(worker, entries, second, None) == entries
    assert mine.remembered(worker, "hostile", "../../etc", {"runs": "x"}) == []
    with held(worker.root / first, QUEUED):  # the other's app has ended
        rows = [(row["set"], row["state"], row["current"]) for row in mine.listed(worker, entries, second)]
    assert rows == [(tiny.name, "queued", False), (tiny.name, "interrupted", True)]
    assert [name for _, name in mine.choices(worker, entries)][:2] == [first, second]
    assert ("example-wga" in dict(map(reversed, mine.choices(worker, entries, examples=False)))) is False


@pytest.mark.parametrize("state", ["stopped", "failed", "interrupted"])
def test_the_row_of_a_resumed_run_changes_with_its_state_and_rests_in_between(worker, tiny, monkeypatch, state):
    run = create_run(make_config(), tiny, None, worker.root)
    events = {"stopped": RunStopped(run=run.id, epoch=1), "failed": RunFailed(run=run.id, message="Full.", fix="Wait.")}
    run.append(events.get(state, replace(START, run=run.id)))
    entries, screen = mine.remembered(worker, [], run.id, None), stand_ins(RunScreen)

    def row_and_phase():
        (row,) = mine.listed(worker, entries, run.id)
        return row["state"], screen.show(worker, run.id)[screen.follower.phase]

    assert row_and_phase() == (state, (run.id, state))
    monkeypatch.setattr(worker, "_waiting", {run.id: ""})  # Resume was pressed
    row, phase = row_and_phase()
    assert row == "queued" and phase != (run.id, state), "the page looks at the list anew"
    monkeypatch.setattr(worker, "_waiting", {})
    with held(run.folder):
        phases = set()
        for event in (replace(START, run=run.id), *STEPS):
            run.append(event)
            phases.add(row_and_phase())
        assert len(phases) == 1, "who renames it is not disturbed"
    assert row_and_phase() == ("interrupted", (run.id, "interrupted"))


def test_a_run_is_opened_renamed_compared_and_deleted_but_for_one_under_way_or_a_stranger_s(worker, tiny):
    run, other = (create_run(make_config(), tiny, None, worker.root) for _ in range(2))
    entries = mine.remembered(worker, [], run.id, {"runs": [other.id]})
    assert press(worker, entries, "", what="open", run=run.id)[0] == run.id
    assert press(worker, entries, "", what="report", run=run.id) == [gr.skip()] * 5, (
        "it gives the file, and opens nothing"
    )
    renamed = press(worker, entries, run.id, what="rename", run=run.id, name=f" {HOSTILE} " + "x" * 99)[4]
    assert renamed[0]["name"] == f"{HOSTILE} {'x' * 99}"[: mine.MOST_NAME] and renamed[1] == entries[1]
    assert press(worker, entries, run.id, what="compare", run=run.id)[3]["runs"] == [run.id]
    name, _, _, _, left = press(worker, entries, run.id, what="delete", run=run.id)
    assert name == "" and [entry["id"] for entry in left] == [other.id] and not run.folder.exists()
    assert press(worker, left, "", what="delete", run=other.id)[0] == gr.skip(), "another run stays on the page"
    run = create_run(make_config(), tiny, None, worker.root)
    with held(run.folder), pytest.raises(gr.Error, match="under way"):
        press(worker, [], "", what="delete", run=run.id)
    for name in ("example-wga", "../x", None, 7):
        assert press(worker, [], "", what="delete", run=name) == [gr.skip()] * 5
    assert run.folder.exists()


def test_another_set_changes_the_facts_a_step_that_nobody_chose(sandbox):
    few = replace(sandbox, forget=sandbox.forget[:60])
    real = "HuggingFaceTB/SmolLM2-135M-Instruct", "adapop", "paper"
    assert settings._batch_of(few, 256, "loaded", 32, *real) == (3, 60)
    assert settings._batch_of(few, 256, "loaded", 8, *real) == (gr.skip(), 60), "a visitor's own"
    assert settings._batch_of(few, 256, "", 32, *real) == (gr.skip(), 60), "the browser may hold a visitor's own"
    assert settings._batch_of(sandbox, 60, "loaded", 3, *real)[1] == len(sandbox.forget)
    assert settings._batch_of(None, 60, "loaded", 3, *real) == (3, 60)


def test_a_finished_run_is_shown_with_all_its_frames(finished):
    events, frames = finished.events(), finished.frames()
    value = field_updates(FIELD, finished, events, -1)[FIELD]
    assert len(frames) > 1
    assert value["motion"]["epoch"] == [round(frame.epoch, 3) for frame in frames]
    assert value["facts"]["question"] == [fact.question for fact in finished.facts.forget]
    (last,) = [one for one in value["shares"] if one["epoch"] == 1]
    assert last["reworded"]["all"] == finished.measured().recall("forget", "reworded"), "as its card has it"
    assert [one["wordings"] for one in value["shares"]] == ["in other words"] * 2
    held, ends = value["held"], [frame for frame in frames if "holdout" in frame.scores]
    assert held["facts"]["question"] == [fact.question for fact in finished.facts.holdout]
    assert held["motion"]["epoch"] == [0, 1], "the cost is recorded where an epoch ends"
    assert held["motion"]["p"][1] == [round(1000 * p) for p in ends[1].scores["holdout"].p]
    assert finished.id not in str(value), "who has a link reads this too"
    events = finished.events()
    steps = [place for place, event in enumerate(events) if event.kind == "step_done"]
    last = finished.frames()[-1].step
    assert len(steps) == last, "the last frame is at the last step"
    assert FIELD in field_updates(FIELD, finished, events, steps[-1])
    assert field_updates(FIELD, finished, [*events, events[steps[-1]]], len(events) + 1) == {}
    assert value_of_field(finished, 0, 0, 0)["motion"]["epoch"] == [0], "a stopped run ends where it was saved"
    assert value_of_field(finished, 0, 0, 0)["held"]["motion"]["epoch"] == [0]
    assert field_updates(FIELD, None, [], -1) == {FIELD: None}


@pytest.mark.parametrize("name", ["facts.jsonl", "frames.jsonl"])
def test_what_is_damaged_hides_the_picture_and_nothing_else(finished, name):
    run = copied(finished)
    (run.folder / name).write_text("no row\n", encoding="utf-8")
    assert field_updates(FIELD, run, finished.events(), -1) == {FIELD: None}


def test_a_list_that_another_tab_changed_is_read_again(worker):
    run = create_run(tiny_config(), example("adapop").facts, None, worker.root)
    entries = [{"id": run.id, "name": "theirs"}, {"id": "ga-0123456789abcdef", "name": "of nobody"}]
    *unchanged, now = press(worker, entries, "", what="look")
    assert now == entries[:1] and all(one == gr.skip() for one in unchanged)
