"""The panel of Run on how a score becomes an exponent β, and its effect while a fact fades."""

from collections.abc import Sequence
from functools import partial
from statistics import median

import gradio as gr

from adapop.errors import ConfigError
from adapop.facts.fact import Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.beta import (
    POPULAR_ANCHOR,
    RARE_ANCHOR,
    BetaMap,
    inverted,
    noisy,
    quantile_scores,
    shuffled,
    swapped,
)
from adapop.popularity.calibration import FADED, anchored, auto_anchors, meaning_of, warnings_of
from adapop.remark import sentences
from adapop.report import figures
from adapop.ui.parts import html
from adapop.ui.parts.chart import column, twin, twin_of
from adapop.ui.session import Anchors, Session, anchors_of, curve_of
from adapop.ui.wiring import EACH, IN_TURN, QUIET

ANCHOR_LABELS = ("◆ Rare: score", "gets β", "◆ Popular: score", "gets β")
QUANTILES = "◆ from this set's scores"
AUTO_ANCHORS = "Reset: fit the curve to these facts"
OWN_ANCHORS = "The anchors are your own choice, for every set."
CONFIDENCE = "Confidence: how sure the model is (p, %)"
PUSH_TABLE = (
    "A fact starts at the right, where the model is sure of it, and moves left as it is forgotten. "
    "The height is the training signal on its right answer, which is strongest at the mark. A "
    "small β keeps up the pressure on a fact long after a large β has let go. In symbols, the "
    "signal is p^β(1 − p), where p is the model's confidence in the right answer; it is strongest "
    "at p = β/(1 + β)."
)
RELATIVE_TABLE = (
    "The same relative to equal pressure on every fact, the method called WGA: above the dotted "
    "line a fact gets more pressure, below it less. As the paper draws it: the weight of an answer "
    "token against WGA's, p^(β − 1), by the confidence p."
)
CURVE_FORMULA = " In symbols: β = a · s^(−b), with s the score, a = {a:.4g} and b = {b:.4g}."
CURVE_TABLE = (
    "Each mark is a fact: the further right, the more popular; its height is its exponent β. Above "
    "1 the pressure fades while the model is still fairly sure of the fact (in the paper: "
    "self-limiting); below 1 it lasts until the fact is nearly gone (pressure-sustaining); at 1 "
    "it is equal pressure, WGA. In the shaded parts β is clipped: all facts there get the same "
    "β. The two ◆ fix the curve: drag them, use their arrow keys, or write their numbers below, "
    "under Advanced. “From this set's scores” puts them where 5% of its facts are rarer and "
    "where 5% are more popular. What if …: “never stop” is plain gradient ascent, β = 0; with "
    "“scores half swapped”, half of the rare and popular facts trade scores; “scores with "
    "errors” are wrong by a random factor, and right on average."
)

MOST_POINTS = 400
# name -> label, and what makes the scores that are used of those given
WHAT_IF = {
    "given": ("AdaPop", dict),
    "wga": ("equal pressure (WGA)", dict),
    "ga": ("never stop (β = 0)", dict),
    "shuffled": ("scores at random", partial(shuffled, seed=0)),
    "inverted": ("scores reversed", inverted),
    "swapped": ("scores half swapped", partial(swapped, seed=0)),
    "noisy": ("scores with errors", partial(noisy, seed=0)),
}
PAPER_ANCHORS = (RARE_ANCHOR, POPULAR_ANCHOR)
SMALL = dict(size="sm", scale=0)  # buttons
CONSTANT = {"wga": 1.0, "ga": 0.0}  # β of every fact, whatever its score


def build(session: Session) -> None:
    """Lays the panel out, folded. An address with ?tab=pressure opens it."""
    with gr.Accordion("Pressure on each fact", open=False, elem_id="pressure-panel"):
        _lay_out(session)


def _lay_out(session: Session) -> None:
    choices = [(label, name) for name, (label, _) in WHAT_IF.items()]
    what_if = gr.Radio(choices, value="given", label="What if …", elem_id="what-if")
    first = pictures(sandbox_facts())
    curve = html.drawn(first["curve"], "curve", "beta-curve", "betaCurve")
    table = twin(first["table"], "beta-curve-twin", first["about"])
    words = gr.Markdown(first["words"], elem_id="pressure-words")
    warnings = html.lines("pressure-warnings", first["warnings"])
    auto = gr.Button(AUTO_ANCHORS, min_width=170, elem_id="auto-anchors", **SMALL)
    with gr.Column(elem_classes="advanced-only"):
        anchors, chosen, paper, quantiles = _anchor_inputs(first["anchors"])
        sure = dict(value=round(100 * FADED), label=CONFIDENCE, elem_id="confidence")
        confidence = gr.Slider(1, 99, step=1, **sure)
    folded = gr.Accordion("Pressure while a fact fades", open=False, elem_id="fading")
    with folded, gr.Row(elem_classes="swipe"):
        push = column("Pressure and confidence", first["push"], "push-curves", PUSH_TABLE)
        named = "relative-push", RELATIVE_TABLE
        relative = column("Compared with equal pressure (WGA)", first["relative"], *named)

    def drawn(facts: FactSet | None, anchors: Anchors | None, what_if: str, percent: float):
        now = pictures(facts, anchors, what_if, percent / 100)
        places = {curve: "curve", words: "words", warnings: "warnings", chosen: "anchors"}
        return {
            **{place: now[name] for place, name in places.items()},
            **push.updates(now["push"]),
            **relative.updates(now["relative"]),
            table: twin_of(now["table"], now["about"]),
        }

    of_both = [session.anchors, *anchors]
    for anchor in anchors:
        anchor.input(_anchors, anchors, session.anchors, **IN_TURN)
        gr.on([anchor.blur, anchor.submit], _reset, [session.facts, *of_both], anchors, **IN_TURN)
    session.facts.change(_suited_inputs, [session.facts, session.anchors], anchors, **IN_TURN)
    inputs = [session.facts, session.anchors, what_if, confidence]
    outputs = [curve, table, words, warnings, chosen, *push.all, *relative.all]
    gr.on([one.change for one in inputs], drawn, inputs, outputs, **QUIET)
    # a second move may come before the answer
    curve.release(_moved, anchors, of_both, **(EACH | IN_TURN))
    session.page.load(_remembered, session.stored, anchors, **IN_TURN)
    auto.click(lambda facts: (None, *_numbers(facts, None)), session.facts, of_both, **IN_TURN)
    paper.click(lambda: (PAPER_ANCHORS, *RARE_ANCHOR, *POPULAR_ANCHOR), None, of_both, **IN_TURN)
    quantiles.click(_quantiles, session.facts, of_both, **IN_TURN)


def _anchor_inputs(why: str) -> tuple[list[gr.Number], gr.Markdown, gr.Button, gr.Button]:
    """Lays out the anchors' inputs (score, β; rare first), their reason, and the buttons for
    others."""
    with gr.Row(elem_id="anchors"):
        named = zip(ANCHOR_LABELS, (*RARE_ANCHOR, *POPULAR_ANCHOR))
        anchors = [gr.Number(value, label=label, min_width=130) for label, value in named]
    chosen = gr.Markdown(why, elem_id="anchors-chosen")
    with gr.Row():
        paper = gr.Button("◆ the paper's", min_width=170, elem_id="paper", **SMALL)
        quantiles = gr.Button(QUANTILES, min_width=210, elem_id="quantiles", **SMALL)
    return anchors, chosen, paper, quantiles


def _anchors(*values: float | None):
    """The anchors; no change while the inputs define no curve, as during typing."""
    return gr.skip() if _doubt(*values) else (values[:2], values[2:])


def _numbers(facts: FactSet | None, anchors: Anchors | None) -> tuple[float, float, float, float]:
    """Score and β of both anchors; if none were chosen, of those that suit the set."""
    if not anchors and facts:
        suited = auto_anchors(facts)
        anchors = (suited.rare, suited.popular)
    rare, popular = anchors or PAPER_ANCHORS
    return (*rare, *popular)


def _suited_inputs(facts: FactSet | None, anchors: Anchors | None):
    """The inputs for another set, with the anchors that apply to it."""
    return gr.skip() if anchors or facts is None else _numbers(facts, None)


def _reset(facts: FactSet | None, good: Anchors | None, *values: float | None):
    """The inputs, reset to the anchors in use, with a toast, if they define no curve."""
    doubt = _doubt(*values)
    if not doubt:
        return gr.skip()
    gr.Warning(f"{doubt} The last good anchors are back.")
    return _numbers(facts, good)


def _doubt(*values: float | None) -> str:
    """Why four numbers define no curve, empty if they do."""
    if None in values:
        return "An anchor is empty."
    try:
        curve = anchored(values[:2], values[2:])
    except ConfigError as error:
        return str(error)
    if not all(curve.low <= beta <= curve.high for beta in values[1::2]):
        return f"An anchor's β must lie between {curve.low:g} and {curve.high:g}."
    return ""


def _remembered(stored: object):
    """The anchors that this browser stored."""
    anchors = anchors_of(stored)
    return [value for anchor in anchors for value in anchor] if anchors else gr.skip()


def _moved(rare: float, rare_beta: float, popular: float, popular_beta: float, event: gr.EventData):
    """The anchors and inputs after handles were moved, validated: a browser may send anything."""
    pairs = {"rare": (rare, rare_beta), "popular": (popular, popular_beta)}
    for name in pairs:
        end = getattr(event, name, None)
        numbers = isinstance(end, list) and [type(value) for value in end]
        if numbers and len(numbers) == 2 and {*numbers} <= {int, float}:
            pairs[name] = tuple(end)
    values = (*pairs["rare"], *pairs["popular"])
    return (_anchors(*values), *values)


def pictures(
    facts: FactSet | None,
    anchors: Anchors | None = None,
    what_if: str = "given",
    confidence: float = FADED,
) -> dict:
    """All that the panel shows of a set, by name: the values of the curve's script, the curve as
    numbers, how to read it, the anchors in use and why, words, warnings, and the figures push and
    relative (to WGA's push).

    anchors: (score, beta) of the rare one and of the popular one, None for those that suit the set.
    what_if: of `WHAT_IF`. confidence: of both facts, in (0, 1).
    """
    beta, ranked, score_of = _scored(facts, anchors, what_if)
    exponents = [beta(score_of[fact.id]) for fact in ranked]
    ends = _betas_at_ends(ranked, score_of, beta)
    meaning, push = "No fact has a score yet.", figures.empty("needs facts with scores")
    relative = push
    if ends:
        meaning = meaning_of(ends["rarest"], ends["most popular"], exponents).text()
        push = figures.push_curves(ends, confidence)
        relative = figures.relative_push(ends, confidence)
    curve, table, about = curve_picture(facts, anchors, what_if, meaning)
    warnings = sentences(warnings_of([*score_of.values()], beta)) if what_if not in CONSTANT else []
    why = auto_anchors(facts).remark.text() if facts and not anchors else OWN_ANCHORS
    picture = dict(curve=curve, table=table, about=about, push=push, relative=relative)
    return picture | dict(words=meaning, warnings=html.listed(warnings, "warn"), anchors=why)


def curve_picture(
    facts: FactSet | None, anchors: Anchors | None = None, what_if: str = "given", meaning: str = ""
) -> tuple[dict, figures.Numbers, str]:
    """(values of the curve's script, the curve as numbers, how to read it). meaning: of the curve,
    for screen readers. The rest: see `pictures`."""
    beta, ranked, score_of = _scored(facts, anchors, what_if)
    values = _numbers(facts, anchors)
    step = 1 + len(ranked) // MOST_POINTS
    chosen = ranked[::step]
    names = [_name(fact, facts, score_of[fact.id], beta) for fact in chosen]
    label = f"Curve of β over the score with {len(chosen)} of {len(ranked)} facts. {meaning}"
    points = [[fact.score, score_of[fact.id], fact.tier] for fact in chosen]
    curve = {
        "points": [[*point, name] for point, name in zip(points, names)],
        "rare": list(values[:2]),
        "popular": list(values[2:]),
        "low": beta.low,
        "high": beta.high,
        "constant": CONSTANT.get(what_if),
        "label": label,
    }
    rows = [(fact.title, f"{fact.score:,.6g}", f"{beta(score_of[fact.id]):.3f}") for fact in chosen]
    every = 1 + len(rows) // figures.MOST_ROWS
    table = figures.Numbers(("fact", "score", "β"), tuple(rows[::every]), every * step)
    formula = "" if what_if in CONSTANT else CURVE_FORMULA.format(a=beta.a, b=beta.b)
    return curve, table, CURVE_TABLE + formula


def _scored(
    facts: FactSet | None, anchors: Anchors | None, what_if: str
) -> tuple[BetaMap, list[Fact], dict[str, float]]:
    """(the curve, the facts with a score, rarest first, the score used for each, by fact id)."""
    beta = BetaMap.constant(CONSTANT[what_if]) if what_if in CONSTANT else curve_of(facts, anchors)
    scored = [fact for fact in facts.forget if fact.score is not None] if facts else []
    _, used = WHAT_IF.get(what_if, WHAT_IF["given"])
    score_of = used({fact.id: fact.score for fact in scored})
    return beta, sorted(scored, key=lambda fact: fact.score), score_of


def _betas_at_ends(ranked: Sequence[Fact], score_of: dict[str, float], beta: BetaMap) -> dict:
    """β of the rarest, middle and most popular fact, by name; the median β where several have that
    score. ranked: by score. score_of: fact id -> the score used for β."""
    middle = {"middle": len(ranked) // 2} if len(ranked) > 2 else {}
    places = {"rarest": 0, **middle, "most popular": -1}
    scores = {name: ranked[place].score for name, place in places.items()} if ranked else {}
    betas = [(fact.score, beta(score_of[fact.id])) for fact in ranked]
    return {name: median(b for s, b in betas if s == score) for name, score in scores.items()}


def _name(fact: Fact, facts: FactSet, used: float, beta: BetaMap) -> str:
    """The label of a point of the curve. used: the score used for the fact's β."""
    other = "" if used == fact.score else f", used {used:,.6g}"
    becomes = f"score {fact.score:,.6g}{other} → β {beta(used):.3f}"
    return f"{fact.title}: {becomes}; {facts.tiers.label(fact.tier)}"


def _quantiles(facts: FactSet | None):
    """The anchors at the set's own rare and popular scores, and the inputs."""
    scores = [fact.score for fact in facts.forget if fact.score] if facts else []
    if len(set(scores)) < 2 or len(set(quantile_scores(scores))) < 2:
        gr.Warning("This set has no two different scores to anchor at.")
        return gr.skip()
    rare, popular = quantile_scores(scores)
    anchors = ((rare, RARE_ANCHOR[1]), (popular, POPULAR_ANCHOR[1]))
    return (anchors, *_numbers(facts, anchors))
