"""The field: each fact is a dot, placed by popularity (horizontal) and probability of its right
answer (vertical), drawn in the browser.

Python sends a run's frames once; playing, scrubbing, hovering and pinning happen in the browser
(`assets/fields.js`), which inserts every text as text and never as HTML.
"""

from collections.abc import Sequence

from adapop.facts.fact import TIERS, Fact
from adapop.facts.weak import says
from adapop.probes.prompts import WORDINGS
from adapop.report.figures import by_epoch, wordings_of
from adapop.runs.run import Run
from adapop.training.events import Event, Measured
from adapop.training.frames import FIRST, Frame

SURE = 1000  # a probability of 1 as the browser gets it: whole numbers are short


def dots(facts: Sequence[Fact]) -> dict[str, list]:
    """Properties of facts that no frame changes: name -> list, in the order of the facts."""
    names = ("title", "question", "answer", "score", "tier")
    return {name: [getattr(fact, name) for fact in facts] for name in names}


def motion(frames: Sequence[Frame], facts: Sequence[Fact]) -> dict[str, list]:
    """How the facts to forget move: name -> list, in the order of the frames.

    epoch: of each frame. p, reworded: in thousandths, by fact; reworded is None where a frame has
    none. said, right: the greedy replies by fact and `_right` of each, None where a frame has none.
    """
    return {
        "epoch": [round(frame.epoch, 3) for frame in frames],
        "p": [_thousandths(frame, "forget") for frame in frames],
        "reworded": [_thousandths(frame, "reworded") for frame in frames],
        "said": [list(frame.answers) or None for frame in frames],
        "right": [list(map(_right, frame.answers, facts)) or None for frame in frames],
    }


def frames_of(run: Run, last: int | None = None) -> list[Frame]:
    """A run's frames up to the epoch `last`, or up to the best if the run keeps that."""
    best = run.measured() if run.config.keep == "best" else None
    last = best.epoch if best else last
    return [frame for frame in run.frames() if last is None or frame.epoch <= last]


def motion_of(run: Run, frames: Sequence[Frame]) -> dict[str, object]:
    """`motion` of a run in these of its frames, and also:

    answered: recall in other words, as in the result; in thousandths, by frame and fact, None for
    frames and facts where it was not measured. wordings: number of rewordings of each fact, None if
    it differs.
    """
    forget = run.facts.forget
    shares_by_epoch = {
        event.epoch: [None if share is None else round(SURE * share) for share in event.by_fact]
        for event in run.events()
        if isinstance(event, Measured) and len(event.by_fact) == len(forget)
    }
    answered = [shares_by_epoch.get(frame.epoch) for frame in frames]
    counts = {len(fact.paraphrases) for fact in forget}
    wordings = counts.pop() if len(counts) == 1 else None
    return motion(frames, forget) | {"answered": answered, "wordings": wordings}


def held_out_of(
    facts: Sequence[Fact], frames: Sequence[Frame]
) -> dict[str, dict[str, list]] | None:
    """How a run's held-out facts fare, which were never trained on: their `dots` as facts; as
    motion, of the frames that have them, epoch and p as in `motion`. None if no frame has them."""
    frames = [frame for frame in frames if "holdout" in frame.scores]
    if not frames:
        return None
    unasked: list[None] = [None] * len(frames)
    moving = {
        "epoch": [round(frame.epoch, 3) for frame in frames],
        "p": [_thousandths(frame, "holdout") for frame in frames],
    }
    return {"facts": dots(facts), "motion": {**moving, "said": unasked, "right": unasked}}


def shares(events: Sequence[Event]) -> list[dict]:
    """Shares of the facts to forget still answered, a dict per epoch: its number, the rewordings,
    and shares in [0, 1] by form and tier. A full measurement asks all rewordings, like the result
    card."""
    rows = []
    for event in by_epoch([one for one in events if isinstance(one, Measured)], full=True):
        row = {"epoch": event.epoch, "wordings": wordings_of(event)}
        for form in WORDINGS:
            row[form] = {tier: event.recall("forget", form, tier) for tier in (*TIERS, "all")}
        rows.append(row)
    return rows


def _right(reply: str | None, fact: Fact) -> bool | None:
    """Whether a reply contains a right answer as whole words; None if there is no reply, or it was
    cut off first."""
    if reply and any(reply == answer or says(reply, answer[:FIRST]) for answer in fact.answers):
        return True
    return None if reply is None or len(reply) == FIRST else False


def _thousandths(frame: Frame, group: str) -> list[int] | None:
    scores = frame.scores.get(group)
    return [round(SURE * value) for value in scores.p] if scores else None
