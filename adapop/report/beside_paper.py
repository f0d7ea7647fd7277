"""Compares a finished run with the paper's printed numbers for its model, facts and method."""

from dataclasses import replace
from statistics import fmean

from adapop.config.presets import make_config
from adapop.config.run import SETTINGS, RunConfig
from adapop.facts.benchmarks import benchmark_of
from adapop.facts.fact import FactSet
from adapop.model.catalogue import MODELS, preset_of
from adapop.popularity.beta import BetaMap
from adapop.probes.prompts import CLOZE, ProbeRow
from adapop.report import published
from adapop.report.settings import spoken
from adapop.report.table import Table, deviating
from adapop.report.tables import METRICS
from adapop.runs.run import Run
from adapop.training.events import Measured

PAPER_CODE_NOTE = (
    "The paper's own code averages both losses per example, trains on the end of the turn as well, "
    "and moves rows that do not fill a step into the next epoch; in that code AdaPop's controller "
    "watches a moving mean of retain rows and caps α at 1. This run follows the paper's {follows}."
)

PAPER_ASKS = {"asking": "chat", "answers": "as-given", "unknown": "keep"}
TITLES = {metric.field: metric.title for metric in METRICS}
PAPER_FACTS = {"duet": (964, 500), "rwku": (2879, None)}  # in the paper: to forget, to retain


def beside(run: Run) -> tuple[Table, Table] | None:
    """A finished run beside the paper's numbers for its model, facts and method, as ROUGE-L recall,
    [0, 1], and what differs. None if the paper has no such numbers."""
    config, facts = run.config, run.facts
    setting = setting_of(config, facts)
    before, after = run.measured(before=True), run.measured()
    if setting is None or before is None or after is None:
        return None
    start, *unlearned = published.recalls(setting)
    end = next((row for row in unlearned if row.our_name == config.method), None)
    if end is None:
        return None
    rows = [
        ("forget, before", _recall(start.forget), _our_recall(before, "forget")),
        ("retain, before", _recall(start.retain), _our_recall(before, "retain")),
        ("forget, after", _recall(end.forget, end.forget_sd), _our_recall(after, "forget")),
        ("retain, after", _recall(end.retain, end.retain_sd), _our_recall(after, "retain")),
        ("held-out facts, after", _recall(None), _our_recall(after, "holdout")),
    ]
    if benchmark_of(facts) == "duet":
        reworded = published.paraphrased(setting.split()[0])
        named = {name.lower(): tiers for name, tiers in reworded.items()}
        for tier, recall in named.get(config.method, {}).items():
            recall_text = _our_recall(after, "forget", "reworded", tier)
            rows.append((f"forget, in other words, {tier}", _recall(recall), recall_text))
    printed = published.further(setting, config.method)
    if "attacked" in printed:
        rows.append(("forget, attacked", _recall(printed["attacked"]), _recall(_attacked(run))))
    for group in ("forget", "retain"):
        means = published.further(f"{benchmark_of(facts).upper()} {group}", config.method)
        for measure, value in means.items():
            mean = after.recall(group, name=measure)
            cell = "–" if mean is None else f"{mean:,.4g}"
            rows.append((f"{group}, {TITLES[measure]} (paper: 3 models)", f"{value:,g}", cell))
    title = f"{setting}: ROUGE-L recall, and inside the model"
    return Table(title, ("", published.PAPER, "this run"), tuple(rows)), differences(config, facts)


def _attacked(run: Run) -> float | None:
    """Mean recall, [0, 1], under the benchmark's own attacks; None before they are probed."""
    own = {fact.id for fact in run.facts.attacks}
    rows = [row for row in run.probes() or () if isinstance(row, ProbeRow) and row.kind != CLOZE]
    recalls = [row.unlearned.recall for row in rows if row.fact_id in own]
    return fmean(recalls) if recalls else None


def capability_beside(config: RunConfig, task: str) -> tuple[float | None, float | None]:
    """The paper's share of right answers in a task for a run's model, before and after, if any."""
    model = preset_of(config.model)
    place, methods = model.paper if model else "", (published.UNTOUCHED, config.method)
    return tuple(published.further(place, method).get(task) for method in methods)


def setting_of(config: RunConfig, facts: FactSet) -> str | None:
    """The paper's setting (one of six) that a run matches, by fact ids and model name."""
    model, benchmark = preset_of(config.model), benchmark_of(facts)
    return f"{model.paper} {benchmark.upper()}" if model and model.paper and benchmark else None


def model_of(setting: str) -> str:
    """The id of the model of one of the paper's settings."""
    return next(model.id for model in MODELS.values() if model.paper == setting.split()[0])


def differences(config: RunConfig, facts: FactSet) -> Table:
    """What differs between a run and the paper's, a row each; the note is about the paper's code,
    which differs from its text."""
    benchmark, model = benchmark_of(facts), preset_of(config.model)
    rows = []
    if config.model not in MODELS:
        rows.append(("weights", config.model, model.id))
    if benchmark == "duet":
        tuned = model.tuned_on == benchmark or config.start == "sft"
        start = "fine-tuned on DUET by LoRA" if tuned else "not fine-tuned"
        rows.append(("start", start, "fine-tuned on DUET for 3 epochs"))
    elif config.start == "sft":
        rows.append(("start", "fine-tuned", "as given"))
    if benchmark == "rwku":
        rows.append(("scores", "of its own", "never published"))
    rows += departures(config, model.id)
    for name, own, paper in zip(
        ("facts to forget", "facts to retain"), (facts.forget, facts.retain), PAPER_FACTS[benchmark]
    ):
        rows += [(name, f"{len(own):,}", f"{paper:,}")] if paper not in (None, len(own)) else []
    own_words = "asks the same, differently worded" if config.system is None else "of its own"
    rows += [("system prompt", own_words, "asks for short facts"), ("seeds", "1", "up to 3")]
    follows = "code" if config.preset == "as-released" else "text"
    note = PAPER_CODE_NOTE.format(follows=follows)
    return Table("What differs", ("", "this run", "the paper"), tuple(rows), note)


def departures(config: RunConfig, model: str) -> list[tuple[str, str, str]]:
    """(name, our value, the paper's) of each setting unlike the paper's run of this method."""
    paper = make_config(
        config.method, "paper", model=model, **PAPER_ASKS, beta=BetaMap(), precision="bfloat16"
    )
    config = replace(config, beta=config.beta or BetaMap())
    departing = []
    for name in (name for name, about in SETTINGS.items() if about.compared):
        value, paper_value = getattr(config, name), getattr(paper, name)
        if value not in (paper_value, "auto"):  # "auto" on a benchmark's facts: as the paper does
            departing.append((name.replace("_", " "), spoken(value), spoken(paper_value)))
    return departing


def _our_recall(measured: Measured, *place: str) -> str:
    """Recall as the paper computes it, followed by ours where that differs."""
    folded, strict = measured.recall(*place), measured.recall(*place, name="strict")
    if strict is None or f"{strict:.3f}" == f"{folded:.3f}":
        return _recall(folded)
    return f"{_recall(strict)} (accents ignored: {_recall(folded)})"


def _recall(value: float | None, sd: float | None = None) -> str:
    return "–" if value is None else deviating(value, sd)
