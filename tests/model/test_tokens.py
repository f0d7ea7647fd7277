import pytest
import torch
from tokenizers import Tokenizer, models
from torch.nn.functional import log_softmax
from transformers import PreTrainedTokenizerFast

from adapop.errors import DataError
from adapop.facts.fact import Fact
from adapop.model.seeding import seeded
from adapop.model.tokens import Row, collate, encode_facts, encode_prompt, to_continue

MIXED = (
    Fact("one", "What is one plus two?", "three"),
    Fact("three", "Who wrote the book Emma?", "three four five"),
    Fact("bytes", "What comes after Monday?", "Qx"),
    Fact("two", "Which verb is right, walk or walks? The dog", "walks walk"),
)


def joined(row):
    return [*row.prompt, *row.answer]


def test_padding_and_indices(model):
    batch = collate([Row((5, 6, 7), (8,), 0), Row((5,), (9, 10), 1), Row((4,), (3,), 2)], pad_id=0)
    assert batch.ids.tolist() == [[5, 6, 7, 8], [5, 9, 10, 0], [4, 3, 0, 0]]
    assert batch.lengths.tolist() == [4, 3, 2]
    assert (batch.rows, batch.count) == (3, 4)
    assert batch.target.tolist() == [8, 9, 10, 3]
    assert batch.row.tolist() == [0, 1, 1, 2]
    assert batch.place.tolist() == [0, 0, 1, 0]
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
def test_scores_equal_a_slow_full_sequence_reference(model):
    """Row by row, without padding, mask or positions, with all logits and hidden states."""
    rows = encode_facts(model.tokenizer, MIXED, include_tail=True)
    scored = model.score(collate(rows, pad_id=0), logits=True, hidden=True)
    nll, logits, hidden = [], [], []
    for row in rows:
        output = model.network(input_ids=torch.tensor([joined(row)]), output_hidden_states=True)
        start = len(row.prompt)
        for position, token in enumerate(row.answer, start):
            logits.append(output.logits[0, position - 1])
            nll.append(-log_softmax(logits[-1], dim=0)[token])
        layers = torch.stack([layer[0, start:] for layer in output.hidden_states[-4:]])
        hidden.append(layers.mean((0, 1)))
    torch.testing.assert_close(scored.nll, torch.stack(nll), atol=1e-5, rtol=0)
    torch.testing.assert_close(scored.logits, torch.stack(logits), atol=1e-4, rtol=0)
    torch.testing.assert_close(scored.hidden, torch.stack(hidden), atol=1e-5, rtol=0)
    sums = [part.sum() for part in torch.stack(nll).split([len(row.answer) for row in rows])]
    torch.testing.assert_close(scored.per_row(scored.nll), torch.stack(sums), atol=1e-4, rtol=0)


def test_the_answers_tail_counts_only_on_request_and_draws_are_seeded(model):
    tokenizer = model.tokenizer
    content, tailed = (encode_facts(tokenizer, MIXED, include_tail=tail) for tail in (False, True))
    assert [(*row.answer, tokenizer.eos_token_id) for row in content] == [row.answer for row in tailed]
    assert [row.prompt for row in content] == [row.prompt for row in tailed]
    assert tokenizer.eos_token_id not in collate(content, 0).target.tolist()
    assert collate(tailed, 0).target.tolist().count(tokenizer.eos_token_id) == len(MIXED)

    def draw(*key):
        return torch.randint(10**9, (4,), generator=seeded(*key)).tolist()

    keys = [(0, 1, 0), (0, 1, 1), (0, 2, 0), (0, 2, 1), (1, 1, 0), (2, 1, 0), (12345, 1, 0)]  # seed, epoch, purpose
    assert [draw(*key) for key in keys] == [draw(*key) for key in keys]
    assert len({tuple(draw(*key)) for key in keys}) == len(keys)


def test_prompt_and_answer_are_tokenised_apart(model, small):
    """A tokenizer that would merge the prompt's last colon with the answer's first letter is not given the chance."""
    vocabulary = {piece: i for i, piece in enumerate(["q", ":", "x", ":x"])}
    pairs = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab=vocabulary, merges=[(":", "x")])),
        chat_template="{{ messages[0]['content'] }}:",
        eos_token="q",
    )
    assert pairs("q:x")["input_ids"] == [0, 3]
    assert encode_facts(pairs, [Fact("f", "q", "x")]) == [Row((0, 1), (2,), 0)]
    facts, asked = small.forget[:3], [fact.paraphrases[0] for fact in small.forget[:3]]
    rows = encode_facts(model.tokenizer, facts, questions=asked)
    assert [row.prompt for row in rows] == [encode_prompt(model.tokenizer, question) for question in asked]
    with pytest.raises(ValueError, match="shorter"):
        encode_facts(model.tokenizer, facts, questions=asked[:2])


def test_an_answer_without_a_token_is_refused(model):
    with pytest.raises(DataError, match="'nothing' has no token"):
        encode_facts(model.tokenizer, [MIXED[0], Fact("nothing", "Why?", "")])
