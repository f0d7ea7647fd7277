"""Algorithm 1 by hand: the numbers in the tables were worked out on paper."""

from dataclasses import replace
from itertools import accumulate

import pytest

from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.training.controller import Controller, Drift, DualAscent, FixedAlpha, PrimalDual, controller_of
from raised import raised


def trace(controller: Controller, losses: list[float]) -> list[Drift]:
    return list(accumulate(losses[1:], controller.update, initial=controller.start(losses[0])))


def test_last_row_is_the_whole_state():
    assert DualAscent() == DualAscent(0.5, dual_step=0.1, tolerance=0.1, lam_max=5, floor=1e-8, reference="epoch_1")
    # So a run resumed from a stored row goes on as if it had never stopped.
    losses = [2, 1, 1.5, 3, 0.9]
    straight = trace(DualAscent(), losses)
    stored = replace(straight[2])
    assert DualAscent().update(stored, losses[3]) == straight[3]


@pytest.mark.parametrize(("reference", "table"), [
    (
        "epoch_1",
        # loss, R_ref, drift, lambda
        [(2.0, None, 0, 0),
         (1.0, 1.0, 0, 0),          # the first epoch is the reference: max(0, 0 + 0.1 (0 - 0.1)) = 0
         (1.5, 1.0, 0.5, 0.04),     # 0 + 0.1 (0.5 - 0.1)
         (3.0, 1.0, 2.0, 0.23),     # 0.04 + 0.1 (2 - 0.1)
         (0.9, 1.0, 0, 0.22),       # downward drift counts as none: 0.23 + 0.1 (0 - 0.1)
         (1.1, 1.0, 0.1, 0.22)],    # exactly at the tolerance: unchanged
    ),
    (
        "start",
        [(2.0, 2.0, 0, 0),
         (3.0, 2.0, 0.5, 0.04),     # the damage of the first epoch is seen
         (5.0, 2.0, 1.5, 0.18),     # 0.04 + 0.1 (1.5 - 0.1)
         (1.0, 2.0, 0, 0.17),
         (2.2, 2.0, 0.1, 0.17),
         (2.0, 2.0, 0, 0.16)])])  # fmt: skip
@pytest.mark.parametrize("alpha0", [0.5, 1.0])
def test_algorithm_1_by_hand(reference, table, alpha0):
    rows = trace(DualAscent(alpha0, reference=reference), [loss for loss, *_ in table])
    for epoch, (row, (loss, ref, drift, lam)) in enumerate(zip(rows, table, strict=True)):
        assert (row.epoch, row.retain_loss, row.reference, row.start_loss) == (epoch, loss, ref, table[0][0])
        assert (row.drift, row.lam, row.alpha) == pytest.approx((drift, lam, alpha0 + lam))


def test_drift_and_what_it_is_measured_against():
    losses = [0.1, 2.6, 1.6, 1.2]
    assert {row.lam for row in trace(DualAscent(), losses)} == {0}
    assert trace(DualAscent(reference="start"), losses)[-1].lam > 0
    raised(ConfigError, "epoch_1", DualAscent, reference="epoch_2")
    for controller, constant in ((FixedAlpha(0.0), (0, 0)), (FixedAlpha(1.0), (1, 0)), (PrimalDual(0.5), (0.5, 0.5))):
        rows = trace(controller, [2, 1, 3, 5])
        assert {(row.alpha, row.lam, row.reference) for row in rows} == {(*constant, 2)}
        assert [row.drift for row in rows] == pytest.approx([0, 0, 0.5, 1.5])
    for controller in (DualAscent(), DualAscent(reference="start"), FixedAlpha()):
        assert [row.drift_from_start for row in trace(controller, [2, 3, 1, 5])] == pytest.approx([0, 0.5, 0, 1.5])


def test_lambda_and_drift_stay_within_their_bounds():
    rows = trace(DualAscent(dual_step=10), [1, 1, 3, 50, 1, 1, 1, 1, 1, 1])
    assert [row.lam for row in rows] == pytest.approx([0, 0, 5, 5, 4, 3, 2, 1, 0, 0])
    assert max(row.alpha for row in rows) == 5.5 and {row.lam for row in trace(DualAscent(), [3, 2, 1, 1, 1])} == {0}
    assert trace(DualAscent(), [0, 0, 1e-8])[-1].drift == pytest.approx(1)
    # As released: lambda goes on to 5, alpha stops at 1, and comes down only once lambda has.
    rows = trace(DualAscent(dual_step=10, alpha_max=1.0), [1, 1, 1.2, 1.2, 1, 1])
    free = trace(DualAscent(dual_step=10), [1, 1, 1.2, 1.2, 1, 1])
    assert [row.lam for row in rows] == [row.lam for row in free]
    assert [row.alpha for row in rows] == [min(1.0, row.alpha) for row in free] and max(row.alpha for row in free) > 1.5
    for floor, drift in ((1e-8, 200), (0.5, 0.4)):  # a tiny reference does not divide
        assert trace(DualAscent(floor=floor), [0.001, 0.001, 0.201])[-1].drift == pytest.approx(drift)


def test_the_dual_moves_as_far_as_all_micro_batches_would():
    once, often = (PrimalDual(alpha0=1.0, dual_step=1.0, warmup=0, dual_rows=rows) for rows in (0, 1))
    start = once.start(0.1)
    assert once.stepped(start, 0.4, 32).alpha == once.stepped(start, 0.4, 32).lam == pytest.approx(1.1)
    warm = PrimalDual(warmup=1)
    assert warm.stepped(start, 9.0, 32) is start and warm.stepped(warm.update(start, 0.1), 9.0, 32).alpha > 1
    for rows in (32, 10):  # a set, or a last step, of few rows has as many micro-batches
        assert often.stepped(start, 0.4, rows).alpha == pytest.approx(1 + rows * 0.1)
    assert often.stepped(start, 0.1, 32).alpha == 0
    config = make_config("pdu", model="some/model")
    assert controller_of(config).dual_rows == 1, "one row a micro-batch"
    assert controller_of(make_config("pdu", "authors", model="some/model")).dual_rows == 8
