"""The Story's sentences on its recordings; every number in them is measured."""

from collections.abc import Mapping, Sequence
from math import floor, inf

from adapop.config.methods import METHODS
from adapop.errors import number_of
from adapop.facts.fact import Fact
from adapop.facts.world.world import exposures_of
from adapop.probes.intervals import Interval, apart
from adapop.report.real import COMMAND, Outcome
from adapop.report.recorded import Recorded
from adapop.report.table import percent, ranged, signed
from adapop.runs.examples import PREFIX
from adapop.training.events import Measured
from adapop.training.frames import Frame
from adapop.ui import texts

ANSWERED = 1  # rank of the right answer's first token where a greedy reply begins with it
# arms of `bench tuned`: AdaPop as it is and as its search did best, and three without scores
TUNED_ARMS = {
    "AltPO": "AltPO",
    "Redirect (ours)": "Redirect",
    "WGA": "the uniform push",
    "AdaPop": "AdaPop",
    "AdaPop, α fixed": "AdaPop with α fixed",
}
# arms of `bench real`; columns: share of the facts that the model knew
REAL_ARMS = {
    "WGA (AdaPop, β = 1)": "the uniform push",
    "AdaPop": "AdaPop",
    "AdaPop, scores shuffled": "AdaPop, scores shuffled",
}
REAL_COLUMNS = {
    "rare": ("forget", "reworded", "rare"),
    "popular": ("forget", "reworded", "popular"),
    "kept, trained on": ("retain", "direct", "all"),
    "other cities": ("holdout", "direct", "all"),
}
HARDLY = 10  # points of gap; smaller differences are within chance
BOTH = {"forgetting": ("forget", "reworded", "all"), "keeping": ("holdout", "direct", "all")}
NAMED = {
    ("wga", "paper"): "the uniform push",
    ("adapop", "paper"): "AdaPop",
    ("adapop", "shuffled"): "shuffled scores",
}


def steps(rare: Fact, popular: Fact, end: Measured) -> list[tuple[str, str]]:
    """(headline, text) of each step. rare, popular: facts of the first step. end: AdaPop's
    measurement."""
    named = {"rare": rare.title, "popular": popular.title, "direct": percent(end.recall("forget"))}
    named |= {"rare_seen": exposures_of(rare.score), "popular_seen": exposures_of(popular.score)}
    return [(headline, words.format(**named)) for headline, words in texts.STORY_STEPS]


def lost_after(frames: Sequence[Frame], group: str, fact: int) -> int | None:
    """The epoch from whose end on a fact is no longer answered; 0 if it never was, None if it still
    is. group: "forget" (trained question) or "reworded". fact: its index in the set."""
    lost = None
    for frame in reversed(frames):
        if frame.epoch != floor(frame.epoch) or group not in frame.scores:
            continue
        if frame.scores[group].rank[fact] <= ANSWERED:
            break
        lost = int(frame.epoch)
    return lost


def first_lost(frames: Sequence[Frame]) -> int | None:
    """Index, 0 or 1, of the fact of two that is lost first, in either form; None for a tie."""
    times = [_lost_times(frames, fact) for fact in (0, 1)]
    return None if times[0] == times[1] else times.index(min(times))


def one_is_lost(frames: Sequence[Frame]) -> int | None:
    """The first epoch after which exactly one of two facts is lost in both forms; None if never."""
    first, last = sorted(max(_lost_times(frames, fact)) for fact in (0, 1))
    return int(first) if first < last else None


def _lost_times(frames: Sequence[Frame], fact: int) -> list[float]:
    """`lost_after` of both forms, infinite while a fact is still answered."""
    epochs = (lost_after(frames, group, fact) for group in ("forget", "reworded"))
    return [inf if epoch is None else epoch for epoch in epochs]


def outcome_at_stop(facts: Sequence[Fact], frames: Sequence[Frame]) -> str:
    """A sentence on which of two facts is lost and which is not, see `one_is_lost`."""
    gone, left = (1, 0) if first_lost(frames) == 1 else (0, 1)
    return f"{_lost(facts[gone].title, frames, gone)} {facts[left].title} still is."


def _lost(title: str, frames: Sequence[Frame], fact: int) -> str:
    direct, reworded = (lost_after(frames, group, fact) for group in ("forget", "reworded"))
    if direct is None:
        return f"{title} is still answered at the end."
    gone = f"is no longer answered after epoch {direct}" if direct else "was never answered"
    if reworded == direct:
        return f"{title} {gone}, as trained or in other words."
    then = f"{'that took' if direct else 'it was'} until epoch {reworded}"
    if not reworded:
        then = "it still is" if reworded is None else "it never was"
    return f"{title} {gone}; asked in other words, {then}."


def gap_came_back(gaps: Mapping[str, Interval]) -> str:
    """A sentence on how shuffled scores change the gap. gaps: of wga, adapop and shuffled."""
    wga, adapop, shuffled = (signed(gaps[name]) for name in ("wga", "adapop", "shuffled"))
    if gaps["shuffled"].mean <= gaps["adapop"].mean:
        left = f"Shuffled scores leave a gap of {shuffled}, true ones {adapop}"
        return f"{left}: the scores made no difference."
    both = f"{shuffled} with shuffled scores, {adapop} with true ones"
    return f"It does: {both}, {wga} with the uniform push."


def costs(adapop: Measured, wga: Measured) -> list[str]:
    """What AdaPop's narrower gap costs beside WGA, a line each; from their last measurements."""
    held, rare = (
        [percent(one.recall(*place)) for one in (adapop, wga)]
        for place in (("holdout", "direct", "all"), ("forget", "reworded", "rare"))
    )
    return [
        f"Other facts: AdaPop answers {held[0]}, the uniform push {held[1]}.",
        f"Rare facts to forget, in other words: "
        f"AdaPop leaves {rare[0]}, the uniform push {rare[1]}.",
    ]


def beyond(main: Recorded, elsewhere: Recorded) -> str:
    """The results of our own tuned method in the sandbox and in the second world."""
    held = {"holdout": percent(_retained(main)), "people": percent(_retained(elsewhere))}
    return texts.STORY_BEYOND.format(seeds=len(main.rows), forget=percent(_left(main)), **held)


def on_real_models(models: Mapping[str, Sequence[Outcome]]) -> dict:
    """The effect of unlearning on real models' recall: sentences, a table with a row per model and
    arm, and the id of the example to open. models: name -> outcomes of `bench real`, which include
    those of `REAL_ARMS`."""
    rows, runs, gaps = [], [], {}
    for model, outcomes in models.items():
        by_title = {outcome.title: outcome for outcome in outcomes}
        for title, name in REAL_ARMS.items():
            shares = [by_title[title].share(*place) for place in REAL_COLUMNS.values()]
            gaps[model, name] = round(100 * (shares[1] - shares[0]))
            rare, popular, *others = map(percent, shares)
            rows.append((model, name, rare, popular, f"{gaps[model, name]:+d}", *others))
        runs.append(f"{min(len(by_title[title].runs) for title in REAL_ARMS)} of {model}")
    sentences_of = " ".join(
        _gap_of(model, *(gaps[model, name] for name in REAL_ARMS.values())) for model in models
    )
    note, columns = f"{sentences_of} {texts.STORY_REAL.format(runs=_listed(runs))}", [*REAL_COLUMNS]
    head = ("", *columns[:2], "popular minus rare, points", *columns[2:])
    return {"note": note, "head": head, "rows": rows, "command": COMMAND, "run": f"{PREFIX}smollm2"}


def _gap_of(model: str, wga: int, adapop: int, shuffled: int) -> str:
    """A sentence on a real model's gap under each of `REAL_ARMS`, in points."""
    if abs(wga) < HARDLY:
        return f"{model} hardly has a gap to close."
    even = f"In {model} the uniform push leaves a gap of {wga} points"
    turned = "turns it round, to " if adapop <= -HARDLY else ""
    return f"{even}, AdaPop {turned}{adapop}, with scores shuffled {shuffled}."


def over_seeds(recorded: Sequence[Recorded]) -> str:
    """A sentence with the gaps as means over seeds. recorded: includes the results of `NAMED`."""
    by_name = {(one.method, one.preset): one for one in recorded}
    named = [(by_name[name].gap, words) for name, words in NAMED.items()]
    gaps = [f"{signed(gap)} with {words}" for gap, words in named if gap]
    runs = sorted({len(by_name[name].rows) for name in NAMED})
    count = " to ".join(map(str, dict.fromkeys((runs[0], runs[-1]))))
    one_each = "The gaps of the pictures are of one run each."
    means = f"Means of {count} runs, on wordings kept for testing, with 95 % intervals"
    return f"{one_each} {means}: a gap of {', '.join(gaps)}."


def firmness(recorded: Sequence[Recorded]) -> str:
    """What AdaPop costs over seeds, and its gap if it holds retained facts as firmly as the uniform
    push (WGA). recorded: as for `over_seeds`."""
    by_name = {(one.method, one.preset): one for one in recorded}
    names = ("wga", "paper"), ("adapop", "paper"), ("adapop", "gentle")
    wga, adapop, firm = (by_name[name] for name in names)
    own, even, firm_share = [ranged(one.recall(*BOTH["keeping"])) for one in (adapop, wga, firm)]
    held = f"Held-out facts, over the same runs: AdaPop answers {own}, the uniform push {even}."
    begins = "AdaPop begins by holding retained facts half as firmly (α₀ = 0.5, not 1)."
    with_one = f"With α₀ = 1 its gap is {signed(firm.gap)}, and it answers {firm_share}."
    return f"{held} {begins} {with_one}"


def better(recorded: Sequence[Recorded]) -> str:
    """A sentence on a method without scores that on average forgets and retains more than AdaPop,
    with doubts where the difference may be chance; empty if there is none. Of several, the one with
    the smallest gap. recorded: results over seeds, with AdaPop's."""
    adapop = next(one for one in recorded if (one.method, one.preset) == ("adapop", "paper"))
    nearest = [
        one
        for one in recorded
        if one.preset == "paper" and not METHODS[one.method].scored and one.gap
        if _left(one) < _left(adapop) and _retained(one) > _retained(adapop)
    ]
    if not nearest:
        return ""
    best = min(nearest, key=lambda one: abs(one.gap.mean))
    shares = {did: (best.recall(*place), adapop.recall(*place)) for did, place in BOTH.items()}
    near = [did for did, both in shares.items() if not apart(*both)]
    doubt = f"; {'both' if len(near) == len(BOTH) else near[0]} may be chance" if near else ""
    spoken = [[percent(one.mean) for one in both] for both in shares.values()]
    (left, own_left), (held, own_held) = spoken
    runs = number_of(len(best.rows), "run")
    gaps = f"over {runs} a gap of {signed(best.gap)}, AdaPop {signed(adapop.gap)}"
    left = f"{left} of what to forget is left ({own_left}), {held} of the rest kept ({own_held})"
    return f"Without scores, {best.title} comes near: {gaps}; {left}{doubt}."


def tuned_better(tuned: Sequence[Recorded]) -> str:
    """A sentence with the tuned methods without scores that clearly forget more than the best tuned
    AdaPop; empty for fewer than two. tuned: in the order of `TUNED_ARMS`."""
    shares = (one.recall(*BOTH["forgetting"]) for one in tuned)
    shares = dict(zip(TUNED_ARMS.values(), shares, strict=True))
    ours = [share for name, share in shares.items() if "AdaPop" in name]
    adapop = min(ours, key=lambda share: share.mean)
    clear = {name: share for name, share in shares.items() if apart(share, adapop)}
    better = [name for name, share in clear.items() if share.mean < adapop.mean]
    if len(better) < 2:
        return ""
    best = f"with settings searched for each, others forget more without scores: {_listed(better)}"
    return f"AdaPop evens forgetting out, which is not forgetting best: {best}."


def tuned_alike(tuned: Sequence[Recorded]) -> str:
    """A sentence on the results of methods tuned alike. tuned: in the order of `TUNED_ARMS`."""
    named = zip(TUNED_ARMS.values(), tuned, strict=True)
    left = _listed([f"{name} {percent(_left(one))}" for name, one in named])
    retained = _listed([percent(_retained(one)) for one in tuned])
    return texts.STORY_TUNED.format(seeds=len(tuned[0].rows), left=left, kept=retained)


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _left(one: Recorded) -> float:
    """The share of the facts to forget that is still answered when reworded."""
    return one.recall(*BOTH["forgetting"]).mean


def _retained(one: Recorded) -> float:
    """The share of the held-out facts that is still answered."""
    return one.recall(*BOTH["keeping"]).mean
