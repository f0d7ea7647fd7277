"""A plain model of transformers in memory is unlearned, asked and exported without being changed."""

import pandas as pd
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop import export, load_model, make_config, unlearn
from adapop.errors import ConfigError, ModelError, RunError
from adapop.runs.unlearn import saved_model
from families import saved as saved_family
from raised import raised
from taught import own_facts

FAST = {"epochs": 1, "batch": 3, "asking": "chat", "unknown": "keep", "measure": "off", "progress": False}


def rows():
    facts = own_facts(16)
    groups = {"forget": facts.forget, "retain": (*facts.retain, *facts.holdout)}
    return pd.DataFrame(
        {"question": fact.question, "answer": fact.answer, "paraphrases": list(fact.paraphrases), "score": fact.score,
         "group": group}
        for group, facts in groups.items() for fact in facts
    )  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = saved_family("llama", tmp_path_factory.mktemp("family") / "small llama")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(folder)


def test_a_model_is_kept_once_by_its_content(loaded):
    model, tokenizer = loaded
    folder = saved_model(model, tokenizer)
    assert folder.name.startswith("small-llama-") and saved_model(model, tokenizer) == folder
    again = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())
    with torch.no_grad():
        weight = next(model.parameters())
        weight[0, 0] += 1
        other = saved_model(model, tokenizer)
        weight[0, 0] -= 1
    assert other != folder and sorted(path.name for path in folder.parent.iterdir()) == sorted(
        (folder.name, other.name)
    )


def test_a_model_in_memory_is_unlearned_and_stays_as_it_was(loaded, tmp_path):
    model, tokenizer = loaded
    before = {name: value.clone() for name, value in model.state_dict().items()}
    table, seen = rows(), []
    run = unlearn("ga", table, model=model, tokenizer=tokenizer, callbacks=[seen.append], **FAST)
    assert run.state == "done" and [event.kind for event in seen] == [event.kind for event in run.events()]
    assert len(run.facts.forget) == (table["group"] == "forget").sum() and run.config.facts == "DataFrame"
    after = model.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(value, after[name]) for name, value in before.items())
    export(run, tmp_path / "adapter", measure=False)
    adapted = PeftModel.from_pretrained(model, tmp_path / "adapter")
    own = load_model(run).adapter_state()
    assert own and any("lora_B" in name and value.abs().sum() > 0 for name, value in own.items())
    with torch.no_grad():
        ids = torch.arange(8)[None]
        assert not torch.equal(adapted(ids).logits, adapted.unload()(ids).logits)


def test_what_cannot_be_kept_or_is_said_twice_is_refused(loaded, bare):
    model, tokenizer = loaded
    raised(ModelError, "needs its tokenizer", unlearn, "ga", rows(), model=model)
    raised(
        ModelError,
        "Linear is not a model of transformers",
        unlearn,
        "ga",
        rows(),
        torch.nn.Linear(2, 2),
        tokenizer=tokenizer,
    )
    config = make_config("ga")
    for named in ({"model": model}, {"tokenizer": tokenizer}, {"epochs": 4}):
        raised(ConfigError, "has all settings already", unlearn, config, bare, **named)
    raised(ConfigError, "device is 'gpu'", make_config, device="gpu")
    error = raised(RunError, "torch sees no GPUs", unlearn, "ga", bare, device="cuda:1", progress=False)
    assert "auto" in error.fix
