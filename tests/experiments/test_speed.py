"""`bench speed`: each case in a process of its own, medians over the rounds, a table of ratios. No time is asserted."""

import ast

import pytest

from adapop.experiments.speed import waiting
from adapop.experiments.speed.table import UNMEASURED, _measured, _medians, _shown
from adapop.experiments.speed.throughput import Case

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    return [_measured(Case("sandbox", side, batch=2, warm=0, steps=1, rows=8)) for side in ("baseline", "ours", "one")]


def test_every_case_measures_what_the_table_shows(found, capsys):
    _shown("sandbox", found)
    rows = {line.split("  ")[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    baseline, ours, one = found
    for row, key, other in (
        ("sandbox, training step", "train", ours),
        ("sandbox, scoring", "score", ours),
        ("sandbox, generation", "generate", ours),
        ("sandbox, one row a pass", "train", one),
    ):
        assert f"{other[key] / baseline[key]:.2f}x" in rows[row]
        assert other[key] > 0 < baseline[key]
    assert f"{ours['peak'] / baseline['peak']:.2f}x" in rows["sandbox, peak memory, GB"]
    assert UNMEASURED not in str(rows)


def test_the_sides_take_the_same_steps(found):
    assert {one["batch"] for one in found} == {2}
    assert {round(one["train"] * one["step"]) for one in found} == {round(found[0]["train"] * found[0]["step"])}


def test_a_busy_moment_does_not_decide(found):
    slow = found[1] | {key: found[1][key] / 10 for key in ("train", "score")} | {"peak": 10 * found[1]["peak"]}
    several = _medians([found[1], slow, found[1]])
    assert several == found[1]


@pytest.mark.parametrize("code", [waiting.RUN, waiting.FACTS, waiting.PROBES])
def test_what_is_run_in_a_process_of_its_own_imports_what_there_is(code):
    """It is text to Python, so no linter sees a name in it that has moved."""
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert any((getattr(node, "module", None) or "").startswith("adapop") for node in imports)
    exec("\n".join(map(ast.unparse, imports)), {})
