import json

import pytest
import torch
from safetensors.torch import load_file

import ranked
from adapop.paths import ROOT
from adapop.runs.listed import all_runs
from adapop.training.events import EpochDone, Measured, StepDone
from adapop.training.processes import Ranks, joined
from launching import LAUNCH, TORCHRUN, ended, launched, numbers, run_in


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    ranked.main(folder)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return folder, launched(ROOT / "tests" / "ranked.py", folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"), [*((method, method) for method in ranked.METHODS), ("stopped", "adapop"), ("halved", "npo-sam")]
)
def test_two_processes_train_what_one_trains(one, two, name, method):
    """Also where they were stopped and went on, and where one of them had less memory; in float64."""
    folder, launch = two
    assert (folder / f"{name}-1.json").exists(), launch.stderr
    assert [summary["last"] for summary in ended(folder, name)] == ["RunDone"] * 2
    alone, both = run_in(one / method), run_in(folder / name)
    for kind in (StepDone, EpochDone, Measured):
        for ours, theirs in zip(numbers(both, kind), numbers(alone, kind), strict=True):
            for key, value in _flat(theirs).items():
                exact = value is None or isinstance(value, str)
                expected = value if exact else pytest.approx(value, rel=1e-6, abs=1e-9)
                assert _flat(ours)[key] == expected, (kind, key)
    for ours, theirs in zip(both.frames(), alone.frames(), strict=True):
        assert (ours.step, ours.answers, ours.scores.keys()) == (theirs.step, theirs.answers, theirs.scores.keys())
        for group, scores in theirs.scores.items():
            assert ours.scores[group].p == pytest.approx(scores.p, abs=2e-4), (ours.step, group)
    adapters = [load_file(folder / f"{name}-{rank}.safetensors") for rank in (0, 1)]
    for key, weight in load_file(one / f"{method}-0.safetensors").items():
        assert torch.equal(adapters[0][key], adapters[1][key])
        torch.testing.assert_close(adapters[0][key], weight, rtol=1e-6, atol=1e-9)


def _flat(event):
    rows = event.get("rows", ())
    named = {(place, key): value for place, row in enumerate(rows) for key, value in row.items()}
    return {key: value for key, value in event.items() if key != "rows"} | named


@pytest.mark.slow
def test_two_processes_stop_and_measure_as_one(one, two):
    # Of the pieces of the one that takes the fewest rows at once.
    (alone,), both = (ended(folder, "measured", count) for folder, count in ((one, 1), (two[0], 2)))
    assert [summary["found"] for summary in both] == [alone["found"]] * 2
    assert any(row["kl"] for row in alone["found"]) and len({row["recall"] for row in alone["found"]}) > 1
    assert [summary["told"] for summary in both] == [alone["told"], 0], "the first is told of all replies"
    assert both[0]["read"] + both[1]["read"] == alone["read"]
    assert max(summary["read"] for summary in both) < 0.65 * alone["read"]
    assert ended(two[0], "halfway") == [{"last": "RunStopped", "steps": 4}] * 2
    done = run_in(two[0] / "halved").events()[-1]
    assert any(note.kind == "fewer_rows" for note in done.notes)


@pytest.mark.slow
def test_an_error_in_one_process_or_its_end_ends_all_and_says_where(two):
    first, second = ended(two[0], "failed")
    assert (first["last"], second["last"]) == ("RunFailed", "RunFailed")
    assert first["message"] == f"In process 1 of 0 to 1: {second['message']}"
    failed = run_in(two[0] / "failed")
    assert failed.state == "failed" and failed.events()[-1].message == first["message"]
    folder, launch = two
    left = run_in(folder / "abandoned")
    assert launch.returncode != 0 and not left.locked and numbers(left, StepDone)
    assert left.state in ("failed", "interrupted"), "the launcher may be quicker than the message"


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [LAUNCH, TORCHRUN], ids=["accelerate", "torchrun"])
def test_the_command_line_prints_and_writes_once(tmp_path, launcher):
    path = tmp_path / "facts.csv"
    rows = [f"{group},Who was {name}?,{name},{score}" for group in ("forget", "retain", "holdout")
            for name, score in (("Ada", 9), ("Bo", 99))]  # fmt: skip
    path.write_text("\n".join(["group,question,answer,score", *rows]) + "\n", encoding="utf-8")
    options = ("--epochs", 1, "--measure", "off", "--frames", 0, "--json")
    done = launched("-m", "adapop", "run", "--facts", path, *options, launcher=launcher)
    assert done.returncode == 0, done.stderr
    said = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert (said.count("run_started"), said.count("run_done")) == (1, 1)
    assert [run.state for run in all_runs()] == ["done"]


@pytest.mark.slow
def test_a_launcher_that_would_divide_the_model_is_refused():
    divided = [*(word for word in LAUNCH if word != "--multi_gpu"), "--use_fsdp", "--fsdp_version", "2"]
    done = launched("-m", "adapop", "run", "--facts", "pair", launcher=divided)
    assert done.returncode != 0 and "each process holds the whole model" in done.stderr
    assert list(all_runs()) == []


def test_shares_are_all_rows_once():
    rows = list(range(7))
    for count in (1, 2, 3, 9):
        shares = [Ranks(rank, count).share(rows) for rank in range(count)]
        assert sorted(row for share in shares for row in share) == rows
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with joined() as ranks:
        assert ranks.first and not torch.distributed.is_initialized()
        assert (ranks.led(lambda: 3), ranks.gathered(lambda: 4), ranks.together(lambda: 5)) == (3, [4], 5)
