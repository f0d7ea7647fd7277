"""All that the Story shows, taken from the recorded examples: sent to the browser once, with the page."""

from collections.abc import Sequence
from functools import lru_cache, partial

from adapop.errors import RunError
from adapop.facts.fact import Fact
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, ProbeRow
from adapop.probes.verdict import KNOWN_FROM, fact_verdict
from adapop.report import recorded
from adapop.report.record import trained
from adapop.runs.examples import COMMAND, example
from adapop.ui import texts
from adapop.ui.parts import field
from adapop.ui.pressure import pictures
from adapop.ui.story import words

FIELDS = ("wga", "adapop", "shuffled")
SIDE_BY_SIDE = ("wga", "adapop")
TOLD = ("rare", "popular")  # the tiers that make the gap: of the last measurement, in other words
# what the last step can be answered with, in the order of its buttons
OUTCOMES = {
    "Forgotten": 0,
    "Next in line": 0,
    "Looks suppressed": 0,
    "Leaks when reworded": 1,
    "Leaks under attack": 2,
}
MOST_PAIRS = 12
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
        RunError: an example does not read, or is not of the same facts as the others.
    """
    runs = {name: example(name) for name in FIELDS}
    facts = runs["wga"].facts.forget
    for name, run in runs.items():
        if run.facts.forget != facts:
            raise RunError(f"The example {name} is not of the facts of wga.", f"Make them again: {COMMAND}")
    pair = example("pair")
    (rare, popular), frames = pair.facts.forget, pair.frames()
    ends = {name: run.measured() for name, run in runs.items()}
    left = {name: [end.recall("forget", "reworded", tier) for tier in TOLD] for name, end in ends.items()}
    beta = runs["adapop"].config.beta
    return {
        "command": COMMAND,
        "steps": words.steps(rare, popular, ends["adapop"]),
        "names": texts.STORY_NAMES,
        "facts": field.dots(facts),
        "runs": {name: field.motion(run.frames(), facts) | {"left": left[name]} for name, run in runs.items()},
        "pair": field.dots((rare, popular)) | field.motion(frames, pair.facts.forget) | {
            "first": words.first_lost(frames),
            "outcome": f"{words.outcome_of_pair((rare, popular), frames)} {texts.STORY_PAIR_END}",
            "beta": [beta(rare.score), beta(popular.score)],
        },
        "curve": pictures(runs["adapop"].facts)["curve"],
        "control": words.gap_came_back({name: words.gap_of(*ends) for name, ends in left.items()}),
        "costs": words.costs(ends["adapop"], ends["wga"]),
        "without": words.tuned_better(TUNED()),
        "over_seeds": [said(found()) for said, found in OVER_SEEDS],
        "seeds_by": f"{recorded.COMMAND}; {recorded.TUNED_COMMAND}",
        "quiz": quiz(facts, runs["adapop"].probes() or []),
        "end": texts.STORY_END,
        "beyond": words.beyond(*(recorded.tuned_arms((OURS,), file)[0] for file in FILES)),
    }  # fmt: skip


def side_by_side() -> dict:
    """The even push and AdaPop, asked in other words, for the fields of Compare: a part of `story`."""
    told = story()
    wanted = ("epoch", "reworded", "said", "right")
    runs = {name: {part: told["runs"][name][part] for part in wanted} for name in SIDE_BY_SIDE}
    about = trained([example(name).config for name in SIDE_BY_SIDE])
    return {name: told[name] for name in ("command", "names", "facts")} | {"runs": runs, "about": about}


def quiz(facts: Sequence[Fact], found: Sequence) -> list[list[dict]]:
    """Pairs of a rarer and a more popular fact that no longer answer the trained question, of one relation where there
    are two; those that fared differently and are of different tiers come first. Of each: its place in the set, the
    outcome (see `OUTCOMES`), and what was asked and said."""
    rows: dict[str, list[ProbeRow]] = {}
    for row in found:
        if isinstance(row, ProbeRow) and row.group == "forget":
            rows.setdefault(row.fact_id, []).append(row)
    asked: dict[str, list[dict]] = {}
    for place, fact in sorted(enumerate(facts), key=lambda item: item[1].score or 0.0):
        outcome = OUTCOMES.get(fact_verdict(rows.get(fact.id, [])).name)
        if outcome is not None:
            entry = {"fact": place, "outcome": outcome, "shown": _shown(rows[fact.id])}
            asked.setdefault(fact.relation, []).append(entry)
    pairs = [pair for of in asked.values() for pair in _ends(of)]
    paired = {entry["fact"] for pair in pairs for entry in pair}
    alone = [entry for of in asked.values() for entry in of if entry["fact"] not in paired]
    pairs += _ends(sorted(alone, key=lambda entry: facts[entry["fact"]].score or 0.0))
    return sorted(pairs, key=lambda pair: _alike(facts, *pair))[:MOST_PAIRS]


def _alike(facts: Sequence[Fact], first: dict, second: dict) -> tuple[bool, bool]:
    """Whether two facts fared alike, and whether they are of one tier."""
    return first["outcome"] == second["outcome"], facts[first["fact"]].tier == facts[second["fact"]].tier


def _ends(entries: Sequence[dict]) -> list[list[dict]]:
    """The first with the last, the second with the last but one, and so on."""
    return [[entries[place], entries[-1 - place]] for place in range(len(entries) // 2)]


def _shown(rows: Sequence[ProbeRow]) -> list[dict]:
    """What was asked and said: directly, reworded and attacked, of each the first that brought the answer back."""
    kinds = ([DIRECT], [REWORDED], sorted({row.kind for row in rows} - {DIRECT, REWORDED}))
    shown = []
    for name, kind in zip(("direct", "reworded", "attack"), kinds):
        of = [row for row in rows if row.kind in kind and row.original.recall >= KNOWN_FROM and row.kind != CHOICE]
        back = [row for row in of if row.unlearned.recall >= KNOWN_FROM]
        if of:
            row = (back or of)[0]
            one = {"way": name, "kind": row.kind, "prompt": row.prompt, "said": row.unlearned.text}
            shown.append(one | {"right": bool(back), "tried": len(of), "back": len(back)})
    return shown
