"""The field: every fact a dot, its popularity across, the probability of its right answer up, drawn
in the browser.

Python sends a run's frames once; playing, scrubbing, hovering and pinning happen in the browser
(`assets/field.js` and `assets/scrubber.js`), where every text goes in as text and never as HTML.
"""

from collections.abc import Sequence

from adapop.facts.fact import TIERS, Fact
from adapop.facts.weak import says
from adapop.paths import ASSETS
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.figures import by_epoch, wordings_of
from adapop.training.events import Event, Measured
from adapop.training.frames import FIRST, Frame

FIELD = ("kit", "scrubber", "field")  # the assets that a script with a field needs
FORMS = (DIRECT, REWORDED)
SURE = 1000  # a probability of 1 as the browser gets it: whole numbers are short


def script(*names: str) -> str:
    """The named assets one after the other, as one script of a gr.HTML: the later ones see what the
    earlier define."""
    return "\n".join((ASSETS / f"{name}.js").read_text("utf-8") for name in names)


def dots(facts: Sequence[Fact]) -> dict[str, list]:
    """What the field shows of facts whatever the frame, a list a property, in the order of the
    facts."""
    return {
        "title": [fact.title for fact in facts],
        "question": [fact.question for fact in facts],
        "answer": [fact.answer for fact in facts],
        "score": [fact.score for fact in facts],
        "tier": [fact.tier for fact in facts],
    }


def motion(frames: Sequence[Frame], facts: Sequence[Fact]) -> dict[str, list]:
    """How the facts to forget move, a list a property, in the order of the frames.

    epoch: of each frame. p, reworded: in thousandths, by fact; reworded is None where a frame has
    none. said, right: the greedy answers by fact and what `_right` says of each, None where a frame
    has none.
    """
    return {
        "epoch": [round(frame.epoch, 3) for frame in frames],
        "p": [_thousandths(frame, "forget") for frame in frames],
        "reworded": [_thousandths(frame, "reworded") for frame in frames],
        "said": [list(frame.answers) or None for frame in frames],
        "right": [list(map(_right, frame.answers, facts)) or None for frame in frames],
    }


def shares(events: Sequence[Event]) -> list[dict]:
    """What was still answered of the facts to forget, a dict an epoch: its number, how it was
    reworded, and by form and tier a share in [0, 1]: in all rewordings where there is a full
    measurement, as the result's card has it."""
    return [
        {"epoch": event.epoch, "wordings": wordings_of(event)}
        | {
            form: {tier: event.recall("forget", form, tier) for tier in (*TIERS, "all")}
            for form in FORMS
        }
        for event in by_epoch([one for one in events if isinstance(one, Measured)], full=True)
    ]


def _right(reply: str, fact: Fact) -> bool | None:
    """Whether a recorded reply has a right answer in it as whole words, as far as both are
    recorded; None where it may follow what is."""
    if any(reply == answer or says(reply, answer[:FIRST]) for answer in fact.answers):
        return True
    return None if len(reply) == FIRST else False


def _thousandths(frame: Frame, group: str) -> list[int] | None:
    scores = frame.scores.get(group)
    return [round(SURE * value) for value in scores.p] if scores else None
