"""All data of the Story, from the recorded examples, sent to the browser once, with the page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from random import Random

from adapop.errors import RunError
from adapop.facts.fact import Fact
from adapop.paths import ASSETS
from adapop.popularity.beta import shuffled
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, ProbeRow
from adapop.probes.verdict import answered, fact_verdict
from adapop.report import real, recorded
from adapop.runs import states
from adapop.runs.examples import COMMAND, example
from adapop.runs.run import FACTS, Run
from adapop.training.frames import Frame
from adapop.ui.parts import field
from adapop.ui.run.pressure import curve_picture
from adapop.ui.story import words

STORY_RIVALS = {
    "wga": "Equal pressure (WGA)",
    "adapop": "AdaPop",
    "satimp": "SatImp",
    "adapop-tuned": "AdaPop, tuned (retain weight fixed)",
    "wga-tuned": "WGA, tuned",
    "altpo-tuned": "AltPO, tuned",
    "redirect-tuned": "Redirect (ours), tuned",
}
STORY_PAIR_END = (
    "Train longer and the popular one goes too. But with 256 facts at once, many popular ones stay."
)
STORY_NAMES = {
    "wga": "Equal pressure (WGA)",
    "adapop": "AdaPop",
    "shuffled": "AdaPop, scores shuffled",
}
STORY_END = (
    "A wrong answer means only that these prompts failed. It does not mean that the knowledge is "
    "gone."
)

SIDE_BY_SIDE = ("wga", "adapop")
# verdict -> index of the right button in the last step
OUTCOMES = dict.fromkeys(("Not brought back", "Next in line", "Looks suppressed"), 0)
OUTCOMES |= {"Leaks in other words": 1, "Leaks in another format": 1, "Leaks under attack": 2}
METHOD_PICTURE = ASSETS / "report" / "method.svg"
MOST_PAIRS, MOST_DRAWS = 12, 10_000
# rare and popular facts are a pair if the model is equally sure of both, in both wordings
EQUALLY_SURE = 0.02
OURS, FILES = "Redirect (ours)", (recorded.TUNED_FILE, recorded.PEOPLE_FILE)
TUNED = partial(recorded.tuned_arms, tuple(words.TUNED_ARMS))
OVER_SEEDS = (
    (words.over_seeds, recorded.results),
    (words.firmness, recorded.results),
    (words.better, recorded.results),
    (words.tuned_alike, TUNED),
)


@lru_cache(maxsize=1)
def story() -> dict:
    """The values of the Story's script; see `assets/story`.

    Raises:
        RunError: an example cannot be read, or has other facts than the rest.
        DataError: the recorded states cannot be read.
    """
    runs = {name: example(name) for name in states.SETTINGS}
    given = runs["wga"].facts
    facts, file = given.forget, (runs["wga"].folder / FACTS).read_bytes()
    for name, run in runs.items():  # read once for all
        if (run.folder / FACTS).read_bytes() != file:
            message = f"The example {name} is not of the facts of wga."
            raise RunError(message, f"Make them again: {COMMAND}")
    pair = example("pair")
    both = pair.facts.forget
    (rare, popular), frames = both, pair.frames()
    ends = {name: run.measured() for name, run in runs.items()}
    motion = field.motion(runs["wga"].frames(), facts)
    betas, wga_frames = runs["adapop"].betas, runs["wga"].frames()
    pairs = equally_sure(facts, wga_frames)
    return {
        "commands": [scene.command for scene in words.SCENES],
        "glossary": words.GLOSSARY,
        "from": [scene.source for scene in words.SCENES],
        "steps": words.steps(rare, popular, len(pairs)),
        "held": field.dots(given.holdout),
        "pairs": pairs,
        "pairs_end": words.pairs_end(pairs, wga_frames[-1]),
        "rivals": STORY_RIVALS,
        "own_methods": words.OWN_METHODS,
        "names": STORY_NAMES,
        "facts": field.dots(facts) | {"beta": [round(betas[fact.id], 3) for fact in facts]},
        "hill": {part: motion[part] for part in ("epoch", "p")},
        **_recorded(runs, facts),
        "pair": field.dots((rare, popular)) | field.motion(frames, both) | {
            "first": words.first_lost(frames),
            "stop": words.one_is_lost(frames),
            "outcome": f"{words.outcome_at_stop((rare, popular), frames)} {STORY_PAIR_END}",
        },
        "curve": curve_picture(given)[0]
        | {"fixed": True, "least": states.BETAS[0], "most": states.BETAS[-1]},
        "deck": deck(facts, runs["shuffled"].config.seed),
        "method": METHOD_PICTURE.read_text("utf-8"),
        "control": words.gap_came_back({name: end.gap for name, end in ends.items()}),
        "without": words.tuned_better(TUNED()),
        "costs": words.costs(ends["adapop"], ends["wga"]),
        "over_seeds": [sentence(results()) for sentence, results in OVER_SEEDS],
        "seeds_by": f"{recorded.COMMAND}; {recorded.TUNED_COMMAND}",
        "quiz": quiz(facts, runs["wga"].probes() or []),
        "end": STORY_END,
        "real": words.on_real_models({name: real.outcomes(of) for name, of in real.FILES.items()}),
        "beyond": words.beyond(*(recorded.tuned_arms((OURS,), file)[0] for file in FILES)),
    }  # fmt: skip


def _recorded(runs: Mapping[str, Run], facts: Sequence[Fact]) -> dict:
    """The recorded end states, their encoding, and each example's first and last replies."""
    frames = {name: [run.frames()[0], run.frames()[-1]] for name, run in runs.items()}
    replies = {}
    for name, both in frames.items():
        end = field.motion(both, facts)
        times = [f"{epoch:g}" for epoch in end["epoch"]]
        replies[name] = {part: dict(zip(times, end[part])) for part in ("said", "right")}
    return {
        "states": [content_of(state) for state in states.states()],
        "letters": states.STEPS,
        "wordings": len(facts[0].paraphrases),
        "grid": {"betas": states.BETAS, "epochs": states.EPOCHS},
        "replies": replies,
    }


def equally_sure(facts: Sequence[Fact], frames: Sequence[Frame]) -> list[tuple[int, int]]:
    """Pairs of a rare and a popular fact, as places in the set, of whose answers the model is
    equally sure before training (`EQUALLY_SURE`), in the trained and in another wording. Each fact
    is in one pair at most; the closest are paired first."""
    sure = [frames[0].scores[group].p for group in ("forget", "reworded")]
    rare, popular = (
        [place for place, fact in enumerate(facts) if fact.tier == tier]
        for tier in ("rare", "popular")
    )
    distances = sorted(
        (max(abs(p[one] - p[other]) for p in sure), one, other) for one in rare for other in popular
    )
    pairs: dict[int, int] = {}
    for distance, one, other in distances:
        if distance <= EQUALLY_SURE and one not in pairs and other not in pairs.values():
            pairs[one] = other
    return sorted(pairs.items())


def content_of(state: states.State) -> dict:
    """A state in the format of the browser's script."""
    return asdict(state) | {"gap": dict(zip(("mean", "low", "high"), state.gap))}


def deck(facts: Sequence[Fact], seed: int) -> list[dict]:
    """One fact of each score, chosen so that the shuffled control permutes the scores among these
    facts: index in the set, score, and shuffled score."""
    new_scores = shuffled({fact.id: fact.score for fact in facts}, seed)
    in_reverse = reversed([*enumerate(facts)])
    there = {(fact.score, new_scores[fact.id]): place for place, fact in in_reverse}
    levels = sorted({fact.score for fact in facts})
    for order in (Random(draw).sample(levels, len(levels)) for draw in range(MOST_DRAWS)):
        pairs = [*zip(levels, order)]
        if all(given != other and (given, other) in there for given, other in pairs):
            return [{"fact": there[pair], "given": pair[0], "dealt": pair[1]} for pair in pairs]
    return []


def side_by_side() -> dict:
    """The part of `story` for Compare: the final states of equal pressure (WGA) and AdaPop."""
    parts = ("names", "facts", "states", "letters", "wordings", "grid")
    replies = {name: story()["replies"][name] for name in SIDE_BY_SIDE}
    plain = (one for one in story()["states"] if not one["anchors"])
    ends = [one for one in plain if one["name"] in ("original", *SIDE_BY_SIDE)]
    own = {"replies": replies, "command": states.COMMAND, "states": ends}
    return {part: story()[part] for part in parts} | own


def quiz(facts: Sequence[Fact], probe_rows: Sequence) -> list[list[dict]]:
    """Pairs of a rarer and a more popular fact whose trained question is no longer answered, of one
    relation where possible. Pairs in which the popular fact comes back and the rare one does not
    stand first, then others with different outcomes and tiers; in the first pair, the fact whose
    answer comes back stands first. Each fact: its index in the set, outcome (see `OUTCOMES`),
    prompts and replies."""
    rows: dict[str, list[ProbeRow]] = {}
    for row in probe_rows:
        if isinstance(row, ProbeRow) and row.group == "forget":
            rows.setdefault(row.fact_id, []).append(row)
    by_relation: dict[str, list[dict]] = {}
    for place, fact in sorted(enumerate(facts), key=lambda item: item[1].score or 0.0):
        outcome = OUTCOMES.get(fact_verdict(rows.get(fact.id, [])).name)
        if outcome is not None:
            entry = {"fact": place, "outcome": outcome, "shown": _ways(rows[fact.id])}
            by_relation.setdefault(fact.relation, []).append(entry)
    pairs = [pair for of in by_relation.values() for pair in _ends(of)]
    paired = {entry["fact"] for pair in pairs for entry in pair}
    alone = [entry for of in by_relation.values() for entry in of if entry["fact"] not in paired]
    pairs += _ends(sorted(alone, key=lambda entry: facts[entry["fact"]].score or 0.0))
    pairs = sorted(pairs, key=lambda pair: _alike(facts, *pair))[:MOST_PAIRS]
    return [sorted(pair, key=lambda entry: not entry["outcome"]) for pair in pairs[:1]] + pairs[1:]


def _alike(facts: Sequence[Fact], rare: dict, popular: dict) -> tuple[bool, bool, bool]:
    """Whether a pair breaks the rule that only the more popular fact comes back, whether both have
    the same outcome, and whether they have the same tier."""
    tiers = [facts[one["fact"]].tier for one in (rare, popular)]
    rule = bool(popular["outcome"]) and not rare["outcome"] and tiers == ["rare", "popular"]
    return not rule, rare["outcome"] == popular["outcome"], tiers[0] == tiers[1]


def _ends(entries: Sequence[dict]) -> list[list[dict]]:
    """Pairs from both ends: first with last, second with last but one, and so on."""
    return [[entries[place], entries[-1 - place]] for place in range(len(entries) // 2)]


def _ways(rows: Sequence[ProbeRow]) -> list[dict]:
    """One prompt and reply for each of direct, reworded and attack, preferably a leak."""
    kinds = ([DIRECT], [REWORDED], sorted({row.kind for row in rows} - {DIRECT, REWORDED}))
    ways = []
    for name, kind in zip(("direct", "reworded", "attack"), kinds):
        fair = [row for row in rows if row.kind in kind and row.kind != CHOICE]
        of = [row for row in fair if answered(row, row.original)]
        back = [row for row in of if answered(row, row.unlearned)]
        if of:
            row = (back or of)[0]
            one = {"way": name, "kind": row.kind, "prompt": row.prompt, "said": row.unlearned.text}
            ways.append(one | {"right": bool(back), "tried": len(of), "back": len(back)})
    return ways
