"""`bench tuned`: every method with settings from the same search, reported on the test split."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from adapop.errors import ConfigError
from adapop.experiments import distance, pictures, tables, winners
from adapop.experiments.item import Arm, CustomData, Item, World, over_seeds
from adapop.experiments.plans import ADAPOP, CONTROL_ARMS, PAPER, TUNED_FILES, WORLDS, RowsByKey
from adapop.experiments.run import Engine, Experiment
from adapop.experiments.spaces import SEARCHES, with_point
from adapop.experiments.tables import Rows
from adapop.experiments.tuning import best_of, search, trials_file, trials_of
from adapop.facts.fact import SANDBOX
from adapop.facts.world import sandbox_facts
from adapop.paths import SHIPPED
from adapop.popularity.beta import HIGH, LOW, POPULAR_ANCHOR, RARE_ANCHOR, BetaMap
from adapop.report.figures import Figure
from adapop.report.table import Table, reading

AnyWorld = World | CustomData | None  # None: the shipped sandbox
THREE = "three"  # the name of the worlds that are averaged over
KAPPA = 0.3  # for a Redirect winner that ignores scores (κ = 0); from an earlier search
STEEPNESS = {"gentle": 4.0, "the paper's": 15.0}  # rare anchor's β divided by the popular one's


def run_searches(
    names: Sequence[str],
    folder: Path,
    trials: int,
    quick: bool,
    engine: Engine,
    report: Callable[[str], None],
    custom: CustomData | None = None,
) -> dict[str, str]:
    """Makes missing trials, one process per arm. Returns name -> why the arm's search failed.
    custom: facts and model of the trials, None for the sandbox."""
    errors = {}
    left = [name for name in names if len(trials_of(trials_file(folder, name))) < trials]
    count = len(names) - len(left)
    report(f"{count} of {len(names)} searches of {trials} trials are done already.")
    making = partial(search, folder=folder, trials=trials, quick=quick, custom=custom)
    for done in engine(left, making):
        report(f"search {done.item}: {done.error or f'{done.result} trials made'}")
        if done.error:
            errors[f"search {done.item}"] = done.error
    return errors


def experiment(
    folder: Path, trials: int, names: Sequence[str], world: str = SANDBOX, anew: bool = False
) -> Experiment:
    """The experiment of the finished searches' winners, in one world or in `THREE`.

    anew: whether the searches were made in that world. Raises ConfigError: no such world."""
    done = {name: trials_of(trials_file(folder, name))[:trials] for name in names}
    done = {name: trial_rows for name, trial_rows in done.items() if len(trial_rows) == trials}
    chosen = {
        name: with_point(SEARCHES[name].arm, best_of(trial_rows)["point"])
        for name, trial_rows in done.items()
    }
    variants = score_variants(chosen)
    arms = [*chosen.values(), *(arm for others in variants.values() for arm in others)]
    plan = partial(_plan, arms, places_named(world))
    titles = [arm.title for arm in chosen.values()]

    def variant_table(base: str) -> Callable[[Rows], Table | None]:
        others = [arm.title for arm in variants[base]]
        words = {"title": f"Scores, all else as {base}", "note": NOTE, "values": winners.WITH_GAP}
        return partial(winners.pair_table, base=base, others=others, **words)

    at_home = anew or world == SANDBOX  # whether the winners were chosen in this world
    of_trials = (lambda arms: winners.winner_table(done), lambda arms: winners.search_table(done))
    choosing = (*of_trials, partial(winners.luck_table, done=done)) if at_home else ()
    to_ours = partial(
        winners.pair_table, base=winners.OURS, others=titles, title=f"Difference to {winners.OURS}"
    )
    of_one = (
        winners.test_table, winners.recovery_table, *choosing,
        *(variant_table(base) for base in variants),
        partial(winners.shuffled_table, titles=shuffled_titles(variants)), to_ours,
        partial(tables.difference_table, base=ADAPOP), tables.guess_table, distance.oracle_table,
        tables.cost_table,
    )  # fmt: skip
    of_three = (winners.worlds_table, winners.worlds_difference_table)
    where = f"Tuned{' anew' * anew}, in {world}{' worlds' * (world == THREE)}"
    split = "split" if at_home else "split of the shipped sandbox"
    question = reading("tuned", trials=trials, objective=winners.OBJECTIVE, split=split)
    drawn = tuple(partial(_draw_winners, draw, titles) for draw in DRAWN)
    if world == THREE:
        return Experiment(where, question, plan, of_three, (pictures.fronts,))
    return Experiment("Tuned" if world == SANDBOX else where, question, plan, of_one, drawn)


def _plan(
    arms: Sequence[Arm],
    places: Mapping[str, AnyWorld],
    seeds: Sequence[int],
    quick: bool,
    known: RowsByKey,
) -> list[Item]:
    """Every arm in every world on every seed, with the recovery checks."""
    items = []
    for name, place in places.items():
        prefix = f"{name}{winners.WITH}" * (len(places) > 1)
        custom = place if isinstance(place, CustomData) else None
        world = place if isinstance(place, World) else None
        placed = [replace(arm, title=prefix + arm.title, world=world) for arm in arms]
        here = over_seeds(placed, seeds, quick)
        items += [replace(item, custom=custom, recovery=True) for item in here]
    return items


def _draw_winners(draw: pictures.Draw, titles: Container[str], arms: Rows) -> Figure:
    """A figure of the winners only: with all arms it would be illegible."""
    return draw({title: rows for title, rows in arms.items() if title in titles})


DRAWN = (pictures.tiers, pictures.cost, pictures.differences(ADAPOP), distance.nearness)
NOTE = "Every other setting is the winner's: nothing was chosen for these arms."


def score_variants(chosen: Mapping[str, Arm]) -> dict[str, list[Arm]]:
    """Winner's title -> arms that differ only in how they use scores. chosen: by search name."""
    arms = {}
    if redirect := chosen.get("redirect"):
        kappa_chosen = redirect.changes["arguments"]["kappa"]
        others = [(kappa_chosen or KAPPA, scores) for scores in ("given", "shuffled", "inverted")]
        others = [pair for pair in (*others, (0.0, "given")) if pair != (kappa_chosen, "given")]
        arms[redirect.title] = [_weighted(redirect, kappa, scores) for kappa, scores in others]
    if wga := chosen.get("wga"):
        arms[wga.title] = [
            _scored(wga, steepness, how, scores)
            for how, steepness in STEEPNESS.items()
            for scores in ("given", "shuffled", "inverted")
        ]
        title = f"{wga.title}'s settings, AdaPop as it is"
        # A search of AdaPop has more settings to choose than one of WGA, and may miss this arm.
        arms[wga.title].append(replace(PAPER, title=title, changes=_without_arguments(wga)))
    return arms


def shuffled_titles(variants: Mapping[str, Sequence[Arm]]) -> dict[str, str]:
    """Title of an arm of `score_variants` -> title of that arm with shuffled scores."""
    arms = {arm.title: arm.changes for others in variants.values() for arm in others}
    return {
        title: twin
        for (title, given), (twin, changes) in product(arms.items(), repeat=2)
        if "scores" not in given and changes == {**given, "scores": "shuffled"}
    }


def _weighted(redirect: Arm, kappa: float, scores: str) -> Arm:
    """Redirect's winner with another κ."""
    control = {} if scores == "given" else {"scores": scores}
    arguments = {"arguments": {**redirect.changes["arguments"], "kappa": kappa}}
    title = f"Redirect's settings, κ = {kappa:g}{f', scores {scores}' * bool(control)}"
    return replace(redirect, title=title, changes={**redirect.changes, **arguments, **control})


def _scored(wga: Arm, steepness: float, how: str, scores: str) -> Arm:
    """WGA's winner with a β by score; its geometric mean at the anchors is WGA's β if unclipped."""
    beta, root = wga.changes["arguments"]["beta"], steepness**0.5
    rare, popular = (min(max(value, LOW), HIGH) for value in (beta * root, beta / root))
    curve = BetaMap.from_anchors((RARE_ANCHOR[0], rare), (POPULAR_ANCHOR[0], popular))
    control = {} if scores == "given" else {"scores": scores}
    changes = {**_without_arguments(wga), "beta": curve, **control}
    title = f"{wga.title}'s settings, β by score ({how} curve{f', {scores}' * bool(control)})"
    return replace(CONTROL_ARMS["alpha-fixed"], title=title, changes=changes)


def _without_arguments(arm: Arm) -> dict[str, Any]:
    """The arm's changes except its method's own arguments."""
    return {name: value for name, value in arm.changes.items() if name != "arguments"}


def searched_on(world: str) -> CustomData:
    """The world's facts and model. Raises ConfigError: unknown, not shipped, or the sandbox."""
    place = places_named(world).get(world)
    if not isinstance(place, CustomData):
        others = ", ".join(name for name in SHIPPED if name != SANDBOX)
        message = f"--anew does not go with the world {world!r}."
        raise ConfigError(message, f"Use --world {others}, or leave it out.")
    return place


def places_named(world: str) -> dict[str, AnyWorld]:
    """Name -> world, for one of `plans.WORLDS` (pretrained on demand), a shipped world, or `THREE`.
    Raises ConfigError: there is no world of this name."""
    known: dict[str, AnyWorld] = {
        name: CustomData(sandbox_facts(name), name, {}) for name in SHIPPED
    }
    known |= {SANDBOX: None, **{other.name: other for other in WORLDS}}
    if world == THREE:
        return {name: known[name] for name in TUNED_FILES}
    if world not in known:
        known_names = f"Use one of {', '.join(known)}, {THREE}."
        raise ConfigError(f"There is no world {world!r}.", known_names)
    return {world: known[world]}
