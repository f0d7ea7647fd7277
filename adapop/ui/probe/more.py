"""More about one question: samples of it, and how strongly the model is made to forget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import gradio as gr

from adapop.errors import AdaPopError, RunError, number_of
from adapop.probes.inspection import (
    MOST_SAMPLES,
    MOST_STRENGTH,
    MOST_TEMPERATURE,
    MOST_TOKENS,
    ORIGINAL,
    UNLEARNED,
    Chosen,
    Drawing,
    Samples,
)
from adapop.report import figures
from adapop.report.record import described_run
from adapop.report.recovery import leak_figure
from adapop.report.table import percent
from adapop.report.tables import question_table
from adapop.runs import questions
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import probed_run, public_words
from adapop.ui.parts import html
from adapop.ui.parts.chart import chart
from adapop.ui.parts.download import served_folder
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.probe.answers import MARKS
from adapop.ui.probe.asking import asked_run, question_of
from adapop.ui.probe.choices import columns_of, fact_of
from adapop.ui.run.screen import Follower
from adapop.ui.wiring import EACH, EACH_IN_TURN, QUIET, Components, answered, offload

if TYPE_CHECKING:
    from adapop.probes.strength import AtStrength

SAMPLES, STRENGTH = html.template("samples"), html.template("strength")
NOTHING_DRAWN = html.values({"empty": "Draw several replies: the usual reply may hide a fact."})
NO_STRENGTH = html.values({"empty": "Move the slider: 0 is the original, 1 the unlearned model."})
LAYERS_ABOUT = (
    "each row is a layer: how likely each token of the reply would be if the model ended there "
    "(logit lens). Middle layers may favour any answer of the right kind; “From inside” also tests "
    "a wrong answer."
)
NOTHING_KEPT = html.values(
    {"empty": "Questions that you ask about your own run are stored with it."}
)
MOST_LISTED = 50  # kept questions in the list; the files have all
TIMED = QUIET | {"show_progress": "minimal"}  # Gradio shows the seconds so far
NOT_SAMPLED = (
    "After “Drawing many answers” in “From inside” below, a curve here shows how often at least "
    "one of k samples leaks (leak@k)."
)


@dataclass(frozen=True)
class More(Components):
    """What a link and the screen need of the section. count to most: the values of a `Drawing`.
    shown: the samples; used: their settings, with their question behind them, as `used_for` has it.
    walked: the strength that is shown, with its fact behind it, as `walk` has it. draw, see: the
    buttons."""

    count: gr.Number
    temperature: gr.Number
    top_p: gr.Number
    seed: gr.Number
    most: gr.Number
    draw: gr.Button
    shown: gr.HTML
    used: gr.Textbox
    strength: gr.Slider
    strengths: gr.HTML
    walked: gr.Textbox
    see: gr.Button

    @property
    def numbers(self) -> list[gr.Number]:
        """The values of a `Drawing`, in its order."""
        return [self.count, self.temperature, self.top_p, self.seed, self.most]


def build(
    worker: Worker,
    follower: Follower,
    opened: gr.State,
    fact: gr.Dropdown,
    words: Sequence[gr.Textbox],
    columns: Sequence[gr.Dropdown],
) -> More:
    """Lays the section out. words: prompt, right answer, beginning, earlier turns. columns: those
    beside the two, and the epoch."""
    high = dict(scale=0, min_width=140, elem_classes="tall")
    with gr.Row(elem_classes="beside"):
        numbers = _lay_out_numbers()
        draw = gr.Button("Draw samples", elem_id="draw-samples", **high)
    shown = gr.HTML(NOTHING_DRAWN, html_template=SAMPLES, elem_id="drawn-samples")
    _build_curve(worker, follower, opened)
    shape = dict(minimum=0, maximum=MOST_STRENGTH, step=0.05, value=1.0, elem_id="strength")
    strength = gr.Slider(label="Strength of the unlearning", **shape)
    strengths = gr.HTML(NO_STRENGTH, html_template=STRENGTH, elem_id="strength-result")
    used, walked = (gr.Textbox(visible="hidden") for _ in range(2))
    with gr.Row(elem_classes="beside"):
        whose = dict(choices=[("the original", ORIGINAL), ("the unlearned model", UNLEARNED)])
        by = gr.Radio(label="Whose reply", value=ORIGINAL, min_width=240, **whose)
        see = gr.Button("Look through the layers", elem_id="see-layers", **high)
    lens = html.drawn({"empty": ""}, "layers", "layer-grid", "layers")

    run_id, newest = follower.run_id, QUIET | {"trigger_mode": "always_last"}
    drawing, moving = [run_id, *words, *columns, *numbers], [run_id, fact, strength]
    at_work = [
        draw.click(partial(sample, worker), drawing, [shown, used], **TIMED),
        strength.input(partial(walk, worker), moving, [strengths, walked], **newest),
        see.click(partial(look_through, worker), [run_id, by, *words], lens, **TIMED),
    ]
    cleared = {shown: NOTHING_DRAWN, used: "", strengths: NO_STRENGTH, walked: ""}
    cleared[lens] = {"empty": ""}
    # an answer about the run before it is dropped
    follower.another.change(lambda: cleared, None, [*cleared], cancels=at_work, **EACH)
    return More(*numbers, draw, shown, used, strength, strengths, walked, see)


def _lay_out_numbers() -> list[gr.Number]:
    """Lays out the values of a `Drawing`, in its order."""
    defaults, whole, small = Drawing(), dict(precision=0), dict(min_width=90, scale=1)
    most_samples = f"Samples, up to {MOST_SAMPLES}"
    heat = dict(label="Temperature", maximum=MOST_TEMPERATURE, step=0.1)
    return [
        gr.Number(defaults.count, label=most_samples, elem_id="samples", **whole, **small),
        gr.Number(defaults.temperature, **heat, **small),
        gr.Number(defaults.top_p, label="Top-p", maximum=1, step=0.05, **small),
        gr.Number(defaults.seed, label="Seed", **whole, **small),
        gr.Number(defaults.most, label="Tokens", maximum=MOST_TOKENS, **whole, **small),
    ]


def _build_curve(worker: Worker, follower: Follower, opened: gr.State) -> None:
    """Lays out leak@k of the run's samples of all facts, or that there are none."""
    note = gr.Markdown(NOT_SAMPLED, elem_id="not-sampled")
    with gr.Column(visible=False) as home:
        curve = chart(figures.empty(""), "leak-at-k", "How often samples leak")

    def looked(name: str) -> dict:
        run = probed_run(worker, name)
        result = run.recovery().get("sampling")
        shown = {note: gr.Markdown(visible=result is None)}
        shown[home] = gr.Column(visible=result is not None)
        if result is not None:
            shown |= curve.updates(leak_figure(result, run.facts.forget), described_run(run))
        return shown

    when, changed = [opened.change, follower.another.change], [note, home, *curve.all]
    gr.on(when, looked, follower.run_id, changed, **EACH_IN_TURN)


def build_kept(worker: Worker, follower: Follower, opened: gr.State, answers: gr.HTML) -> None:
    """Lays out the questions of one's own that the run keeps. Their files are made on a press.
    answers: they change when a question was asked."""
    gr.Markdown("#### Questions asked of this run")
    table = grid("kept-questions", NOTHING_KEPT)
    with gr.Row(elem_classes="beside"):
        unseen = dict(visible=False, scale=0, min_width=110, size="sm")
        make = gr.Button("Save as files", elem_id="make-kept", **unseen)
        files = [
            gr.DownloadButton(kind.upper(), elem_id=f"kept-{kind}", **unseen)
            for kind in questions.KINDS
        ]

    def listed(name: str) -> list:
        run = probed_run(worker, name)
        hidden = [gr.DownloadButton(visible=False) for _ in files]
        entries, ways = questions.read(run), questions.read_ways(run)
        return [kept_table(entries), gr.Button(visible=bool(entries or ways)), *hidden]

    def written(name: str) -> list[gr.DownloadButton]:
        paths = kept_files(questions.everything(probed_run(worker, name)))
        return [gr.DownloadButton(value=path, visible=True) for path in paths]

    when = [opened.change, follower.another.change, answers.change]
    gr.on(when, listed, follower.run_id, [table, make, *files], **EACH_IN_TURN)
    make.click(written, follower.run_id, files, **QUIET)


def kept_table(entries: Sequence[questions.Question]) -> dict:
    """Values of the list of kept questions, newest first."""
    return grid_of(question_table(entries[: -MOST_LISTED - 1 : -1])) if entries else NOTHING_KEPT


def kept_files(entries: Sequence[questions.Question]) -> list[Path]:
    """Writes all kept questions, a file of each of `questions.KINDS`."""
    folder, paths = served_folder(), []
    for kind, write in questions.KINDS.items():
        paths.append(folder / f"questions.{kind}")
        paths[-1].write_text(write(entries), "utf-8")
    return paths


async def sample(
    worker: Worker,
    name: str,
    prompt: str | None,
    gold: str | None,
    begun: str | None,
    earlier: str | None,
    others: object,
    epoch: object,
    *drawing: object,
) -> tuple[dict, str]:
    """(values of `SAMPLES`, what a link says of them), or (why there are none, ""). drawing: the
    values of a `Drawing`; the others as for `ask_both`. All come from the browser."""
    try:
        if not (prompt or "").strip():
            raise RunError("There is no question yet.", "Type a question, or pick a fact.")
        question = question_of(prompt, gold, begun, earlier)
        draws = drawing_of(*drawing)
        run = await offload(worker.usage, asked_run, worker, name)
        chosen = await offload(worker.usage, columns_of, worker, run, others, epoch)
        asking = worker.ask, run, jobs.sample_columns, question, chosen, draws
        samples = await answered(worker.usage, *asking, beside=chosen)
    except AdaPopError as error:
        return html.values({"empty": public_words(error)}), ""
    settings = f"temperature {draws.temperature:g}, top-p {draws.top_p:g}, seed {draws.seed}"
    about = f"{question.prompt} · {draws.count} samples, {settings}"
    sides = [_side(*pair) for pair in zip(chosen, samples)]
    return html.values({"about": about, "sides": sides}), used_for(prompt, begun, earlier, drawing)


def used_for(prompt: str, begun: str | None, earlier: str | None, drawing: Sequence[float]) -> str:
    """The settings of samples, with their question behind them: `questionLink` puts them into an
    address only beside that one."""
    numbers = ",".join(f"{value:.12g}" for value in drawing)
    return "|".join([numbers, *((text or "").strip() for text in (begun, earlier, prompt))])


def drawing_of(count: object, heat: object, top: object, seed: object, most: object) -> Drawing:
    """The settings of sampling from the browser's numbers. Raises ConfigError: one is out of range
    or missing."""
    numbers = [
        value if isinstance(value, int | float) else float("nan")
        for value in (count, heat, top, seed, most)
    ]
    whole = [int(value) if float(value).is_integer() else value for value in numbers]
    return Drawing(whole[0], float(numbers[1]), float(numbers[2]), whole[3], whole[4])


def _side(chosen: Chosen, samples: Samples) -> dict:
    """One column's greedy reply, then its samples, equal ones counted, those that leak first."""
    counts, leaks = Counter(samples.texts), dict(zip(samples.texts, samples.gave_away))
    ordered = sorted(counts, key=lambda text: (not leaks.get(text, False), -counts[text], text))
    replies = [(samples.greedy, "the usual reply", bool(samples.greedy_gave_away))]
    for text in ordered:
        replies.append((text, number_of(counts[text], "time"), leaks.get(text, False)))
    rows = [
        {"text": text or texts.SAYS_NOTHING, "count": count, "away": away}
        for text, count, away in replies
    ]
    side = {"name": chosen.name, "kind": chosen.kind, "mark": MARKS[chosen.kind], "texts": rows}
    if share := samples.share:
        low, high = percent(share.low), percent(share.high)
        side["share"] = f"{percent(share.mean)} give it away (95% interval {low} to {high})"
        side["share_kind"] = "leak" if share.mean and chosen.kind != ORIGINAL else ""
    return side


async def look_through(worker: Worker, name: str, by: object, *inputs: str | None) -> dict:
    """A reply in the layers of both models, as values of `layers`. by: whose reply.
    inputs: prompt, right answer, beginning, earlier turns."""
    try:
        question = question_of(*inputs)
        if not question.prompt or by not in (ORIGINAL, UNLEARNED):
            raise RunError("There is no question yet.", "Type a question, or pick a fact.")
        run = await offload(worker.usage, asked_run, worker, name)
        asking = worker.ask, run, jobs.layers_of_reply, question, by
        depths = await answered(worker.usage, *asking)
    except AdaPopError as error:
        return {"empty": public_words(error)}
    about = f"{question.prompt} · {LAYERS_ABOUT}"
    return asdict(depths) | {"about": about}


async def walk(
    worker: Worker, name: str, fact_id: str | None, strength: object
) -> tuple[dict, str]:
    """(values of `STRENGTH` for one strength of the adapter, what a link says of it), or (why there
    are none, "")."""
    try:
        if not is_strength(strength):
            raise RunError("This is not a valid strength.", f"Choose 0 to {MOST_STRENGTH}.")
        run = await offload(worker.usage, asked_run, worker, name)
        known_id = await offload(worker.usage, fact_of, run, fact_id)
        both = (0.0, float(strength))
        asking = worker.ask, run, jobs.at_strengths, both, known_id
        strengths = await answered(worker.usage, *asking)
    except AdaPopError as error:
        return html.values({"empty": public_words(error)}), ""
    fact = run.facts.fact(known_id)
    content = strength_of(*strengths, fact.title if fact else "")
    return html.values(content), f"{strength:.12g}|{fact_id}"


def is_strength(value: object) -> bool:
    """Whether a value from the browser is one of the slider's."""
    return isinstance(value, int | float) and 0 <= value <= MOST_STRENGTH


def strength_of(before: AtStrength, now: AtStrength, title: str = "") -> dict:
    """Values of `STRENGTH`, not escaped: both models' mean probabilities of the right answers.
    title: of the fact that is "this fact"."""
    rows = []
    for was, group in zip(before.groups, now.groups, strict=True):
        few = f" ({group.facts})" if group.facts > 1 else ""
        ends = {"before": round(100 * was.probability), "percent": round(100 * group.probability)}
        percents = {"was": percent(was.probability), "shown": percent(group.probability)}
        rows.append({"name": f"{group.name[0].upper()}{group.name[1:]}{few}", **ends, **percents})
    about = f"Probability of the right answer at strength {now.strength:g}"
    return {"about": f"{title} · {about}" if title else about, "groups": rows}
