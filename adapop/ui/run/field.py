"""The field of the page's run: where each fact stands. Its scrubber also drives the cursor of the
recall chart, a fact's answers, and the chart of what comes back in which form."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import gradio as gr

from adapop.errors import AdaPopError
from adapop.runs.run import Run
from adapop.training.events import Event, Measured, RunFailed, RunStopped, StepDone
from adapop.ui.parts import field, html

ENDED = (RunStopped, RunFailed)  # ended early: the result is the last saved epoch


@dataclass(frozen=True)
class RunField:
    """The component; its scrubber follows the newest frame until the visitor moves it back."""

    picture: gr.HTML

    def updates(self, run: Run | None, events: Sequence[Event], last_seen: int) -> dict:
        """Updates that show the run's frames, if it recorded any new ones. last_seen: how many of
        the events the page has shown, negative for none."""
        try:
            return self._updates(run, events, last_seen) if run else {self.picture: None}
        except AdaPopError:  # a damaged recording hides nothing else of the run
            return {self.picture: None}

    def _updates(self, run: Run, events: Sequence[Event], last_seen: int) -> dict:
        recorded = run.frames()
        frames, measured = len(recorded), sum(isinstance(event, Measured) for event in events)
        if last_seen >= 0:
            steps = sum(isinstance(event, StepDone) for event in events[:last_seen])
            news = any(isinstance(event, (Measured, *ENDED)) for event in events[last_seen:])
            if not news and not any(frame.step >= steps for frame in recorded[-1:]):
                return {}
        # training after the last saved epoch is lost if a run ended early or was killed
        over = bool(events) and (isinstance(events[-1], ENDED) or run.state == "interrupted")
        kept_epoch = run.last_epoch or 0 if over else None
        return {self.picture: _value_of(run, frames, measured, kept_epoch)}


def build() -> RunField:
    """Lays the component out."""
    return RunField(html.drawn(None, "run-field", "fact-field", "runField"))


@lru_cache(maxsize=8)
def _value_of(run: Run, _frames: int, _measured: int, kept_epoch: int | None = None) -> dict:
    """A run's data for the browser, cached for all pages. _frames, _measured: their numbers, which
    only invalidate the cache. kept_epoch: the last epoch that a stopped run has saved."""
    facts, shares = field.dots(run.facts.forget), field.shares(run.events())
    motion = field.motion_of(run, kept_epoch)  # later epochs are shown in the charts only
    return {"run": hash(run), "facts": facts, "motion": motion, "shares": shares}
