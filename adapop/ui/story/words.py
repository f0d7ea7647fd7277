"""What the Story says of its recordings, a sentence at a time, each number measured."""

from collections.abc import Sequence
from math import floor

from adapop.config.methods import METHODS
from adapop.facts.fact import Fact
from adapop.facts.world.world import exposures_of
from adapop.probes.intervals import apart
from adapop.report.recorded import Recorded
from adapop.report.table import percent
from adapop.training.events import Measured
from adapop.training.frames import Frame
from adapop.ui import texts

ANSWERED = 1  # rank of the right answer's first token where a greedy reply begins with it
TUNED_TITLES = {"altpo": "AltPO", "redirect": "Redirect", "wga": "the even push", "adapop": "AdaPop"}
BOTH = {"forgetting": ("forget", "reworded", "all"), "keeping": ("holdout", "direct", "all")}
NAMED = {("wga", "paper"): "the even push", ("adapop", "paper"): "AdaPop", ("adapop", "shuffled"): "shuffled scores"}


def steps(rare: Fact, popular: Fact, ours: Measured) -> list[tuple[str, str]]:
    """Headline and words of each step. rare, popular: the two facts of the first. ours: of AdaPop's run, at its end."""
    named = {"rare": rare.title, "popular": popular.title, "direct": percent(ours.recall("forget"))}
    named |= {f"{name}_seen": exposures_of(fact.score) for name, fact in (("rare", rare), ("popular", popular))}
    return [(headline, words.format(**named)) for headline, words in texts.STORY_STEPS]


def lost_after(frames: Sequence[Frame], group: str, fact: int) -> int | None:
    """The epoch at whose end a fact is no longer answered, nor at any later end of one; None if it still is.

    group: "forget" for the trained question, "reworded" for the same in other words. fact: its place in the set."""
    ends = [frame for frame in frames if frame.epoch == floor(frame.epoch) and group in frame.scores]
    lost = None
    for frame in reversed(ends):
        if frame.scores[group].rank[fact] <= ANSWERED:
            break
        lost = int(frame.epoch)
    return lost


def first_lost(frames: Sequence[Frame]) -> int | None:
    """Which of two facts, 0 or 1, is no longer answered first, in whatever words; None for a tie."""
    never = len(frames) + 1
    direct, reworded = (
        [lost_after(frames, group, fact) or never for fact in (0, 1)] for group in ("forget", "reworded")
    )
    times = list(zip(direct, reworded))
    return None if times[0] == times[1] else times.index(min(times))


def outcome_of_pair(facts: Sequence[Fact], frames: Sequence[Frame]) -> str:
    """When each of two facts was no longer answered, in sentences; the fact that was lost earlier comes first."""
    order = (1, 0) if first_lost(frames) == 1 else (0, 1)
    return " ".join(_lost(facts[fact].title, frames, fact) for fact in order)


def _lost(title: str, frames: Sequence[Frame], fact: int) -> str:
    direct, reworded = (lost_after(frames, group, fact) for group in ("forget", "reworded"))
    if direct is None:
        return f"{title} is still answered at the end."
    if reworded == direct:
        return f"{title} is no longer answered after epoch {direct}, however it is asked."
    late = f"that took until epoch {reworded}" if reworded else "it still is"
    return f"{title} is no longer answered after epoch {direct}; asked in other words, {late}."


def gap_of(rare: float, popular: float) -> int:
    """The gap in points: the difference of the two percentages as they are printed."""
    return round(100 * popular) - round(100 * rare)


def gap_came_back(gaps: dict[str, int]) -> str:
    """What shuffling did to the gap. gaps: in points, of wga, adapop and shuffled."""
    even, ours, control = (gaps[name] for name in ("wga", "adapop", "shuffled"))
    if control <= ours:
        return f"Shuffled scores leave a gap of {control} points, true ones {ours}: the scores made no difference."
    return f"It does: {control} points with shuffled scores, {ours} with true ones, {even} with the even push."


def costs(ours: Measured, even: Measured) -> list[str]:
    """What AdaPop's narrower gap costs against the even push, a line each. Both: at the end of a run."""
    kept, rare = (
        [percent(one.recall(*place)) for one in (ours, even)]
        for place in (("holdout", "direct", "all"), ("forget", "reworded", "rare"))
    )
    return [
        f"Other facts: AdaPop answers {kept[0]}, the even push {kept[1]}.",
        f"Rare facts to forget, in other words: AdaPop leaves {rare[0]}, the even push {rare[1]}.",
    ]


def beyond(tuned: Sequence[Recorded]) -> str:
    """What our own method does. tuned: results, its own among them."""
    ours = next(one for one in tuned if one.method == "redirect")
    return texts.STORY_BEYOND.format(seeds=len(ours.rows), forget=percent(_left(ours)), holdout=percent(_kept(ours)))


def over_seeds(recorded: Sequence[Recorded]) -> str:
    """The same gaps as means over seeds. recorded: results over seeds, those of `NAMED` among them."""
    by_name = {(one.method, one.preset): one for one in recorded}
    gaps = [
        f"{round(100 * gap.mean)} points ({100 * gap.low:.0f} to {100 * gap.high:.0f}) with {words}"
        for name, words in NAMED.items()
        if (gap := by_name[name].gap("reworded"))
    ]
    runs = sorted({len(by_name[name].rows) for name in NAMED})
    count = " to ".join(map(str, dict.fromkeys((runs[0], runs[-1]))))
    one_each = f"The gaps of the pictures are of one run each. Means of {count} runs, with 95 % intervals"
    return f"{one_each}: a gap of {', '.join(gaps)}."


def better(recorded: Sequence[Recorded]) -> str:
    """Which method without scores, of narrow gap, leaves less and keeps more than AdaPop, and what of that chance may
    explain; empty if none does. recorded: results over seeds, AdaPop's among them."""
    ours = next(one for one in recorded if (one.method, one.preset) == ("adapop", "paper"))
    found = [
        one
        for one in recorded
        if one.preset == "paper" and not METHODS[one.method].scored and one.gap("reworded")
        if _left(one) < _left(ours) and _kept(one) > _kept(ours)
    ]
    if not found:
        return ""
    best = min(found, key=lambda one: abs(one.gap("reworded").mean))
    near = [did for did, place in BOTH.items() if not apart(best.recall(*place), ours.recall(*place))]
    doubt = f"; {'both' if len(near) == len(BOTH) else near[0]} may be chance" if near else ""
    left, kept = ([percent(share(one)) for one in (best, ours)] for share in (_left, _kept))
    said = f"{left[0]} of what to forget is left (AdaPop {left[1]}), {kept[0]} of the rest kept ({kept[1]}){doubt}"
    return f"Without scores, {best.title} does no worse: over {len(best.rows)} runs {said}."


def tuned_better(tuned: Sequence[Recorded]) -> str:
    """That AdaPop is not the best, and which of `TUNED_TITLES` leave less when tuned, beyond chance; empty if not two
    do. None of them uses scores. tuned: results, those among them."""
    found = {one.method: one.recall(*BOTH["forgetting"]) for one in tuned if one.method in TUNED_TITLES}
    ours = found.pop("adapop")
    who = [TUNED_TITLES[name] for name, share in found.items() if share.mean < ours.mean and apart(share, ours)]
    if len(who) < 2:
        return ""
    best = f"with settings searched for each, others forget more without scores: {_listed(who)}"
    return f"No. AdaPop evens forgetting out; {best}."


def tuned_alike(tuned: Sequence[Recorded]) -> str:
    """What `TUNED_TITLES` do when each was tuned with as many trials. tuned: results, those among them."""
    found = {one.method: one for one in tuned}
    shares = [f"{said} {percent(_left(found[name]))}" for name, said in TUNED_TITLES.items()]
    kept = [percent(_kept(found[name])) for name in TUNED_TITLES]
    return texts.STORY_TUNED.format(seeds=len(found["adapop"].rows), left=_listed(shares), kept=_listed(kept))


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _left(one: Recorded) -> float:
    """The share of the facts to forget that is still answered in other words."""
    return one.recall(*BOTH["forgetting"]).mean


def _kept(one: Recorded) -> float:
    """The share of the held-out facts that is still answered."""
    return one.recall(*BOTH["keeping"]).mean
