import math
from dataclasses import replace
from statistics import fmean as mean
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import cosine_similarity
from torch.nn.utils import vector_to_parameters

from adapop.config.presets import make_config
from adapop.errors import ConfigError, DataError, ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import Scored, seeded
from adapop.model.tokens import collate, encode_facts
from adapop.objectives import ForgetBatch, make_objective
from adapop.objectives.altpo import AlternatePreference, CounterfactualPreference
from adapop.objectives.ascent import SaturationImportance, WeightedGradientAscent
from adapop.objectives.logits import CrossEntropyUnlearning, PrimalDualUnlearning, Undial
from adapop.objectives.npo import NegativePreference, SharpnessAwarePreference, SimpleNegativePreference
from adapop.objectives.refusal import REFUSALS, Flat, RefusalPreference, RejectionTuning
from adapop.objectives.rmu import AdaptiveRmu, Rmu
from adapop.objectives.tpo import TargetedPreference, unwanted
from adapop.training.forget_set import ForgetSet
from few_facts import FACTS, LENGTHS, gradient, weights
from raised import raised

pytestmark = pytest.mark.usefixtures("padded")  # states are looked up by row and column
LN_SIGMOID_1 = -0.3132616875182228  # log sigmoid(1), from a table
# log ratios of the answers: -1 and 0; of the others: 1 and 1
BEFORE = {"reference_nll": torch.tensor([0.5, 1.5, 0.5]), "other_reference_nll": torch.tensor([4.0, 1.5, 2.5, 6.0])}
BATCH = ForgetBatch("gold", other="other", **BEFORE)


def batch_of(model, method, facts=FACTS, epoch=1, **changes):
    made = ForgetSet(make_config(method.name, **changes), method, model, facts, None)
    return made.batch(made.rows, epoch)


def by_row(values):
    return [part.tolist() for part in values.detach().split(LENGTHS)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def check(loss, expected):
    torch.testing.assert_close(loss.detach(), torch.tensor(expected), atol=1e-4, rtol=1e-4)


def test_undial_by_hand(model, fresh):
    method = Undial(beta=2.5)
    batch = batch_of(model, method)
    tokens = batch.tokens
    student = model.score(tokens, logits=True).logits.detach().double()
    with torch.no_grad(), model.original():
        teacher = model.score(tokens, logits=True).logits.double()
    before, expected = teacher.clone(), []
    for z, t, gold in zip(student, teacher, tokens.target.tolist()):
        t[gold] -= 2.5
        expected.append(-(t.softmax(0) * z.log_softmax(0)).sum().item())
    check(method.forget_loss(model, batch).loss, expected)
    with torch.no_grad(), model.original():
        assert torch.equal(model.score(tokens, logits=True).logits.double(), before), "the teacher is not spoilt"
    model = fresh()
    methods = (Undial(beta=0.0), Undial(beta=3.0))
    at_rest, lowered = (gradient(model, one.forget_loss(model, batch_of(model, one)).loss) for one in methods)
    assert lowered.norm() > 0.1 and at_rest.norm() < 1e-5 * lowered.norm()


def test_blocks_of_rmu(fresh, model):
    # Also by nothing else: not by the adapter, the facts or what was drawn before.
    method = Rmu(layer=1)
    first = batch_of(model, method).target
    torch.rand(5)
    assert torch.equal(first, batch_of(fresh(), method, FACTS[:2]).target)
    assert not torch.equal(first, batch_of(model, method, seed=1).target) and first.shape == (128,)
    u = torch.rand(128, generator=seeded(0, 0, 2))
    torch.testing.assert_close(first, 2 * u / u.norm())
    method, model = Rmu(layer=1), fresh()
    method.forget_loss(model, batch_of(model, method)).loss.sum().backward()
    for name, parameter in model.network.named_parameters():
        if "lora_B" in name:
            reached = parameter.grad is not None and parameter.grad.any().item()
            assert reached == ("layers.0." in name or "layers.1." in name)


def block_output(model, tokens, layer):
    return model.network(input_ids=tokens.ids, output_hidden_states=True).hidden_states[layer + 1]


@pytest.mark.parametrize("predicting", [True, False])
def test_rmu_by_hand(model, predicting):
    method = Rmu(layer=1, coefficient=3.0, predicting=predicting)
    batch = batch_of(model, method)
    tokens = batch.tokens
    with torch.no_grad():
        states = block_output(model, tokens, 1)
        with model.original():
            originals = block_output(model, tokens, 1)
    forget, retain = [], []
    for row, (length, end) in enumerate(zip(LENGTHS, tokens.lengths.tolist(), strict=True)):
        places = [end - length + t - predicting for t in range(length)]
        forget.append(mean([(states[row, at] - batch.target).square().mean().item() for at in places]))
        retain += [(states[row, at] - originals[row, at]).square().mean().item() for at in places]
    check(method.forget_loss(model, batch).loss, forget)
    check(method.retain_loss(model, tokens).loss, retain)
    assert min(retain) > 0


def test_adaptive_rmu_is_rmu_with_a_coefficient_from_the_norm(model):
    adaptive = AdaptiveRmu(layer=2, scale=4.0)
    batch = batch_of(model, adaptive)
    tokens = batch.tokens
    with torch.no_grad(), model.original():
        norms = block_output(model, tokens, 2).norm(dim=-1)
    assert len({*tokens.lengths.tolist()}) > 1, "else there would be no padding, which must not count"
    read = [norms[row, at].item() for row, length in enumerate(tokens.lengths.tolist()) for at in range(1, length)]
    length = 4.0 * mean(read)
    assert batch.target.norm().item() == pytest.approx(length, rel=1e-5)
    plain = Rmu(layer=2, coefficient=length)
    expected = plain.forget_loss(model, batch_of(model, plain)).loss
    torch.testing.assert_close(adaptive.forget_loss(model, batch).loss, expected)


def test_norm_of_the_original_and_missing_blocks(model, fresh, sandbox):
    def target(model, facts):
        made = ForgetSet(make_config("adaptive-rmu"), AdaptiveRmu(layer=1), model, facts, None)
        return made.batch(made.rows[:1], 1).target

    first = target(model, sandbox.forget[:64])
    assert torch.equal(first, target(model, sandbox.forget[:70]))
    assert torch.equal(first, target(fresh(), sandbox.forget[:64]))
    assert not torch.equal(first, target(model, sandbox.forget[64:128]))
    raised(ModelError, "lora_layers names 4, 7, but the model's 4 blocks", fresh, "rmu", lora_layers=(1, 4, 7))
    raised(ModelError, "no block 4: it has 4 blocks", batch_of, model, Rmu(layer=4))
    for coefficient, weak in ((2.0, True), (50.0, False)):
        (note,) = ForgetSet(make_config("rmu"), Rmu(1, coefficient=coefficient), model, FACTS, None).notes
        assert note.kind == ("weak_steering" if weak else "steering") and 10 < note.values["norm"] < 20
        assert note.values["length"] == coefficient and note.values["block"] == 1


def test_pdu_by_hand(model):
    method = PrimalDualUnlearning()
    batch = batch_of(model, method)
    logits = model.score(batch.tokens, logits=True).logits.detach().double()
    check(method.forget_loss(model, batch).loss, [(max(z) - mean(z)) ** 2 for z in logits.tolist()])
    # At the last answer token both see the end of the turn; upstream never sees the first token's prediction.
    rows = encode_facts(model.tokenizer, FACTS, include_tail=True)
    tailed = collate(rows, model.tokenizer.pad_token_id)
    logits = model.score(tailed, logits=True).logits.detach().double().split([n + 1 for n in LENGTHS])
    expected = [(max(z) - mean(z)) ** 2 for part in logits for z in part[1:].tolist()]
    check(PrimalDualUnlearning(predicting=False).forget_loss(model, batch).loss, expected)


def accumulated(model, method, batch):
    def accumulate():
        result = method.forget_loss(model, batch)
        loss = result.loss.sum() / batch.tokens.rows
        loss.backward()
        return loss.item(), [result.nll.tolist()]

    return accumulate


def stepped(model, method):
    model.network.zero_grad()
    loss, _ = method.backward(model, accumulated(model, method, batch_of(model, method)))
    flat_gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters])
    model.network.zero_grad()
    return flat_gradient, loss


def test_npo_sam_by_hand_and_its_weights_put_back_if_its_second_pass_fails(model):
    flat, loss = stepped(model, SharpnessAwarePreference(0.5, 0.0))
    plain, other = stepped(model, NegativePreference(0.5))
    assert torch.equal(flat, plain) and loss == other
    # NPO's gradient at weights moved by rho along NPO's gradient; the weights come back bit by bit
    before, rho = weights(model).clone(), 0.05
    sharp, loss = stepped(model, SharpnessAwarePreference(0.5, rho))
    assert torch.equal(weights(model), before)
    plain, other = stepped(model, NegativePreference(0.5))
    try:
        vector_to_parameters(before + rho * plain / plain.norm(), model.parameters)
        expected, _ = stepped(model, NegativePreference(0.5))
    finally:
        vector_to_parameters(before.clone(), model.parameters)
    torch.testing.assert_close(sharp, expected, atol=1e-4 * expected.abs().max().item(), rtol=1e-3)
    assert loss == other and cosine_similarity(sharp, plain, dim=0) < 0.9999
    method, before, passes = SharpnessAwarePreference(0.5, 0.05), weights(model).clone(), []
    accumulate = accumulated(model, method, batch_of(model, method))

    def failing():
        passes.append(weights(model))
        if len(passes) == 2:
            raise torch.OutOfMemoryError
        return accumulate()

    raised(torch.OutOfMemoryError, "", method.backward, model, failing)
    model.network.zero_grad()
    assert torch.equal(weights(model), before) and not torch.equal(passes[1], before)
    method.backward(model, lambda: model.parameters[0].sum().backward())
    unused = [weight.grad is None for weight in model.parameters]
    assert unused == [False] + [True] * (len(unused) - 1), "a layer that no row reaches is left as it is"
    model.network.zero_grad()


@pytest.mark.parametrize("delta", [0.0, 0.7])
def test_simnpo_by_hand(model, delta):
    method = SimpleNegativePreference(beta=4.5, delta=delta, gamma=0.125)
    batch = batch_of(model, method)
    rows = by_row(model.score(batch.tokens).nll)
    expected = [-0.125 * 2 / 4.5 * math.log(sigmoid(4.5 * (mean(row) - delta))) for row in rows]
    check(method.forget_loss(model, batch).loss, expected)


def test_satimp_by_hand_and_without_importance_as_wga(model):
    method = SaturationImportance(b1=2.0, b2=0.5, gamma=0.3)
    batch = batch_of(model, method)
    nll = model.score(batch.tokens).nll.tolist()
    expected = [-0.3 * math.exp(-n) ** 2 * (1 - math.exp(-n)) ** 0.5 * n for n in nll]
    check(method.forget_loss(model, batch).loss, expected)
    for beta in (0.0, 5.0):
        left, right = SaturationImportance(b1=beta, b2=0.0), WeightedGradientAscent(beta)
        one, two = (sibling.forget_loss(model, batch).loss for sibling in (left, right))
        assert torch.equal(one, two) and torch.equal(gradient(model, one), gradient(model, two))


def test_altpo_by_hand(model):
    method = AlternatePreference(beta=0.3)
    batch, expected = batch_of(model, method), []
    for row, fact in enumerate(FACTS):
        ratios = []
        for answer in (fact.alternates[0], fact.answer):
            tokens = collate(encode_facts(model.tokenizer, [replace(fact, answer=answer)]), 0)
            with torch.no_grad(), model.original():
                before = model.score(tokens).nll.sum().item()
            ratios.append(before - model.score(tokens).nll.sum().item())
        expected.append(-2 / 0.3 * math.log(sigmoid(0.3 * (ratios[0] - ratios[1]))))
        assert batch.other.target[batch.other.row == row].numel() == len(fact.alternates[0].split())
    check(method.forget_loss(model, batch).loss, expected)


def test_alternates_take_turns_and_must_be_there(model):
    # The first fact has two, so it gets each in every other epoch; one alternate serves in all.
    method = AlternatePreference()
    batches = [batch_of(model, method, epoch=epoch).other for epoch in (1, 2, 3)]
    rows = [[other.target[other.row == row] for row in (0, 3)] for other in batches]
    said = [[word.strip() for word in model.tokenizer.batch_decode(both, skip_special_tokens=True)] for both in rows]
    assert said == [["Dickens", "Friday"], ["Tolstoy", "Friday"], ["Dickens", "Friday"]]
    facts = [*FACTS[:2], replace(FACTS[2], alternates=())]
    with pytest.raises(DataError, match="1 of 3 facts have no plausible wrong answer, for example 'two'"):
        batch_of(model, AlternatePreference(), facts)


def test_flat_by_hand(model):
    method = Flat("pearson", refusal="three four")
    batch = batch_of(model, method)
    answered = [mean([math.exp(-n) for n in row]) for row in by_row(model.score(batch.tokens).nll)]
    refused = [mean([math.exp(-n) for n in row]) for row in model.score(batch.other).nll.detach().split([3] * 4)]
    check(method.forget_loss(model, batch).loss, [-e + f * f / 4 + f for e, f in zip(refused, answered)])


def test_refusal_and_target_of_tpo_end_where_they_end(model):
    # It is something to say, so it has an end of its own, and the answer it replaces has none in the loss.
    batch = batch_of(model, Flat())
    said = batch.other.target[batch.other.row == 0]
    assert said[-1] == model.tokenizer.eos_token_id and model.tokenizer.decode(said[:-1]).strip() == "I don't know."
    assert batch.tokens.target.eq(model.tokenizer.eos_token_id).sum() == 0
    batch = batch_of(model, TargetedPreference(), include_tail=True)
    assert [marks.tolist() for marks in batch.unwanted.split([n + 1 for n in LENGTHS])] == [
        [True, False], [True, True, True, False], [True, False, True, False], [True, False]]  # fmt: skip


def test_tpo_by_hand(model, fresh):
    method = TargetedPreference(beta=0.3, gamma=0.7)
    batch = batch_of(model, method)
    assert by_row(batch.unwanted) == [[True], [True] * 3, [True, False, True], [True]], "'of' only holds it together"
    now = model.score(batch.tokens)
    fallen, nll = by_row(batch.reference_gold - now.gold), by_row(now.nll)
    expected = []
    for d, n, marks in zip(fallen, nll, by_row(batch.unwanted)):
        lowered = mean([value for value, mark in zip(d, marks) if mark])
        general = [value for value, mark in zip(n, marks) if not mark]
        expected.append(0.7 * (-2 / 0.3 * math.log(sigmoid(0.3 * lowered)) + (mean(general) if general else 0)))
    check(method.forget_loss(model, batch).loss, expected)
    # Raw gold logits of the model with its adapter off, the same whatever the adapter has become.
    reference_golds = [batch_of(net, TargetedPreference()).reference_gold for net in (model, fresh())]
    assert torch.equal(*reference_golds)
    batch = batch_of(model, TargetedPreference())
    with torch.no_grad(), model.original():
        logits = model.score(batch.tokens, logits=True).logits
    torch.testing.assert_close(reference_golds[0], logits[range(len(logits)), batch.tokens.target])
    assert not torch.allclose(reference_golds[0], model.score(batch.tokens).gold, atol=0.1)


@pytest.mark.parametrize(
    ("skip", "counted"), [(0, "1 111 111 1"), (1, "1 011 011 1"), (2, "1 001 001 1"), (3, "1 111 111 1")]
)
def test_ceu_by_hand(model, skip, counted):
    """Answers that have no more tokens than are skipped keep them all: else only the end of the turn would be left."""
    method = CrossEntropyUnlearning(skip)
    batch = batch_of(model, method)
    logits, expected = model.score(batch.tokens, logits=True).logits.detach().double(), []
    for z, gold, counts in zip(logits, batch.tokens.target.tolist(), counted.replace(" ", "")):
        others = [i for i in range(len(z)) if i != gold]
        target, logs = z[others].softmax(0), z.log_softmax(0)[others]
        expected.append(-(target * logs).sum().item() * int(counts))
    check(method.forget_loss(model, batch).loss, expected)
    # Nor is the end of the turn: else of an answer of one token the end alone would be trained on.
    loss = method.forget_loss(model, batch_of(model, method, include_tail=True)).loss
    every = CrossEntropyUnlearning(0)
    marks = torch.tensor([float(mark) for mark in counted.replace(" ", "1 ").replace(" ", "") + "1"])
    torch.testing.assert_close(loss, marks * every.forget_loss(model, batch_of(model, every, include_tail=True)).loss)
    assert loss[0] > 0


NLL = {"gold": ([1.0, 2.0, 0.5], [0, 0, 1]), "other": ([3.0, 1.0, 2.0, 6.0], [0, 1, 1, 1])}  # and each token's row
TWO_TEXTS = SimpleNamespace(score=lambda which: Scored(*map(torch.tensor, NLL[which]), 2))


@pytest.mark.parametrize(("method", "factor"), [
    (RefusalPreference(0.5), 4), (AlternatePreference(0.5), 4), (CounterfactualPreference(0.5), 1)])  # fmt: skip
def test_preferences_by_hand(method, factor):
    """beta times the brackets is 1 and 0.5, and -log sigmoid(0.5) = 0.4740769841801067."""
    loss = method.forget_loss(TWO_TEXTS, BATCH).loss
    torch.testing.assert_close(loss, torch.tensor([-factor * LN_SIGMOID_1, factor * 0.4740769841801067]))


def test_rejection_tuning_is_fine_tuning_on_the_refusal(fresh):
    result = RejectionTuning().forget_loss(TWO_TEXTS, BATCH)
    assert result.loss.tolist() == [3.0, 3.0] and result.nll.tolist() == [1.0, 2.0, 0.5]
    # The retain term's loss of rows whose answer is the refusal: cross-entropy of the network itself.
    model, method = fresh(), RejectionTuning()
    made = ForgetSet(make_config("rt"), method, model, FACTS, None)
    batch = made.batch(made.rows, 1)
    loss, other = method.forget_loss(model, batch).loss, batch.other
    logits = model.score(other, logits=True).logits.detach()
    nll = torch.nn.functional.cross_entropy(logits, other.target, reduction="none")
    means = [nll[other.row == row].mean() for row in range(len(FACTS))]
    torch.testing.assert_close(loss.detach(), torch.stack(means))
    ids = other.target[other.row == 0]
    assert model.tokenizer.decode(ids[:-1]).strip() == method.refusal
    assert ids[-1] == model.tokenizer.eos_token_id


def test_refusals_of_idkdpo_take_turns_or_are_one(fresh):
    model, method = fresh(), RefusalPreference()
    made = ForgetSet(make_config("idkdpo", epochs=2), method, model, FACTS, None)
    texts = []
    for epoch in (1, 2):
        batch = made.batch(made.rows, epoch)
        words = [batch.other.target[batch.other.row == row][:-1] for row in (0, 1)]
        texts.append(tuple(text.strip() for text in model.tokenizer.batch_decode(words)))
        with torch.no_grad(), model.original():
            torch.testing.assert_close(batch.other_reference_nll, model.score(batch.other).nll)
    assert texts == [REFUSALS[:2], REFUSALS[1:3]], "the next fact's is the next epoch's"
    assert make_objective("idkdpo", {"several": False, "refusal": "Pass."}).refusals == ("Pass.",)
    for name, arguments in (("idkdpo", {"beta": 0.0}), ("rt", {"refusal": " "}), ("dpo", {"count": 0})):
        raised(ConfigError, "", make_objective, name, arguments)


@pytest.mark.parametrize(("text", "pieces", "marks"), [
    ("Paris", ["Paris"], [1]), ("The city of Lima.", ["The", " city", " of", " Lima", "."], [0, 1, 0, 1, 0]),
    ("Anne and Ian", ["An", "ne", " and", " Ian"], [1, 1, 0, 1]), ("the-the", ["the", "-", "the"], [1, 1, 1]),
    ("the who", ["the", " who"], [1, 1]), ("The Who", ["The", " Who"], [0, 1]),
    ("The Beatles", ["The", " Beatles"], [0, 1]), ("US Army", ["US", " Army"], [1, 1]),
    ("Will Smith", ["Will", " Smith"], [1, 1]), ("Will", ["Will"], [1]),
    ("Gone with the Wind", ["Gone", " with", " the", " Wind"], [1, 0, 0, 1]),
    ("It is in the US.", ["It", " is", " in", " the", " US", "."], [0, 0, 0, 0, 1, 0]),
    ("In 1990", ["In", " 1990"], [0, 1]),
    ("O'Neill, in May", ["O", "'", "Neill", ",", " in", " May"], [1, 1, 1, 0, 0, 1]),
    ("नई दिल्ली", ["नई", " ", "द", "ि", "ल", "्", "ल", "ी"], [1, 0, 1, 1, 1, 1, 1, 1]),
    ("...", ["...", ""], [1, 1]), ("Лев Толстой", ["Лев", " Тол", "стой"], [1, 1, 1])])  # fmt: skip
def test_unwanted(text, pieces, marks):
    spans, at = [], 0
    for piece in pieces:  # which follow each other
        at = text.index(piece, at)
        spans.append((at, at + len(piece)))
        at += len(piece)
    assert list(unwanted(text, spans)) == [bool(mark) for mark in marks]


def test_places_of_tokens(model):
    # Byte pieces of É stand where the letter does; all of them are part of its word.
    assert unwanted("É of", [(0, 1), (0, 1), (1, 4)]) == (True, True, False)
    text = "four of the five"
    (row,) = encode_facts(model.tokenizer, [Fact("f", "Why?", text)])
    assert len(row.spans) == len(model.tokenizer(text, add_special_tokens=False)["input_ids"])
    assert unwanted(row.text, row.spans) == (True, False, False, True)

    class Slow:
        chat_template, is_fast = "{{ messages }}", False

    raised(ModelError, "has no tokenizer", encode_facts, Slow(), [Fact("f", "Why?", "text")])
