"""The metrics of open-unlearning: the values are what its own functions give for these inputs (commit d3d7cf9), with
the end of the text left out of the loss; `forget_quality` also what scipy's `ks_2samp` gives."""

import math
from statistics import fmean

import pytest
import torch

from adapop.facts.fact import Fact
from adapop.model.scored import Scored
from adapop.model.tokens import AnswerTokens
from adapop.probes import distance
from adapop.probes.metrics import memorised, wrong_answers

PROMPTS, ANSWERS = ((1, 2), (2, 1), (1, 1), (2, 2)), ((3, 4, 5), (5, 3, 4), (2,), (4, 4))
WORDS = "?abcde"


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


def test_the_metrics_of_an_answer_are_those_of_open_unlearning():
    texts = [" ".join(WORDS[token] for token in answer) for answer in ANSWERS]
    named = memorised(*scored_and_batch(), texts)
    assert named["probability"] == pytest.approx([0.1461404, 0.0814666, 0.0252856, 0.0683328], abs=1e-6)
    assert named["exact_memorization"] == pytest.approx([0, 1 / 3, 0, 0.5])
    assert named["extraction_strength"] == pytest.approx([1 / 3, 1 / 3, 1, 0.5])
    assert named["mia_loss"] == pytest.approx([1.9231879, 2.5075619, 3.6775210, 2.6833661], abs=1e-6)
    assert named["mia_min_k"] == pytest.approx([2.8259706, 4.1840305, 3.6775210, 4.6194243], abs=1e-5)
    assert named["mia_min_k_plus_plus"] == pytest.approx([1.6571795, 3.7932339, 3.0346885, 4.4711866], abs=1e-5)
    assert named["mia_zlib"] == pytest.approx([0.1479375, 0.1928894, 0.4086134, 0.2439424], abs=1e-6)


def test_the_truth_ratio_is_that_of_open_unlearning():
    ratios = [distance.truth_ratio(0.4, [1.0, 2.0, 3.5]), distance.truth_ratio(2.5, [0.7, 1.1, 0.9])]
    assert ratios == pytest.approx([0.17090171, 4.95303242])
    assert fmean(map(distance.closer_to_1, ratios)) == pytest.approx(0.18639912)


def test_forget_quality_is_the_kolmogorov_smirnov_test_with_its_direction():
    unlearned = [0.3, 0.5, 0.9, 1.7, 2.5, 0.2, 0.8, 3.1]
    oracle = [0.6, 1.1, 1.4, 2.2, 2.6, 3.3, 4.0, 1.2]
    found = distance.forget_quality(unlearned, oracle)
    assert found.p_value == pytest.approx(0.2826728827) and found.distance == 0.5
    assert not found.higher and distance.forget_quality(oracle, unlearned).higher
    assert distance.forget_quality(oracle, oracle) == distance.ForgetQuality(1.0, 0.0, 0.0, False)
    apart = distance.forget_quality([1.0] * 400, [2.0] * 400)
    assert apart.distance == 1 and apart.p_value == pytest.approx(0, abs=1e-200) and apart.log10 < -200


def test_the_auc_counts_ties_half_and_privleak_is_relative_to_the_oracle():
    won = distance.auc([0.1, 0.5], [0.5, 0.7, 0.2])
    assert won == pytest.approx([1.0, 0.5]) and fmean(won) == 0.75
    assert distance.privleak(0.25, 0.4) == pytest.approx(25.0)
    assert distance.privleak(0.4, 0.4) == 0 and distance.privleak(0.9, 0.4) < 0


def test_wrong_answers_are_a_facts_own_or_of_its_relation():
    def fact(name, answer, **others):
        return Fact(name, f"Where is {name}?", answer, name, "place", **others)

    facts = [fact("a", "Rome"), fact("b", "Oslo", alternates=("Bern",)), fact("c", "Rome")]
    others = [fact(f"o{i}", f"Town{i}") for i in range(9)]
    first, own, _ = wrong_answers(facts, others)
    assert len(first) == 5 and "Rome" not in first and own == ("Bern",)
    assert wrong_answers([Fact("x", "Why?", "So")], ()) == [()]
    assert wrong_answers(facts, others)[0] == first


def test_relations_of_few_facts_share_a_band():
    """Of the 104 rests, -1, -.5, -.49 ... .49, .5, 1, the quantile at .025 is the 2.575th, counted from 0."""
    logs = [-3.0 + 0.01 * (place - 50) for place in range(101)]
    found = distance.bands(["r"] * 101 + ["a", "b", "c"], [*logs, -1.0, -2.0, -3.0])
    assert found["a"] == found["b"] == found["c"] == pytest.approx((math.exp(-2.48425), math.exp(-1.51575)))
    assert found["r"] == pytest.approx((math.exp(-3.48425), math.exp(-2.51575)))


def test_a_fact_stands_where_the_oracle_finds_what_it_never_read():
    logs = [-3.0 + 0.01 * (place - 50) for place in range(101)]
    (low, high) = distance.bands(["r"] * 101 + ["s"] * 101, [*logs, *(log + 1 for log in logs)])["r"]
    assert (low, high) == pytest.approx((0.0498 * 2.718**-0.475, 0.0498 * 2.718**0.475), rel=1e-2)
    beside = {"oracle": 0.05, "low": low, "high": high}
    facts = [
        distance.FactDistance(str(place), tier, "reworded", p, **beside)
        for place, (tier, p) in enumerate([("rare", 0.001)] * 20 + [("rare", 0.05)] * 20 + [("popular", 0.9)] * 40)
    ]
    quality = distance.ForgetQuality(1.0, 0.0, 0.0, False)
    found = distance.Distance(tuple(facts), (), quality, 0.0, 0.0, ())
    shares = found.shares("reworded")
    assert [share.mean for share in shares.values()] == [0.25, 0.25, 0.5]
    assert shares["under-forgotten"].low < 0.5 < shares["under-forgotten"].high
    assert found.shares("direct") == {} and found.mostly("reworded", "as if never learnt") == "rare"
    assert found.mostly("reworded", "over-forgotten") == "rare"
    assert found.mostly("reworded", "under-forgotten") == "popular"
