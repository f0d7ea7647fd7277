import errno
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
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    TrOCRConfig,
    TrOCRForCausalLM,
)  # fmt: skip

from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.errors import ModelError
from adapop.facts.fact import SANDBOX, Fact
from adapop.model import loading
from adapop.model.adapter import blocks_of, check_gradients, left_out, with_adapter
from adapop.model.catalogue import shape_of
from adapop.model.checks import named_failures, outline_of
from adapop.model.loading import adapted_model, load_tokenizer
from adapop.model.tokens import collate, encode_facts
from adapop.probes.recovery.quantise import quantise
from adapop.progress import Progress
from adapop.remark import Remark
from edited import changed_json
from families import KINDS, NETWORKS, random_model, random_network, saved, saved_kind
from raised import raised
from scripted import Reply
from stirred import stirred

FACTS = [Fact("one", "What is the country of Delhi?", "India"), Fact("two", "Who wrote Emma?", "Jane Austen")]
MULTIMODAL = ("gemma3", "qwen2_5_vl")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {family: saved(family, tmp_path_factory.mktemp(family)) for family in NETWORKS}


@pytest.fixture
def folder(folders, tmp_path):
    return shutil.copytree(folders["llama"], tmp_path / "copy")


def config_of(model="some/model", **changes):
    return make_config(model=str(model), **{"precision": "float32", **changes})


def load(folder, **changes):
    return adapted_model(config_of(folder, **changes))


def batch_of(model):
    return collate(encode_facts(model.tokenizer, FACTS), model.tokenizer.pad_token_id)


@pytest.mark.parametrize(("family", "ends"), [
    ("llama", {"<|eot_id|>"}), ("qwen2", {"<|im_end|>"}), ("gemma", {"<eos>", "<end_of_turn>"}),
    ("neox", {"<|endoftext|>"})])  # fmt: skip
def test_an_answer_ends_where_the_template_ends_a_turn_and_all_layers_but_the_head_are_linear(folders, family, ends):
    model = load(folders[family], lora_targets=(ALL_LINEAR,), lora_layers=(1,))
    assert {*model.tokenizer.convert_ids_to_tokens(model.network.generation_config.eos_token_id)} == ends
    adapter = model.network.peft_config["default"]
    assert (adapter.r, adapter.lora_alpha, adapter.lora_dropout, adapter.bias) == (32, 64, 0.0, "none")
    adapted = {name for name, _ in model.network.named_modules() if name.endswith("lora_A.default")}
    layers = AutoModelForCausalLM.from_pretrained(folders[family]).named_modules()
    linear = sum(isinstance(layer, torch.nn.Linear) and ".1." in name for name, layer in layers)
    assert len(adapted) == linear >= 4 and not any("head" in name or "embed_out" in name for name in adapted)


def test_ends_that_a_folder_names_are_kept_and_templates_may_be_none(folder):
    changed_json(folder / "generation_config.json", eos_token_id=[1, 4], repetition_penalty=9.0)
    model = load(folder)
    settings = model.network.generation_config
    assert settings.eos_token_id == [1, 4, model.tokenizer.eos_token_id] and settings.repetition_penalty is None
    (folder / "chat_template.jinja").unlink()
    assert "chat_template.jinja" in raised(ModelError, "no chat template", load, folder, asking="chat").fix
    assert not load(folder).has_template, "a base model, which can be asked as text"
    changed_json(folder / "tokenizer_config.json", chat_template=7)
    assert not load(folder).has_template


def test_a_models_own_code_is_never_run(folder):
    ran = folder / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    own = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    changed_json(folder / "config.json", model_type="own", auto_map=own)
    raised(ModelError, r"code of its own, which is never run here", load, folder)
    assert not ran.exists()


def test_models_whose_logits_are_not_what_they_should_be(folder):
    """They would take the option in silence, and give logits of other positions than asked for."""
    shape = dict(vocab_size=500, d_model=16, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=16)
    TrOCRForCausalLM(TrOCRConfig(**shape)).save_pretrained(folder)
    error = raised(ModelError, "TrOCRForCausalLM cannot compute the logits of chosen positions", load, folder)
    assert "another kind" in error.fix
    # Gemma 3 takes SDPA, also where its configuration names a cap.
    networks = [random_network(kind) for kind in ("llama", "gemma3_text")]
    networks[1].config.attn_logit_softcapping = 9.0
    torch.backends.cuda.enable_cudnn_sdp(True)
    assert [network.config._attn_implementation for network in networks] == ["sdpa", "sdpa"]
    for network in networks:
        loading.steady_attention(network)
    assert [network.config._attn_implementation for network in networks] == ["sdpa", "eager"]
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.slow
def test_four_bits_are_trained_on_a_cpu_as_the_weights_that_they_stand_for(tmp_path):
    """Also after a pass without gradients, as of the measurement before training; as wide as blocks of weights are."""
    bits = pytest.importorskip("bitsandbytes")  # not required by the tests: peft would import it in those of ZeroGPU
    heads = dict(num_attention_heads=2, num_key_value_heads=2, head_dim=64)
    folder = saved("llama", tmp_path, hidden_size=128, intermediate_size=256, **heads)
    plain, rounded, four = load(folder), load(folder), load(folder, four_bit=True)
    layers = {name: one for name, one in four.network.named_modules() if isinstance(one, bits.nn.Linear4bit)}
    assert len(layers) == 14 and {one.weight.quant_state.quant_type for one in layers.values()} == {"nf4"}
    with torch.no_grad():
        for name, layer in layers.items():
            values = bits.functional.dequantize_4bit(layer.weight.data, layer.weight.quant_state)
            rounded.network.get_submodule(name).weight.copy_(values)
        for name, weight in rounded.network.named_parameters():
            if "lora_" in name:
                weight.copy_(four.network.get_parameter(name))
        first, true, other = (model.score(batch_of(model)).nll for model in (plain, rounded, four))
    assert (first - other).abs().max() > 0 and torch.allclose(true, other, atol=1e-3)
    for model in (rounded, four):
        model.score(batch_of(model)).nll.sum().backward()
    trained = [name for name, weight in four.network.named_parameters() if "lora_B" in name]
    assert len(trained) == 8  # of attention
    for name in trained:
        gradient = rounded.network.get_parameter(name).grad
        assert (four.network.get_parameter(name).grad - gradient).norm() < 0.02 * gradient.norm(), name


def test_four_bits_need_their_package_and_are_not_rounded_again(folder, monkeypatch):
    model = load(folder)
    layer = model.network.get_base_model().model.layers[0].mlp.up_proj
    layer.weight = torch.nn.Parameter(layer.weight.to(torch.uint8), requires_grad=False)  # as bitsandbytes holds them
    raised(ModelError, "loaded in 4 bits", quantise, model, FACTS, [], 4, Progress())
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    raised(ModelError, "needs bitsandbytes, which is not installed", load, folder, four_bit=True)


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
        assert fix in raised(ModelError, message, load, folder).fix


@pytest.mark.parametrize(("kind", "blocks"), [("gemma4_text", 30), ("gemma3n_text", 35), ("modernbert-decoder", 22)])
def test_sizes_that_differ_by_layer_and_decoders_by_another_name(kind, blocks):
    if kind not in CONFIG_MAPPING:
        pytest.skip("this version of transformers does not know it")
    _, outline = outline_of(AutoConfig.for_model(kind))
    network = with_adapter(outline, config_of(lora_rank=1, lora_targets=(ALL_LINEAR,)))
    assert len(blocks_of(outline)) == blocks and left_out(network, config_of(lora_targets=(ALL_LINEAR,))) == ()


def test_a_reason_that_begins_with_a_line_break_is_told(folder):
    with pytest.raises(ModelError, match="cannot be loaded: This needs timm"), named_failures(config_of(folder)):
        raise OSError("\nThis needs timm.\n")


def test_of_templates_by_name_the_default_is_the_one(folder, tmp_path):
    """As in Command R and Hermes, whose other templates are for tools."""
    shutil.copytree(folder, tmp_path / "named")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    own, tokenizer.chat_template = tokenizer.chat_template, {"default": tokenizer.chat_template, "tool_use": "{{ 1 }}"}
    tokenizer.save_pretrained(tmp_path / "named")
    assert load_tokenizer(config_of(tmp_path / "named")).chat_template == own


def test_the_shape_of_a_folder_is_its_own_though_it_is_called_as_a_preset(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "smollm2")
    assert shape_of(str(tmp_path / "smollm2"))["hidden_size"] != shape_of("smollm2")["hidden_size"] == 576


@pytest.fixture
def hub(server, monkeypatch):
    def hub(url):
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")

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
        assert fix in raised(ModelError, f"'{name}' cannot be loaded: {message}", load, name).fix and server.asked


def test_a_hub_that_does_not_answer_is_named_at_once(hub):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = "http://{}:{}".format(*closed.getsockname())
    hub(url)
    started = time.monotonic()
    for work in (load, lambda name: loading.fetch(make_config(model=name))):
        error = raised(ModelError, f"never downloaded here, and {url} does not answer", work, "some/absent-model")
        assert "Connect" in error.fix and "HTTPS_PROXY" in error.fix
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
        (4, True, 1.1, {"": 0})):  # fmt: skip
        properties = SimpleNamespace(total_memory=int(memory * weights))
        monkeypatch.setattr(torch.cuda, "is_available", mock.Mock(return_value=gpus > 0))
        monkeypatch.setattr(torch.cuda, "device_count", mock.Mock(return_value=gpus))
        monkeypatch.setattr(torch.cuda, "get_device_properties", mock.Mock(return_value=properties))
        monkeypatch.setattr(torch.distributed, "is_initialized", mock.Mock(return_value=launched))
        config = make_config(model="a/model", precision="bfloat16")
        assert loading._placement(config, outline) == placed
        assert loading._placement(replace(config, four_bit=True), outline) == ({"": 0} if gpus else None)
        assert loading._placement(make_config(model=SANDBOX), outline) is None, "its numbers are the same everywhere"


def test_a_base_that_spills_out_of_the_gpus_is_refused(folders, monkeypatch):
    """Rather than trained from the CPU or the disk; accelerate really puts it there."""
    monkeypatch.setattr(loading, "_placement", lambda *_: {"model": "cpu", "lm_head": "disk"})
    raised(ModelError, "the memory is full", load, folders["llama"])


@pytest.fixture(scope="module")
def of_kinds(tmp_path_factory):
    return {kind: saved_kind(kind, tmp_path_factory.mktemp(kind)) for kind in (*MULTIMODAL, "gpt2", "opt", "phi3")}


def adapted(network) -> set[str]:
    names = (name for name, _ in network.named_modules() if name.endswith(".lora_A.default"))
    return {name.removeprefix("base_model.model.").removesuffix(".lora_A.default") for name in names}


@pytest.mark.quick("targets0-gemma3")
@pytest.mark.parametrize("kind", MULTIMODAL)
@pytest.mark.parametrize("targets", [("q_proj", "k_proj", "v_proj", "o_proj"), (ALL_LINEAR,)])
def test_of_a_model_that_sees_the_text_decoder_alone_is_trained(of_kinds, kind, targets):
    model = load(of_kinds[kind], lora_targets=targets)
    base = model.network.get_base_model()
    assert type(base).__name__.endswith("ForConditionalGeneration") and len(model.blocks) == 4
    names = adapted(model.network)
    assert len(names) == 4 * (4 if len(targets) == 4 else 7)
    assert all(name.startswith("model.language_model.layers.") for name in names)
    model.recompute()
    model.network.train()
    model.score(batch_of(model)).nll.sum().backward()
    check_gradients(model.network)
    assert not any("vis" in name for name, weight in base.named_parameters() if weight.grad is not None)


@torch.no_grad()
@pytest.mark.parametrize("kind", MULTIMODAL)
def test_padding_changes_no_score(of_kinds, kind):
    model = load(of_kinds[kind], lora_targets=(ALL_LINEAR,))
    rows = encode_facts(model.tokenizer, FACTS)
    together = model.score(batch_of(model)).nll
    alone = torch.cat([model.score(collate([row], model.tokenizer.pad_token_id)).nll for row in rows])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    assert len(model.generate([fact.question for fact in FACTS], 2)) == 2


def test_the_blocks_are_the_text_decoder_s_and_can_be_chosen(of_kinds):
    model = load(of_kinds["gemma3"], lora_layers=(1,))
    assert {name.split(".")[3] for name in adapted(model.network)} == {"1"}
    names = adapted(load(of_kinds["gpt2"], lora_targets=(ALL_LINEAR,)).network)
    assert len(names) == 4 * 4 and {name.rpartition(".")[2] for name in names} == {"c_attn", "c_proj", "c_fc"}
    for kind in sorted(KINDS):
        base = random_model(kind)
        blocks = blocks_of(base)
        assert len(blocks) == 4, kind
        assert {id(weight) for block in blocks for weight in block.parameters()} <= {*map(id, base.parameters())}
        assert not any("vis" in name for name, part in base.named_modules() if any(part is block for block in blocks))


@torch.no_grad()
def test_gpt2_s_transposed_layers_get_the_adapter_that_is_computed_by_hand(of_kinds, recwarn):
    """Its layers hold their weights [in, out], not [out, in]."""
    model = load(of_kinds["gpt2"], lora_targets=("c_attn", "c_proj", "c_fc"))
    batch = batch_of(model)
    logits = stirred(model, 0.1).score(batch, logits=True).logits
    for layer in model.network.modules():
        if hasattr(layer, "lora_A"):
            change = layer.lora_B["default"].weight @ layer.lora_A["default"].weight * layer.scaling["default"]
            layer.get_base_layer().weight += change.T
    with model.original():
        torch.testing.assert_close(model.score(batch, logits=True).logits, logits, atol=1e-5, rtol=1e-5)
    assert not [warning for warning in recwarn if "fan_in_fan_out" in str(warning.message)]


@pytest.mark.parametrize(("kind", "targets", "message", "fix"), [
    ("gpt2", None, "no layers called q_proj, k_proj, v_proj, o_proj. Its linear layers: c_attn, c_fc, c_proj.",
     "--targets c_attn,c_proj "),
    ("phi3", None, "no layers called q_proj, k_proj, v_proj. Its linear layers: down_proj, gate_up_proj, o_",
     "--targets o_proj,qkv_proj "),
    ("deepseek_v3", None, "no layers called q_proj, k_proj, v_proj. Its",
     "--targets kv_a_proj_with_mqa,kv_b_proj,o_proj,q_a_proj,q_b_proj "),
    ("qwen3", ("q_proj", "nope"), "no layers called nope. Its linear layers: down_proj, gate_proj, k_proj",
     "--targets k_proj,o_proj,q_proj,v_proj "),
    ("qwen3_next", None, "Only 1 of the model's 4 blocks have layers called q_proj, k_proj, v_proj, o_proj.",
     "--targets in_proj_ba,in_proj_qkvz,k_proj,o_proj,out_proj,q_proj,v_proj "),
    ("mamba", (ALL_LINEAR,), "'out_proj' is incompatible", "--targets dt_proj,in_proj,x_proj ")])  # fmt: skip
def test_targets_that_do_not_fit_are_named_and_the_advice_works(kind, targets, message, fix):
    changes = {} if targets is None else {"lora_targets": targets}
    error = raised(ModelError, "", with_adapter, random_model(kind), config_of(**changes))
    assert message in error.message and fix in error.fix and (targets or ALL_LINEAR in error.fix)
    advised = error.fix.partition("--targets ")[2].split()[0]
    network = with_adapter(random_model(kind), config_of(lora_targets=tuple(advised.split(","))))
    assert left_out(network, network_config := config_of(lora_targets=tuple(advised.split(",")))) == ()
    assert {name.rpartition(".")[2] for name in adapted(network)} >= {*network_config.lora_targets}


def test_targets_that_are_missing_are_said_before_weights_are_read(of_kinds, tmp_path):
    config = config_of()
    network = with_adapter(random_model("phi"), config)
    missing = Remark("targets_missing", {"names": "o_proj", "adapted": "k_proj, q_proj, v_proj"})
    assert (
        left_out(network, config) == (missing,) and left_out(with_adapter(random_model("qwen3"), config), config) == ()
    )
    (of_kinds["phi3"] / "model.safetensors").rename(tmp_path / "elsewhere")
    try:
        raised(ModelError, "no layers called q_proj", adapted_model, config_of(of_kinds["phi3"]))
    finally:
        (tmp_path / "elsewhere").rename(of_kinds["phi3"] / "model.safetensors")


@torch.no_grad()
def test_a_model_is_trained_without_its_dropout(of_kinds):
    """OPT's is 0.3 here: the same score twice, in training and out of it."""
    model = load(of_kinds["opt"], lora_targets=("q_proj", "v_proj"))
    batch = batch_of(model)
    model.network.eval()
    resting = model.score(batch).nll
    model.network.train()
    assert torch.equal(model.score(batch).nll, resting)


def test_what_embeds_the_words_too_gets_no_adapter_which_merged_would_change_both():
    raised(ModelError, "also the embedding", adapted_model, make_config(lora_targets=("q_proj", "lm_head")))


def test_another_way_of_asking_a_shipped_model_stays_with_its_run():
    own = load_tokenizer(make_config()).chat_template
    adapted_model(make_config(asking="auto")).ask("text-examples", [("Where?", "There")])
    assert load_tokenizer(make_config()).chat_template == own


def test_a_tokenizer_without_any_token_to_fill_up_with(folder):
    model = load(folder)
    questions = ["Where?", "And where is the other one of them?"]
    replies = model.generate(questions, max_new_tokens=3)
    model.tokenizer.pad_token = None
    assert model.generate(questions, max_new_tokens=3) == replies
