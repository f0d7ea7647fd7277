"""What is asked of several models, and what is found: each reply token by token, and samples.

Plain data without torch; `tokenwise` and `draws` compute it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from adapop.errors import ConfigError
from adapop.probes.intervals import Interval, wilson
from adapop.probes.prompts import Asked
from adapop.probes.verdict import verdict

ORIGINAL, UNLEARNED, ORACLE = "original", "unlearned", "oracle"
MOST_SAMPLES, MOST_TEMPERATURE, MOST_TOKENS = 64, 5.0, 256
MOST_STRENGTH = 1.5


@dataclass(frozen=True)
class Question:
    """One question to all columns."""

    prompt: str
    """The question, without the chat template."""
    gold: str = ""
    """The right answer, "" if none is known."""
    begun: str = ""
    """The beginning of the answer, which every model continues."""
    ids: tuple[int, ...] = ()
    """The same as token ids, which count instead of `begun`: a token of a reply was exchanged."""
    ids_of: int = 0
    """The place of the column whose tokens `ids` are; columns of another vocabulary go on from
    their text."""
    earlier: tuple[str, ...] = ()
    """The user's earlier turns. Each model answers them itself, and reads its own replies."""


@dataclass(frozen=True)
class Drawing:
    """How samples are drawn. Raises ConfigError: a value is out of its range."""

    count: int = 16
    """Samples of each model, 1 to `MOST_SAMPLES`."""
    temperature: float = 1.0
    """Divides the logits, above 0 up to `MOST_TEMPERATURE`."""
    top_p: float = 1.0
    """Least probability of the likeliest tokens that are drawn from, above 0 up to 1."""
    seed: int = 0
    """The same for every model."""
    most: int = 32
    """Tokens of a sample, 1 to `MOST_TOKENS`."""

    def __post_init__(self) -> None:
        ranges = {
            "number of samples": (
                self.count,
                1 <= self.count <= MOST_SAMPLES,
                f"1 to {MOST_SAMPLES}",
            ),
            "temperature": (
                self.temperature,
                0 < self.temperature <= MOST_TEMPERATURE,
                f"a value above 0, up to {MOST_TEMPERATURE:g}",
            ),
            "top-p": (self.top_p, 0 < self.top_p <= 1, "a value above 0, up to 1"),
            "seed": (self.seed, 0 <= self.seed < 2**32, "0 to 4,294,967,295"),
            "length": (self.most, 1 <= self.most <= MOST_TOKENS, f"1 to {MOST_TOKENS} tokens"),
        }
        whole = ("number of samples", "seed", "length")
        for name, (value, fits, allowed) in ranges.items():
            if not fits or (name in whole and type(value) is not int):
                raise ConfigError(f"The {name} is {value}.", f"Choose {allowed}.")


@dataclass(frozen=True)
class Chosen:
    """A column that was chosen."""

    name: str
    """As the page names it."""
    kind: str
    """`ORIGINAL`, `UNLEARNED` (also of another run) or `ORACLE`."""
    folder: Path
    """Of the run whose model it is."""
    epoch: int | None = None
    """The epoch whose adapter is asked; None for the run's result."""
    strength: float = 1.0
    """How many times the adapter counts, 0 to `MOST_STRENGTH`."""


@dataclass(frozen=True)
class Likely:
    """A token that a reply could have gone on with."""

    id: int
    """Its id; what comes after it is asked with the ids before it and this one."""
    text: str
    """The token as readable text, see `tokenwise.readable`."""
    shares: tuple[float | None, ...]
    """Its probability in each column, [0, 1]; None where the vocabulary is another."""
    end: bool = False
    """Whether it ends the reply."""


@dataclass(frozen=True)
class Step:
    """One token of a reply."""

    token: Likely
    likely: tuple[Likely, ...]
    """The likeliest tokens at this place in any column, the first of every column among them."""
    right: tuple[float | None, ...]
    """Probability in each column that the right answer's first token comes next; () without one."""
    parted: bool
    """Whether the likeliest token of this column is another than the first column's; for the first
    column, than that of any column. Against a column of another vocabulary: whether the replies'
    texts part at this token."""


@dataclass(frozen=True)
class Strip:
    """One model's reply, token by token."""

    name: str
    """The column that wrote it."""
    text: str
    """The whole reply, with its given beginning."""
    begun: int
    """How many of the first steps were given, not written."""
    steps: tuple[Step, ...]
    """The last one is the end of the reply, unless it was cut off."""
    said: tuple[str, ...] = ()
    """Its replies to the earlier turns."""
    beginning: str = ""
    """The given beginning as text."""


@dataclass(frozen=True)
class Inspection:
    """All columns' replies to a question. asked: each column's reply with the original's, for the
    verdict; the first is the original with itself."""

    question: Question
    strips: tuple[Strip, ...]
    asked: tuple[Asked, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row a column, as plain data: its reply, how near it is to the right answer, and its
        steps, in which every list of shares is in the order of the columns."""
        rows = []
        for place, (strip, answers) in enumerate(zip(self.strips, self.asked, strict=True)):
            row = asdict(strip) | {"gold": answers.gold, "verdict": None}
            if place and answers.gold:
                row["verdict"] = verdict(answers).text
            for name in ("recall", "gold_rank", "gold_logprob"):
                row[name] = getattr(answers.unlearned, name)
            rows.append(row)
        return rows


@dataclass(frozen=True)
class Samples:
    """Replies of one column. greedy: the likeliest one, which stands first. gave_away: whether each
    sample gives the answer away; () without a right answer."""

    name: str
    greedy: str
    greedy_gave_away: bool | None
    texts: tuple[str, ...]
    gave_away: tuple[bool, ...] = field(default=())

    @property
    def share(self) -> Interval | None:
        """The share of samples that give the answer away, with Wilson's 95% interval."""
        if not self.gave_away:
            return None
        return wilson(sum(self.gave_away) / len(self.gave_away), len(self.gave_away))

    @property
    def row(self) -> dict[str, Any]:
        """The samples as plain data, with their share."""
        return asdict(self) | {"share": asdict(self.share) if self.share else None}


def leak_at_k(leaks: int, samples: int, k: int) -> float:
    """The chance that at least one of k samples leaks, [0, 1], from `leaks` among `samples` that
    were drawn; unbiased, as pass@k (Chen et al. 2021, arXiv 2107.03374). k: 1 to samples."""
    return 1.0 - math.comb(samples - leaks, k) / math.comb(samples, k)
