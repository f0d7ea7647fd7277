"""What a picture shows, in words with numbers: its title. Each is computed from what is drawn.

A difference that its interval does not tell from none is said to be none.
"""

from collections.abc import Mapping, Sequence

from adapop.probes.intervals import Interval, difference
from adapop.probes.matrix import Cell
from adapop.probes.prompts import DIRECT
from adapop.report.table import percent, points

NEARLY_NONE = 0.05  # recall at or below which a tier is called gone
Shares = tuple[Interval | None, Interval | None, Interval | None]  # of popular facts, of rare ones, of all
GOOD = ("Forgotten", "Retained", "Never known", "Not measurable")


def survival(popular: Interval | None, rare: Interval | None, every: Interval | None) -> str:
    """What is left of popular and of rare facts. every: of all of them, for a set without the two tiers."""
    if popular is None or rare is None:
        return "" if every is None else f"{percent(every.mean)} of the facts to forget are still answered"
    against = f"{percent(popular.mean)} against {percent(rare.mean)}"
    gap = difference(popular, rare)
    if max(popular.mean, rare.mean) <= NEARLY_NONE:
        return f"Next to nothing is left: {percent(popular.mean)} of popular facts, {percent(rare.mean)} of rare ones"
    if gap.low > 0:
        return f"Popular facts survive: {against} of the rare"
    if gap.high < 0:
        return f"Popular facts go first: {against} of the rare"
    return f"Popular and rare facts cannot be told apart: {against}, within the margin of chance"


def left(trained: Shares, reworded: Shares, epoch: int) -> str:
    """What is left after an epoch. Asked in other words where that was measured; both ways where they say different
    things. Each: what `survival` takes."""
    when, said, other = f"after epoch {epoch}", survival(*trained), survival(*reworded)
    if said and other and said.partition(":")[0] != other.partition(":")[0]:
        return f"{said} (asked as trained, {when}). {other} (in other words)"
    form = "in other words" if other else "as trained"
    return f"{other or said} (asked {form}, {when})" if other or said else ""


def outcome(forget: tuple[float, float], holdout: tuple[float, float] | None, form: str) -> str:
    """What was forgotten and what that cost. Each: recall before and after. form: how it was asked, in words."""
    said = f"Facts to forget, asked {form}: {percent(forget[0])} before, {percent(forget[1])} after"
    if holdout is None:
        return said
    lost = holdout[0] - holdout[1]
    return f"{said}. Facts never trained on lost {points(lost)}" if lost >= 0.005 else f"{said}, and the rest is whole"


def strain(above: int, epochs: int, controller: str) -> str:
    """How often the kept facts suffered. above: in how many epochs their loss drifted beyond the tolerance."""
    if not epochs:
        return "The controller waits for the first epoch"
    if not above:
        return "Kept facts never suffered beyond the tolerance, so the controller rested"
    times = "once" if above == 1 else f"{above} times"
    answer = {"dual": "and the controller held them tighter", "fixed": "and nothing held them tighter"}
    return f"Kept facts suffered beyond the tolerance {times} in {epochs} epochs, {answer.get(controller, '')}".strip(
        ", "
    )


def losses(first: Mapping[str, float], last: Mapping[str, float]) -> str:
    """How much harder the answers became, from the first epoch's steps to the last one's, in nats by tier."""
    rose = {
        name: last[name] - first[name] for name in ("popular", "rare", "retained") if name in first and name in last
    }
    said = [f"{by:.1f} nats for {name} answers" for name, by in rose.items() if name != "retained"]
    kept = rose.get("retained")
    rest = "" if kept is None else f", {kept:.1f} for kept ones" if kept >= 0.05 else ", and not for kept ones"
    return f"The loss rose by {', '.join(said)}{rest}" if said else ""


def leak(cells: Sequence[Cell]) -> str:
    """Which form gets most out of the unlearned model, beside the direct question. cells: of all tiers, one a form."""
    fair = [cell for cell in cells if cell.measurable and not cell.chance]
    if not fair:
        return ""
    worst = max(fair, key=lambda cell: cell.unlearned.recall.mean)
    direct = next((cell for cell in fair if cell.kind == DIRECT), None)
    if direct is None or worst is direct:
        return f"No way of asking gets more than {percent(worst.unlearned.recall.mean)} of the answers back"
    most, asked = (percent(cell.unlearned.recall.mean) for cell in (worst, direct))
    return f"“{worst.kind.capitalize()}” gets {most} back, the trained question {asked}"


def verdict_shares(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How many facts of each tier still leak or are damaged. counts: of verdicts, by place."""
    shown = {place: found for place, found in counts.items() if sum(found.values())}
    bad = {
        place: sum(count for name, count in found.items() if name not in GOOD) / sum(found.values())
        for place, found in shown.items()
    }
    if {"popular", "rare"} <= bad.keys():
        return f"Not gone: {percent(bad['popular'])} of popular and {percent(bad['rare'])} of rare facts"
    place = next(iter(bad), None)
    return "" if place is None else f"{place.capitalize()}: something is wrong with {percent(bad[place])}"


def widest(gaps: Sequence[tuple[str, float]]) -> str:
    """Who leaves most of the popular facts compared to the rare, and who least. gaps: name and gap of each."""
    if not gaps:
        return ""
    ordered = sorted(gaps, key=lambda one: abs(one[1]))
    (narrow, least), (wide, most) = ordered[0], ordered[-1]
    if len(gaps) == 1:
        return f"{wide} leaves popular facts {points(most)} {'above' if most > 0 else 'below'} rare ones"
    return f"The gap is {points(most)} under {wide} and {points(least)} under {narrow}"


def bargain(front: Sequence[str]) -> str:
    """Who nobody beats at forgetting much and keeping much."""
    if not front:
        return ""
    named = front[0] if len(front) == 1 else f"{', '.join(front[:-1])} and {front[-1]}"
    return (
        f"{named}: nobody forgets more and keeps as much"
        if len(front) < 5
        else f"{len(front)} methods that nobody beats"
    )


def extremes(placed: Sequence[tuple[str, float, float]]) -> str:
    """Who leaves least and who keeps most. placed: name, recall of facts to forget and of those never trained on."""
    if len(placed) < 2:
        return ""
    least, most = min(placed, key=lambda one: one[1]), max(placed, key=lambda one: one[2])
    said = f"{least[0]} leaves least, {percent(least[1])}"
    return (
        f"{said}, and keeps most" if least is most else f"{said}; {most[0]} keeps most, {percent(most[2])} of the rest"
    )


def spread(scores: Sequence[float], unknown: int) -> str:
    """How far scores reach. unknown: how many facts have none."""
    if not scores:
        return "No fact has a score yet" if unknown else ""
    low, high = min(scores), max(scores)
    said = f"Popularity scores run from {low:,.4g} to {high:,.4g}" if high > low else f"Every score is {low:,.4g}"
    return f"{said}; {unknown:,} facts have none" if unknown else said


def pushes(betas: Mapping[str, float]) -> str:
    """Who is pushed longest as facts fade. betas: by name, the rarest first."""
    ends = [*betas.items()]
    (rare, large), (popular, small) = ends[0], ends[-1]
    if abs(large - small) < 0.05:
        return f"The {rare} and the {popular} fact are pushed alike as they fade"
    stays = popular if small < large else rare
    return f"The push on the {stays} fact stays"


def against_wga(betas: Mapping[str, float], confidence: float) -> str:
    """How hard the two ends are pushed against WGA. betas: by name, the rarest first. confidence: in both."""
    (rare, large), *_, (popular, small) = betas.items()
    if abs(large - 1) < 0.05 and abs(small - 1) < 0.05:
        return "The weight is WGA's"
    shown = [_factor(confidence ** (beta - 1)) for beta in (small, large)]
    said = f"At p = {percent(confidence)} the {popular} fact"
    if shown[0] == shown[1]:
        return f"{said} and the {rare} are both pushed {shown[0]} times as hard as by WGA"
    return f"{said} is pushed {shown[0]} times as hard as by WGA, the {rare} {shown[1]}"


def _factor(times: float) -> str:
    return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"


def agreeing(same: int, apart: int) -> str:
    """How many facts two proxies put on the same side."""
    every = same + apart
    return f"The two agree on {percent(same / every)} of {every:,} facts" if every else ""
