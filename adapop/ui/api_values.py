"""Validates the values of API calls, and reports errors: Gradio checks no types for functions
without components.

A check raises `AdaPopError`, which names the wrong parameter and quotes its value only if it is
text, a number or None.
"""

import inspect
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import wraps
from math import inf
from pathlib import Path

import gradio as gr

from adapop.config.presets import follows_scores, make_config
from adapop.config.run import BETA, SEPARATE, SETTINGS, RunConfig, value_of
from adapop.errors import AdaPopError, ConfigError, DataError, truncated
from adapop.facts.catalog import ENTRIES, load_facts, load_raw, model_of
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.retain import with_retain_rows
from adapop.limits import EPOCHS, is_public
from adapop.online.cache import Cache
from adapop.popularity.base import Proxy, Score
from adapop.popularity.calibration import AUTO, PAPER, calibrated
from adapop.popularity.sources import SOURCES, Choices
from adapop.progress import Progress
from adapop.ui.access import public_words
from adapop.ui.facts.upload import PROBLEMS_SHOWN
from adapop.ui.run.configuration import ADVANCED, FURTHER, check_public

LONGEST_NAME = 200
GIVEN = "given"
# a program cannot upload a file
PROXIES = tuple(name for name, source in SOURCES.items() if "text" not in source.reads)
# settings that start_run takes as parameters of their own
OWN = {*SEPARATE, "learning_rate", "epochs", "seed", "missing_score"}


def facts_of(
    facts: object,
    retain: object = "own",
    model: str = SANDBOX,
    columns: object = None,
) -> FactSet:
    """A set by name, or rows parsed like an upload. A single bad row is an error: a program would
    not notice dropped rows. columns: field -> the
    rows' own name for it, or several names.

    Raises:
        DataError: there is no such set, or a row cannot be used.
    """
    text_of("retain", retain)
    if not isinstance(columns, dict | None):
        message = f"columns is {quoted(columns)}."
        raise ConfigError(message, 'Map each field to your name for it, as {"question": "prompt"}.')
    if columns and isinstance(facts, str):
        raise DataError(f"{quoted(facts)} has no columns to choose.", "Leave columns out.")
    if isinstance(facts, str):
        if facts not in ENTRIES:
            message = f"There is no set {quoted(facts)}."
            raise DataError(message, f"Use one of {', '.join(ENTRIES)}, or a list of rows.")
        return load_facts(facts, model, retain=retain)
    if not isinstance(facts, list):
        raise DataError(f"facts is {quoted(facts)}.", "Give the name of a set, or a list of rows.")
    try:
        text = json.dumps(facts)
    except (RecursionError, TypeError, ValueError):
        message = "facts cannot be written as JSON."
        raise DataError(message, "Use flat objects of text and numbers.") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own facts.json"  # the set's name
        path.write_text(text, encoding="utf-8")
        read = _read(path, columns)
    if read.problems:
        count = len(read.problems)
        message = f"{count:,} of {len(facts):,} rows cannot be used."
        raise DataError(message, "Mend or drop them.", read.problems)
    return with_retain_rows(read, model, retain)


def _read(path: Path, columns: dict | None) -> FactSet:
    """Parses a file of rows that a program sent, as "facts". Raises DataError."""
    named = {
        text_of("a field", field): [text_of("a column", name) for name in names]
        if isinstance(names, list) and names
        else text_of("a column", names)
        for field, names in (columns or {}).items()
    }
    try:
        return load_raw(path, columns=named, drop_bad=True)
    except DataError as error:
        message, fix = (text.replace(path.name, "facts") for text in (error.message, error.fix))
        fix = fix.replace("listed below", "named here")
        raise DataError(message, fix, error.problems) from error


def proxy_of(facts: FactSet, name: object, language: object, year: object) -> Proxy:
    """The facts' proxy of this name. Raises ConfigError: unknown proxy, language or year."""
    if name not in PROXIES:
        message = f"proxy is {quoted(name)}."
        raise ConfigError(message, f"Use one of {', '.join((*PROXIES, GIVEN))}.")
    when = None if year is None else whole_of("year", year)
    chosen = Choices(language=text_of("language", language), year=when)
    return SOURCES[name].make(facts, chosen, Progress(), Cache())


def score_row(score: Score | None) -> dict:
    """A fact's score as the API returns it. score: None if the fact came without a score."""
    score = score or Score("", None, "", reason="It came without a score.")
    about = {**asdict(score), "score": score.value, "raw": dict(score.raw)}
    return {name: value for name, value in about.items() if name not in ("fact_id", "value")}


def others_of(settings: object, model: str) -> dict:
    """Validates further settings of a run, sent by name. A public page accepts only the settings
    that it shows; elsewhere, an unknown name is taken as an argument of the method.

    Raises:
        ConfigError: no such setting, a value of another type, or one that a public page does not
            allow.
    """
    if not isinstance(settings, dict | None):
        message = f"settings is {quoted(settings)}."
        raise ConfigError(message, 'Give settings by name, such as {"lora_rank": 8}.')
    changes, known = {}, (ADVANCED if is_public() else SETTINGS).keys() - OWN - {FURTHER}
    for name, value in (settings or {}).items():
        if text_of("a setting's name", name) in known:
            items = value if isinstance(value, list) else [value]
            texts = (one if isinstance(one, (dict, list)) else str(one) for one in items)
            most = inf if name == "system" else LONGEST_NAME
            changes[name] = value_of(name, ",".join(text_of(name, one, most) for one in texts))
        elif not is_public() and (name == BETA or name not in {*SETTINGS, FURTHER}):
            changes.setdefault("arguments", {})[name] = value
        elif name == "arguments" and isinstance(value, dict) and not is_public():
            changes.setdefault(name, {}).update(value)
        else:
            message = f"There is no setting {quoted(name)} here."
            raise ConfigError(message, f"Use one of {', '.join(sorted(known))}.")
    check_public({"model": model, **changes})
    return changes


def config_and_facts(
    facts, method, preset, learning_rate, epochs, seed, *others
) -> tuple[RunConfig, FactSet]:
    """The configuration and the facts, from the arguments of `start_run`. Raises AdaPopError."""
    anchors, missing_score, retain, model, settings, columns = others
    model = text_of("model", model) or model_of(facts if isinstance(facts, str) else None)
    changes = others_of(settings, model)
    changes |= {"epochs": whole_of("epochs", epochs), "seed": whole_of("seed", seed)}
    changes |= {"missing_score": text_of("missing_score", missing_score)}
    EPOCHS.check(changes["epochs"])
    changes |= {} if learning_rate is None else {"learning_rate": learning_rate}
    chosen = facts_of(facts, retain, model, columns)
    names = text_of("method", method), text_of("preset", preset)
    config = make_config(*names, model, facts=chosen.name, **changes)
    follows = follows_scores(config)
    if not follows and anchors not in (AUTO, PAPER):
        message = f"{method}/{preset} takes no beta from the scores."
        raise ConfigError(message, "Leave anchors at 'auto'.")
    if follows and anchors != AUTO:
        config = replace(config, beta=calibrated(text_of("anchors", anchors), chosen))
    return config, chosen


def text_of(name: str, value: object, most: float = LONGEST_NAME) -> str:
    """The parameter's value. Raises ConfigError unless it is text of at most `most` characters."""
    if not isinstance(value, str):
        raise ConfigError(f"{name} is {quoted(value)}.", "It must be text.")
    if len(value) > most:
        raise ConfigError(f"{name} has {len(value):,} characters.", f"At most {most} are allowed.")
    return value


def whole_of(name: str, value: object) -> int:
    """The parameter's value as an integer. Raises ConfigError unless it is a whole number."""
    if type(value) not in (int, float) or value % 1 or abs(value) > 1e300:
        raise ConfigError(f"{name} is {quoted(value)}.", "It must be a whole number.")
    return int(value)


def quoted(value: object) -> str:
    """A value from outside, shortened; only its type unless it is text, a number or None."""
    plain = value is None or isinstance(value, (str, bool, int, float))
    return truncated(repr(value)) if plain else f"of type {type(value).__name__}"


def answering(endpoint: Callable) -> Callable:
    """Wraps an endpoint: its errors become messages, unescaped since no page shows them."""

    @wraps(endpoint)
    def answered(*values):
        with _in_words():
            return endpoint(*values)

    @wraps(endpoint)
    async def answered_later(*values):
        with _in_words():
            return await endpoint(*values)

    answered = answered_later if inspect.iscoroutinefunction(endpoint) else answered
    # the types themselves and not their names: gradio puts them into the documentation
    answered.__signature__ = inspect.signature(endpoint, eval_str=True)
    return answered


def parameters_of(endpoint: Callable) -> dict[str, str]:
    """What each parameter means, from the docstring."""
    one_a_line = inspect.getdoc(endpoint).replace("\n        ", " ")
    return dict(re.findall(r"^    (\w+): (.+)$", one_a_line, re.MULTILINE))


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except AdaPopError as error:
        rows = map(str, getattr(error, "problems", ())[:PROBLEMS_SHOWN])
        words = public_words(AdaPopError(" ".join([str(error), *rows])))
        raise gr.Error(words, print_exception=False) from error
