"""A model that was unlearned elsewhere, by plain peft and transformers, is opened as a run: its leaks are found."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop.errors import ConfigError, ModelError, RunError
from adapop.model.paired import PairedModel
from adapop.paths import ROOT, SANDBOX_FOLDER
from adapop.probes.ask import ask
from adapop.probes.battery import battery
from adapop.probes.plan import Plan
from adapop.progress import Progress
from adapop.report import write_archive, write_report
from adapop.report.export import export
from adapop.report.record import read_record
from adapop.runs.model import load_model
from adapop.runs.run import find_run
from adapop.runs.unlearn import adopt
from adapop.training.events import ComparedToOracle, EpochDone, RunDone, StepDone
from ggufs import write_gguf
from raised import raised

pytestmark = pytest.mark.slow


def texts_of(tokenizer, fact) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, labels): plain transformers, with what follows the prompt as labels."""
    turns = [{"role": "user", "content": fact.question}, {"role": "assistant", "content": fact.answer}]
    prompt = tokenizer.apply_chat_template(turns[:1], add_generation_prompt=True, return_dict=True)["input_ids"]
    whole = tokenizer.apply_chat_template(turns, return_dict=True)["input_ids"]
    return torch.tensor([whole]), torch.tensor([[-100] * len(prompt) + whole[len(prompt) :]])


@pytest.fixture(scope="module")
def made(small, tmp_path_factory):
    """Folders of an adapter, and of the model with it merged, both trained by plain peft: gradient ascent on the facts
    of low score alone, so that the others leak."""
    folder = tmp_path_factory.mktemp("made")
    tokenizer = AutoTokenizer.from_pretrained(SANDBOX_FOLDER)
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    model = get_peft_model(base, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "down_proj"]))
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=3e-3)
    lowest = sorted(small.forget, key=lambda fact: fact.score)[:16]
    for _ in range(12):
        for fact, kept in zip(lowest, small.retain):
            optimizer.zero_grad()
            for sign, one in ((-1, fact), (2, kept)):
                ids, labels = texts_of(tokenizer, one)
                (sign * model(input_ids=ids, labels=labels).loss.clamp(max=8)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    model.save_pretrained(folder / "adapter", save_embedding_layers=False)
    about = folder / "adapter" / "adapter_config.json"
    settings = json.loads(about.read_text()) | {"base_model_name_or_path": str(SANDBOX_FOLDER)}
    about.write_text(json.dumps(settings))
    model.merge_and_unload().save_pretrained(folder / "merged")
    tokenizer.save_pretrained(folder / "merged")
    return folder


@pytest.fixture(scope="module")
def adopted(made, small, tmp_path_factory):
    """The run of the adapter, and that of the whole model; probed. Who changes one copies it."""
    root = tmp_path_factory.mktemp("adopted")
    runs = [adopt("sandbox", str(made / kind), small, root=root, progress=False) for kind in ("adapter", "merged")]
    for run in runs:
        plan = Plan(("direct", "reworded", "fill in the blank"), per_tier=4, max_new_tokens=run.reply_tokens)
        run.save_probes(list(battery(load_model(run), run.facts, plan, Progress())))
    return runs


def test_leaks_of_a_model_from_elsewhere_are_found_alike_as_an_adapter_and_as_a_whole_model(adopted):
    for run in adopted:
        assert run.state == "done" and run.id.startswith("adopted-")
        before, after = run.measured(before=True), run.measured()
        rare, popular = (after.recall("forget", "direct", tier) for tier in ("rare", "popular"))
        assert before.recall("forget") > 0.9 and rare < 0.5 < popular, (rare, popular)
        assert not [event for event in run.events() if isinstance(event, StepDone | EpochDone)]
        assert [event.epoch for event in run.events() if isinstance(event, ComparedToOracle | RunDone)] == [1, 1]
        verdicts = set(read_record(run).verdicts.values())
        assert "Not forgotten" in verdicts and len(verdicts) > 1
    one, other = (run.measured().rows for run in adopted)
    for row, same in zip(one, other):
        assert row["recall"] == same["recall"] and row["kl"] == pytest.approx(same["kl"], abs=1e-4)
    assert [row.unlearned.text for row in adopted[0].probes()] == [row.unlearned.text for row in adopted[1].probes()]


def test_the_original_of_two_whole_models_is_the_original(adopted, fresh):
    """The worst fault of such screens elsewhere: a column "original" that the tuned model answers."""
    model, alone = load_model(adopted[1]), fresh()
    assert isinstance(model, PairedModel)
    facts = adopted[1].facts
    questions = [fact.question for fact in facts.forget]
    with model.original():
        original, digest = model.generate(questions, 3), model.base.lm_head.weight
        assert all(
            torch.equal(a, b) for a, b in zip(model.base.state_dict().values(), alone.base.state_dict().values())
        )
    unlearned = model.generate(questions, 3)
    assert original == alone.generate(questions, 3) != unlearned
    assert model.base.lm_head.weight is not digest
    asked = ask(model, questions[:2], [fact.answer for fact in facts.forget[:2]], 3, facts)
    assert [one.original.text for one in asked] == original[:2]
    assert [one.unlearned.text for one in asked] == unlearned[:2]


def test_models_that_do_not_fit_together_take_turns_with_the_same_numbers(adopted, monkeypatch):
    monkeypatch.setattr("adapop.model.paired.free_bytes", lambda device: 0)
    model = load_model(adopted[1])
    assert "models_take_turns" in [note.kind for note in model.notes] and len(model._networks) == 1
    plan = Plan(("direct",), per_tier=2, max_new_tokens=3)
    rows = list(battery(model, adopted[1].facts, plan, Progress()))
    monkeypatch.undo()
    again = list(battery(load_model(adopted[1]), adopted[1].facts, plan, Progress()))
    assert [(row.original.text, row.unlearned.text) for row in rows] == [
        (row.original.text, row.unlearned.text) for row in again]  # fmt: skip
    assert [row.kl for row in rows] == pytest.approx([row.kl for row in again], abs=1e-5)


def test_report_archive_and_export_know_it_as_adopted(adopted, tmp_path):
    adapter, whole = adopted
    page = write_report(adopted, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "was unlearned elsewhere" in page and "merged, adopted" in page
    for run in adopted:
        assert str(run.config.unlearned) not in page
        write_archive(run, tmp_path / f"{run.id}.zip", measure=False)
    assert export(adapter, tmp_path / "a").delivered.trial.came_back == {"direct": 0, "reworded": 0}
    merged = export(whole, tmp_path / "m", merged=True, dtype="float32")
    assert merged.differing == 0 and "merged, adopted, beside sandbox" in (tmp_path / "m" / "README.md").read_text()
    why = "because the unlearned model is a whole model, not an adapter. Export the whole model"
    raised(RunError, why, export, whole, tmp_path / "n")


def test_a_gguf_file_with_another_vocabulary_is_adopted_probed_and_reported_by_text(small, tmp_path):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "other.gguf")
    few = replace(small, **{group: getattr(small, group)[:4] for group in ("forget", "retain", "holdout")}, utility=())
    run = adopt("sandbox", str(tmp_path / "other.gguf"), few, root=tmp_path, progress=False)
    assert "compared_by_text" in [note.kind for note in run.events()[-1].notes]
    assert (run.measured(before=True).recall("forget"), run.measured().recall("forget")) == (1.0, 0.0)
    rows = list(battery(load_model(run), few, Plan(("direct",), max_new_tokens=3), Progress()))
    assert {row.original.recall for row in rows if row.group == "forget"} == {1.0}
    assert {(row.kl, row.delta_rank, row.hidden_cosine) for row in rows} == {(None, None, None)}
    assert {row.original.gold_rank for row in rows if row.group == "forget"} == {1}
    run.save_probes(rows)
    assert "other.gguf" in write_report([run], tmp_path / "r.html").read_text(encoding="utf-8")


def test_models_in_memory_are_saved_first(made, bare, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(made / "merged")
    model = AutoModelForCausalLM.from_pretrained(made / "merged")
    run = adopt(str(SANDBOX_FOLDER), model, bare, tokenizer=tokenizer, root=tmp_path, progress=False)
    assert "in-memory" in run.config.unlearned and run.measured().recall("forget") is not None
    assert find_run(run.id, tmp_path).state == "done"


def test_an_adapter_brings_its_own_original_and_any_third_model_is_an_oracle(made, small, tmp_path):
    oracle = str(SANDBOX_FOLDER / "oracle")
    run = adopt("", str(made / "adapter"), small, oracle, root=tmp_path, progress=False)
    assert run.config.model == str(SANDBOX_FOLDER)
    (compared,) = [event for event in run.events() if isinstance(event, ComparedToOracle)]
    assert {one.form for one in compared.distance.facts} == {"direct", "reworded"}
    assert json.loads((run.folder / "oracle.json").read_text())["sha256"]


def failed(*args, **named) -> str:
    with pytest.raises((RunError, ModelError, ConfigError)) as error:
        adopt(*args, progress=False, **named)
    return str(error.value)


def test_what_cannot_be_a_pair_is_refused_in_words(made, bare, tmp_path):
    here = {"root": tmp_path}
    assert "Name the original model" in failed("", str(made / "merged"), bare, **here)
    assert "Nothing changed" in failed(str(made / "merged"), str(made / "merged"), bare, **here)
    copy = shutil.copytree(SANDBOX_FOLDER, tmp_path / "copy", ignore=shutil.ignore_patterns("oracle"))
    assert "Nothing changed" in failed("sandbox", str(copy), bare, **here)
    assert "belongs to another base" in failed(str(made / "merged"), str(made / "adapter"), bare, **here)
    zero = shutil.copytree(made / "adapter", tmp_path / "zero")
    weights = load_file(zero / "adapter_model.safetensors")
    save_file({name: value * 0 for name, value in weights.items()}, zero / "adapter_model.safetensors")
    assert "Nothing changed" in failed("sandbox", str(zero), bare, **here)
    lost = shutil.copytree(made / "adapter", tmp_path / "lost")
    save_file(dict([*weights.items()][1:]), lost / "adapter_model.safetensors")
    assert "does not fit the base" in failed("sandbox", str(lost), bare, **here)
    wide = shutil.copytree(made / "adapter", tmp_path / "wide")
    grown = {name: torch.cat([value, value], -1) for name, value in weights.items()}
    save_file(grown, wide / "adapter_model.safetensors")
    about = json.loads((wide / "adapter_config.json").read_text()) | {"base_model_name_or_path": "/gone/base"}
    (wide / "adapter_config.json").write_text(json.dumps(about))
    assert "does not fit the base" in failed("sandbox", str(wide), bare, **here)
    assert "cannot be loaded" in failed("sandbox", str(tmp_path / "nothing"), bare, **here)


def logits(place, prompt):
    """What plain peft computes with an adapter's folder on the sandbox's model."""
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    with torch.no_grad():
        return PeftModel.from_pretrained(base, place)(input_ids=prompt).logits


def tuned(folder, **settings):
    """A folder with an adapter of another shape on the sandbox's model, named otherwise."""
    torch.manual_seed(1)
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    config = LoraConfig(r=2, target_modules=["o_proj", "v_proj"], init_lora_weights=False, **settings)
    model = get_peft_model(base, config)
    model.peft_config["default"].base_model_name_or_path = "sandbox"  # another name for the same base
    model.save_pretrained(folder, save_embedding_layers=False)
    return folder


@pytest.mark.parametrize("settings", [{}, {"use_rslora": True}, {"rank_pattern": {"o_proj": 3}}])
def test_two_adapters_of_one_base_each_answer_as_plain_peft_has_them(made, bare, tmp_path, settings):
    """They share the base in memory, unless their ranks cannot be joined."""
    place, shares = tuned(tmp_path / "tuned", **settings), "rank_pattern" not in settings
    run = adopt(str(place), str(made / "adapter"), bare, root=tmp_path, progress=False, precision="float32")
    model = load_model(run)
    assert isinstance(model, PairedModel) != shares
    merged = [note.values["adapter"] for note in model.notes if note.kind == "adapter_merged"]
    assert merged == (["tuned"] if shares else ["tuned", "adapter"])
    prompt = texts_of(model.tokenizer, bare.forget[0])[0]
    for folder, within in ((place, model.original), (made / "adapter", nullcontext)):
        with within(), torch.no_grad():
            assert torch.allclose(model.network(input_ids=prompt).logits, logits(folder, prompt), atol=1e-3)
    unlearned = logits(made / "adapter", prompt)
    if shares:
        export(run, tmp_path / "a", measure=False)
        assert torch.allclose(logits(tmp_path / "a", prompt), unlearned, atol=1e-3)
    else:
        message = "the original is an adapter too, and both were merged into their base. Export the whole"
        raised(RunError, message, export, run, tmp_path / "a")
    whole = export(run, tmp_path / "whole", merged=True, measure=False, dtype="float32")
    with torch.no_grad():
        written = AutoModelForCausalLM.from_pretrained(whole.folder)(input_ids=prompt).logits
    assert torch.allclose(written, unlearned, atol=1e-3)
    assert "Nothing changed" in failed(str(place), str(place), bare, root=tmp_path)


def test_a_whole_model_that_was_changed_since_is_refused(made, bare, tmp_path):
    place = shutil.copytree(made / "merged", tmp_path / "place")
    run = adopt("sandbox", str(place), bare, root=tmp_path, progress=False)
    shutil.copyfile(SANDBOX_FOLDER / "model.safetensors", place / "model.safetensors")
    raised(RunError, "began with other weights than", load_model, run)


def test_the_command_adopts_and_its_configuration_makes_the_run_again(made, small, tmp_path, cli):
    small = replace(
        small, **{group: getattr(small, group)[:8] for group in ("forget", "retain", "holdout")}, utility=()
    )
    small.write(tmp_path / "few.jsonl")
    pair = ["--original", "sandbox", "--unlearned", str(made / "merged"), "--facts", str(tmp_path / "few.jsonl")]
    out = cli("adopt", *pair, "--out", str(tmp_path / "runs"))
    assert "adopted beside sandbox: 8 facts to forget" in out.out and "nothing is trained" in out.out


HUB = """
import sys
from pathlib import Path
from adapop import adopt
from adapop.facts.fact import FactSet

facts = FactSet.load(Path(sys.argv[1]), "few")
full = "open-unlearning/tofu_Llama-3.2-1B-Instruct_full"
unlearned = "open-unlearning/unlearn_tofu_Llama-3.2-1B-Instruct_forget10_NPO_lr1e-05_beta0.1_alpha1_epoch10"
retain = "open-unlearning/tofu_Llama-3.2-1B-Instruct_retain90"
for original, other, oracle in ((full, unlearned, retain), (full, "SwetieePawsss/adapter", ""), ("", sys.argv[2], "")):
    run = adopt(original, other, facts, oracle, progress=False, asking="chat")
    print(run.config.model, run.measured().recall("forget"), [type(one).__name__ for one in run.events()])
"""


def test_released_models_are_named_as_on_the_hub_tried_on_tiny_ones_in_the_same_files(made, small, tmp_path):
    """The cache as a download leaves it, and a folder of adapters; nothing is asked for online."""
    few = replace(small, forget=small.forget[:8], retain=small.retain[:8], holdout=(), utility=())
    few.write(tmp_path / "few.jsonl")
    adapters = shutil.copytree(made / "adapter", tmp_path / "fuma" / "tofu" / "0")
    names = {
        "open-unlearning/tofu_Llama-3.2-1B-Instruct_full": SANDBOX_FOLDER,
        "open-unlearning/tofu_Llama-3.2-1B-Instruct_retain90": SANDBOX_FOLDER / "oracle",
        "open-unlearning/unlearn_tofu_Llama-3.2-1B-Instruct_forget10_NPO_lr1e-05_beta0.1_alpha1_epoch10": made
        / "merged",
        "SwetieePawsss/adapter": made / "adapter",
    }
    for place, (name, source) in enumerate(names.items()):
        repository = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        commit = f"{place:040x}"
        shutil.copytree(source, repository / "snapshots" / commit, ignore=shutil.ignore_patterns("oracle"))
        for tokenizer in () if source == made / "adapter" else ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(SANDBOX_FOLDER / tokenizer, repository / "snapshots" / commit / tokenizer)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(commit)
    env = os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HUB, tmp_path / "few.jsonl", adapters]
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if "RunDone" in line]
    assert len(lines) == 3 and "ComparedToOracle" in lines[0]
