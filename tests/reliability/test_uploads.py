import subprocess
import sys

import pytest
from hostile import LARGE_EVERY, case
from hostile.file import TEXTS

from adapop.errors import AdaPopError
from adapop.paths import ROOT
from adapop.ui.api_values import facts_of
from raised import raised

CASES = 2 * LARGE_EVERY
Q, A = {"question": "q"}, {"answer": "a"}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.slow
def test_no_hostile_file_breaks_a_promise():
    command = [sys.executable, "tests/reliability/uploads.py", "--cases", str(CASES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{CASES} files in" in done.stdout and "FAILED" not in done.stdout


def test_a_number_is_always_the_same_file():
    for number in range(0, LARGE_EVERY - 1, 6):
        assert case(number) == case(number)


@pytest.mark.parametrize("row", [
    A | {"question": nested(10**5)}, A | {"question": nested(900)}, A | {"question": 10**5000},
    Q | A | {"score": float("-inf")}, Q | A | {"paraphrases": ["a"] * 10**5}, A | {"question": "q" * 10**6},
    A | {"question": "q\ud800"}, Q | A | {"\udfff": "x"}, Q | {"answer": {1, 2}}, Q | {"answer": b"a"},
    Q | A | {f"k{i}": i for i in range(10**4)}, {1: 2}, {}, [], None, 7,
])  # fmt: skip
def test_rows_of_a_program_are_refused_in_words(row):
    error = raised(AdaPopError, "", facts_of, [{"question": "fine", "answer": "fine"}, row], retain="own")
    assert error.fix
    "".join((str(error), *map(str, getattr(error, "problems", ())))).encode()


def test_odd_text_of_a_program_is_read_as_it_is():
    texts = [text for text in TEXTS if text.strip() and len(text) < 1_900]
    rows = [{"question": f"{place} {text}", "answer": text, "group": "forget"} for place, text in enumerate(texts)]
    facts = facts_of([*rows, {"question": "kept", "answer": "kept", "group": "retain"}])
    assert [fact.answer for fact in facts.forget] == [text.strip() for text in texts]
