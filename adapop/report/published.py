"""The numbers that the AdaPop paper published (Borisiuk et al. 2026), from `assets/published/`.

Other models (7 to 8 billion parameters), other facts (DUET, RWKU), other training: nothing here was measured by this
app, so they are shown beside its numbers and never among them. The paper's "retain" is the set that was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field

from adapop.assets import read_csv, read_json
from adapop.report.table import Table

PAPER = "Borisiuk et al. 2026"
PAPER_MODELS = {"Llama": "Llama-3.1-8B-Instruct", "Qwen": "Qwen2.5-7B-Instruct", "Gemma": "Gemma-7B-it"}
SETTINGS = ("Llama DUET", "Llama RWKU", "Qwen DUET", "Qwen RWKU", "Gemma DUET", "Gemma RWKU")
UNTOUCHED = "no unlearning"
MAIN_SOURCE, FURTHER_SOURCE = "main results", "eleven further methods"
UNUSABLE = ("GA", "GD", "FLAT", "CE-U")  # flagged by the paper: the retained knowledge is damaged as well
OUR_NAMES = {"CE-U": "ceu"}  # the other names differ in case and space only
RETAIN_NOTE = (
    "Retain is the set that was trained on. Where it is above the model before unlearning, training on it raised it. "
    "AdaPop ran at α₀ = 0.5; GD, NPO and WGA at α = 1; other methods at weights of their own."
)
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Recall:
    """One method's scores after unlearning, for one model and data set."""

    method: str
    """The method's name in the paper, or UNTOUCHED."""
    setting: str
    """One of SETTINGS."""
    source: str
    """The table of the paper: MAIN_SOURCE or FURTHER_SOURCE."""
    forget: Share
    """ROUGE-L recall of the facts to forget, [0, 1]."""
    retain: Share
    """ROUGE-L recall of the retained facts, [0, 1]."""
    forget_sd: Share | None = None
    """Standard deviation of `forget` over three seeds; None where not given, as for the fields below."""
    retain_sd: Share | None = None
    """Standard deviation of `retain` over three seeds."""
    forget_cosine: Share | None = None
    """Cosine of MiniLM embeddings of reply and answer, facts to forget."""
    retain_cosine: Share | None = None
    """The same for retained facts."""

    def __post_init__(self) -> None:
        if self.setting not in SETTINGS:
            raise ValueError(f"{self.setting!r} is none of {', '.join(SETTINGS)}")

    @property
    def our_name(self) -> str:
        """The method's name in a run's configuration."""
        return OUR_NAMES.get(self.method, self.method.lower().replace(" ", "-"))

    @property
    def unusable(self) -> bool:
        """Whether the paper itself flags the resulting model as unusable."""
        return self.method in UNUSABLE


@dataclass(frozen=True)
class Paraphrased:
    """One method's ROUGE-L recall of DUET's paraphrased questions, facts to forget, by tier."""

    model: str
    """One of PAPER_MODELS."""
    method: str
    """The method's name in the paper."""
    rare: Share
    popular: Share

    def __post_init__(self) -> None:
        if self.model not in PAPER_MODELS:
            raise ValueError(f"{self.model!r} is none of {', '.join(PAPER_MODELS)}")


@dataclass(frozen=True)
class Printed:
    """A table as it was printed."""

    title: str
    source: str
    """The part of the paper."""
    section: str
    """The section of METHODS, our notes on the paper, that quotes it."""
    head: tuple[str, ...]
    """Column titles; the first column names the rows."""
    rows: tuple[tuple[str, ...], ...]
    """Cells as printed, as many in each row as in `head`."""
    note: str = ""
    """What to know about the numbers."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"row {row[:1]} has {len(row)} cells, the head {len(self.head)}")

    @property
    def table(self) -> Table:
        """The table; its note begins with the part of the paper."""
        return Table(self.title, self.head, self.rows, f"{PAPER}, {self.source}. {self.note}".strip())


def recalls(setting: str) -> list[Recall]:
    """Every method's recall for one of SETTINGS, the untouched model first."""
    return _recalls()[setting]


def paraphrased(model: str) -> dict[str, dict[str, float]]:
    """Method -> tier -> recall of DUET's paraphrased questions, for one of PAPER_MODELS."""
    return {row.method: {"rare": row.rare, "popular": row.popular} for row in _paraphrased()[model]}


@cache
def tables() -> tuple[Table, ...]:
    """Every other table and set of numbers that the paper gives, as printed."""
    return tuple(printed.table for printed in read_json("published/tables.json", tuple[Printed, ...]))


@cache
def _recalls() -> dict[str, list[Recall]]:
    rows = read_csv("published/recalls.csv", Recall)
    return {setting: [row for row in rows if row.setting == setting] for setting in SETTINGS}


@cache
def _paraphrased() -> dict[str, list[Paraphrased]]:
    rows = read_csv("published/paraphrased.csv", Paraphrased)
    return {model: [row for row in rows if row.model == model] for model in PAPER_MODELS}
