"""Distance of a run to the oracle: sentence, tables and comparison lines."""

from collections.abc import Sequence
from itertools import product

from adapop.facts.fact import TIERS, Fact
from adapop.probes import distance as states_of
from adapop.probes.distance import (
    AS_NEVER_LEARNT,
    MIA_NAMES,
    OVER,
    STATES,
    UNDER,
    Distance,
    FactDistance,
)
from adapop.probes.intervals import wilson
from adapop.probes.prompts import DIRECT, REWORDED, plain
from adapop.report import figures
from adapop.report.record import GROUP_NAMES, Record
from adapop.report.table import Table, number, percent, ranged
from adapop.training import frames
from adapop.training.events import Measured

MEMBERSHIP_NOTE = (
    "AUC of telling facts to forget from held-out facts, with a 95% interval that errs on the wide "
    "side. 1: facts to forget look more trained on; .5: the two cannot be told apart. If "
    "held-out facts were in the original's training too, an AUC far below .5 is no success, "
    "because the facts to forget then stand out."
)
PRIVLEAK_NOTE = (
    "The oracle never read the facts to forget; privleak compares its AUC with the unlearned "
    "model's, 0% if equal."
)
STATES_NOTE = (
    "Measured against the oracle, the same model pretrained without the facts to forget. A fact is "
    "{meanings}. By chance, 5% of facts that were never learnt are over- or under-forgotten. "
    "Ranges: 95% over facts."
)
GROUPS_NOTE = (
    "KL(oracle || unlearned) at the answer's tokens, nats a token; 0 means equal. Same guess: "
    "share of facts for which both models find the same token likeliest at every position of the "
    "answer."
)
QUALITY_NOTE = (
    "As TOFU defines it: the p-value of a Kolmogorov-Smirnov test on the truth ratios of the "
    "unlearned model and the oracle; near 1 they cannot be told apart. Truth ratio: 1 where right "
    "and wrong answers are equally likely."
)

MEANING = {
    "over-forgotten": (
        "given less probability than the oracle gives to answers that it never read (avoiding an "
        "answer reveals that it was known)"
    ),
    "as if never learnt": (
        "given as much probability as the oracle gives to answers it never read (the middle 95%)"
    ),
    "under-forgotten": "given more probability than the oracle gives to answers it never read",
}
ROUNDED = 0.5 * 10**-frames.DECIMALS  # error of a frame's probabilities
ATTACK_NAMES = dict(zip(MIA_NAMES, ("loss", "min-k", "min-k++", "zlib")))


def form_of(distance: Distance) -> str:
    """The form in which states are counted: reworded if there are rewordings."""
    return REWORDED if distance.of(REWORDED) else DIRECT


def distance_sentence(distance: Distance) -> str:
    """A sentence on the share of facts in each state, and on a tier that clearly has more."""
    form = form_of(distance)
    shares = distance.shares(form)
    parts = [f"Forgotten as if never learnt: {ranged(shares[AS_NEVER_LEARNT])} of facts"]
    for state in (OVER, UNDER):
        mostly = distance.mostly(form, state)
        parts.append(f"{state} {ranged(shares[state])}{mostly and f', mostly {mostly}'}")
    return "; ".join(parts)


def distance_chart(distance: Distance, facts: Sequence[Fact]) -> figures.Figure:
    """Figure of each fact to forget against facts the oracle never read."""
    return figures.oracle_chart(distance, facts, form_of(distance))


def distance_tables(distance: Distance) -> list[Table]:
    """States of the facts by form and tier; distance to the oracle's predictions by group."""
    return [_states(distance), _groups(distance), _quality(distance)]


def membership_table(before: Measured, after: Measured, distance: Distance | None) -> Table | None:
    """AUC of each membership attack with a wide 95% interval; None if not measured."""
    forget, holdout = (after.row(group, DIRECT, "all") for group in ("forget", "holdout"))
    if before.recall("forget", name="mia_loss") is None or not (forget and holdout):
        return None
    pairs = forget["facts"] * holdout["facts"] // (forget["facts"] + holdout["facts"])
    oracle = {attack.attack: attack for attack in distance.membership} if distance else {}
    rows = []
    for attack, name in ATTACK_NAMES.items():
        values = [measured.recall("forget", name=attack) for measured in (before, after)]
        cells = [str(wilson(value, max(1, pairs))) for value in values]
        if oracle:
            cells += [f"{oracle[attack].oracle:.2f}", f"{oracle[attack].privleak:+.0f}%"]
        rows.append((name, *cells))
    note, head = MEMBERSHIP_NOTE, ("attack", "original", "unlearned")
    if oracle:
        head += ("oracle", "privleak")
        note += f" {PRIVLEAK_NOTE}"
    return Table("Membership inference", head, tuple(rows), note)


def run_tables(record: Record) -> list[Table]:
    """The tables of distance and membership for a run's report; empty if not measured."""
    before, after, distance = record.before, record.after, record.distance
    membership = membership_table(before, after, distance) if before and after else None
    tables = [*distance_tables(distance), _by_epoch(distance, record)] if distance else []
    return [*tables, *([membership] if membership else [])]


def _states(distance: Distance) -> Table:
    rows = []
    for form, tier in product((REWORDED, DIRECT), ("all", *TIERS)):
        if shares := distance.shares(form, tier):
            cells = (ranged(shares[state]) for state in STATES)
            rows.append((f"{plain(form)}, {tier}", f"{len(distance.of(form, tier)):,}", *cells))
    note = STATES_NOTE.format(
        meanings="; ".join(f"{state} if its answer is {MEANING[state]}" for state in STATES)
    )
    return Table(
        "Compared with a model that never learnt the facts",
        ("", "facts", *STATES),
        tuple(rows),
        note,
    )


def _by_epoch(distance: Distance, record: Record) -> Table:
    """State shares after each epoch, from the run's frames, asked as trained."""
    beside = {fact.id: fact for fact in distance.of(DIRECT)}
    facts, rows = [beside.get(fact.id) for fact in record.facts.forget], []
    for frame in record.frames:
        if frame.epoch == round(frame.epoch):
            pairs = zip(frame.scores["forget"].p, facts)
            shares = states_of.shares([_state(p, fact) for p, fact in pairs if fact])
            rows.append((f"{frame.epoch:.0f}", *(ranged(shares[state]) for state in STATES)))
    note = f"{len(beside):,} facts to forget, asked as trained. Epoch 0 is the original model."
    title = "Epoch by epoch, compared with a model that never learnt the facts"
    return Table(title, ("epoch", *STATES), tuple(rows), note)


def _state(p: float, fact: FactDistance) -> str:
    """The state by a rounded probability; within the band where rounding leaves that open."""
    nearest = min(max(p, fact.low), fact.high)
    return states_of.state_of(nearest if abs(nearest - p) <= ROUNDED else p, fact)


def _groups(distance: Distance) -> Table:
    rows = []
    for row in distance.groups:
        name = f"{GROUP_NAMES[row.group]}, {plain(row.form)}, {row.tier}"
        rows.append((name, f"{row.facts:,}", number(row.kl), percent(row.same)))
    head = ("", "facts", "KL from the oracle", "same guess")
    return Table("Distance to the oracle", head, tuple(rows), GROUPS_NOTE)


def _quality(distance: Distance) -> Table:
    quality = distance.quality
    direction = f"prefers wrong answers {'more' if quality.higher else 'less'} than the oracle"
    rows = (
        ("forget quality (p)", f"{quality.p_value:.2g}"),
        ("log₁₀ of p", f"{quality.log10:.1f}"),
        ("KS distance", f"{quality.distance:.2f}"),
        ("direction", direction if quality.distance else "none"),
        ("truth ratio", number(distance.truth_ratio)),
        ("truth ratio of the oracle", number(distance.oracle_truth_ratio)),
    )
    return Table("Forget quality", ("", "unlearned"), rows, QUALITY_NOTE)
