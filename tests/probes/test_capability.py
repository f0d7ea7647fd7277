"""General capability through lm-eval, on rows made up: the real ones cannot be downloaded here. And RWKU's sets beside
its facts, from a server that answers as the Hub does: rows in its columns, made up here, scored by its own formulas
(github.com/jinzhuoran/RWKU, LLaMA-Factory/src/llmtuner/eval) or by torch alone."""

import sys
import zlib
from statistics import fmean, stdev

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ConfigError, ModelError, NetworkError
from adapop.facts.benchmarks import RWKU
from adapop.facts.world import sandbox_facts
from adapop.model.chat import encode_answer
from adapop.probes import capability as module
from adapop.probes.capability import Capability, capability
from adapop.runs.execute import prepare
from raised import raised
from scripted_hub import serve
from stirred import stirred

ROWS = 12
BOOKS = sorted((fact for fact in sandbox_facts().retain if fact.relation == "author"), key=lambda fact: -fact.score)
BOOKS, WRITERS = BOOKS[:ROWS], sorted({fact.answer for fact in BOOKS})
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
def rows(monkeypatch):
    """lm-eval's own definitions of MMLU (57 subjects in four groups) and HellaSwag find these rows; of the latter, who
    of four writers wrote a book that the sandbox model knows."""
    pytest.importorskip("lm_eval")
    import datasets

    def load(path, name=None, **others):
        if path == "cais/mmlu":
            row = {"question": f"Which is {name}?", "choices": ["this", "that", "both", "none"], "answer": 1}
            return datasets.DatasetDict({split: datasets.Dataset.from_list([row] * 2) for split in ("test", "dev")})
        assert path == "Rowan/hellaswag"
        made = []
        for place, fact in enumerate(BOOKS):
            others = [writer for writer in WRITERS if writer != fact.answer]
            options = [others[(place + step) % len(others)] for step in range(3)]
            options.insert(place % 4, fact.answer)
            row = {"ctx_a": fact.question, "ctx_b": "", "activity_label": "", "endings": options}
            made.append(row | {"label": str(place % 4)})
        return datasets.DatasetDict({split: datasets.Dataset.from_list(made) for split in ("train", "validation")})

    monkeypatch.setattr(datasets, "load_dataset", load)


def test_tasks_and_their_standard_errors(fresh, rows, capsys):
    mmlu, hellaswag = capability(fresh())
    assert (mmlu.task, mmlu.metric, mmlu.questions) == ("mmlu", "acc", 114)
    assert (hellaswag.task, hellaswag.metric, hellaswag.questions) == ("hellaswag", "acc_norm", ROWS)
    for row in (mmlu, hellaswag):
        assert 0 <= row.original == row.unlearned <= 1, "an untrained adapter changes nothing"
        assert row.original_stderr == row.unlearned_stderr >= 0
    assert capsys.readouterr().out == "", "what lm-eval prints would get between our rows"
    (found,) = capability(fresh(), ("hellaswag",), limit=1)
    assert (found.questions, found.original_stderr, found.unlearned_stderr) == (1, None, None)


def chosen_by_hand(model, row):
    """Which of a row's endings torch alone finds the likeliest: log-probability divided by bytes. HellaSwag puts
    the (empty) activity and a colon before the question."""
    turns = [{"role": "user", "content": f": {row['ctx_a']}"}]
    prompt = model.tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    values = []
    for ending in row["endings"]:
        ids = torch.tensor([*prompt, *model.tokenizer(ending, add_special_tokens=False)["input_ids"]])
        with torch.no_grad():
            log_p = model.network(ids[None]).logits[0].log_softmax(-1)
        values.append(sum(log_p[at - 1, ids[at]].item() for at in range(len(prompt), len(ids))) / len(ending.encode()))
    return max(range(len(values)), key=values.__getitem__)


def test_the_shares_are_those_that_torch_alone_finds(fresh, rows):
    import datasets

    model, asked = stirred(fresh(), 1.0, seed=1), list(datasets.load_dataset("Rowan/hellaswag")["validation"])
    (found,) = capability(model, ("hellaswag",))
    model.network.eval()
    unlearned = [chosen_by_hand(model, row) == int(row["label"]) for row in asked]
    with model.original():
        original = [chosen_by_hand(model, row) == int(row["label"]) for row in asked]
    assert (found.original, found.unlearned) == pytest.approx((fmean(original), fmean(unlearned)))
    assert found.original_stderr == pytest.approx(stdev(map(float, original)) / ROWS**0.5)
    assert 0 < fmean(unlearned) < fmean(original)


def test_adapter_on_is_the_unlearned_model_and_off_the_original(fresh, rows, monkeypatch):
    model = stirred(fresh(), 1.0, seed=1)
    (hellaswag,) = capability(model, ("hellaswag",))
    assert hellaswag.original >= 0.75
    assert hellaswag.difference < -0.25
    assert hellaswag.unlearned_stderr > 0

    def gone(*arguments, **named):
        raise ConnectionError("Couldn't reach the Hub\nand more")

    monkeypatch.setattr("datasets.load_dataset", gone)
    raised(ModelError, "hellaswag cannot be measured: Couldn't reach the Hub\\.", capability, model, ("hellaswag",))


def test_what_cannot_be_asked_and_a_missing_lm_eval_are_named(model, monkeypatch):
    raised(ConfigError, "limit is 0", capability, model, limit=0)
    raised(ConfigError, "no capability task 'humaneval'", capability, model, ("humaneval",))
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert raised(ModelError, "needs lm-eval", capability, model).fix == module.INSTALL


def test_command_prints_a_table_or_json_lines(small, tmp_path, monkeypatch, cli):
    """`probe` on a run whose model and measuring are played: what was asked is kept in the list."""
    run, calls = prepare(make_config(), small, tmp_path), []
    mmlu = Capability("mmlu", "acc", 14042, 0.65, 0.625, 0.004, 0.005)
    played = (mmlu, Capability("hellaswag", "acc_norm", 1, 1.0, 1.0, None, None))
    monkeypatch.setattr("adapop.runs.execute.load_model", lambda run: None)
    monkeypatch.setattr(module, "capability", lambda model, tasks, limit: calls.append((tasks, limit)) or played)
    arguments = ("probe", run.folder, "--capability", "mmlu, hellaswag")
    table = [line.split() for line in cli(*arguments, "--limit", 5).out.splitlines() if "  " in line]
    assert calls == [(["mmlu", "hellaswag"], 5)]
    assert table[0] == ["task", "metric", "questions", "original", "unlearned", "difference", "paper"]
    assert table[1] == ["mmlu", "acc", "14,042", "0.650", "±", "0.004", "0.625", "±", "0.005", "-0.025", "–", "→", "–"]
    assert table[2] == ["hellaswag", "acc_norm", "1", "1.000", "1.000", "+0.000", "–", "→", "–"]
    first, second = cli(*arguments, "--json").rows
    assert calls[1:] == [(["mmlu", "hellaswag"], None)]
    assert (first["row"], first["task"], first["original_stderr"]) == ("capability", "mmlu", 0.004)
    assert first["difference"] == pytest.approx(-0.025)
    assert second["unlearned_stderr"] is None


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
    least = scaled.sort()[0][: len(scaled) // 5].mean().item()
    return [loss.item(), loss.item() / len(zlib.compress(text.encode())), -least]


def test_passages_are_scored_as_theirs(fresh):
    model = fresh()
    values = module.membership(model, PASSAGES)
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
    assert module.general(model, GENERAL) == {"accuracy": [float(place == best) for place in range(4)]}


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
    assert module.truthfulness(model, known) == {"mc1": right} and {*right} == {0.0, 1.0}


def test_reasoning_is_right_where_what_it_says_is_the_whole_answer(fresh, monkeypatch):
    model, requests = fresh(), []
    replies = {
        "2 is left, so the answer is (B). And": 1.0, "The answer is the b.": 1.0, "(B)": 1.0,
        "so the answer is (A).": 0.0, "The answer is B, I think.": 0.0, "": 0.0}  # fmt: skip
    for reply, right in replies.items():
        monkeypatch.setattr(
            model, "replies", lambda rows, limit, reply=reply: requests.append((rows, limit)) or [(reply,)]
        )
        assert module.reason(model, TABLES["utility_reason"]) == {"exact match": [right]}
    ((row,), limit) = requests[0]
    assert limit == 256 and model.tokenizer.decode(row.prompt).rstrip().endswith("A:")


def test_fluency_is_the_entropy_of_pairs_and_triples_of_words():
    """By hand: pairs 1 bit, triples of 2/3 and 1/3; two words have one pair, and none has no bits."""
    assert module.entropy("a b a b a") == pytest.approx((2 / 3 * 1 + 4 / 3 * 0.9182958) / 2)
    assert module.entropy("w1 w2 w3 w4 w5") == pytest.approx((2 / 3 * 2 + 4 / 3 * 1.5849625) / 2)
    assert module.entropy("la la la la") == module.entropy("la la") == module.entropy("") == 0


def test_both_models_are_asked_and_a_limit_is_kept(model, fresh, known, server):
    tables = {(RWKU, config, "test"): rows for config, rows in (TABLES | {"utility_truthfulness": known}).items()}
    rows = capability(model, tuple(module.SETS), limit=3, hub=serve(server, tables))
    assert [(row.task, row.metric, row.questions) for row in rows] == [
        ("rwku-general", "accuracy", 3), ("rwku-reason", "exact match", 1), ("rwku-truthfulness", "mc1", 3),
        ("rwku-fluency", "entropy", 2),
        *(("rwku-forget-passages", name, 2) for name in module.MIA_NAMES),
        *(("rwku-retain-passages", name, 1) for name in module.MIA_NAMES)]  # fmt: skip
    by_name = {(row.task, row.metric): row for row in rows}
    truth, loss = by_name["rwku-truthfulness", "mc1"], by_name["rwku-forget-passages", "mia_loss"]
    assert truth.original == pytest.approx(1 / 3) and truth.original_stderr == pytest.approx(1 / 3)
    assert loss.difference and loss.original == pytest.approx(sum(module.membership(fresh(), PASSAGES)["mia_loss"]) / 2)
    assert by_name["rwku-reason", "exact match"].original_stderr is None


def test_a_column_that_is_not_there_is_named(fresh, server):
    hub = serve(server, {(RWKU, "mia_forget", "test"): [{"passage": "x"}]})
    with pytest.raises(NetworkError, match=r"mia_forget/test, has no column 'text'.*'passage'"):
        capability(fresh(), ("rwku-forget-passages",), hub=hub)
