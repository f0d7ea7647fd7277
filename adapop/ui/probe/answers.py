"""The answer cards: both models' replies to one prompt, new or recorded, and numbers about them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from adapop.errors import AdaPopError
from adapop.facts.text import folded, split, words
from adapop.paths import SHIPPED
from adapop.probes.prompts import CHOICE, DIRECT, ProbeRow, Prompt
from adapop.probes.verdict import PromptVerdict, verdict
from adapop.report.record import title_of
from adapop.runs.examples import COMMAND, example_of
from adapop.runs.run import Run
from adapop.training.frames import Frame
from adapop.ui import texts
from adapop.ui.parts import html

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

JOINERS = re.compile("[\u200b-\u200f\u2060\ufeff]")  # not printable, but part of words
NO_ANSWERS = html.values({"empty": texts.PROBE_EMPTY})


def recorded(run: Run, prompts: Sequence[Prompt]) -> list[ProbeRow] | None:
    """The last probing's rows for these prompts, in order; None if any is missing."""
    rows = [row for row in run.probes() or () if isinstance(row, ProbeRow)] if prompts else []
    by_prompt = {(row.fact_id, row.kind, row.prompt): row for row in rows}
    rows_asked = [by_prompt.get((prompt.fact_id, prompt.kind, prompt.text)) for prompt in prompts]
    return rows_asked if rows_asked and None not in rows_asked else None


def recorded_answers(run: Run, prompt: Prompt | None) -> dict:
    """The last probing's replies to a prompt, as `answers_of`; `NO_ANSWERS` if it did not ask
    it."""
    rows = recorded(run, [prompt] if prompt else ())
    return answers_of(rows[0], texts.ANSWERS_RECORDED) if rows else NO_ANSWERS


def answers_of(replies: Asked | ProbeRow, about: str = "") -> dict:
    """Both models' replies as values of the answer cards. about: when and of which run."""
    right, sides = replies.gold, (replies.original, replies.unlearned)
    cards = [_card("Original", "●", sides[0], right), _card("Unlearned", "◆", sides[1], right)]
    result = verdict(replies) if right else PromptVerdict("", "")
    cards[1] |= {"verdict": result.text, "verdict_kind": result.kind}
    numbers = _numbers(sides, getattr(replies, "lead", "")) if right else []
    sent = getattr(replies, "sent", "")  # a probing saves only the question
    content = {"original": True, "sides": cards, "numbers": numbers}
    return html.values(content | {"sent": sent, "about": about})


def marked(answer: str, gold: str) -> list[dict[str, str | bool]]:
    """The answer split into pieces, each marked if it is a word of the right answer."""
    right = {*words(gold), *(folded(part) for part in split(gold) if any(map(str.isalnum, part)))}
    parts = split(answer)
    # in scripts without spaces a word is a pair of neighbouring pieces
    pairs = [
        one[0].isalpha() and other[0].isalpha() and folded(one + other) in right
        for one, other in pairwise(parts)
    ]
    in_pair = map(any, zip([False, *pairs], [*pairs, False]))
    marks = [folded(part) in right or paired for part, paired in zip(parts, in_pair)]
    return [{"text": part, "gold": mark} for part, mark in zip(parts, marks)]


def _card(name: str, mark: str, answer, right: str) -> dict:
    """One model's answer card. right: the right answer."""
    top = [
        {"token": _readable(token), "percent": round(100 * p), "shown": _percent(p)}
        for token, p in getattr(answer, "top", ())  # a probing saves none
    ]
    parts = marked(answer.text or texts.SAYS_NOTHING, right)
    content = {"name": name, "kind": name.lower(), "mark": mark, "parts": parts, "top": top}
    return content | {"right": bool(right) and answer.recall == 1.0}


def _readable(token: str) -> str:
    """A token as readable text; a note instead if it is space, has a control or is half a
    letter."""
    text = JOINERS.sub("", token).strip()
    is_text = text.isprintable() and "\ufffd" not in text
    return token if text and is_text else texts.UNREADABLE


def _numbers(sides: tuple, lead: str) -> list[dict]:
    """Rows of ranks and probabilities of the right answer in both models. lead: text before it."""
    ranks = [getattr(side, "gold_ranks", ()) or (side.gold_rank,) for side in sides]
    how = ", token by token" if max(map(len, ranks)) > 1 else ""
    how += f", after “{lead.strip()}”" if lead.strip() else ""
    rows = {
        f"rank of the right answer{how}": [", ".join(map(str, rank)) for rank in ranks],
        "its probability": [_percent(math.exp(side.gold_logprob)) for side in sides],
        "its log-probability, nats": [f"{side.gold_logprob:.2f}" for side in sides],
    }
    return [{"name": name, "cells": cells} for name, cells in rows.items()]


def _percent(p: float) -> str:
    return f"{100 * p:.1f} %" if p >= 0.001 else "< 0.1 %"


def recorded_of(run: Run) -> dict:
    """Values of `LINES`: the shipped example and its command; hidden for other runs."""
    shipped = example_of(run.id) is not None
    method = title_of(run.config.method, run.config.preset)
    lines = [texts.PROBE_RECORDED.format(method=method, command=COMMAND)] if shipped else []
    return html.listed(lines)


def limits_of(run: Run) -> dict:
    """Values of `LINES`: what a shipped model can be asked; hidden for a real model."""
    toy = run.config.model in SHIPPED
    return html.listed([texts.PROBE_LIMITS] if toy else [])


@dataclass(frozen=True)
class Lost:
    """Ids of facts to forget, as far as recorded. known: those that the original answers. asked:
    known facts that were put to the unlearned model too. lost: asked facts whose trained question
    it no longer answers. back: lost facts that it answers in another form."""

    known: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    back: frozenset[str] = frozenset()

    @property
    def note(self) -> str:
        """A note that no fact comes back; "" if one does or nothing is recorded."""
        none_lost = texts.NONE_BACK if self.lost else texts.NONE_LOST
        return none_lost if self.asked and not self.back else ""


def lost_of(run: Run) -> Lost:
    """The facts a run lost, by its last probing. Without a probing: by the first guesses in the
    frame of its result, for the trained question and one rewording."""
    try:
        frames = len(run.frames())
    except AdaPopError:  # a damaged recording hides nothing else of the run
        frames = 0
    return _lost_of(run, frames, len(run.events()), run.probed_at)


@lru_cache(maxsize=8)
def _lost_of(run: Run, recorded: int, _events: int, _probed_at: int | None) -> Lost:
    """`lost_of`, cached. recorded: readable frames; the others only invalidate the cache."""
    ids, frames = [fact.id for fact in run.facts.forget], run.frames() if recorded else ()
    answered = _first_guesses(ids, frames[0], "forget") if frames else frozenset()
    rows = [row for row in run.probes() or () if isinstance(row, ProbeRow)]
    trained = [row for row in rows if (row.group, row.kind) == ("forget", DIRECT)]
    direct = {row.fact_id: verdict(row).kind for row in trained}
    if direct:
        tested = frozenset(one for one, kind in direct.items() if kind != "neutral")
        lost = frozenset(one for one in tested if direct[one] != "leak")
        others = (row for row in rows if row.fact_id in lost and row.kind != CHOICE)
        back = frozenset(row.fact_id for row in others if verdict(row).kind == "leak")
        return Lost(answered, tested, lost, back)
    last = next((one for one in frames[1:] if one.epoch == run.chosen_epoch), None)
    if last is None:
        return Lost(answered)
    lost = answered - _first_guesses(ids, last, "forget")
    return Lost(answered, answered, lost, lost & _first_guesses(ids, last, "reworded"))


def _first_guesses(ids: Sequence[str], frame: Frame, form: str) -> frozenset[str]:
    """The facts whose right answer is ranked first."""
    ranks = frame.scores[form].rank if form in frame.scores else ()
    return frozenset(one for one, rank in zip(ids, ranks) if rank == 1)
