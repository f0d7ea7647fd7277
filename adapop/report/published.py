"""The numbers that the AdaPop paper published (Borisiuk et al. 2026), from `assets/published/`.

They are of other models (7 to 8 billion parameters), other facts (DUET, RWKU) and other training,
and were not measured by this app. So they are shown beside its numbers, never mixed with them. The
paper's "retain" is the set trained on.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from adapop.assets import Share, read_csv, read_json
from adapop.report.table import Table

PAPER = "Borisiuk et al. 2026"
PAPER_TITLE = "The More Popular, The Harder to Forget: Adaptive Popularity for LLM Unlearning"
ARXIV = "2608.14229"
PAPER_PAGE = f"https://arxiv.org/abs/{ARXIV}"
PAPER_MODELS = {
    "Llama": "Llama-3.1-8B-Instruct",
    "Qwen": "Qwen2.5-7B-Instruct",
    "Gemma": "Gemma-7B-it",
}
Setting = Literal["Llama DUET", "Llama RWKU", "Qwen DUET", "Qwen RWKU", "Gemma DUET", "Gemma RWKU"]
SETTINGS = get_args(Setting)
UNTOUCHED = "no unlearning"
MAIN_SOURCE, FURTHER_SOURCE = "main results", "eleven further methods"
# Methods that the paper flags as unusable: they damage retained knowledge as well.
UNUSABLE = ("GA", "GD", "FLAT", "CE-U")
OUR_NAMES = {"CE-U": "ceu"}  # other names differ only in case and spaces
RETAIN_NOTE = (
    "Retain is the set that was trained to be kept. Where its recall is higher than before "
    "unlearning, this training raised it. AdaPop ran at α₀ = 0.5; GD, NPO and WGA at α = 1; other "
    "methods at weights of their own."
)


@dataclass(frozen=True)
class Recall:
    """One method's scores after unlearning, for one model and data set.

    method: its name in the paper, or `UNTOUCHED`. setting: one of `SETTINGS`. source: `MAIN_SOURCE`
    or `FURTHER_SOURCE`. forget, retain: ROUGE-L recall, [0, 1]. *_sd: standard deviation over three
    seeds. *_cosine: cosine of MiniLM embeddings of reply and answer. None if not noted."""

    method: str
    setting: Setting
    source: str
    forget: Share
    retain: Share
    forget_sd: Share | None = None
    retain_sd: Share | None = None
    forget_cosine: Share | None = None
    retain_cosine: Share | None = None

    @property
    def our_name(self) -> str:
        """The method's name in a run's configuration."""
        return OUR_NAMES.get(self.method, self.method.lower().replace(" ", "-"))

    @property
    def unusable(self) -> bool:
        """Whether the paper flags the resulting model as unusable."""
        return self.method in UNUSABLE


@dataclass(frozen=True)
class Paraphrased:
    """One method's ROUGE-L recall by tier, DUET's facts to forget, paraphrased questions. model:
    one of `PAPER_MODELS`. method: its name in the paper."""

    model: Literal["Llama", "Qwen", "Gemma"]
    method: str
    rare: Share
    popular: Share


@dataclass(frozen=True)
class Further:
    """A number that the paper printed beside the recalls. place: a setting, one of `PAPER_MODELS`,
    or a benchmark and group for all three models. method: as in `Recall`. measure: "reworded",
    "attacked" (recall), "mmlu", "hellaswag" (right answers), all [0, 1], or an internal metric."""

    place: str
    method: str
    measure: str
    value: float


@dataclass(frozen=True)
class Printed:
    """A table as printed. source: the part of the paper. head: column titles; the first column
    names the rows. rows: one cell per column. note: remarks on the numbers."""

    title: str
    source: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"row {row[:1]} has {len(row)} cells, the head {len(self.head)}")

    @property
    def table(self) -> Table:
        """The table; its note begins with its place in the paper."""
        note = f"{PAPER}, {self.source}. {self.note}".strip()
        return Table(self.title, self.head, self.rows, note)


@cache
def recalls(setting: str) -> list[Recall]:
    """Every method's recall for one of SETTINGS, the untouched model first."""
    return [row for row in read_csv("published/recalls.csv", Recall) if row.setting == setting]


@cache
def paraphrased(model: str) -> dict[str, dict[str, float]]:
    """Method -> tier -> recall of DUET's paraphrased questions, for one of PAPER_MODELS."""
    rows = [row for row in read_csv("published/paraphrased.csv", Paraphrased) if row.model == model]
    return {row.method: {"rare": row.rare, "popular": row.popular} for row in rows}


@cache
def further(place: str, method: str) -> dict[str, float]:
    """Measure -> the paper's number at a place. method: by our name."""
    rows = [row for row in read_csv("published/further.csv", Further) if row.place == place]
    return {row.measure: row.value for row in rows if row.method.lower() == method}


@cache
def tables() -> tuple[Table, ...]:
    """All other tables and numbers of the paper, as printed."""
    return tuple(one.table for one in read_json("published/tables.json", tuple[Printed, ...]))
