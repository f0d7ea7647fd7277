"""The page's texts: explanations, labels and choices, by their names in `assets/texts.json`.

A name stands for a text, for choices (pairs of label and value), or for a dict of texts.
"""

from adapop.assets import read_json
from adapop.limits import max_facts

_TEXTS = read_json("texts.json", dict[str, str | list[tuple[str, str]] | dict[str, str]])


def __getattr__(name: str) -> str | list[tuple[str, str]] | dict[str, str]:
    if name in _TEXTS:
        return _TEXTS[name]
    raise AttributeError(f"assets/texts.json has no text {name!r}")


def upload_about() -> str:
    """The rules for an upload, with this machine's size limit."""
    return _TEXTS["UPLOAD_ABOUT"].format(rows=max_facts())
