"""The rows that ship: runs of today's plans, every method among them, and their tables are those beside them."""

import pytest

from adapop.config.methods import METHODS
from adapop.experiments.results import Results
from adapop.experiments.run import EXPERIMENTS, Place, write
from adapop.paths import ROOT

RECORDED = ROOT / "assets" / "recorded"
AGAIN = RECORDED / "again"  # main on other seeds, compared with the first
TABLES = [path for path in sorted(RECORDED.rglob("*.md")) if path.stem in EXPERIMENTS]


def place_of(path, folder):
    rows = Results(path.with_name("main.csv")).rows()
    return Place(path.stem, folder, tuple(sorted({int(row["seed"]) for row in rows.values()})))


@pytest.mark.parametrize("path", sorted(RECORDED.rglob("*.csv")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_row_is_a_run_of_its_plan(path):
    rows = Results(path).rows()
    items = place_of(path, path.parent).items(rows)
    planned = {item.key for item in items} | {item.earlier.key for item in items if item.earlier}
    assert rows and rows.keys() <= planned, "settings changed; is a new one to be in `item.SINCE`?"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem == "main" else pytest.mark.slow) for path in TABLES],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_tables_are_those_of_the_rows(path, tmp_path):
    for rows in path.parent.glob("*.csv"):
        (tmp_path / rows.name).write_bytes(rows.read_bytes())
    made = write(place_of(path, tmp_path), RECORDED if path.parent == AGAIN else None)
    assert path.read_text(encoding="utf-8") == made + "\n"


@pytest.mark.parametrize("folder", [RECORDED, AGAIN])
def test_every_method_of_the_paper_is_recorded(folder):
    arms = Results(folder / "main.csv").by_arm()
    published = {method.title for name, method in METHODS.items() if name != "redirect"}
    assert published <= arms.keys() and len(published) == 16
    assert len({len(rows) for rows in arms.values()}) == 1, "as many seeds of every arm"
