"""On which layers of a model the adapter goes, and what is said where the targets do not fit it."""

import pytest
import torch

from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.errors import ModelError
from adapop.facts.fact import Fact
from adapop.model.adapter import blocks_of, check_gradients, left_out, with_adapter
from adapop.model.loading import adapted_model
from adapop.model.tokens import collate, encode_facts
from kinds import KINDS, random_model, saved_kind

FACTS = [Fact("one", "What is the country of Delhi?", "India"), Fact("two", "Who wrote Emma?", "Jane Austen")]
MULTIMODAL = ("gemma3", "qwen2_5_vl")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A random model of each kind that is loaded."""
    return {kind: saved_kind(kind, tmp_path_factory.mktemp(kind)) for kind in (*MULTIMODAL, "gpt2", "opt", "phi3")}


def config_of(model="some/model", **changes):
    return make_config(model=str(model), **{"precision": "float32", **changes})


def adapted(network) -> set[str]:
    """Names of the layers with an adapter."""
    names = (name for name, _ in network.named_modules() if name.endswith(".lora_A.default"))
    return {name.removeprefix("base_model.model.").removesuffix(".lora_A.default") for name in names}


@pytest.mark.quick("targets0-gemma3")
@pytest.mark.parametrize("kind", MULTIMODAL)
@pytest.mark.parametrize("targets", [("q_proj", "k_proj", "v_proj", "o_proj"), (ALL_LINEAR,)])
def test_of_a_model_that_sees_the_text_decoder_alone_is_trained(folders, kind, targets):
    model = adapted_model(config_of(folders[kind], lora_targets=targets))
    base = model.network.get_base_model()
    assert type(base).__name__.endswith("ForConditionalGeneration") and len(model.blocks) == 4
    names = adapted(model.network)
    assert len(names) == 4 * (4 if len(targets) == 4 else 7)
    assert all(name.startswith("model.language_model.layers.") for name in names)
    rows = encode_facts(model.tokenizer, FACTS)
    model.recompute()
    model.network.train()
    model.score(collate(rows, model.tokenizer.pad_token_id)).nll.sum().backward()
    check_gradients(model.network)
    assert not any("vis" in name for name, weight in base.named_parameters() if weight.grad is not None)


@torch.no_grad()
@pytest.mark.parametrize("kind", MULTIMODAL)
def test_padding_changes_no_score(folders, kind):
    model = adapted_model(config_of(folders[kind], lora_targets=(ALL_LINEAR,)))
    rows = encode_facts(model.tokenizer, FACTS)
    together = model.score(collate(rows, model.tokenizer.pad_token_id)).nll
    alone = torch.cat([model.score(collate([row], model.tokenizer.pad_token_id)).nll for row in rows])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    assert len(model.generate([fact.question for fact in FACTS], 2)) == 2


def test_blocks_can_be_chosen(folders):
    model = adapted_model(config_of(folders["gemma3"], lora_layers=(1,)))
    assert {name.split(".")[3] for name in adapted(model.network)} == {"1"}
    names = adapted(adapted_model(config_of(folders["gpt2"], lora_targets=(ALL_LINEAR,))).network)
    assert len(names) == 4 * 4 and {name.rpartition(".")[2] for name in names} == {"c_attn", "c_proj", "c_fc"}


@torch.no_grad()
def test_gpt2_s_transposed_layers_get_the_adapter_that_is_computed_by_hand(folders, recwarn):
    """Its layers hold their weights [in, out], not [out, in]."""
    model = adapted_model(config_of(folders["gpt2"], lora_targets=("c_attn", "c_proj", "c_fc")))
    batch = collate(encode_facts(model.tokenizer, FACTS), model.tokenizer.pad_token_id)
    for name, weight in model.network.named_parameters():
        if "lora_B" in name:
            weight.normal_(std=0.1, generator=torch.Generator().manual_seed(1))
    found = model.score(batch, logits=True).logits
    for layer in model.network.modules():
        if hasattr(layer, "lora_A"):
            change = layer.lora_B["default"].weight @ layer.lora_A["default"].weight * layer.scaling["default"]
            layer.get_base_layer().weight += change.T
    with model.original():
        torch.testing.assert_close(model.score(batch, logits=True).logits, found, atol=1e-5, rtol=1e-5)
    assert not [warning for warning in recwarn if "fan_in_fan_out" in str(warning.message)]


@pytest.mark.parametrize(
    ("kind", "targets", "message", "fix"),
    [
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
        ("mamba", (ALL_LINEAR,), "'out_proj' is incompatible", "--targets dt_proj,in_proj,x_proj "),
    ],
)  # fmt: skip
def test_targets_that_do_not_fit_are_named_and_the_advice_works(kind, targets, message, fix):
    changes = {} if targets is None else {"lora_targets": targets}
    with pytest.raises(ModelError) as caught:
        with_adapter(random_model(kind), config_of(**changes))
    assert message in caught.value.message and fix in caught.value.fix
    advised = caught.value.fix.partition("--targets ")[2].split()[0]
    network = with_adapter(random_model(kind), config_of(lora_targets=tuple(advised.split(","))))
    assert left_out(network, network_config := config_of(lora_targets=tuple(advised.split(",")))) == ()
    assert {name.rpartition(".")[2] for name in adapted(network)} >= {*network_config.lora_targets}


def test_targets_that_are_missing_are_said_before_weights_are_read(folders, tmp_path, monkeypatch):
    config = config_of()
    network = with_adapter(random_model("phi"), config)
    assert left_out(network, config) == (
        "The model has no layers called o_proj: the adapter is on k_proj, q_proj, v_proj alone.",
    )
    assert left_out(with_adapter(random_model("qwen3"), config), config) == ()
    (folders["phi3"] / "model.safetensors").rename(tmp_path / "elsewhere")
    try:
        with pytest.raises(ModelError, match="no layers called q_proj"):
            adapted_model(config_of(folders["phi3"]))
    finally:
        (tmp_path / "elsewhere").rename(folders["phi3"] / "model.safetensors")


def test_the_blocks_are_the_text_decoder_s():
    for kind in sorted(KINDS):
        base = random_model(kind)
        blocks = blocks_of(base)
        assert len(blocks) == 4, kind
        assert {id(weight) for block in blocks for weight in block.parameters()} <= {*map(id, base.parameters())}
        assert not any("vis" in name for name, part in base.named_modules() if any(part is block for block in blocks))


@torch.no_grad()
def test_a_model_is_trained_without_its_dropout(folders):
    """OPT's is 0.5 here: the same score twice, in training and out of it."""
    model = adapted_model(config_of(folders["opt"], lora_targets=("q_proj", "v_proj")))
    batch = collate(encode_facts(model.tokenizer, FACTS), model.tokenizer.pad_token_id)
    model.network.eval()
    resting = model.score(batch).nll
    model.network.train()
    assert torch.equal(model.score(batch).nll, resting)
