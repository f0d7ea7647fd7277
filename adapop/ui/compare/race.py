"""A race: several methods on the same facts, one run after the other. The runs outlive the page."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from statistics import fmean

import gradio as gr

from adapop.config.presets import make_config
from adapop.errors import AdaPopError, LimitError, listing, number_of
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.world import sandbox_facts
from adapop.remark import duration
from adapop.report.record import Record, read_record, title_of
from adapop.runs.listed import damage_of
from adapop.runs.preflight import preflight
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import may_close
from adapop.training.events import Measured, RunDone, RunStarted
from adapop.ui.access import may_control, public_words, refused, refusing, shown_run
from adapop.ui.compare.entrants import config_in
from adapop.ui.parts import html
from adapop.ui.run.configuration import values_of
from adapop.ui.run.state import seen_of
from adapop.ui.session import browser_state, check_shown, identity
from adapop.ui.wiring import toast

MOST_RUNS = 24
STARTERS = ("adapop/paper", "adapop/shuffled", "wga/paper", "npo/paper")
PICTURED = ("wga/paper", "adapop/paper", "adapop/shuffled")  # the examples shown before any race
UNSEEN = (-1, -1, None)
EMPTY: dict[str, list] = {"runs": [], "refused": []}
PROGRESS = html.template("race")
# the buttons of the list: one that removes each run, and one that removes all
REMOVE = """element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-run]");
  if (button) trigger("select", { run: button.dataset.run });
});"""


@dataclass(frozen=True)
class Race:
    """The components that follow this browser's race on every tab. stored: the ids of its runs, and
    why others could not start. last_seen: the number of runs done when the results were drawn, the
    number of measurements when the curves were drawn, and the runs' names; `UNSEEN` at first."""

    stored: gr.BrowserState
    last_seen: gr.State
    timer: gr.Timer

    @property
    def restarted(self) -> list[gr.Component]:
        """The components that are set when runs begin or join."""
        return [self.stored, self.last_seen, self.timer]


def new_race(seconds: float) -> Race:
    """Lays out the components."""
    return Race(browser_state(EMPTY, "race"), gr.State(UNSEEN), gr.Timer(seconds, active=False))


@dataclass(frozen=True)
class Standing:
    """The state of a race. shown: values of `PROGRESS`. runs: those whose folders exist. finished:
    number of runs done. measured: number of measurements of all runs. ticking: whether a run is
    active. names: given to the runs, by run id."""

    shown: dict
    runs: tuple[Run, ...]
    finished: int
    measured: int
    ticking: bool
    names: Mapping[str, str]

    @property
    def records(self) -> list[Record]:
        """The records of the runs; empty until the first run is done."""
        pairs = readable(self.runs, self.names) if self.finished else []
        return [record for _, record in pairs]


def begin(
    worker: Worker,
    shown: str,
    facts: FactSet | None,
    missing: str,
    anchors,
    chosen: Sequence[str],
    seeds,
    *values,
) -> dict:
    """Queues a run for every contestant and seed. shown: hash of the set that the page shows.
    values: epochs, learning rate (text, "" for each method's own), then the settings of the Run
    screen, with the model. Returns the value of `Race.stored`: the runs, and why other contestants
    cannot run. Raises gr.Error."""
    facts = check_shown(facts, shown)
    if not chosen:
        raise toast("Pick at least one method.")
    if (count := len(chosen) * int(seeds)) > MOST_RUNS:
        planned = f"{len(chosen)} methods with {seeds} seeds are {count} runs"
        most = f"a comparison has at most {MOST_RUNS}"
        raise toast(f"{planned}, and {most}. Pick fewer methods or seeds.")
    runs, barred = [], {}
    # one seed of all contestants before the next: first comparisons appear early
    for seed in range(int(seeds)):
        for key in chosen:
            try:
                config = config_in(facts, missing, anchors, key, *values, seed=seed)
                preflight(facts, config).check()
                runs.append(worker.submit(config, facts).id)
            except AdaPopError as error:
                why = "was not started" if isinstance(error, LimitError) else "cannot run"
                why += f" from seed {seed} on" if seed else ""
                barred.setdefault(key, f"{title_of(*key.split('/'))} {why}: {error}")
    if not runs:
        raise refused(AdaPopError(next(iter(barred.values()))))
    return {"runs": runs, "refused": list(barred.values())}


def begin_pictured(worker: Worker) -> dict:
    """`begin` of the methods of `PICTURED`, whatever set and settings the page has."""
    facts, untouched = sandbox_facts(), make_config()
    given = identity(facts), facts, untouched.missing_score, None
    return begin(worker, *given, PICTURED, 1, untouched.epochs, "", *values_of(untouched))


def pictured() -> str:
    """The set and the methods of `PICTURED`, as the label of the button that runs them."""
    named = (title_of(*key.split("/")).split(", ") for key in PICTURED)
    titles = [" ".join((title, *(f"({one})" for one in more))) for title, *more in named]
    return f"Run {listing(titles)} on the {SANDBOX} ({len(PICTURED)} runs)"


def removed(stored: dict | None, name: object) -> dict:
    """The value of `Race.stored` without a run; "" removes all. The run itself stays."""
    if name == "":
        return EMPTY
    names = [run for run in _texts_of(stored, "runs") if run != name]
    return {"runs": names, "refused": _texts_of(stored, "refused") if names else []}


def end(worker: Worker, stored: dict) -> None:
    """Asks every active run of the race to stop. Finished epochs are kept. May be repeated."""
    for name in _texts_of(stored, "runs"):
        now, run, _ = seen_of(worker, name, "ready")
        if run is not None and now.ticking and may_control(worker, name):
            with refusing():
                run.request_stop()


def joined(worker: Worker, stored: dict, name: str) -> dict:
    """The value of `Race.stored` with another run added. Raises gr.Error: it cannot be added."""
    run = shown_run(worker, name)
    if run is None:
        raise toast("This run no longer exists.")
    names = [name for name in _texts_of(stored, "runs") if shown_run(worker, name)]
    if name in names:
        raise toast("This run is already in the comparison.")
    if len(names) >= MOST_RUNS:
        raise toast(f"A comparison has at most {MOST_RUNS} runs. Remove one first.")
    return {"runs": [*names, name], "refused": _texts_of(stored, "refused")}


def standing(worker: Worker, stored: dict | None, titles: Mapping[str, str] = {}) -> Standing:
    """The state of the race, read from the runs' folders; deleted runs are left out. titles: run id
    -> name."""
    lines, runs, seconds, starts, measured = [], [], [], [], 0
    names = _texts_of(stored, "runs")
    for name in names:
        now, run, events = seen_of(worker, name, "ready")
        if now.state == "expired":
            continue
        # the list itself shows which run waits for which
        line = {"id": name, "detail": "" if now.state == "queued" else now.detail}
        line |= {"state": now.state, "label": now.label, "percent": now.percent}
        line["name"] = title_of(name.rpartition("-")[0], "paper")  # its id begins with the method
        lines.append(line)
        if (there := shown_run(worker, name)) and (damage := damage_of(there)):
            line |= {"state": "failed", "label": "Damaged", "percent": 0}
            line["detail"] = public_words(damage)
            continue
        if run is not None:
            config = run.config
            title = f"{title_of(config.method, config.preset)}, seed {config.seed}"
            line["name"] = titles.get(name, title)
            runs.append(run)
            seconds += [event.seconds for event in events if isinstance(event, RunDone)]
            measured += sum(isinstance(event, Measured) for event in events)
        if now.ticking:
            started = (event.time for event in reversed(events) if isinstance(event, RunStarted))
            starts.append(next(started, None))
    done = sum(line["state"] == "done" for line in lines)
    words = _words(len(lines), done, starts, fmean(seconds) if seconds else None)
    opened = bool(starts) or done < len(lines)  # folded once all are done
    values = {"shown": bool(lines), "open": opened, "words": words, "runs": lines}
    values |= {"refused": _texts_of(stored, "refused")}
    run_names = {name: titles[name] for name in names if name in titles}
    return Standing(html.values(values), tuple(runs), done, measured, bool(starts), run_names)


def readable(runs: Sequence[Run], names: Mapping[str, str] = {}) -> list[tuple[Run, Record]]:
    """(run, record) of every readable run; the page names the others. names: run id -> name."""
    pairs = []
    for run in runs:
        try:
            pairs.append((run, replace(read_record(run), name=names.get(run.id, ""))))
        except AdaPopError as error:
            gr.Warning(escape(f"A damaged run is left out. {public_words(error)}"))
    return pairs


def _words(runs: int, done: int, starts: Sequence[float | None], usual: float | None) -> str:
    """The race's progress in a sentence. starts: when each run at work began, None for one that
    waits. usual: seconds of a run, None before the first ends."""
    if not starts:
        return f"{done} of {number_of(runs, 'run')} finished."
    left = ""
    if usual is not None:
        now = time.time()
        seconds = sum(max(usual - (now - (start or now)), 1.0) for start in starts)
        left = f", about {duration(seconds)} left"
    so_far = f"{done} of {number_of(runs, 'run')} done{left}"
    return f"{so_far}. {may_close()}"


def _texts_of(stored: dict | None, name: str) -> list[str]:
    """A list of texts that a browser stored, such as ids; all else that it sends is ignored."""
    values = stored.get(name) if isinstance(stored, dict) else None
    listed = values if isinstance(values, list) else []
    return [value for value in listed if isinstance(value, str)][:MOST_RUNS]
