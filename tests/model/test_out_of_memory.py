"""Memory that a container leaves, and what is remembered once it ran out."""

from dataclasses import asdict, replace
from unittest import mock

import psutil
import pytest
import torch

from adapop.config.presets import make_config
from adapop.model import generation, replying
from adapop.model.memory import row_bytes
from adapop.model.out_of_memory import free_bytes, is_out_of_memory
from adapop.model.tokens import Row
from adapop.probes import measure
from adapop.runs import execute
from adapop.training.events import RunFailed

CPU = torch.device("cpu")
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
    for said, full in (
        ("CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", True),
        ("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True), ("out of memory", True),
        ("device-side assert triggered", False),
        ("CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`", False),
    ):  # fmt: skip
        assert is_out_of_memory(RuntimeError(f"CUDA error: {said}")) == full


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
    assert model.generate(questions, 2) == answers
    assert tried == [8, 4, 2, 2, 2, 2]
    tried.clear()
    assert model.generate(questions, 2, batch=6) == answers
    assert tried == [2, 2, 2, 2]


def test_memory_that_runs_out_elsewhere_is_named(small, tmp_path, monkeypatch):
    """The optimiser's moments cannot be made too large here, so its place in the run fails as they would."""
    for error in (torch.OutOfMemoryError("CUDA out of memory."), MemoryError()):
        monkeypatch.setattr(execute, "Trainer", mock.Mock(side_effect=error))
        run = execute.prepare(make_config("gd"), small, tmp_path)
        *_, last = execute.execute(run)
        assert isinstance(last, RunFailed) and last.message.startswith("Memory ran out on the weights, the optimiser's")
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
    for found, row in zip(measure.full(model, facts, 8).rows, expected, strict=True):
        for name, value in asdict(row).items():
            alike = pytest.approx(value, rel=1e-3, abs=1e-5) if isinstance(value, float) else value
            assert getattr(found, name) == alike, name
    assert max(tried) > 10 and tried.count(8) > 3


def test_batches_follow_a_gpu_s_free_memory_and_not_the_cpu_s(fresh, monkeypatch):
    """No GPU is here: only the arithmetic is looked at."""
    model, rows = fresh(), [Row((3,) * 20, (4,), i) for i in range(5)]
    monkeypatch.setattr(replying, "free_bytes", lambda device: 2**20)
    assert model.at_once(rows) == model.at_once(rows, 8) == replying.MOST_ROWS
    model.device = torch.device("cuda")
    found = {}
    for free in (0, 2**26, 2**30):
        monkeypatch.setattr(replying, "free_bytes", lambda device, free=free: free)
        found[free] = model.at_once(rows), model.at_once(rows, 8), model.at_once(rows, 80)
    assert found[0] == (1, 1, 1)
    for small, large in zip(found[2**26], found[2**30]):
        assert small > 1 and large == pytest.approx(16 * small, rel=0.1)
    assert found[2**30][1] > found[2**30][2], "longer replies take more"


def test_a_row_is_given_what_it_takes():
    """Of Llama-3.1-8B's shape in bf16: about 1,400 rows of DUET to be answered in 60 GB; never less than the cache."""
    llama = {
        "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8,
    }  # fmt: skip
    cache = 32 * 2 * 8 * 128 * 2 * (71 + 32)
    assert 2 * cache < row_bytes(llama, 2, 71, 1, 32) < 4 * cache
    assert 1000 < 60e9 / row_bytes(llama, 2, 71, 1, 32) < 1600
    assert 500 < 60e9 / row_bytes(llama, 2, 71, 4) < 1600
