"""Every number of a run under stable names, for programs: one JSON object.

No text of a fact, no prompt and no reply is in it; facts appear by their ids, or by salted hashes.
`assets/docs/api.md` documents the names; they stay, and new ones may come.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from adapop.facts.fact import GROUPS
from adapop.report import redaction
from adapop.report.record import Record, read_record
from adapop.runs.rows import epoch_row, measured_rows, recall_columns, step_row
from adapop.runs.run import Run
from adapop.training.events import EpochDone, RunDone, RunStarted, StepDone

SCHEMA = "adapop-run/1"
Row = dict[str, Any]


@dataclass(frozen=True)
class Numbers:
    """The numbers of one run; null, and not 0, for what was not measured."""

    schema: str
    """`SCHEMA`."""
    run: str
    """The run's id; "" if redacted."""
    state: str
    """As `Run.state`."""
    versions: Mapping[str, str]
    """Version of Python and of each library, by name."""
    config: Row
    """The settings, by their names in `RunConfig`."""
    weights: Row | None
    """`commit` and `sha256` of the original model's weights."""
    facts: Row
    """`name` of the set, its `sha256`, and the number of facts in each group."""
    seconds: float | None
    """Seconds since the last start, without loading."""
    steps: tuple[Row, ...]
    """One row a step: as `Run.rows("steps")`."""
    epochs: tuple[Row, ...]
    """One row an epoch: as `Run.rows("epochs")`."""
    measured: tuple[Row, ...]
    """Means by `epoch` (0 is the original), group, form and tier: as `Run.rows("measured")`."""
    gap: Row | None
    """Recall of popular minus rare facts in held-out rewordings: `mean`, `low`, `high`."""
    by_fact: tuple[Row, ...]
    """Each fact to forget: `fact`, `tier`, `score`, `beta`, its recall `before` and `after`, as
    trained and `_reworded`, and its `verdict`."""
    distance: Row | None
    """Distance to a model that never read the facts."""
    leaks: tuple[Row, ...]
    """The leak matrix: each `group`, `tier` and `kind` of prompt, with both models' means."""
    recovery: Mapping[str, Any]
    """Results of the recovery probes, by name."""


def numbers_of(run: Run, redacted: bool = False) -> Numbers:
    """The numbers of a run. redacted: facts by salted hashes, and no id of the run. Raises
    RunError, ConfigError: as `read_record`."""
    record = read_record(run)
    if redacted:
        (record,) = redaction.redacted([record], ())
    steps = next((event.steps for event in record.of_kind(RunStarted)), 0)
    done = record.of_kind(RunDone)
    counts = {group: len(getattr(record.facts, group)) for group in GROUPS}
    sha256 = None if redacted else record.facts.sha256
    gap = record.after.gap if record.after else None
    return Numbers(
        schema=SCHEMA,
        run="" if redacted else run.id,
        state=record.state,
        versions=record.versions,
        config=asdict(record.config),
        weights=asdict(record.weights) if record.weights else None,
        facts={"name": record.facts.name, "sha256": sha256, **counts},
        seconds=done[-1].seconds if done else None,
        steps=tuple(step_row(event, steps) for event in record.of_kind(StepDone)),
        epochs=tuple(map(epoch_row, record.of_kind(EpochDone))),
        measured=tuple(measured_rows(record.events)),
        gap=asdict(gap) if gap else None,
        by_fact=tuple(_by_fact(record)),
        distance=asdict(record.distance) if record.distance else None,
        leaks=tuple(map(asdict, record.matrix.cells)),
        recovery=record.recovery,
    )


def _by_fact(record: Record) -> list[Row]:
    facts, betas = record.facts.forget, record.betas or {}
    rows = [
        {"fact": fact.id, "tier": fact.tier, "score": fact.score, "beta": betas.get(fact.id)}
        | {"verdict": record.verdicts.get(fact.id)}
        for fact in facts
    ]
    for name, values in recall_columns(record.before, record.after).items():
        for place, row in enumerate(rows):
            row[name] = values[place] if values else None
    return rows
