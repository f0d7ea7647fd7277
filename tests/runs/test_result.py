import json
import shutil
import zipfile
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import run_events
from adapop.cli.printing import result_text
from adapop.config.presets import RETAIN_KEPT, make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError, RunError
from adapop.probes.measure import quick
from adapop.remark import Remark
from adapop.report.archive import write_archive
from adapop.report.export import export
from adapop.report.page import write_report
from adapop.runs import files
from adapop.runs.amount import few_steps, suited_batch, total_steps, with_steps
from adapop.runs.best import best_epoch, ends_early, epochs_left
from adapop.runs.examples import example
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.result import (
    DAMAGED,
    FORGOT,
    NOTHING,
    PARTLY,
    SOME_WAYS,
    UNKNOWN,
    Result,
    nothing_forgotten,
    remarks,
    result_of,
    retry,
)
from adapop.runs.run import create_run
from adapop.training.events import Measured, RunDone, RunStopped, Saved
from adapop.ui.run.outcome import card_of
from adapop.ui.run.screen import value_of_field
from interrupting import EPOCHS, assert_same_run, config_of, killed
from raised import raised
from records import row
from tiny_runs import copied, ran

KNOWN = {("forget", "direct"): 1.0, ("forget", "reworded"): 0.9, ("retain", "direct"): 1.0, ("utility", "direct"): 0.8}
BEST = dict(keep="best", learning_rate=2e-2)


def finished(folder, facts, before: dict, after: dict, count: int = 8, **settings):
    """A run whose last measurements are these recalls, by group and form."""
    run = create_run(make_config(**settings), facts, None, folder)
    for epoch, recalls in ((0, before), (run.config.epochs, after)):
        rows = [row(group, form, "all", recall, facts=count) for (group, form), recall in recalls.items()]
        run.append(Measured(run=run.id, epoch=epoch, rows=tuple(rows), full=True))
    return run


def after(direct: float, reworded: float, retain: float = 1.0, utility: float = 0.8) -> dict:
    return dict(zip(KNOWN, (direct, reworded, retain, utility)))


def test_a_result_is_named_by_what_is_answered_in_other_words_and_by_what_is_lost(tmp_path, tiny):
    for ends, kind in (
        (after(0.0, 0.2), FORGOT), (after(0.2, 0.6), SOME_WAYS), (after(0.8, 0.6), PARTLY),
        (after(0.99, 0.89), NOTHING), (after(1.0, 0.8), PARTLY),
        (after(0.0, 0.0, retain=0.4), DAMAGED), (after(1.0, 0.9, utility=0.1), DAMAGED)):  # fmt: skip
        result = result_of(finished(tmp_path, tiny, KNOWN, ends))
        said = (kind, 0.9, ends["forget", "reworded"], "reworded")
        assert (result.kind, result.before, result.after, result.form) == said
    one = KNOWN | {("retain", "direct"): 1 / 8}  # one answer that is lost may be chance
    assert result_of(finished(tmp_path, tiny, one, after(0.0, 0.2, retain=0.0))).kind == FORGOT


CHAT = "in chat"


def asked(folder, facts, was: dict, now: dict, count: int = 12) -> Result:
    """The result of a run that was measured in these ways, with these recalls of the facts to forget."""
    before, after = ({("forget", form): recall for form, recall in recalls.items()} for recalls in (was, now))
    return result_of(finished(folder, facts, before, after, count=count))


def test_a_result_looks_at_every_way_of_asking_that_was_measured(tmp_path, tiny):
    was = {"direct": 1.0, "reworded": 0.89, CHAT: 0.42}
    left = "asked as trained, {}% are still answered (100% before), in other words {}% (89% before), in chat {}% "
    left += "(42% before)"
    all_left, none_left = left.format(60, 81, 40), left.format(50, 44, 21)
    chat = "asked in chat, 67% are still answered, more than before (42%)"
    in_all = "forgotten in all forms of the question that were measured"
    for now, kind, sentence in (
        ((0.43, 0.81, 0.67), SOME_WAYS, "Not forgotten: asked in other words, 81% are still answered (89% before), "
            "in chat 67%, more than before (42%). At least half is forgotten only when asked as trained (43% still "
            "answered)."),
        ((0.1, 0.2, 0.67), SOME_WAYS, f"Not forgotten: {chat}. At least half is forgotten only when asked as trained "
            "(10% still answered) and in other words (20% still answered)."),
        ((0.6, 0.81, 0.4), PARTLY, f"Less than half is forgotten: {all_left}."),
        ((0.5, 0.44, 0.21), FORGOT, f"At least half is {in_all}: {none_left}."),
        ((0.25, 0.0, 0.1), FORGOT, f"F{in_all[1:]}: asked as trained, 25% are still answered (100% before), "
            "in other words 0% (89% before), in chat 10% (42% before)."),
    ):  # fmt: skip
        result = asked(tmp_path, tiny, was, dict(zip(was, now)))
        assert (result.kind, result.remark.text(), result.unlearned) == (kind, sentence, kind == FORGOT)


def test_a_way_counts_if_two_of_its_facts_are_answered_before_or_after(tmp_path, tiny):
    for before, after, facts, left in (
        (0.1, 0.1, 12, False), (0.17, 0.17, 12, True), (0.0, 0.3, 12, True), (0.05, 0.05, 100, False),
        (1.0, 1.0, 1, True), (0.5, 0.0, 2, False)):  # fmt: skip
        result = asked(tmp_path, tiny, {"direct": 1.0, CHAT: before}, {"direct": 0.0, CHAT: after}, facts)
        assert result.unlearned is not left and (result.kind == SOME_WAYS) is left, (before, after, facts)


def test_a_run_that_lost_what_was_to_stay_may_have_unlearned_and_an_unmoved_one_has_not(tmp_path, tiny):
    broken = result_of(finished(tmp_path, tiny, KNOWN, after(0.0, 0.0, retain=0.1)))
    assert broken.kind == DAMAGED and broken.unlearned
    assert broken.remark.text() == (
        "Forgotten in all forms of the question that were measured, but the model is badly damaged (see the note "
        "on what it lost): asked as trained, 0% are still answered (100% before), in other words 0% (90% before)."
    )
    assert not result_of(finished(tmp_path, tiny, KNOWN, after(1.0, 0.9))).unlearned
    never = {place: 0.0 for place in KNOWN}
    assert result_of(finished(tmp_path, tiny, never, never)).unlearned, "nothing is answered"


def test_the_notes_report_and_table_of_a_real_models_run_say_where_it_still_answers(tmp_path):
    run = example("smollm2")
    sentence = "Not forgotten: asked in other words, 80% are still answered (89% before), in chat 67%, more"
    kinds = {note.kind: note for note in remarks(run)}
    assert kinds["forgotten_only"].text().startswith(sentence)
    assert f"\nresult: {sentence}" in result_text(run)
    page = write_report([run], tmp_path / "report.html").read_text("utf-8")
    assert f'<p class="warn">{sentence}' in page


def test_the_next_try(tmp_path, tiny):
    never = {place: 0.0 for place in KNOWN}
    unknown = finished(tmp_path, tiny, never, never)
    assert result_of(unknown).kind == UNKNOWN
    assert retry(unknown, result_of(unknown)) == replace(unknown.config, start="sft")
    few = dict.fromkeys(KNOWN, 0.05)  # by chance, or by a word that two answers share
    chance = finished(tmp_path, tiny, few, few)
    assert result_of(chance).kind == UNKNOWN and nothing_forgotten(chance) is None
    assert retry(chance, result_of(chance)).start == "sft"
    one = KNOWN | dict.fromkeys(list(KNOWN)[:2], 0.125)  # of eight facts
    assert result_of(finished(tmp_path, tiny, one, after(0.0, 0.0))).kind == UNKNOWN, "no green tick for one answer"
    assert nothing_forgotten(finished(tmp_path, tiny, one, one)) is None, "as the card says"
    reworded = few | {("forget", "reworded"): 0.6}
    assert result_of(finished(tmp_path, tiny, reworded, reworded)).kind == NOTHING, "known in other words"
    taught = finished(tmp_path, tiny, never, never, start="sft")
    assert retry(taught, result_of(taught)) is None, "taught, and still not answered"
    assert result_of(create_run(make_config(), tiny, None, tmp_path)) is None, "before its end"
    still = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9))  # 4 facts: 5 steps in 5 epochs
    again = retry(still, result_of(still))
    assert total_steps(4, again) == 40 and again.batch == 1 and again.epochs == 10, "as many as there can be"
    most = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9), batch=1, epochs=10, learning_rate=1e-4)
    assert retry(most, result_of(most)).learning_rate == make_config().learning_rate, "far above what was tried"
    most = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9), batch=1, epochs=10, learning_rate=1e-3)
    assert retry(most, result_of(most)).learning_rate == 1e-2
    broken = finished(tmp_path, tiny, KNOWN, after(0.0, 0.0, retain=0.0), learning_rate=4e-3)
    assert retry(broken, result_of(broken)) == replace(broken.config, learning_rate=2e-3)
    forgot = finished(tmp_path, tiny, KNOWN, after(0.0, 0.0))
    assert retry(forgot, result_of(forgot)) is None


def test_of_epochs_that_lost_too_much_the_first_is_kept_and_a_lower_rate_tried(tmp_path, tiny):
    run = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9), keep="best", patience=1, epochs=1)
    for number in (1, 2):
        run.append(run_events.epoch(number))
    result = result_of(run)
    assert (result.kind, result.steps, result.epoch, result.of, result.overshot) == (NOTHING, 1, 1, 2, True)
    assert retry(run, result).learning_rate == run.config.learning_rate / 2
    assert "Epoch 1 of 2 is kept" in card_of(run, result)["about"] and nothing_forgotten(run) is None
    assert [result_of(example(name)).kind for name in ("adapop", "redirect")] == [FORGOT, FORGOT], "those that ship"


def test_a_small_set_gets_fewer_facts_a_step_on_a_model_that_would_not_move():
    real, ours = make_config(model="some/model"), make_config()
    assert (real.batch, total_steps(60, real)) == (32, 10)
    assert few_steps(60, real) == [Remark("few_steps", {"steps": 10, "rate": 1e-4})] and not few_steps(482, real)
    once = replace(ours, epochs=1)
    assert few_steps(256, once) and not few_steps(256, replace(once, epochs=2)) and not few_steps(2, ours)
    assert few_steps(110, real)
    slow = replace(once, learning_rate=1e-3)
    for rows, config, refused in ((60, real, True), (110, real, False), (2, once, False), (2, slow, True)):
        assert bool(few_steps(rows, config, refused_only=True)) == refused
    assert suited_batch(60, real) == 3 and total_steps(60, replace(real, batch=3)) == 100
    assert (suited_batch(482, real), suited_batch(60, ours), suited_batch(2, ours)) == (32, 16, 16)
    for steps, batch, epochs in ((20, 16, 5), (80, 6, 8), (300, 1, 5), (600, 1, 10), (9_999, 1, 10)):
        config = with_steps(60, make_config(batch=16, epochs=5), steps)
        assert (config.batch, config.epochs) == (batch, epochs) and config.micro_batch <= batch


def measured(number, reworded, retain, direct=0.5, full=False):
    rows = [row("forget", "direct", "all", direct), row("retain", "direct", "all", retain)]
    rows += [] if reworded is None else [row("forget", "reworded", "all", reworded)]
    return Measured(run="r", epoch=number, rows=tuple(rows), full=full)


def epochs_of(*pairs):
    """What is measured after each epoch, the original first: (reworded recall of the facts to forget, retained)."""
    return [measured(number, *pair) for number, pair in enumerate(pairs)]


@pytest.mark.parametrize(("pairs", "best"), [
    ([(1.0, 1.0)], None),
    ([(1.0, 1.0), (0.9, 1.0), (0.4, 0.96), (0.1, 0.94)], 2),  # the last one keeps too little
    ([(1.0, 1.0), (0.2, 0.99), (0.2, 1.0), (0.3, 1.0)], 1),  # the first of equals
    ([(1.0, 1.0), (0.0, 0.5), (0.9, 0.8), (0.0, 0.7)], 2),  # none keeps enough: the one that keeps most
    ([(1.0, 0.8), (0.5, 0.77), (0.1, 0.75)], 1),  # 0.76 is 95% of what the original knew
    ([(1.0, 0.0), (0.5, 0.0), (0.1, 0.0)], 2),  # nothing was known, so nothing was lost
    ([(None, 1.0, 1.0), (None, 1.0, 0.3), (None, 1.0, 0.1), (None, 1.0, 0.2)], 2),  # without rewordings
])  # fmt: skip
def test_the_best_epoch_answers_least_of_those_that_keep_what_is_to_stay(pairs, best):
    events = epochs_of(*pairs)
    assert best_epoch(events) == best_epoch([*events, measured(3, None, 1.0, 0.0, full=True)]) == best


def test_training_ends_after_so_many_epochs_that_are_not_better(tmp_path, tiny):
    for pairs, patience, ends in (
        ([(1.0, 1.0), (0.5, 1.0)], 1, False), ([(1.0, 1.0), (0.5, 1.0), (0.5, 1.0)], 1, True),
        ([(1.0, 1.0), (0.5, 1.0), (0.5, 1.0)], 2, False), ([(1.0, 1.0), (0.5, 1.0), (0.6, 1.0), (0.1, 0.5)], 2, True),
        ([(1.0, 1.0), (0.5, 1.0), (0.6, 1.0), (0.4, 1.0)], 2, False),
        ([(1.0, 1.0), (0.5, 1.0), (0.6, 1.0), (0.7, 1.0)], 0, False)):  # fmt: skip
        run = create_run(make_config(keep="best", patience=patience), tiny, None, tmp_path)
        assert not ends_early(run) and epochs_left(run) == 5
        for event in epochs_of(*pairs):
            run.append(event)
        assert ends_early(run) == ends and (epochs_left(run) == 0) == ends, (pairs, patience)


def test_settings_that_cannot_be_meant_are_refused_and_older_files_keep_the_last():
    raised(ConfigError, "only known if every epoch is measured", make_config, keep="best", measure="end")
    raised(ConfigError, "patience has no effect", make_config, patience=2)
    older = json.loads(make_config().to_json())
    del older["keep"], older["patience"]
    assert (RunConfig.from_json(json.dumps(older)).keep, make_config().patience) == ("last", 0)


@pytest.fixture(scope="module")
def best_kept(tiny, tmp_path_factory):
    return ran(config_of(**BEST), tiny, tmp_path_factory.mktemp("kept"))


def test_the_facts_to_retain_are_measured_after_each_epoch_by_what_the_model_replies(best_kept, tiny):
    quicks = [event for event in best_kept.events() if isinstance(event, Measured) and not event.full]
    assert [event.epoch for event in quicks] == [*range(EPOCHS + 1)]
    for event in quicks[1:]:
        model = load_model(best_kept, event.epoch)
        replies = model.generate([fact.question for fact in tiny.retain], best_kept.reply_tokens)
        right = sum(fact.answer in reply for fact, reply in zip(tiny.retain, replies)) / len(replies)
        assert event.recall("retain") == pytest.approx(right, abs=0.02)
    assert len(quick(model, tiny, 3).rows) == sum(row["group"] == "forget" for row in event.rows)


def test_all_that_is_made_of_a_run_is_made_of_its_best_epoch(best_kept, tmp_path):
    best = best_epoch(best_kept.events())
    assert best < best_kept.last_epoch == EPOCHS, "another than the last, or this shows nothing"
    assert best_kept.chosen_epoch == best_kept.measured().epoch == best
    saved = load_file(best_kept.checkpoint(best) / "adapter_model.safetensors")
    assert any(
        not torch.equal(saved[name], value) for name, value in load_model(best_kept, EPOCHS).adapter_state().items()
    )
    assert all(torch.equal(saved[name], value) for name, value in load_model(best_kept).adapter_state().items())
    with zipfile.ZipFile(write_archive(best_kept, tmp_path / "run.zip")) as packed:
        packed.extract("adapter/adapter_model.safetensors", tmp_path)
    export(best_kept, tmp_path / "out")
    for place in (tmp_path / "adapter", tmp_path / "out"):
        written = load_file(place / "adapter_model.safetensors")
        assert all(torch.equal(saved[name], value) for name, value in written.items())
    quicks = {event.epoch: event for event in best_kept.events() if isinstance(event, Measured) and not event.full}
    assert best_kept.measured().recall("forget") == quicks[best].recall("forget"), "the same questions, the same model"
    done = best_kept.events()[-1]
    values = {"epoch": best, "epochs": EPOCHS, "kept": RETAIN_KEPT}
    assert done.epoch == EPOCHS and done.notes[0] in (Remark("best_kept", values), Remark("most_kept", values))
    assert (result_of(best_kept).steps, result_of(best_kept).epoch, result_of(best_kept).of) == (2 * best, best, EPOCHS)
    assert value_of_field(best_kept, 0, 0)["motion"]["epoch"][-1] == best, "the dots end where the result is"


def test_what_was_probed_is_of_the_best_epoch(best_kept):
    best_kept.save_recovery("lens", {"rows": []})
    assert best_kept.recovery() == {"lens": {"rows": []}}
    path = best_kept.folder / "recovery-lens.json"
    content = json.loads(path.read_text("utf-8"))
    assert content["epoch"] == best_epoch(best_kept.events())
    files.keep(path, json.dumps({**content, "epoch": EPOCHS}))
    assert best_kept.recovery() == {}, "of an epoch that is not the result"


@pytest.fixture(scope="module")
def ended(bare, tmp_path_factory):
    return ran(config_of(epochs=6, patience=1, **BEST), bare, tmp_path_factory.mktemp("ended"))


def test_an_early_end_is_said_as_data_and_measured_as_an_end_is(ended):
    best, trained = best_epoch(ended.events()), ended.last_epoch
    assert trained == best + 1 < 6
    done = ended.events()[-1]
    assert isinstance(done, RunDone) and done.epoch == trained and ended.state == "done"
    assert Remark("ended_early", {"epochs": trained, "planned": 6, "patience": 1}) in done.notes
    assert (ended.measured().epoch, ended.chosen_epoch, epochs_left(ended)) == (best, best, 0)


@pytest.mark.parametrize("tables", [0, 1, 2])
def test_a_run_resumed_after_its_last_epoch_and_some_tables_ends_as_early(ended, bare, tables):
    last = max(place for place, event in enumerate(ended.events()) if isinstance(event, Saved))
    run = prepare(ended.config, bare)
    killed(run, last + tables)
    list(execute(run))
    assert run.last_epoch == ended.last_epoch
    assert_same_run(run, ended, ended.last_epoch)


def test_a_best_epoch_that_does_not_read_is_trained_again(best_kept, tmp_path):
    run, best = copied(best_kept, tmp_path), best_epoch(best_kept.events())
    saved = run.checkpoint(best) / "adapter_model.safetensors"
    saved.write_bytes(b"damaged")
    raised(RunError, "those of later epochs, and resume", load_model, run)
    for number in range(best, EPOCHS + 1):
        shutil.rmtree(run.checkpoint(number))
    *_, done = execute(run)
    assert isinstance(done, RunDone) and run.chosen_epoch == best
    assert_same_run(run, best_kept, best)


def test_a_run_that_is_stopped_keeps_its_last_epoch(bare):
    run = prepare(config_of(**BEST), bare)
    for event in execute(run):
        if isinstance(event, Saved) and event.epoch == 2:
            run.request_stop()
    assert isinstance(run.events()[-1], RunStopped) and run.chosen_epoch == run.last_epoch == 2
