"""How a setting of a run is declared: its choices, its range, where users set it."""

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from adapop.assets import type_adapter
from adapop.errors import ConfigError, did_you_mean, truncated

LEAST, MOST = 1e-12, 1e30  # least value above 0, and largest of any setting: float32 ends at 3e38
MOST_WHOLE = 10**6


@dataclass(frozen=True)
class Setting:
    """How one setting of a run may be set, and where."""

    kind: str = ""
    """Its type, as the annotation of its field writes it."""
    choices: tuple[str, ...] = ()
    """Its possible values, if they are a few texts."""
    positive: bool = False
    """Whether a number must be above 0; otherwise it may be 0."""
    short: str = ""
    """A short form of its option on the command line."""
    separate: bool = False
    """Whether it has its own option on the command line and its own argument in calls."""
    every: str = ""
    """For a list: the text that "all" on the page stands for."""
    most: int = MOST_WHOLE
    """The largest value of a whole number."""
    public: float | None = None
    """The largest value on a public page."""
    shared: bool = False
    """Whether all runs of a race take it from the Run tab if it was changed there: it is about the
    model or about measuring, not about a method."""
    compared: bool = True
    """Whether a value other than the paper's is listed beside its numbers. The other settings
    change none of them, or have a sentence of their own (`report.beside_paper`)."""

    @property
    def number(self) -> bool:
        """Whether the setting is a number, or may be one."""
        return self.kind.startswith(("int", "float"))

    @property
    def whole(self) -> bool:
        """Whether the setting is a whole number, or may be one."""
        return self.kind.startswith("int")

    @property
    def optional(self) -> bool:
        """Whether the setting may be None."""
        return "None" in self.kind


def setting(default: Any, *choices: str, **about: Any) -> Any:
    """A field of `RunConfig`. choices, about: fields of its `Setting`."""
    return field(default=default, metadata={"setting": Setting(choices=choices, **about)})


def check_number(name: str, value: object, about: Setting) -> None:
    """Raises ConfigError: a setting is no number, or out of its range."""
    message = f"{name} is {truncated(repr(value))}."
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ConfigError(message, "It must be a number.")
    least: float
    most: float
    if about.whole:
        least, most, kind = int(about.positive), about.most, "whole number"
    else:
        least, most, kind = LEAST if about.positive else 0, MOST, "finite number"
    if not least <= value <= most or (about.whole and type(value) is not int):
        bounds = f"{least:,} to {most:,}" if about.whole else f"{least:g} to {most:,g}"
        raise ConfigError(message, f"It must be a {kind} from {bounds}.")


def check_type(name: str, value: object, kind: object) -> None:
    """Raises ConfigError: a setting is not of its type, or a text is not Unicode."""
    try:
        type_adapter(kind).validate_python(value, strict=True)
        json.dumps(value, ensure_ascii=False, default=str).encode()  # also within lists
    except (ValidationError, UnicodeEncodeError) as error:
        reason = "It has half a character"
        if isinstance(error, ValidationError):
            reason = error.errors()[0]["msg"]
        raise ConfigError(f"{name} is {truncated(repr(value))}.", f"{reason}.") from None


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raises ConfigError: the value is unknown."""
    if value not in known:
        fix = f"{did_you_mean(value, known)}Use one of {', '.join(known)}."
        raise ConfigError(f"{name} is {truncated(value)!r}.", fix)
