"""Methods that prefer or teach something else: against values worked out by hand, as siblings, and which tokens of an
answer carry the fact."""

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ConfigError, ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import Scored
from adapop.model.tokens import encode_facts
from adapop.objectives import ForgetBatch, make_objective
from adapop.objectives.altpo import AlternatePreference, CounterfactualPreference
from adapop.objectives.flat import REFUSALS
from adapop.objectives.refusal import RefusalPreference, RejectionTuning
from adapop.objectives.tpo import unwanted
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
    # The retain term's loss of rows whose answer is the refusal: cross-entropy of the network itself.
    model, method = fresh(), RejectionTuning()
    made = ForgetSet(make_config("rt"), method, model, FACTS, None)
    batch = made.batch(made.rows, 1)
    loss = method.forget_loss(model, batch).loss
    other = batch.other
    logits = model.score(other, logits=True).logits.detach()
    nll = torch.nn.functional.cross_entropy(logits, other.target, reduction="none")
    means = [nll[other.row == row].mean() for row in range(len(FACTS))]
    torch.testing.assert_close(loss.detach(), torch.stack(means))
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
    ("...", ["...", ""], [1, 1]), ("Лев Толстой", ["Лев", " Тол", "стой"], [1, 1, 1]),
])  # fmt: skip
def test_unwanted(text, pieces, marks):
    found, at = [], 0
    for piece in pieces:  # which follow each other
        at = text.index(piece, at)
        found.append((at, at + len(piece)))
        at += len(piece)
    assert list(unwanted(text, found)) == [bool(mark) for mark in marks]


def test_places_of_tokens(model):
    # Byte pieces of É stand where the letter does; all of them are part of its word.
    assert unwanted("É of", [(0, 1), (0, 1), (1, 4)]) == (True, True, False)
    text = "four of the five"
    (row,) = encode_facts(model.tokenizer, [Fact("f", "Why?", text)])
    assert len(row.spans) == len(model.tokenizer(text, add_special_tokens=False)["input_ids"])
    assert unwanted(row.text, row.spans) == (True, False, False, True)

    class Slow:
        chat_template, is_fast = "{{ messages }}", False

    with pytest.raises(ModelError, match="has no tokenizer"):
        encode_facts(Slow(), [Fact("f", "Why?", "text")])
