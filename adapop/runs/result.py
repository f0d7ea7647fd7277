"""The result of a finished run, doubts about it, and settings for a better try.

**The rule, once for all who say it.** A run unlearned if, in every way in which its facts to forget
were asked, at most half of what the original answered is still answered. A way counts if either
model answers a tenth of its facts, and two of them. Forgotten in some ways alone is `SOME_WAYS`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from adapop.config.presets import RETAIN_KEPT, untouched
from adapop.config.run import RunConfig
from adapop.errors import listing
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.remark import Remark
from adapop.runs.amount import total_steps, with_steps
from adapop.runs.best import keeps
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Measured, RunFailed, RunStarted

FORGOT, PARTLY, NOTHING, DAMAGED, UNKNOWN = "forgot", "partly", "nothing", "damaged", "unknown"
SOME_WAYS = "some_ways"
FAR = 0.3  # share of the preset's learning rate; below it more steps do not help
LESS = 0.5  # the learning rate of another try after damage, as a share of the old one
MORE = {NOTHING: 10, PARTLY: 2, SOME_WAYS: 2}  # factors for the steps of another try
KNOWN = 0.5  # share of the facts that the original should answer
LEFT = 0.02  # largest change of recall that counts as none
# Share of what the original answers: with more left of the facts to forget, these are not
# forgotten; with less left of what is to stay, the model is damaged.
LOST = 0.5
MOSTLY = 0.25  # with more left in some way of asking, a run that did its work says "half", no more
ENOUGH = 0.1  # if fewer were answered before, a loss would not show
FEWEST = 2  # answers: one may be chance
SURVIVING = ("utility", "retain", "holdout")


WAYS = {
    DIRECT: "as trained",
    REWORDED: "in other words",
    FORM_OF_WAY["chat"]: "in chat",
    FORM_OF_WAY["chat-examples"]: "in chat after examples",
    FORM_OF_WAY["text-examples"]: "as text after examples",
}
"""Form of a question in tables -> how a fact is then asked, in words."""


@dataclass(frozen=True)
class WayResult:
    """Recall of the facts to forget, [0, 1], in one way of asking."""

    form: str
    """A key of `WAYS`."""
    facts: int
    """How many facts were asked, at least 1."""
    before: float
    after: float

    @property
    def counts(self) -> bool:
        """Whether enough is answered, before or after, for this way to tell anything."""
        most = max(self.before, self.after)
        return most >= ENOUGH and most * self.facts >= min(FEWEST, self.facts)

    @property
    def is_forgotten(self) -> bool:
        """Whether at most half of what was answered is still answered."""
        return self.after <= LOST * self.before

    def text(self, first: bool = True) -> str:
        """What is left, in words. first: whether it stands first in a list."""
        way, after = WAYS[self.form], f"{self.after:.0%}"
        left = f"asked {way}, {after} are still answered" if first else f"{way} {after}"
        if self.after > self.before + LEFT:
            return f"{left}, more than before ({self.before:.0%})"
        return f"{left} ({self.before:.0%} before)"


@dataclass(frozen=True)
class Result:
    """The result of a finished run.

    kind: FORGOT; SOME_WAYS: more than half is left in some ways of asking; PARTLY: in all of them;
    NOTHING; DAMAGED: facts to be kept are lost too; UNKNOWN: no way of asking counts, because too
    few are answered to tell.
    before, after: recall of the facts to forget in [0, 1]. form: how they were asked, "reworded" if
    that was measured. steps: up to the epoch of the result. lost: (group, before, after) of a
    damaged group. epoch, of: the result is epoch `epoch` of `of` trained ones. best: see
    `_best_kind`. ways: the ways of asking that count, see `WayResult`."""

    kind: str
    before: float
    after: float
    form: str
    steps: int
    rate: float
    lost: tuple[str, float, float] | None = None
    epoch: int = 0
    of: int = 0
    best: str = ""
    ways: tuple[WayResult, ...] = ()

    @property
    def overshot(self) -> bool:
        """Whether the result is an epoch that forgot nothing because all later ones were worse."""
        return self.kind == NOTHING and self.epoch < self.of

    @property
    def unlearned(self) -> bool:
        """Whether the run did what it was for, by the rule above; a command's exit status says it.
        Facts that the original did not answer need no forgetting."""
        return self.kind != NOTHING and not self._left

    @property
    def remark(self) -> Remark | None:
        """What is still answered, by way of asking; None if no way counts."""
        if not self.ways:
            return None
        listed = self._left or self.ways
        texts = ", ".join(way.text(first=way is listed[0]) for way in listed)
        if not self._left and self.lost:
            return Remark("forgotten_and_damaged", {"left": texts})
        if not self._left:
            mostly = all(way.after <= MOSTLY * way.before for way in self.ways)
            return Remark("forgotten_in_all" if mostly else "half_forgotten", {"left": texts})
        halved = [way for way in self.ways if way.is_forgotten]
        if not halved:
            return Remark("not_unlearned", {"left": texts})
        ways = listing([f"{WAYS[way.form]} ({way.after:.0%} still answered)" for way in halved])
        return Remark("forgotten_only", {"ways": ways, "left": texts})

    @property
    def brief(self) -> Remark | None:
        """`remark` in fewer words: what is left in the first way; then only the ways in which more
        is answered than before. Of `SOME_WAYS` without the verdict, which stands above it."""
        whole, left = self.remark, self._left
        if whole is None or not left:
            return whole
        texts = [f"asked {WAYS[left[0].form]}, {left[0].after:.0%} are still answered"]
        more = [WAYS[way.form] for way in left[1:] if way.after > way.before + LEFT]
        texts += [f"{', '.join(more)} more than before"] * bool(more)
        kind = "left_in_some_ways" if self.kind == SOME_WAYS else whole.kind
        return Remark(kind, {**whole.values, "left": ", ".join(texts)})

    @property
    def _left(self) -> list[WayResult]:
        return [way for way in self.ways if not way.is_forgotten]


def result_of(run: Run) -> Result | None:
    """The result of a run, None until its last measurement."""
    before, after = run.measured(before=True), run.measured()
    return judged(before, after, run.config, len(run.facts.forget), run.epochs())


def judged(
    before: Measured | None,
    after: Measured | None,
    config: RunConfig,
    rows: int,
    epochs: Sequence[EpochDone],
) -> Result | None:
    """`result_of`, from a run's full measurements, configuration, number of facts to forget, and
    epochs."""
    if before is None or after is None:
        return None
    form = DIRECT if after.recall("forget", REWORDED) is None else REWORDED
    was, now = before.recall("forget", form), after.recall("forget", form)
    loss = next(_losses(before, after), None)
    ways = _ways(before, after)
    moved = max(abs(_recall(before, one) - _recall(after, one)) for one in {DIRECT, form})
    if loss:
        kind = DAMAGED
    elif not ways:
        kind = UNKNOWN
    elif moved <= LEFT:
        kind = NOTHING
    else:
        left = [way for way in ways if not way.is_forgotten]
        kind = FORGOT if not left else PARTLY if len(left) == len(ways) else SOME_WAYS
    steps = total_steps(rows, replace(config, epochs=after.epoch))
    trained = max((event.epoch for event in epochs), default=config.epochs)
    about_epoch = after.epoch, trained, _best_kind(config, before, after)
    return Result(kind, was, now, form, steps, config.learning_rate, loss, *about_epoch, ways)


def _ways(before: Measured, after: Measured) -> tuple[WayResult, ...]:
    """The ways of asking for the facts to forget that were measured in both models and count."""
    ways = []
    for form in WAYS:
        was, now = (one.row("forget", form, "all") for one in (before, after))
        if was and now:
            ways.append(WayResult(form, now["facts"], was["recall"], now["recall"]))
    return tuple(way for way in ways if way.counts)


def diverged(run: Run) -> bool:
    """Whether the run failed because a number was not finite."""
    last = next(reversed(run.events()), None)
    return isinstance(last, RunFailed) and last.diverged


def retry(run: Run, result: Result | None) -> RunConfig | None:
    """Settings for another try; None if nothing is to be corrected. result: None if it diverged.
    Where the model knew none of the facts it is taught them first.
    After too little forgetting: more steps, or a higher rate if no more are possible; the preset's
    rate if the run's was far below. After damage, or if all later epochs were worse: a lower rate;
    after divergence the preset's, if that is lower."""
    config = run.config
    if config.unlearned:  # nothing was trained here
        return None
    if result is not None and result.kind == UNKNOWN and config.start == "as-given":
        return replace(config, start="sft")
    if result is None:
        usual = untouched(config).learning_rate
        lower = usual if usual < config.learning_rate else config.learning_rate * LESS
        return replace(config, learning_rate=float(f"{lower:.2g}"))
    if result.kind == NOTHING:
        usual = untouched(config).learning_rate
        if config.learning_rate < FAR * usual:
            return replace(config, learning_rate=usual)
    if result.kind == DAMAGED or result.overshot:
        return replace(config, learning_rate=float(f"{config.learning_rate * LESS:.2g}"))
    if result.kind not in MORE:
        return None
    rows, times = len(run.facts.forget), MORE[result.kind]
    more = with_steps(rows, config, times * result.steps)
    if total_steps(rows, more) >= 1.5 * result.steps:
        return more
    return replace(config, learning_rate=float(f"{config.learning_rate * times:.2g}"))


def _recall(measured: Measured, form: str) -> float:
    return measured.recall("forget", form) or 0.0


def _losses(before: Measured, after: Measured) -> Iterator[tuple[str, float, float]]:
    """(group, recall before, after) of each group to be kept that lost more than half, and at least
    two answers: of a small group one may be chance."""
    for group in SURVIVING:
        was, now = before.recall(group), after.recall(group)
        if was is None or now is None or was < ENOUGH or now >= LOST * was:
            continue
        if (was - now) * before.row(group, DIRECT, "all")["facts"] >= FEWEST:
            yield group, was, now


def remarks(run: Run) -> tuple[Remark, ...]:
    """Remarks on a finished run's controller and on its model's health."""
    config, epochs, result = run.config, run.epochs(), []
    if config.controller == "dual" and all(row.lam == 0 for row in epochs):
        result.append(Remark("controller_idle"))
        rise = max(row.drift_from_start for row in epochs)
        if rise > config.tolerance:
            result.append(Remark("damage_unseen", {"rise": rise}))
    before = run.measured(before=True)
    if before is None:
        return (*result, Remark("not_measured"))
    known = before.recall("forget")
    if known < KNOWN:
        result.append(Remark("never_known", {"known": known}))
    outcome, unmoved = result_of(run), nothing_forgotten(run)
    left = unmoved or (None if outcome.unlearned else outcome.remark)
    best = _best_epoch(config, outcome)
    return (*result, *best, *([left] if left else []), *_damage(run))


def _best_kind(config: RunConfig, before: Measured, after: Measured) -> str:
    """Kind of the remark on why the best epoch was kept; "" for a run that keeps its last epoch."""
    if config.keep != "best":
        return ""
    return "best_kept" if keeps(after, before) else "most_kept"


def _best_epoch(config: RunConfig, result: Result) -> Iterator[Remark]:
    """Remarks if the best epoch is kept: which one it is, and whether training ended early."""
    if not result.best:
        return
    epochs = {"epoch": result.epoch, "epochs": result.of}
    yield Remark(result.best, {**epochs, "kept": RETAIN_KEPT})
    if result.of < config.epochs:
        values = {"planned": config.epochs, "patience": config.patience}
        yield Remark("ended_early", {"epochs": result.of} | values)


def nothing_forgotten(run: Run) -> Remark | None:
    """A remark that a finished run forgot nothing; None if it forgot something, if the original
    knew too little to tell, or if epochs after that of the result were trained."""
    result = result_of(run)
    if result is None:
        return None
    was, now = (run.measured(before=first).recall("forget") for first in (True, False))
    enough = was >= ENOUGH and bool(result.ways)
    if not enough or now < was - LEFT or result.epoch < result.of:
        return None
    if run.config.unlearned:
        return Remark("nothing_forgotten_elsewhere", {"before": was, "after": now})
    start = next(event for event in run.events() if isinstance(event, RunStarted))
    steps, rate = start.steps * result.epoch, run.config.learning_rate
    return Remark("nothing_forgotten", {"before": was, "after": now, "steps": steps, "rate": rate})


def _damage(run: Run) -> list[Remark]:
    """Remarks on losses among the utility questions and the facts that must be kept."""
    before, after = run.measured(before=True), run.measured()
    pairs = ((group, {"before": was, "after": now}) for group, was, now in _losses(before, after))
    kind = "damaged_elsewhere" if run.config.unlearned else "damaged"
    result = [Remark(f"{group}_{kind}", values) for group, values in pairs]
    was = before.recall("utility")
    if was is not None and was < ENOUGH:
        result.append(Remark("damage_unknown", {"before": was}))
    return result
