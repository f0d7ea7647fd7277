"""Redirect: its targets by hand, where two answers part, and the wrong answers that it teaches."""

from dataclasses import replace

import pytest
import torch

from adapop.config.presets import make_config
from adapop.model.tokens import encode_facts
from adapop.objectives.alternates import by_relation, by_second_choice, usable
from adapop.objectives.redirect import Redirect, _instead
from adapop.training.forget_set import ForgetSet
from few_facts import FACTS, gradient

BETAS = [2.0, 0.5, 1.0, 0.05]


def batch_of(model, facts=FACTS, betas=BETAS, **arguments):
    method = Redirect(**arguments)
    forget = ForgetSet(make_config("redirect"), method, model, facts, betas)
    return method, forget.batch(forget.rows, 1)


@pytest.fixture(scope="module")
def reference(model):
    """Log probabilities of the original at each answer token of FACTS, [8, V]."""
    _, batch = batch_of(model)
    with torch.no_grad(), model.original():
        return model.score(batch.tokens, logits=True).logits.log_softmax(-1)


def target_of(model, reference, **arguments):
    method, batch = batch_of(model, **arguments)
    instead, _ = _instead(batch.tokens, batch.other, reference)
    return method._targets(reference, batch.tokens.target, instead), batch.tokens.target.tolist(), instead.tolist()


@pytest.mark.parametrize(("share", "over"), [(0.6, 3), (0.6, 1), (0.0, 3)])
def test_the_target_is_a_distribution_without_the_right_answer(model, reference, share, over):
    targets, gold, instead = target_of(model, reference, share=share, over=over)
    torch.testing.assert_close(targets.sum(-1), torch.ones(len(gold)))
    for target, before, y, a in zip(targets, reference.exp(), gold, instead):
        expected = torch.stack([torch.zeros(()), before[a] + (1 - share) * before[y]])
        torch.testing.assert_close(target[[y, a]], expected)
        others = [token for token in range(len(target)) if token not in (y, a)]
        assert ((target - before)[others] > 0).sum() == (over if share else 0)


def test_scores_and_the_place_where_answers_part(model, reference):
    even = Redirect()
    assert even.needs == {"alternates"} and Redirect(kappa=0.5).needs == {"alternates", "beta"}
    _, without = batch_of(model, betas=None)
    method, batch = batch_of(model, kappa=0.5)
    plain = even.forget_loss(model, without).loss
    torch.testing.assert_close(method.forget_loss(model, batch).loss, plain * torch.tensor(BETAS) ** -0.5)
    assert torch.equal(even.forget_loss(model, batch).loss, plain)
    # As long as they begin alike the original is kept; at the fork the alternate's token is
    # taught, and after it what the original likes best but the right token; the alternate's own
    # tokens are taught after the fork alone.
    facts = tuple(replace(fact, alternates=(text,)) for fact, text in zip(
        FACTS, ("Dickens", "three six", "Austen of Kafka four", "Friday")
    ))  # fmt: skip
    _, batch = batch_of(model, facts)
    instead, further = _instead(batch.tokens, batch.other, reference)
    gold, other = batch.tokens.target.tolist(), batch.other.target.tolist()
    likeliest = reference.scatter(1, batch.tokens.target.unsqueeze(1), float("-inf")).argmax(-1).tolist()
    # rows of gold: 1, 3, 3, 1 tokens; of the others: 1, 2, 4, 1
    assert instead.tolist() == [other[0], gold[1], other[2], likeliest[3], gold[4], gold[5], other[5], other[7]]
    assert further.tolist() == [False, False, False, False, False, False, True, False]


def test_nothing_is_lost_where_nothing_shall_change(fresh):
    """The two answers begin alike: what comes before the fork has no loss of its own, in a fresh adapter."""
    model = fresh("redirect")
    facts = (replace(FACTS[1], answer="three four", alternates=("three five six",)),)
    method, batch = batch_of(model, facts, [1.0], share=0.0)
    result = method.forget_loss(model, batch)
    at_fork = model.score(batch.tokens, logits=True).logits.log_softmax(-1)[1]
    y, a = batch.tokens.target[1], batch.other.target[1]
    target = at_fork.detach().exp()
    right, wrong = target[y].clone(), target[a].clone()
    target[y], target[a] = 0.0, right + wrong
    after = model.score(batch.other).nll[2]
    kl = (right + wrong) * ((right + wrong) / wrong).log()
    torch.testing.assert_close(result.loss.sum() * 3, kl + after, atol=1e-5, rtol=1e-5)
    taught = after - (target * at_fork).sum()
    torch.testing.assert_close(gradient(model, result.loss * 3), gradient(model, taught), atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_the_right_answer_ends_below_the_next_guesses_however_much_of_it_is_given(fresh, small):
    """Answers of two tokens, taught before: also who is given the first does not get the second."""
    model = fresh("redirect")
    facts = by_relation([replace(fact, answer=f"{fact.answer} four") for fact in small.forget[:4]], small.retain, 0)
    method, batch = batch_of(model, facts, [1.0] * len(facts))
    with torch.no_grad(), model.original():
        before = model.score(batch.tokens, logits=True).logits
    optimizer = torch.optim.AdamW(model.parameters, lr=4e-3)
    for _ in range(60):
        optimizer.zero_grad()
        method.forget_loss(model, batch).loss.mean().backward()
        optimizer.step()
    with torch.no_grad():
        after = model.score(batch.tokens, logits=True).logits
    gold = batch.tokens.target.unsqueeze(1)
    ranks = [(logits > logits.gather(1, gold)).sum(1) for logits in (before, after)]
    first = batch.tokens.place == 0
    assert (ranks[0][first] == 0).all() and (ranks[1] >= 2).all()


def test_the_second_choice_of_the_original_or_ones_own(model, small):
    facts = small.forget[:6]
    found = by_second_choice(facts, model, count=2)
    assert all(len(fact.alternates) == 2 and all(usable(fact, text) for text in fact.alternates) for fact in found)
    rows = encode_facts(model.tokenizer, facts)
    logits = model.score(model.batch(rows), logits=True).logits
    for fact, row, each in zip(found, rows, logits):
        barred = [row.answer[0], *model.tokenizer.all_special_ids]
        likeliest = each.detach().index_fill(0, torch.tensor(barred), float("-inf")).argmax()
        assert model.tokenizer.decode(likeliest).strip() == fact.alternates[0]
    own = replace(small.forget[0], alternates=("something",))
    assert by_second_choice([own], model)[0].alternates == ("something",)
    assert by_second_choice(small.forget[:2], model, stopped=lambda: True)[0].alternates == ()
