import json
import subprocess
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace
from unittest import mock

import psutil
import pytest
import torch
from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM

from adapop.config.presets import make_config
from adapop.experiments.speed import random_model
from adapop.model import adapted, generation
from adapop.model.adapted import AdaptedModel
from adapop.model.catalogue import _inner, adapter_size, footprint, row_bytes, shape_of
from adapop.model.out_of_memory import free_bytes, is_out_of_memory
from adapop.model.tokens import Row, collate
from adapop.paths import ROOT
from adapop.probes import measure
from adapop.runs import execute
from adapop.training.events import RunFailed
from families import TOKENIZERS

SHAPE = {
    "model_type": "llama", "vocab_size": 2000, "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6,
    "num_attention_heads": 8, "num_key_value_heads": 4, "tie_word_embeddings": False}  # fmt: skip
CPU = torch.device("cpu")


def assert_close(shape, config) -> None:
    """The estimate is what a step of a random model keeps."""
    model = random_model(shape, config, "cpu")
    model.network.train()
    storages = {}

    def keep(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor, tensor.untyped_storage().nbytes()
        return tensor

    rows = [Row(tuple(range(10, 71 - i % 2)), (5, 6, 7)[: 2 + i % 2], i) for i in range(16)]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model.score(collate(rows, 0)).nll.sum()
    assert loss.requires_grad
    own = {weight.untyped_storage().data_ptr() for weight in model.network.parameters()}
    base = sum(weight.numel() * 4 for name, weight in model.network.named_parameters() if "lora" not in name)
    adapter = sum(weight.numel() for name, weight in model.network.named_parameters() if "lora" in name)
    activations = sum(size for place, (_, size) in storages.items() if place not in own)
    estimate = footprint(shape, config, 63, rows=16, answer=3)
    assert estimate.weights == base and adapter_size(shape, config) == adapter
    # The estimate also counts what passes through memory in the backward pass.
    assert 0.95 * activations < estimate.activations < 1.2 * activations


@pytest.mark.parametrize("kind", [{"model_type": "llama"}, {"model_type": "gemma", "head_dim": 32}], ids=str)
def test_estimate_is_what_a_step_keeps(kind):
    assert_close({**SHAPE, **kind}, make_config("gd", model="x", precision="float32"))


@pytest.mark.parametrize("targets", [("c_attn", "c_proj"), ("all-linear",)])
def test_estimate_is_what_a_step_of_gpt2_keeps_by_its_own_names(targets, tmp_path):
    own = {"model_type": "gpt2", "vocab_size": 2000, "n_embd": 256, "n_layer": 6, "n_head": 8, "n_positions": 128,
           "n_inner": None, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(own))
    assert_close(shape_of(str(tmp_path)), make_config("gd", model="x", precision="float32", lora_targets=targets))


def test_estimates_of_other_models_and_of_a_row():
    plain = footprint(SHAPE, make_config("gd", model="x"), 63, rows=16)
    four = footprint(SHAPE, make_config("gd", model="x", four_bit=True), 63, rows=16)
    assert 0.25 < four.weights / plain.weights < 0.6 and four.activations == plain.activations
    for kind in ("gpt2", "gptj", "opt", "falcon", "bloom", "mpt"):
        base = SimpleNamespace(config=AutoConfig.for_model(kind))
        shape = AdaptedModel.shape.fget(SimpleNamespace(base=base))
        assert footprint(shape, make_config("gd", model="x"), 64, rows=1).activations > 0
    # Of Llama-3.1-8B's shape in bf16: about 1,400 rows of DUET to be answered in 60 GB; never less than the cache.
    llama = {
        "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8}  # fmt: skip
    cache = 32 * 2 * 8 * 128 * 2 * (71 + 32)
    assert 2 * cache < row_bytes(llama, 2, 71, 1, 32) < 4 * cache
    assert 1000 < 60e9 / row_bytes(llama, 2, 71, 1, 32) < 1600 and 500 < 60e9 / row_bytes(llama, 2, 71, 4) < 1600


VERSIONS = {
    2: ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    1: ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_container_s_limit_counts_where_it_is_smaller(tmp_path, version):
    limit, taken, statistics, files = VERSIONS[version]
    (tmp_path / "memory").mkdir()
    (tmp_path / taken).write_text("700\n")
    (tmp_path / statistics).write_text(f"anon 1\n{files} 50\n")
    for most, left in (("1000", 350), ("600", 0)):
        (tmp_path / limit).write_text(f"{most}\n")
        assert free_bytes(CPU, tmp_path) == left
    (tmp_path / limit).write_text("max\n" if version == 2 else "9223372036854771712\n")
    assert free_bytes(CPU, tmp_path) == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_cuda_s_errors_for_want_of_memory_are_known():
    for message, full in (
        ("CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", True),
        ("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True), ("out of memory", True),
        ("device-side assert triggered", False),
        ("CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`", False)):  # fmt: skip
        assert is_out_of_memory(RuntimeError(f"CUDA error: {message}")) == full


def test_answers_are_written_in_pieces_of_the_size_that_fitted_before(fresh, monkeypatch):
    model, tried = fresh(), []
    whole = generation.greedy

    def generate(network, base, read, *rest):
        tried.append(len(read))
        if len(read) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory (simulated).")
        return whole(network, base, read, *rest)

    questions = [f"Who is {name}?" for name in "abcdefgh"]
    answers = model.generate(questions, 2)
    monkeypatch.setattr(generation, "greedy", generate)
    assert model.generate(questions, 2) == answers and tried == [8, 4, 2, 2, 2, 2]
    tried.clear()
    assert model.generate(questions, 2, batch=6) == answers and tried == [2, 2, 2, 2]


def test_memory_that_runs_out_elsewhere_is_named(small, tmp_path, monkeypatch):
    """The optimiser's moments cannot be made too large here, so its place in the run fails as they would."""
    for error in (torch.OutOfMemoryError("CUDA out of memory."), MemoryError()):
        monkeypatch.setattr(execute, "Trainer", mock.Mock(side_effect=error))
        run = execute.prepare(make_config("gd"), small, tmp_path)
        *_, last = execute.execute(run)
        assert isinstance(last, RunFailed) and "the optimiser's moments" in last.message
        assert "smaller model" in last.fix and run.state == "failed"


def test_metrics_are_taken_in_smaller_pieces_where_memory_runs_out(model, small, monkeypatch):
    facts = replace(small, forget=small.forget[::2], retain=small.retain[:4], holdout=())
    expected, whole, tried = measure.full(model, facts, 8).rows, model.score, []

    def score(batch, **named):
        tried.append(batch.rows)
        if batch.rows > 10:
            raise torch.OutOfMemoryError("CUDA out of memory (simulated).")
        return whole(batch, **named)

    monkeypatch.setattr(model, "score", score)
    for actual, row in zip(measure.full(model, facts, 8).rows, expected, strict=True):
        for name, value in asdict(row).items():
            alike = pytest.approx(value, rel=1e-3, abs=1e-5) if isinstance(value, float) else value
            assert getattr(actual, name) == alike, name
    assert max(tried) > 10 and tried.count(8) > 3


def test_batches_follow_a_gpu_s_free_memory_and_not_the_cpu_s(fresh, monkeypatch):
    """No GPU is here: only the arithmetic is looked at."""
    model, rows = fresh(), [Row((3,) * 20, (4,), i) for i in range(5)]
    monkeypatch.setattr(adapted, "free_bytes", lambda device: 2**20)
    assert model.at_once(rows) == model.at_once(rows, 8) == adapted.MOST_ROWS
    model.device = torch.device("cuda")
    batch_sizes = {}
    for free in (0, 2**26, 2**30):
        monkeypatch.setattr(adapted, "free_bytes", lambda device, free=free: free)
        batch_sizes[free] = model.at_once(rows), model.at_once(rows, 8), model.at_once(rows, 80)
    assert batch_sizes[0] == (1, 1, 1)
    for small, large in zip(batch_sizes[2**26], batch_sizes[2**30]):
        assert small > 1 and large == pytest.approx(16 * small, rel=0.1)
    assert batch_sizes[2**30][1] > batch_sizes[2**30][2], "longer replies take more"


MEASURED = """
import json, re, sys, threading, time
from adapop.config.presets import make_config
from adapop.model.loading import adapted_model

def now(kind):
    return int(re.search(kind + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

def watch():
    while not over:
        seen.append((now("VmRSS"), now("RssAnon")))
        time.sleep(0.002)

adapted_model(make_config())  # so that what is imported when first needed is not counted
over, seen = [], []
watching = threading.Thread(target=watch)
before = now("VmRSS"), now("RssAnon")
watching.start()
model = adapted_model(make_config(model=sys.argv[1], precision=sys.argv[2]))
over.append(True)
watching.join()
weights = sum(part.numel() * part.element_size() for part in model.network.parameters())
grown = [max(column) - start for column, start in zip(zip(*seen), before)]
print(json.dumps([size / weights for size in grown]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, tokenizer = tmp_path_factory.mktemp("large"), TOKENIZERS["llama"]()
    shape = LlamaConfig(
        vocab_size=16_000, hidden_size=768, intermediate_size=2048, num_hidden_layers=13, num_attention_heads=12,
        num_key_value_heads=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)  # fmt: skip
    LlamaForCausalLM(shape).bfloat16().save_pretrained(place, max_shard_size="150MB")
    tokenizer.save_pretrained(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_the_host_holds_the_weights_once(folder, precision):
    """Resident memory, all in all, where the files are in the run's precision; else without the files' own pages, which
    the system takes back when it needs them."""
    command = [sys.executable, "-c", MEASURED, str(folder), precision]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    resident, own = json.loads(done.stdout)
    assert own < 1.1
    if precision == "bfloat16":
        assert 0.9 < resident < 1.15


def test_the_widest_of_several_mlps_counts():
    """Gemma 3n has one width a layer."""
    assert _inner({"intermediate_size": [16_384, 8_192], "hidden_size": 2_048}) == 16_384
