"""Recorded rows against others: which cells are outside, by hand, and which differences turn."""

import pytest

from adapop.experiments import reproduction
from adapop.probes.intervals import summary
from bench_rows import SEEN, recalls, row


def test_cells_outside_by_hand():
    # recorded rare: 0.50 ± 0.10 over 3, mean's interval 0.25 to 0.75; of one further seed 0.5 ± 4.303 * 0.1 * 1.1547
    again = {"AdaPop": [row(3, **recalls(0.8, 0.3, 0.8))], "WGA": [row(3, "wga", **recalls(0.1, 0.9, 0.9))]}
    table = reproduction.cell_table(SEEN, again)
    assert ("AdaPop", "rare", "0.50 (0.25 to 0.75)", "0.80 (1)", "yes") in table.rows
    far = reproduction.cell_table(SEEN, {"AdaPop": [row(3, **recalls(0.5, 0.4, 0.2))]})
    assert far.rows == (("AdaPop", "holdout", "0.80 (0.55 to 1.05)", "0.20 (1)", "no"),)
    assert "7 of 8 cells lie inside" in far.note and "7 of 8 are as expected" in far.note
    assert summary([0.4, 0.6, 0.5]).expected(1) == pytest.approx((0.5 - 0.49687, 0.5 + 0.49687), abs=1e-4)
    same = reproduction.cell_table(SEEN, SEEN)
    assert same.rows == () and "16 of 16 cells lie inside" in same.note


def test_differences_that_turned():
    gap = {"AdaPop": (0.5, 0.5), "WGA": (0.1, 0.9)}
    recorded = {name: [row(seed, **recalls(*ends, 0.8)) for seed in range(3)] for name, ends in gap.items()}
    turned = {"AdaPop": recorded["AdaPop"], "WGA": [row(seed, **recalls(0.6, 0.9, 0.8)) for seed in range(3)]}
    assert reproduction.claim_table(recorded, recorded, "AdaPop").rows == ()
    (line,) = reproduction.claim_table(recorded, turned, "AdaPop").rows
    assert line[:2] == ("WGA", "rare") and line[3].startswith("+0.10")
