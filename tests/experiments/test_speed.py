"""`bench speed`: each case in a process of its own, medians over the rounds, a table of ratios. No time is asserted."""

import ast
from statistics import fmean

import pytest
import torch

from adapop.config.presets import make_config
from adapop.experiments.speed import baseline, waiting
from adapop.experiments.speed.table import UNMEASURED, _measured, _medians, _rows
from adapop.experiments.speed.throughput import BASELINES, TINY, Case, random_facts, random_model
from adapop.facts.world import sandbox_facts
from adapop.model import packing
from adapop.model.loading import adapted_model, load_tokenizer
from adapop.model.tokens import collate, common, encode_facts
from adapop.probes.recovery.choice import applicable

slow = pytest.mark.slow


@slow
def test_every_case_measures_what_the_table_shows(capsys):
    sides, run = (*BASELINES, "ours", "one"), {"ours": (8, 8, 1)}
    measurements = [
        _measured(Case("sandbox", side, batch=8, warm=0, steps=1, rows=8, run=run.get(side))) for side in sides
    ]
    _rows("sandbox", measurements)
    rows = {line.split("  ")[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    *bases, ours, one = measurements
    for row, key, other in (
        ("sandbox, training step", "train", ours), ("sandbox, scoring", "score", ours),
        ("sandbox, generation", "generate", ours), ("sandbox, one row a pass", "train", one)):  # fmt: skip
        for base in bases:
            assert f"{other[key] / base[key]:.2f}" in rows[row] and other[key] > 0 < base[key]
    assert all(f"{ours['peak'] / base['peak']:.2f}" in rows["sandbox, peak memory, GB"] for base in bases)
    assert f"{ours['whole_run']:,.0f}" in rows["sandbox, a whole run, s"] and UNMEASURED not in str(rows)
    assert {one["batch"] for one in measurements} == {8}
    assert len({round(one["train"] * one["step"]) for one in measurements}) == 1, "the sides take the same steps"
    slow = ours | {key: ours[key] / 10 for key in ("train", "score")} | {"peak": 10 * ours["peak"]}
    assert _medians([ours, slow, ours]) == ours, "a busy moment does not decide"


def test_random_models_and_rows_are_as_real_ones():
    torch.backends.cuda.enable_cudnn_sdp(True)
    random_model(TINY, make_config("npo", model="a/model", precision="float32"), "cpu")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    tokenizer = load_tokenizer(make_config())
    forget, retain = (encode_facts(tokenizer, random_facts(200, seed)) for seed in (1, 2))
    rows = [*forget, *retain]
    assert 68 <= fmean(row.length for row in rows) <= 80
    assert common(*(edge(row.prompt for row in rows) for edge in (min, max))) >= 50
    for pass_ in (rows[:8], rows[:32], [*forget[:32], *retain[:32]]):
        read = collate(pass_, 0, packing.packed_lines(pass_)).ids.numel()
        assert read < sum(row.length for row in pass_) - 45 * (len(pass_) - 3)


@slow
@pytest.mark.parametrize("code", [waiting.RUN, waiting.FACTS, waiting.PROBES, waiting.RECOVERY])
def test_what_is_run_in_a_process_of_its_own_imports_what_there_is(code):
    """It is text to Python, so no linter sees a name in it that has moved."""
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert any((getattr(node, "module", None) or "").startswith("adapop") for node in imports)
    exec("\n".join(map(ast.unparse, imports)), {})


@slow
def test_probes_and_the_distance_to_the_oracle_are_as_cheap_as_promised(tmp_path):
    """In seconds of computing on one core, which do not depend on what else the machine does."""
    on_one = "import torch\ntorch.set_num_threads(1)\n"
    printed = [
        waiting.printed(on_one + code.replace("perf_counter", "process_time"), str(tmp_path)).splitlines()
        for code in (waiting.RUN, waiting.RECOVERY)
    ]
    *_, whole, compared, _ = map(float, printed[0][-1].split())
    assert 0 < compared <= 0.15 * (whole - compared)
    seconds = dict(line.split() for line in printed[1])
    assert seconds.keys() == {*applicable(sandbox_facts())} and max(map(float, seconds.values())) <= 10, seconds


@slow
def test_the_baselines_compute_what_we_do():
    """Rows at once or one by one, padded or not: the same loss, so the same work."""
    model = adapted_model(make_config())
    rows = encode_facts(model.tokenizer, sandbox_facts().forget[:9])
    scored = model.score(model.batch(rows))
    ours = scored.per_row(scored.nll)
    for at_once in BASELINES.values():
        assert torch.allclose(torch.tensor(baseline.scores(model, rows, at_once)), ours, atol=1e-4)
