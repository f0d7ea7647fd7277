import shutil

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from adapop.config.presets import make_config
from adapop.errors import DataError, ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import seeded
from adapop.model.loading import adapted_model
from adapop.model.tokens import Row, collate, encode_facts, encode_prompt, to_continue
from adapop.paths import SANDBOX_FOLDER
from adapop.probes.metrics import delta_logprob, delta_rank, hidden_cosine, kl
from edited import changed_json
from raised import raised

QUESTIONS = ("Who wrote the book Emma?", "What is two plus three?", "Is this a question the model has ever seen, Qx?")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(SANDBOX_FOLDER, tmp_path / "copy")


def load_folder(folder, **changes):
    return adapted_model(make_config(model=str(folder), **{"precision": "float32", **changes}))


def batch_of(model, facts):
    return collate(encode_facts(model.tokenizer, facts), model.tokenizer.pad_token_id)


@torch.no_grad()
def test_adapter_off_is_the_base_model(model, small, fresh):
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    base.requires_grad_(False)  # torch multiplies in another order where a weight may need a gradient
    batch = batch_of(model, small.forget)
    states = base.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
    expected = base.get_output_embeddings()(batch.at(states, batch.predicts))
    with model.original():
        assert torch.equal(model.score(batch, logits=True).logits, expected)
    assert not torch.allclose(model.score(batch, logits=True).logits, expected, atol=0.1)  # and on again
    with model.original():
        with model.original():
            pass
        assert torch.equal(model.score(batch, logits=True).logits, expected), "inside the original it stays so"
    model = fresh()
    on = model.score(batch, logits=True, hidden=True)
    with model.original():
        off = model.score(batch, logits=True, hidden=True)
    assert torch.equal(on.logits, off.logits)
    assert not delta_logprob(off, on).any() and not delta_rank(off, on, batch.target).any() and not kl(off, on).any()
    torch.testing.assert_close(hidden_cosine(off, on), torch.ones(batch.rows))


def test_a_fresh_adapter_changes_nothing_and_is_seeded(fresh, model):
    def first(seed):
        return fresh(seed=seed).parameters[0]

    assert torch.equal(first(0), first(0)) and not torch.equal(first(0), first(1))
    names = {name for name, parameter in model.network.named_parameters() if parameter.requires_grad}
    assert names and all("lora_A" in name or "lora_B" in name for name in names)
    assert len(names) == len(model.parameters) == 4 * 7 * 2  # layers, targets, A and B


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_in_bfloat16_the_output_layer_is_not_copied_for_each_row(folder, precision):
    """Which torch does on a CPU for states that lie apart, as those of the last positions do."""
    model, apart = load_folder(folder, precision=precision), []
    head = model.network.get_base_model().get_output_embeddings()
    head.register_forward_pre_hook(lambda module, inputs: apart.append(not inputs[0].is_contiguous()))
    model.generate(QUESTIONS, 2)
    assert apart and any(apart) == (precision == "float32")


@torch.no_grad()
def test_an_adapter_comes_back(model, small, tmp_path, fresh):
    batch = batch_of(model, small.forget)
    model.save_adapter(tmp_path)
    loaded = adapted_model(make_config(), tmp_path)
    assert torch.equal(loaded.score(batch).nll, model.score(batch).nll)
    assert len(loaded.parameters) == len(model.parameters)  # and it can be trained on
    assert {path.suffix for path in tmp_path.iterdir()} <= {".safetensors", ".json", ".md"}
    other = fresh(seed=3)
    other.set_adapter_state(model.adapter_state())
    assert torch.equal(other.score(batch).nll, model.score(batch).nll)


def test_missing_model():
    for name in ("nobody/no-such-model", "/no/such/folder", "a name with spaces", ""):
        raised(ModelError, "cannot be loaded", load_folder, name)


def test_tokenizer_without_a_pad_token_pads_with_its_end_token(folder, fresh):
    changed_json(folder / "tokenizer_config.json", without=("pad_token",))
    model = load_folder(folder)
    assert model.tokenizer.pad_token_id == model.tokenizer.eos_token_id
    assert model.generate(QUESTIONS, 3) == fresh().generate(QUESTIONS, 3)


MIXED = (
    Fact("one", "What is one plus two?", "three"), Fact("three", "Who wrote the book Emma?", "three four five"),
    Fact("bytes", "What comes after Monday?", "Qx"),
    Fact("two", "Which verb is right, walk or walks? The dog", "walks walk"))  # fmt: skip


def test_padding_and_indices(model):
    batch = collate([Row((5, 6, 7), (8,), 0), Row((5,), (9, 10), 1), Row((4,), (3,), 2)], pad_id=0)
    assert batch.ids.tolist() == [[5, 6, 7, 8], [5, 9, 10, 0], [4, 3, 0, 0]] and batch.lengths.tolist() == [4, 3, 2]
    assert (batch.rows, batch.count) == (3, 4) and batch.target.tolist() == [8, 9, 10, 3]
    assert batch.row.tolist() == [0, 1, 1, 2] and batch.place.tolist() == [0, 0, 1, 0]
    assert batch.reads.tolist() == [3, 5, 6, 9] and batch.predicts.tolist() == [2, 4, 5, 8]
    assert batch.fact.tolist() == [0, 1, 2]
    rows = encode_facts(model.tokenizer, MIXED)
    batch = collate(rows, pad_id=0)
    assert batch.at(batch.ids, batch.reads).tolist() == batch.target.tolist() == [t for row in rows for t in row.answer]
    before = [id for row in rows for id in (row.prompt[-1], *row.answer[:-1])]
    assert batch.at(batch.ids, batch.predicts).tolist() == before


@pytest.mark.parametrize("prompt", [(9, 5, 9, 6), (9, 9), (5,)], ids=["inside the prompt", "everywhere", "nowhere"])
def test_prompts_to_continue_end_together_and_their_mask_comes_from_lengths(prompt):
    """Also where a real token is the pad token."""
    read = to_continue([prompt, (1, 2, 3, 4, 5)], 9, torch.device("cpu"))
    pads = 5 - len(prompt)
    assert read["attention_mask"].tolist() == [[0] * pads + [1] * len(prompt), [1] * 5]
    assert read["input_ids"].tolist() == [[9] * pads + [*prompt], [1, 2, 3, 4, 5]]


@torch.no_grad()
def test_hidden_states_are_means_over_four_layers_and_the_answer_and_losses_sums_over_it(model):
    """As of rows one by one, without padding, mask or positions; `test_exact` has losses and logits themselves."""
    rows, hidden = encode_facts(model.tokenizer, MIXED, include_tail=True), []
    scored = model.score(collate(rows, pad_id=0), hidden=True)
    for row in rows:
        output = model.network(input_ids=torch.tensor([row.prompt + row.answer]), output_hidden_states=True)
        hidden.append(torch.stack([layer[0, len(row.prompt) :] for layer in output.hidden_states[-4:]]).mean((0, 1)))
    torch.testing.assert_close(scored.hidden, torch.stack(hidden), atol=1e-5, rtol=0)
    sums = [part.sum() for part in scored.nll.split([len(row.answer) for row in rows])]
    torch.testing.assert_close(scored.per_row(scored.nll), torch.stack(sums), atol=1e-4, rtol=0)


def test_draws_are_seeded():
    def draw(*key):
        return torch.randint(10**9, (4,), generator=seeded(*key)).tolist()

    keys = [(0, 1, 0), (0, 1, 1), (0, 2, 0), (0, 2, 1), (1, 1, 0), (2, 1, 0), (12345, 1, 0)]  # seed, epoch, purpose
    assert [draw(*key) for key in keys] == [draw(*key) for key in keys]
    assert len({tuple(draw(*key)) for key in keys}) == len(keys)


def test_prompt_and_answer_are_tokenised_apart_and_each_answer_has_a_token(model, small):
    # A tokenizer that would merge the prompt's last colon with the answer's first letter is not given the chance.
    vocabulary = {piece: i for i, piece in enumerate(["q", ":", "x", ":x"])}
    merging, template = Tokenizer(models.BPE(vocabulary, [(":", "x")])), "{{ messages[0]['content'] }}:"
    pairs = PreTrainedTokenizerFast(tokenizer_object=merging, chat_template=template, eos_token="q")
    assert pairs("q:x")["input_ids"] == [0, 3] and encode_facts(pairs, [Fact("f", "q", "x")]) == [Row((0, 1), (2,), 0)]
    facts, questions = small.forget[:3], [fact.paraphrases[0] for fact in small.forget[:3]]
    rows = encode_facts(model.tokenizer, facts, questions=questions)
    assert [row.prompt for row in rows] == [encode_prompt(model.tokenizer, question) for question in questions]
    raised(ValueError, "shorter", encode_facts, model.tokenizer, facts, questions=questions[:2])
    raised(DataError, "'nothing' has no token", encode_facts, model.tokenizer, [MIXED[0], Fact("nothing", "Why?", "")])
