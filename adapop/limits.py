"""What a public Space allows itself, set by environment; a local user has no such limits.

ADAPOP_PUBLIC     0 or 1; on by default where SPACE_ID says that this is a Hugging Face Space
ADAPOP_MAX_FACTS  rows read from an upload; 20,000, or 200 in public
"""

from __future__ import annotations

import os

from adapop.errors import ConfigError

LOCAL_FACTS, PUBLIC_FACTS = 20_000, 200


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
