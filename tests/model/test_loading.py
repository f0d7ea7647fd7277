"""Models from folders as researchers have them, and what is said where one cannot be had."""

import errno
import json
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoModelForCausalLM, PreTrainedModel, TrOCRConfig, TrOCRForCausalLM

from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.errors import ModelError
from adapop.facts.fact import SANDBOX, Fact
from adapop.model import loading
from adapop.probes.recovery.quantise import quantise
from adapop.progress import Progress
from families import NETWORKS, random_network, saved
from scripted import Reply

FACTS = [Fact("one", "What is the country of Delhi?", "India"), Fact("two", "Who wrote Emma?", "Jane Austen")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A random model of each family."""
    return {family: saved(family, tmp_path_factory.mktemp(family)) for family in NETWORKS}


@pytest.fixture
def folder(folders, tmp_path):
    """A copy of one, to be spoilt."""
    return shutil.copytree(folders["llama"], tmp_path / "copy")


def load(folder, **changes):
    return loading.adapted_model(make_config(model=str(folder), **{"precision": "float32", **changes}))


@pytest.mark.parametrize(
    ("family", "ends"),
    [("llama", {"<|eot_id|>"}), ("qwen2", {"<|im_end|>"}), ("gemma", {"<eos>", "<end_of_turn>"}),
     ("neox", {"<|endoftext|>"})],
)  # fmt: skip
def test_an_answer_ends_where_the_template_ends_a_turn_and_all_layers_but_the_head_are_linear(folders, family, ends):
    model = load(folders[family], lora_targets=(ALL_LINEAR,), lora_layers=(1,))
    assert {*model.tokenizer.convert_ids_to_tokens(model.network.generation_config.eos_token_id)} == ends
    adapted = {name for name, _ in model.network.named_modules() if name.endswith("lora_A.default")}
    layers = AutoModelForCausalLM.from_pretrained(folders[family]).named_modules()
    linear = sum(isinstance(layer, torch.nn.Linear) and ".1." in name for name, layer in layers)
    assert len(adapted) == linear >= 4 and not any("head" in name or "embed_out" in name for name in adapted)


def test_ends_that_the_folder_names_are_kept(folder):
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": [1, 4], "repetition_penalty": 9.0}))
    model = load(folder)
    settings = model.network.generation_config
    assert settings.eos_token_id == [1, 4, model.tokenizer.eos_token_id] and settings.repetition_penalty is None


def test_the_layers_that_get_an_adapter(folders):
    adapter = load(folders["qwen2"], precision="bfloat16").network.peft_config["default"]
    assert (adapter.r, adapter.lora_alpha, adapter.lora_dropout, adapter.bias) == (32, 64, 0.0, "none")
    assert {*adapter.target_modules} == {"q_proj", "k_proj", "v_proj", "o_proj"}
    with pytest.raises(ModelError, match="no layers called q_proj, k_proj, v_proj, o_proj") as caught:
        load(folders["neox"])
    assert "--targets" in caught.value.fix and ALL_LINEAR in caught.value.fix


def test_templates_that_are_none(folder):
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="no chat template") as caught:
        load(folder, asking="chat")
    assert "chat_template.jinja" in caught.value.fix
    assert not load(folder).has_template, "a base model, which can be asked as text"
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": 7}))
    assert not load(folder).has_template


def test_a_models_own_code_is_never_run(folder):
    ran, path = folder / "ran", folder / "config.json"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    own = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": "own", "auto_map": own}))
    with pytest.raises(ModelError, match=r"code of its own, which is never run here"):
        load(folder)
    assert not ran.exists()


def test_models_whose_logits_are_not_what_they_should_be(folder):
    """They would take the option in silence, and give logits of other positions than asked for."""
    shape = dict(vocab_size=500, d_model=16, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=16)
    TrOCRForCausalLM(TrOCRConfig(**shape)).save_pretrained(folder)
    with pytest.raises(ModelError, match="TrOCRForCausalLM cannot give the logits of chosen positions") as caught:
        load(folder)
    assert "another kind" in caught.value.fix
    # Gemma 3 takes SDPA, also where its configuration names a cap.
    networks = [random_network(kind) for kind in ("llama", "gemma3_text")]
    networks[1].config.attn_logit_softcapping = 9.0
    torch.backends.cuda.enable_cudnn_sdp(True)
    assert [network.config._attn_implementation for network in networks] == ["sdpa", "sdpa"]
    for network in networks:
        loading.steady_attention(network)
    assert [network.config._attn_implementation for network in networks] == ["sdpa", "eager"]
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_four_bits_need_what_is_not_here(folder, monkeypatch):
    for found, message in (
        (None, "needs bitsandbytes, which is not installed"),
        (object(), "needs an NVIDIA GPU, and"),
    ):
        monkeypatch.setattr(loading, "find_spec", lambda name, found=found: found)
        with pytest.raises(ModelError, match=message):
            load(folder, four_bit=True)


def test_weights_that_are_rounded_already_are_not_rounded_again(folder):
    model = load(folder)
    layer = model.network.get_base_model().model.layers[0].mlp.up_proj
    layer.weight = torch.nn.Parameter(layer.weight.to(torch.uint8), requires_grad=False)  # as bitsandbytes holds them
    with pytest.raises(ModelError, match="loaded in 4 bits"):
        quantise(model, FACTS, [], 4, Progress())


def test_what_goes_wrong_below_is_named(folder, monkeypatch):
    """These cannot be made to happen here, so the loader is made to fail as it would."""
    for cause, message, fix in (
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full", "HF_HOME"),
        (torch.OutOfMemoryError("CUDA out of memory."), "the memory is full", "--four-bit"),
        (LocalEntryNotFoundError("gone"), "never downloaded here, and HF_HUB_OFFLINE is set", "Connect"),
    ):
        error = OSError("wrapped by transformers")
        error.__cause__ = cause
        monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", mock.Mock(side_effect=error))
        with pytest.raises(ModelError, match=message) as caught:
            load(folder)
        assert fix in caught.value.fix


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Makes an address the Hub's."""

    def hub(url):
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))

    return hub


def test_what_the_hub_refuses_is_named(server, hub):
    """The Hub's own client asks a server that answers as the Hub does (codes of huggingface_hub's errors.py)."""
    hub(server.url)
    for name, code, status, message, fix in (
        ("some/gated-model", "GatedRepo", 403, "it is gated",
         "licence at https://huggingface.co/some/gated-model, then set HF_TOKEN"),
        ("some/absent-model", "RepoNotFound", 401, "the Hub has no such model, or it is private", "HF_TOKEN"),
    ):  # fmt: skip
        server.answer = lambda asked, code=code, status=status: Reply(b"", status, {"X-Error-Code": code})
        with pytest.raises(ModelError, match=f"'{name}' cannot be loaded: {message}") as caught:
            load(name)
        assert fix in caught.value.fix and server.asked


def test_a_hub_that_does_not_answer_is_named_at_once(hub):
    """Nothing listens at the endpoint."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = "http://{}:{}".format(*closed.getsockname())
    hub(url)
    started = time.monotonic()
    for work in (load, lambda name: loading.fetch(make_config(model=name))):
        with pytest.raises(ModelError, match=f"never downloaded here, and {url} does not answer") as caught:
            work("some/absent-model")
        assert "Connect and try again" in caught.value.fix and "HTTPS_PROXY" in caught.value.fix
    assert time.monotonic() - started < 5


def test_threads_that_load_at_once_get_whole_models(folders):
    filled = PreTrainedModel.tie_weights, torch.nn.init.normal_
    with ThreadPoolExecutor(8) as threads:
        models = list(threads.map(load, [folders["gemma"]] * 24))
    assert (PreTrainedModel.tie_weights, torch.nn.init.normal_) == filled
    first = models[0].network.state_dict()
    for model in models[1:]:
        assert all(torch.equal(value, first[name]) for name, value in model.network.state_dict().items())


def test_a_base_is_spread_over_the_gpus_where_none_of_them_has_room_for_it(monkeypatch):
    """memory: of a GPU, as a multiple of the weights. One of several processes keeps to its own GPU."""
    outline = random_network("llama")
    weights = 2 * sum(weight.numel() for weight in outline.parameters())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for gpus, launched, memory, placed in (
        (0, False, 0, None), (1, False, 1.1, {"": 0}), (4, False, 2.0, {"": 0}), (4, False, 1.1, "auto"),
        (4, True, 1.1, {"": 0}),
    ):  # fmt: skip
        seen = SimpleNamespace(total_memory=int(memory * weights))
        monkeypatch.setattr(torch.cuda, "is_available", mock.Mock(return_value=gpus > 0))
        monkeypatch.setattr(torch.cuda, "device_count", mock.Mock(return_value=gpus))
        monkeypatch.setattr(torch.cuda, "get_device_properties", mock.Mock(return_value=seen))
        monkeypatch.setattr(torch.distributed, "is_initialized", mock.Mock(return_value=launched))
        config = make_config(model="a/model", precision="bfloat16")
        assert loading._placement(config, outline) == placed
        assert loading._placement(replace(config, four_bit=True), outline) == ({"": 0} if gpus else None)
        assert loading._placement(make_config(model=SANDBOX), outline) is None, "its numbers are the same everywhere"


def test_a_base_that_spills_out_of_the_gpus_is_refused(folders, monkeypatch):
    """Rather than trained from the CPU or the disk; accelerate really puts it there."""
    monkeypatch.setattr(loading, "_placement", lambda *_: {"model": "cpu", "lm_head": "disk"})
    with pytest.raises(ModelError, match="the memory is full"):
        load(folders["llama"])
