"""What a public Space allows itself, set by environment; a local user has no such limits.

ADAPOP_PUBLIC     0 or 1; on by default where SPACE_ID says that this is a Hugging Face Space
ADAPOP_MAX_FACTS  rows read from an upload; 20,000, or 200 in public
ADAPOP_KEEP_HOURS how long runs and saved sets are kept after their last change; for ever, or 2 in public
ADAPOP_KEEP_GB    how much disk they may take together, the oldest are deleted first; unlimited, or 10 in public
"""

from __future__ import annotations

import os

from adapop.errors import ConfigError

LOCAL_FACTS, PUBLIC_FACTS = 20_000, 200
LOCAL_EPOCHS, PUBLIC_EPOCHS = 1_000, 10
LOCAL_HOURS, PUBLIC_HOURS = None, 2.0
LOCAL_GIGABYTES, PUBLIC_GIGABYTES = None, 10.0


def is_public() -> bool:
    """Whether strangers use this app.

    Raises:
        ConfigError: ADAPOP_PUBLIC is neither 0 nor 1.
    """
    text = os.environ.get("ADAPOP_PUBLIC", "") or ("1" if os.environ.get("SPACE_ID") else "0")
    if text not in ("0", "1"):
        raise ConfigError(f"ADAPOP_PUBLIC is {text!r}.", "Set it to 0 or 1, or unset it.")
    return text == "1"


def max_facts() -> int:
    """The most rows read from one file.

    Raises:
        ConfigError: ADAPOP_MAX_FACTS is not a whole number above 0.
    """
    text = os.environ.get("ADAPOP_MAX_FACTS", "")
    if not text:
        return PUBLIC_FACTS if is_public() else LOCAL_FACTS
    if not text.isdecimal() or int(text) == 0:
        raise ConfigError(f"ADAPOP_MAX_FACTS is {text!r}.", "Set it to a whole number above 0, or unset it.")
    return int(text)


def max_epochs() -> int:
    """The most epochs of a run that a program starts: as many as the page offers in public."""
    return PUBLIC_EPOCHS if is_public() else LOCAL_EPOCHS


def keep_seconds() -> float | None:
    """How long a run or a saved set is kept after its last change, None for ever.

    Raises:
        ConfigError: ADAPOP_KEEP_HOURS is not a number above 0.
    """
    hours = _above_zero("ADAPOP_KEEP_HOURS", PUBLIC_HOURS if is_public() else LOCAL_HOURS)
    return None if hours is None else hours * 3600


def keep_bytes() -> float | None:
    """How many bytes runs and saved sets may take together, None for as many as there are.

    Raises:
        ConfigError: ADAPOP_KEEP_GB is not a number above 0.
    """
    gigabytes = _above_zero("ADAPOP_KEEP_GB", PUBLIC_GIGABYTES if is_public() else LOCAL_GIGABYTES)
    return None if gigabytes is None else gigabytes * 1e9


def _above_zero(name: str, otherwise: float | None) -> float | None:
    text = os.environ.get(name, "")
    if not text:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"{name} is {text!r}.", "Set it to a number above 0, or unset it.")
    return value
