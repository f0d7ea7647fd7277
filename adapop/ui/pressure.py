"""Screen 2, Pressure: how a score becomes an exponent, and what the exponent does while a fact fades."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from adapop import figures
from adapop.beta import POPULAR_ANCHOR, RARE_ANCHOR, BetaMap, peak, quantile_scores
from adapop.errors import ConfigError
from adapop.facts import FactSet
from adapop.ui import copy

BARELY = 1.5


@dataclass(frozen=True)
class PressureScreen:
    """The components other screens read: the two anchor scores, from which the map follows."""

    rare: gr.Number
    popular: gr.Number


def build(facts: gr.State, initial: FactSet) -> PressureScreen:
    """Lays the screen out inside the current tab."""
    gr.Markdown(copy.PRESSURE_ABOUT)
    with gr.Row():
        rare = gr.Number(RARE_ANCHOR[0], label=f"Score that gets β = {RARE_ANCHOR[1]}", min_width=150)
        popular = gr.Number(POPULAR_ANCHOR[0], label=f"Score that gets β = {POPULAR_ANCHOR[1]}", min_width=150)
        with gr.Column(min_width=150):
            paper = gr.Button("Paper's anchors", size="sm")
            quantiles = gr.Button("Anchors of this set", size="sm")
    curve, push, words = _drawn(initial, *(anchor[0] for anchor in (RARE_ANCHOR, POPULAR_ANCHOR)))
    said = gr.Markdown(words, elem_id="pressure-words")
    with gr.Row():
        with gr.Column(min_width=320):
            gr.Markdown("### From score to exponent")
            curve = gr.Plot(curve, show_label=False, elem_id="beta-curve")
        with gr.Column(min_width=320):
            gr.Markdown("### The push while a fact fades")
            push = gr.Plot(push, show_label=False, elem_id="push-curves")
    drawn = [curve, push, said]
    for anchor in (rare, popular):
        anchor.change(_drawn, [facts, rare, popular], drawn, api_visibility="private", show_progress="hidden")
    facts.change(_drawn, [facts, rare, popular], drawn, api_visibility="private", show_progress="hidden")
    paper.click(lambda: (RARE_ANCHOR[0], POPULAR_ANCHOR[0]), None, [rare, popular], api_visibility="private")
    quantiles.click(_quantiles, facts, [rare, popular], api_visibility="private")
    return PressureScreen(rare, popular)


def beta_map(rare: float | None, popular: float | None) -> BetaMap:
    """The map through the two anchor scores at the paper's betas.

    Raises:
        ConfigError: a score is missing, or the popular one is not above the rare one.
    """
    if rare is None or popular is None:
        raise ConfigError("An anchor score is empty.", "Fill both, or press Paper's anchors.")
    if (rare, popular) == (RARE_ANCHOR[0], POPULAR_ANCHOR[0]):
        return BetaMap()  # the paper rounds a and b; so do its numbers, and ours on the command line
    return BetaMap.from_anchors((rare, RARE_ANCHOR[1]), (popular, POPULAR_ANCHOR[1]))


def _drawn(facts: FactSet | None, rare: float | None, popular: float | None):
    """Both figures and one sentence that says what they mean."""
    try:
        beta = beta_map(rare, popular)
    except ConfigError as error:
        return gr.skip(), gr.skip(), f"**{error.message}** {error.fix}"
    members = facts.forget if facts else ()
    scores = sorted(fact.score for fact in members if fact.score is not None)
    if not scores:
        return figures.beta_curve([], beta), figures.empty("needs facts with scores"), "No fact has a score yet."
    ends = {"rarest fact": beta(scores[0]), "middle": beta(scores[len(scores) // 2]), "most popular": beta(scores[-1])}
    return figures.beta_curve(members, beta), figures.push_curves(ends), _sentence(ends)


def _sentence(ends: dict[str, float]) -> str:
    rare, popular = ends["rarest fact"], ends["most popular"]
    if rare < BARELY * popular:
        return f"β only runs from {rare:.2f} to {popular:.2f}: **this is close to one fixed β for all.**"
    p = 0.05
    ratio = (p**popular) / (p**rare)
    return (
        f"When the model is down to p = {p:g} on both, the most popular fact (β = {popular:.2f}) is still pushed "
        f"**{ratio:,.0f} times as hard** as the rarest (β = {rare:.2f}). The push is strongest at p = {peak(rare):.2f} "
        f"for the rarest and only at p = {peak(popular):.2f} for the most popular."
    )


def _quantiles(facts: FactSet | None):
    scores = [fact.score for fact in facts.forget if fact.score] if facts else []
    if len(set(scores)) < 2:
        gr.Warning("This set has no two different scores to anchor at.")
        return gr.skip(), gr.skip()
    return quantile_scores(scores)
