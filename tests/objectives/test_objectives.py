import math
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch

from adapop.config.methods import METHODS
from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.model.adapted import Scored
from adapop.model.adapter import check_gradients
from adapop.model.tokens import collate, encode_facts
from adapop.objectives import OBJECTIVES, ForgetBatch, make_objective
from adapop.objectives.ascent import AdaPop, GradientAscent, GradientDifference, WeightedGradientAscent
from adapop.objectives.npo import NegativePreference
from adapop.objectives.objective import USES
from adapop.objectives.refusal import DIVERGENCES
from adapop.paths import ROOT
from adapop.training.forget_set import ForgetSet
from few_facts import FACTS, LENGTHS, gradient
from raised import raised

BETAS = torch.tensor([1.7, 0.3, 1.0, 0.05])


@pytest.fixture(scope="module")
def rows(model):
    encoded = encode_facts(model.tokenizer, FACTS)
    assert [len(row.answer) for row in encoded] == LENGTHS
    return encoded


@pytest.fixture(scope="module")
def make_batch(model, rows):
    """A forget batch of some of the facts, with what the method uses: for an unnamed one, beta and reference."""
    sets = {}

    def make(*which, betas=BETAS, method=None, epoch=1):
        method = method or NegativePreference()
        key = (method, tuple(betas.tolist()))
        if key not in sets:
            sets[key] = ForgetSet(make_config(method.name), method, model, FACTS, betas.tolist())
        return sets[key].batch([rows[i] for i in which or range(len(rows))], epoch)

    return make


@pytest.fixture(params=OBJECTIVES, ids=lambda objective: objective.name)
def objective(request):
    name = request.param.name
    return make_objective(name, make_config(name).arguments)


def test_loss_is_finite_and_unreduced(model, make_batch, objective):
    batch = make_batch(method=objective)
    result = objective.forget_loss(model, batch)
    size = {"token": batch.tokens.count, "row": batch.tokens.rows}[objective.reduce]
    assert result.loss.shape == (size,) and result.nll.shape == (batch.tokens.count,)
    assert result.loss.dtype == torch.float32 and result.loss.isfinite().all()
    assert torch.equal(result.nll, model.score(batch.tokens).nll)


@pytest.mark.quick("adapop", "npo", "rmu", "altpo", "redirect")
def test_descent_reaches_every_lora_b_and_makes_answers_less_likely(fresh, make_batch, objective):
    # From a fresh adapter, where every B is 0: its first step must move each of them.
    model = fresh(objective.name)
    objective.forget_loss(model, make_batch(method=objective)).loss.sum().backward()
    check_gradients(model.network)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters)
    # A step down the loss raises the nll of answers that the model knows. Steering and refusals only promise that the
    # states, or the refusal, come nearer: what that does to the answers shows over many steps.
    model, batch = fresh(objective.name), make_batch(0, 3, method=objective)
    result = objective.forget_loss(model, batch)
    result.loss.sum().backward()
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in model.parameters))
    with torch.no_grad():
        for parameter in model.parameters:
            parameter -= 0.01 / norm * parameter.grad
        if objective.name in ("rmu", "adaptive-rmu", "idkdpo", "rt"):
            assert objective.forget_loss(model, batch).loss.sum() < result.loss.sum() - 1e-3
        else:
            assert model.score(batch.tokens).nll.sum() > result.nll.sum() + 1e-3


@torch.no_grad()
def test_loss_of_a_row_does_not_depend_on_its_batch(model, make_batch, objective):
    together = objective.forget_loss(model, make_batch(method=objective)).loss
    parts = [objective.forget_loss(model, make_batch(i, method=objective)).loss for i in range(len(FACTS))]
    torch.testing.assert_close(together, torch.cat(parts), atol=2e-5, rtol=1e-5)


def test_gradient_ascent_and_adapop_by_hand(model, make_batch, objective):
    batch = make_batch()
    nll = model.score(batch.tokens).nll
    betas = [beta for beta, length in zip(BETAS.tolist(), LENGTHS) for _ in range(length)]
    expected = [-(math.exp(-n) ** beta) * n for n, beta in zip(nll.tolist(), betas)]
    torch.testing.assert_close(AdaPop().forget_loss(model, batch).loss, torch.tensor(expected))
    # Except for those that hold the states of a block.
    tokens = make_batch().tokens
    result = objective.retain_loss(model, tokens)
    assert torch.equal(result.nll, model.score(tokens).nll)
    assert (result.loss is result.nll) == (objective.name not in ("rmu", "adaptive-rmu"))


def test_objectives_and_descriptions_agree_on_what_a_method_uses():
    assert [objective.name for objective in OBJECTIVES] == list(METHODS)
    for objective in OBJECTIVES:
        method = METHODS[objective.name]
        assert objective.uses <= USES and objective.reduce in ("token", "row")
        assert (method.scored, bool(method.needs)) == ("beta" in objective.uses, "alternates" in objective.uses)
        assert objective.retains or method.alpha0 == 0


SIBLINGS = {
    "AdaPop, beta 1 everywhere = WGA(1)": (AdaPop(), 1.0, WeightedGradientAscent(1.0)),
    "AdaPop, beta 0.3 everywhere = WGA(0.3)": (AdaPop(), 0.3, WeightedGradientAscent(0.3)),
    "AdaPop, beta 0 everywhere = GA": (AdaPop(), 0.0, GradientAscent()),
    "WGA(0) = GD": (WeightedGradientAscent(0.0), 1.0, GradientDifference()),
}


@pytest.mark.parametrize(("left", "beta", "right"), SIBLINGS.values(), ids=SIBLINGS)
def test_identities(model, make_batch, left, beta, right):
    batch = make_batch(betas=torch.full((len(FACTS),), beta))
    a, b = (method.forget_loss(model, batch).loss for method in (left, right))
    assert torch.equal(a, b) and torch.equal(gradient(model, a), gradient(model, b))


def test_weight_does_not_underflow(rows):
    """exp(-nll) is 0 in float32 at nll = 120, and so would be its power; exp(-beta * nll) is not."""
    tokens = collate(rows[:1], 0)
    for number in (0.0, 1.0, 120.0):  # which no real batch would give on demand
        nll = torch.tensor([number], requires_grad=True)
        model = SimpleNamespace(score=lambda tokens, nll=nll: Scored(nll, tokens.row, tokens.rows))
        loss = AdaPop().forget_loss(model, ForgetBatch(tokens, torch.tensor([0.05]))).loss
        weight = math.exp(-0.05 * number)
        assert loss.item() == pytest.approx(-weight * number, rel=1e-5)
        loss.sum().backward()
        assert nll.grad.item() == pytest.approx(-weight, rel=1e-5)  # the weight itself carries no gradient


def test_npo_at_the_start(fresh, make_batch):
    """The model is its own reference: every ratio is 0, the loss (2 / beta) ln 2 and the gradient GA's."""
    model, batch = fresh(), make_batch()
    sums = gradient(model, GradientAscent().forget_loss(model, batch).loss)
    for beta in (0.1, 3.0):
        loss = NegativePreference(beta).forget_loss(model, batch).loss
        torch.testing.assert_close(loss, torch.full((len(FACTS),), 2 / beta * math.log(2)), atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(gradient(model, loss), sums, atol=1e-4, rtol=1e-3)


def test_npo_by_hand(model, make_batch):
    batch = make_batch()
    nll = model.score(batch.tokens).nll.detach()
    ratios = [part.sum().item() for part in (batch.reference_nll - nll).split(LENGTHS)]
    assert max(map(abs, ratios)) > 1  # else everything would be the start
    expected = [-2 / 0.5 * math.log(1 / (1 + math.exp(0.5 * ratio))) for ratio in ratios]
    loss = NegativePreference().forget_loss(model, batch).loss
    torch.testing.assert_close(loss, torch.tensor(expected), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("sorcery", {}, "Unknown method 'sorcery'. Use one of adapop, wga, gd, npo, ga, undial, rmu, "),
    ("ga", {"beta": 1.0}, "ga has no beta. beta is a setting of the run. Its arguments: none."),
    ("wga", {"gamma": 1, "alpha": 2}, "wga has no alpha, gamma."),
    ("wga", {"beta": -0.1}, "beta of wga is -0.1. It must be at least 0."), ("npo", {"beta": 0}, "beta of npo is 0"),
    ("npo-sam", {"rho": -0.01}, "rho of npo-sam is -0.01"), ("undial", {"beta": -1}, "beta of undial is -1"),
    ("rmu", {"layer": -1}, "layer of rmu is -1"), ("rmu", {"coefficient": 0}, "coefficient of rmu is 0"),
    ("rmu", {"scale": 5}, "rmu has no scale. Its arguments: coefficient, layer, predicting."),
    ("simnpo", {"gamma": 0}, "gamma of simnpo is 0"), ("satimp", {"b2": -1}, "b2 of satimp is -1"),
    ("altpo", {"source": "guess"}, "source of altpo is 'guess'. It must be second or model or relation."),
    ("flat", {"divergence": "hellinger"}, "divergence of flat is 'hellinger'. It must be one of total-variation"),
    ("tpo", {"beta": 0}, "beta of tpo is 0"), ("ceu", {"skip": -1}, "skip of ceu is -1"),
    ("redirect", {"target": "level"}, "redirect has no target. Its arguments: count, kappa, over, share, source"),
    ("redirect", {"share": 1.5}, "share of redirect is 1.5. It must be between 0 and 1"),
    ("redirect", {"over": 0}, "over of redirect is 0"), ("redirect", {"over": 3.0}, "over of redirect is 3.0"),
    ("npo", {"beta": "x"}, "beta of npo is 'x'"), ("wga", {"beta": True}, "beta of wga is True"),
    ("altpo", {"count": 1.0}, "count of altpo is 1.0"), ("altpo", {"count": math.inf}, "count of altpo is inf"),
    ("flat", {"refusal": 3}, "refusal of flat is 3"), ("flat", {"several": "no"}, "several of flat is 'no'"),
])  # fmt: skip
def test_make_objective_errors(name, arguments, message):
    raised(ConfigError, message.replace(".", r"\."), make_objective, name, arguments)


@pytest.mark.parametrize(("name", "g", "conjugate"), [
    ("kl", lambda x: x, lambda t: torch.exp(t - 1)), ("pearson", lambda x: x, lambda t: t**2 / 4 + t),
    ("reverse-kl", lambda x: -torch.exp(-x), lambda t: -1 - torch.log(-t)),
    ("squared-hellinger", lambda x: 1 - torch.exp(-x), lambda t: t / (1 - t)),
    ("neyman", lambda x: 1 - torch.exp(-x), lambda t: 2 - 2 * torch.sqrt(1 - t)),
    ("jensen-shannon", lambda x: math.log(2) - torch.log(1 + torch.exp(-x)), lambda t: -torch.log(2 - torch.exp(t))),
    ("total-variation", lambda x: torch.tanh(x) / 2, lambda t: t),
    ("jeffrey", lambda x: x, lambda t: t + t**2 / 4 + t**3 / 16)])  # fmt: skip
def test_a_divergence_is_g_and_the_conjugate_of_g(name, g, conjugate):
    """Conjugates f* of Nowozin et al. 2016. Each raises the refusal and lowers the answer: three of the authors' own do
    the opposite."""
    gain, loss = DIVERGENCES[name]
    p = torch.linspace(0.01, 0.99, 50, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(gain(p), g(p))
    torch.testing.assert_close(loss(p), conjugate(g(p)))
    for function in (gain, loss):
        assert (torch.autograd.grad(function(p).sum(), p)[0] > 0).all()


def test_the_arguments_that_models_md_lists_are_those_of_the_methods():
    rows = (ROOT / "assets/docs/models.md").read_text("utf-8").split("### Arguments of the methods")[1].splitlines()
    listed = {row for row in rows if row.startswith("| `")}
    given = {cls.name: ", ".join(f"`{one.name}={one.default}`" for one in fields(cls)) for cls in OBJECTIVES}
    assert listed == {f"| `{name}` | {arguments} |" for name, arguments in given.items() if arguments}
