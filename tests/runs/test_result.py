from dataclasses import replace

import run_events
from adapop.config.presets import make_config
from adapop.runs.amount import hardly_moves, suited_batch, total_steps, with_steps
from adapop.runs.examples import example
from adapop.runs.result import DAMAGED, FORGOT, NOTHING, PARTLY, UNKNOWN, mended, nothing_forgotten, result_of
from adapop.runs.run import create_run
from adapop.training.events import Measured
from adapop.ui.run.outcome import card_of
from records import row

KNOWN = {("forget", "direct"): 1.0, ("forget", "reworded"): 0.9, ("retain", "direct"): 1.0, ("utility", "direct"): 0.8}


def finished(folder, facts, before: dict, after: dict, **settings):
    """A run whose last measurements are these recalls, by group and form."""
    run = create_run(make_config(**settings), facts, None, folder)
    for epoch, recalls in ((0, before), (run.config.epochs, after)):
        rows = [row(group, form, "all", recall, facts=8) for (group, form), recall in recalls.items()]
        run.append(Measured(run=run.id, epoch=epoch, rows=tuple(rows), full=True))
    return run


def after(direct: float, reworded: float, retain: float = 1.0, utility: float = 0.8) -> dict:
    return dict(zip(KNOWN, (direct, reworded, retain, utility)))


def test_a_result_is_named_by_what_is_answered_in_other_words_and_by_what_is_lost(tmp_path, tiny):
    for ends, kind in (
        (after(0.0, 0.2), FORGOT), (after(0.2, 0.6), PARTLY), (after(0.99, 0.89), NOTHING), (after(1.0, 0.8), PARTLY),
        (after(0.0, 0.0, retain=0.4), DAMAGED), (after(1.0, 0.9, utility=0.1), DAMAGED)):  # fmt: skip
        result = result_of(finished(tmp_path, tiny, KNOWN, ends))
        said = (kind, 0.9, ends["forget", "reworded"], "reworded")
        assert (result.kind, result.before, result.after, result.form) == said


def test_the_next_try(tmp_path, tiny):
    never = {place: 0.0 for place in KNOWN}
    assert result_of(finished(tmp_path, tiny, never, never)).kind == UNKNOWN
    assert result_of(create_run(make_config(), tiny, None, tmp_path)) is None, "before its end"
    still = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9))  # 4 facts: 5 steps in 5 epochs
    again = mended(still, result_of(still))
    assert total_steps(4, again) == 40 and again.batch == 1 and again.epochs == 10, "as many as there can be"
    most = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9), batch=1, epochs=10, learning_rate=1e-4)
    assert mended(most, result_of(most)).learning_rate == make_config().learning_rate, "far above what was tried"
    most = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9), batch=1, epochs=10, learning_rate=1e-3)
    assert mended(most, result_of(most)).learning_rate == 1e-2
    broken = finished(tmp_path, tiny, KNOWN, after(0.0, 0.0, retain=0.0), learning_rate=4e-3)
    assert mended(broken, result_of(broken)) == replace(broken.config, learning_rate=2e-3)
    forgot = finished(tmp_path, tiny, KNOWN, after(0.0, 0.0))
    assert mended(forgot, result_of(forgot)) is None


def test_of_epochs_that_lost_too_much_the_first_is_kept_and_a_lower_rate_tried(tmp_path, tiny):
    run = finished(tmp_path, tiny, KNOWN, after(1.0, 0.9), keep="best", patience=1, epochs=1)
    for number in (1, 2):
        run.append(run_events.epoch(number))
    result = result_of(run)
    assert (result.kind, result.steps, result.epoch, result.of, result.overshot) == (NOTHING, 1, 1, 2, True)
    assert mended(run, result).learning_rate == run.config.learning_rate / 2
    assert "Epoch 1 of 2 is kept" in card_of(run, result)["about"] and nothing_forgotten(run) is None
    assert [result_of(example(name)).kind for name in ("adapop", "redirect")] == [FORGOT, FORGOT], "those that ship"


def test_a_small_set_gets_fewer_facts_a_step_on_a_model_that_would_not_move():
    real, ours = make_config(model="some/model"), make_config()
    assert (real.batch, total_steps(60, real)) == (32, 10)
    assert hardly_moves(60, real) and not hardly_moves(482, real)
    assert suited_batch(60, real) == 3 and total_steps(60, replace(real, batch=3)) == 100
    assert (suited_batch(482, real), suited_batch(60, ours), suited_batch(2, ours)) == (32, 16, 16)
    for steps, batch, epochs in ((20, 16, 5), (80, 6, 8), (300, 1, 5), (600, 1, 10), (9_999, 1, 10)):
        config = with_steps(60, make_config(batch=16, epochs=5), steps)
        assert (config.batch, config.epochs) == (batch, epochs) and config.micro_batch <= batch
