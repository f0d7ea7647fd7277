from dataclasses import asdict, replace
from statistics import fmean

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM
from transformers.models.qwen3_moe import Qwen3MoeConfig, Qwen3MoeForCausalLM

from adapop.errors import ModelError
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import collate, encode_facts
from adapop.paths import ORACLE, SHIPPED
from adapop.probes.metrics import gold_rank
from adapop.probes.oracle import load_oracle
from adapop.probes.recovery.lens import lens
from adapop.probes.recovery.patch import patch
from adapop.probes.recovery.quantise import _linear_layers, quantise, rounded, rounded_weights
from adapop.probes.recovery.relearn import relearn, split
from adapop.probes.recovery.sampling import TOPS, sample
from adapop.progress import Progress
from adapop.report.recovery import recovery_table
from raised import raised

TOKENS, LAYERS = 3, 4
SIZES = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2)
FAMILIES = {
    "qwen": (Qwen2ForCausalLM, Qwen2Config, SIZES | {"tie_word_embeddings": False}),
    "gemma": (Gemma2ForCausalLM, Gemma2Config, SIZES | {"head_dim": 8, "final_logit_softcapping": 0.01}),
    "gpt2": (GPT2LMHeadModel, GPT2Config, {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "mixture": (Qwen3MoeForCausalLM, Qwen3MoeConfig, SIZES | {"moe_intermediate_size": 16, "num_experts": 4}),
}


@pytest.fixture(scope="module")
def hidden(fresh, small):
    """Gradient ascent in the adapter of the last layer alone, until most questions are answered wrongly."""
    model = fresh()
    last = [p for name, p in model.network.named_parameters() if p.requires_grad and f"layers.{LAYERS - 1}." in name]
    optimizer = torch.optim.AdamW(last, lr=2e-3, weight_decay=0.0)
    batch = collate(encode_facts(model.tokenizer, small.forget), model.tokenizer.pad_token_id)
    for _ in range(20):
        scored = model.score(batch, logits=True)
        if (gold_rank(scored, batch.target) == 1).float().mean() <= 0.3:
            break
        (-scored.nll * torch.exp(-scored.nll).detach()).mean().backward()
        optimizer.step()
        model.network.zero_grad()
    return model


def by_key(rows, *names):
    return {tuple(getattr(row, name) for name in names): row for row in rows}


def test_the_lens_finds_in_the_layer_before_what_the_last_one_talks_over(hidden, small):
    by_layer = lens(hidden, small.forget, Progress())
    rows = by_key(by_layer.rows, "tier", "layer")
    assert by_layer.layers == LAYERS
    before, last = rows["all", LAYERS - 1], rows["all", LAYERS]
    assert last.unlearned <= 0.3 < 0.9 <= before.unlearned
    assert before.unlearned == before.original and last.original >= 0.95, "only the last layer was changed"
    assert before.control <= 0.1
    assert before.unlearned_rank == 1 < last.unlearned_rank and before.control_rank > 1
    hiding = [fact for fact in by_layer.facts if fact.unlearned[-1] > 1 and 1 in fact.unlearned[: LAYERS - 1]]
    assert len(hiding) >= 0.6 * len(small.forget)


@pytest.mark.slow
def test_sampling_finds_what_greedy_decoding_misses(hidden, small, original):
    drawn = sample(hidden, small.forget, TOKENS, Progress(), samples=32)
    rows = by_key(drawn.rows, "tier", "place")
    greedy, within, top = (rows["all", place] for place in ("top 1", "32 samples", "top 20"))
    assert greedy.unlearned <= 0.3
    assert within.unlearned >= max(greedy.unlearned, within.control) + 0.15
    assert top.unlearned >= 0.9 and top.control <= 0.3
    assert within.original >= 0.95 and greedy.original >= 0.95
    tops = [rows["all", f"top {top}"].unlearned for top in TOPS]
    assert tops == sorted(tops)
    found = [fact for fact in drawn.facts if fact.unlearned.rank > 1 and fact.unlearned.samples]
    assert found and all(0 <= fact.unlearned.samples <= 32 for fact in drawn.facts)
    drawn = sample(original, small.forget[:2], TOKENS, Progress(), samples=300)
    assert all(100 < fact.original.samples <= 300 for fact in drawn.facts)


def test_samples_of_both_models(original, small, hidden):
    drawn = sample(original, small.forget, TOKENS, Progress(), samples=4)
    assert all(fact.original == fact.unlearned for fact in drawn.facts)
    drawn = sample(hidden, small.forget, TOKENS, Progress(), samples=2, temperature=1e-4)
    assert all(fact.unlearned.samples == 2 * (fact.unlearned.rank == 1) for fact in drawn.facts)


@pytest.mark.slow
def test_relearning_brings_back_facts_it_was_not_told(hidden, small):
    """Lies in the same form lift the lid a little, too: here everything is hidden, so truth must do more than they."""
    results = [relearn(hidden, small.forget, TOKENS, Progress(), 12, learning_rate=1e-3, seed=s) for s in range(3)]
    assert all(len(result.trained) == 12 and result.nll < 0.1 for result in results)
    for form in ("direct", "reworded"):
        rows = [by_key(result.rows, "tier", "form")["all", form] for result in results]
        before, after, control = (fmean(getattr(row, name) for row in rows) for name in ("before", "after", "control"))
        assert {row.facts for row in rows} == {20}
        assert before <= 0.4 and after >= before + 0.3 and after >= control + 0.1
    alone = relearn(hidden, small.forget, TOKENS, Progress(), 8, steps=2)
    beside = relearn(hidden, small.forget, TOKENS, Progress(), 8, steps=2, unrelated=small.utility)
    assert all(row.unrelated is None for row in alone.rows)
    assert all(0 <= row.unrelated <= 1 for row in beside.rows)
    assert [replace(row, unrelated=None) for row in beside.rows] == list(alone.rows)


def test_what_relearning_trains_on_and_asks(original, small, sandbox, hidden):
    result = relearn(original, small.forget, TOKENS, Progress())
    rows = by_key(result.rows, "tier", "form")
    assert rows["all", "direct"].before >= 0.95 and rows["all", "reworded"].before >= 0.9
    assert all(row.after - max(row.before, row.control) <= 0.05 for row in result.rows)
    assert (result.steps, result.learning_rate, len(result.trained)) == (10, 5e-4, 16)
    taught, others = split(sandbox.forget, 15, seed=3)
    assert sorted(fact.tier for fact in taught) == ["middle"] * 5 + ["popular"] * 5 + ["rare"] * 5
    assert not {fact.id for fact in taught} & {fact.id for fact in others}
    assert len(others) == 241
    facts = [*small.forget[:8], *(replace(fact, id=f"again {fact.id}") for fact in small.forget[:8])]
    facts = [replace(fact, relation="any") for fact in facts]
    again = [replace(fact, question=f"Well: {fact.question}") if "again" in fact.id else fact for fact in facts]
    for twice in (facts, again):
        taught, others = split(twice, 4, seed=0)
        assert not {fact.subject for fact in taught} & {fact.subject for fact in others}
    bare = [replace(fact, paraphrases=()) for fact in small.forget]
    result = relearn(hidden, bare, TOKENS, Progress(), count=8, steps=1)
    assert {row.form for row in result.rows} == {"direct"}


def test_eight_bits_of_the_merged_model_keep_what_is_known(original, small, hidden):
    result = quantise(original, small.forget, small.retain, TOKENS, Progress(), bits=(8, 2))
    rows = by_key(result.rows, "group", "tier", "bits")
    for group in ("forget", "retain"):
        fine, coarse = rows[group, "all", 8], rows[group, "all", 2]
        assert fine.original == fine.unlearned >= 0.95, "the adapter does nothing"
        assert fine.original_rounded >= 0.95 and fine.unlearned_rounded >= 0.95
        assert coarse.original_rounded <= 0.85 and coarse.unlearned_rounded <= 0.85
    result = quantise(hidden, small.forget, (), TOKENS, Progress(), bits=(8,))
    row = by_key(result.rows, "tier")[("all",)]
    assert (result.layers, {row.group for row in result.rows}) == (28, {"forget"})
    assert result.weights == 4 * (4 * 128 * 128 + 3 * 128 * 384)
    assert row.original - 0.3 > row.unlearned == pytest.approx(row.unlearned_rounded, abs=0.1)


def test_rounding_is_to_the_nearest_step():
    weight = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    weight[2] = 0
    for bits in (2, 4, 8):
        steps, result = 2 ** (bits - 1) - 1, rounded(weight, bits)
        step = weight.abs().amax(1, keepdim=True) / steps
        assert ((result - weight).abs() <= step / 2 + 1e-6).all()
        assert max(len(row.unique()) for row in result) <= 2 * steps + 1
        assert torch.equal(rounded(-weight, bits), -result) and torch.equal(rounded(result, bits), result)
        assert not result[2].any()
    assert torch.equal(rounded(weight, 16), weight.bfloat16().float())


def test_the_first_row_is_bfloat16_in_which_a_change_below_its_steps_is_undone(original, small):
    b_weights = [value for name, value in original.network.named_parameters() if "lora_B" in name]
    before = [value.detach().clone() for value in b_weights]
    try:
        for value in b_weights:
            torch.nn.init.constant_(value.data, 1e-7)
        layer, around = _linear_layers(original)[0]
        own, step = layer.weight.detach().clone(), around.get_delta_weight("default")
        with rounded_weights(original, 16, merged=True):
            assert (own + step != own).float().mean() > 0.5 and (layer.weight == own).float().mean() > 0.99
        result = quantise(original, small.forget, (), TOKENS, Progress())
    finally:
        for value, own in zip(b_weights, before):
            value.data = own
    bits = list(dict.fromkeys(row.bits for row in result.rows))
    first = next(row for row in result.rows if row.bits == bits[0])
    assert bits == [16, 8, 4] and first.original == first.original_rounded, "it was published in bfloat16"
    cells = recovery_table("quantise", {**asdict(result), "seconds": 1.0}).rows
    assert cells[0][0] == "bfloat16, forget set, all" and any(row[0].startswith("8 bits, ") for row in cells)


@pytest.fixture(scope="module")
def shaped_like(original):

    def make(family, targets=("q_proj", "v_proj"), dtype=torch.float32):
        network, config, sizes = FAMILIES[family]
        torch.manual_seed(0)
        made = network(config(vocab_size=original.network.config.vocab_size, **sizes)).to(dtype).eval()
        lora = LoraConfig(r=4, target_modules=[*targets], init_lora_weights=False, fan_in_fan_out=family == "gpt2")
        return AdaptedModel(get_peft_model(made, lora), original.tokenizer)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen", "gemma"])
def test_other_families_and_half_adapted_models(shaped_like, small, family):
    for dtype in (torch.float32, torch.bfloat16):
        model, facts = shaped_like(family, dtype=dtype), small.forget[:4]
        by_layer, drawn = lens(model, facts, Progress()), sample(model, facts, TOKENS, Progress(), samples=2)
        assert by_layer.layers == 3
        assert [fact.unlearned[-1] for fact in by_layer.facts] == [fact.unlearned.rank for fact in drawn.facts]
        assert quantise(model, facts, (), TOKENS, Progress()).layers == 3 * 7


@pytest.mark.parametrize("family", ["qwen", "gemma"])
def test_merging_changes_nothing_but_rounding(shaped_like, small, family, monkeypatch):
    """Without the rounding, merged weights with the adapter off score as the adapter does."""
    model = shaped_like(family)
    batch = collate(encode_facts(model.tokenizer, small.forget[:4]), model.tokenizer.pad_token_id)
    with torch.no_grad():
        unlearned = model.score(batch).nll
        with model.original():
            original = model.score(batch).nll
        assert not torch.allclose(original, unlearned, atol=1e-5)
        monkeypatch.setattr("adapop.probes.recovery.quantise.rounded", lambda weight, bits: weight)
        with rounded_weights(model, 8, merged=True):
            torch.testing.assert_close(model.score(batch).nll, unlearned)
        with rounded_weights(model, 8, merged=False):
            torch.testing.assert_close(model.score(batch).nll, original)


def test_the_layers_of_gpt2_are_rounded_by_output(shaped_like, small):
    """Its weights are [in, out]; the same network with linear layers is rounded to the same."""
    model = shaped_like("gpt2", ["c_attn"])
    block = model.network.get_base_model().transformer.h[0]
    layer, around, plain = block.attn.c_attn.base_layer, block.attn.c_attn, block.mlp.c_fc
    own = layer.weight.detach().clone()
    with rounded_weights(model, 4, merged=True):
        assert torch.equal(layer.weight.T, rounded((own + around.get_delta_weight("default")).T, 4))
        assert {len(row.unique()) for row in plain.weight.T} <= set(range(2, 16))
        assert any(len(row.unique()) > 15 for row in plain.weight), "else it would be rounded by input"
    assert torch.equal(layer.weight, own)
    assert around.get_delta_weight("default").any()
    assert quantise(model, small.forget[:2], (), TOKENS, Progress()).layers == 2 * 4


def test_a_model_without_the_parts_that_are_needed_is_refused_by_name(shaped_like, small):
    model = shaped_like("gpt2", ["c_attn"])
    raised(ModelError, r"final norm.*GPT2LMHeadModel", lens, model, small.forget, Progress())
    assert sample(model, small.forget[:2], TOKENS, Progress(), samples=2).rows
    raised(ModelError, "experts", quantise, shaped_like("mixture"), small.forget, (), TOKENS, Progress())
    model = shaped_like("qwen", ["q_proj", "lm_head"])
    with pytest.raises(ModelError, match="output head"):  # an adapter there is not dropped in silence
        quantise(model, small.forget, (), TOKENS, Progress())
    assert lens(model, small.forget[:2], Progress()).layers == 3


def test_patching_finds_the_layer_that_was_changed_and_what_it_brings_of_facts_never_known(hidden, small, original):
    before = [parameter.clone() for parameter in hidden.parameters]
    patching = patch(hidden, small.forget, Progress())
    rows = by_key(patching.rows, "tier", "layer")
    as_it_is, last = rows["all", 0], rows["all", LAYERS]
    assert patching.layers == LAYERS and as_it_is.unlearned <= 0.3 < 0.95 <= as_it_is.original
    # only the last layer was changed: what leaves those before is the same in both
    for layer in range(LAYERS):
        assert (rows["all", layer].unlearned, rows["all", layer].original) == (as_it_is.unlearned, as_it_is.original)
    assert (last.unlearned, last.original) == (as_it_is.original, as_it_is.unlearned)
    assert last.control <= 0.1
    assert all(map(torch.equal, hidden.parameters, before))
    for row in patch(original, small.forget, Progress()).rows:
        assert row.unlearned == row.original >= 0.9
    oracle = load_oracle(SHIPPED["sandbox"] / ORACLE)
    with_oracle = patch(hidden, small.forget, Progress(), oracle=oracle)
    rows = by_key(with_oracle.rows, "tier", "layer")
    batch = collate(encode_facts(oracle.tokenizer, small.forget), oracle.tokenizer.pad_token_id)
    guessed = (gold_rank(oracle.score(batch, logits=True), batch.target) == 1).float().mean().item()
    assert with_oracle.never == "oracle" and rows["all", 0].never == rows["all", 0].unlearned
    assert rows["all", LAYERS].never == pytest.approx(guessed) and guessed <= 0.2
    assert rows["all", LAYERS].never_facts == len(small.forget)
    answers = [fact.answer for fact in small.forget]
    others = [replace(fact, answer=next(a for a in answers if a != fact.answer)) for fact in small.forget[:3]]
    with_unknown = patch(original, [*others, *small.forget[3:]], Progress())
    last = by_key(with_unknown.rows, "tier", "layer")["all", LAYERS]
    missed = [fact for fact in with_unknown.facts if not fact.original[0]]
    assert with_unknown.never == "unknown" and {fact.id for fact in others} <= {fact.id for fact in missed}
    assert (last.never, last.never_facts) == (0.0, len(missed)), "the original's states bring its own answer"
    assert all((fact.never is None) == fact.original[0] for fact in with_unknown.facts)
