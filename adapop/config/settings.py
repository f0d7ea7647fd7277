"""The settings of a run, which `RunConfig` declares, from text by name."""

from typing import Any

from adapop.assets import parse_json
from adapop.config.run import SETTINGS, meanings
from adapop.errors import ConfigError, truncated

SEPARATE = tuple(name for name, about in SETTINGS.items() if about.separate)
# in a run this setting is the curve, given by anchors; as text, beta is an argument of WGA and NPO
BETA = "beta"
MOST_SPAN = 10_000  # numbers
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_settings(pairs: list[str]) -> dict[str, Any]:
    """Name -> value, from texts like "lora_rank=8"; names that are no setting go under `arguments`.
    Raises ConfigError: no =, a setting with its own option, or a value of another type."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, given, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not (given and name):
            fix = "Write NAME=VALUE, for example lora_rank=8."
            raise ConfigError(f"{truncated(pair)!r} sets nothing.", fix)
        if name in SEPARATE and name != BETA:
            fix = "It has an option or an argument of its own."
            raise ConfigError(f"{name} is not set here.", fix)
        if name in SETTINGS and name != BETA:
            settings[name] = value_of(name, text.strip())
        else:
            settings.setdefault("arguments", {})[name] = _plain(text.strip())
    return settings


def value_of(name: str, text: str) -> Any:
    """A setting's value from text: "none" for None where that is allowed, and commas between the
    items of a list; of whole numbers, "0-14" means all from 0 to 14. Raises ConfigError: the text
    is of another type."""
    kind = SETTINGS[name].kind
    try:
        if SETTINGS[name].optional and text.lower() == "none":
            return None
        if kind.startswith("tuple"):
            parts = [part.strip() for part in text.split(",") if part.strip()]
            return (
                tuple(n for part in parts for n in _span(part)) if "int" in kind else tuple(parts)
            )
        if kind == "bool":
            return TRUTHS[text.lower()]
        return {"int": int, "float": float}.get(kind.partition(" ")[0], str)(text)
    except (ValueError, KeyError):
        message = f"{name} is {truncated(text)!r}, which is no {kind}."
        raise ConfigError(message, meanings()[name]) from None


def _span(text: str) -> range:
    """The whole numbers of "7", or of "0-14" with both ends. Raises ValueError: it is neither."""
    first, _, last = text.partition("-")
    span = range(int(first), int(last or first) + 1)
    if not span or len(span) > MOST_SPAN or text.endswith("-"):
        raise ValueError(text)
    return span


def _plain(text: str) -> Any:
    """The number, truth value or list in a text of JSON; any other text unchanged."""
    try:
        return parse_json(text)
    except ValueError:
        return text
