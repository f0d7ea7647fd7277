import math
from dataclasses import replace

import pytest
import torch

from adapop.model.tokens import encode_facts
from adapop.runs import recording
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.run import FRAMES, find_run
from adapop.training.events import RunFailed, StepDone
from adapop.training.frames import FIRST
from interrupting import EPOCHS, STEPS, assert_same_run, config_of, killed, timeless
from tiny_runs import ran

LAST = EPOCHS * STEPS


@pytest.fixture(scope="module")
def several(tiny):
    """Four facts a group; to one to forget and one held out belong answers of several tokens."""

    def longer(facts):
        return tuple(replace(fact, answer=fact.answer + " indeed" * (2 * (i == 1))) for i, fact in enumerate(facts))

    groups = {group: longer(getattr(tiny, group)) for group in ("forget", "retain", "holdout")}
    return replace(tiny, **groups, utility=())


@pytest.fixture(scope="module")
def recorded(several, tmp_path_factory):
    return ran(config_of(), several, tmp_path_factory.mktemp("recorded"))


def by_itself(model, fact, question):
    """(p, rank) of an answer, from the logits of one row without anything beside it."""
    (row,) = encode_facts(model.tokenizer, [fact], model.system, [question])
    with torch.no_grad():
        logits = model.network(torch.tensor([row.prompt + row.answer])).logits[0].double()
    at = logits[len(row.prompt) - 1 : -1]
    gold = torch.tensor(row.answer)
    nll = -at.log_softmax(-1).gather(1, gold.unsqueeze(1)).mean()
    return math.exp(-nll), 1 + int((at[0] > at[0, gold[0]]).sum())


@pytest.mark.slow
def test_a_frame_twice_an_epoch_or_none_and_those_of_a_resumed_run(recorded, several):
    frames = recorded.frames()
    assert [frame.step for frame in frames] == list(range(LAST + 1))
    assert [frame.epoch for frame in frames] == [step / STEPS for step in range(LAST + 1)]
    for frame in frames:
        whole = frame.step % STEPS == 0
        assert list(frame.scores) == (["forget", "reworded", "retain", "holdout"] if whole else ["forget"])
        assert len(frame.answers) == (4 if whole else 0)
        assert all(len(scores.p) == len(scores.rank) == 4 for scores in frame.scores.values())
    # As one that was begun by a version without frames.
    run = prepare(config_of(), replace(several, holdout=()))
    killed(run, 8)
    assert list(run.frames()[0].scores) == ["forget", "reworded", "retain"]
    (run.folder / FRAMES).unlink()
    list(execute(run))
    assert run.state == "done" and run.frames() == ()
    run = prepare(config_of(), several)
    killed(run, 9)
    with open(run.folder / FRAMES, "ab") as file:
        file.write('{"step": 99, "epoch": "é'.encode()[:-1])  # a kill in the middle of writing a line
    assert all(frame.step <= LAST for frame in run.frames())
    list(execute(find_run(run.id)))
    assert (run.folder / FRAMES).read_bytes() == (recorded.folder / FRAMES).read_bytes()


@pytest.mark.parametrize("epoch", [0, EPOCHS])
def test_frames_are_what_the_model_of_then_says(recorded, several, epoch):
    frame = recorded.frames()[epoch * STEPS]
    model = load_model(recorded, epoch or None)
    questions_by_group = {"reworded": [(fact, fact.paraphrases[0]) for fact in several.forget]}
    questions_by_group |= {
        group: [(f, f.question) for f in getattr(several, group)] for group in ("forget", "retain", "holdout")
    }
    with model.original() if epoch == 0 else torch.no_grad():
        for group, questions in questions_by_group.items():
            expected = [by_itself(model, fact, question) for fact, question in questions]
            assert frame.scores[group].p == pytest.approx([p for p, _ in expected], abs=1e-4), group
            assert frame.scores[group].rank == tuple(rank for _, rank in expected), group
        replies = model.generate([fact.question for fact in several.forget], recorded.reply_tokens)
        assert frame.answers == tuple(reply[:FIRST] for reply in replies)


@pytest.mark.slow
def test_a_run_s_numbers_do_not_depend_on_its_frames(recorded, several, monkeypatch):
    states = []
    for name in ("after_step", "after_epoch"):
        original = getattr(recording.Recording, name)

        def watched(self, *given, original=original):
            before = torch.get_rng_state()
            original(self, *given)
            states.append(torch.equal(before, torch.get_rng_state()))

        monkeypatch.setattr(recording.Recording, name, watched)
    without = ran(config_of(frames=0), several)
    assert not (without.folder / FRAMES).exists() and without.frames() == ()
    assert timeless(without.events()) == timeless(recorded.events())
    assert_same_run(ran(config_of(frames=2), several), recorded)
    assert len(states) > LAST and all(states)


def test_frames_are_there_while_a_run_goes_on_or_fails(several):
    run, counts = prepare(config_of(epochs=1), several), []
    for event in execute(run):
        counts.append((type(event), len(run.frames())))
    assert counts[[kind for kind, _ in counts].index(StepDone)][1] == 1, "before the first step there is one"
    assert counts[-1][1] == 3
    run = prepare(config_of(learning_rate=1e30, schedule="constant"), several)
    last = list(execute(run))[-1]
    assert isinstance(last, RunFailed) and last.message.startswith("Epoch 1, step 2")
    assert all(math.isfinite(p) for frame in run.frames() for p in frame.scores["forget"].p)


@pytest.mark.quick("changes0")
@pytest.mark.parametrize("changes", [{"retain_signal": "ema"}, {"include_tail": True}])
def test_the_retain_set_is_recorded_whatever_the_controller_watches(several, changes):
    run = ran(config_of(epochs=1, **changes), several)
    model, last = load_model(run), run.frames()[-1]
    for group in ("retain", "forget"):
        found = [by_itself(model, fact, fact.question)[0] for fact in getattr(several, group)]
        assert last.scores[group].p == pytest.approx(found, abs=1e-4)


def test_where_only_some_facts_are_asked_a_frame_has_their_replies_and_no_others(several):
    frame = ran(config_of(epochs=1, measure_per_tier=1), several).frames()[-1]
    replies = [reply for reply in frame.answers if reply is not None]
    assert len(frame.answers) == len(several.forget) > len(replies) == len({fact.tier for fact in several.forget})
