"""Contestants' results for figures: their order, and which result beats which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adapop.probes.intervals import Interval, difference
from adapop.probes.prompts import DIRECT, REWORDED

ATTACKED, RECORDED = "worst attack", "recorded here"
PANELS = {
    DIRECT: "asked as trained",
    REWORDED: "asked in other words",
    ATTACKED: "under the worst attack",
}


@dataclass(frozen=True)
class Outcome:
    """A contestant's results, for figures beside others. mark: its number in the tables, "" for the
    original model and recorded results. recall: of the facts to forget, by form (a key of `PANELS`)
    and tier. forget, holdout: recall of all facts of the group, None if not measured. collapsed:
    why it does not compete, else "". apart: why its numbers do not compare with the others', else
    ""; it is drawn grey. recorded: a recorded result, which is drawn hollow and does not compete.
    given: the user's own name for it, "" without one."""

    mark: str
    name: str
    recall: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    forget: Interval | None = None
    holdout: Interval | None = None
    collapsed: str = ""
    recorded: bool = False
    leads: Mapping[str, Interval] = field(default_factory=dict)
    given: str = ""
    apart: str = ""

    @property
    def label(self) -> str:
        return self.given or f"{self.mark} {self.name}".strip()

    def name_among(self, outcomes: Sequence["Outcome"]) -> str:
        """Its name, with its mark if others have the same name."""
        return self.label if sum(one.name == self.name for one in outcomes) > 1 else self.name

    @property
    def original(self) -> bool:
        return not self.mark and not self.recorded

    def lead(self, form: str) -> Interval | None:
        """Popular minus rare recall in a form; above 0 more popular facts are left."""
        tiers = self.recall.get(form, {})
        if not {"rare", "popular"} <= tiers.keys():
            return None
        return self.leads.get(form) or difference(tiers["popular"], tiers["rare"])


def by_gap(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The original, then the others by gap, largest first and unknown last (without rewordings:
    popular minus rare as trained), then those whose numbers do not compare. Recorded results
    follow, in the same order."""
    form = compared_form(outcomes)

    def order(one: Outcome) -> tuple[bool, bool, bool, bool, float]:
        lead, apart = one.lead(form), bool(one.apart)
        return one.recorded, not one.original, apart, lead is None, -lead.mean if lead else 0.0

    return sorted(outcomes, key=order)


def compared_form(outcomes: Sequence[Outcome]) -> str:
    """The form in which tiers are compared: reworded if all outcomes have it, else as trained."""
    together = [one for one in outcomes if not one.apart] or outcomes
    recalls = (one.recall for one in together if any(one.recall.values()))
    return REWORDED if all(recall.get(REWORDED) for recall in recalls) else DIRECT


def pareto_front(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes that no other `beats`, in increasing order of forget recall. The original and
    collapsed models take no part."""
    placed = [one for one in outcomes if contests(one)]
    front = [one for one in placed if not any(beats(other, one) for other in placed)]
    return sorted(front, key=lambda one: (one.forget.mean, one.holdout.mean))


def beats(one: Outcome, other: Outcome) -> bool:
    """Whether an outcome forgets and keeps at least as much as another, and one of them more."""
    left, held = one.forget.mean - other.forget.mean, one.holdout.mean - other.holdout.mean
    return left <= 0 <= held and (left, held) != (0, 0)


def contests(one: Outcome) -> bool:
    """Whether an outcome competes for the Pareto front: a measured, uncollapsed run of the user."""
    measured = one.forget is not None and one.holdout is not None
    return measured and not (one.original or one.collapsed or one.recorded or one.apart)


def no_contest(outcomes: Sequence[Outcome]) -> bool:
    """Whether no outcome answers clearly fewer of the facts to forget than the original, so that
    there is nothing to compare. False if the original was not measured."""
    placed = [one for one in outcomes if contests(one)]
    if not placed and any(one.apart for one in outcomes):
        return True
    known = any(one.original and one.forget for one in outcomes)
    return known and bool(placed) and not forgetters(placed, outcomes)


def forgetters(compared: Sequence[Outcome], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The compared outcomes that answer clearly fewer of the facts to forget than the original in
    `outcomes`; without the original, fewer than all."""
    before = next((one.forget.low for one in outcomes if one.original and one.forget), 1.0)
    return [one for one in compared if one.forget is not None and one.forget.high < before]
