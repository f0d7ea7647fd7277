"""A run as a zip: report, tables as CSV, frames, config and facts, adapter with its card."""

import os
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

from adapop.errors import RunError, named_place
from adapop.facts.fact import GROUPS
from adapop.facts.formulas import as_csv
from adapop.probes.prompts import NotApplicable
from adapop.progress import Progress
from adapop.report import redaction, settings
from adapop.report.card import unmeasured
from adapop.report.export import Model, write_model
from adapop.report.page import HALF_CHARACTER, rendered
from adapop.report.record import Record, described_run, read_record
from adapop.report.tables import subject_table
from adapop.runs.delivered import all_kept, lost_adapter, why_no_adapter
from adapop.runs.questions import KINDS, everything
from adapop.runs.rows import measured_rows, probe_row
from adapop.runs.run import FRAMES, Run
from adapop.training.events import EpochDone
from adapop.training.frames import to_json

# what each file is, in the order of the README, which names those that are there
ABOUT = {
    "report.html": "the report: open it in a browser, offline too",
    "facts.csv": "every fact, a row each, with its verdict",
    "measured.csv": "every measurement",
    "subjects.csv": "how many facts of each subject are still answered",
    "epochs.csv": "the controller's numbers after each epoch",
    "probes.csv": "every prompt that was asked, a row each",
    FRAMES: "how likely each answer was at each moment of training",
    "questions.csv": "what was asked on Probe, with the replies; also as questions.json",
    settings.FACTS_FILE: "the facts as the run read them",
    settings.CONFIG_FILE: "the settings",
    "command.txt": "repeats the run, in the folder with config.json and facts.jsonl",
    "requirements.txt": "the versions of the libraries",
    "adapter/": "the trained weights, with a model card",
}
IN_CLEAR = """\
This archive contains the facts in clear: questions, answers, prompts and replies. To share results
without them, tick Redacted beside "Make the report", or write `report --redacted`.
"""
REDACTED = """\
This archive is redacted: it contains no question, answer, subject, prompt or reply in clear. Each
fact and each subject is named by a hash with a random salt. The salt is stored nowhere, so hashes
of two reports cannot be compared. The rows of facts.csv keep the order of the run's facts: whoever
has the run can tell which row is which fact.
"""
CHANGED = """
Changed: scores are rounded to one digit and exponents (beta) to one decimal, because an exact score
can be looked up. Someone who has the model and guesses a fact may still recognise its numbers.

Left out, because they cannot be redacted: the facts (facts.jsonl) and their SHA-256, config.json
and the command that repeats the run, the texts of prompts, replies, messages and notes, the reasons
why a prompt was not asked, and the adapter, which can be asked what it still knows.
"""
FACT_COLUMNS = ("question", "answer", "subject", "relation", "tier", "score", "score_source")


def write_archive(
    run: Run,
    out: str | Path,
    title: str = "",
    progress: Progress | None = None,
    measure: bool = True,
    *,
    redacted: bool = False,
    by: str = "",
) -> Path:
    """Writes the zip atomically, replacing what was there; without a finished epoch it has no
    adapter. title: see `write_report`. The files name models and sets without their paths on this
    machine. In CSV, text that a spreadsheet would run as a formula begins with an apostrophe; JSON
    is exact. measure: whether the adapter is loaded from its file and measured, if it was not
    before; if not, its card says so. redacted, by: see `write_report`; a redacted zip has neither
    the adapter nor what repeats the run. Raises RunError: there is no run, it is of another
    version, or the file cannot be written. ConfigError: as `write_report`. ModelError, Stopped: of
    the measurement."""
    record, out = read_record(run), Path(out)
    if redacted:
        (record,) = redaction.redacted([record], (title, by))
    part = out.with_name(f"{out.name}.part")
    with TemporaryDirectory() as folder, named_place(out, RunError):
        adapter = Path(folder)
        about = ""
        if run.last_epoch and not redacted:
            if why := why_no_adapter(run):
                way = "" if lost_adapter(run) else "; `export --merged` writes the whole model"
                about = _wrapped(f"There is no adapter, because {why}{way}.")
            else:
                model = Model(run, record, "adapter", measure=measure)
                numbers = write_model(model, adapter, progress or Progress())
                about = "" if numbers else _wrapped(*unmeasured())
                record = replace(record, delivered=all_kept(run))  # with what was just measured
        texts = _texts(run, record, title, redacted, by)
        names = () if redacted else (settings.FACTS_FILE, FRAMES)
        whole = [path for name in names if (path := run.folder / name).exists()]
        held = {*texts, *(path.name for path in whole)}
        held |= {"adapter/"} if any(adapter.iterdir()) else set()
        texts = {"README.txt": _readme(record, held, redacted, by) + about, **texts}
        try:
            _pack(part, texts, whole, adapter)
            os.replace(part, out)
        finally:
            part.unlink(missing_ok=True)  # half a zip would only take up space
    return out


def _texts(run: Run, record: Record, title: str, redacted: bool, by: str) -> dict[str, str]:
    """Name of each file of the zip that is made of the record -> its text; no table is empty."""
    tables = {"facts": _facts(record), "measured": measured_rows(record.events)}
    tables |= {"subjects": _subjects(record), "epochs": _epochs(record), "probes": _probes(record)}
    rows = {f"{name}.csv": list(table) for name, table in tables.items()}
    texts = {"report.html": rendered([record], title, by)}
    texts |= {name: as_csv(of) for name, of in rows.items() if of}
    texts["requirements.txt"] = _requirements(record.versions)
    if redacted:
        frames = "".join(f"{to_json(redaction.without_answers(one))}\n" for one in run.frames())
        texts |= {FRAMES: frames} if frames else {}
    else:
        texts["command.txt"] = settings.COMMAND + "\n"
        texts[settings.CONFIG_FILE] = record.config.to_json()
        if questions := everything(run):
            texts |= {f"questions.{kind}": write(questions) for kind, write in KINDS.items()}
    return texts


def _pack(part: Path, texts: Mapping[str, str], whole: Iterable[Path], adapter: Path) -> None:
    """whole: files that go in as they are."""
    # the files' dates may lie before 1980, where a zip's begin: a clock was not set
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        for path in whole:
            archive.write(path, path.name)
        for path in sorted(adapter.iterdir()):
            archive.write(path, f"adapter/{path.name}")


def _readme(record: Record, held: Collection[str], redacted: bool, by: str) -> str:
    """What the zip holds, in words. held: the names of its files."""
    by = " ".join(HALF_CHARACTER.sub("\ufffd", by).split())
    head = f"Run by {by}.\n\n" if by else ""
    lines = "".join(f"{name:<18}{about}\n" for name, about in ABOUT.items() if name in held)
    about = f"{described_run(record)}, made with AdaPop Explorer.\n\n"
    first, last = (REDACTED, CHANGED) if redacted else (IN_CLEAR, "")
    return f"{head}{about}{first}\n{lines}{last}"


def _wrapped(*sentences: str) -> str:
    """A paragraph of lines of at most 100 characters; each sentence begins a line."""
    return "\n" + "".join(f"{line}\n" for one in sentences for line in wrap(one, 100))


def _facts(record: Record) -> Iterator[dict[str, object]]:
    betas = record.betas or {}
    for group in GROUPS:
        for fact in getattr(record.facts, group):
            of_fact = {name: getattr(fact, name) for name in FACT_COLUMNS}
            beta = betas.get(fact.id) if group == "forget" else None
            verdict = record.verdicts.get(fact.id, "")
            yield {"id": fact.id, "group": group, **of_fact, "beta": beta, "verdict": verdict}


def _epochs(record: Record) -> Iterator[dict[str, object]]:
    """The controller's rows, without the run's id: the id would give control over the run."""
    for event in record.of_kind(EpochDone):
        row = {"epoch": event.epoch, "time": event.time, **asdict(event.row)}
        yield row | {"drift_from_start": event.drift_from_start}


def _subjects(record: Record) -> Iterator[dict[str, object]]:
    """`tables.subject_table` whole; nothing where each subject has one fact."""
    if table := subject_table(record):
        yield from (dict(zip(table.head, row)) for row in table.rows)


def _probes(record: Record) -> Iterator[dict[str, object]]:
    """A row per prompt with both replies, then one per prompt not asked, with the reason."""
    not_asked = (probe for probe in record.probes if isinstance(probe, NotApplicable))
    return map(probe_row, (*record.rows, *not_asked))


def _requirements(versions: Mapping[str, str]) -> str:
    """Library versions in pip's format."""
    own = {"python": "Python", "adapop": "AdaPop Explorer"}
    lines = [f"# {title} {versions[name]}" for name, title in own.items() if name in versions]
    lines += [f"{name}=={version}" for name, version in versions.items() if name not in own]
    return "\n".join(lines) + "\n"
