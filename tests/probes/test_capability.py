"""General capability through lm-eval, on rows made up: the real ones cannot be downloaded here."""

import json
import sys

import pytest
import torch

from adapop.cli import main
from adapop.config.presets import make_config
from adapop.errors import ConfigError, ModelError
from adapop.facts.world import sandbox_facts
from adapop.probes import capability as module
from adapop.probes.capability import Capability, capability
from adapop.runs.execute import prepare

ROWS = 12
BOOKS = sorted((fact for fact in sandbox_facts().retain if fact.relation == "author"), key=lambda fact: -fact.score)
BOOKS, WRITERS = BOOKS[:ROWS], sorted({fact.answer for fact in BOOKS})


@pytest.fixture
def rows(monkeypatch):
    """lm-eval's own definitions of MMLU (57 subjects in four groups) and HellaSwag find these rows; of the latter, who
    of four writers wrote a book that the sandbox model knows."""
    pytest.importorskip("lm_eval")
    import datasets

    def load(path, name=None, **others):
        if path == "cais/mmlu":
            row = {"question": f"Which is {name}?", "choices": ["this", "that", "both", "none"], "answer": 1}
            return datasets.DatasetDict({split: datasets.Dataset.from_list([row] * 2) for split in ("test", "dev")})
        assert path == "Rowan/hellaswag"
        made = []
        for place, fact in enumerate(BOOKS):
            options = [writer for writer in WRITERS if writer != fact.answer][place : place + 3]
            options.insert(place % 4, fact.answer)
            row = {"ctx_a": fact.question, "ctx_b": "", "activity_label": "", "endings": options}
            made.append(row | {"label": str(place % 4)})
        return datasets.DatasetDict({split: datasets.Dataset.from_list(made) for split in ("train", "validation")})

    monkeypatch.setattr(datasets, "load_dataset", load)


def test_tasks_and_their_standard_errors(fresh, rows, capsys):
    mmlu, hellaswag = capability(fresh())
    assert (mmlu.task, mmlu.metric, mmlu.questions) == ("mmlu", "acc", 114)
    assert (hellaswag.task, hellaswag.metric, hellaswag.questions) == ("hellaswag", "acc_norm", ROWS)
    for row in (mmlu, hellaswag):
        assert 0 <= row.original == row.unlearned <= 1, "an untrained adapter changes nothing"
        assert row.original_stderr == row.unlearned_stderr >= 0
    assert capsys.readouterr().out == "", "what lm-eval prints would get between our rows"
    (found,) = capability(fresh(), ("hellaswag",), limit=1)
    assert (found.questions, found.original_stderr, found.unlearned_stderr) == (1, None, None)


def test_adapter_on_is_the_unlearned_model_and_off_the_original(fresh, rows):
    model = fresh()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    (found,) = capability(model, ("hellaswag",))
    assert found.original >= 0.75
    assert found.difference < -0.25
    assert found.unlearned_stderr > 0


def test_data_that_cannot_be_had_are_named(fresh, rows, monkeypatch):
    import datasets

    def gone(*arguments, **named):
        raise ConnectionError("Couldn't reach the Hub\nand more")

    monkeypatch.setattr(datasets, "load_dataset", gone)
    with pytest.raises(ModelError, match="hellaswag cannot be measured: Couldn't reach the Hub\\."):
        capability(fresh(), ("hellaswag",))


def test_missing_lm_eval_is_named_with_its_fix(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(ModelError, match="needs lm-eval") as caught:
        capability(model)
    assert caught.value.fix == "pip install lm-eval"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"limit": 0}, "limit is 0"), ({"tasks": ("mmlu", "humaneval")}, "no capability task 'humaneval'")],
)
def test_what_cannot_be_asked_is_refused(model, wrong, said):
    with pytest.raises(ConfigError, match=said):
        capability(model, **wrong)


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


def test_command_prints_a_table_or_json_lines(command, capsys):
    arguments, asked = command
    assert main([*arguments, "--limit", "5"]) == 0
    assert asked == [(["mmlu", "hellaswag"], 5)]
    said = [line.split() for line in capsys.readouterr().out.splitlines() if "  " in line]
    assert said[0] == ["task", "metric", "questions", "original", "unlearned", "difference", "paper"]
    assert said[1] == ["mmlu", "acc", "14,042", "0.650", "±", "0.004", "0.625", "±", "0.005", "-0.025", "–", "→", "–"]
    assert said[2] == ["hellaswag", "acc_norm", "1", "1.000", "1.000", "+0.000", "–", "→", "–"]
    assert main([*arguments, "--json"]) == 0
    assert asked[1:] == [(["mmlu", "hellaswag"], None)]
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["row"], first["task"], first["original_stderr"]) == ("capability", "mmlu", 0.004)
    assert first["difference"] == pytest.approx(-0.025)
    assert second["unlearned_stderr"] is None
