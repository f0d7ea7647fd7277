"""One bit of a run's files is another: the run is named as damaged, or reads; and never as another's weights."""

import random

import pytest

from adapop.errors import AdaPopError, RunError
from adapop.report.page import rendered
from adapop.report.record import read_record
from adapop.runs import checkpoints
from adapop.runs.inputs import check_inputs
from adapop.runs.listed import damage_of
from tiny_runs import RELEARNT, copied

TEXTS = (
    "config.json", "facts.jsonl", "run.json", "events.jsonl", "frames.jsonl", "recovery-relearn.json", "model.json",
    "epoch-1/state.json", "epoch-1/adapter_config.json",
)  # fmt: skip
FLIPS = 12  # of each file


@pytest.fixture(scope="module")
def run(other, tmp_path_factory):
    """A run that may be changed, with what a recovery probe found."""
    run = copied(other, tmp_path_factory.mktemp("flipped"))
    run.save_recovery("relearn", RELEARNT | {"returned": []})
    return run


def flipped(path, seed):
    """Flips one bit of a file; returns what puts it back."""
    content = path.read_bytes()
    place, bit = (source := random.Random(seed)).randrange(len(content)), source.randrange(8)
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    path.write_bytes(changed)
    return lambda: path.write_bytes(content)


@pytest.mark.quick("events.jsonl", "frames.jsonl", "recovery-relearn.json", "epoch-1/state.json")
@pytest.mark.parametrize("name", TEXTS)
def test_a_flipped_bit_is_named_or_reads(run, name):
    def whole():
        check_inputs(run)
        run.frames()
        rendered([read_record(run)], "")
        if name.startswith("epoch-1"):
            checkpoints.adapter(run, 1)
            checkpoints.trainer_state(run, 1)

    named = 0
    for seed in range(FLIPS):
        restore = flipped(run.folder / name, seed)
        damage_of(run)  # which raises nothing
        try:
            whole()
        except AdaPopError:
            named += 1
        restore()
    whole()
    assert named >= 1, "a flip in a name, a bracket or a quotation mark cannot pass"


@pytest.mark.parametrize("name", [checkpoints.ADAPTER, checkpoints.OPTIMIZER])
def test_a_flipped_bit_of_a_tensor_is_always_named(run, name):
    for seed in range(FLIPS):
        restore = flipped(run.checkpoint(1) / name, seed)
        with pytest.raises(RunError, match=name):
            checkpoints.adapter(run, 1)
            checkpoints.trainer_state(run, 1)
        restore()
