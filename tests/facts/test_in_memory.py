"""Tables in memory: a DataFrame, a list of dicts, a Dataset give the facts that a file of them gives."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from adapop import load_facts, read_facts
from adapop.errors import AdaPopError, DataError
from adapop.facts import files
from raised import raised

ROWS = [
    {"question": "When was Ada born?", "answer": 1815, "score": 3766, "group": "forget"},
    {"question": "When did Cai write?", "answer": 1999, "score": None, "group": "forget"},
    {"question": "Where is Oslo?", "answer": "Norway", "score": 71.5, "group": "retain"},
    {"question": "Where is Bern?", "answer": "Switzerland", "score": 12, "group": "retain"},
]


def told(facts):
    """Without the ids, by which the held-out facts are drawn: they hold the rows' numbers."""
    groups = facts.forget, (*facts.retain, *facts.holdout)
    return [sorted((fact.question, fact.answer, fact.score, fact.paraphrases) for fact in group) for group in groups]


def forms():
    frame = pd.DataFrame(ROWS)
    whole = pd.DataFrame(ROWS[:2])  # pandas has 3766.0 and nan in its column
    assert whole["score"].dtype == float
    return {
        "list": ROWS,
        "tuple": tuple(ROWS),
        "generator": (row for row in ROWS),
        "DataFrame": frame,
        "indexed": frame.set_index("question"),
        "columns": frame.to_dict("list"),
        "series": {name: frame[name] for name in frame},
        "groups": {"forget": ROWS[:2], "retain": ROWS[2:]},
        "pyarrow": pa.table({name: [str(row[name]) if row[name] else "" for row in ROWS] for name in ROWS[0]}),
    }


@pytest.mark.parametrize("form", forms())
def test_a_table_in_memory_gives_the_facts_of_its_file(form, tmp_path):
    path = tmp_path / "mine.csv"
    pd.DataFrame(ROWS).to_csv(path, index=False)
    facts = load_facts(forms()[form], "./a-model")
    assert told(facts) == told(load_facts(path, "./a-model"))
    assert facts.forget[0].score == 3766 and facts.forget[1].score is None and len(facts.forget) == 2
    assert not facts.problems and facts.holdout


def test_a_dataset_gives_them_too():
    datasets = pytest.importorskip("datasets")
    rows = [row | {"answer": str(row["answer"])} for row in ROWS]
    dataset = datasets.Dataset.from_list(rows)
    assert told(load_facts(dataset, "x")) == told(load_facts(dataset.to_iterable_dataset(), "x"))
    assert told(load_facts(dataset, "x")) == told(load_facts(ROWS, "x"))
    splits = datasets.DatasetDict({"forget": dataset.select([0, 1]), "retain": dataset.select([2, 3])})
    assert told(load_facts(splits, "x")) == told(load_facts(ROWS, "x"))
    assert load_facts(dataset, "x").name == "Dataset"


def test_whole_numbers_beside_an_empty_cell_keep_their_form_and_cells_of_numpy_are_numbers_and_lists():
    frame = pd.DataFrame({"question": ["A?", "B?"], "answer": [1999, None], "score": [1, 2]})
    facts = read_facts(frame)
    assert [fact.answer for fact in facts.forget] == ["1999"]
    assert [(problem.row, problem.column) for problem in facts.problems] == [(2, "answer")]
    row = {"question": "A?", "answer": "b", "score": np.int64(3), "paraphrases": np.array(["C?", "D?"])}
    (fact,) = read_facts([row]).forget
    assert (fact.score, fact.paraphrases) == (3, ("C?", "D?"))
    frame = pd.DataFrame({"question": ["A?"], "answer": [pd.Timestamp("1999-05-01")], "paraphrases": [["C?", "D?"]]})
    (fact,) = read_facts(frame).forget
    assert fact.answer.startswith("1999-05-01") and fact.paraphrases == ("C?", "D?")


def test_columns_retain_rows_and_whole_sets_in_memory():
    frame = pd.DataFrame({"q": ["A?"], "a": ["b"], "fame": [7]})
    facts = load_facts(frame, "x", columns={"question": "q", "answer": "a", "score": "fame"}, retain=ROWS[2:])
    assert facts.forget[0].score == 7 and len(facts.retain) + len(facts.holdout) == 2
    own = replace(read_facts(ROWS[:2]), name="mine")
    assert load_facts(own).retain, "the sandbox's, as its model is the one"


@pytest.mark.parametrize(("source", "message"), [
    (7, "is not a list of objects"), (None, "is not a list of objects"), (["A?", "B?"], "is not a list of objects"),
    ([], "has no rows"), (pd.DataFrame(), "has no rows"), ([{"a": 1}], "question"), ([{(1, 2): 1}], "no table can"),
    (b"bytes", "is not a list of objects"),
])  # fmt: skip
def test_what_is_no_table_is_refused_in_words(source, message):
    error = raised(DataError, message, load_facts, source)
    assert isinstance(error, AdaPopError) and error.fix


def test_no_more_rows_are_taken_than_may_be_read(monkeypatch):
    monkeypatch.setattr(files, "max_facts", lambda: 2)
    taken = []
    rows = (taken.append(row) or row for row in ROWS * 5)
    raised(DataError, "more than 2 rows", load_facts, rows)
    assert len(taken) == 3
