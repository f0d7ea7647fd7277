"""Remarks: what to know or doubt about a set, a run or its settings, as data.

A run keeps them by kind and values. The sentence of each kind is in a module of this package named
after the package that makes it, so that a kept remark is read without loading that package."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from adapop.errors import number_of, truncated
from adapop.remark import facts, model, popularity, probes, report, runs

MINUTE, HOUR, DAY = 60, 3600, 86400
SENTENCES = {
    kind: sentence
    for package in (facts, popularity, model, probes, runs, report)
    for kind, sentence in package.SENTENCES.items()
}
# How each reader knows a setting: on the page, on the command line, in Python.
TERMS = {
    "page": {
        "float32": "precision=float32",
        "lr": "the learning rate",
        "start_epochs": "start_epochs",
        "start_rate": "start_rate",
        "epochs": "the epochs",
        "batch": "the batch",
        "alpha0": "the retain weight α₀",
        "facts_tab": " on Facts",
        "retain_choice": ": choose another retain set on Facts",
        "teach": "the button “Teach them first”",
        "shuffled": "run “AdaPop, shuffled” beside them on Compare.",
    },
    "command": {
        "float32": "--precision float32",
        "lr": "the learning rate (--lr)",
        "start_epochs": "--start-epochs",
        "start_rate": "--start-rate",
        "epochs": "the epochs (--epochs)",
        "batch": "the batch (--batch)",
        "alpha0": "the weight of what is retained (--alpha0)",
        "facts_tab": "",
        "teach": "--start sft",
        "retain_choice": ": name them with --retain, or --retain split to keep a third of yours",
        "shuffled": "python -m adapop run --preset shuffled",
    },
    "program": {
        "float32": 'precision="float32"',
        "lr": "learning_rate",
        "start_epochs": "start_epochs",
        "start_rate": "start_rate",
        "epochs": "epochs",
        "batch": "batch",
        "alpha0": "alpha0",
        "facts_tab": "",
        "teach": 'start="sft"',
        "retain_choice": ': name them with retain=, or retain="split" to keep a third of yours',
        "shuffled": 'preset="shuffled"',
    },
}
# Words that follow the number in a sentence.
ONE = {"has": "has", "was": "was", "come": "comes", "first": ""}
SEVERAL = {"has": "have", "was": "were", "come": "come", "first": "the first being "}


@dataclass(frozen=True)
class Remark:
    """One remark. Raises ValueError: there is no such kind, or the values do not fit it."""

    kind: str
    """A key of `SENTENCES`."""
    values: dict[str, str | int | float] = field(default_factory=dict, hash=False)
    """Values of the names in its sentence: "seconds", "bytes", and others. A whole number under a
    plural name is shown with its noun ("3 facts"). A text is shown as it is."""

    def __post_init__(self) -> None:
        try:
            self.text()
        except (LookupError, ValueError):
            raise ValueError(f"{truncated(self.kind)!r} with these values is no remark") from None

    def text(self, reader: str = "page") -> str:
        """The sentence. reader: whose terms name the settings: those of the "page", the "command"
        line or a "program"."""
        values = {name: _formatted(name, value) for name, value in self.values.items()}
        one = 1 in (value for name, value in self.values.items() if name.endswith("s"))
        words = (ONE if one else SEVERAL) | TERMS[reader]
        return SENTENCES[self.kind].format(**words | values)

    def __str__(self) -> str:
        return self.text("program")


def sentences(notes: Iterable[str | Remark], reader: str = "page") -> list[str]:
    """Notes as sentences; a text is kept as it is. reader: see `Remark.text`."""
    return [note if isinstance(note, str) else note.text(reader) for note in notes]


def duration(seconds: float) -> str:
    """A time as people say it, rounded: 7 s, 45 s, 3 min, 2.5 hours, 3 days."""
    if seconds < 100:
        return f"{max(1, round(seconds)) if seconds < 10 else 5 * round(seconds / 5)} s"
    if seconds < 100 * MINUTE:
        return f"{round(seconds / MINUTE)} min"
    if seconds < 2 * DAY:
        return f"{round(2 * seconds / HOUR) / 2:g} hours"
    return f"{round(seconds / DAY)} days"


def _formatted(name: str, value: str | int | float) -> str | float:
    if isinstance(value, str):
        return value
    if name == "seconds":
        return duration(value)
    if name == "bytes":
        return f"{value / 2**30:,.1f} GiB" if value >= 2**30 else f"{value / 2**20:,.0f} MiB"
    return number_of(value, name[:-1]) if isinstance(value, int) and name.endswith("s") else value
