"""Two processes on the CPU that hold half of a base each train what one process with the whole base trains."""

import json

import pytest
import torch
from safetensors.torch import load_file

import sharded
from adapop.cli import main, parser
from adapop.cli.runs import _prepared, _to_resume
from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.model.tokens import Row, counted
from adapop.paths import ROOT
from adapop.runs.execute import prepare
from adapop.runs.run import all_runs
from adapop.training.events import EpochDone, Measured, StepDone
from adapop.training.processes import Ranks
from launching import ended, launched, numbers, run_in


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Folder of what one process did."""
    folder = tmp_path_factory.mktemp("one")
    sharded.main(folder)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """(folder of what two processes did, how their launcher ended)."""
    folder = tmp_path_factory.mktemp("two")
    return folder, launched(ROOT / "tests" / "sharded.py", folder)


def alike(value):
    return pytest.approx(value, rel=1e-6, abs=1e-9) if isinstance(value, float) else value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"), [*((name, name) for name in sharded.METHODS), ("uneven", "adapop"), ("stopped", "adapop")]
)
def test_a_sharded_base_trains_what_a_whole_one_trains(one, two, name, method):
    """Also where one process has room for fewer rows, and where both were stopped and went on; in float64. What is
    measured is the same, too."""
    folder, launch = two
    assert (folder / f"{name}-1.json").exists(), launch.stderr
    assert [said["last"] for said in ended(folder, name)] == ["RunDone"] * 2
    alone, both = run_in(one / method), run_in(folder / name)
    for kind in (StepDone, EpochDone):
        for ours, theirs in zip(numbers(both, kind), numbers(alone, kind), strict=True):
            for key, value in theirs.items():
                assert ours[key] == (pytest.approx(value) if isinstance(value, dict) else alike(value)), (kind, key)
    for ours, theirs in zip(numbers(both, Measured), numbers(alone, Measured), strict=True):
        for row, wanted in zip(ours["rows"], theirs["rows"], strict=True):
            assert row == {key: alike(value) for key, value in wanted.items()}
    adapters = [load_file(folder / f"{name}-{rank}.safetensors") for rank in (0, 1)]
    for key, weight in load_file(one / f"{method}-0.safetensors").items():
        assert torch.equal(adapters[0][key], adapters[1][key])
        torch.testing.assert_close(adapters[0][key], weight, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_each_process_holds_half_of_the_base(one, two):
    held = [json.loads((two[0] / f"held-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]
    whole = json.loads((one / "held-0.json").read_text(encoding="utf-8"))[0]
    assert [before for _, before in held] == [whole, whole]
    assert sum(here for here, _ in held) == whole
    assert max(here for here, _ in held) < 0.51 * whole


@pytest.mark.slow
def test_a_stop_reaches_both_at_the_same_step(two):
    assert ended(two[0], "halfway") == [{"last": "RunStopped", "steps": 4}] * 2


@pytest.mark.slow
def test_memory_that_runs_out_in_one_process_ends_both(two):
    first, second = ended(two[0], "short")
    assert (first["last"], second["last"]) == ("RunFailed", "RunFailed")
    assert second["message"].startswith("Memory ran out in process 1")
    assert first["message"].startswith("Another process of this run does not answer any more")
    failed = run_in(two[0] / "short")
    assert failed.state == "failed" and not failed.locked


@pytest.mark.slow
def test_the_command_line_shards_a_model_it_loads(one, tmp_path):
    """In bf16, beside an adapter in float32."""
    path = tmp_path / "facts.csv"
    rows = [f"{group},Who was {name} of the {group}?,{name},{score}" for group in ("forget", "retain", "holdout")
            for name, score in (("Ada", 9), ("Bo", 99), ("Cy", 999))]  # fmt: skip
    path.write_text("\n".join(["group,question,answer,score", *rows]) + "\n", encoding="utf-8")
    settings = ("--model", one / "llama", "--facts", path, "--epochs", 1, "--micro-batch", 1, "--json")
    done = launched("-m", "adapop", "run", "--shard", *settings)
    assert done.returncode == 0, done.stderr
    assert [run.state for run in all_runs()] == ["done"]


def test_one_process_has_nobody_to_share_with(capsys):
    assert main(["run", "--shard"]) == main(["resume", "--shard", "any"]) == 2
    assert capsys.readouterr().err.count("torchrun --nproc-per-node 2") == 2
    assert all_runs() == []


def test_four_bits_are_not_shared(small):
    with pytest.raises(ConfigError, match="not both"):
        _prepared(parser().parse_args(["run", "--shard", "--four-bit"]))
    run = prepare(make_config(four_bit=True), small)
    with pytest.raises(ConfigError, match="not both"):
        _to_resume(str(run.folder), shard=True)


def test_shares_of_a_sharded_base_are_of_one_size_and_count_each_row_once():
    rows = [Row((1,), (2, 3), fact) for fact in range(7)]
    for count in (2, 3, 9):
        shares = [Ranks(rank, count, sharded=True).share(rows) for rank in range(count)]
        assert len({*map(len, shares)}) == 1
        kept = [counted(share) for share in shares]
        assert sorted(row.fact for share, _ in kept for row in share) == list(range(7))
        assert sum(tokens for _, tokens in kept) == 14
        assert all(share[: len(own)] == own for share, (own, _) in zip(shares, kept)), "those that count come first"
        assert Ranks(0, count, sharded=True).share([]) == []
