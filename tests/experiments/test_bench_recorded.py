"""The rows that ship: runs of today's plans, every method among them, and their tables are those beside them."""

import re
from dataclasses import replace

import pytest

from adapop.config.methods import METHODS
from adapop.config.presets import TUNED, make_config
from adapop.config.run import RunConfig
from adapop.experiments import plans
from adapop.experiments.results import Results
from adapop.experiments.run import EXPERIMENTS, Place, write
from adapop.experiments.spaces import SEARCHES
from adapop.experiments.tuned import THREE, experiment
from adapop.experiments.tuning import trials_file, trials_of
from adapop.experiments.winners import OURS
from adapop.paths import ROOT
from adapop.report import recorded

RECORDED = ROOT / "assets" / "recorded"
AGAIN = RECORDED / "again"  # main on other seeds, compared with the first
TRIALS = RECORDED / "tuned-trials"
ANEW, ANEW_NAMES = "tuned-people-anew", ("redirect", "altpo", "wga", "adapop")  # searched there, as they were named
WORLD_OF = {name: world for world, name in plans.TUNED_FILES.items()} | {f"tuned-{THREE}": THREE, ANEW: "people"}
QUICK = ("main", "tuned-three")  # the latter changes with each of three files of rows
TABLES = [path for path in sorted(RECORDED.rglob("*.md")) if path.stem in (*EXPERIMENTS, *WORLD_OF)]


def place_of(path, folder):
    world = WORLD_OF.get(path.stem)
    own_rows = path.with_suffix(".csv")  # tables of other experiments' rows have none
    rows = Results(own_rows if own_rows.exists() else path.with_name("tuned.csv" if world else "main.csv")).rows()
    own = experiment(TRIALS, 40, tuple(SEARCHES), world) if world else None
    if path.stem == ANEW:
        own = experiment(RECORDED / f"{ANEW}-trials", 40, ANEW_NAMES, world, anew=True)
    return Place(path.stem, folder, tuple(sorted({row["seed"] for row in rows.values()})), own=own)


@pytest.mark.parametrize("path", sorted(RECORDED.rglob("*.csv")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_row_is_a_run_of_its_plan(path):
    rows = Results(path).rows()
    items = place_of(path, path.parent).items(rows)
    assert rows and rows.keys() <= {item.key for item in items}, "settings changed; is a new one to be in `item.SINCE`?"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow) for path in TABLES],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_tables_are_those_of_the_rows(path, tmp_path):
    for rows in path.parent.glob("*.csv"):
        (tmp_path / rows.name).write_bytes(rows.read_bytes())
    made = write(place_of(path, tmp_path), RECORDED if path.parent == AGAIN else None)
    assert path.read_text(encoding="utf-8") == made + "\n"


@pytest.mark.parametrize("folder", [RECORDED, AGAIN])
def test_every_method_is_recorded(folder):
    arms = Results(folder / "main.csv").by_arm()
    methods = {method.title for method in METHODS.values()}
    assert methods <= arms.keys() and len(methods) == 17
    assert len({len(rows) for rows in arms.values()}) == 1, "as many seeds of every arm"


@pytest.mark.parametrize(
    "page, tables",
    [("README.md", 1), ("assets/docs/tuned.md", 11), ("assets/docs/beyond.md", 6), ("assets/recorded/README.md", 9)],
)
def test_a_page_quotes_the_recorded_tables(page, tables):
    """Each of its tables with means is of one recorded: some of its rows and columns, and their cells as they are."""
    known = [table for path in TABLES if path.parent == RECORDED for table in tables_of(path)]
    quoted = [table for table in tables_of(ROOT / page) if len(re.findall(r" ± | to [-+\d]", str(table[0]))) > 2]
    assert len(quoted) >= tables
    for table in quoted:
        assert any(is_part(table, one) for one in known), table


@pytest.mark.parametrize(
    "line, name",
    [
        ("first world", "tuned"),
        ("half-spread", "tuned-half-spread"),
        ("people", "tuned-people"),
        ("mean of the three", "tuned-three"),
    ],
)
def test_what_is_said_of_the_aim_is_what_was_reached(line, name):
    (said,) = aims_of(ROOT / "assets/docs/beyond.md", line)
    (found,) = aims_of(RECORDED / f"{name}.md", OURS)
    assert said | {"": OURS} == found


def aims_of(path, name):
    return [row for table in tables_of(path) for row in table if row[""] == name and "reached" in row]


def tables_of(path):
    """Of each table its rows, each of them cells by column; the first column, of names, has no head."""
    for block in re.findall(r"^\| +\|.*\n(?:\|.*\n)+", path.read_text(encoding="utf-8"), re.M):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield [dict(zip(head, row, strict=True)) for row in rows]


def is_part(table, one):
    return all(any(row.items() <= other.items() for other in one) for row in table)


def test_every_search_is_recorded_and_none_saw_the_seeds_of_its_winner():
    assert {path.stem for path in TRIALS.glob("*.jsonl")} == set(SEARCHES)
    assert {len(trials_of(trials_file(TRIALS, name))) for name in SEARCHES} == {40}
    for name in (*plans.TUNED_FILES.values(), ANEW):
        for arm, rows in Results(RECORDED / f"{name}.csv").by_arm().items():
            assert sorted(row["seed"] for row in rows) == [1, 2, 3, 4, 5], (name, arm)


@pytest.mark.parametrize("one", recorded.tuned(), ids=lambda one: one.method)
def test_a_preset_called_tuned_is_what_was_recorded(one):
    """Where the search found nothing better than to do next to nothing, there is no such preset."""
    if not METHODS[one.method].tuned:
        assert one.recall("forget", "reworded", "all").mean > 0.95
        return
    wanted = make_config(one.method, TUNED, frames=0, system="")  # what is recorded of a run, and the sandbox's prompt
    for row in one.rows:
        assert replace(RunConfig.from_json(row["config"]), preset=TUNED, seed=wanted.seed) == wanted


@pytest.mark.parametrize("name", ANEW_NAMES)
def test_a_preset_called_tuned_is_what_was_recorded_in_the_second_world_too(name):
    wanted = make_config(name, TUNED, "people", facts="people", frames=0, system="")
    arm = SEARCHES[name].arm.title
    rows = [row for row in Results(RECORDED / f"{ANEW}.csv").rows().values() if row["arm"] == arm]
    assert len(rows) == 5
    for row in rows:
        assert replace(RunConfig.from_json(row["config"]), preset=TUNED, seed=wanted.seed) == wanted
