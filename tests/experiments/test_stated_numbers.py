"""Every number of findings.md and studies.md, of the README's *What we found*, and of real.md's summary and its
places, recomputed from rows.

So are the numbers of the figures: each picture carries what it draws.

`numbers.txt` has a line for each sentence or row of a table with results: the page, and its text with an expression
in place of each result. Expressions are of the frames and functions below. `settings.txt`: text of these
two pages whose numbers are settings, and no results."""

import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import recorded_figures
from adapop.config.methods import METHODS
from adapop.config.presets import FORGOTTEN, RETAIN_KEPT, make_config
from adapop.experiments import frontiers, signals_compared, survival, survival_real, survival_tables
from adapop.experiments.tuned import LIMITS, PRICE
from adapop.facts.catalog import load_facts
from adapop.paths import ROOT
from adapop.popularity.beta import BetaMap
from adapop.probes.intervals import summary
from recorded_figures import FIGURES

RECORDED, HERE = ROOT / "assets/recorded", ROOT / "tests/experiments"
TIERS = ("rare", "middle", "popular")
AT = re.compile(r" at [\d.e-]+$")  # ends the title of an arm at another rate
# pages of which every number is such a result or a setting
WHOLE = ("assets/docs/findings.md", "assets/docs/studies.md")
CLAIMS = [line.split(" @ ", 1) for line in (HERE / "numbers.txt").read_text("utf-8").splitlines() if " @ " in line]
SETTINGS = (HERE / "settings.txt").read_text("utf-8").splitlines()
EXPRESSION = r"\{([a-z_0-9]+\(.*?\))\}"
TITLES = {method.title for name, method in METHODS.items() if name != "adapop"}
FITTED = ("cox(", "places_", "premise(", "rule(", "endpoints(", "halves(", "null_range(")  # a minute


def slow(claim: str) -> bool:
    return any(name in claim for name in FITTED)


@cache
def rows(*files: str) -> pd.DataFrame:
    """The rows of files, a line a run, with the measures of the page; on the test split where a row has it."""
    frame = pd.concat([pd.read_csv(RECORDED / f"{file}.csv") for file in files]).drop_duplicates("key")
    made = {"seed": frame["seed"], "arm": frame["arm"], "rate": frame["rate"], "left": frame["forget_direct_all"]}
    for tier in ("all", *TIERS):
        made[tier] = frame[f"test_forget_reworded_{tier}"].fillna(frame[f"forget_reworded_{tier}"])
        made[f"top 2, {tier}"] = frame[f"test_forget_top2_{tier}"]
    for name in ("holdout_direct_all", "utility"):
        made[name.split("_")[0]] = frame[f"test_{name}"].fillna(frame[name])
    attacks = [name for name in frame if name.startswith("attack ") and "choice" not in name]
    made |= {"retain": frame["retain_direct_all"], "attacked": frame[attacks].max(axis=1)}
    made |= {name: frame[name] for name in ("sampled", "sampled_control")}
    for side, popular, rare in (("under", 1, -1), ("over", -1, 1)) if "oracle_under_rare" in frame else ():
        made[f"{side}, gap"] = popular * frame[f"oracle_{side}_popular"] + rare * frame[f"oracle_{side}_rare"]
        made["as never learnt"] = frame["oracle_as_never_all"]
    frame = pd.DataFrame(made)
    frame["worst"], frame["gap"] = frame[[*TIERS]].max(axis=1), frame["popular"] - frame["rare"]
    frame["top 2, gap"] = frame["top 2, popular"] - frame["top 2, rare"]
    frame["spread"] = frame["worst"] - frame[[*TIERS]].min(axis=1)
    lacks = [(limit - frame[name]).clip(lower=0) for name, limit in LIMITS.items()]
    frame["J"] = frame["worst"] + PRICE * sum(lacks)
    return frame


@cache
def real(file: str) -> pd.DataFrame:
    """The reported runs of `bench real`: recall after unlearning over that before."""
    frame = pd.read_csv(RECORDED / f"{file}.csv")
    frame = frame[~frame["arm"].str.contains(" at ") & frame["failed"].isna()].copy()
    cells = [dict(json.loads(shares)) for shares in frame["shares"]]
    places = {tier: f"forget/reworded/{tier}" for tier in ("all", *TIERS)}
    places |= {group: f"{group}/direct/all" for group in ("retain", "holdout")}
    for name, place in places.items():
        frame[name] = [cell[place][2] / cell[place][1] for cell in cells]
    for tier in TIERS:
        frame[f"facts, {tier}"] = [cell[f"forget/direct/{tier}"][0] for cell in cells]
    return frame.assign(gap=frame["popular"] - frame["rare"])


MAIN, SIX, WORLDS = (lambda: rows("main")), (lambda: rows("main", "again/main")), (lambda: rows("worlds"))
TEN = lambda: rows("epochs-e35871e2")  # noqa: E731 - ten epochs
TUNED, PEOPLE, ANEW = (lambda: rows("tuned")), (lambda: rows("tuned-people")), (lambda: rows("tuned-people-anew"))
HALF, EQUAL = (lambda: rows("tuned-half-spread")), (lambda: rows("main", "rates", "equal"))
BENT = "AdaPop, a -20%, b +0%", "AdaPop, a +20%, b +0%", "AdaPop, a +0%, b -20%"  # all but b +20%
GEMMA, SMOLLM2 = (lambda: real("real-gemma3-270m-text-examples")), (lambda: real("real-smollm2-text-examples"))


def PARTS() -> pd.DataFrame:
    return rows("main", "ablation", "coefficients")


def PROXIES() -> pd.DataFrame:
    return rows("main", "proxies")


def of(frame, arm: str, measure: str) -> pd.Series:
    """A measure by seed."""
    own = frame()[frame()["arm"] == arm].set_index("seed")[measure].dropna()
    assert len(own), (arm, measure)
    return own


def short(value: float, sign: str = "") -> str:
    """As the pages write a share: .59, −.27."""
    text = f"{abs(value):.2f}"
    if text == "0.00":
        return ".00"
    return ("−" if value < 0 else sign) + text.removeprefix("0")


def bounded(mean: float, low: float, high: float) -> str:
    return f"{short(mean)} ({short(low)} to {short(high)})"


def interval(values: pd.Series) -> str:
    one = summary(list(values))
    return bounded(one.mean, one.low, one.high)


def mean(frame, arm, measure):
    return short(of(frame, arm, measure).mean())


def ci(frame, arm, measure):
    return interval(of(frame, arm, measure))


def diff(frame, arm, base, measure):
    """One arm minus another, paired by seed, with its interval."""
    return interval((of(frame, arm, measure) - of(frame, base, measure)).dropna())


def line(frame, arm, *measures):
    """Cells of a table: mean ± standard deviation."""
    each = [of(frame, arm, measure) for measure in measures]
    return " | ".join(f"{one.mean():.2f} ± {one.std():.2f}" for one in each)


def bracketed(frame, arm, *measures):
    """Cells of a table: mean and interval."""
    return " | ".join(interval(of(frame, arm, measure)) for measure in measures)


def where(arm: str, left: float, measure: str) -> pd.Series:
    """A measure of an arm by seed where a share of the trained questions is left, between neighbouring rates."""
    frame = EQUAL()
    return signals_compared.crossed(frame[frame["arm"].str.replace(AT, "", regex=True) == arm], left, measure)


def at_left(arm, left, measure):
    return short(where(arm, left, measure).mean())


def diff_at(arm, base, left, measure):
    return interval((where(arm, left, measure) - where(base, left, measure)).dropna())


@cache
def fitted() -> dict[str, dict[str, str]]:
    """The cells of the tables of `bench survival`, by row and column."""
    cells: dict[str, dict[str, str]] = {}
    for table in survival_tables.tables(survival.rows(RECORDED / survival.FILE)):
        for row in table.rows:
            cells.setdefault(row[0], {}).update({f"{table.title}: {k}": v for k, v in zip(table.head[1:], row[1:])})
    return cells


def cox(row, column):
    """A cell of those tables; column: how its title and the table's begin or end."""
    (cell,) = {value for name, value in fitted()[row].items() if name.endswith(f": {column}")} or {"missing"}
    return cell


@cache
def of_places() -> dict[tuple[str, str], dict[str, str]]:
    """The cells of the tables of `bench survival --model`, by model with method and stand-in ("" for none)."""
    lives, stand_ins, relations = survival_real.tables(survival.rows(RECORDED / survival_real.FILE))
    cells = {(row[0], ""): dict(zip(lives.head, row)) for row in lives.rows}
    cells |= {(row[0], row[1]): dict(zip(stand_ins.head, row)) for row in stand_ins.rows}
    return cells | {(row[0], row[1]): dict(zip(relations.head, row)) for row in relations.rows}


def places_cox(arm, column, stand_in=survival_real.POPULATION):
    """A cell of those tables."""
    return of_places()[arm, stand_in][column]


def places_known(arm):
    """How many facts were pressed, over the relations."""
    return str(sum(map(int, of_places()[arm, ""]["facts: country, state, capital"].split(", "))))


def places_by(arm, column="population given both confidences", relation=survival_real.ALL_BUT_STATES):
    """A cell of the table by relation."""
    return of_places()[arm, relation][column]


def places_at_once(model):
    """How many facts of the relation of which nearly all are lost at the first look, under every method."""
    cells = [one for (arm, name), one in of_places().items() if arm.startswith(model) and name == "state"]
    assert len(cells) == len(survival_real.RATES)
    assert all(int(one["lost at the first look"].rstrip("%")) > 85 for one in cells)
    (count,) = {one["facts"] for one in cells}
    return count


def premise(model):
    """What the rule says of a model. Written for what reads `places_cox(`."""
    arms = [
        cells
        for (arm, name), cells in of_places().items()
        if arm.startswith(model) and name == survival_real.POPULATION
    ]
    ends = [re.findall(r"[-+][\d.]+", cells["given both confidences"])[1:] for cells in arms]
    assert len(ends) == len(survival_real.RATES)
    below, above = all(float(high) < 0 for _, high in ends), all(float(low) > 0 for low, _ in ends)
    return "holds" if below else "is contradicted" if above else "is not shown"


@cache
def signals() -> pd.DataFrame:
    return signals_compared.frame_of(signals_compared.rows(RECORDED / signals_compared.FILE))


def signal(name, *measures):
    """Cells of the table of `bench signals`, where half of the trained questions is left."""
    read = (signals_compared.at_left(signals(), name, signals_compared.DECIDES, one) for one in measures)
    return " | ".join(map(interval, read))


def signal_diff(name, base, measure):
    """One signal minus another, paired by seed, there."""
    own, other = (signals_compared.at_left(signals(), one, signals_compared.DECIDES, measure) for one in (name, base))
    return interval((own - other).dropna())


def wider(name):
    """The absolute gap under a signal minus that under exposures, there; its interval must tell which is wider."""
    nearer = signals_compared.nearer(signals(), name, signals_compared.DECIDES)
    assert summary(list(-nearer)).low > 0, name
    return interval(-nearer)


def way(name):
    """How far a signal leads from none to exposures, in percent."""
    return signals_compared.share(signals(), name).rstrip("%")


def keep_less():
    """What exposures keep less of the holdout than one β for all; every other signal must, too."""
    differences = {}
    for name in set(signals()["signal"]) - {"none"}:
        own, one = (signals_compared.at_left(signals(), x, signals_compared.DECIDES, "holdout") for x in (name, "none"))
        differences[name] = own - one
        assert summary(list((own - one).dropna())).high < 0, name
    return interval(differences["exposures"].dropna())


@cache
def frontier_runs() -> frontiers.Runs:
    return frontiers.runs_of(frontiers.rows(RECORDED / frontiers.FILE))


@cache
def frontier_at(amount: float) -> tuple[np.ndarray, np.ndarray]:
    """Where so much of the trained questions is left: the measures, and their draws."""
    return frontier_runs().at(amount), frontiers.drawn(frontier_runs(), amount)


def frontier(arm, *measures, amount=frontiers.DECIDES):
    """Cells of the table of `bench frontiers`; empty where no run comes down to the amount."""
    values, draws = frontier_at(amount)
    own, cells = list(frontiers.ARMS).index(arm), []
    for place in map(frontiers.MEASURES.index, measures):
        told = frontiers.interval(values[own, :, place], draws[:, own, :, place])
        cells.append(bounded(*told) if told else "")
    return " | ".join(cells)


def frontier_facts(tier):
    return f"{frontier_runs().counted[frontiers.MEASURES.index(tier)].sum():.0f}"


def frontier_original(*measures):
    """The same cells of the original, of what it answers as trained."""
    runs = frontier_runs()
    rates = runs.values[0, 0, 0] @ runs.counted.T / runs.counted.sum(1)
    own = dict(zip(frontiers.MEASURES, rates))
    own["gap"] = own["popular"] - own["rare"]
    return " | ".join(short(own[measure]) for measure in measures)


def frontier_diff(other, measure, amount=frontiers.DECIDES, arm="adapop"):
    """An arm minus another, where so much is left."""
    both = (frontiers.difference(one, other, measure, arm) for one in frontier_at(amount))
    return bounded(*frontiers.interval(*both))


def frontier_of_seed(seed, other, measure):
    """AdaPop minus another arm in one seed, where half is left."""
    by_seed = frontiers.difference(frontier_at(frontiers.DECIDES)[0], other, measure)
    return short(by_seed[frontier_runs().seeds.index(seed)])


def frontier_reworded(arm, other):
    """How much more of all facts one arm leaves in other words than another, where half is left."""
    counts = [frontier_runs().counted[frontiers.MEASURES.index(tier)].sum() for tier in TIERS]
    found = frontier_at(frontiers.DECIDES)[0][:, :, [frontiers.MEASURES.index(tier) for tier in TIERS]].mean(1)
    names = list(frontiers.ARMS)
    return short((found[names.index(arm)] - found[names.index(other)]) @ counts / sum(counts))


def frontier_left(arm, seed):
    """The shares of the trained questions that one seed leaves, by rate."""
    runs = frontier_runs()
    own = runs.values[list(frontiers.ARMS).index(arm), runs.seeds.index(seed), 1:] @ runs.counted[0]
    return ", ".join(f"{share:.3f}".removeprefix("0") for share in own / runs.counted[0].sum())


NUMERALS = "no one two three four five six seven eight".split()


def seeds_run() -> list[int]:
    """The seeds of the study that are whole: all worlds and methods."""
    keys = {one.key for one in survival.rows(RECORDED / survival.FILE)}
    needed = len(survival.WORLDS) * len(survival.RATES)
    return [seed for seed in survival.SEEDS if sum(key[2] == seed for key in keys) == needed]


def nseeds():
    return NUMERALS[len(seeds_run())]


def seedspan():
    return f"{seeds_run()[0]} to {seeds_run()[-1]}"


def arms(name):
    """How many arms a figure of arms shows, a panel each."""
    return NUMERALS[len(FIGURES[name]().layout.annotations)]


def facts(frame, tier):
    """How many facts of a tier a real model knew."""
    return str(frame()[f"facts, {tier}"].iloc[0])


def times(frame, arm, base):
    """One arm's learning rate over another's."""
    return f"{of(frame, arm, 'rate').iloc[0] / of(frame, base, 'rate').iloc[0]:.1f}"


def rate(frame, arm):
    """An arm's learning rate, as the pages write it."""
    (value,) = set(of(frame, arm, "rate"))
    return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-")


def curve():
    """The least and the greatest β of AdaPop's preset `tuned` on the sandbox."""
    betas = [make_config("adapop", "tuned").beta(fact.score) for fact in load_facts("sandbox").forget]
    return f"{min(betas):.1f} to {max(betas):.1f}"


def bent():
    """The least and the greatest gap under a curve of which one number is changed by a fifth, b greater left out; of
    these changes only those of the rare anchor upwards are shown by their intervals."""
    arms = sorted(set(PARTS()["arm"]))
    some = [arm for arm in arms if " anchor " in arm or arm in BENT]
    assert len(some) == 11
    changes = {arm: summary(list((of(PARTS, arm, "gap") - of(PARTS, "AdaPop", "gap")).dropna())) for arm in some}
    shown = [arm for arm, change in changes.items() if not change.low <= 0 <= change.high]
    assert shown == ["AdaPop, score of the rare anchor +20%", "AdaPop, β of the rare anchor +20%"], shown
    gaps = sorted(of(PARTS, arm, "gap").mean() for arm in some)
    return f"{short(gaps[0])} and {short(gaps[-1])},"


def gentle_curve():
    """The least and the greatest β of the arm with WGA's settings and scores."""
    frame = pd.read_csv(RECORDED / "tuned.csv")
    configs = frame.loc[frame["arm"].str.contains("gentle curve"), "config"].map(json.loads)
    betas = [BetaMap(**configs.iloc[0]["beta"])(fact.score) for fact in load_facts("sandbox").forget]
    return f"{min(betas):.1f} to {max(betas):.1f}"


def attacks():
    """How many attacks were made on the tuned models, multiple choice left out."""
    frame = pd.read_csv(RECORDED / "tuned.csv")
    made = [name for name in frame if name.startswith("attack ") and "choice" not in name and frame[name].notna().any()]
    return NUMERALS[len(made)]


def unable():
    """How many methods have no rate at which both demands of the rule hold, at any of the seeds 0 to 2, of how many
    beside AdaPop."""
    frame = rows("main", "rates")
    frame = frame[(frame["seed"] < 3) & frame["arm"].str.replace(AT, "", regex=True).isin(TITLES)]
    assert set(frame.groupby("arm").size()) == {3}
    met = (frame["left"] <= FORGOTTEN) & (frame["retain"] >= RETAIN_KEPT)
    each = met.groupby(frame["arm"].str.replace(AT, "", regex=True)).any()
    return f"{(~each).sum()} of {len(each)}"


def of_worlds(arm, measure):
    """The mean of a measure over seeds and the three worlds of `bench tuned`."""
    return short(np.mean([of(frame, arm, measure).mean() for frame in (TUNED, HALF, PEOPLE)]))


def intervals(arms, columns):
    """(low, high) of cells of the study's tables."""
    cells = (cox(arm, column) for arm in arms for column in columns)
    return [tuple(map(float, re.findall(r"[-+][\d.]+", cell)[1:])) for cell in cells]


KNOWN, NULL = ([f"{w}: {m}" for w in of_them for m in ("WGA", "NPO", "Gradient difference")] for of_them in (
    ("sandbox", "people"), ("no-spread",)))  # fmt: skip
GIVEN = ("exposures given confidence", "given confidence, within answer (people: relation)")


def rule():
    """Whether the pre-registered rule's conditions are met by the rows. Written for what reads `cox(`."""
    below = all(high < 0 for _, high in intervals(KNOWN, GIVEN))
    held = below and all(low <= 0 <= high for low, high in intervals(NULL, GIVEN))
    return "every condition" if held else "not every condition"


def null_range():
    """The least and the greatest coefficient of the null world. Written for what reads `cox(`."""
    cells = [cox(arm, column).split(" ")[0] for arm in NULL for column in GIVEN]
    return f"{min(cells, key=float)} to {max(cells, key=float)}"


def endpoints():
    """How many endpoints tell what the first does: below 0 where exposures differ, and not where they do not."""
    agree = [
        all(high < 0 for _, high in intervals(KNOWN, [name])) and all(a <= 0 <= b for a, b in intervals(NULL, [name]))
        for name in survival_tables.ENDPOINTS.values()
    ]
    return "All" if all(agree) else str(sum(agree))


def halves():
    """How many times as much exposure tells in the earlier half of the losses, where both lie below 0."""
    each = [[cox(arm, name) for name in ("earlier half of losses", "later half")] for arm in KNOWN]
    numbers = [[[float(one) for one in re.findall(r"[-+][\d.]+", cell)] for cell in pair] for pair in each]
    assert all(high < 0 for pair in numbers for _, _, high in pair)
    ratios = [early[0] / late[0] for early, late in numbers]
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


def recorded_list(files, arm, column):
    """The mean over seeds of a column of lists."""
    frame = pd.concat([pd.read_csv(RECORDED / f"{file}.csv") for file in files])
    frame = frame[frame["arm"] == arm].drop_duplicates("seed")
    return np.mean([json.loads(cell) for cell in frame[column]], axis=0)


def over_rates(arm, tier):
    frame = EQUAL()
    own = frame[(frame["arm"].str.replace(AT, "", regex=True) == arm) & (frame["seed"] < recorded_figures.SEEDS)]
    return own.groupby("rate")[tier].mean()


def held(file, facts_of):
    """The share of facts held after each look, over seeds, by world, method and tier."""
    runs = pd.read_json(RECORDED / file, lines=True)
    for world, own in runs.groupby("world", sort=False):
        tiers = np.array([fact.tier for fact in facts_of(world).forget])
        for _, seeds in own.groupby("method", sort=False):
            lost = np.array([[np.inf if one is None else one for one in run["reworded"]] for run in seeds["lost"]])
            for tier in TIERS:
                some = lost[:, tiers == tier].ravel()
                some = some[some > 0]  # held before
                yield [(some > look).mean() for look in range(seeds.iloc[0]["epochs"] * seeds.iloc[0]["looks"] + 1)]


# the means that each figure of findings.md shows, line by line, from the rows and not by the code that draws it
SHOWN = {
    "levels": lambda: [
        recorded_list(["main", "again/main"], arm, f"levels_{form}")
        for arm in recorded_figures.PAPER for form in ("reworded", "direct")
    ],
    "rates": lambda: [over_rates(arm, tier) for arm in recorded_figures.OVER_RATES for tier in TIERS],
    "epochs": lambda: [
        recorded_list(["epochs-e35871e2"], arm, column)
        for arm in ("AdaPop", "WGA", "NPO")
        for column in (*(f"epochs_reworded_{tier}" for tier in TIERS), "epochs_retain_direct_all")
    ],
    "tuned": lambda: [
        [of(TUNED, arm, f"{guess}{tier}").mean() for arm in recorded_figures.TUNED]
        for guess in ("", "top 2, ") for tier in TIERS
    ],
    "survival": lambda: [*held(survival.FILE, survival.facts_of)],
    "survival-real": lambda: [*held(survival_real.FILE, lambda _: survival_real.facts_of())],
}  # fmt: skip


def page(name: str) -> str:
    return " ".join((ROOT / name).read_text("utf-8").split())


def rendered(text: str) -> str:
    return re.sub(EXPRESSION, lambda match: str(eval(match[1], globals())), text)


def unresulted(text: str) -> str:
    """A claim without its expressions: what else has a number in it is a setting, or a result that nothing gives."""
    return re.sub(EXPRESSION, "", text)


@pytest.mark.parametrize(("name", "text"), [
    pytest.param(name, text, marks=pytest.mark.slow if slow(text) else ()) for name, text in CLAIMS
])  # fmt: skip
def test_a_number_is_what_its_expression_gives(name, text):
    for package in ("statsmodels", "lifelines") if slow(text) else ():
        pytest.importorskip(package)
    assert rendered(text) in page(name)


@pytest.mark.parametrize("name", WHOLE)
def test_every_number_of_the_page_is_one_of_these_or_a_setting(name):
    text = page(name)
    for own, claim in CLAIMS:
        if own == name and slow(claim):  # without fitting: any text in place of its results
            known = r"[^|]{1,40}?".join(map(re.escape, re.split(EXPRESSION, claim)[::2]))
            found = re.search(known, text)
            text = text.replace(found[0], unresulted(claim), 1)
        elif own == name:
            text = text.replace(rendered(claim), unresulted(claim), 1)
    for setting in SETTINGS:
        text = text.replace(setting, " ")
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", text)
    assert not re.findall(r".{0,30}\d.{0,20}", text)


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_shows_the_rows_that_are_recorded(name):
    with Image.open(RECORDED / f"{name}.png") as picture:
        carried = json.loads(picture.text[recorded_figures.DRAWN])
    now = recorded_figures.drawn(FIGURES[name]())
    assert carried["words"] == now["words"]
    assert list(map(len, carried["numbers"])) == list(map(len, now["numbers"]))
    for old, new in zip(carried["numbers"], now["numbers"]):
        assert old == pytest.approx(new, abs=2e-3), "make it again: python tests/pictures.py " + name


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_figure_of_the_page_shows_is_what_the_rows_give(name):
    traces = [trace for trace in FIGURES[name]().data if trace.name]
    expected = SHOWN[name]()
    assert len(traces) == len(expected)
    for trace, values in zip(traces, expected):
        along = trace.x if name == "tuned" else trace.y
        assert list(along) == pytest.approx(list(values), abs=1e-6), trace.name


def test_every_figure_of_rows_that_a_page_shows_is_tested():
    shown = {name: re.findall(r"\]\(\.\./recorded/([\w-]+)\.png\)", page(name)) for name in WHOLE}
    assert set(shown["assets/docs/findings.md"]) == {*SHOWN}
    assert {one for names in shown.values() for one in names} == {*FIGURES}
    assert {path.stem for path in RECORDED.glob("*.png")} == {*FIGURES}
