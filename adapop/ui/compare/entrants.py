"""The contestants of a race, and their configurations."""

from adapop.config.methods import METHODS
from adapop.config.presets import make_config, presets_of, untouched
from adapop.config.run import SETTINGS, RunConfig
from adapop.errors import AdaPopError, ConfigError, number_of, truncated
from adapop.facts.fact import FactSet
from adapop.model.catalogue import MODELS
from adapop.paths import SHIPPED
from adapop.remark import sentences
from adapop.report.figures import Numbers
from adapop.report.record import title_of
from adapop.runs.preflight import preflight
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.run.configuration import config_of, further_of
from adapop.ui.run.launch import at_anchors


def choices() -> list[tuple[str, str]]:
    """(title, key) of every contestant: each method with each of its presets."""
    pairs = ((method, preset) for method in METHODS for preset in presets_of(method))
    return [(title_of(*pair), "/".join(pair)) for pair in pairs]


def who_is_who() -> Numbers:
    """A table that describes every contestant in a sentence: methods, then AdaPop's presets."""
    methods = [(method.title, method.about) for method in METHODS.values()]
    names = [name for name in presets_of("adapop") if name != "paper"]
    presets = [(title_of("adapop", name), texts.PRESET_NAMES[name]) for name in names]
    return Numbers(("method", "what it does"), (*methods, *presets))


def config_in(
    facts: FactSet, missing: str, anchors, key: str, epochs, rate, *values, seed: int = 0
) -> RunConfig:
    """The configuration of a contestant. key: METHOD/PRESET. Other parameters: as for `race.begin`.
    Raises ConfigError: a setting is out of range, or not allowed on a public page."""
    run, (method, _, preset) = config_of(values), key.partition("/")
    usual = untouched(run)
    shared = {name: getattr(run, name) for name, about in SETTINGS.items() if about.shared}
    changes = {name: value for name, value in shared.items() if value != getattr(usual, name)}
    if "batch" in changes:
        most = make_config(method, preset, model=run.model).micro_batch
        changes["micro_batch"] = min(run.batch, most)
    changes |= further_of(values) | _rate_of(rate)
    about = {"facts": facts.name, "missing_score": missing, "epochs": int(epochs), "seed": seed}
    return at_anchors(make_config(method, preset, model=run.model, **changes, **about), anchors)


def _rate_of(text: str | float | None) -> dict[str, float]:
    """The typed learning rate as a setting; empty without one. Raises ConfigError: no number."""
    if not str(text or "").strip():
        return {}
    try:
        return {"learning_rate": float(text)}
    except ValueError:
        message = f"The learning rate {truncated(text)!r} is not a number."
        fix = "Write it as 0.001, or leave it empty: each method then has its own."
        raise ConfigError(message, fix) from None


def first(facts: FactSet, missing: str, anchors, chosen: list[str], seeds, *values) -> RunConfig:
    """The first contestant's configuration, the only one that Check tries. Raises ConfigError:
    there is none."""
    if not chosen:
        raise ConfigError("No method is chosen.", "Pick at least one.")
    return config_in(facts, missing, anchors, chosen[0], *values)


def plan(
    worker: Worker, facts: FactSet | None, missing: str, anchors, chosen: list[str], seeds, *values
) -> dict:
    """The plan of a race, or its problems; hidden for a shipped model without problems."""
    if facts is None:
        return html.listed([texts.NO_FACTS], "warn")
    if not chosen:
        return html.listed(["Pick at least one method."], "warn")
    try:
        configs = {key: config_in(facts, missing, anchors, key, *values) for key in chosen}
        looks = {
            key: preflight(facts, config, worker.pace_of(config.model))
            for key, config in configs.items()
        }
    except AdaPopError as error:
        return html.listed([str(error)], "bad")
    name, count = next(iter(configs.values())).model, len(configs) * int(seeds)
    model = MODELS[name].title if name in MODELS else name
    titles = {key: title_of(*key.split("/")) for key in chosen}
    stopping = [(titles[key], sentences(look.problems)) for key, look in looks.items()]
    problems = [f"{title}: {problem}" for title, lines in stopping for problem in lines]
    if name in SHIPPED and not problems:  # runs of about a minute need no plan
        return html.listed([])
    rates = [f"{titles[key]} {config.learning_rate:g}" for key, config in configs.items()]
    first = next(iter(looks.values()))
    on = f"on {facts.name} with {model}"
    lines = [
        f"{number_of(count, 'run')}, one after the other, {on}.",
        *sentences([first.counts, *first.costs]),
        f"Learning rates: {', '.join(rates)}.",
    ]
    return html.listed([*problems, *lines], "bad" if problems else "calm")
