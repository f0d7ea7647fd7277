"""Remarks: what to know or doubt of a set, a run or its settings, as data. Their sentences stand in
`assets/remarks.json`."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from adapop.assets import read_json
from adapop.errors import number_of, shown

_TEXTS = read_json("remarks.json", dict[str, dict[str, str]])


@dataclass(frozen=True)
class Remark:
    """One remark.

    Raises:
        ValueError: there is no such kind, or it has other values.
    """

    kind: str
    """A key of `sentences` in `assets/remarks.json`."""
    values: dict[str, str | int | float] = field(default_factory=dict)
    """By the names in its sentence. A whole number counts what a name in the plural says."""

    def __post_init__(self) -> None:
        try:
            self.text()
        except (LookupError, ValueError):
            raise ValueError(f"{shown(self.kind)!r} with these values is no remark") from None

    def text(self, reader: str = "page") -> str:
        """The sentence. reader: in whose terms settings are named: of the "page", the "command" line or a "program"."""
        values = {name: _counted(name, value) for name, value in self.values.items()}
        verb = "has" if 1 in self.values.values() else "have"
        return _TEXTS["sentences"][self.kind].format(**_TEXTS[reader] | values, has=verb)


def sentences(notes: Iterable[str | Remark], reader: str = "page") -> list[str]:
    """Notes in words; a text is one already. reader: see `Remark.text`."""
    return [note if isinstance(note, str) else note.text(reader) for note in notes]


def _counted(name: str, value: str | int | float) -> str | float:
    return number_of(value, name[:-1]) if isinstance(value, int) and name.endswith("s") else value
