"""`bench speed`: each case in a process of its own, medians over the rounds, a table of ratios."""

import time
from statistics import fmean

import pytest
import torch

from adapop.config.presets import make_config
from adapop.experiments.speed import (
    BASELINES,
    NUMBERS,
    OURS,
    REAL,
    SHAPE,
    Case,
    measured,
    random_facts,
    random_model,
    table,
    token_nll,
)
from adapop.facts.world import sandbox_facts
from adapop.model import packing
from adapop.model.loading import adapted_model, load_tokenizer
from adapop.model.tokens import collate, common, encode_facts
from adapop.probes.judge import gives_away
from adapop.probes.recovery.choice import RECOVERY, recover
from adapop.progress import Progress
from adapop.runs.examples import example
from adapop.runs.execute import load_model

TINY = {**SHAPE, "vocab_size": 2000, "hidden_size": 64, "intermediate_size": 128}
TINY |= {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
slow = pytest.mark.slow


@slow
def test_every_case_measures_what_the_table_shows():
    sides = [measured(Case("sandbox", side, batch=8, warm=0, steps=1, rows=8)) for side in (*BASELINES, *OURS)]
    shown = table(sides)
    *bases, ours, _ = sides
    assert (
        {*shown.index} == {NUMBERS[name] for name in ours if name in NUMBERS} == {*NUMBERS.values()} - {NUMBERS["run"]}
    )
    for name in ("train", "peak"):
        for base in bases:
            assert shown.loc[NUMBERS[name], f"ours / {base['side']}"] == ours[name] / base[name] and ours[name] > 0
    assert len({round(one["train"] * one["step"]) for one in sides}) == 1, "the sides take the same steps"
    slower = ours | {key: ours[key] / 10 for key in ("train", "score")} | {"peak": 10 * ours["peak"]}
    assert table([*sides, slower, ours]).equals(shown), "a busy moment does not decide"


def test_a_real_model_is_measured_on_facts_of_its_own():
    case = Case(REAL, "ours", batch=2)
    assert case.config.model == REAL and not {*case.facts(2, 1)} & {*case.facts(2, 2)}
    assert len(case.facts(16, 1)) == len(case.facts(16, 2)) == 16


def test_five_thousand_replies_are_judged_in_half_a_second():
    """Of one core, and twice of it on a machine at work: a reply is read for the kind of value that its answer has."""
    kinds = (
        ("Marie Curie", "It was {} who did it, I think, as number {} says."),
        ("1979-05-14", "Nell was born on May {1}, 1979, and not later."),
        ("900-12-3125", "The account number is 900-12-{1:04}."), ("$82,500", "A salary of {1} dollars a year."),
    )  # fmt: skip
    names = ("Curie", "Pierre Curie", "Marie Curie", "Meitner")
    chosen = ((kinds[number % 4], names[number // 4 % 4], number) for number in range(5_000))
    replies = [(answer, said.format(name, number)) for (answer, said), name, number in chosen]
    gives_away("Who?", ("a warm day",), "days of warmth")  # loads the stemmer, once
    begun = time.process_time()
    for answer, reply in replies:
        gives_away("What is it of Nell?", (answer,), reply)
    assert time.process_time() - begun < 1


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
def test_recovery_probes_are_as_cheap_as_promised():
    """In seconds of computing on one core, which do not depend on what else the machine does."""
    run = example("wga")
    model = load_model(run)
    for name in RECOVERY:
        begun = time.process_time()
        recover(name, model, run.facts, run.reply_tokens, Progress(), run.config.model)
        assert time.process_time() - begun <= 10, name


@slow
def test_the_baselines_compute_what_we_do():
    """Rows at once or one by one, padded or not: the same loss, so the same work."""
    model = adapted_model(make_config())
    rows = encode_facts(model.tokenizer, sandbox_facts().forget[:9])
    scored = model.score(model.batch(rows))
    ours = scored.per_row(scored.nll)
    model.network.eval()
    for size in BASELINES.values():
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        with torch.no_grad():
            theirs = torch.cat([token_nll(model.network, part, model.device).sum(1) for part in parts])
        assert torch.allclose(theirs, ours, atol=1e-4)
