"""The upload of a table: a template of one, which column holds what, and the facts to retain with
it."""

import csv
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain, zip_longest
from pathlib import Path

import gradio as gr

from adapop.errors import AdaPopError, DataError, ScoresError, truncated
from adapop.facts import reader
from adapop.facts.fact import SANDBOX, FactSet, Problem
from adapop.facts.forms import COLUMNS, columns_of, guessed
from adapop.facts.formulas import BOM, plain
from adapop.facts.retain import with_retain_rows
from adapop.facts.tables import FORMATS
from adapop.facts.world import sandbox_facts
from adapop.limits import max_facts
from adapop.runs import files
from adapop.ui import texts
from adapop.ui.access import refusing
from adapop.ui.parts import html
from adapop.ui.parts.download import served_folder
from adapop.ui.saved import OWN
from adapop.ui.session import Session
from adapop.ui.wiring import EACH, IN_TURN, LAST_STAYS

TYPED_ABOUT = (
    "Type one fact a row, or paste rows of a spreadsheet or a CSV, with or without the names of "
    "their columns."
)
ABOUT = (
    "CSV, JSON, JSONL, Parquet, Excel or OpenDocument, one fact a row, at most {rows:,} rows: "
    "`question`, `answer`, and a popularity `score` of at least 0. Optional: `id`, `subject`, "
    "`relation`, `paraphrases` (separated by |), `alternates` (wrong answers, separated by |), "
    "`group` (forget, retain or holdout; empty means forget). Private facts need no score. Upload "
    "them only to an app that you run yourself. The template has facts that the sandbox knows."
)
BAD_SCORES = (
    "Correct the rows listed below, or tick “Leave out rows with bad scores”. Popular facts may be "
    "among them."
)
DROP_BAD = "Leave out rows with bad scores"
MAPPING_ABOUT = "The column that each field is read from. Change it if the guess is wrong."
RETAIN_CHOICES = [
    ("The file's own, else included facts", "own"),
    ("Every third of these facts: kept, not forgotten", "split"),
    ("The sandbox world's", "sandbox"),
    ("The sandbox facts most like these", "neighbours"),
    ("A second table of mine", "upload"),
]
SANDBOX_RETAINED = (
    "In a run of a larger language model, facts about cities take the place of the sandbox's."
)
RETAIN_ABOUT = (
    "The model is trained to keep the retain set. Some facts are always held out and never trained "
    "on: they show what unlearning costs. " + SANDBOX_RETAINED
)

PROBLEMS_SHOWN, DROPPED = 10, "Rows that were dropped"
# fields that several columns may hold, such as paraphrase_1 and paraphrase_2
LISTED = ("paraphrases", "alternates", "accepted", "parts")
FIELDS = ("question", "answer", "subject", "relation", "object", "score", "group", *LISTED)
NONE = "—"
TEMPLATE_FACTS = 24
MOST_TYPED = 50_000  # characters of typed facts
MOST_ROWS, MOST_COLUMNS = 500, 20  # of the grid in which they are typed: more are slow
TYPED_NAMES = "question", "answer", "score", "paraphrases"
HEADINGS = "Question", "Answer", "Popularity score", "Rewording (optional)"


def upload_about() -> str:
    """The rules for an upload, with this machine's size limit."""
    return ABOUT.format(rows=max_facts())


def shown_for(source: str) -> gr.Group:
    """The upload: in sight for the visitor's own set."""
    return gr.Group(visible=True if source == OWN else "hidden")


class NoFile(DataError):
    """No file has been chosen yet; this is not a mistake."""


@dataclass(frozen=True)
class UploadForm:
    """The components of an upload. group: around all. columns: as in `FIELDS`, inside `mapping`.
    run: starts a run on the facts, see `RunScreen`."""

    group: gr.Group
    file: gr.File
    template: gr.DownloadButton
    typed: gr.HTML
    mapping: gr.Accordion
    columns: tuple[gr.Dropdown, ...]
    retain: gr.Dropdown
    retain_file: gr.File
    drop_bad: gr.Checkbox
    run: gr.Button

    @property
    def files(self) -> list[gr.Component]:
        """The inputs of both files, and the choice of the facts to retain."""
        return [self.file, self.retain, self.retain_file]

    @property
    def chosen(self) -> list[gr.Component]:
        """The inputs of `UploadEvents.read`: all that decides which facts the upload gives."""
        return [*self.files, self.drop_bad, *self.columns]


def build() -> UploadForm:
    """Lays out the upload, hidden but present on the page: `ownSet` of `assets/page.js` opens its
    file dialog."""
    with gr.Group(visible="hidden") as group:
        # not before there are facts: on a phone the file area would be out of sight
        waits = dict(variant="primary", visible=False, elem_id="run-own-facts")
        run = gr.Button("Run on these facts", **waits)
        table = dict(file_types=list(FORMATS), file_count="single")
        file = gr.File(label="A table of facts", height=140, elem_id="upload", **table)
        with gr.Accordion("Or type or paste facts", open=False, elem_id="typed-facts"):
            gr.Markdown(TYPED_ABOUT)
            typed = html.drawn(grid_values(), "typed-grid", "typed-grid", "typedFacts")
        template = gr.DownloadButton("Download a template", size="sm", elem_id="template")
        unseen = dict(open=False, visible=False, elem_id="columns")
        with gr.Accordion("Which column is what", **unseen) as mapping:
            gr.Markdown(MAPPING_ABOUT)
            with gr.Row():
                one, several = dict(value=NONE), dict(value=[], multiselect=True)
                kinds = {field: several if field in LISTED else one for field in FIELDS}
                columns = tuple(
                    gr.Dropdown([NONE], label=field, min_width=130, **kind)
                    for field, kind in kinds.items()
                )
        words = dict(label="Retain set", info=RETAIN_ABOUT, elem_id="retain-set")
        retain = gr.Dropdown(RETAIN_CHOICES, value="own", **words)
        table |= dict(height=120, visible=False, elem_id="retain-upload")
        retain_file = gr.File(label="A table of the retain set", **table)
        drop_bad = gr.Checkbox(False, label=DROP_BAD, visible=False, elem_id="drop-bad")
    return UploadForm(
        group, file, template, typed, mapping, columns, retain, retain_file, drop_bad, run
    )


@dataclass(frozen=True)
class UploadEvents:
    """The events of an upload: they set the session's facts, or explain in the notes why not."""

    form: UploadForm
    notes: gr.HTML
    session: Session

    def wire(self, source: gr.Radio, choices: Sequence[gr.Component]) -> None:
        """Wires the upload. source: of the set. choices: controls reset for every new set."""
        form, session = self.form, self.session

        def offered(value: str):
            return template_path() if value == "own" else gr.skip()

        def retaining(retain: str) -> gr.File:
            return gr.File(visible=retain == "upload")

        source.change(offered, source, form.template, **EACH)
        # a choice made for another set is not a choice for this one
        gr.on([source.change, form.file.upload], lambda: ("error", ""), None, list(choices), **EACH)
        outputs = [self.notes, form.drop_bad, *session.of_the_set]
        last = LAST_STAYS | IN_TURN
        parts = [form.mapping, *form.columns, *outputs]
        picks = [form.file.upload, form.file.clear]
        gr.on(picks, self.accept, [source, *form.files], parts, **last)

        def as_file(event: gr.EventData) -> str:  # it comes from the browser
            with refusing():
                return typed_file(getattr(event, "typed", None))

        written = form.typed.submit(as_file, None, form.file, **IN_TURN)
        written.success(self.accept, [source, *form.files], parts, **IN_TURN)
        for choice in (*form.columns, form.drop_bad):
            choice.input(self.read, form.chosen, outputs, **last)
        again = [session.restored, *form.chosen]
        second = form.retain.input(retaining, form.retain, form.retain_file, **last)
        second.then(self.retained_again, again, outputs, **IN_TURN)
        picks = [form.retain_file.upload, form.retain_file.clear]
        gr.on(picks, self.retained_again, again, outputs, **last)

    def accept(self, source: str, file: str | None, retain: str, retain_file: str | None) -> dict:
        """Updates for a new file: its columns, their guessed fields, and its facts if the upload is
        still chosen."""
        unasked = {self.form.drop_bad: gr.Checkbox(False, visible=False)}
        try:
            table = table_of(file)
        except AdaPopError as error:
            hidden = {self.form.mapping: gr.Accordion(visible=False)}
            return {**hidden, **unasked, **(self._refused(error) if source == "own" else {})}
        names = table.columns if table else []
        guess = guessed(names)
        single = [name for name in names if " | " not in name]
        choices = [(name, name) for name in (NONE, *single)]  # one list of pairs for all of them
        reading = partial(facts_of_table, table, retain, retain_file, guess)
        facts = self._read_into_session(reading) if source == "own" else {}
        # the chooser is open where a field was not found
        unsure = bool(file) and not {"question", "answer", "score"} <= set(guess)
        mapping = {self.form.mapping: gr.Accordion(visible=bool(names), open=unsure)}
        for field, column in zip(FIELDS, self.form.columns):
            if field in LISTED:
                joined = columns_of(guess[field], names) if field in guess else []
                mapping[column] = gr.Dropdown(choices[1:], value=joined, multiselect=True)
            else:
                chosen = guess.get(field, NONE)
                joined = [(chosen, chosen)] * (chosen not in (NONE, *single))
                mapping[column] = gr.Dropdown([*choices, *joined], value=chosen)
        return mapping | unasked | facts

    def read(
        self,
        file: str | None,
        retain: str,
        retain_file: str | None,
        drop: bool,
        *columns: str | list[str],
    ) -> dict:
        """Updates after another choice of columns or rows: see `facts_chosen`."""
        chosen = file, retain, retain_file, *columns
        facts = self._read_into_session(partial(facts_chosen, *chosen, drop_bad=drop))
        return {self.form.drop_bad: gr.Checkbox(visible=drop), **facts}

    def chosen_again(self, restored: tuple[str, FactSet] | None, file: str | None, *chosen) -> dict:
        """Updates when the upload is chosen again: from its file, or from the restored set."""
        if file is None and restored and restored[0] == "own":
            return self.session.with_facts(restored[1])
        return self.read(file, *chosen)

    def retained_again(
        self, restored: tuple[str, FactSet] | None, file: str | None, *chosen
    ) -> dict:
        """Updates for other facts to retain. A restored set stays as it is: its file is gone."""
        if file is None and restored and restored[0] == "own":
            return {self.notes: html.listed([texts.SET_RESTORED], "warn")}
        return self.read(file, *chosen)

    def _read_into_session(self, reading: Callable[[], FactSet]) -> dict:
        try:
            return self.session.with_facts(reading())
        except AdaPopError as error:
            return self._refused(error)

    def _refused(self, error: AdaPopError) -> dict:
        title, fix, offer = DROPPED, error.fix, {}
        if isinstance(error, ScoresError):
            title, fix = "Rows with bad scores", BAD_SCORES
            offer = {self.form.drop_bad: gr.Checkbox(False, visible=True)}
        rows = problem_lines(getattr(error, "problems", ()), title)
        kind = "calm" if isinstance(error, NoFile) else "bad"
        notes = html.listed([f"{error.message} {fix}", *rows], kind)
        return {self.notes: notes, **offer, **self.session.with_facts(None)}


def grid_values() -> dict:
    """The limits of the grid in which facts are typed, and the names by which it knows a first row
    of names."""
    names = {"questions": list(COLUMNS["question"]), "answers": list(COLUMNS["answer"])}
    rows = min(MOST_ROWS, max_facts())
    limits = {"rows": rows, "columns": MOST_COLUMNS, "characters": MOST_TYPED}
    return {"headings": HEADINGS, **names, "limits": limits}


def typed_file(text: object) -> str:
    """A file of facts that were typed or pasted: one a line, its cells separated by tabs (as from a
    spreadsheet), semicolons or commas. A first line that names no columns is a fact: question,
    answer, score, rewording. The file has a line for each of the text's, so that messages name the
    rows as they were typed. Raises DataError: there is no fact, too much text, or a column without
    a name of its own."""
    rows = _typed_rows(text if isinstance(text, str) else "")  # it comes from the browser
    first = next(filter(any, rows), None)
    if first is None:
        raise DataError("Type a fact first.", "For example: Who wrote Hamlet?, Shakespeare, 3766")
    wide = max(place for row in rows for place, cell in enumerate(row, start=1) if cell)
    is_header = {"question", "answer"} <= set(guessed(first))
    names = first if is_header else TYPED_NAMES[: max(2, wide)]
    lowered = [name.lower() for name in names]
    if repeated := next((name for name in lowered if name and lowered.count(name) > 1), ""):
        raise DataError(f"Two columns are called {truncated(repeated)!r}.", "Rename one of them.")
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = list(zip_longest(names, row, fillvalue=""))
        if nameless := next((cell for name, cell in cells if cell and not name), ""):
            message = f"Row {number} has a cell in no named column: {truncated(nameless)!r}."
            fix = "Put cells that contain commas in quotes, or name all columns in the first row."
            raise DataError(message, fix)
        is_fact = any(row) and row is not names
        lines.append(json.dumps({name: cell for name, cell in cells if name}) if is_fact else "")
    path = served_folder() / "typed.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def _typed_rows(text: str) -> list[list[str]]:
    """The cells of typed facts. Raises DataError: there is too much text."""
    if len(text) > MOST_TYPED:
        message = f"At most {MOST_TYPED:,} characters can be typed or pasted."
        raise DataError(message, "Upload a file instead.")
    start = text.lstrip("\r\n ").split("\n", 1)[0]
    separator = next((sign for sign in "\t;" if sign in start), ",")
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return [[plain(cell.strip()) for cell in row] for row in rows]


def problem_lines(problems: Sequence[Problem], title: str = DROPPED) -> list[str]:
    """How many rows have problems, and the first of these. title: the kind of problem."""
    if not problems:
        return []
    lines = [f"{title}: {len(problems):,}.", *map(str, problems[:PROBLEMS_SHOWN])]
    hidden = len(problems) - PROBLEMS_SHOWN
    return lines + ([f"… and {hidden:,} more."] if hidden > 0 else [])


def facts_chosen(
    file: str | None,
    retain: str,
    retain_file: str | None,
    *chosen: str | list[str],
    drop_bad: bool = False,
) -> FactSet:
    """The file's facts by the columns chosen on the page, in the order of `FIELDS`. drop_bad: as
    for `facts_of_table`. Raises as `facts_of_table`; DataError: the file cannot be read."""
    table = table_of(file)
    columns = _columns(table.columns, chosen) if table else {}
    return facts_of_table(table, retain, retain_file, columns, drop_bad)


def table_of(file: str | None) -> reader.Table | None:
    """The rows of an uploaded file, None without a file. Pages hold no tables: only the last one
    read is cached, others are read again. Raises DataError: the file cannot be read."""
    if not file:
        return None
    return _table(file, os.stat(file).st_mtime_ns if os.path.exists(file) else 0)


@lru_cache(1)
def _table(file: str, changed: int) -> reader.Table:
    return reader.table_of(Path(file))


def facts_of_table(
    table: reader.Table | None,
    retain: str,
    retain_file: str | None,
    columns: Mapping[str, str],
    drop_bad: bool = False,
) -> FactSet:
    """The table's facts, with facts to retain. retain: their source, of `RETAIN_CHOICES`.
    columns: field -> column. drop_bad: drops facts with an unreadable score, from both tables.

    Raises:
        ScoresError: a score cannot be read, and drop_bad is not set.
        DataError: there is no table, or one holds no usable facts.
    """
    if table is None:
        raise NoFile("No file yet.", "Upload or type facts below.")
    facts = table.facts(columns=columns, drop_bad=drop_bad)
    if retain != "upload":
        return with_retain_rows(facts, SANDBOX, retain)
    if retain_file is None:
        message = "There is no table of facts to retain yet."
        raise NoFile(message, "Upload one, or choose another retain set.")
    return with_retain_rows(facts, SANDBOX, reader.facts_of(Path(retain_file), "retain", drop_bad))


def _columns(names: Sequence[str], chosen: Sequence[str | list[str]]) -> dict[str, str]:
    """Field -> column: chosen on the page, or guessed for fields without a choice there (ids,
    sources). If the page shows no choices yet, or choices for another file, all are guessed."""
    guess = guessed(names)
    lists = {
        field: [column] if isinstance(column, str) else list(column or ())
        for field, column in zip(FIELDS, chosen)
        if column != NONE
    }
    lists = {field: columns for field, columns in lists.items() if columns}
    if not lists or not set(chain.from_iterable(lists.values())) <= set(names):
        return guess
    columns = {field: " | ".join(one) for field, one in lists.items()}
    for field in columns.keys() & guess.keys():
        if lists[field] == columns_of(guess[field], names):
            columns[field] = guess[field]
    unlisted = {field: name for field, name in guess.items() if field not in FIELDS[: len(chosen)]}
    free = {field: name for field, name in unlisted.items() if name not in columns.values()}
    return free | columns


@cache
def _template_path() -> Path:
    return served_folder() / "adapop-template.csv"


def template_path() -> str:
    """A CSV of sandbox facts, three of each score, to edit and upload. All pages share one file.
    Each call renews it, because served files are deleted after two hours."""
    path = _template_path()
    try:
        os.utime(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, _template_text())
    return str(path)


def _template_text() -> str:
    facts = sorted(sandbox_facts().forget, key=lambda fact: fact.score or 0)
    step, text = max(1, len(facts) // TEMPLATE_FACTS), io.StringIO()
    text.write(BOM)
    writer = csv.writer(text, lineterminator="\n")
    names = ["question", "answer", "score", "group", "subject", "relation", "paraphrases", "id"]
    writer.writerow(names)
    for fact in facts[::step][:TEMPLATE_FACTS]:
        cells = [fact.question, fact.answer, fact.score, "forget", fact.subject, fact.relation]
        writer.writerow([*cells, "|".join(fact.paraphrases), fact.id])
    return text.getvalue()
