"""Choosing the map from score to exponent: anchors, which are two points (score, beta), by name;
warnings; the meaning of a map."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapop.errors import ConfigError, truncated
from adapop.facts.fact import FactSet
from adapop.facts.scale import on_wikidata_scale
from adapop.facts.tiers import number
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR, Anchor, BetaMap, quantile_scores
from adapop.remark import Remark

AUTO, PAPER, QUANTILES = "auto", "paper", "quantiles"
SPAN_WANTED = 10.0  # least ratio of popular to rare scores of a usable proxy
ANCHOR_RATIO_WANTED = 3.0  # least ratio of the anchors' scores
SCALE_APART = 10.0  # a score this many times off its anchor is on another scale
MOST = 0.5  # largest share of facts at a clip without a warning
FADED = 0.05
BARELY = 1.5  # largest ratio of exponents that are called alike
FEW = 3  # fewest facts for warnings about their spread or clips
REASONS = {
    "scale": "anchors_scale",
    "own-scale": "anchors_own_scale",
    "no-spread": "anchors_no_spread",
}
ANCHORS = re.compile(r"\s*([^:,]+):([^:,]+),([^:,]+):([^:,]+)\s*")


@dataclass(frozen=True)
class ChosenAnchors:
    """The anchors that suit a set, and why."""

    chosen: str
    """PAPER or QUANTILES."""
    reason: str
    """"scale": scores are on Wikidata's; "own-scale": on another; "no-spread": too much alike."""
    rare: Anchor
    """Score and β of the rare anchor."""
    popular: Anchor
    """Score and β of the popular anchor."""

    @property
    def beta(self) -> BetaMap:
        return anchored(self.rare, self.popular)

    @property
    def remark(self) -> Remark:
        points = [f"{number(score)} (β {beta:g})" for score, beta in (self.rare, self.popular)]
        return Remark(REASONS[self.reason], {"points": " and ".join(points)})

    @property
    def text(self) -> str:
        """The remark as a sentence, for users of the Python API."""
        return self.remark.text("program")


def auto_anchors(facts: FactSet) -> ChosenAnchors:
    """The paper's anchors if scores are on Wikidata's scale or do not spread; else quantiles."""
    if on_wikidata_scale(facts):
        return ChosenAnchors(PAPER, "scale", RARE_ANCHOR, POPULAR_ANCHOR)
    try:
        low, high = quantile_scores(fact.score for fact in facts.forget if fact.score is not None)
        rare, popular = (low, RARE_ANCHOR[1]), (high, POPULAR_ANCHOR[1])
        BetaMap.from_anchors(rare, popular)
    except ConfigError:
        return ChosenAnchors(PAPER, "no-spread", RARE_ANCHOR, POPULAR_ANCHOR)
    return ChosenAnchors(QUANTILES, "own-scale", rare, popular)


def calibrated(anchors: str, facts: FactSet) -> BetaMap:
    """The map for the given anchors: "auto" (see `auto_anchors`), "paper", "quantiles" of the
    forget scores, or "100:1.5,3000:0.1" (score:beta). Raises ConfigError: invalid anchors."""
    if anchors == AUTO:
        return auto_anchors(facts).beta
    if anchors == PAPER:
        return BetaMap()
    if anchors == QUANTILES:
        return BetaMap.from_quantiles(fact.score for fact in facts.forget if fact.score is not None)
    parts = ANCHORS.fullmatch(anchors)
    try:
        values = [float(part) for part in parts.groups()] if parts else None
    except ValueError:
        values = None
    if values is None:
        message = f"Anchors {truncated(anchors)!r} cannot be read."
        raise ConfigError(message, "Use auto, paper, quantiles, or for example 100:1.5,3000:0.1.")
    return anchored((values[0], values[1]), (values[2], values[3]))


def anchored(rare: Anchor, popular: Anchor) -> BetaMap:
    """The map through two (score, beta) points; the paper's own give its rounded a and b."""
    if (rare, popular) == (RARE_ANCHOR, POPULAR_ANCHOR):
        return BetaMap()  # the paper's numbers were made with its rounded a and b
    return BetaMap.from_anchors(rare, popular)


def warnings_of(scores: Sequence[float], beta: BetaMap) -> list[Remark]:
    """Warnings about this map for these scores; for fewer than three, none about spread or
    clips."""
    warnings = []
    positive = [score for score in scores if score > 0]
    varied = len(set(positive)) > 1
    if scores and not varied and len({beta(score) for score in scores}) < 2:
        return [Remark("one_beta")]
    if varied:
        low, high = quantile_scores(positive)
        if high < SPAN_WANTED * low and len(scores) >= FEW:
            ends = {"low": number(low), "high": number(high)}
            betas = {"least": beta(high), "most": beta(low)}
            warnings.append(Remark("narrow_scores", ends | betas))
        warnings += _scale_warning(low, high, beta)
    return warnings + (_clip_warning(scores, beta) if len(scores) >= FEW else [])


def _clip_warning(scores: Sequence[float], beta: BetaMap) -> list[Remark]:
    """A warning if most facts have an exponent at a clip, counting both clips together."""
    on_clip = [sum(beta(score) == clip for score in scores) for clip in (beta.high, beta.low)]
    if not beta.b or sum(on_clip) <= MOST * len(scores):
        return []
    share, upper, lower = (count / len(scores) for count in (sum(on_clip), *on_clip))
    if upper and lower:
        ends = {"upper": upper, "lower": lower, "high": beta.high, "low": beta.low}
        return [Remark("both_clips", {"share": share} | ends)]
    kind, clip = ("upper_clip", beta.high) if upper else ("lower_clip", beta.low)
    return [Remark(kind, {"share": share, "clip": clip})]


def _scale_warning(low: float, high: float, beta: BetaMap) -> list[Remark]:
    """Warnings if scores and anchors are on different scales, or the anchors are too close."""
    rare, popular = beta.score_at(RARE_ANCHOR[1]), beta.score_at(POPULAR_ANCHOR[1])
    if rare is None or popular is None:
        return []
    warnings = []
    if max(low / rare, rare / low, high / popular, popular / high) > SCALE_APART:
        ends = {"low": low, "high": high, "rare": rare, "popular": popular}
        ends = {name: number(score) for name, score in ends.items()}
        warnings.append(Remark("other_scale", ends))
    if popular < ANCHOR_RATIO_WANTED * rare:
        warnings.append(Remark("close_anchors"))
    return warnings


def meaning_of(rare: float, popular: float, every: Sequence[float] = ()) -> Remark:
    """What the exponents of the rarest and the most popular fact mean. every: the exponents of all
    facts, which under wrong scores may differ even if those two are equal."""
    if rare == popular == 0:
        return Remark("plain_ascent")
    least, most = min((rare, popular, *every)), max((rare, popular, *every))
    if least == most:
        return Remark("same_beta", {"beta": rare})
    if max(rare, popular) < BARELY * min(rare, popular):
        values = {"least": least, "most": most}
        if most >= BARELY * least:
            return Remark("beta_without_popularity", values | {"rare": rare, "popular": popular})
        return Remark("narrow_beta", values)
    stronger, weaker = ("most popular", "rarest") if popular < rare else ("rarest", "most popular")
    small, large = min(rare, popular), max(rare, popular)
    values = {"stronger": stronger, "small": small, "weaker": weaker, "large": large}
    shares = {"percent": 100 * FADED, "factor": FADED ** (small - large)}
    return Remark("still_pushed", values | shares)
