"""The figures of our recorded rows that the docs show, and what each says: a picture carries it, so that a test can
tell a picture of other rows."""

from adapop.config.methods import METHODS
from adapop.experiments import pictures, survival, survival_real, survival_tables, tuned
from adapop.experiments.metrics import marks
from adapop.paths import ASSETS
from adapop.report.real import AT
from bench_rows import by_arm

RECORDED = ASSETS / "recorded"
PAPER = (
    "AdaPop", "AdaPop, scores shuffled", "AdaPop, scores inverted", "AdaPop, α fixed", "WGA", "NPO", "SatImp", "AltPO",
)  # fmt: skip
OVER_RATES = (
    "AdaPop", "AdaPop, scores shuffled", "WGA", "NPO", "SatImp", "AltPO", "TPO", "Redirect (ours)",
)  # fmt: skip
TUNED = (
    "Redirect (ours)", "AltPO", "AdaPop, β = 1", "WGA", "AdaPop, α fixed", "TPO", "CE-U", "NPO", "SatImp", "AdaPop",
)  # fmt: skip
SEEDS = 3  # of the runs at other rates: 0, 1, 2


def _levels():
    first, again = by_arm(RECORDED / "main.csv"), by_arm(RECORDED / "again/main.csv")
    return pictures.levels({arm: first[arm] + again[arm] for arm in PAPER})


def _rates():
    arms = by_arm(RECORDED / "main.csv") | by_arm(RECORDED / "rates.csv") | by_arm(RECORDED / "equal.csv")
    some = {}
    for arm in OVER_RATES:
        # a method's usual rate is in two files
        by_rate = {rows[0]["rate"]: title for title, rows in arms.items() if title.partition(AT)[0] == arm}
        for title in by_rate.values():
            some[title] = [row for row in arms[title] if row["seed"] < SEEDS]
    return pictures.rates_by_tier(some)


def _oracle():
    """The methods, without controls, that were measured against the oracle, by the papers' settings and tuned."""
    arms = by_arm(RECORDED / "main.csv") | by_arm(RECORDED / "tuned.csv", ", tuned")
    methods = {method.title for method in METHODS.values()}
    return pictures.nearness({title: rows for title, rows in arms.items() if title.removesuffix(", tuned") in methods})


def _tuned():
    arms = by_arm(RECORDED / "tuned.csv")
    return pictures.guesses({arm: arms[arm] for arm in TUNED})


def _front():
    (draw,) = tuned.experiment(tuned.THREE)[1].figures
    return draw(tuned.experiment(tuned.THREE)[1].recorded())


FIGURES = {
    "levels": _levels,
    "rates": _rates,
    "epochs": lambda: pictures.epochs(by_arm(RECORDED / "epochs-e35871e2.csv")),
    "tuned": _tuned,
    "tuned-front": _front,
    "oracle": _oracle,
    "metrics": lambda: marks(by_arm(RECORDED / "metrics.csv")),
    "survival": lambda: survival_tables.curves(survival.rows(RECORDED / survival.FILE)),
    "survival-real": lambda: survival_tables.curves(
        survival.rows(RECORDED / survival_real.FILE), survival_real.frame_of
    ),
}
DRAWN = "drawn"  # the name of the text that a picture carries


def drawn(figure) -> dict[str, list]:
    """All words and all numbers of a figure, in the order in which it is drawn."""
    words = [note.text for note in figure.layout.annotations]
    words += [axis.title.text for axis in (*figure.select_xaxes(), *figure.select_yaxes())]
    numbers = []
    for trace in figure.data:
        words += [trace.name, *(trace.text if trace.text is not None else ())]
        numbers += [trace.x, trace.y]
        for error in (getattr(trace, "error_x", None), getattr(trace, "error_y", None)):
            numbers += [error.array, error.arrayminus] if error is not None and error.array is not None else []
    return {"words": words, "numbers": [[round(float(one), 4) for one in line] for line in numbers]}
