"""General capability through lm-eval, on a small task of our own: the real ones cannot be downloaded here."""

import json
import logging
import random
import sys

import numpy
import pytest
import torch

from adapop.cli import main
from adapop.config.presets import make_config
from adapop.errors import ConfigError, ModelError
from adapop.model.tokens import encode_prompt
from adapop.probes import capability as module
from adapop.probes.capability import Capability, capability
from adapop.runs.execute import prepare

QUESTIONS = 8
OWN = (("own_books", "acc"), ("own_second", "acc"), ("own_third", "acc"), ("own_bytes", "acc_norm"))
TASK = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {folder}/questions.jsonl
  cache_dir: {folder}/cache
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{options}}}}"
doc_to_target: right
metric_list:
  - metric: {metric}
    aggregation: mean
    higher_is_better: true
"""
GROUP = """
group: own_group
task: [own_books, own_second]
aggregate_metric_list:
  - metric: acc
    weight_by_size: true
"""


@pytest.fixture
def tasks(sandbox, tmp_path):
    """A folder of lm-eval tasks: who wrote these eight books, out of four writers, by several names and as a group."""
    pytest.importorskip("lm_eval")
    books = [fact for fact in sandbox.retain if fact.relation == "author"]
    writers = sorted({fact.answer for fact in books})
    with open(tmp_path / "questions.jsonl", "w", encoding="utf-8") as file:
        for i, fact in enumerate(sorted(books, key=lambda fact: -fact.score)[:QUESTIONS]):
            options = [writer for writer in writers if writer != fact.answer][i : i + 3]
            options.insert(i % 4, fact.answer)
            file.write(json.dumps({"question": fact.question, "options": options, "right": i % 4}) + "\n")
    for name, metric in OWN:
        text = TASK.format(name=name, folder=tmp_path.as_posix(), metric=metric)
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "own_group.yaml").write_text(GROUP, encoding="utf-8")
    return tmp_path


def test_original_knows_its_facts_and_an_untrained_adapter_changes_nothing(fresh, tasks):
    (single,) = capability(fresh(), ("own_books",), include=tasks)
    assert (single.task, single.metric, single.questions) == ("own_books", "acc", QUESTIONS)
    assert single.original >= 7 / 8
    assert (single.original, single.original_stderr) == (single.unlearned, single.unlearned_stderr)
    assert single.difference == 0


def test_group_counts_the_questions_of_its_parts(model, tasks):
    group, other = capability(model, ("own_group", "own_third"), limit=5, include=tasks)
    assert (group.task, group.questions, other.questions) == ("own_group", 10, 5)
    assert (group.original, group.unlearned) == (other.original, other.unlearned)


def test_tasks_of_the_paper_with_rows_made_up(model, tasks, monkeypatch):
    """lm-eval's own definitions of MMLU (57 subjects in four groups) and HellaSwag, on two rows each."""
    import datasets

    def rows(path, name=None, **others):
        if path == "cais/mmlu":
            row = {"question": f"Which is {name}?", "choices": ["this", "that", "both", "none"], "answer": 1}
            return datasets.DatasetDict({split: datasets.Dataset.from_list([row] * 2) for split in ("test", "dev")})
        assert path == "Rowan/hellaswag"
        row = {"ctx_a": "A man sits.", "ctx_b": "he", "activity_label": "Sitting", "label": "2"}
        row["endings"] = ["flies.", "sings.", "stands up.", "melts."]
        return datasets.DatasetDict({split: datasets.Dataset.from_list([row] * 2) for split in ("train", "validation")})

    monkeypatch.setattr(datasets, "load_dataset", rows)
    found = capability(model)
    assert [(row.task, row.metric, row.questions) for row in found] == [
        ("mmlu", "acc", 114),
        ("hellaswag", "acc_norm", 2),
    ]
    assert all(0 <= row.original <= 1 and row.original_stderr is not None for row in found)


def test_adapter_on_is_the_unlearned_model_and_off_the_original(fresh, tasks):
    model = fresh()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    (found,) = capability(model, ("own_books",), include=tasks)
    assert found.original >= 7 / 8
    assert found.difference < -0.25
    assert found.unlearned_stderr > 0


def test_one_question_has_no_standard_error(model, tasks):
    (found,) = capability(model, ("own_books",), limit=1, include=tasks)
    assert found.questions == 1
    assert (found.original_stderr, found.unlearned_stderr) == (None, None)


def test_batch_size_found_by_lm_eval_gives_the_same(model, tasks, monkeypatch, capsys):
    """On a GPU the batch is what fits; lm-eval then prints, which must not get between our rows."""
    fixed = capability(model, ("own_books",), include=tasks)
    monkeypatch.setattr(module, "CPU_BATCH", "auto")
    assert capability(model, ("own_books",), include=tasks) == fixed
    assert capsys.readouterr().out == ""


def state(model) -> dict:
    """All that lm-eval could have changed, and what our own prompts look like."""
    weights = model.network.state_dict(keep_vars=True)
    return {
        "weights": {name: (id(tensor), tensor.clone()) for name, tensor in weights.items()},
        "trainable": [parameter.requires_grad for parameter in model.network.parameters()],
        "modes": [part.training for part in model.network.modules()],
        "device": next(model.network.parameters()).device,
        "generation": model.network.base_model.model.generation_config.to_dict(),
        "tokenizer": (model.tokenizer.padding_side, model.tokenizer.pad_token_id, model.tokenizer.model_max_length),
        "prompt": encode_prompt(model.tokenizer, "Who wrote the book Hamlet?"),
        "python": random.getstate(),
        "numpy": numpy.random.get_state()[1].tolist(),
        "torch": torch.get_rng_state().tolist(),
        "log": logging.getLogger("lm_eval").level,
    }


def same(before: dict, after: dict) -> bool:
    weights, others = before.pop("weights"), after.pop("weights")
    assert weights.keys() == others.keys()
    equal = [weights[name][0] == others[name][0] and torch.equal(weights[name][1], others[name][1]) for name in weights]
    return all(equal) and before == after


@pytest.mark.parametrize(("training", "side"), [(True, "right"), (False, "left")])
def test_model_is_left_as_it_was(fresh, tasks, training, side):
    model = fresh()
    model.network.train(training)
    model.tokenizer.padding_side = side
    before = state(model)
    capability(model, ("own_books",), include=tasks)
    assert same(before, state(model))


def test_model_is_left_as_it_was_after_a_failure(fresh, tasks, monkeypatch):
    import lm_eval.models.huggingface as wrapper

    def fails(self, *arguments, **named):
        self.tokenizer.padding_side = "right"
        raise ValueError("")

    model = fresh()
    model.network.train()
    before = state(model)
    monkeypatch.setattr(wrapper.HFLM, "_loglikelihood_tokens", fails)
    with pytest.raises(ModelError, match=r"own_books cannot be measured: ValueError\."):
        capability(model, ("own_books",), include=tasks)
    assert same(before, state(model))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("mmlu",), "mmlu cannot be measured: Couldn't reach"),
        (("own_books", "hellaswag"), "own_books, hellaswag cannot be measured: Couldn't reach"),
        (("humaneval",), "no capability task 'humaneval'. Choose mmlu, hellaswag, own_books"),
        (("own_bytes",), "'own_bytes' is not measured by acc"),
    ],
)
def test_what_cannot_be_measured_is_named(model, tasks, asked, said):
    with pytest.raises(ModelError, match=said):
        capability(model, asked, include=tasks)


def test_data_sets_that_could_run_code_are_refused(model, tasks, monkeypatch):
    monkeypatch.setattr(module, "version", lambda name: "3.6.0")
    with pytest.raises(ModelError, match="pip install -U datasets"):
        capability(model, ("own_books",), include=tasks)


def test_missing_lm_eval_is_named_with_its_fix(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(ModelError, match="needs lm-eval") as caught:
        capability(model)
    assert caught.value.fix == "pip install lm-eval"


def test_no_questions_are_refused(model):
    with pytest.raises(ConfigError, match="limit is 0"):
        capability(model, limit=0)


@pytest.fixture
def command(small, tmp_path, monkeypatch):
    """`probe` on a run whose model and measuring are played: what was asked is kept in the list."""
    run = prepare(make_config(), small, tmp_path)
    asked = []

    def played(model, tasks, limit):
        asked.append((tasks, limit))
        return (
            Capability("mmlu", "acc", 14042, 0.65, 0.625, 0.004, 0.005),
            Capability("hellaswag", "acc_norm", 1, 1.0, 1.0, None, None),
        )

    monkeypatch.setattr("adapop.runs.execute.load_model", lambda run: None)
    monkeypatch.setattr(module, "capability", played)
    return ["probe", str(run.folder), "--capability", "mmlu, hellaswag"], asked


def test_command_prints_a_table(command, capsys):
    arguments, asked = command
    assert main([*arguments, "--limit", "5"]) == 0
    assert asked == [(["mmlu", "hellaswag"], 5)]
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert said[0] == ["task", "metric", "questions", "original", "unlearned", "difference"]
    assert said[1] == ["mmlu", "acc", "14,042", "0.650", "±", "0.004", "0.625", "±", "0.005", "-0.025"]
    assert said[2] == ["hellaswag", "acc_norm", "1", "1.000", "1.000", "+0.000"]


def test_command_prints_json_lines(command, capsys):
    arguments, asked = command
    assert main([*arguments, "--json"]) == 0
    assert asked == [(["mmlu", "hellaswag"], None)]
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["row"], first["task"], first["original_stderr"]) == ("capability", "mmlu", 0.004)
    assert first["difference"] == pytest.approx(-0.025)
    assert second["unlearned_stderr"] is None
