"""The paper's numbers, shown beside a race, never mixed with its own: models and facts differ."""

from collections.abc import Sequence

import gradio as gr

from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report import figures, published
from adapop.report.beside_paper import departures, model_of
from adapop.report.contestants import contestants
from adapop.report.figures.outcomes import Outcome
from adapop.report.record import Record
from adapop.report.table import Table, percent_deviating
from adapop.ui.parts import html
from adapop.ui.parts.chart import column
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.wiring import EACH, QUIET

PUBLISHED_UNUSABLE = (
    "† The paper itself marks this method as unusable, because it damages the retain set too."
)
PUBLISHED_LABEL = (
    "Published by Borisiuk et al. (2026), for models of 7 to 8 billion parameters and other facts. "
    "Only the columns headed “ours” were measured here; the pictures above show none of this part."
)
PUBLISHED_TABLE = "Published ROUGE-L recall by method; not measured here."
PUBLISHED_BESIDE = (
    "ROUGE-L recall, asked as trained; ± is the standard deviation over three seeds. Accents "
    "count here, as in the paper. The last column names the settings in which our run differs "
    "from the paper's; model and facts differ too."
)
PUBLISHED_NONE = "None of these runs uses a method of the paper with the paper's preset."

HEAD = (
    "",
    "forget set, ours",
    "retain set, ours",
    "forget set, published",
    "retain set, published",
    "settings that differ from the paper's",
)


def build() -> tuple[gr.Dropdown, gr.HTML]:
    """Lays out the section. Returns the choice of a setting, and the table of both results."""
    start, every = published.SETTINGS[0], published.tables()
    recall_figure, tier_figure = pictures(start)
    words = "Show the paper's published numbers beside ours"
    switch = gr.Checkbox(False, label=words, elem_id="published")
    with gr.Column(visible=False, elem_id="published-layer") as layer:
        notes = [PUBLISHED_LABEL, published.RETAIN_NOTE, PUBLISHED_UNUSABLE]
        html.lines(None, html.listed(notes, "warn"))
        words = dict(label="Published for", elem_id="published-for")
        setting = gr.Dropdown(list(published.SETTINGS), value=start, **words)
        table = grid("published-beside")
        with gr.Row():
            heads = "Published: forgetting and keeping", "Published: the gap under paraphrases"
            recall = column(heads[0], recall_figure, "published-recall", PUBLISHED_TABLE)
            tiers = column(heads[1], tier_figure, "published-gap", PUBLISHED_TABLE)
        with gr.Accordion("Everything else the paper published", open=False):
            titles = [one.title for one in every]
            which = gr.Dropdown(titles, value=titles[0], label="Table", elem_id="published-which")
            other = grid("published-table", grid_of(every[0]))

    def drawn(setting: str) -> dict:
        recall_figure, tier_figure = pictures(setting)
        return {**recall.updates(recall_figure), **tiers.updates(tier_figure)}

    switch.change(lambda on: gr.Column(visible=on), switch, layer, **QUIET)
    setting.change(drawn, setting, [*recall.all, *tiers.all], **EACH)
    which.change(lambda title: grid_of(every[titles.index(title)]), which, other, **QUIET)
    return setting, table


def rows(records: Sequence[Record], setting: str) -> dict:
    """A table of the methods with both results: ours, the paper's, and the settings that differ."""
    theirs = {one.our_name: one for one in published.recalls(setting)}
    lines = []
    for one in contestants(records):
        config = one.records[0].config
        if one.measured and config.preset == "paper" and (their := theirs.get(config.method)):
            cells = [one.recall(group, DIRECT, "all", "strict") for group in ("forget", "retain")]
            shares = [(cell.mean, None) if cell else None for cell in cells]
            shares += [(their.forget, their.forget_sd), (their.retain, their.retain_sd)]
            spoken = [percent_deviating(*share) if share else "" for share in shares]
            apart = [f"{name} {value}" for name, value, _ in departures(config, model_of(setting))]
            lines.append((one.name, *spoken, "; ".join(apart)))
    label = f"Ours beside the numbers published for {_spoken(setting)}"
    sources = f"{published.PAPER}, {published.MAIN_SOURCE} and {published.FURTHER_SOURCE}"
    caption = f"{label} ({sources}). {PUBLISHED_BESIDE}"
    return grid_of(Table(label, HEAD, tuple(lines), caption), PUBLISHED_NONE)


def pictures(setting: str) -> tuple[figures.Figure, figures.Figure]:
    """Charts of every method's published recall, and of the gaps under paraphrases."""
    every = published.recalls(setting)
    recalls = [(one.method + " †" * one.unusable, one.forget, one.retain) for one in every]
    about = _spoken(setting)
    recall = figures.published_recalls(recalls, about)
    model, _, data = setting.partition(" ")
    if data != "DUET":
        return recall, figures.empty("by popularity, the paper has results for DUET alone")
    outcomes = []
    for method, by_tier in published.paraphrased(model).items():
        shares = {tier: Interval(value, value, value) for tier, value in by_tier.items()}
        outcomes.append(Outcome("", method, {REWORDED: shares}))
    gap = figures.compare_runs(outcomes)
    gap.update_xaxes(title_text=f"published, not measured here:<br>{about}")
    return recall, gap.update_layout(margin_b=64)


def _spoken(setting: str) -> str:
    model, _, data = setting.partition(" ")
    return f"{published.PAPER_MODELS[model]}, {data}"
