"""A race's charts and tables, with recorded results of several seeds beside them: hollow points in
the charts, extra columns in the tables. Recorded results do not compete."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import gradio as gr

from adapop.config.presets import TUNED
from adapop.facts.fact import SANDBOX
from adapop.report import figures, recorded
from adapop.report.comparison import INSIDE, Comparison, comparison, lines_of, results_tables
from adapop.report.contestants import Contestant, outcome_of
from adapop.report.figures import Outcome
from adapop.report.figures.outcomes import PANELS
from adapop.report.record import trained
from adapop.report.recorded import Recorded
from adapop.report.table import Table, ranged
from adapop.ui import texts
from adapop.ui.compare.race import STARTERS
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, column
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.wiring import Components

COMPARE_COST_NAME = "Forgetting, and what it cost"
COMPARE_GAP_TABLE = (
    "Each row is a run or a method. Its three marks are the shares of rare, middle and popular "
    "facts of the forget set that are still answered, asked in other words where that was "
    "measured. Further left means more forgotten. A vertical line means that all tiers are "
    "forgotten equally; the further it leans right on its way down, the wider the gap. The "
    "widest gap is at the top, a reversed one at the bottom. Bars are ranges: for one run the 95% "
    "interval over facts, for several from the lowest to the highest, for recorded runs the 95% "
    "interval over seeds."
)
COMPARE_COST_TABLE = (
    "Each mark is a run or a method. Further right: fewer facts of the forget set are still "
    "answered. Higher: more held-out facts, which were never trained on, are still answered; what "
    "is missing there is the cost. Up and right is better. Of your own runs, those left of the "
    "dashed line (the Pareto front) or below it are beaten by another. Grey crosses cannot be "
    "compared: their model did not know the facts, or they are on other facts. Bars are the same "
    "ranges as in the other picture."
)
RECORDED_LABEL = "Recorded"
RECORDED_NOTHING = (
    "There are no recorded runs of these methods on this model. Choose all methods, or run one of "
    "them on the sandbox."
)
RECORDED_TUNED = (
    "Tuned: each method has the best settings of 40 trials at seed 0 (AdaPop with α fixed; “python "
    "-m adapop bench tuned”), shown on seeds and questions that were not used in tuning."
)
RECORDED_WORDS = (
    "Hollow points are recorded (“{command}”) on the half of the rewordings that was not used to "
    "choose settings; your own points use all rewordings."
)
RECORDED_OTHERS = (
    "These used other facts or settings than the recorded runs, so do not compare them: {names}."
)

# TUNED: every method at the settings that its search chose
NONE, SAME, EVERY = "none", "same", "every"
CHOICES = [("these methods", SAME), ("all methods", EVERY), ("all, tuned", TUNED), ("none", NONE)]
# shown before any race
SHOWN_FIRST = tuple(tuple(key.split("/")) for key in STARTERS)
PIXELS = 400  # height of the cost chart, and least height of the gap chart beside it
SHA_CHARACTERS = 16  # of the hash of the facts, as a recorded row has it


def build() -> tuple[gr.Radio, gr.HTML]:
    """Lays out the choice of recorded results, and their description."""
    place = dict(elem_id="recorded", elem_classes="advanced-only")
    choice = gr.Radio(CHOICES, value=SAME, label=RECORDED_LABEL, **place)
    return choice, html.lines("recorded-words")


@dataclass(frozen=True)
class Pictures(Components):
    """Charts and tables with recorded results. column: around all results. words: a note on
    recorded results. tables: those of `results_tables`."""

    column: gr.Column
    words: gr.HTML
    gap: Chart
    cost: Chart
    tables: tuple[gr.HTML, gr.HTML, gr.HTML]

    def updates(self, compared: Comparison, choice: str) -> dict:
        """Updates that show a race with recorded results, or hide all if there are neither. choice:
        one of `CHOICES`."""
        return self._updates(compared, choice) if compared.contestants else _unraced(self, choice)

    def _updates(self, compared: Comparison, choice: str) -> dict:
        layer = layer_of(compared, choice)
        outcomes = [*compared.outcomes, *outcomes_of(layer, compared.form_words)]
        about, words = about_of(compared, layer), words_of(compared, layer, choice)
        if not outcomes:
            return {self.column: gr.Column(visible=False), self.words: words}
        gap, cost, over_seeds = self.gap, self.cost, about
        if layer:
            gap, cost = (replace(it, words=f"{it.words} {source_of(layer)}") for it in (gap, cost))
        if layer and not compared.contestants:
            about, words = RECORDED_LABEL, html.listed([])
            # the fields above are of one seed each
            over_seeds = ", ".join((about, *sorted({one.seeds for one in layer})))
        picture = figures.forget_against_holdout(outcomes, compared.form_words)
        picture.update_layout(height=PIXELS)
        shares = figures.compare_runs(outcomes, every=False)
        shares.update_layout(height=max(PIXELS, shares.layout.height))
        numbers, tables = cost_table(outcomes, compared.form_words), tables_of(compared, layer)
        changes = {self.column: gr.Column(visible=True), self.words: words}
        changes |= gap.updates(shares, over_seeds) | cost.updates(picture, about, numbers)
        return changes | {place: grid_of(table) for place, table in zip(self.tables, tables)}


def numbers() -> tuple[gr.HTML, gr.HTML, gr.HTML]:
    """Lays out the tables of every metric; those measured inside the model are folded."""
    tables = grid("compare-table"), grid("compare-kept")
    with gr.Accordion(INSIDE, open=False, elem_id="compare-inside"):
        return *tables, grid("compare-inside-table")


@lru_cache(maxsize=8)
def _unraced(pictures: Pictures, choice: str) -> dict:
    """Updates that show recorded results alone, before a race; computed once for all pages."""
    return pictures._updates(comparison([]), choice)


def charts() -> tuple[Chart, Chart]:
    """Lays out the charts of gap and cost."""
    empty = figures.empty(texts.COMPARE_CHART_EMPTY)
    with gr.Row(elem_classes="swipe"):
        gap = column("The gap, method by method", empty, "compare-gap", COMPARE_GAP_TABLE)
        return gap, column(COMPARE_COST_NAME, empty, "compare-cost", COMPARE_COST_TABLE)


def about_of(compared: Comparison, layer: Sequence[Recorded]) -> str:
    """How a chart's runs were trained: first the visitor's, then the recorded ones."""
    own = [record.config for one in compared.contestants for record in one.records]
    of = {"yours": own, "recorded": [config for one in layer for config in one.configs]}
    return "; ".join(f"{whose}: {trained(configs)}" for whose, configs in of.items() if configs)


def layer_of(compared: Comparison, choice: str) -> tuple[Recorded, ...]:
    """The sandbox's recorded results to show beside a race or before one. choice: of `CHOICES`."""
    configs = [one.records[0].config for one in compared.contestants]
    models = {config.model for config in configs}
    if choice == NONE or (choice == SAME and models and SANDBOX not in models):
        return ()
    if choice == SAME:
        raced = {(one.method, one.preset) for one in configs} or {*SHOWN_FIRST}
        every = (*recorded.results(), *recorded.tuned())
        return tuple(one for one in every if (one.method, one.preset) in raced)
    return recorded.tuned() if choice == TUNED else recorded.results()


def words_of(compared: Comparison, layer: Sequence[Recorded], choice: str) -> dict:
    """Values of `LINES`: a warning that there are no recorded results, or of contestants with other
    facts or settings."""
    together = (one for one in compared.contestants if not one.apart)
    others = [one.label for one in together if not alike(one, layer)]
    if choice == NONE or (layer and not others):
        return html.listed([])
    unlike = RECORDED_OTHERS.format(names="; ".join(others))
    return html.listed([unlike if layer else RECORDED_NOTHING], "warn")


def source_of(layer: Sequence[Recorded]) -> str:
    """Sentences on the commands and settings that recorded these results."""
    command = "” and “".join(sorted({one.command for one in layer}))
    settings = trained([config for one in layer for config in one.configs])
    tuned = f" {RECORDED_TUNED}" if any(one.preset == TUNED for one in layer) else ""
    return f"{RECORDED_WORDS.format(command=command)} {settings}.{tuned}"


def alike(one: Contestant, layer: Sequence[Recorded]) -> bool:
    """Whether a contestant has the recorded facts and an unchanged preset."""
    same_facts = one.sha256[:SHA_CHARACTERS] in recorded.sets(layer)
    return same_facts and recorded.is_untouched(one.records[0].config)


def outcomes_of(layer: Sequence[Recorded], asking: str) -> list[Outcome]:
    """Recorded results as points of the charts. asking: the form of the questions, of `PANELS`."""
    form = next(name for name, words in PANELS.items() if words == asking)
    outcomes = (outcome_of("", one.title, one.recall, form, one.lead) for one in layer)
    return [replace(outcome, recorded=True) for outcome in outcomes]


def tables_of(compared: Comparison, layer: Sequence[Recorded]) -> tuple[Table, ...]:
    """Tables of every metric, the race's columns first; the table inside the model names code
    versions."""
    if not layer:
        return compared.results
    own = [one.name for one in compared.contestants]
    names = [f"{one.title}, recorded, {one.seeds}" for one in layer]
    *outside, inside = results_tables([*lines_of([*compared.contestants, *layer])], [*own, *names])
    commits = (", ".join(recorded.commits([one])) for one in layer)
    coded = [f"{name}, code {commit}" for name, commit in zip(names, commits)]
    return *outside, replace(inside, head=(inside.head[0], *own, *coded))


def cost_table(outcomes: Sequence[figures.Outcome], asking: str) -> figures.Numbers:
    """The scatter's numbers as a table; its Pareto column is left out if the front is empty."""
    front = figures.pareto_front(outcomes)
    rows = []
    for one in outcomes:
        if one.forget and one.holdout:
            place = "on the front" if one in front else "behind it"
            place = "collapsed" if one.collapsed else place
            apart = "recorded" if one.recorded else "before training" if one.original else one.apart
            rows.append((one.label, ranged(one.forget), ranged(one.holdout), apart or place))
    head = ("", f"forget set, {asking}", "held-out facts", "Pareto front")
    columns = 4 if front else 3
    return figures.Numbers(head[:columns], tuple(row[:columns] for row in rows), 1)
