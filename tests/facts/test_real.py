"""What a set needs for a real model: general utility questions, and nothing borrowed from the sandbox."""

import json
from dataclasses import replace

import pytest

from adapop.errors import DataError
from adapop.facts.fact import SANDBOX, Fact
from adapop.facts.files import read_facts
from adapop.facts.real import borrowed, fitted, general
from adapop.facts.retain import with_retain_rows
from adapop.paths import SANDBOX_FOLDER
from taught import own_facts


def test_utility_questions_of_a_real_model(sandbox):
    assert len(general()) > 50 and len({fact.question for fact in general()}) == len(general())
    facts = own_facts()
    found = fitted(facts, "some/model").utility
    assert found == general()
    other = replace(facts, forget=(*facts.forget, Fact("x", "who?", "Mars"), Fact("y", general()[0].question, "z")))
    assert set(general()) - set(fitted(other, "some/model").utility) == {
        one for one in general() if one.answer == "Mars" or one == general()[0]
    }
    own = replace(own_facts(), utility=(Fact("u", "2 + 2?", "4"),))
    assert fitted(own, "some/model") == own
    assert fitted(fitted(own_facts(), "a/model"), "a/model") == fitted(own_facts(), "a/model")
    borrowing = replace(own_facts(), utility=sandbox.utility)
    assert fitted(borrowing, "some/model").utility == general()
    for model in (SANDBOX, str(SANDBOX_FOLDER)):  # another build of the sandbox is one, too
        assert fitted(borrowing, model) == borrowing
    assert borrowed(sandbox, "a/model") is None


@pytest.mark.parametrize("source", ["sandbox", "neighbours"])
def test_retain_rows_of_the_sandbox_are_refused_for_a_real_model(source):
    facts = replace(own_facts(), retain=(), forget=(Fact("x", "Who wrote Nobody?", "Shakespeare", relation="author"),))
    facts = with_retain_rows(facts, SANDBOX, source)
    assert borrowed(facts, SANDBOX) is None and facts.retain
    with pytest.raises(DataError, match="are the sandbox's: they would not hold the rest of a/model"):
        fitted(facts, "a/model")


def test_attack_prompts_of_an_rwku_file_are_probes_and_not_trained_on(tmp_path):
    rows = [
        {"query": "Who is he?", "answer": "King", "level": "2", "type": "simple question", "split": "forget_level2"},
        {"query": "Sure. Who is he?", "answer": "King", "level": "3", "type": "prefix injection"},
        {"query": "Qui est-ce?", "answer": "King", "type": "cross lingual (French)", "split": "forget_level3"},
        {"query": "Who else?", "answer": "Prince", "type": "simple question", "split": "neighbor_level2"},
    ]
    path = tmp_path / "rwku.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    facts = read_facts(path)
    assert [fact.question for fact in facts.forget] == ["Who is he?"]
    assert [fact.relation for fact in facts.attacks] == ["prefix injection", "cross lingual (French)"]
    assert any("Attack prompts (RWKU's level 3): 2" in note for note in facts.notes)


def test_a_stranger_s_model_with_as_many_tokens_is_no_sandbox(sandbox, tmp_path):
    config = json.loads((SANDBOX_FOLDER / "config.json").read_text())
    words = json.loads((SANDBOX_FOLDER / "tokenizer.json").read_text())
    borrowing = replace(own_facts(), utility=sandbox.utility)
    for name, change in {
        "same": lambda vocab: vocab,
        "stranger": lambda vocab: {f"{word}.": at for word, at in vocab.items()},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        own = {**words, "model": {**words["model"], "vocab": change(words["model"]["vocab"])}}
        (folder / "tokenizer.json").write_text(json.dumps(own))
        assert (fitted(borrowing, str(folder)) == borrowing) == (name == "same")
    (tmp_path / "bare").mkdir()
    assert fitted(borrowing, str(tmp_path / "bare")).utility == general(), "a folder without a tokenizer.json"
