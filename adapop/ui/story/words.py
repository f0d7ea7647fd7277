"""The Story's sentences on its recordings; every number in them is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import floor, inf
from typing import NamedTuple

from adapop.config.methods import METHODS
from adapop.errors import listing, number_of
from adapop.facts.fact import TIERS, Fact
from adapop.facts.world.world import exposures_of
from adapop.probes.intervals import Interval, apart, summary
from adapop.report import real
from adapop.report.real import Outcome, share_of
from adapop.report.recorded import Recorded
from adapop.report.table import percent, ranged, signed
from adapop.runs import examples, states
from adapop.training.events import Measured
from adapop.training.frames import Frame


class Scene(NamedTuple):
    """A scene of the Story. source: what was recorded for it, ending before the command that made
    it; both empty for a scene that shows no recording."""

    headline: str
    text: str
    source: str = ""
    command: str = ""


SCENES = (
    Scene(
        "Two facts. Which one does the model forget first?",
        "A small language model was told {popular_seen} times who directed {popular}, and "
        "{rare_seen} times who directed {rare}. We train it to forget both the same way.",
        "A recorded run on these two facts, seed 0, made by",
        examples.COMMAND,
    ),
    Scene(
        "The same with 256 facts",
        "Dots further right are more popular facts; dots higher up are answered more. Under equal "
        "pressure (WGA) popular facts stay up. The popularity gap is the recall of popular facts "
        "minus that of rare ones. The held-out facts were never trained on: those that fall are "
        "the cost.",
        "Runs of up to 5 epochs, seed 0. Each length is a run of its own; in between, the dots "
        "are estimated from nearby runs. Made by",
        states.COMMAND,
    ),
    Scene(
        "Why do popular facts stay?",
        "In these {pairs} pairs the model starts equally sure of both facts. Under equal "
        "pressure, the one seen more often in pretraining usually lasts longer: being sure of a "
        "fact is not the same as having learnt it firmly.",
        "The frames of a recorded run of 5 epochs with equal pressure, seed 0, made by",
        examples.COMMAND,
    ),
    Scene(
        "AdaPop: popularity decides how long the pressure lasts",
        "Each fact gets a number β. A popular fact gets a low β, which keeps the pressure on it "
        "for longer. Drag an orange diamond.",
        "Each length of training is one run, as is each pair of β (5 epochs), seed 0; in between, "
        "the dots are estimated from nearby runs. Made by",
        states.COMMAND,
    ),
    Scene(
        "Is it really the scores?",
        "This is the control: if popularity matters, random scores should bring the gap back.",
        "Two runs of 5 epochs, seed 0, made by",
        states.COMMAND,
    ),
    Scene(
        "What it costs, and who does better",
        "Compared with equal pressure, AdaPop forgets more of the popular facts and fewer of the "
        "rare ones, and loses more held-out ones. The methods marked “tuned” use the best "
        "settings of 40 trials; some forget more than AdaPop. Only AdaPop uses popularity.",
        "A run of each method, seed 0, made by",
        states.COMMAND,
    ),
    Scene(
        "Forgotten? Ask differently",
        "Asked the training question, the model that was trained with equal pressure gets both of "
        "these facts wrong. Can another question bring the answer back?",
        "The probes of a recorded run, seed 0, made by",
        examples.COMMAND,
    ),
    Scene(
        "On real models",
        "Two small public models are trained to forget the countries of some cities. Lines are "
        "95% intervals.",
        "Recorded by",
        real.COMMAND,
    ),
    Scene(
        "Now with your facts",
        "One fact a line: question, answer, popularity score. The small model can only forget "
        "what it knows, such as these facts. The tab Facts reads files; the tab Run has larger "
        "models.",
    ),
)
STORY_TUNED = (
    "Tuned with 40 trials each, the methods still answer this much of the forget set when it is "
    "asked in other words: {left}. Of the held-out facts they still answer {kept}, in that order. "
    "Only AdaPop uses popularity. AdaPop has the most settings; with α adjusted in training, the "
    "search found no settings that do well. These are means of {seeds} seeds, on questions the "
    "tuning never saw."
)
STORY_REAL = (
    "A city's popularity is taken from its population. Each mark shows recall after training as a "
    "share of recall before, on the facts that the model answered before, averaged over {runs}. "
    "Only one or two dozen of the facts are rare."
)
STORY_BEYOND = (
    "Redirect, a method of ours, teaches a plausible wrong answer instead of making the right "
    "one unlikely. After tuning, its model answers {forget} of the forget set, asked in other "
    "words, and {holdout} of the held-out facts (means of {seeds} runs); in a second world, of "
    "invented people, it answers {people} of those held out. This was measured on sandboxes; two "
    "small real models forget far less (see “Every number” on Compare). The answers that "
    "Redirect teaches are false."
)

ANSWERED = 1  # rank of the right answer's first token where a greedy reply begins with it
# arms of `bench tuned`: AdaPop as it is and as its search did best, and three without scores
TUNED_ARMS = {
    "AltPO": "AltPO",
    "Redirect (ours)": "Redirect",
    "WGA": "WGA",
    "AdaPop": "AdaPop with α adjusted in training",
    "AdaPop, α fixed": "AdaPop with α fixed",
}
# arms of `bench real`; columns: share of the facts that the model knew
REAL_ARMS = {
    "WGA (AdaPop, β = 1)": "Equal pressure (WGA)",
    "AdaPop": "AdaPop",
    "AdaPop, scores shuffled": "AdaPop, scores shuffled",
}
REAL_COLUMNS = {tier: ("forget", "reworded", tier) for tier in TIERS} | {
    "retain set": ("retain", "direct", "all"),
    "held-out facts": ("holdout", "direct", "all"),
}
# explained where each first stands in the Story, and below every screen
GLOSSARY = {
    "forget set": "The facts that the model is trained to forget.",
    "retain set": "Facts that are also trained on, so that the model keeps them.",
    "held-out facts": (
        "Facts that unlearning never trains on. The cost is how many of them the model loses."
    ),
    "as trained": "Asked with the question that training uses, not with another wording.",
    "answered": "The reply gives the right answer away.",
    "recall": "The share of the right answer's words that the reply contains, averaged over facts.",
    "popularity gap": "The recall of popular facts minus that of rare ones, of the forget set "
    "only, asked in all the wordings that were not trained. For short: the gap.",
}
OWN_METHODS = {"adapop": "AdaPop", "wga": "Equal pressure (WGA)"}  # on typed facts
HARDLY = 10  # points of gap; smaller differences are within chance
BOTH = {"forgetting": ("forget", "reworded", "all"), "keeping": ("holdout", "direct", "all")}
NAMED = {
    ("wga", "paper"): "equal pressure",
    ("adapop", "paper"): "AdaPop",
    ("adapop", "shuffled"): "shuffled scores",
}


def steps(rare: Fact, popular: Fact, pairs: int) -> list[tuple[str, str]]:
    """(headline, text) of each scene. rare, popular: facts of the first scene. pairs: their number
    in the scene on why."""
    named = {"rare": rare.title, "popular": popular.title, "pairs": pairs}
    named |= {"rare_seen": exposures_of(rare.score), "popular_seen": exposures_of(popular.score)}
    return [(scene.headline, scene.text.format(**named)) for scene in SCENES]


def pairs_end(pairs: Sequence[tuple[int, int]], end: Frame) -> str:
    """How many facts of either side of the pairs are still answered in another wording at the end.
    pairs: (rare, popular) places. end: the last frame."""
    rank = end.scores["reworded"].rank
    rare, popular = (sum(rank[pair[side]] <= ANSWERED for pair in pairs) for side in (0, 1))
    return (
        f"Asked in other words, the model answers {popular} of the {len(pairs)} popular facts and "
        f"{rare} of the {len(pairs)} rare ones."
    )


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
    return f"{_lost(facts[gone].title, frames, gone)} {facts[left].title} is still answered."


def _lost(title: str, frames: Sequence[Frame], fact: int) -> str:
    direct, reworded = (lost_after(frames, group, fact) for group in ("forget", "reworded"))
    if direct is None:
        return f"{title} is still answered at the end."
    gone = f"is no longer answered after epoch {direct}" if direct else "was never answered"
    if reworded == direct:
        return f"{title} {gone}, asked as trained or in other words."
    then = f"it was answered until epoch {reworded}"
    if not reworded:
        then = "it still is" if reworded is None else "it never was"
    return f"{title} {gone}; asked in other words, {then}."


def gap_came_back(gaps: Mapping[str, Interval]) -> str:
    """A sentence on how shuffled scores change the gap. gaps: of wga, adapop and shuffled."""
    names = ("wga", "adapop", "shuffled")
    wga, adapop, shuffled = (f"{100 * gaps[name].mean:.1f}" for name in names)
    if gaps["shuffled"].mean <= gaps["adapop"].mean:
        left = f"Shuffled scores leave a gap of {shuffled} points, true scores one of {adapop}"
        return f"{left}. The scores made no difference."
    both = f"The gap is {shuffled} points with shuffled scores and {adapop} with true ones"
    return f"They do. {both}; equal pressure leaves {wga}."


def costs(adapop: Measured, wga: Measured) -> list[str]:
    """What AdaPop's narrower gap costs beside WGA, a line each; from their last measurements."""
    held, rare = (
        [percent(one.recall(*place)) for one in (adapop, wga)]
        for place in (("holdout", "direct", "all"), ("forget", "reworded", "rare"))
    )
    return [
        f"Of the held-out facts, AdaPop still answers {held[0]}, equal pressure {held[1]}.",
        f"Of the rare facts to forget, asked in other words, AdaPop still answers {rare[0]}, equal "
        f"pressure {rare[1]}.",
    ]


def beyond(main: Recorded, elsewhere: Recorded) -> str:
    """The results of our own tuned method in the sandbox and in the second world."""
    held = {"holdout": percent(_retained(main)), "people": percent(_retained(elsewhere))}
    return STORY_BEYOND.format(seeds=len(main.rows), forget=percent(_left(main)), **held)


def on_real_models(models: Mapping[str, Sequence[Outcome]]) -> dict:
    """The effect of unlearning on real models' recall: for each model, sentences and the shares of
    each arm of `REAL_ARMS` by `REAL_COLUMNS`, with 95% intervals over its runs; a note, and the id
    of the example to open. models: name -> outcomes of `bench real`, which include those arms."""
    content, runs = {}, []
    for model, outcomes in models.items():
        by_title = {outcome.title: outcome for outcome in outcomes}
        arms = [_arm(by_title[title], name) for title, name in REAL_ARMS.items()]
        content[model] = {"arms": arms, "words": _left_by_tier(arms)}
        runs.append(f"{min(len(by_title[title].runs) for title in REAL_ARMS)} runs of {model}")
    note = STORY_REAL.format(runs=listing(runs))
    return {
        "note": note,
        "models": content,
        "command": real.COMMAND,
        "run": f"{examples.PREFIX}smollm2",
    }


def _arm(outcome: Outcome, name: str) -> dict:
    shares = {column: _over_runs(outcome, place) for column, place in REAL_COLUMNS.items()}
    return {"name": name, "shares": shares}


def _over_runs(outcome: Outcome, place: tuple[str, str, str]) -> dict | None:
    """The mean share of an arm's runs with its 95% interval; None if too few facts were known."""
    shares = [share_of(cells, *place) for cells in outcome.runs]
    known = None not in shares and summary(shares)
    return asdict(known.within(0.0, max(1.0, known.mean))) if known else None


def _left_by_tier(arms: Sequence[Mapping]) -> str:
    """What equal pressure and AdaPop leave of rare and popular facts, and how that turned."""
    (rare, popular), (own_rare, own_popular), (shuffled_rare, shuffled_popular) = (
        [round(100 * arm["shares"][tier]["mean"], 1) for tier in ("rare", "popular")]
        for arm in arms
    )
    left = (
        f"Equal pressure leaves {rare}% of rare and {popular}% of popular facts answered "
        f"(gap {popular - rare:.1f} points). AdaPop leaves {own_rare}% and {own_popular}% "
        f"(gap {own_popular - own_rare:.1f} points)"
    )
    by_rare = abs(popular - rare) >= HARDLY and own_rare - rare > max(0, popular - own_popular)
    did = "reversed" if (own_popular - own_rare) * (popular - rare) < 0 else "changed"
    how = f"; it {did} the gap, mostly by keeping rare facts" if by_rare else ""
    control = f"With shuffled scores it leaves {shuffled_rare}% and {shuffled_popular}%"
    return f"{left}{how}. {control}. One rule chose the learning rate of each method."


def over_seeds(recorded: Sequence[Recorded]) -> str:
    """A sentence with the gaps as means over seeds. recorded: includes the results of `NAMED`."""
    by_name = {(one.method, one.preset): one for one in recorded}
    named = [(by_name[name].gap, words) for name, words in NAMED.items()]
    gaps = [f"{signed(gap)} with {words}" for gap, words in named if gap]
    runs = sorted({len(by_name[name].rows) for name in NAMED})
    count = " to ".join(map(str, dict.fromkeys((runs[0], runs[-1]))))
    one_each = "Each gap in the pictures is that of one run."
    means = f"The means of {count} runs, on wordings kept for testing, with 95% intervals, are"
    return f"{one_each} {means} {listing(gaps)}."


def firmness(recorded: Sequence[Recorded]) -> str:
    """What AdaPop costs over seeds, and its gap if it holds retained facts as firmly as equal
    pressure (WGA). recorded: as for `over_seeds`."""
    by_name = {(one.method, one.preset): one for one in recorded}
    names = ("wga", "paper"), ("adapop", "paper"), ("adapop", "gentle")
    wga, adapop, firm = (by_name[name] for name in names)
    own, even, firm_share = [ranged(one.recall(*BOTH["keeping"])) for one in (adapop, wga, firm)]
    held = f"Over the same runs, AdaPop answers {own} of the held-out facts, equal pressure {even}."
    begins = "AdaPop starts with half as much weight on the retain set (α₀ = 0.5, not 1)."
    with_one = (
        f"With α₀ = 1 its gap is {signed(firm.gap)}, and it answers {firm_share} of held-out facts."
    )
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
    doubt = ""
    if near:
        what = "Both differences" if len(near) == len(BOTH) else f"The difference in {near[0]}"
        doubt = f" {what} may be chance."
    spoken = [[percent(one.mean) for one in both] for both in shares.values()]
    (left, own_left), (held, own_held) = spoken
    runs = number_of(len(best.rows), "run")
    gaps = f"over {runs} its gap is {signed(best.gap)}, that of AdaPop {signed(adapop.gap)}"
    left = (
        f"it answers {left} of the forget set (AdaPop {own_left}) and {held} of the held-out facts"
    )
    what = "about as much as AdaPop and keeps" if "forgetting" in near else "more and keeps"
    return (
        f"{best.title}, which uses no scores, forgets {what} more: {gaps}; {left} ({own_held})."
        f"{doubt}"
    )


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
    tuned_alike = (
        f"When every method is tuned, {listing(better)} answer less of the forget set in other "
        "words, and use no popularity."
    )
    return (
        "AdaPop forgets rare and popular facts more equally, but it does not forget the most. "
        f"{tuned_alike}"
    )


def tuned_alike(tuned: Sequence[Recorded]) -> str:
    """A sentence on the results of methods tuned alike. tuned: in the order of `TUNED_ARMS`."""
    named = zip(TUNED_ARMS.values(), tuned, strict=True)
    left = listing([f"{name} {percent(_left(one))}" for name, one in named])
    retained = listing([percent(_retained(one)) for one in tuned])
    return STORY_TUNED.format(seeds=len(tuned[0].rows), left=left, kept=retained)


def _left(one: Recorded) -> float:
    """The share of the facts to forget that is still answered when reworded."""
    return one.recall(*BOTH["forgetting"]).mean


def _retained(one: Recorded) -> float:
    """The share of the held-out facts that is still answered."""
    return one.recall(*BOTH["keeping"]).mean
