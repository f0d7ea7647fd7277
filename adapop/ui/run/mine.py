"""My runs: all that this browser started, to choose, open, compare, rename, download or delete."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import gradio as gr

from adapop.errors import AdaPopError
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.contestants import lead_of
from adapop.report.record import described, described_run, title_of
from adapop.report.table import percent, signed
from adapop.runs.examples import ASKED, PREFIX, example
from adapop.runs.run import Run
from adapop.service.cleanup import delete_run, in_use
from adapop.service.worker import Worker
from adapop.ui.access import may_control, refusing, shown_run
from adapop.ui.compare.race import joined
from adapop.ui.parts import html
from adapop.ui.parts.download import report_of
from adapop.ui.run.charts import NOTHING
from adapop.ui.run.launch import following
from adapop.ui.run.screen import Follower, earlier_of
from adapop.ui.wiring import EACH, QUIET

# see `myRuns` in "assets/page.js"
MADE = "() => document.dispatchEvent(new Event('report-made'))"
NOT_JOINED = "() => document.querySelector('#joining')?.remove()"
ENDED = "stopped", "failed", "interrupted"  # states of a run that may be resumed
MOST, MOST_NAME = 100, 60  # runs in the list; characters of a name


@dataclass(frozen=True)
class MyRuns:
    """entries: the browser's list of {id, name}, newest first. report: a row's file, hidden."""

    entries: gr.BrowserState
    table: gr.HTML
    report: gr.DownloadButton

    def wire(
        self,
        worker: Worker,
        follower: Follower,
        over: gr.Dropdown,
        race: gr.BrowserState,
        tab: gr.Tab,
    ) -> None:
        """Wires the list in its tab. over: the choice of a run to lay behind the one shown. race:
        the browser's race, whose runs belong to it too."""
        known = [self.entries, follower.run_id, race]
        news = [follower.another.change, race.change]
        gr.on(news, partial(_news, worker), known, self.entries, js="adapop.mergeRuns", **EACH)
        self.entries.change(None, self.entries, None, js="adapop.keepRuns", **EACH)
        turns = follower.another.change, follower.phase.change
        when = [self.entries.change, *turns, tab.select]
        gr.on(when, partial(listed, worker), [self.entries, follower.run_id], self.table, **EACH)

        inputs = [self.entries, follower.run_id, over]
        gr.on(when, partial(to_lay_over, worker), inputs, over, **EACH)

        target = [*follower.follows, race, self.entries]

        # gradio gives no event to a partial
        def act(stored: object, current: str, race: dict, event: gr.EventData):
            return pressed(worker, stored, current, race, event)

        acted = self.table.select(act, known, target, js="adapop.mergeRuns", **QUIET)
        acted.failure(None, None, None, js=NOT_JOINED, **QUIET)

        def make(event: gr.EventData):
            name = getattr(event, "run", None)  # it comes from the browser
            return report_of(worker, name) if may_control(worker, name) else gr.skip()

        report = self.table.download(make, None, self.report, **EACH)
        report.then(None, None, None, js=MADE, **QUIET)
        # on change: a chained event would still see the previous file
        self.report.change(None, self.report, self.report, js="adapop.takeFile", **QUIET)


def build() -> tuple[gr.HTML, gr.DownloadButton]:
    """Lays the list out, with the component for the report of a row."""
    table = html.drawn([], "my-runs", "my-runs", "myRuns")
    return table, gr.DownloadButton(visible="hidden", elem_id="my-report")


def remembered(worker: Worker, stored: object, name: str, race: object) -> list[dict]:
    """The stored list plus the visitor's runs of this page and its race, minus deleted ones."""
    entries = entries_of(worker, stored)
    race = race.get("runs") if isinstance(race, dict) else ()
    for other in (*(race if isinstance(race, list) else ()), name):
        if may_control(worker, other) and all(entry["id"] != other for entry in entries):
            ends = (entry["name"].rpartition(" ")[2] for entry in entries)
            last = max((int(end) for end in ends if end.isdecimal()), default=0)
            entries.insert(0, {"id": other, "name": f"{_method(worker, other)} {last + 1}"})
    return entries[:MOST]


def _news(worker: Worker, stored: object, name: str, race: object):
    """`remembered`, or no update if nothing is new: an equal value would count as a change."""
    entries = remembered(worker, stored, name, race)
    return gr.skip() if entries == stored else entries


def entries_of(worker: Worker, stored: object) -> list[dict]:
    """The valid entries of the stored list, which may hold anything; only the visitor's runs."""
    rows = stored if isinstance(stored, list) else []
    whole = [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    entries = [{"id": row["id"], "name": str(row.get("name", ""))[:MOST_NAME]} for row in whole]
    return [entry for entry in entries[:MOST] if may_control(worker, entry["id"])]


def listed(worker: Worker, stored: object, current: str) -> list[dict]:
    """The list's rows. current: the run shown on the page."""
    rows = []
    for entry in entries_of(worker, stored):
        run = Run(worker.root / entry["id"])
        about = _about(run, queued=worker.ahead_of(run) is not None or in_use(run.folder))
        rows.append(entry | {"current": run.id == current} | about)
    return rows


def choices(worker: Worker, stored: object, examples: bool = True) -> list[tuple[str, str]]:
    """(name, id) of the runs to choose from: the visitor's own, then the shipped examples."""
    own = [(entry["name"], entry["id"]) for entry in entries_of(worker, stored)]
    own = [(f"{title} · {_method(worker, name, described_run)}", name) for title, name in own]
    shipped = ASKED if examples else ()
    titles = {PREFIX + name: _title(example(name)) for name in shipped}
    return own + [(f"Example: {title}", name) for name, title in titles.items()]


def to_lay_over(worker: Worker, stored: object, current: str, chosen: str | None) -> gr.Dropdown:
    """The choice of a run to lay behind the one shown, which stays if it can; hidden if there is
    none. current: the run shown."""
    run = shown_run(worker, current)
    able = [(name, one) for name, one in choices(worker, stored) if _fits(worker, run, one)]
    value = chosen if chosen in {one for _, one in able} else ""
    return gr.Dropdown([NOTHING, *able], value=value, visible=bool(able))


def _fits(worker: Worker, run: Run | None, name: str) -> bool:
    try:
        return earlier_of(worker, run, name) is not None
    except AdaPopError:
        return False  # it cannot be read


def pressed(worker: Worker, stored: object, current: str, race: dict, event: gr.EventData):
    """Updates for a button pressed in a row: the page's run, the number of its events seen, the
    timer, the race, and the list. The event is validated: a browser may send anything."""
    button, name, text = (getattr(event, field, None) for field in ("what", "run", "name"))
    unchanged = [gr.skip()] * 5
    if button == "look":  # another tab changed the list, which `mergeRuns` has read
        return *unchanged[:4], entries_of(worker, stored)
    if not may_control(worker, name):
        return unchanged
    if button == "open":
        return *following(name), gr.skip(), gr.skip()
    if button == "compare":
        return *unchanged[:3], joined(worker, race, name), gr.skip()
    entries = entries_of(worker, stored)
    if button == "rename" and isinstance(text, str) and text.strip():
        new = {"name": text.strip()[:MOST_NAME]}
        renamed = [entry | new if entry["id"] == name else entry for entry in entries]
        return *unchanged[:4], renamed
    if button == "delete":
        with refusing():
            delete_run(Run(worker.root / name), worker.root)
        left = [entry for entry in entries if entry["id"] != name]
        gone = following("") if name == current else unchanged[:3]
        return *gone, gr.skip(), left
    return unchanged


def _about(run: Run, queued: bool) -> dict[str, object]:
    """A run as the cells of its row; empty where nothing is known yet or nothing can be read.
    queued: whether it waits for its turn, perhaps to be resumed."""
    cells = dict.fromkeys(("set", "method", "gap", "kept", "when"), "") | {"state": "damaged"}
    try:
        measured, events = run.measured(), run.events()
        state = "queued" if queued and run.state in ENDED else run.state
        state = "interrupted" if state == "queued" and not queued else state
        cells |= {"set": run.about.facts, "method": described(run.config), "state": state}
        cells["when"] = events[0].time if events else ""
        if measured is not None:
            trained = lead_of([measured], DIRECT)
            if measured.gap:
                cells["gap"] = signed(measured.gap)
            elif trained and measured.recall("forget", REWORDED) is None:
                cells["gap"] = f"{signed(trained)}, as trained"
            cells["kept"] = percent(measured.recall("holdout"))
    except AdaPopError:
        pass  # the row says so, and can still be deleted
    return cells


def _title(run: Run) -> str:
    return title_of(run.config.method, run.config.preset)


def _method(worker: Worker, name: str, words: Callable[[Run], str] = _title) -> str:
    try:
        return words(Run(worker.root / name))
    except AdaPopError:
        return name.rpartition("-")[0]  # its id begins with the method


def picked(choice: str, current: str) -> tuple:
    """`following` a run chosen from a list, or no update."""
    if not choice or choice == current:
        return (gr.skip(),) * 3
    return following(choice)
