import re
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from adapop.config.methods import METHODS
from adapop.config.presets import TUNED, make_config
from adapop.config.run import RunConfig
from adapop.experiments import real, signals_compared, tuned
from adapop.experiments.results import Results
from adapop.experiments.run import EXPERIMENTS, Place, as_markdown, placed
from adapop.facts.catalog import load_facts
from adapop.facts.world import sandbox_facts
from adapop.paths import ROOT
from adapop.popularity.beta import BetaMap
from adapop.report.recorded import TUNED_ARMS
from bench_rows import by_arm

RECORDED = ROOT / "assets" / "recorded"
TUNED_ROWS = by_arm(RECORDED / "tuned.csv")
AGAIN = RECORDED / "again"  # main on other seeds, compared with the first
EQUAL = RECORDED / "equal.csv"  # rows of what is no longer made
SIGNALS = RECORDED / signals_compared.FILE  # its rows have a form of their own
PLACES = RECORDED / "places.csv"  # facts, and no rows
THREE, ANEW = f"tuned-{tuned.THREE}", tuned.ANEW
ANEW_NAMES = ("redirect", "altpo", "wga", "adapop")  # searched among the people
WORLD_OF = {name: world for world, name in tuned.FILES.items()} | {THREE: tuned.THREE, ANEW: "people"}
# on the sandbox with other settings: as many epochs as in the paper's figure, rates beyond the grid
MORE = {
    "epochs-e35871e2": ("epochs", {"epochs": 10}),
    "rates-6093b3cc": ("rates", {"learning_rate": 0.008}),
    "rates-eda25f87": ("rates", {"learning_rate": 0.00035}),
}
MODELS = ("smollm2", "gemma3-270m")
REAL = [path.stem for path in RECORDED.glob("real-*.csv")]
PRINTED = [RECORDED / name for name in (*EXPERIMENTS, *WORLD_OF, *REAL)]  # with rows of their own or of others
# those that the pages tell most of
QUOTED = [RECORDED / name for name in ("main", "worlds", "tuned", "tuned-people", ANEW, THREE)]


def place_of(path):
    """Where an experiment's rows are. path: with or without an ending."""
    folder = path.parent
    if path.stem in REAL:
        return place_of_real(path.stem, folder)
    if path.stem in MORE:
        name, changes = MORE[path.stem]
        seeds = tuple(sorted({row["seed"] for row in Results(path).rows().values()}))
        return placed(Place(name, folder, seeds), sandbox_facts(), "sandbox", changes)
    if path.stem in WORLD_OF:
        name, own = tuned.experiment(WORLD_OF[path.stem], path.stem == ANEW)
        return Place(name, folder, (), own=own)
    own_rows = path.with_suffix(".csv")  # tables of other experiments' rows have none
    rows = Results(own_rows if own_rows.exists() else path.with_name("main.csv")).rows()
    return Place(path.stem, folder, tuple(sorted({row["seed"] for row in rows.values()})))


def place_of_real(name, folder):
    named = {f"real-{model}-{asking}": (model, asking) for model in MODELS for asking in real.ASKINGS}
    model, asking = named[name]
    seeds = tuple(sorted({row["seed"] for row in Results(RECORDED / f"{name}.csv").rows().values()} - {real.CHOSEN_AT}))
    return real.placed(Place("real", folder, seeds), load_facts("cities", model), model, asking, {})


def test_recorded_rows_can_still_be_read_and_name_no_place_of_a_machine():
    for path in RECORDED.rglob("*.csv"):
        assert not re.findall(r'"(?:[A-Z]:)?[/\\][^"]*"', path.read_text(encoding="utf-8")), path.stem
    rows = Results(EQUAL).rows()
    assert len(rows) >= 42 and all(RunConfig.from_json(row["config"]) for row in rows.values())


@pytest.mark.slow
def test_the_page_of_the_real_model_says_what_was_run():
    page = (ROOT / "assets/docs/real.md").read_text(encoding="utf-8")
    assert ("Nothing has been run yet." in page) == (not REAL)
    for name in REAL:
        assert printed(RECORDED / name).split("\n\n")[3] in page, "the table as it is"


@pytest.mark.parametrize("path", [
    pytest.param(path, marks=pytest.mark.slow if path.stem in MORE else ())
    for path in sorted({*RECORDED.rglob("*.csv")} - {EQUAL, SIGNALS, PLACES}) if path.stem not in WORLD_OF
], ids=lambda path: f"{path.parent.name}-{path.stem}")  # fmt: skip
def test_every_row_is_a_run_of_its_plan(path):
    rows = Results(path).rows()
    items = place_of(path).items(rows)
    assert rows and rows.keys() <= {item.key for item in items}, "settings changed; is a new one to be in `item.SINCE`?"


def test_the_comparison_of_signals_has_each_run_of_its_plan_once():
    made = [(row.signal, row.rate, row.seed, row.quick) for row in signals_compared.rows(SIGNALS)]
    planned = product(signals_compared.SIGNALS, signals_compared.RATES, signals_compared.SEEDS, [False])
    assert sorted(made) == sorted(planned)


@cache
def printed(path):
    return as_markdown(place_of(path))


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path in QUOTED else pytest.mark.slow) for path in (*PRINTED, AGAIN / "main")],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_tables_are_printed_and_the_figures_drawn_from_the_rows(path):
    text, place = printed(path), place_of(path)
    arms = place.rows_by_arm()
    count = sum(map(len, arms.values()))
    assert count and re.search(rf"^{count} runs, seeds ", text, re.M)
    assert list(tables_of(text)) and all(draw(arms).data for draw in place.experiment.figures)


def test_the_command_prints_them_and_leaves_nothing_beside_the_rows(cli):
    before = sorted(RECORDED.iterdir())
    assert cli("bench", "main", "--table", "--out", RECORDED).out == printed(RECORDED / "main") + "\n"
    assert sorted(RECORDED.iterdir()) == before


@pytest.mark.parametrize(("folder", "methods"), [(RECORDED, 20), (AGAIN, 17)])
def test_every_method_of_the_comparison_is_recorded(folder, methods):
    arms = by_arm(folder / "main.csv")
    assert len({method.title for method in METHODS.values()} & arms.keys()) == methods
    assert len({len(rows) for rows in arms.values()}) == 1, "as many seeds of every arm"


def tables_of(text):
    """Of each table its rows, each of them cells by column; the first column, of names, has no head."""
    for block in re.findall(r"^\| +\|.*\n(?:\|.*\n)+", text, re.M):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield [dict(zip(head, row, strict=True)) for row in rows]


def test_no_search_saw_the_seeds_of_its_winner():
    for name in (*tuned.FILES.values(), ANEW):
        for arm, rows in by_arm(RECORDED / f"{name}.csv").items():
            assert sorted(row["seed"] for row in rows) == [1, 2, 3, 4, 5], (name, arm)


@pytest.mark.parametrize("file, world, name", [
    *(("tuned", "sandbox", name) for name, method in METHODS.items() if method.tuned or method.title in TUNED_ROWS),
    *((ANEW, "people", name) for name in ANEW_NAMES),
])  # fmt: skip
def test_a_preset_called_tuned_is_what_was_recorded(file, world, name):
    """Where the search found nothing better than to do next to nothing, there is no such preset."""
    arm = TUNED_ARMS.get(name, METHODS[name].title) if file == "tuned" else METHODS[name].title
    rows = (TUNED_ROWS if file == "tuned" else by_arm(RECORDED / f"{file}.csv"))[arm]
    if not METHODS[name].tuned:
        assert min(row["test_forget_reworded_all"] for row in rows) > 0.95
        return
    config = make_config(name, TUNED, world, facts=world, frames=0, system="")
    expected = replace(config, beta=config.beta or BetaMap())  # recorded with the shipped sets' curve
    assert len(rows) == 5
    for row in rows:
        assert replace(RunConfig.from_json(row["config"]), preset=TUNED, seed=expected.seed) == expected


def test_adapops_preset_called_tuned_is_the_better_of_its_two_searches():
    """With α moving, the search found settings that leave most of the worst tier."""
    arms = by_arm(RECORDED / "tuned.csv")
    moving, fixed = ([tuned.score(row) for row in arms[f"AdaPop{of}"]] for of in ("", ", α fixed"))
    assert max(fixed) < min(moving) and make_config("adapop", TUNED).controller == "fixed"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["adapop", "wga", "npo", "satimp", "redirect", "altpo"])
def test_a_model_of_a_package_starts_from_the_rate_that_its_trials_chose(model, name):
    arm = real.ARMS[name].title
    rows = Results(RECORDED / f"real-{model}-text-examples.csv").rows().values()
    trials = [row for row in rows if row["arm"].startswith(f"{arm} at ") and row["seed"] == real.CHOSEN_AT]
    config = make_config(name, model=model)
    chosen = real.chosen_row(sorted(trials, key=lambda row: row["rate"]))
    assert (config.learning_rate, config.alpha0, config.batch) == (chosen["rate"], real.ALPHA0, real.SETTINGS["batch"])
    assert make_config("gd", model=model) == replace(make_config("gd", model="some/model"), model=model)
