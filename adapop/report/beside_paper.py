"""A finished run beside the numbers that the paper printed for its model, facts and method, and what differs."""

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.facts.benchmarks import benchmark_of
from adapop.facts.fact import FactSet
from adapop.model.catalogue import MODELS, preset_of
from adapop.report import published
from adapop.report.settings import spoken
from adapop.report.table import Table, deviating
from adapop.runs.run import Run
from adapop.training.events import Measured

COMPARED = (
    "preset", "alpha0", "dual_step", "tolerance", "lam_max", "learning_rate", "schedule", "epochs", "batch",
    "weight_decay", "lora_rank", "lora_alpha", "lora_targets", "lora_layers", "precision", "four_bit", "max_new_tokens",
    "arguments", "scores", "missing_score", "include_tail", "normalise", "retain_signal",
    "last_step", "retain_loss", "alpha_max", "dual_rows",
)  # fmt: skip
PAPER_FACTS = {"duet": (964, 500), "rwku": (2879, None)}  # METHODS 4: to forget, to retain
OF_THE_CODE = (  # METHODS 1.6
    "The paper's own code averages the forget loss per example, pushes on the end of the turn as well, and watches "
    "recent training batches in place of the whole retain set."
)


def beside(run: Run) -> tuple[Table, tuple[str, ...]] | None:
    """A finished run beside what the paper printed for its model, facts and method, as ROUGE-L recall, [0, 1]; and in
    sentences what differs. None where it printed nothing."""
    config, facts = run.config, run.facts
    setting = setting_of(config, facts)
    before, after = run.measured(before=True), run.measured()
    if setting is None or before is None or after is None:
        return None
    theirs = {row.our_name: row for row in published.recalls(setting) if row.method != published.UNTOUCHED}
    start, end = published.recalls(setting)[0], theirs[config.method]
    rows = [
        ("forget, before", _recall(start.forget), _ours(before, "forget")),
        ("retain, before", _recall(start.retain), _ours(before, "retain")),
        ("forget, after", _recall(end.forget, end.forget_sd), _ours(after, "forget")),
        ("retain, after", _recall(end.retain, end.retain_sd), _ours(after, "retain")),
        ("holdout, after", _recall(None), _ours(after, "holdout")),
    ]
    if benchmark_of(facts) == "duet":
        named = {name.lower(): tiers for name, tiers in published.paraphrased(setting.split()[0]).items()}
        for tier, recall in named.get(config.method, {}).items():
            rows.append((f"forget, reworded, {tier}", _recall(recall), _ours(after, "forget", "reworded", tier)))
    table = Table(f"{setting}, ROUGE-L recall", ("", published.PAPER, "this run"), tuple(rows))
    return table, differences(config, facts)


def setting_of(config: RunConfig, facts: FactSet) -> str | None:
    """Which of the paper's six settings a run is one of: by the facts' ids and the model's name."""
    model, benchmark = preset_of(config.model), benchmark_of(facts)
    return f"{model.paper} {benchmark.upper()}" if model and model.paper and benchmark else None


def differences(config: RunConfig, facts: FactSet) -> tuple[str, ...]:
    """What differs between a run and the paper's, as far as a configuration and its facts tell."""
    said = []
    benchmark, model = benchmark_of(facts), preset_of(config.model)
    if config.model not in MODELS:
        said.append(f"The weights come from {config.model}: nothing checks that they are those of {model.id}.")
    if benchmark == "duet":
        start = "this one was fine-tuned on it by LoRA" if model.tuned_on == benchmark else "this one was not"
        said.append(f"The paper's DUET runs start from a model fine-tuned on DUET for 3 epochs; {start}.")
    if benchmark == "rwku":
        said.append("The paper's RWKU scores were never published: those of this run are others.")
    paper = make_config(config.method, "paper", model=model.id)
    for name in COMPARED:
        ours, theirs = getattr(config, name), getattr(paper, name)
        if ours != theirs:
            said.append(f"{name.replace('_', ' ')}: {spoken(ours)} here, {spoken(theirs)} in the paper.")
    forget, retain = PAPER_FACTS[benchmark]
    if len(facts.forget) != forget:
        said.append(f"{len(facts.forget):,} facts to forget here, {forget:,} in the paper.")
    if retain and len(facts.retain) != retain:
        said.append(f"{len(facts.retain):,} facts are retained here, {retain:,} in the paper, which holds none out.")
    said.append("The system prompt asks for short facts as the paper's does, in other words.")
    said.append("One seed here, a mean of up to three in the paper.")
    return (*said, *((OF_THE_CODE,) if config.preset != "as-released" else ()))


def _ours(measured: Measured, *place: str) -> str:
    """Recall as the paper computes it; behind it, where that differs, as everywhere else in this app."""
    folded, strict = measured.recall(*place), measured.recall(*place, name="strict")
    if strict is None or f"{strict:.3f}" == f"{folded:.3f}":
        return _recall(folded)
    return f"{_recall(strict)} (accents ignored: {_recall(folded)})"


def _recall(value: float | None, sd: float | None = None) -> str:
    return "–" if value is None else deviating(value, sd)
