"""A peft adapter's folder as a model, against plain transformers and peft."""

import json
import shutil
import zipfile

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop.config.presets import make_config
from adapop.errors import ModelError, RunError
from adapop.model.adapter_folder import CONFIG, WEIGHTS, merged, weights_sha256
from adapop.model.catalogue import shape_of
from adapop.model.loading import adapted_model, load_tokenizer
from adapop.paths import SHIPPED
from adapop.remark import Remark
from adapop.report.archive import write_archive
from adapop.report.card import loading
from adapop.report.export import export
from adapop.report.record import read_record
from adapop.runs.execute import load_model
from adapop.runs.run import create_run
from adapop.runs.weights import check_weights, keep_weights, weights_of
from edited import changed_json, flipped_bit
from families import saved
from raised import raised
from tiny_runs import trained

IDS = torch.arange(20)[None]


def adapter_of(base, folder, named=None, **settings):
    """A random LoRA adapter that shows, as plain peft saves it."""
    torch.manual_seed(1)
    lora = dict(r=4, lora_alpha=16, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM") | settings
    network = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), peft.LoraConfig(**lora))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "lora_" in name:
                weight.normal_(0, 0.2)
    network.save_pretrained(folder)
    changed_json(folder / CONFIG, base_model_name_or_path=named or str(base))
    return folder


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    place = tmp_path_factory.mktemp("given")
    base = saved("llama", place / "base")
    return base, adapter_of(base, place / "adapter")


@pytest.fixture
def pair(given, tmp_path):
    """(base, adapter) in a folder of their own, where the adapter names the base by its folder's name."""
    base, adapter = (shutil.copytree(one, tmp_path / one.name) for one in given)
    changed_json(adapter / CONFIG, base_model_name_or_path="base")
    return base, adapter


def load(folder, **changes):
    return adapted_model(make_config(model=str(folder), **{"precision": "float32", **changes}))


def logits(network):
    with torch.no_grad():
        return network.eval()(input_ids=IDS).logits


def plain(base, adapter):
    return logits(peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter))


@pytest.mark.parametrize("settings", [{}, {"use_rslora": True, "lora_alpha": 4}, {"use_dora": True}], ids=str)
def test_it_computes_what_transformers_and_peft_compute(given, tmp_path, settings):
    base, adapter = given[0], adapter_of(given[0], tmp_path / "adapter", **settings)
    whole, without = plain(base, adapter), logits(AutoModelForCausalLM.from_pretrained(base))
    model = load(adapter)
    assert (logits(model.network) - whole).abs().max() < 1e-5 < 0.01 < (whole - without).abs().max()
    assert model.notes[0] == Remark("adapter_merged", {"base": "base", "adapter": "adapter"})
    assert str(model.notes[0]) == "This model is base with the adapter adapter merged into it."
    narrow = load(adapter, precision="bfloat16").network.get_base_model()
    assert {weight.dtype for name, weight in narrow.named_parameters() if "lora" not in name} == {torch.bfloat16}
    assert shape_of(str(adapter))["hidden_size"] == 32


def test_the_base_is_looked_up_beside_the_adapter_and_among_what_ships(pair, tmp_path, monkeypatch):
    base, adapter = pair
    monkeypatch.chdir("/")
    first = merged(str(adapter))
    assert torch.allclose(logits(AutoModelForCausalLM.from_pretrained(first)), plain(base, adapter), atol=1e-5)
    changed_json(adapter / CONFIG, base_model_name_or_path="../base")
    assert weights_sha256(str(adapter)) and merged(str(adapter)).is_dir()
    own = adapter_of(SHIPPED["sandbox"], tmp_path / "own", named="sandbox")
    assert str(load(own).notes[0]) == "This model is sandbox with the adapter own merged into it."


def test_the_tokenizer_is_the_adapters_if_it_has_one(pair):
    base, adapter = pair
    chat = [{"role": "user", "content": "Who?"}]
    own = AutoTokenizer.from_pretrained(base)
    config = make_config(model=str(adapter))
    assert load_tokenizer(config).chat_template == own.chat_template
    own.chat_template = "{{ messages[0]['content'] }} Say:"
    own.save_pretrained(adapter)
    assert load_tokenizer(config).apply_chat_template(chat, tokenize=False) == "Who? Say:"


def test_a_flipped_bit_of_the_sum_is_mended_and_one_of_the_adapter_or_base_is_another_model(pair, caplog):
    base, adapter = pair
    folder = merged(str(adapter))
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(flipped_bit(whole))
    assert merged(str(adapter)) == folder and path.read_bytes() == whole
    assert "is merged again" in caplog.text
    places = {folder}
    for file in (adapter / WEIGHTS, base / "model.safetensors"):
        file.write_bytes(flipped_bit(file.read_bytes(), 0.9))
        places.add(merged(str(adapter)))
    assert len(places) == 3


def test_the_weights_that_a_run_records_are_of_base_and_adapter(pair, bare, tmp_path):
    base, adapter = pair
    run = create_run(make_config(model=str(adapter)), bare, None, tmp_path / "runs")
    keep_weights(run)
    assert weights_of(run).sha256 == weights_sha256(str(adapter))
    for file, place in ((adapter / WEIGHTS, 0.9), (base / "model.safetensors", 0.9)):
        content = file.read_bytes()
        file.write_bytes(flipped_bit(content, place))
        raised(RunError, "began with other weights", check_weights, run)
        file.write_bytes(content)
        check_weights(run)
    content = (adapter / CONFIG).read_text()
    changed_json(adapter / CONFIG, lora_alpha=17)
    raised(RunError, "began with other weights", check_weights, run)
    (adapter / CONFIG).write_text(content)
    changed_json(adapter / CONFIG, base_model_name_or_path=str(base.rename(tmp_path / "moved")))
    check_weights(run)


def settings(**values):
    return lambda base, adapter: changed_json(adapter / CONFIG, **values)


def rewritten(change):
    """The adapter's weights by name, changed."""
    return lambda base, adapter: save_file(change(load_file(adapter / WEIGHTS)), adapter / WEIGHTS)


def pickled(base, adapter):
    torch.save(load_file(adapter / WEIGHTS), adapter / "adapter_model.bin")
    (adapter / WEIGHTS).unlink()


REFUSED = {
    "no base": (settings(base_model_name_or_path="../none/here/it/is"), "there is no folder of its base"),
    "no base on the hub": (settings(base_model_name_or_path="some/base"), "its base was not found.*HF_HUB_OFFLINE"),
    "no name": (settings(base_model_name_or_path=None), "does not name the base"),
    "another kind": (settings(peft_type="IA3"), "of the kind 'IA3', and only LoRA"),
    "another task": (settings(task_type="SEQ_CLS"), "for the task 'SEQ_CLS'"),
    "a module to import": (settings(megatron_config={"a": 1}, megatron_core="antigravity"), "it is for Megatron"),
    "its own base": (settings(base_model_name_or_path="adapter"), "is an adapter itself"),
    "no json": (lambda base, adapter: (adapter / CONFIG).write_text("{"), "cannot be read"),
    "pickled": (pickled, "pickles are never read"),
    "no weights": (lambda base, adapter: (adapter / WEIGHTS).unlink(), f"holds no {WEIGHTS}"),
    "cut": (lambda base, adapter: (adapter / WEIGHTS).write_bytes(b"cut"), "fit the base 'base', or is damaged"),
    "rank": (settings(r=8), "does not fit the base 'base'.*size mismatch"),
    "width": (rewritten(lambda weights: {name: torch.ones(4, 40) if "lora_A" in name else weight
                                         for name, weight in weights.items()}), "size mismatch"),
    "layers": (settings(target_modules=["c_attn"]), "does not fit the base"),
    "too many": (rewritten(lambda weights: weights | {name.replace("layers.1", "layers.7"): weight.clone()
                                                      for name, weight in weights.items()}), "does not fit.*layers.7"),
    "too few": (rewritten(lambda weights: dict([*weights.items()][1:])), "does not fit the base .*1 weight,"),
    "quantised": (lambda base, adapter: changed_json(base / "config.json", quantization_config={"bits": 4}),
                  "is quantised"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_merged_is_refused_in_words(pair, change, message):
    base, adapter = pair
    change(base, adapter)
    error = raised(ModelError, f"(?s){message}", load, adapter)
    assert error.fix and "\n" not in error.message


def test_an_adapter_of_a_tied_output_layer_cannot_be_merged_unseen(given, tmp_path):
    """Merged, it would change the embedding too."""
    assert json.loads((given[0] / "config.json").read_text())["tie_word_embeddings"]
    adapter = adapter_of(given[0], tmp_path / "tied", target_modules=["lm_head"])
    raised(ModelError, "does not compute what base and adapter do", load, adapter)


def test_what_was_trained_on_an_adapters_folder_leaves_as_one_adapter_over_its_untouched_base(
    tmp_path, bare, monkeypatch
):
    """Of another rank, strength and layers, loaded by peft alone as its card says."""
    own = {"target_modules": ["q_proj", "down_proj"], "r": 2, "lora_alpha": 3, "use_rslora": True}
    start = adapter_of(SHIPPED["sandbox"], tmp_path / "start", "sandbox", **own)
    AutoTokenizer.from_pretrained(SHIPPED["sandbox"]).save_pretrained(start)
    settings = {"measure": "off", "lora_targets": ("q_proj", "v_proj"), "precision": "float32"}
    run = trained(bare, tmp_path / "runs", "wga", model=str(start), **settings)
    done = export(run, tmp_path / "out")
    named = json.loads((done.folder / CONFIG).read_text())
    assert (named["base_model_name_or_path"], named["revision"]) == ("sandbox", None)
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert "This adapter contains the changes of both" in card and "base_model:" not in card
    monkeypatch.chdir(tmp_path)
    made = {}
    exec(loading(read_record(run), str(done.folder)), made)
    plainly = logits(made["model"])
    assert torch.allclose(plainly, logits(load_model(run).network), atol=1e-4)
    assert done.differing == 0
    assert done.delivered.measured.rows[0]["kl"] is None, "the untouched base is not the run's original"
    tokenizer = AutoTokenizer.from_pretrained(done.folder)
    assert tokenizer.chat_template == load_tokenizer(run.config).chat_template
    whole = export(run, tmp_path / "whole", merged=True, measure=False, dtype="float32")
    assert torch.allclose(logits(AutoModelForCausalLM.from_pretrained(whole.folder)), plainly, atol=1e-4)


def test_an_adapters_folder_that_makes_no_single_adapter_with_another_is_merged_or_stays(tmp_path, bare):
    start = adapter_of(SHIPPED["sandbox"], tmp_path / "start", "sandbox", use_dora=True)
    run = trained(bare, tmp_path / "runs", "wga", model=str(start), measure="off", epochs=1, precision="float32")
    error = raised(
        RunError, "itself an adapter, 'start', with use_dora, and so cannot be combined", export, run, tmp_path / "a"
    )
    assert "--merged" in error.fix and not (tmp_path / "a").exists()
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")) as archive:
        assert "There is no adapter, because the model is itself an adapter" in archive.read("README.txt").decode()
        assert not [name for name in archive.namelist() if name.startswith("adapter/")]
    whole = export(run, tmp_path / "whole", merged=True, measure=False, dtype="float32")
    written = AutoModelForCausalLM.from_pretrained(whole.folder)
    assert torch.allclose(logits(written), logits(load_model(run).network), atol=1e-4)
    shutil.rmtree(start)
    for words in ({}, {"measure": False}, {"merged": True}):
        error = raised(RunError, "'start', that is not there any more", export, run, tmp_path / "b", **words)
        assert str(start) in error.fix and not (tmp_path / "b").exists()
    with zipfile.ZipFile(write_archive(run, tmp_path / "gone.zip", measure=False)) as archive:
        assert "that is not there any more." in " ".join(archive.read("README.txt").decode().split())
        assert not [name for name in archive.namelist() if name.startswith("adapter/")]
