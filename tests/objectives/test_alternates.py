from dataclasses import replace

import pytest
import torch

from adapop.config.presets import make_config
from adapop.config.run import SEED_LIMIT
from adapop.errors import DataError
from adapop.facts.fact import Fact
from adapop.model.tokens import Row, collate, encode_facts
from adapop.objectives import alternates
from adapop.objectives.alternates import ROUNDS, by_model, by_relation, by_second_choice, check_alternates, usable
from adapop.objectives.redirect import Redirect, _instead
from adapop.training.forget_set import ForgetSet
from few_facts import FACTS, gradient
from raised import raised

CAPITALS = [
    Fact(f"capital-{i}", f"What is the capital of {country}?", city, country, "capital")
    for i, (country, city) in enumerate(map(str.split, ("France Paris", "Peru Lima", "Cuba Havana", "Chad N'Djamena")))
]
SAYING = Fact("saying", "What did he say?", "one two three four five", "he", "capital")
BETAS = [2.0, 0.5, 1.0, 0.05]


def test_an_answer_of_the_same_relation(sandbox):
    facts, answers = by_relation(sandbox.forget, sandbox.retain, seed=0), {}
    for fact in (*sandbox.forget, *sandbox.retain):
        answers.setdefault(fact.relation, set()).add(fact.answer)
    assert [replace(fact, alternates=()) for fact in facts] == list(sandbox.forget)
    for fact in facts:
        (alternate,) = fact.alternates
        assert alternate in answers[fact.relation] - {fact.answer}
    assert len({fact.alternates for fact in facts if fact.relation == "author"}) > 8
    first, same, other = (by_relation(sandbox.forget, sandbox.retain, seed) for seed in (0, 0, 1))
    assert first == same != other
    mine = replace(sandbox.forget[0], alternates=("Nobody", "Somebody"))
    assert by_relation([mine, *sandbox.forget[1:]], (), 0)[0] == mine
    both = [Fact(name, "A river of France?", name, "France", "river") for name in ("Seine", "Rhone")]
    assert [fact.alternates for fact in by_relation(both, (), 0)] == [(), ()]
    more = Fact("c", "A river of Peru?", "Amazon", "Peru", "river")
    assert [fact.alternates for fact in by_relation(both, [more], 0)] == [("Amazon",), ("Amazon",)]
    assert by_relation([replace(fact, relation="") for fact in CAPITALS], (), 0)[0].alternates == ()
    facts = by_relation([CAPITALS[0], SAYING], (), 0)
    assert [fact.alternates for fact in facts] == [(), ()]


@pytest.mark.parametrize(("answer", "alternate", "fine"), [
    ("Paris", "Lima", True), ("Paris", "paris ", False), ("París", "PARIS", False),
    ("Paris", "Paris, France", False), ("New York City", "New York", False), ("Paris", "", False),
    ("Paris", "  ", False), ("Paris", "It is in fact Lima", False),
    ("it is the old town", "he lives by the sea", True), ("it is the old town", "it is the new town", False),
    # the right answer in other punctuation
    ("Saint-Denis", "Saint Denis", False), ("St. Petersburg", "St Petersburg", False),
    ("Jean-Paul Sartre", "Jean Paul Sartre", False), ("Jean-Paul Sartre", "Monsieur JeanPaul Sartre", False),
    ("Côte d'Ivoire", "Cote d’Ivoire", False), ("1,000", "1000", False), ("1000", "1,000 m", False),
    ("Oman", "Romania", True), ("5", "15", True),
    # most of its words
    ("Jane Austen", "J. Austen", False), ("J. Austen", "Jane Austen", False),
    ("Jane Austen", "Austen, Jane", False), ("Leo Tolstoy", "Lev Tolstoy", False),
    ("University of Oxford", "Oxford University", False), ("University of Oxford", "University of Leeds", True),
    ("Royal Air Force", "Royal Dutch Navy", True), ("United Kingdom", "United States", True),
    ("The Beatles", "The Rolling Stones", True), ("The Who", "The Beatles", True), ("J. S.", "J. K.", True),
])  # fmt: skip
def test_usable(answer, alternate, fine):
    assert usable(Fact("f", "Where?", answer), alternate) == fine


def test_the_model_is_asked_again_but_not_for_ever():
    calls = []

    def draw(prompts, seed):
        calls.append((len(prompts), seed))
        replies = {1: ["Lyon.", "Lima", "", "“Bogota”\nbecause it is far"], 2: ["lima!", "Quito"], 3: ["Cusco"]}
        return replies[len(calls)]

    facts = by_model(CAPITALS, draw, seed=5)
    assert [fact.alternates for fact in facts] == [("Lyon",), ("Cusco",), ("Quito",), ("Bogota",)]
    assert calls == [(4, 5 * ROUNDS), (2, 5 * ROUNDS + 1), (1, 5 * ROUNDS + 2)]
    batches = []

    def draw(prompts, seed):
        batches.append(prompts)
        return [""] * len(prompts)

    facts = by_model([replace(CAPITALS[0], alternates=("Lyon",)), *CAPITALS[1:]], draw, seed=0)
    assert [fact.alternates for fact in facts] == [("Lyon",), (), (), ()]
    assert len(batches) == ROUNDS and all(len(prompts) == 3 for prompts in batches)
    assert CAPITALS[1].question in batches[0][0] and "Lima" in batches[0][0]
    error = raised(DataError, r"3 of 4 facts have no plausible .* .capital-1.", check_alternates, facts)
    assert "'alternates'" in error.fix and "'relation'" in error.fix
    batches = []
    by_model(CAPITALS, draw, 0, stopped=lambda: len(batches) == 2)
    assert len(batches) == 2


def test_ones_own_that_say_the_right_answer_are_refused_by_name():
    own = {"a": "paris", "b": "Paris, in France", "c": "Lyon", "d": "P.A.R.I.S."}
    facts = [Fact(name, "Capital?", "Paris", alternates=("Lima", other)) for name, other in own.items()]
    with pytest.raises(DataError, match="3 of 4 facts have their right answer among the wrong ones: 'a', 'b', 'd'"):
        check_alternates(facts)
    check_alternates([facts[2], replace(facts[2], alternates=("a village near Lyon of which few have heard",))])
    for answer, other in (("(", "["), ("***", "+"), ("?", "Lima"), (".", "Lima"), ("C++", "C")):
        check_alternates([Fact("sign", "Which sign?", answer, alternates=(other,))])


@pytest.mark.parametrize(("reply", "name"), [
    ("J. K. Rowling, in 1997.", "J. K. Rowling"), ("St. Petersburg. It is large.", "St. Petersburg"),
    ("It cost 1.5 million. So", "It cost 1.5 million"), ("曹雪芹，清代著名小说家…", "曹雪芹"), ("曹雪芹。", "曹雪芹"),
    ("Bogota\u0301. It is", "Bogota\u0301"), ("दिल्ली। यह", "दिल्ली"), ("دلهي، الهند", "دلهي"), ("U.S. now", "U.S. now"),
])  # fmt: skip
def test_a_clause_ends_at_no_initial_and_in_other_scripts_too(reply, name):
    assert alternates.CLAUSE.split(alternates.first_line(reply))[0] == name == alternates.first_line(f"“{name}。”")


def test_several_that_differ(sandbox):
    facts = by_relation(sandbox.forget, sandbox.retain, 0, count=5)
    assert {len(fact.alternates) for fact in facts} == {len(set(fact.alternates)) for fact in facts} == {5}
    assert [fact.alternates[:1] for fact in facts[:1]] == [by_relation(sandbox.forget, sandbox.retain, 0)[0].alternates]
    seeds = []

    def draw(prompts, seed):
        seeds.append(seed)
        return [["Lyon", "Nice"][len(seeds) % 2] if "France" in prompt else "Quito" for prompt in prompts]

    written = by_model(CAPITALS[:2], draw, 0, count=2)
    assert sorted(written[0].alternates) == ["Lyon", "Nice"] and written[1].alternates == ("Quito",)
    assert len(seeds) == len(set(seeds)) <= 2 * ROUNDS


def test_sampling_is_seeded_and_leaves_other_random_numbers_alone(model, sandbox):
    def largest(prompts, seed):
        return model.sample(prompts, seed, max_new_tokens=1, temperature=1.0)

    assert len(by_model(CAPITALS, largest, SEED_LIMIT - 1)) == len(CAPITALS)
    questions = [fact.question for fact in sandbox.forget[:40]]
    draw = dict(max_new_tokens=2, temperature=2.0, top_k=0, top_p=1.0)
    torch.manual_seed(3)
    first, same, other = (model.sample(questions, seed, **draw) for seed in (0, 0, 1))
    after = torch.rand(1)
    torch.manual_seed(3)
    assert first == same != other and torch.equal(after, torch.rand(1))


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


@pytest.mark.parametrize(("share", "over"), [(0.6, 3), (0.6, 1), (0.0, 3)])
def test_the_target_is_a_distribution_without_the_right_answer(model, reference, share, over):
    method, batch = batch_of(model, share=share, over=over)
    instead, _ = _instead(batch.tokens, batch.other, reference)
    targets = method._targets(reference, batch.tokens.target, instead)
    torch.testing.assert_close(targets.sum(-1), torch.ones(len(targets)))
    for target, before, y, a in zip(targets, reference.exp(), batch.tokens.target.tolist(), instead.tolist()):
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
    # As long as they begin alike the original is kept; at the fork the alternate's token is taught, and after it what
    # the original likes best but the right token; the alternate's own tokens are taught after the fork alone.
    texts = ("Dickens", "three six", "Austen of Kafka four", "Friday")
    facts = tuple(replace(fact, alternates=(text,)) for fact, text in zip(FACTS, texts))
    _, batch = batch_of(model, facts)
    instead, further = _instead(batch.tokens, batch.other, reference)
    gold, other = batch.tokens.target.tolist(), batch.other.target.tolist()
    likeliest = reference.scatter(1, batch.tokens.target.unsqueeze(1), float("-inf")).argmax(-1).tolist()
    # rows of gold: 1, 3, 3, 1 tokens; of the others: 1, 2, 4, 1
    assert instead.tolist() == [other[0], gold[1], other[2], likeliest[3], gold[4], gold[5], other[5], other[7]]
    assert further.tolist() == [False, False, False, False, False, False, True, False]
    # "12" begins "120" and has no fork with it, so what the original likes next is taught
    begun, whole = (collate([Row((5,), answer, 0)], 0) for answer in ((1, 2), (1, 2, 0)))
    instead, further = _instead(begun, whole, reference[:2])
    assert instead.tolist() == reference[:2].scatter(1, torch.tensor([[1], [2]]), -torch.inf).argmax(-1).tolist()
    assert further.tolist() == [False, False, False]


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
    with_alternates = by_second_choice(facts, model, count=2)
    assert all(
        len(fact.alternates) == 2 and all(usable(fact, text) for text in fact.alternates) for fact in with_alternates
    )
    rows = encode_facts(model.tokenizer, facts)
    logits = model.score(model.batch(rows), logits=True).logits
    for fact, row, row_logits in zip(with_alternates, rows, logits):
        barred = [row.answer[0], *model.tokenizer.all_special_ids]
        likeliest = row_logits.detach().index_fill(0, torch.tensor(barred), float("-inf")).argmax()
        assert model.tokenizer.decode(likeliest).strip() == fact.alternates[0]
    own = replace(small.forget[0], alternates=("something",))
    assert by_second_choice([own], model)[0].alternates == ("something",)
    assert by_second_choice(small.forget[:2], model, stopped=lambda: True)[0].alternates == ()
