import json
import re

import pytest
import torch
from safetensors.torch import load_file

import ranked
from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.paths import ROOT
from adapop.runs.execute import execute, prepare
from adapop.runs.listed import all_runs
from adapop.runs.run import Run, runs_root
from adapop.training.events import EpochDone, Measured, StepDone
from adapop.training.processes import Ranks, joined
from adapop.training.sharded import asked_for, check_divisible
from launching import LAUNCH, SHARDED, TORCHRUN, ended, launched, numbers, run_in


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    ranked.main(folder)
    return folder


@pytest.fixture(scope="module", params=[LAUNCH, SHARDED], ids=["whole", "divided"])
def two(tmp_path_factory, request):
    """What two processes did, each with the whole model, or with a part of its weights."""
    folder = tmp_path_factory.mktemp("two")
    return folder, launched(ROOT / "tests" / "ranked.py", folder, launcher=request.param)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"), [*((method, method) for method in ranked.METHODS), ("stopped", "adapop"), ("halved", "npo-sam"),
        ("recomputed", "pdu")])  # fmt: skip
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
    assert first["message"] == f"In process 1 (numbered from 0 to 1): {second['message']}"
    failed = run_in(two[0] / "failed")
    assert failed.state == "failed" and failed.events()[-1].message == first["message"]
    folder, launch = two
    left = run_in(folder / "abandoned")
    assert launch.returncode != 0 and not left.locked and numbers(left, StepDone)
    assert left.state in ("failed", "interrupted"), "the launcher may be quicker than the message"


@pytest.fixture
def facts_csv(tmp_path):
    path = tmp_path / "facts.csv"
    rows = [f"{group},Who was {name}?,{name},{score}" for group in ("forget", "retain", "holdout")
            for name, score in (("Ada", 9), ("Bo", 99))]  # fmt: skip
    path.write_text("\n".join(["group,question,answer,score", *rows]) + "\n", encoding="utf-8")
    return path


BRIEFLY = ("--epochs", 1, "--measure", "off", "--frames", 0, "--json")


def command_prints_and_writes_once(*options, launcher) -> Run:
    """The run that a command made in two processes."""
    done = launched("-m", "adapop", *options, launcher=launcher)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[Gloo]")]  # printed by torch 2.8
    said = [json.loads(line)["kind"] for line in lines]
    assert (said.count("run_started"), said.count("run_done")) == (1, 1)
    (run,) = all_runs()
    assert run.state == "done"
    return run


@pytest.mark.slow
def test_torchrun_is_a_launcher_too(facts_csv):
    command_prints_and_writes_once("run", "--facts", facts_csv, *BRIEFLY, launcher=TORCHRUN)


@pytest.mark.slow
def test_the_documented_configuration_divides_the_weights_and_trains_what_one_process_trains(facts_csv, tmp_path, cli):
    page = (ROOT / "assets/docs/models.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "fsdp.yaml").write_text(block.replace("num_processes: 4", "num_processes: 2"), encoding="utf-8")
    launcher = (*LAUNCH[:3], "--config_file", str(tmp_path / "fsdp.yaml"), "--main_process_port", "0")
    options = ("run", "--facts", facts_csv, *BRIEFLY, "--set", "precision=float32")
    both = command_prints_and_writes_once(*options, launcher=launcher)
    cli(*options, "--yes")  # a question is in two groups
    (alone,) = (run for run in all_runs() if run.id != both.id)
    for ours, theirs in zip(numbers(both, StepDone), numbers(alone, StepDone), strict=True):
        assert ours["gradient_norm"] == pytest.approx(theirs["gradient_norm"], rel=1e-4)
        assert ours["forget_loss"] == pytest.approx(theirs["forget_loss"], rel=1e-4)
    weights, same = (load_file(run.checkpoint(1) / "adapter_model.safetensors") for run in (both, alone))
    for name, weight in weights.items():  # rounding decides the direction in which Adam moves a few
        assert (weight - same[name]).norm() < 0.05 * same[name].norm(), name


@pytest.mark.slow
def test_a_run_that_one_process_began_is_gone_on_with_by_two_that_divide_the_weights():
    run = prepare(make_config(epochs=2, measure="off", frames=0, precision="float32"), ranked.few_facts(), runs_root())
    for event in execute(run):
        if isinstance(event, EpochDone) and event.epoch == 1:
            run.request_stop()
    assert run.state == "stopped" and run.last_epoch == 1
    done = launched("-m", "adapop", "resume", run.id, launcher=SHARDED)
    assert done.returncode == 0, done.stderr
    assert run.state == "done" and [step["epoch"] for step in numbers(run, StepDone)][-1] == 2


@pytest.mark.slow
@pytest.mark.parametrize("two", [SHARDED], ids=["divided"], indirect=True)
def test_a_process_keeps_half_of_the_blocks_and_has_one_whole(two):
    assert (two[0] / "divided-1.json").exists(), two[1].stderr
    for said in ended(two[0], "divided"):
        assert said["most"] == 1 and 0.49 * said["whole"] < said["here"] < 0.51 * said["whole"]


LEAVES = """
import weakref
import torch.distributed
from adapop import adapted_model, make_config
from adapop.training.processes import joined

with joined() as ranks:
    group = weakref.ref(torch.distributed.group.WORLD)
    model = adapted_model(make_config(), place=ranks.shards.place)
    model.generate(["Where was Ada born?"], 2)
    ranks.together(lambda: None)
print("threads end" if group() is None else "threads go on")
"""


@pytest.mark.slow
def test_no_thread_of_the_group_that_says_the_last_word_is_left_when_python_ends(tmp_path):
    """Such a thread may drop a tensor then, which aborts the process; what keeps the weights has a group of its own."""
    (tmp_path / "leaves.py").write_text(LEAVES, encoding="utf-8")
    done = launched(tmp_path / "leaves.py", launcher=SHARDED)
    assert done.returncode == 0 and done.stdout.count("threads end") == 2, (done.stdout, done.stderr)


FSDP2 = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"FSDP_VERSION": "1"}, "fsdp_version: 2"),
     ({"FSDP_OFFLOAD_PARAMS": "true"}, "weights stay on the devices"),
     ({"FSDP_RESHARD_AFTER_FORWARD": "false"}, "dropped after their use"),
     ({"FSDP_ACTIVATION_CHECKPOINTING": "true"}, "only there"),
     ({"FSDP_AUTO_WRAP_POLICY": "SIZE_BASED_WRAP"}, "whatever their size"),
     ({"FSDP_AUTO_WRAP_POLICY": "NO_WRAP"}, "one by one")],
)  # fmt: skip
def test_a_configuration_that_asks_for_something_else_is_refused(changes, said):
    usual = {"FSDP_OFFLOAD_PARAMS": "false", "FSDP_RESHARD_AFTER_FORWARD": "true",
             "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP"}  # fmt: skip
    assert asked_for(FSDP2 | usual) and not asked_for({"FSDP_VERSION": "1"})
    with pytest.raises(ConfigError, match=said):
        asked_for(FSDP2 | changes)


@pytest.mark.parametrize(
    "settings", [{"four_bit": True}, {"start": "sft"}], ids=["four bits", "sft"])  # fmt: skip
def test_a_run_that_needs_whole_weights_is_refused(settings):
    check_divisible(make_config())
    with pytest.raises(ConfigError, match="Launch without FSDP"):
        check_divisible(make_config(model="./some-model", **settings))


def test_shares_are_all_rows_once():
    rows = list(range(7))
    for count in (1, 2, 3, 9):
        shares = [Ranks(rank, count).share(rows) for rank in range(count)]
        assert sorted(row for share in shares for row in share) == rows
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with joined() as ranks:
        assert ranks.first and not torch.distributed.is_initialized()
        assert (ranks.led(lambda: 3), ranks.gathered(lambda: 4), ranks.together(lambda: 5)) == (3, [4], 5)
