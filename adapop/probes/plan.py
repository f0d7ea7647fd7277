"""The plan of a battery of probes: which facts, in which forms. No torch: a page shows its cost."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from adapop.errors import ConfigError
from adapop.facts.fact import GROUPS, TIERS, Fact, FactSet
from adapop.facts.pool import Pool
from adapop.probes import prompts
from adapop.probes.attacks import attack_prompts, clues, own_attacks
from adapop.probes.prompts import CHOICE, CLUES, DIRECT, NotApplicable, Prompt, direct
from adapop.probes.wording import aliased, chained, reworded

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """Which facts to ask, and how. Raises ConfigError: an unknown name, or a number below 1."""

    kinds: tuple[str, ...] = prompts.EVERY_KIND
    """Forms of the question, from `prompts.EVERY_KIND`."""
    groups: tuple[str, ...] = GROUPS
    """Groups of facts, from `facts.fact.GROUPS`; utility questions are asked directly only."""
    per_tier: int | None = None
    """The most facts of each group and tier, at least 1; None for all."""
    seed: int = 0
    """Seed of the attacks' random choices."""
    cosine: bool = False
    """Whether to measure the MiniLM cosine."""
    max_new_tokens: int = 64
    """Budget of a reply in tokens, at least 1; the same for both models."""

    def __post_init__(self) -> None:
        for name, known in (("kinds", prompts.EVERY_KIND), ("groups", GROUPS)):
            if unknown := [value for value in getattr(self, name) if value not in known]:
                fix = f"Known: {', '.join(known)}."
                raise ConfigError(f"{unknown[0]!r} is none of the {name} of probes.", fix)
        for name in ("per_tier", "max_new_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value!r}.", "It must be at least 1.")


@dataclass(frozen=True)
class Question:
    """A prompt with the fact that it asks for, and the fact's group."""

    group: str
    fact: Fact
    prompt: Prompt


def questions(facts: FactSet, plan: Plan) -> dict[str, list[Question | NotApplicable]]:
    """Kind -> its questions, or the reasons why facts cannot be asked; in the order of `KINDS`. The
    set's own attacks are added to ours, in the group "forget". Attacks of unknown kinds come last,
    not applicable."""
    kinds = [kind for kind in prompts.KINDS if kind in plan.kinds]
    by_kind: dict[str, list[Question | NotApplicable]] = {kind: [] for kind in kinds}
    attacked = bool({*plan.kinds} & {*prompts.KINDS, prompts.CLOZE} - {DIRECT, prompts.REWORDED})
    pool = Pool(facts.every)
    if prompts.ALIAS in plan.kinds and any(fact.subject_aliases for fact in facts.every):
        by_kind[prompts.ALIAS] = []
    if prompts.TWO_HOPS in plan.kinds and any(fact.has_chain for fact in facts.every):
        by_kind[prompts.TWO_HOPS] = []
    for group in plan.groups:
        for fact in evenly(getattr(facts, group), plan.per_tier):
            forms: list[Prompt | NotApplicable] = [direct(fact)]
            if group != "utility":
                forms += aliased(fact) if prompts.ALIAS in by_kind else ()
                forms += chained(fact) if prompts.TWO_HOPS in by_kind else ()
                forms += reworded(fact)
                forms += attack_prompts(fact, pool, plan.seed) if attacked else ()
            for form in forms:
                if form.kind in by_kind:
                    by_kind[form.kind].append(_question(group, fact, form))
    if attacked and "forget" in plan.groups:
        for kind, own_attacks in _own_attacks(facts, plan.per_tier).items():
            if kind in plan.kinds or kind not in prompts.EVERY_KIND:
                by_kind.setdefault(kind, []).extend(own_attacks)
    return by_kind


def asked_otherwise(
    facts: FactSet, plan: Plan, kind: str
) -> dict[str, list[Question | NotApplicable]]:
    """{kind: the facts' own questions, asked this way}; {} if not planned. kind: of `OTHERWISE`."""
    if kind not in plan.kinds:
        return {}
    forms = []
    for group in plan.groups:
        members = evenly(getattr(facts, group), plan.per_tier) if group != "utility" else ()
        forms += [_question(group, fact, replace(direct(fact), kind=kind)) for fact in members]
    return {kind: forms}


def chains(
    facts: FactSet, plan: Plan, room: Callable[[Sequence[str]], bool] | None
) -> list[tuple[Question | NotApplicable, tuple[str, ...]]]:
    """Each fact's last question of a chain of clues, or why it is not asked so, with the turns
    before it; [] if not planned. room: whether the model's context holds such turns with their
    replies; None for a model that holds no conversation, which is said where this kind was chosen
    by name."""
    chosen = room is not None or plan.kinds != prompts.EVERY_KIND
    groups = [group for group in plan.groups if group != "utility"]
    if CLUES not in plan.kinds or not chosen:
        return []
    return [
        _in_chain(group, fact, room)
        for group in groups
        for fact in evenly(getattr(facts, group), plan.per_tier)
    ]


def _in_chain(
    group: str, fact: Fact, room: Callable[[Sequence[str]], bool] | None
) -> tuple[Question | NotApplicable, tuple[str, ...]]:
    chain, reason = clues(fact), ""
    if room is None:
        reason = "the model is not asked in chat"
    elif chain is None:
        reason = "a turn would contain the answer"
    elif not room([*chain[1], chain[0].text]):
        reason = "the conversation does not fit into the model's context"
    if chain is None or reason:
        return NotApplicable(fact.id, CLUES, reason), ()
    return _question(group, fact, chain[0]), chain[1]


def evenly(facts: Sequence[Fact], per_tier: int | None) -> list[Fact]:
    """At most `per_tier` facts of each tier, spread evenly over their ranking by score, in their
    original order. Facts without a score are ranked by id. The same facts give the same choice."""
    if per_tier is None:
        return list(facts)
    tiers: dict[str, list[Fact]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: (fact.score or 0.0, fact.id)):
        tiers[fact.tier].append(fact)
    chosen: set[str] = set()
    for ranked in tiers.values():
        count = min(per_tier, len(ranked))
        # Takes the middle of each of `count` equal parts.
        chosen |= {ranked[(2 * i + 1) * len(ranked) // (2 * count)].id for i in range(count)}
    return [fact for fact in facts if fact.id in chosen]


def in_tiers(facts: Sequence[Fact], values: Sequence[T]) -> dict[str, list[T]]:
    """Tier -> the values of its facts, "all" first; no empty tiers. values: one per fact. Facts
    without a score are in "all" only."""
    tiers = {"all": list(values)}
    for fact, value in zip(facts, values, strict=True):
        tiers.setdefault(fact.tier, []).append(value)
    return {tier: tiers[tier] for tier in ("all", *TIERS) if tiers.get(tier)}


def _question(group: str, fact: Fact, form: Prompt | NotApplicable) -> Question | NotApplicable:
    """The question with all right answers of its fact, if it asks for the fact's answer. Not
    applicable if the prompt contains one of them, unless it is the fact's own question."""
    if isinstance(form, NotApplicable):
        return form
    if form.gold == fact.answer and (fact.accepted or fact.parts) and form.kind != CHOICE:
        form = replace(form, accepted=(*form.accepted, *fact.accepted), parts=fact.judged_parts)
        # the fact's own question may contain the answer
        checked = form if form.text == fact.question else prompts.checked(form)
        return checked if isinstance(checked, NotApplicable) else Question(group, fact, checked)
    return Question(group, fact, form)


def _own_attacks(facts: FactSet, per_tier: int | None) -> dict[str, list[Question | NotApplicable]]:
    """The set's own attacks by kind, at most `per_tier` of each kind and tier."""
    rows = {fact.id: fact for fact in facts.attacks}
    kinds: dict[str, list[Prompt | NotApplicable]] = defaultdict(list)
    for result in own_attacks(facts):
        kinds[result.kind].append(result)
    by_kind = {}
    for kind, results in kinds.items():
        chosen = {fact.id for fact in evenly([rows[one.fact_id] for one in results], per_tier)}
        results_of_chosen = [one for one in results if one.fact_id in chosen]
        by_kind[kind] = [_question("forget", rows[one.fact_id], one) for one in results_of_chosen]
    return by_kind
