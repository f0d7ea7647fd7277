"""RWKU's sets beside its facts, from a server that answers as the Hub does: rows in its columns, made up here, scored
by its own formulas (github.com/jinzhuoran/RWKU, LLaMA-Factory/src/llmtuner/eval) or by torch alone."""

import zlib

import pytest
import torch

from adapop.errors import NetworkError
from adapop.facts.benchmarks import RWKU
from adapop.model.chat import encode_answer
from adapop.probes import rwku
from adapop.probes.capability import capability
from scripted_hub import serve

PASSAGES = [{"subject": "Hamlet", "text": text} for text in ("Who wrote Hamlet? William Shakespeare.", "So it goes.")]
QUESTION = {"question": "Which is a colour?", "choices": ["red", "two", "is", "and"], "answer": 0, "task": "a_task"}
GENERAL = [{**QUESTION, "answer": answer, "examples": [{**QUESTION, "answer": 2}] * 2} for answer in range(4)]
TABLES = {
    "utility_general": GENERAL,
    "utility_reason": [
        {"question": "1 + 1?", "answer": "(B)", "cot": "Q: 2 + 2?\nA: So the answer is (A).\n", "task": "t"}
    ],
    "utility_fluency": [{"instruction": "Who wrote Hamlet?"}, {"instruction": "Who?"}],
    "mia_forget": PASSAGES,
    "mia_retain": PASSAGES[1:],
}


@pytest.fixture
def hub(server, known):
    tables = {(RWKU, config, "test"): rows for config, rows in (TABLES | {"utility_truthfulness": known}).items()}
    return serve(server, tables)


@pytest.fixture
def known(sandbox):
    """Four questions about books as TruthfulQA has them: the true answer is the last choice, once the first."""
    books = sorted((fact for fact in sandbox.retain if fact.relation == "author"), key=lambda fact: -fact.score)
    names = list(dict.fromkeys(fact.answer for fact in books))
    rows = []
    for fact in books[:4]:
        choices = [*[name for name in names if name != fact.answer][:3], fact.answer]
        rows.append({"question": fact.question, "mc1_targets": {"choices": choices, "labels": [0, 0, 0, 1]}})
    rows[3]["mc1_targets"]["labels"] = [1, 0, 0, 0]
    return rows


def theirs(network, text, ids):
    """Loss, zlib and min-k++ at a fifth as eval_mia.py has them, there with the other sign."""
    ids = torch.tensor([ids])
    with torch.no_grad():
        loss, logits = network(ids, labels=ids)[:2]
    log_p = logits[0, :-1].log_softmax(-1)
    gold = log_p.gather(1, ids[0, 1:, None])[:, 0]
    mean = (log_p.exp() * log_p).sum(-1)
    scaled = (gold - mean) / ((log_p.exp() * log_p.square()).sum(-1) - mean.square()).sqrt()
    return [
        loss.item(),
        loss.item() / len(zlib.compress(text.encode())),
        -scaled.sort()[0][: len(scaled) // 5].mean().item(),
    ]


def test_passages_are_scored_as_theirs(fresh):
    model = fresh()
    values = rwku.membership(model, PASSAGES)
    for place, row in enumerate(PASSAGES):
        ids = model.tokenizer(row["text"])["input_ids"]
        own = [values[name][place] for name in ("mia_loss", "mia_zlib", "mia_min_k_plus_plus")]
        assert len(ids) >= 10 and own == pytest.approx(theirs(model.network, row["text"], ids), rel=1e-4)


def test_the_letter_that_is_chosen_is_the_likeliest_next_token(fresh):
    model = fresh()
    shown = "Question: Which is a colour?\nA. red\nB. two\nC. is\nD. and"
    text = f"{shown}\nAnswer: C\n\n" * 2 + shown
    encoded = [encode_answer(model.tokenizer, text, letter, "", "Answer: ") for letter in "ABCD"]
    letters = [one.answer for one in encoded]
    assert {len(answer) for answer in letters} == {1} and len({one.prompt for one in encoded}) == 1
    with torch.no_grad():
        logits = model.network(torch.tensor([encoded[0].prompt])).logits[0, -1]
    best = max(range(4), key=lambda place: logits[letters[place][0]])
    assert rwku.general(model, GENERAL) == {"accuracy": [float(place == best) for place in range(4)]}


def test_truth_is_the_likeliest_of_whole_answers(fresh, known):
    model, right = fresh(), []
    for row in known:
        values = []
        for choice in row["mc1_targets"]["choices"]:
            one = encode_answer(model.tokenizer, f"Q: {row['question']}", choice, "", "A: ")
            ids = torch.tensor([*one.prompt, *one.answer])
            with torch.no_grad():
                log_p = model.network(ids[None]).logits[0].log_softmax(-1)
            values.append(sum(log_p[at - 1, ids[at]].item() for at in range(len(one.prompt), len(ids))))
        place = row["mc1_targets"]["labels"].index(1)
        right.append(float(max(range(4), key=values.__getitem__) == place))
    assert rwku.truthfulness(model, known) == {"mc1": right} and {*right} == {0.0, 1.0}


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("2 is left, so the answer is (B). And", 1.0),
        ("The answer is the b.", 1.0),
        ("(B)", 1.0),
        ("so the answer is (A).", 0.0),
        ("The answer is B, I think.", 0.0),
        ("", 0.0),
    ],
)
def test_reasoning_is_right_where_what_it_says_is_the_whole_answer(fresh, monkeypatch, reply, right):
    model, asked = fresh(), []
    monkeypatch.setattr(model, "replies", lambda rows, limit: asked.append((rows, limit)) or [(reply,)])
    assert rwku.reason(model, TABLES["utility_reason"]) == {"exact match": [right]}
    ((row,), limit) = asked[0]
    assert limit == 256 and model.tokenizer.decode(row.prompt).rstrip().endswith("A:")


def test_fluency_is_the_entropy_of_pairs_and_triples_of_words():
    """By hand: pairs 1 bit, triples of 2/3 and 1/3; two words have one pair, and none has no bits."""
    assert rwku.entropy("a b a b a") == pytest.approx((2 / 3 * 1 + 4 / 3 * 0.9182958) / 2)
    assert rwku.entropy("w1 w2 w3 w4 w5") == pytest.approx((2 / 3 * 2 + 4 / 3 * 1.5849625) / 2)
    assert rwku.entropy("la la la la") == rwku.entropy("la la") == rwku.entropy("") == 0


def test_both_models_are_asked_and_a_limit_is_kept(model, fresh, hub):
    rows = capability(model, tuple(rwku.SETS), limit=3, hub=hub)
    assert [(row.task, row.metric, row.questions) for row in rows] == [
        ("rwku-general", "accuracy", 3), ("rwku-reason", "exact match", 1), ("rwku-truthfulness", "mc1", 3),
        ("rwku-fluency", "entropy", 2),
        *(("rwku-forget-passages", name, 2) for name in rwku.ATTACKS),
        *(("rwku-retain-passages", name, 1) for name in rwku.ATTACKS),
    ]  # fmt: skip
    by_name = {(row.task, row.metric): row for row in rows}
    truth, loss = by_name["rwku-truthfulness", "mc1"], by_name["rwku-forget-passages", "mia_loss"]
    assert truth.original == pytest.approx(1 / 3) and truth.original_stderr == pytest.approx(1 / 3)
    assert loss.difference and loss.original == pytest.approx(sum(rwku.membership(fresh(), PASSAGES)["mia_loss"]) / 2)
    assert by_name["rwku-reason", "exact match"].original_stderr is None


def test_a_column_that_is_not_there_is_named(fresh, server):
    hub = serve(server, {(RWKU, "mia_forget", "test"): [{"passage": "x"}]})
    with pytest.raises(NetworkError, match=r"mia_forget/test, has no column 'text'.*'passage'"):
        capability(fresh(), ("rwku-forget-passages",), hub=hub)
