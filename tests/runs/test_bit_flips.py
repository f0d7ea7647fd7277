import random
import re
import shutil

import pytest

from adapop.cli import main
from adapop.errors import AdaPopError, RunError
from adapop.report.page import rendered
from adapop.report.record import read_record
from adapop.runs import checkpoints
from adapop.runs.inputs import check_inputs
from adapop.runs.listed import damage_of
from tiny_runs import RELEARNT, commands_on, copied

TEXTS = (
    "config.json", "facts.jsonl", "run.json", "events.jsonl", "frames.jsonl", "recovery-relearn.json", "model.json",
    "epoch-1/state.json", "epoch-1/adapter_config.json",
)  # fmt: skip
FLIPS = 12  # of each file
FIGURE = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the name that plotly draws for a figure


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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TEXTS[1:], "probes.jsonl", f"epoch-1/{checkpoints.ADAPTER}"])
def test_every_command_names_a_flipped_bit_or_works_and_no_frame_changes_what_it_says(
    finished, run, tmp_path, capsys, name
):
    """Every command that reads a run, on a whole one and on one that was interrupted before its end. What becomes of
    another setting is asked in test_damaged_runs."""

    def all_commands(seed=None):
        """(its name, exit status, what it printed, the pages so far) of each."""
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        shutil.rmtree(out := tmp_path / "out", ignore_errors=True)
        out.mkdir()
        broken, sound, interrupted = copied(finished), copied(run), copied(finished, name="adapop-00000000000000cc")
        log = interrupted.folder / "events.jsonl"
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
        if seed is not None:
            for one in (broken, interrupted):
                flipped(one.folder / name, seed)
        compared = ["report", broken.id, sound.id, "--out", str(out / "c.html")]
        deleted = ["runs", "--delete", broken.id]
        done = []
        for command in (*commands_on(broken.id, out), ["resume", interrupted.id], compared, ["runs"], deleted):
            status, said = main(command), capsys.readouterr()
            assert status in (0, 1, 2, 3) and "Traceback" not in said.err, (command, said)
            pages = [FIGURE.sub("", path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.html"))]
            done.append((command[0], status, said.out, hash(tuple(pages))))
        assert not broken.folder.exists(), "and is gone"
        return done

    usual = all_commands() if name == "frames.jsonl" else ()
    for seed in range(3 if usual else 1):
        after = all_commands(seed)
        changed = [one[0] for one, before in zip(after, usual) if one[1] == 0 and one != before]
        assert {*changed} <= {"runs", "resume"}
