"""The texts of the page: explanations, labels and choices, by the names they have in
`assets/texts.json`.

A name stands for one text, for choices (pairs of what is shown and what it stands for), or for a
text by key.
"""

from adapop.assets import read_json
from adapop.limits import max_facts

_TEXTS = read_json("texts.json", dict[str, str | list[tuple[str, str]] | dict[str, str]])


def __getattr__(name: str) -> str | list[tuple[str, str]] | dict[str, str]:
    if name in _TEXTS:
        return _TEXTS[name]
    raise AttributeError(f"assets/texts.json has no text {name!r}")


def upload_about() -> str:
    """What an upload may hold, with this machine's limit."""
    return _TEXTS["UPLOAD_ABOUT"].format(rows=max_facts())
