"""Titles of figures: sentences computed from the drawn numbers.

A difference whose interval includes zero is called none.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from adapop.errors import number_of
from adapop.facts.tiers import number
from adapop.popularity.beta import peak
from adapop.probes.intervals import Interval, apart, difference, wilson
from adapop.probes.matrix import Cell
from adapop.probes.prompts import DIRECT, plain
from adapop.report.table import percent, points, ranged, tenths

NEARLY_NONE = 0.05  # recall at or below which a tier is called gone
EVEN = "the pressure of WGA"
CHANCE = "which may be chance"
# it is called "gap" only for all held-out rewordings
GAP, LEAD = "gap", "popular minus rare"
MOST_NAMES = 4  # most names in a title
TO_FORGET = "to forget"  # name of all facts to forget where none has a tier
LOSSES = {
    "popular": "popular answers",
    "rare": "rare answers",
    TO_FORGET: "answers to forget",
    "retained": "the retain set",
}
NOTHING_FORGOTTEN = "Nothing was forgotten beyond chance, so there is nothing to compare yet"
GOOD = ("Not brought back", "Retained", "Never known", "Not measurable")


Share = Interval | None


def survival(popular: Share, rare: Share, every: Share, known: Share = None) -> str:
    """A sentence on the shares of popular and rare facts still answered. every: of all facts, for a
    set without both tiers. known: of all facts, before unlearning."""
    if known is not None and known.mean <= NEARLY_NONE:
        return f"Asked this way, the original answered only {percent(known.mean)} of them"
    if popular is None or rare is None:
        share = every and percent(every.mean)
        return f"{share} of the facts to forget are still answered" if share else ""
    most, least, gap = tenths(popular.mean), tenths(rare.mean), difference(popular, rare)
    if max(one.mean for one in (popular, rare, every) if one is not None) <= NEARLY_NONE:
        return f"Almost nothing is still answered: {most} of popular facts, {least} of rare ones"
    if gap.low > 0:
        return f"Popular facts survive: {most} against {least} of the rare"
    if gap.high < 0:
        return f"Popular facts go first: {most} against {least} of the rare"
    doubt = "" if popular.mean == rare.mean else f", {CHANCE}"
    return f"Still answered: popular {most}, rare {least}{doubt}"


def outcome(forget: Sequence[Interval], retained: Mapping[str, Sequence[Interval]]) -> str:
    """A sentence on the largest loss among kept groups; if none was known before, on what was
    forgotten. forget: recall before and after; retained: the same for each kept group, by name."""
    drops = {one: difference(*pair) for one, pair in retained.items() if pair[0].mean > NEARLY_NONE}
    never = [name for name in retained if name not in drops]
    if not drops and never:
        return f"Never known, so not lost: {_listed(never)}"
    if not drops:
        return f"{percent(forget[0].mean)} before, {percent(forget[1].mean)} after"
    # a loss that may be chance is named only if no other loss is clear
    name = max(drops, key=lambda one: (drops[one].low > 0, drops[one].mean))
    if drops[name].mean < 0.005:
        if not never:
            return "Nothing that should be kept was lost"
        return f"{_listed([*drops]).capitalize()} lost nothing; never known: {_listed(never)}"
    return f"{name[0].upper()}{name[1:]} lost {points(drops[name].mean)}{_doubt(drops[name])}"


def _doubt(gap: Interval) -> str:
    """Words after a difference whose interval includes 0; else ""."""
    return f", {CHANCE}" if gap.low <= 0 <= gap.high and gap.low < gap.high else ""


def strain(above: int, epochs: int, controller: str) -> str:
    """A sentence on how often the loss of retained facts rose. above: number of epochs with drift
    beyond the tolerance."""
    if not epochs:
        return "The controller waits for the first epoch"
    rested = "" if controller == "fixed" else ", so the controller did nothing"
    if not above:
        return f"The loss of the retain set stayed within the tolerance{rested}"
    times = "once" if above == 1 else f"{above} times"
    answer = {
        "dual": ", and the controller protected it more",
        "fixed": ", and its weight stayed as it was set",
    }
    sentence = f"The loss of the retain set rose beyond the tolerance {times} in "
    return sentence + number_of(epochs, "epoch") + answer.get(controller, "")


def losses(first: Mapping[str, float], last: Mapping[str, float]) -> str:
    """How the mean loss changed from the first epoch to the last. first, last: line -> nats."""
    both = [name for name in LOSSES if name in first and name in last]
    moved = {name: round(last[name] - first[name], 1) for name in both}
    if not moved.keys() - {"retained"}:
        return ""
    parts = []
    for sign, names in groupby(moved, lambda name: (moved[name] > 0) - (moved[name] < 0)):
        by = {name: f"by {abs(moved[name])} nats " if sign else "" for name in names}
        lines = ", ".join(f"{nats}for {LOSSES[name]}" for name, nats in by.items())
        parts.append(f"{('hardly moved', 'rose', 'fell')[sign]} {lines}")
    return f"The loss {', and '.join(parts)}"


def leak(cells: Sequence[Cell]) -> str:
    """The form that leaks most, beside the direct question. cells: one per form, of all tiers."""
    fair = [cell for cell in cells if cell.measurable and not cell.chance]
    if not fair:
        return ""
    worst = max(fair, key=lambda cell: cell.unlearned.recall.mean)
    direct = next((cell for cell in fair if cell.kind == DIRECT), None)
    most = worst.unlearned.recall
    share = f"{percent(most.mean)} of {number_of(worst.facts, 'answer')}"
    if direct is None or worst is direct:
        return f"No way of asking gets more than {share}"
    trained, name = direct.unlearned.recall, plain(worst.kind).capitalize()
    doubt = _doubt(difference(most, trained))
    return f"“{name}” gets {share}, the trained question {percent(trained.mean)}{doubt}"


def verdict_shares(counts: Mapping[str, Mapping[str, int]]) -> str:
    """A sentence on the share of facts that leak or are damaged, popular and rare, else of the
    first key. counts: tier -> verdict -> number."""
    bad = {}
    for place, numbers in counts.items():
        if total := sum(numbers.values()):
            wrong = sum(count for name, count in numbers.items() if name not in GOOD)
            bad[place] = wilson(wrong / total, total)
    if {"popular", "rare"} <= bad.keys():
        gap = difference(bad["popular"], bad["rare"])
        shares = percent(bad["popular"].mean), percent(bad["rare"].mean)
        probed = sum(sum(counts[tier].values()) for tier in ("popular", "rare"))
        rest = f"rare facts, of {probed:,} probed{_doubt(gap)}"
        return f"Not gone: {shares[0]} of popular and {shares[1]} of {rest}"
    for place, share in bad.items():
        where = {"all": "", "unknown": ""}.get(place, f" of {place} facts")
        return f"Leaked or damaged: {ranged(share)}{where}"
    return ""


def widest(gaps: Sequence[tuple[str, Interval]], where: str = "", what: str = GAP) -> str:
    """A sentence on the narrowest and the widest gap, and on contestants that may be as narrow or
    wide. gaps: (name, gap) of each, [-1, 1]. where: words before it. what: name of the
    difference."""
    if not gaps:
        return ""
    widths = [(name, _width(gap)) for name, gap in sorted(gaps, key=lambda one: abs(one[1].mean))]
    (narrow, least), (wide, most) = widths[0], widths[-1]
    if len(gaps) == 1:
        ((_, gap),) = gaps
        width = f"{points(gap.mean)} {'above' if gap.mean > 0 else 'below'} rare ones"
        return f"{where}{wide} leaves popular facts {width}{_doubt(gap)}"
    ends = f"{points(least.mean)} under {narrow}, {round(100 * most.mean)} under {wide}"
    if not apart(least, most):
        return _after(where, f"No method is clearly more even: {what} {ends}, {CHANCE}")
    near = [
        f"perhaps as {how}: {_listed(names)}"
        for end, share, how in ((narrow, least, "narrow"), (wide, most, "wide"))
        if (names := [name for name, width in widths if name != end and not apart(width, share)])
    ]
    doubt = f" ({'; '.join(near)})" if near else ""
    return _after(where, f"{what.capitalize()}: {ends}{doubt}")


def _after(where: str, sentence: str) -> str:
    return where + sentence[0].lower() + sentence[1:] if where else sentence


def _width(gap: Interval) -> Interval:
    """The size of a gap regardless of its direction, with its range."""
    low, high = sorted((abs(gap.low), abs(gap.high)))
    return Interval(abs(gap.mean), 0.0 if gap.low < 0 < gap.high else low, high)


def bargain(front: Sequence[str], near: Sequence[str] = ()) -> str:
    """A sentence on the runs on the Pareto front of forgetting and keeping. near: runs whose defeat
    may be chance."""
    if not front:
        return ""
    doubt = f" (beaten perhaps by chance: {_listed(near)})" if near else ""
    if len(front) > MOST_NAMES:
        return f"{len(front)} runs that no other beats{doubt}"
    return f"No run forgets more and keeps as much as {_listed(front, 'or')}{doubt}"


def extremes(placed: Sequence[tuple[str, Interval, Interval]], where: str = "") -> str:
    """A sentence on the contestants that forget and keep most, and those too close to call. placed:
    name, recall of facts to forget, recall of held-out facts, with ranges. where: as in
    `widest`."""
    if len(placed) < 2:
        return ""
    (forgets, left), (keeps, held) = _leader(placed, 1, " left"), _leader(placed, 2, sign=-1)
    if not forgets and not keeps:
        return _after(where, f"No method clearly forgets most ({left}) or keeps most ({held})")
    nobody = "no method clearly" if where else "No method clearly"
    forgetting = f"{where}{forgets or nobody} forgets most ({left})"
    return f"{forgetting}; {keeps or 'no method clearly'} keeps most ({held})"


def _leader(placed: Sequence[tuple], at: int, word: str = "", sign: int = 1) -> tuple[str, str]:
    """(name, text): the clear leader in a share, with its share and those too close to it; or ""
    and the range of all shares. at: index of the share. word: text after it. sign: -1 if the
    largest leads."""
    ordered = sorted(placed, key=lambda one: sign * one[at].mean)
    first, last = ordered[0], ordered[-1]
    near = [one[0] for one in ordered[1:] if not apart(one[at], first[at])]
    if len(near) == len(placed) - 1:
        shares = [percent(share) for share in sorted((first[at].mean, last[at].mean))]
        return "", " to ".join(dict.fromkeys(shares)) + word
    doubt = f"; perhaps as much: {_listed(near)}" if near else ""
    return first[0], f"{percent(first[at].mean)}{word}{doubt}"


def _listed(names: Sequence[str], joint: str = "and") -> str:
    """Names (at least one) joined in a sentence, those after the third as a number if more than
    four. joint: word before the last."""
    named = [name.replace(",", "") for name in names]
    if len(named) > MOST_NAMES:
        named[MOST_NAMES - 1 :] = [f"{len(named) - MOST_NAMES + 1} more"]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} {joint} {named[-1]}"


def spread(scores: Sequence[float], unknown: int) -> str:
    """The range of the scores, in words. unknown: number of facts without a score."""
    if not scores:
        return "No fact has a score yet" if unknown else ""
    low, high = min(scores), max(scores)
    sentence = f"Popularity scores run from {number(low)} to {number(high)}"
    sentence = sentence if high > low else f"Every score is {number(low)}"
    return f"{sentence}; {unknown:,} facts have none" if unknown else sentence


def pushes(betas: Mapping[str, float]) -> str:
    """Where the training signal of rare and of popular facts is strongest. betas: by name, the
    rarest first."""
    (rare, large), *_, (popular, small) = betas.items()
    if abs(large - small) < 0.05:
        return f"The {rare} and the {popular} fact get equal pressure as they fade"
    (early, high), (late, low) = sorted(((rare, large), (popular, small)), key=lambda one: -one[1])
    tops = [percent(peak(beta)) for beta in (high, low)]
    return f"The {early} fact gets most pressure at {tops[0]} confidence, the {late} at {tops[1]}"


def against_wga(betas: Mapping[str, float], confidence: float) -> str:
    """A sentence on the pressure relative to WGA's. betas: by name, rarest first. confidence: of
    both facts."""
    (rare, large), *_, (popular, small) = betas.items()
    if abs(large - 1) < 0.05 and abs(small - 1) < 0.05:
        return f"Every fact gets {EVEN}"
    factors = [_factor(confidence ** (beta - 1)) for beta in (small, large)]
    sentence = f"At {percent(confidence)} confidence, the {popular} fact"
    if factors[0] == factors[1]:
        return f"{sentence} and the {rare} both get {factors[0]} {EVEN}"
    return f"{sentence} gets {factors[0]} {EVEN}, the {rare} {factors[1]} it"


def _factor(times: float) -> str:
    """A ratio as text: "16 times", or "5% of"."""
    if times < 0.995:
        return f"{percent(times)} of"
    return f"{times:,.0f} times" if times >= 10 else f"{times:.2g} times"


def agreeing(same: int, apart: int) -> str:
    """A sentence on how many facts two proxies agree. same, apart: number of facts on which they
    do, do not."""
    if not (every := same + apart):
        return ""
    return f"The two agree on {percent(same / every)} of {number_of(every, 'fact')}"
