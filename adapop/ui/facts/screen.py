"""Screen 1, Facts: choose or upload a set; see each score, its source, and its exponent."""

from dataclasses import dataclass, replace

import gradio as gr

from adapop.config.methods import METHODS
from adapop.errors import Stopped, number_of
from adapop.facts.catalog import ENTRIES, load_facts
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.tiers import SCALE
from adapop.facts.world import sandbox_facts
from adapop.online.cache import Cache
from adapop.paths import SHIPPED
from adapop.popularity.beta import SCORELESS, BetaMap
from adapop.popularity.calibration import warnings_of
from adapop.progress import Progress, started
from adapop.remark import Remark, sentences
from adapop.report import figures
from adapop.runs.preflight import read_none
from adapop.service.worker import Worker
from adapop.ui import saved, texts
from adapop.ui.facts import known, lookup, rewording, upload
from adapop.ui.facts.table import lay_out, lay_out_detail, table_of
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.run.settings import Offers
from adapop.ui.saved import OWN
from adapop.ui.session import Session, curve_of
from adapop.ui.wiring import EACH, EACH_IN_TURN, IN_TURN, QUIET, error_of, followed, stopped

SOURCE_LABEL = "Forget set: the facts to unlearn"
MISSING_ABOUT = (
    "Some facts have no score. A missing score is never read as zero: decide what AdaPop should do."
)
MISSING_CHOICES = [
    ("Do not start", "error"),
    ("Leave these facts out", "drop"),
    ("Give them β = 1, as WGA would", "uniform"),
]
NOT_READ = (
    "The included models were trained on none of these questions: choose a larger model on Run, "
    "such as smollm2."
)
STRIP_TABLE = "The number of facts to forget at each score, by tier."
STRIP_NAME = "How popular the facts are"


@dataclass(frozen=True)
class FactsScreen:
    """The components of the screen that its events change. source: where the set comes from.
    missing: what to do with facts without a score. unscored: whether only these are listed.
    fetched: (name, set) that was downloaded, or None. looked_up: message on the last look-up.
    offers: what helps a model that does not know the facts."""

    session: Session
    source: gr.Radio
    about: gr.Markdown
    uploads: upload.UploadEvents
    notes: gr.HTML
    missing: gr.Radio
    strip: Chart
    search: gr.Textbox
    unscored: gr.Checkbox
    table: gr.Dataframe
    fetched: gr.State
    looked_up: gr.HTML
    offers: Offers

    def wire(self, tab: gr.Tab) -> None:
        """Wires the choice of a set, and everything drawn from it."""
        session, source = self.session, self.source
        form = self.uploads.form
        chosen = [source, session.at_work, session.restored, *form.chosen]
        picked = [form.group, form.drop_bad, self.about, self.notes, session.at_work]
        picked += [session.restored, self.looked_up, *session.of_the_set]
        picking = source.change(self.picked, chosen, picked, **(EACH | IN_TURN))
        inputs, outputs = [source, session.facts], [self.notes, session.at_work, self.fetched]
        fetching = picking.then(self.fetch, inputs, outputs, **QUIET)
        came = [source, self.fetched]
        fetching.then(self.show_download, came, session.of_the_set, **IN_TURN)
        # without the note on a restored set
        files = [form.file.upload, form.file.clear]
        gr.on(files, upload.upload_about, None, self.about, **EACH)
        redrawn = [*self.strip.all, self.missing, self.unscored, form.run]
        session.facts.change(self.redrawn, session.facts, redrawn, **QUIET)
        noted = [session.facts, session.anchors]
        gr.on([session.facts.change, session.anchors.change], _notes, noted, self.notes, **QUIET)
        listed = [session.facts, session.anchors, session.known, self.search, self.unscored]
        # a reload restores the visitor's set before this tab is there, which loses what it shows
        tab.select(upload.shown_for, source, form.group, **EACH)
        drawn = [*(one.change for one in listed), tab.select]
        gr.on(drawn, table_of, listed, self.table, **EACH_IN_TURN)

    def picked(
        self, source: str, at_work: Progress | None, restored: tuple[str, FactSet] | None, *chosen
    ) -> dict:
        """Updates for a newly chosen set, or for one that a reload restored. Stops the look-up or
        download of the previous set. chosen: the upload's files and columns.

        One event does all this, and runs in turn with the upload's events: "no file" cannot be
        answered after a file.
        """
        stopped(at_work)
        saved = restored[1] if restored and restored[0] == source else None
        of_the_last = {self.session.at_work: None, self.looked_up: html.listed([])}
        if source == OWN:
            about = upload.upload_about() + (f"\n\n{texts.SET_RESTORED}" if saved else "")
            visible = {self.uploads.form.group: upload.shown_for(source), self.about: about}
            return of_the_last | visible | self.uploads.chosen_again(restored, *chosen)
        entry = ENTRIES[source]
        return of_the_last | {
            self.uploads.form.group: upload.shown_for(source),
            self.about: entry.about,
            # kept for an upload, which cannot be loaded by name
            self.session.restored: restored if restored and restored[0] == OWN else None,
            **self.session.with_facts(saved or (None if entry.online else load_facts(source))),
        }

    async def fetch(self, source: str, facts: FactSet | None):
        """Downloads a set; yields the progress, then the set."""
        if source == OWN or not ENTRIES[source].online or facts is not None:
            yield {self.fetched: None}
            return
        future, progress = started(lambda progress: load_facts(source, SANDBOX, progress, Cache()))
        async for line in followed(future, progress, "Asking for the set …"):
            words = html.listed([line, "Pick another set to stop."])
            yield {self.notes: words, self.session.at_work: progress, self.fetched: None}
        over = {self.session.at_work: None}
        if error := error_of(future):
            notes = html.listed([str(error)], "warn" if isinstance(error, Stopped) else "bad")
            yield {**over, self.notes: notes, self.fetched: None}
        else:
            yield {**over, self.fetched: (source, future.result())}

    def show_download(self, source: str, fetched: tuple[str, FactSet] | None) -> dict:
        """Updates that show a downloaded set, if it is still the chosen one."""
        chosen = fetched and fetched[0] == source
        return self.session.with_facts(fetched[1]) if chosen else gr.skip()

    def redrawn(self, facts: FactSet | None) -> dict:
        """Updates after a change of the set: the chart of scores, the inputs for unknown scores,
        the button that runs the set at once."""
        strip = figures.empty("appears with a set")
        if facts is not None:
            strip = figures.popularity_strip(facts.forget, facts.tiers)
        unscored = facts is not None and bool(facts.unknown_scores)
        only = gr.Checkbox(visible=True) if unscored else gr.Checkbox(False, visible=False)
        changes = replace(self.strip, words=words_of(facts)).updates(strip, about_of(facts))
        changes[self.uploads.form.run] = gr.Button(visible=facts is not None)
        return {**changes, self.missing: gr.Radio(visible=unscored), self.unscored: only}


def build(worker: Worker, session: Session, tab: gr.Tab, settings: gr.BrowserState) -> FactsScreen:
    """Lays the screen out inside its tab. settings: those of Run, see `Follower`."""
    first = sandbox_facts()
    with gr.Row():
        with gr.Column(scale=2, min_width=320):
            choices = [(entry.title, entry.name) for entry in ENTRIES.values()]
            choices.append(("My own facts", OWN))
            named = dict(label=SOURCE_LABEL, info="Included: ready to run", elem_id="set")
            source = gr.Radio(choices, value=SANDBOX, **named)
            # above the upload, so that a file's faults, and what it lacks, are in sight
            notes = html.lines("notes", notes_of(first, BetaMap()))
            rewording.build(worker, session)
            upload_form = upload.build()
            about = gr.Markdown(ENTRIES[SANDBOX].about, elem_id="set-about")
            unseen = dict(value="error", info=MISSING_ABOUT, visible=False)
            missing = gr.Radio(MISSING_CHOICES, label="Facts without a score", **unseen)
            looked_up = lookup.build(worker, session)
            offers = known.build(worker, session, settings)
        with gr.Column(scale=5, min_width=320, elem_id="facts-shown"):
            strip, search, unscored, table = _table_side(first)
            lay_out_detail(session, table)
            with gr.Column(elem_classes="advanced-only"):
                lookup.build_agreement(session)

    uploads = upload.UploadEvents(upload_form, notes, session)
    parts = source, about, uploads, notes, missing, strip, search, unscored, table
    screen = FactsScreen(session, *parts, gr.State(None), looked_up, offers)
    screen.wire(tab)
    uploads.wire(source, [missing, search])
    saved.build(worker, session, source, notes)
    return screen


def _table_side(first: FactSet) -> tuple[Chart, gr.Textbox, gr.Checkbox, gr.Dataframe]:
    """The distribution of the scores, the search, the filter, and the table."""
    drawn = figures.popularity_strip(first.forget, first.tiers)
    strip = chart(drawn, "strip-chart", STRIP_NAME, words_of(first), about_of(first))
    words = dict(label="Search the facts", placeholder="Search the facts", show_label=False)
    search = gr.Textbox(**words, container=False, max_length=200, elem_id="search")
    unseen = dict(visible=False, container=False, elem_id="unscored")
    unscored = gr.Checkbox(False, label="Missing score only", **unseen)
    table = lay_out(first)
    gr.Markdown("Click a row to set its score.")
    return strip, search, unscored, table


def about_of(facts: FactSet | None) -> str:
    """A short description of the set."""
    if facts is None:
        return ""
    return f"{facts.name}, forget set of {number_of(len(facts.forget), 'fact')}"


def words_of(facts: FactSet | None) -> str:
    """How to read the distribution of the scores, with the tiers if they follow from scores."""
    if facts is None or facts.tiers.source not in ("", SCALE):  # else a note names the tiers
        return STRIP_TABLE
    return f"{STRIP_TABLE} Tiers by score: {facts.tiers.text}."


def notes_of(facts: FactSet, beta: BetaMap) -> dict:
    """Values of the notes: counts, remarks, how the scores suit the map, and the dropped rows."""
    trained = f"Forget set: {len(facts.forget):,}; retain set: {len(facts.retain):,}"
    lines = [f"{trained}; held out: {len(facts.holdout):,}."]
    lines += [*upload.problem_lines(facts.problems), *sentences(facts.notes)]
    worlds = [note.values.get("world") for note in facts.notes if isinstance(note, Remark)]
    lines += [upload.SANDBOX_RETAINED] * (not SHIPPED.keys().isdisjoint(worlds))
    if facts.unknown_scores:
        fix = "Look the scores up, or decide below what to do."
        if len(facts.unknown_scores) == len(facts.forget):
            named = " or ".join(METHODS[name].title for name in SCORELESS)
            fix = (
                "Facts without popularity, such as private ones, need a method without scores: "
                f"choose {named} on Run. {fix}"
            )
        lines.append(f"Without a score: {len(facts.unknown_scores):,}. {fix}")
    known = [fact.score for fact in facts.forget if fact.score is not None]
    doubts = sentences(warnings_of(known, beta))
    included = facts.name in ENTRIES and not ENTRIES[facts.name].online
    if facts.forget and not included and all(read_none(model, facts) for model in SHIPPED):
        doubts.append(NOT_READ)
    lines += doubts
    kind = "warn" if facts.problems or facts.unknown_scores or doubts else "calm"
    return html.listed(lines, kind)


def _notes(facts: FactSet | None, anchors):
    """Updates the notes on a set. Without a set, the earlier ones say why it is missing."""
    return gr.skip() if facts is None else notes_of(facts, curve_of(facts, anchors))
