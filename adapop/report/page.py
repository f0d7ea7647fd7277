"""The report as one self-contained HTML page; templates escape every value."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from markupsafe import Markup

from adapop.errors import RunError, named_place
from adapop.probes.verdict import RULES
from adapop.report import card, figures, redaction, settings, story, tables
from adapop.report.comparison import Comparison, comparison
from adapop.report.distance import distance_chart, distance_sentence, run_tables
from adapop.report.published import PAPER_PAGE
from adapop.report.record import Record, read_record
from adapop.report.recovery import came_back, recovery_figure, recovery_sentence, recovery_table
from adapop.report.table import percent
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Measured, RunStarted, StepDone

HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # a lone surrogate, which no file can hold


def write_report(
    runs: Run | Sequence[Run],
    out: str | Path,
    title: str = "",
    *,
    redacted: bool = False,
    by: str = "",
) -> Path:
    """Writes one HTML file about a run, or the comparison of several with each of them. It opens
    offline and loads nothing from a server. title: "" for the run's own, or "N runs compared".
    redacted: facts appear by salted hashes, and no text of theirs, no prompt and no reply is in the
    file. by: who made the run; "" leaves the line out.
    Raises RunError: there is no run, a folder is no run's or of another version, or the file cannot
    be written. ConfigError: a run's configuration is invalid, or title or by say a text of facts
    that are to be redacted."""
    runs, out = [runs] if isinstance(runs, Run) else runs, Path(out)
    if not runs:
        raise RunError("There is no run to report on.", "`python -m adapop runs` lists the runs.")
    records = [read_record(run) for run in runs]
    records = redaction.redacted(records, (title, by)) if redacted else records
    page = rendered(records, title, by)
    with named_place(out, RunError):
        out.write_text(page, encoding="utf-8")
    return out


def rendered(records: Sequence[Record], title: str = "", by: str = "") -> str:
    """The page's HTML, for at least one run. title, by: see `write_report`."""
    title, by = (HALF_CHARACTER.sub("\ufffd", text) for text in (title, by))
    templates = card.templates()
    place = count()
    results = comparison(records) if len(records) > 1 else None

    def draw(figure: figures.Figure) -> Markup:
        return Markup(figures.as_html(figure, library=next(place) == 0))

    return templates.get_template("page.html").render(
        title=title or (records[0].title if len(records) == 1 else f"{len(records)} runs compared"),
        by=by.strip(),
        redacted=any(record.redacted for record in records),
        compared=_compared(results) if results else None,
        runs=[
            _chapter(record)
            | {"heading": results.heading(record) if results else "", "place": number}
            for number, record in enumerate(records, start=1)
        ],
        rules=RULES,
        metrics=tables.METRICS,
        paper=PAPER_PAGE,
        tiers=list(dict.fromkeys(one.facts.tiers.text for one in records if _has_scores(one))),
        draw=draw,
        leaks=story.leaks,
        percent=percent,
        contents=_contents(records, results),
    )


def _has_scores(record: Record) -> bool:
    """Whether a fact to forget has a score: else its set has no tiers."""
    return any(fact.score is not None for fact in record.facts.forget)


def _contents(records: Sequence[Record], results: Comparison | None) -> list[tuple[str, str]]:
    """Table of contents, as (name, anchor) pairs. results: the comparison, None for one run."""
    if results:
        chapters = [(results.heading(one), f"run{i}") for i, one in enumerate(records, start=1)]
        return [("The runs side by side", "compared"), *chapters, ("What the words mean", "words")]
    (record,) = records
    probed, measured = bool(record.matrix.cells), bool(record.of_kind(Measured))
    places = [
        ("Verdicts", "verdicts", probed),
        ("Epoch by epoch", "epochs", measured),
        ("Where it leaks", "leaks", probed),
        ("From inside", "inside", bool(record.recovery)),
        ("In detail", "details", True),
        ("What the words mean", "words", True),
    ]
    there = [(name, place) for name, place, there in places if there]
    return [(name, place if place == "words" else f"{place}1") for name, place in there]


def _compared(results: Comparison) -> dict:
    """Template values of a comparison, with figures where something was measured."""
    drawn = {
        "gap": figures.compare_runs(results.outcomes),
        "cost": figures.forget_against_holdout(results.outcomes, results.form_words),
    }
    return {"comparison": results, "pictures": drawn if results.outcomes else None}


def _chapter(record: Record) -> dict:
    before, after = record.before, record.after
    subjects = tables.subject_table(record)
    return {
        "record": record,
        "sha256": record.facts.sha256,
        "about": story.about(record),
        "done": story.done(record),
        "outcome_lines": story.outcome_lines(record),
        "still_answered": story.still_answered(record),
        "command": settings.COMMAND,
        "repeats": settings.repeats(record.config),
        "settings": settings.all_settings(record.config, record.prompting),
        "origin": card.origin(record),
        "loading": card.loading(record, "adapter"),
        "popularity": story.popularity(record.facts),
        "training": _training(record),
        "recall": tables.recall_table(before, after) if before and after else None,
        "subjects": subjects and replace(subjects, rows=subjects.rows[: tables.MOST_SUBJECTS]),
        "delivered": record.delivered and tables.delivered_table(record.delivered),
        "numbers": tables.metrics_table(after) if after else None,
        "oracle": record.distance
        and {
            "picture": distance_chart(record.distance, record.facts.forget),
            "sentence": distance_sentence(record.distance),
        },
        "more": run_tables(record),
        "probing": _probing(record) if record.matrix.cells else None,
        "how_to_recover": story.how_to_recover(record),
        "recovery": [
            {
                "table": recovery_table(name, result),
                "sentence": recovery_sentence(name, result),
                "back": came_back(result, record.facts.forget),
                "picture": recovery_figure(name, result),
            }
            for name, result in record.recovery.items()
        ],
        "questions": tables.question_table(record.questions) if record.questions else None,
        "not_asked": tables.not_asked_table(record.matrix),
    }


def _training(record: Record) -> dict[str, figures.Figure]:
    config, epochs, starts = record.config, record.of_kind(EpochDone), record.of_kind(RunStarted)
    pictures = {}
    if epochs:
        pictures["controller"] = figures.controller_chart(epochs, config)
    if steps := record.of_kind(StepDone):
        pictures["losses"] = figures.loss_chart(steps, starts[-1].steps)
    if measured := record.of_kind(Measured):
        pictures["recall"] = figures.recall_chart(measured, config.epochs)
    if record.before and record.after:
        pictures["outcome"] = figures.outcome_chart(record.before, record.after)
    return pictures


def _probing(record: Record) -> dict:
    return {
        "heatmap": figures.leak_heatmap(record.matrix, "forget"),
        "intervals": figures.recall_by_kind(record.matrix, "forget"),
        "leaks": tables.leak_table(record.matrix, tables.OVERVIEW),
        "verdicts": figures.verdict_bars(record.verdict_counts()),
        "counts": tables.verdict_table(record.verdict_counts()),
        "examples": story.examples(record),
    }
