"""The tables of an experiment, made from the rows of its CSV file alone."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from adapop.config.methods import METHODS
from adapop.experiments.plans import TEST
from adapop.experiments.results import INTERNAL, RETAINED, Row
from adapop.facts.fact import FACT_GROUPS, TIERS
from adapop.probes.intervals import Summary, paired, summary
from adapop.probes.prompts import REWORDED
from adapop.report import published
from adapop.report.table import Table
from adapop.report.tables import METRICS

BEFORE_NOTE = (
    "Before: the sandbox before unlearning, asked each fact's first rewording; holdout was not "
    "measured then."
)
COSINE_NOTE = "Cosine: of MiniLM embeddings of reply and answer, asked as trained."
DIFFERENCE_NOTE = (
    "The arm minus {base}, paired by seed: mean (95% interval of Student's t over the pairs, none "
    "for one pair). An interval on one side of 0 is a difference that these seeds support; there "
    "is no correction for multiple comparisons. A seed counts only if both runs were completed."
)
GUESS_NOTE = (
    "Of the facts to forget, asked in other words: recall of the greedy reply; top 2: the share "
    "whose right answer is the first guess, or the likeliest of the relation's other answers, "
    "so that asking for another answer would reveal it; and its mean rank among the relation's "
    "answers, 1 is the likeliest."
)
CONTROLLER_NOTE = (
    "Drift is relative to the controller's reference loss. α of the last epoch is the value used "
    "in that epoch."
)
COST_NOTE = (
    "Wall-clock seconds of a run that did not fail, on one core, measurements included; the first "
    "run of a process also asks the original model. MB: the largest memory of its process so far."
)
PUBLISHED_NOTE = (
    "The paper: {setting}, {PAPER}; another model, other facts, other training, one rate for all. "
    "Its “retain” is the set that was trained on; it has no holdout."
)
LEVELS_NOTE = (
    "By score, four times the number of exposures: rarest first. Mean ± standard deviation over "
    "seeds."
)
EPOCHS_NOTE = (
    "Each fact's first rewording. Mean ± standard deviation over seeds; epoch 0 is the original "
    "model."
)
ORACLE_NOTE = (
    "The oracle is the same model pretrained without the facts to forget. Share of these facts, "
    "asked in other words, whose answer gets the probability that the oracle gives to answers it "
    "never read, or less (over-forgotten), or more (under-forgotten); KL from the oracle, "
    "asked as trained; and log₁₀ of TOFU's forget quality, 0 where the models cannot be told "
    "apart. At its nearest: after the epoch with the largest share as if never learnt. Only runs "
    "with this measurement."
)

Rows = Mapping[str, Sequence[Row]]  # an arm's rows by its title, in the order of the plan
Value = Callable[[Row], float | None]
column: Callable[[str], Value] = itemgetter
SETTING = "Llama DUET"
NEAR = column("oracle_as_never_all")  # share of facts as if never learnt


def tested(name: str) -> Value:
    """Reads a cell for the test split; in rows without splits, for all questions."""
    return lambda row: row[name] if row[f"{TEST}_{name}"] is None else row[f"{TEST}_{name}"]


def minus(one: Value, other: Value) -> Value:
    """Reads the difference of two values; None where one of them is missing."""

    def value(row: Row) -> float | None:
        ends = one(row), other(row)
        return None if None in ends else ends[0] - ends[1]

    return value


def before(tier: str) -> Value:
    """Reads recall of a tier of the facts to forget before unlearning, by their first rewording."""
    return lambda row: next(iter(row[f"epochs_reworded_{tier}"]), None)


_BY_TIER = {tier: tested(f"forget_{REWORDED}_{tier}") for tier in TIERS}
OUTCOMES: dict[str, Value] = {
    **_BY_TIER,
    "all": tested(f"forget_{REWORDED}_all"),
    "gap": minus(_BY_TIER["popular"], _BY_TIER["rare"]),  # above 0 more popular facts are left
    "retain": column("retain_direct_all"),
    "holdout": tested("holdout_direct_all"),
    "holdout, reworded": tested("holdout_reworded_all"),
    "neighbours": column("neighbours_direct_all"),
    "utility": tested("utility"),
    "forget, cosine": column("forget_cosine"),
    "retain, cosine": column("retain_cosine"),
}
# Columns that only some sets or runs have.
OPTIONAL = ("neighbours", "forget, cosine", "retain, cosine")
BEFORE: dict[str, Value] = {f"before, {tier}": before(tier) for tier in TIERS}
DIFFERENCES: dict[str, Value] = {
    "forget": OUTCOMES["all"],
    **{name: OUTCOMES[name] for name in ("rare", "popular", "gap", "retain", "holdout")},
}
# Metrics from inside the model, and how the names of their columns end.
INSIDE = {metric.title: metric.field for metric in METRICS if metric.field in INTERNAL}
READING = (
    "Recall of the facts to forget asked in other words, rare / middle / popular and all (lower is "
    "better), and the gap between popular and rare; then, asked as trained, of facts that were "
    "trained on to be kept and of facts never trained on, of the latter in other words too, and of "
    "other questions (higher is better). Mean ± standard deviation over seeds."
)
NEIGHBOURS_READING = "Neighbours: other facts about the forgotten subjects, never trained on."


def by_seed(rows: Sequence[Row], value: Value) -> dict[int, float]:
    """A value of each completed run, by seed."""
    values = {row["seed"]: value(row) for row in rows if not row["failed"]}
    return {seed: number for seed, number in values.items() if number is not None}


def over(rows: Sequence[Row], value: Value) -> Summary | None:
    """Summary of a value over seeds; None if no run has it."""
    return summary(list(by_seed(rows, value).values()))


def measured(arms: Rows, values: Mapping[str, Value]) -> dict[str, Value]:
    """`values` without those of `OPTIONAL` that no run has."""
    there = {name for name in OPTIONAL if any(over(rows, OUTCOMES[name]) for rows in arms.values())}
    return {name: value for name, value in values.items() if name not in OPTIONAL or name in there}


def world_table(arms: Rows) -> Table:
    """`outcome_table`, with what each sandbox knew of the facts to forget before unlearning."""
    return outcome_table(arms, {**BEFORE, **OUTCOMES}, f"{READING} {BEFORE_NOTE}")


def outcome_table(arms: Rows, values: Mapping[str, Value] = OUTCOMES, note: str = READING) -> Table:
    """What was forgotten in each tier, and what it cost, a row per arm."""
    values = measured(arms, values)
    note += f" {NEIGHBOURS_READING}" * ("neighbours" in values)
    note += f" {COSINE_NOTE}" * ("forget, cosine" in values)
    return mean_table("Outcome", arms, values, note, rated=True)


def difference_table(arms: Rows, base: str) -> Table | None:
    """Each arm minus the one titled `base`, paired by seed; None if the base has no rows."""
    if base not in arms:
        return None
    rows = []
    for title, runs in arms.items():
        if title != base:
            pairs = [paired_by_seed(runs, arms[base], value) for value in DIFFERENCES.values()]
            count = max((pair.seeds for pair in pairs if pair), default=0)
            seeds = {row["seed"] for row in (*runs, *arms[base])}
            cells = ("" if pair is None else pair.interval for pair in pairs)
            rows.append((title, *cells, f"{count} of {len(seeds)}"))
    head = ("", *DIFFERENCES, "pairs")
    return Table(f"Difference from {base}", head, tuple(rows), DIFFERENCE_NOTE.format(base=base))


def paired_by_seed(runs: Sequence[Row], base: Sequence[Row], value: Value) -> Summary | None:
    """A value of runs minus that of a base, paired by seed; None without a pair."""
    return paired(by_seed(runs, value), by_seed(base, value))


def mean_table(
    title: str, arms: Rows, values: Mapping[str, Value], note: str, rated: bool = False
) -> Table:
    """Means with standard deviations over seeds, a row per arm. rated: with its learning rates."""
    rows = []
    for arm, runs in arms.items():
        cells = [rates_of(runs)] * rated + [text(over(runs, value)) for value in values.values()]
        rows.append((arm, *cells, counted(runs)))
    return Table(title, ("", *["rate"] * rated, *values, "seeds"), tuple(rows), note)


def guess_table(arms: Rows) -> Table | None:
    """Greedy recall, top 2 and rank by tier, on the test split; None if no row has them."""
    values = {
        f"{what}, {tier}": column(f"{TEST}_forget_{name}_{tier}")
        for what, name in (("greedy", REWORDED), ("top 2", "top2"), ("rank", "rank"))
        for tier in TIERS
    }
    there = {title: runs for title, runs in arms.items() if over(runs, values["top 2, rare"])}
    return mean_table("The second guess", there, values, GUESS_NOTE) if there else None


def internal_table(arms: Rows) -> Table:
    """The metrics from inside the model, asked as trained."""
    values = {}
    for group in ("forget", "holdout"):
        for name, metric in INSIDE.items():
            values[f"{name}, {group}"] = column(f"{group}_all_{metric}")
    note = "Against the original model; Δ log p in nats an answer, KL in nats a token."
    return mean_table("Inside the model", arms, values, note)


def controller_table(arms: Rows) -> Table:
    """Arms with a controller: in how many finished runs λ (PDU: μ) moved, drift and α."""
    rows = []
    for title, runs in arms.items():
        steered = [row for row in runs if '"controller": "fixed"' not in row["config"]]
        finished = [row for row in steered if not row["failed"]]
        if steered:
            moved = sum(len(set(row["lam"])) > 1 for row in finished)
            last = summary([row["alpha"][-2] for row in finished])
            drift = summary([max(row["drift"]) for row in finished])
            cells = (text(drift), text(last), counted(steered))
            rows.append((title, f"{moved} of {len(finished)}", *cells))
    head = ("", "runs in which it moved", "largest drift", "α of the last epoch", "seeds")
    return Table("The controller", head, tuple(rows), CONTROLLER_NOTE)


def cost_table(arms: Rows) -> Table:
    """Seconds and memory of a run, measurements included, and failures with their reasons."""
    rows = []
    for title, runs in arms.items():
        reasons = "; ".join(sorted({row["failed"] for row in runs if row["failed"]}))
        mean, peak = over(runs, column("seconds")), max(row["peak_mb"] for row in runs)
        seconds = f"{mean.mean:.0f}" if mean else ""
        rows.append((title, seconds, f"{peak:.0f}", counted(runs), reasons))
    head = ("", "seconds", "MB", "seeds", "failed because")
    return Table("Cost", head, tuple(rows), COST_NOTE)


def published_table(arms: Rows) -> Table:
    """Our recall beside the paper's, a row per method of the paper."""
    papers = {row.our_name: row for row in published.recalls(SETTING)}
    reworded, rows = published.paraphrased("Llama"), []
    for method, about in METHODS.items():
        runs = arms.get(about.title)
        if not runs or method not in papers:
            continue
        paper = papers[method]
        tiers = reworded.get(paper.method)
        means = [over(runs, column(place)) for place in ("forget_direct_all", "retain_direct_all")]
        rare, popular = (over(runs, OUTCOMES[tier]) for tier in ("rare", "popular"))
        cells = (
            text(over(runs, OUTCOMES["holdout"])),
            f"{text(rare)} / {text(popular)}",
            f"{paper.forget:.3f}",
            f"{paper.retain:.3f}",
            f"{tiers['rare']:.3f} / {tiers['popular']:.3f}" if tiers else "not given",
        )
        rows.append((about.title, *map(text, means), *cells, counted(runs)))
    head = (
        "", "forget", "retain", "holdout", "reworded, rare / popular", "forget (paper)",
        "retain (paper)", "reworded, rare / popular (paper)", "seeds",
    )  # fmt: skip
    note = PUBLISHED_NOTE.format(setting=SETTING, PAPER=published.PAPER)
    return Table("Beside the paper", head, tuple(rows), note)


def along(rows: Sequence[Row], name: str) -> list[Summary]:
    """Summaries over seeds of a list column, one per position, up to the shortest list. Failed
    runs, and runs without the column, are left out."""
    lists = [row[name] for row in rows if row[name] and not row["failed"]]
    return [summary(list(values)) for values in zip(*lists)]


def level_table(arms: Rows) -> Table:
    """Recall of the facts to forget asked in other words, a column per score."""
    levels = next((row["levels"] for rows in arms.values() for row in rows if row["levels"]), [])
    empty = ("",) * len(levels)  # for an arm all of whose runs failed
    rows = []
    for title, runs in arms.items():
        means = tuple(map(text, along(runs, "levels_reworded")))
        rows.append((title, *(means or empty), counted(runs)))
    head = ("", *(f"{level:g}" for level in levels), "seeds")
    return Table("Recall by exposure", head, tuple(rows), LEVELS_NOTE)


def epoch_table(arms: Rows) -> Table:
    """By epoch: recall of rare and popular facts reworded, of retained facts as trained if
    recorded, and λ if it moved."""
    lines = []
    for title, runs in arms.items():
        for tier in ("rare", "popular"):
            lines.append((title, tier, along(runs, f"epochs_reworded_{tier}"), counted(runs)))
        if having := [row for row in runs if row[RETAINED]]:
            lines.append((title, "retained", along(having, RETAINED), counted(having)))
        if any(any(row["lam"]) for row in runs):
            lines.append((title, "λ", along(runs, "lam"), counted(runs)))
    epochs = max((len(means) for _, _, means, _ in lines), default=0)
    rows = [
        (title, of, *map(text, means), *("",) * (epochs - len(means)), seeds)
        for title, of, means, seeds in lines
    ]
    head = ("", "", *(f"epoch {epoch}" for epoch in range(epochs)), "seeds")
    return Table("Recall by epoch", head, tuple(rows), EPOCHS_NOTE)


def nearest(row: Row) -> tuple[int, float] | None:
    """The first epoch with the largest share of facts as if never learnt, and that share."""
    shares = row["oracle_epochs_as_never_all"]
    return (shares.index(max(shares)), max(shares)) if shares else None


def oracle_table(arms: Rows) -> Table | None:
    """Distance of each arm to the oracle, nearest first; None if no row has a distance."""
    values: dict[str, Value] = {
        "as if never learnt": NEAR,
        "at its nearest": lambda row: (nearest(row) or (None, None))[1],
    }
    for name in ("over", "under"):
        for tier in TIERS:
            values[f"{name}-forgotten, {tier}"] = column(f"oracle_{name}_{tier}")
    values |= {f"KL, {group}": column(f"oracle_kl_{group}") for group in FACT_GROUPS}
    values["log₁₀ forget quality"] = column("forget_quality_log10")
    rows = []
    for title in nearest_first(arms):
        own = [row for row in arms[title] if NEAR(row) is not None]
        means = [text(over(own, value)) for value in values.values()]
        ends = {f"{near[0]} of {len(row['lam']) - 1}" for row in own if (near := nearest(row))}
        rows.append((title, *means[:2], ", ".join(sorted(ends)), *means[2:], counted(own)))
    if not rows:
        return None
    first, second, *others = values
    head = ("", first, second, "epoch", *others, "seeds")
    return Table(
        "Compared with a model that never learnt the facts", head, tuple(rows), ORACLE_NOTE
    )


def nearest_first(arms: Rows) -> list[str]:
    """The arms measured against the oracle, nearest first."""
    means = {title: share.mean for title, rows in arms.items() if (share := over(rows, NEAR))}
    return sorted(means, key=means.get, reverse=True)


def text(summary: Summary | None) -> str:
    return "" if summary is None else str(summary)


def rates_of(rows: Sequence[Row]) -> str:
    """The learning rates of runs, as text."""
    return ", ".join(f"{rate:g}" for rate in sorted({row["rate"] for row in rows}))


def counted(rows: Sequence[Row]) -> str:
    """How many runs were completed, as text (see `out_of`)."""
    return out_of(sum(not row["failed"] for row in rows), len(rows))


def out_of(count: int, most: int) -> str:
    """ "3", or "2 of 3" if some are missing."""
    return str(count) if count == most else f"{count} of {most}"
