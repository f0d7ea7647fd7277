"""What the Story says of its recordings, a sentence at a time, each number measured."""

from collections.abc import Sequence
from math import floor

from adapop.facts.fact import Fact
from adapop.facts.world.world import exposures_of
from adapop.report.recorded import Recorded
from adapop.training.frames import Frame
from adapop.ui import texts

ANSWERED = 1  # rank of the right answer's first token where a greedy reply begins with it


def steps(rare: Fact, popular: Fact) -> list[tuple[str, str]]:
    """Headline and words of each step. rare, popular: the two facts of the first."""
    named = {"rare": rare.title, "popular": popular.title}
    seen = {f"{name}_seen": exposures_of(fact.score) for name, fact in (("rare", rare), ("popular", popular))}
    return [(headline, words.format(**named, **seen)) for headline, words in texts.STORY_STEPS]


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
    """When each of two facts was no longer answered, the one that went first first."""
    order = (1, 0) if first_lost(frames) == 1 else (0, 1)
    return " ".join(_lost(facts[fact].title, frames, fact) for fact in order)


def _lost(title: str, frames: Sequence[Frame], fact: int) -> str:
    direct, reworded = (lost_after(frames, group, fact) for group in ("forget", "reworded"))
    if direct is None:
        return f"{title} is still answered at the end."
    if reworded == direct:
        return f"{title} was gone after epoch {direct}, in other words too."
    late = f"that took until epoch {reworded}" if reworded else "it never was"
    return f"{title} was gone after epoch {direct}; asked in other words, {late}."


def gap_came_back(gaps: dict[str, float]) -> str:
    """What shuffling did to the gap, popular minus rare, in shares. gaps: of wga, adapop and shuffled."""
    even, ours, control = (round(100 * gaps[name]) for name in ("wga", "adapop", "shuffled"))
    if control <= ours:
        return f"Shuffled scores leave a gap of {control} points, true ones {ours}: the scores made no difference."
    return (
        f"Shuffled scores bring the gap back: {control} points, against {ours} with the true ones (even push: {even})."
    )


def costs(recorded: Sequence[Recorded]) -> list[str]:
    """What AdaPop's narrower gap costs against WGA, and a method that does better, each in a line.

    recorded: results over seeds, those of AdaPop and WGA as in the paper among them."""
    by_name = {(one.method, one.preset): one for one in recorded}
    ours, even = by_name["adapop", "paper"], by_name["wga", "paper"]
    held = [_percent(_kept(one)) for one in (ours, even)]
    rare = [_percent(_left(one, "rare")) for one in (ours, even)]
    said = [
        f"Facts that nobody asked it to forget: AdaPop still answers {held[0]}, the even push {held[1]}.",
        f"Rare facts, in other words: AdaPop still answers {rare[0]}, the even push {rare[1]}.",
    ]
    better = [
        one
        for one in recorded
        if one.preset == "paper" and _left(one, "all") < _left(ours, "all") and _kept(one) > _kept(ours)
    ]
    if better:
        best = min(better, key=lambda one: _left(one, "all"))
        lefts = [_percent(_left(one, "all")) for one in (best, ours)]
        said.append(
            f"{best.title} does better in both ({lefts[0]} left against {lefts[1]}, {_percent(_kept(best))} kept), "
            f"but its gap is {round(100 * best.gap('reworded').mean)} points."
        )
    return said


def _left(one: Recorded, tier: str) -> float:
    """The share of the facts to forget that is still answered in other words."""
    return one.recall("forget", "reworded", tier).mean


def _kept(one: Recorded) -> float:
    """The share of the held-out facts that is still answered."""
    return one.recall("holdout", "direct", "all").mean


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")
