"""A table of one's own: the upload, which column is what, and the facts to retain beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import gradio as gr

from adapop.errors import AdaPopError, DataError
from adapop.facts.fact import SANDBOX, FactSet, Problem
from adapop.facts.files import Table, guessed, read_facts, read_table
from adapop.facts.retain import completed
from adapop.facts.tables import FORMATS
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import given
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.parts.download import served_folder
from adapop.ui.session import Session
from adapop.ui.wiring import IN_TURN, LAST_STAYS

TEMPLATE_FACTS = 24
PROBLEMS_SHOWN = 10
FIELDS = ("question", "answer", "subject", "relation", "object", "score", "group", "paraphrases")
NONE = "—"
NO_FILE = DataError("No file yet.", "Upload a table of facts, or pick another set.")


def build(session: Session) -> tuple[gr.Group, Callable[..., None]]:
    """Lays out the upload, hidden. Returns its group and a function that wires it to what it fills."""
    with gr.Group(visible=False) as own:
        file = gr.File(
            label="A table of facts", file_types=list(FORMATS), file_count="single", height=140, elem_id="upload"
        )
        template = gr.DownloadButton("Download a template", size="sm")
        with gr.Accordion("Which column is what", open=False, visible=False, elem_id="columns") as mapping:
            gr.Markdown(texts.MAPPING_ABOUT)
            with gr.Row():
                columns = [gr.Dropdown([NONE], value=NONE, label=field, min_width=130) for field in FIELDS]
        retain = gr.Dropdown(texts.RETAIN_CHOICES, value="own", label="Facts to retain", info=texts.RETAIN_ABOUT)
        retain_file = gr.File(
            label="A table of facts to retain",
            file_types=list(FORMATS),
            file_count="single",
            height=120,
            visible=False,
            elem_id="retain-upload",
        )

    def wire(notes: gr.HTML, reset: Sequence[gr.State], source: gr.Radio, choices: Sequence[gr.Component]) -> None:
        quiet = {"api_visibility": "private", "show_progress": "hidden"}
        at_once = quiet | {"trigger_mode": "multiple"}  # of a change's listeners only one may wait: tests/test_page.py
        source.change(lambda value: _template() if value == "own" else gr.skip(), source, template, **at_once)
        # a choice made for another set is not a choice for this one
        gr.on([source.change, file.upload], lambda: ("error", ""), None, list(choices), **at_once)
        shown = [notes, *reset]
        last = quiet | LAST_STAYS | IN_TURN
        arrived = [mapping, *columns, *shown]
        gr.on([file.upload, file.clear], _arrived, [file, retain, retain_file], arrived, **last)
        chosen = [file, retain, retain_file, *columns]
        source.change(_chosen_again, [source, session.restored, *chosen], shown, **at_once, **IN_TURN)
        for column in columns:
            column.input(_read, chosen, shown, **last)
        again = [session.restored, *chosen]
        retained = retain.input(_retained, retain, retain_file, **last)
        retained.then(_retained_again, again, shown, **quiet, **IN_TURN)
        gr.on([retain_file.upload, retain_file.clear], _retained_again, again, shown, **last)

    return own, wire


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """How many rows were dropped, and the first of them."""
    if not problems:
        return []
    lines = [f"Rows that were dropped: {len(problems):,}.", *map(str, problems[:PROBLEMS_SHOWN])]
    hidden = len(problems) - PROBLEMS_SHOWN
    return lines + ([f"… and {hidden:,} more."] if hidden > 0 else [])


def _arrived(file: str | None, retain: str, retain_file: str | None):
    """A new file: its columns, our guess of what they are, and its facts."""
    try:
        table = read_table(Path(file)) if file else None
    except AdaPopError as error:
        return gr.Accordion(visible=False), *[gr.skip()] * len(FIELDS), *_refused(error)
    names = table.columns if table else []
    guess = guessed(names)
    dropdowns = [gr.Dropdown([NONE, *names], value=guess.get(field, NONE)) for field in FIELDS]
    unsure = table is not None and not {"question", "answer"} <= set(guess)
    return (
        gr.Accordion(visible=bool(names), open=unsure),
        *dropdowns,
        *(_made(table, guess, retain, retain_file) if table else _refused(NO_FILE)),
    )


def _read(file: str | None, retain: str, retain_file: str | None, *chosen: str):
    """The file's facts under the columns that the page shows."""
    if file is None:
        return _refused(NO_FILE)
    try:
        table = read_table(Path(file))
    except AdaPopError as error:
        return _refused(error)
    return _made(table, _columns(table.columns, chosen), retain, retain_file)


def _made(table: Table, columns: Mapping[str, str], retain: str, retain_file: str | None):
    """The file's facts, made complete. Returns notes and the session's states."""
    try:
        facts = table.facts(columns=columns)
        if retain != "upload":
            facts = completed(facts, SANDBOX, retain)
        elif retain_file is None:
            raise DataError("There is no table of facts to retain yet.", "Upload one, or choose other retain facts.")
        else:
            facts = completed(facts, SANDBOX, read_facts(Path(retain_file), Path(retain_file).stem, group="retain"))
    except AdaPopError as error:
        return _refused(error)
    return gr.skip(), facts, (given(facts.forget),), {}


def _chosen_again(source: str, restored: tuple[str, FactSet] | None, file: str | None, *chosen):
    """The file that is still there when one comes back from another set, or what was made of it before a reload."""
    if source != "own":
        return [gr.skip()] * 4
    if file is None and restored and restored[0] == source:
        return gr.skip(), restored[1], (given(restored[1].forget),), {}
    return _read(file, *chosen)


def _retained_again(restored: tuple[str, FactSet] | None, file: str | None, *chosen):
    """The file with other facts to retain. A set that a reload brought back stays as it is: its file is gone."""
    if file is None and restored and restored[0] == "own":
        return html.listed([texts.SET_RESTORED], "warn"), *[gr.skip()] * 3
    return _read(file, *chosen)


def _columns(names: Sequence[str], chosen: Sequence[str]) -> dict[str, str]:
    """The chosen columns, and our guess for the few that the page does not ask about (ids, sources); our guess for all
    while the page still shows no choice, or one for another file: the choice for this one is on its way to it."""
    guess = guessed(names)
    columns = {field: column for field, column in zip(FIELDS, chosen) if column != NONE}
    if not columns or not set(columns.values()) <= set(names):
        return guess
    unlisted = {field: name for field, name in guess.items() if field not in FIELDS}
    return {**{field: name for field, name in unlisted.items() if name not in columns.values()}, **columns}


def _refused(error: AdaPopError):
    lines = [f"{error.message} {error.fix}", *problem_lines(getattr(error, "problems", ()))]
    return html.listed(lines, "bad"), None, (), {}


def _retained(retain: str):
    return gr.File(visible=retain == "upload")


def _template() -> str:
    """A CSV of sandbox facts, three of each score, that can be edited and uploaded. Written when it is offered:
    served files are deleted after two hours."""
    facts = sorted(sandbox_facts().forget, key=lambda fact: fact.score or 0)
    step = max(1, len(facts) // TEMPLATE_FACTS)
    path = served_folder() / "adapop-template.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer", "subject", "relation", "score", "paraphrases"])
        for fact in facts[::step][:TEMPLATE_FACTS]:
            shown = [fact.id, fact.question, fact.answer, fact.subject, fact.relation, fact.score]
            writer.writerow([*shown, "|".join(fact.paraphrases)])
    return str(path)
