"""The inputs of a run except its model, saved for comparison before it is resumed or asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapop.assets import parse_json
from adapop.config.run import RunConfig
from adapop.errors import RunError, truncated
from adapop.facts.fact import FactSet
from adapop.facts.tiers import Tiers
from adapop.remark import Remark
from adapop.runs import files

if TYPE_CHECKING:
    from adapop.runs.run import Run

FACTS, CONFIG, BETAS, ABOUT = "facts.jsonl", "config.json", "betas.json", "run.json"
DECISIVE = (CONFIG, FACTS, ABOUT)  # every run has them from the start
# A model's folder may move: its weights are compared instead, see `adapop.runs.weights`.
MOVABLE = {"model", "unlearned", "oracle", "device"}


@dataclass(frozen=True)
class About:
    """The file run.json. Older runs have neither config nor betas in it."""

    facts: str
    """Name of the set."""
    notes: tuple[str | Remark, ...]
    """The set's notes."""
    versions: dict[str, str]
    """Versions of Python and of each library."""
    sha256: str = ""
    """SHA-256 of the set, see `FactSet.sha256`."""
    config: dict[str, Any] | None = None
    """The settings in config.json."""
    betas: str | None = None
    """SHA-256 of betas.json, "" if there is none."""
    tiers: Tiers | None = None
    """The set's tiers; None for those of Wikidata's scale."""


def write_inputs(
    folder: Path,
    config: RunConfig,
    facts: FactSet,
    betas: Mapping[str, float] | None,
    versions: dict[str, str],
) -> None:
    """Writes everything that decides a run's numbers into its new folder. Raises RunError: the disk
    is full, or its folder cannot be written to."""
    with files.writing(folder):
        folder.mkdir(parents=True)
        facts.write(folder / FACTS)
        files.sync(folder / FACTS)
    settings = config.to_json()
    exponents = "" if betas is None else json.dumps(betas, indent=0, ensure_ascii=False)
    sums = facts.sha256, json.loads(settings), _sum(exponents.encode())
    about = About(facts.name, facts.notes, versions, *sums, facts.tiers)
    files.keep(folder / ABOUT, json.dumps(asdict(about), indent=2, ensure_ascii=False))
    if betas is not None:
        files.keep(folder / BETAS, exponents)
    files.write_text(folder / CONFIG, settings)  # last: it makes a folder a run


def check_inputs(run: Run, every: bool = True) -> None:
    """Checks that a run's facts, settings and exponents are unchanged since it was prepared, as far
    as they were recorded. every: whether to compare all facts too. Raises RunError with the names
    of those that differ, or for a damaged or missing file."""
    about, betas, changed = run.about, run.folder / BETAS, []
    if every and about.sha256 and run.given.sha256 != about.sha256:
        changed.append(f"the facts in {FACTS}")
    exponents = betas.read_bytes() if betas.exists() else b""
    if about.betas is not None and about.betas != _sum(exponents):
        changed.append(f"the exponents in {BETAS}")
    if about.config is not None:
        with files.reading(run.folder / CONFIG):
            now, then = parse_json((run.folder / CONFIG).read_bytes()), about.config
            names = sorted((now.keys() | then.keys()) - MOVABLE)
        for name in names:
            if now.get(name) != then.get(name):
                change = f"{truncated(then.get(name))} → {truncated(now.get(name))}"
                changed += [f"{name} in {CONFIG} ({change})"]
    if changed:
        what = f"was prepared with other files than its folder has now: {', '.join(changed)}"
        fix = "Put the files back as they were, or start a new run with the new ones."
        raise RunError(f"Run {run.id} {what}.", fix)


def _sum(content: bytes) -> str:
    return (content and hashlib.sha256(content).hexdigest()) or ""
