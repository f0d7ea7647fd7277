"""The second guess, against the logits worked through by hand."""

from dataclasses import replace

import torch

from adapop.model.tokens import collate, encode_facts
from adapop.probes.second_guess import guess, rivals, second_guesses


def test_first_second_and_lost(model, small):
    logits = torch.tensor([0.0, 5.0, 4.0, 3.0, 2.0])
    answers = {2, 3, 4}
    assert guess(1, {1, *answers}, logits) == (True, 1)
    assert guess(2, answers, logits) == (True, 1), "what is said is no answer of the relation"
    assert guess(3, answers, logits) == (False, 2)
    assert guess(2, {1, *answers}, logits) == (True, 2), "the best but for what is said"
    assert guess(3, {1, *answers}, logits) == (False, 3)
    assert [guess(token, None, logits) for token in (1, 2, 3)] == [(True, 1), (True, 2), (False, 3)], "among all tokens"
    few = [replace(small.forget[0], id=f"few-{i}", relation="few", answer=answer) for i, answer in enumerate("ab")]
    none = replace(small.forget[0], id="none", relation="")
    found = rivals(model, [*small.forget, *few, none])
    assert "few" not in found and "" not in found
    assert found and all(len(tokens) >= 3 for tokens in found.values())


def test_the_original_model_knows_nearly_all_and_its_guesses_are_those_of_its_logits(model, small):
    found = second_guesses(model, small.forget)
    assert found["top2"].keys() == found["rank"].keys()
    assert {key for key in found["top2"]} == {(f.id, asked) for f in small.forget for asked in f.paraphrases}
    assert sum(found["top2"].values()) / len(found["top2"]) > 0.9
    fact = small.forget[0]
    row = encode_facts(model.tokenizer, [fact], model.system, fact.paraphrases[:1])
    with torch.no_grad():
        logits = model.score(collate(row, model.tokenizer.pad_token_id), logits=True).logits[0]
    others = {
        model.tokenizer.encode(other.answer, add_special_tokens=False)[0]
        for other in small.forget
        if other.relation == fact.relation
    }
    rank = 1 + sum((logits[other] > logits[row[0].answer[0]]).item() for other in others)
    assert found["rank"][fact.id, fact.paraphrases[0]] == rank
