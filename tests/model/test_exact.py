import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig

from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.model import generation, packing
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.generation import can_drop_rows, greedy
from adapop.model.loading import steady_attention
from adapop.model.tokens import Row, collate, to_continue
from adapop.remark import Remark
from families import ARCHITECTURES, random_network
from stirred import stirred

UNPACKED = {"bloom", "falcon with alibi", "mamba", "lfm2", "qwen3_next"}  # positions in the scores, or a state
SHARED = (5, 6, 7, 8, 9, 10)
ROWS = [
    Row((*SHARED, 11, 12, 13), (14, 15), 0), Row((*SHARED, 11), (16,), 1),
    Row((*SHARED, 20, 21, 22, 23, 24, 25), (26, 27, 28), 2), Row(SHARED, (29,), 3),
    Row((*SHARED, 11, 12, 13), (30, 31, 32, 33), 4)]  # fmt: skip
ORDER = [3, 1, 0, 4, 2]  # of their prompts: one of them is the beginning of others, and two are the same
MOST = 12
PROMPTS = [[5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15, 16, 17], [4], [20, 21, 22, 5, 6], [7] * 6, [9, 4, 9]]


def adapted(kind):
    """A random model with an adapter on all linear layers (or some that peft can adapt) that does something."""
    base = random_network(kind)
    steady_attention(base)
    targets = {"gpt2": ("c_attn", "c_fc"), "mamba": ("in_proj", "x_proj")}.get(kind, (ALL_LINEAR,))
    network = with_adapter(base, make_config(lora_targets=targets, lora_rank=2))
    stirred(network, 0.1).eval()  # some of these networks have dropout, which `adapted_model` takes out
    return AdaptedModel(network, SimpleNamespace(pad_token_id=0))


def gradient(model, nll):
    """Of a loss in which every token has a weight of its own."""
    model.network.zero_grad()
    (nll * torch.linspace(0.5, 1.5, len(nll))).sum().backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters if weight.grad is not None])


def alone(model):
    losses = []
    for row in ROWS:
        logits = model.network(input_ids=torch.tensor([row.prompt + row.answer]), use_cache=False).logits[0]
        predicted = logits[len(row.prompt) - 1 : -1].float()
        losses.append(cross_entropy(predicted, torch.tensor(row.answer), reduction="none"))
    return torch.cat(losses)


@pytest.mark.quick("llama", "gemma2", "qwen3", "gpt2", "mamba", "falcon")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_batch_is_its_rows_alone(kind):
    """Padded, and packed on one line or on two if the architecture allows it."""
    model = adapted(kind)
    expected = alone(model)
    expected_gradient = gradient(model, expected)
    assert expected.std() > 0.1 and expected_gradient.norm() > 0.1
    three = [ORDER[:1], ORDER[1:3], ORDER[3:]]
    for batch in (collate(ROWS, 0), *(collate(ROWS, 0, lines) for lines in ([ORDER], [ORDER[:2], ORDER[2:]], three))):
        nll = model.score(batch).nll
        off = (nll - expected).abs().max()
        gradient_off = (gradient(model, nll) - expected_gradient).norm() / expected_gradient.norm()
        if batch.tree is not None and kind in UNPACKED:
            assert off > 1e-3 and gradient_off > 1e-3, "else it could be packed"
        else:
            assert off < 1e-5 and gradient_off < 1e-5
    assert model.packs == (kind not in UNPACKED)


@pytest.mark.quick("llama", "gemma2", "gpt2", "falcon with alibi", "lfm2", "qwen3_next")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_what_cannot_be_packed_is_known_in_bf16_too(kind):
    """Real models' precision, whose rounding hides what a state makes of a few tokens."""
    model = adapted(kind)
    model.network.bfloat16()
    model = AdaptedModel(model.network, model.tokenizer)
    assert model.packs == (kind not in UNPACKED) and len(model.notes) == (kind in UNPACKED)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_states_of_packed_rows_are_those_of_rows_alone(kind):
    model = adapted(kind)
    block = None if kind == "gpt2" else 1  # its blocks are called otherwise
    padded, packed = (model.score(batch, True, True, block) for batch in (collate(ROWS, 0), collate(ROWS, 0, [ORDER])))
    for name in ("logits", "hidden", "states", "gold"):
        if (expected := getattr(padded, name)) is not None:
            torch.testing.assert_close(getattr(packed, name), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "gemma2", "cohere2", "gpt_neox"])
def test_logits_are_computed_where_answers_are_predicted_and_nowhere_else(kind):
    """Whatever the architecture does to them after: a cap, a scale."""
    model, batch, widths = adapted(kind), collate(ROWS, 0), []
    head = model.network.get_base_model().get_output_embeddings()
    head.register_forward_hook(lambda module, inputs, output: widths.append(output.shape))
    whole = model.network(input_ids=batch.ids, use_cache=False).logits
    scored = model.score(batch, logits=True)
    assert widths[-1] == (batch.count, whole.shape[-1]) and scored.logits.std() > 0
    torch.testing.assert_close(scored.logits, batch.at(whole, batch.predicts), rtol=1e-5, atol=1e-5)


def similar(count, shared, own, answer=2):
    head = tuple(range(5, 5 + shared))
    return [Row((*head, *[60 + i % 30] * own), (7,) * answer, i) for i in range(count)]


def of_several_kinds(kinds, count):
    """Rows of which every `kinds`-th begins alike, with three tokens of their own and one of an answer."""
    return [Row((1, *[10 + i % kinds] * 4, 100 + i, 2, 3), (7,), i) for i in range(count)]


PACKED = {  # rows, and how many lines they are packed on
    "much is shared": (similar(40, 12, 3), 1), "little is shared": (similar(40, 2, 12), 0),
    "a small batch": (similar(8, 12, 3), 1), "a row alone": (similar(1, 12, 3), 0),
    "several lines": (similar(100, 20, 10), 2), "one line": (similar(64, 50, 1), 1),
    "all but one": ([*similar(9, 20, 3), Row((3, 4), (5,), 0)], 1), "eight beginnings": (of_several_kinds(8, 32), 1),
    "eight beginnings on several lines": (of_several_kinds(8, 256), 3), "each its own": (of_several_kinds(20, 20), 0),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "lines"), PACKED.values(), ids=PACKED)
def test_rows_are_packed_where_it_saves_a_third_of_the_tokens(rows, lines):
    layout = packing.packed_lines(rows)
    assert len(layout) == lines
    batch, padded = collate(rows, 0, layout), collate(rows, 0)
    assert (batch.tree is None) == (lines == 0)
    if lines:
        flat = [place for line in layout for place in line]
        assert sorted(flat) == list(range(len(rows)))
        assert [rows[place].prompt for place in flat] == sorted(row.prompt for row in rows)
        assert batch.ids.numel() <= 2 / 3 * padded.ids.numel() and batch.ids.shape[1] <= packing.LINE + 24
    for where in ("predicts", "reads"):
        assert batch.at(batch.ids, getattr(batch, where)).equal(padded.at(padded.ids, getattr(padded, where)))


def test_a_token_sees_its_own_row_alone():
    rows, lines = [*ROWS, *of_several_kinds(3, 7)], [[*ORDER], [5, 8, 11, 6], [9, 7, 10]]
    batch = collate(rows, 0, lines)
    tree, texts = batch.tree, [row.prompt + row.answer for row in rows]
    for number, line in enumerate(lines):
        for row, place in enumerate(line):
            for column in (tree.part[number] == row).nonzero().flatten().tolist():
                sees = tree.positions[number] < tree.shared[number, row, tree.part[number]]
                sees &= tree.positions[number] <= tree.positions[number, column]
                read = sorted(zip(tree.positions[number, sees].tolist(), batch.ids[number, sees].tolist()))
                assert read == [*enumerate(texts[place][: tree.positions[number, column] + 1])]
    model, rows = adapted("llama"), similar(40, 12, 3)
    plain = collate(rows, 0)
    with torch.no_grad(), packing.read_as(model.batch(rows)), ThreadPoolExecutor(1) as thread:
        apart = thread.submit(lambda: model.score(plain).nll.detach()).result()
    torch.testing.assert_close(apart, model.score(plain).nll.detach())


def test_a_model_that_cannot_pack_pads_and_says_so():
    for kind, lines, notes in (("llama", 1, 0), ("mamba", 40, 1)):
        model = adapted(kind)
        assert model.notes == ()
        assert len(model.batch(similar(40, 2, 12)).ids) == 40 and model.notes == (), "there was nothing to pack"
        assert len(model.batch(similar(40, 12, 3)).ids) == lines and len(model.notes) == notes
    assert model.notes == (Remark("beginnings_not_shared"),)


def replies_of_generate(network, read, ends) -> list[list[int]]:
    output = network.generate(**read, max_new_tokens=MOST, do_sample=False, pad_token_id=0)
    rows = output[:, read["input_ids"].shape[1] :].tolist()
    return [list(takewhile(lambda token: token not in ends, row)) for row in rows]


@pytest.mark.quick("llama", "gemma2", "qwen3", "gpt2", "mamba", "bloom")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_the_text_is_that_of_generate(kind, monkeypatch):
    """Rows end at different times, as ids that the model writes are made to be ends."""
    network = random_network(kind).eval()
    read = to_continue(PROMPTS, 0, torch.device("cpu"))
    network.generation_config = GenerationConfig(eos_token_id=None)
    unending = replies_of_generate(network, read, ())
    ends = sorted({reply[place] for place, reply in enumerate(unending[:4], start=1)})
    network.generation_config = GenerationConfig(eos_token_id=ends)
    if not can_drop_rows(network):
        assert kind in {"bloom", "mamba", "lfm2", "qwen3_next"}
        return
    expected = replies_of_generate(network, read, ends)
    assert len({len(reply) for reply in expected}) > 1, "all end at once: nothing is tried"
    sizes = []
    network.register_forward_pre_hook(lambda _, args, given: sizes.append(len(given["input_ids"])), with_kwargs=True)
    with warnings.catch_warnings(action="error"):  # each name of the cache is warned of by some transformers
        assert greedy(network, network, PROMPTS, MOST, 0) == expected
    assert sizes[0] == len(PROMPTS) and sizes[-1] < len(PROMPTS), "finished rows were not taken out"
    monkeypatch.setattr(generation, "TAKEN_OUT", 2.0)
    assert greedy(network, network, PROMPTS, MOST, 0) == expected


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
def test_what_prompts_begin_with_is_read_once_and_changes_no_text(kind):
    network = random_network(kind).eval()
    network.generation_config = GenerationConfig(eos_token_id=None)
    begins = list(range(3, 3 + generation.SHARED_FROM))
    prompts = [begins + list(prompt) for prompt in PROMPTS]
    expected = replies_of_generate(network, to_continue(prompts, 0, torch.device("cpu")), ())
    widths = []
    network.register_forward_pre_hook(lambda _, args, given: widths.append(given["input_ids"].shape), with_kwargs=True)
    assert greedy(network, network, prompts, MOST, 0) == expected and widths[0] == (1, len(begins))
    assert widths[1] == (len(prompts), max(map(len, PROMPTS)))
    end = expected[0][2]
    cut = greedy(network, network, prompts, MOST, 0, ends=frozenset({end}))
    assert cut == [reply[: reply.index(end)] if end in reply else reply for reply in expected], "other ends cut a reply"
