"""Methods that prefer or teach something else: against values worked out by hand, and as siblings."""

from types import SimpleNamespace

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.model.adapted import Scored
from adapop.objectives import ForgetBatch, make_objective
from adapop.objectives.altpo import AlternatePreference, CounterfactualPreference
from adapop.objectives.flat import REFUSALS
from adapop.objectives.refusal import RefusalPreference, RejectionTuning
from adapop.training.forget_set import ForgetSet
from few_facts import FACTS

LN_SIGMOID_1 = -0.3132616875182228  # log sigmoid(1), from a table


class TwoTexts:
    """A model with two rows: answers of two tokens and one, other texts of one token and three."""

    rows = {"gold": ([0, 0, 1], [1.0, 2.0, 0.5]), "other": ([0, 1, 1, 1], [3.0, 1.0, 2.0, 6.0])}

    def score(self, which):
        row, nll = self.rows[which]
        return Scored(torch.tensor(nll), torch.tensor(row), 2)


BATCH = ForgetBatch(
    "gold",
    reference_nll=torch.tensor([0.5, 1.5, 0.5]),  # log ratios of the answers: -1 and 0
    other="other",
    other_reference_nll=torch.tensor([4.0, 1.5, 2.5, 6.0]),  # of the others: 1 and 1
)


@pytest.mark.parametrize(
    ("method", "factor"),
    [(RefusalPreference(0.5), 4), (AlternatePreference(0.5), 4), (CounterfactualPreference(0.5), 1)],
)
def test_preferences_by_hand(method, factor):
    """beta times the brackets is 1 and 0.5, and -log sigmoid(0.5) = 0.4740769841801067."""
    loss = method.forget_loss(TwoTexts(), BATCH).loss
    torch.testing.assert_close(loss, torch.tensor([-factor * LN_SIGMOID_1, factor * 0.4740769841801067]))


def test_rejection_tuning_is_fine_tuning_on_the_refusal(fresh):
    result = RejectionTuning().forget_loss(TwoTexts(), BATCH)
    assert result.loss.tolist() == [3.0, 3.0] and result.nll.tolist() == [1.0, 2.0, 0.5]
    # The retain term's loss of rows whose answer is the refusal: cross-entropy of the network
    # itself.
    model, method = fresh(), RejectionTuning()
    made = ForgetSet(make_config("rt"), method, model, FACTS, None)
    batch = made.batch(made.rows, 1)
    loss = method.forget_loss(model, batch).loss
    other = batch.other
    sums, counts = torch.zeros(len(FACTS)), torch.zeros(len(FACTS))
    logits = model.score(other, logits=True).logits
    nll = torch.nn.functional.cross_entropy(logits, other.target, reduction="none")
    sums.index_add_(0, other.row, nll.detach()), counts.index_add_(0, other.row, torch.ones_like(nll.detach()))
    torch.testing.assert_close(loss.detach(), sums / counts)
    ids = other.target[other.row == 0]
    assert model.tokenizer.decode(ids[:-1]).strip() == "I do not know the answer."
    assert ids[-1] == model.tokenizer.eos_token_id


def test_refusals_of_idkdpo_take_turns_or_are_one(fresh):
    model, method = fresh(), RefusalPreference()
    made = ForgetSet(make_config("idkdpo", epochs=2), method, model, FACTS, None)
    texts = []
    for epoch in (1, 2):
        batch = made.batch(made.rows, epoch)
        texts.append(model.tokenizer.decode(batch.other.target[batch.other.row == 0][:-1]).strip())
        with torch.no_grad(), model.original():
            torch.testing.assert_close(batch.other_reference_nll, model.score(batch.other).nll)
    assert texts == list(REFUSALS[:2])
    assert make_objective("idkdpo", {"several": False, "refusal": "Pass."}).refusals == ("Pass.",)
    for name, arguments in (("idkdpo", {"beta": 0.0}), ("rt", {"refusal": " "}), ("dpo", {"count": 0})):
        with pytest.raises(ConfigError):
            make_objective(name, arguments)


def test_as_published():
    """RWKU's two have no retain term; TOFU's preference has one in OpenUnlearning and none in its own code."""
    assert [make_config(name).alpha0 for name in ("idkdpo", "dpo", "rt")] == [1.0, 0.0, 0.0]
    theirs = SimpleNamespace(**{name: make_config(name, "authors", "some/model") for name in ("idkdpo", "dpo", "rt")})
    assert (theirs.idkdpo.alpha0, theirs.idkdpo.learning_rate) == (0.0, 1e-5)
    assert (theirs.dpo.learning_rate, theirs.rt.learning_rate) == (6e-5, 3e-5)
    assert theirs.dpo.lora_targets == theirs.rt.lora_targets == ("q_proj", "v_proj")
