"""The answer cards: both models' replies to one prompt, new or recorded, and numbers about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from adapop.errors import AdaPopError
from adapop.facts.text import folded, split, words
from adapop.paths import SHIPPED
from adapop.probes.inspection import ORACLE, ORIGINAL, UNLEARNED, Chosen, Inspection, Step, Strip
from adapop.probes.prompts import CHOICE, DIRECT, Answer, Asked, ProbeRow, Prompt
from adapop.probes.verdict import kind_of_text, verdict
from adapop.report.record import title_of
from adapop.runs.examples import COMMAND, example_of
from adapop.runs.questions import Question as KeptQuestion
from adapop.runs.questions import Reply
from adapop.runs.run import Run
from adapop.training.frames import Frame
from adapop.ui import texts
from adapop.ui.parts import html

NONE_LOST = "no fact was lost: the model still answers every trained question"
SMALL = "This small model knows only facts like these."
LINK_SHOWS = "The link shows your other questions about this run too."
NONE_BACK = "no lost fact came back"

NO_ANSWERS = {"empty": "Press “Ask both models” for their answers."}
# what an address names is on its way, see `strip` in page.js
OPENING = NO_ANSWERS | {"opening": True}
MARKS = {ORIGINAL: "●", UNLEARNED: "◆", ORACLE: "▲"}


def recorded(run: Run, prompts: Sequence[Prompt]) -> list[ProbeRow] | None:
    """The last probing's rows for these prompts, in order; None if any is missing."""
    rows = [row for row in run.probes() or () if isinstance(row, ProbeRow)] if prompts else []
    by_prompt = {(row.fact_id, row.kind, row.prompt): row for row in rows}
    rows_asked = [by_prompt.get((prompt.fact_id, prompt.kind, prompt.text)) for prompt in prompts]
    return rows_asked if rows_asked and None not in rows_asked else None


def recorded_answers(run: Run, prompt: Prompt | None) -> dict:
    """The last probing's replies to a prompt as values of the answer cards, without their tokens;
    `NO_ANSWERS` if it did not ask it."""
    rows = recorded(run, [prompt] if prompt else ())
    if not rows:
        return NO_ANSWERS
    return _judged((ORIGINAL, UNLEARNED), (rows[0], rows[0]), texts.ANSWERS_RECORDED)


def inspected(inspection: Inspection, chosen: Sequence[Chosen], about: str) -> dict:
    """All columns' replies, token by token, as values of the answer cards. The first is the
    original's; chosen: what each column is. about: when and of which run."""
    content = _judged([one.kind for one in chosen], inspection.asked, about)
    content["question"]["earlier"] = list(inspection.question.earlier)
    content["question"]["begun"] = inspection.strips[inspection.question.ids_of].beginning
    content["sent"] = inspection.asked[0].sent
    for side, strip, one in zip(content["sides"], inspection.strips, chosen, strict=True):
        side |= _tokens(strip) | {"name": one.name}
    return content


def kept(question: KeptQuestion, about: str, may_ask: bool = True) -> dict:
    """The replies of a question that was kept with its run, as values of the answer cards. may_ask:
    whether this visitor may go on from a token."""
    kinds = [one.model if one.model in MARKS else UNLEARNED for one in question.replies]
    content = _cards(kinds, question.replies, question.prompt, question.gold, about)
    sides = content["sides"]
    for side, reply in zip(sides, question.replies):
        if reply.model not in (ORIGINAL, UNLEARNED):
            side["name"] = texts.NEVER_KNEW if reply.model == ORACLE else reply.model
        elif reply.model == UNLEARNED and question.epoch is not None:
            side["name"] += f", epoch {question.epoch}"
    if len(sides) > 1:
        sides[1]["verdict"] = question.verdict
        sides[1]["verdict_kind"] = kind_of_text(question.verdict)
    for side, strip in zip(sides, question.strips):
        side |= _tokens(strip)
    content["question"]["earlier"] = [*question.earlier]
    return content | {"fixed": not may_ask}


def _judged(kinds: Sequence[str], rows: Sequence[Asked | ProbeRow], about: str) -> dict:
    """Values of the cards, with a verdict on each column but the first. rows: for each column its
    replies beside the original's."""
    first, replies = rows[0], [rows[0].original, *(row.unlearned for row in rows[1:])]
    lead = getattr(first, "lead", "")
    content = _cards(kinds, replies, first.prompt, first.gold, about, lead)
    for side, row in zip(content["sides"][1:], rows[1:] if first.gold else ()):
        result = verdict(row)
        side |= {"verdict": result.text, "verdict_kind": result.kind}
    return content


def _cards(
    kinds: Sequence[str],
    replies: Sequence[Answer | Reply],
    prompt: str,
    gold: str,
    about: str,
    lead: str = "",
) -> dict:
    """Values of the cards without tokens and verdicts, one of each reply. lead: the text before the
    right answer whose rank was measured."""
    said = [reply.text or texts.SAYS_NOTHING for reply in replies]
    sides = []
    for place, (kind, reply) in enumerate(zip(kinds, replies)):
        # it differs from the original, and that from the column beside it
        other = said[0] if place else said[min(1, len(said) - 1)]
        parts, right = differing(said[place], other, gold), bool(gold) and reply.recall == 1.0
        side = {"name": kind.capitalize(), "kind": kind, "mark": MARKS[kind], "parts": parts}
        sides.append(side | {"right": right, "steps": [], "begun": 0, "said": []})
    ranked = gold and all(reply.gold_rank is not None for reply in replies)
    question = {"prompt": prompt, "gold": gold, "earlier": []}
    numbers = _numbers(replies, lead) if ranked else []
    return {"sides": sides, "numbers": numbers, "sent": "", "about": about, "question": question}


def _tokens(strip: Strip) -> dict:
    """A reply's tokens as the browser gets them."""
    steps = [_step(step) for step in strip.steps]
    return {"steps": steps, "begun": strip.begun, "said": list(strip.said)}


def _step(step: Step) -> dict:
    """A token with its alternatives as the browser gets it."""
    likely = [vars(one) for one in step.likely]
    return vars(step.token) | {"likely": likely, "right": step.right, "parted": step.parted}


def differing(text: str, other: str, gold: str) -> list[dict[str, str | bool]]:
    """A reply in pieces. gold: part of the right answer. apart: a word that the other reply
    lacks."""
    common = {*words(other), *map(folded, split(other))}

    def apart(piece: str) -> bool:
        return any(map(str.isalnum, piece)) and folded(piece) not in common

    return [part | {"apart": apart(part["text"])} for part in marked(text, gold)]


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


def _numbers(sides: Sequence, lead: str) -> list[dict]:
    """Rows of ranks and probabilities of the right answer in all columns. lead: text before it."""
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
    return f"{100 * p:.1f}%" if p >= 0.001 else "<0.1%"


def notes_of(run: Run) -> dict:
    """Values of `LINES`, beside the button that copies a link: who recorded a shipped example, or
    what else a link shows; and what a shipped model can be asked."""
    method = title_of(run.config.method, run.config.preset)
    small = [SMALL] if run.config.model in SHIPPED else []
    if example_of(run.id):
        return html.listed([f"{method}, recorded by “{COMMAND}”.", *small])
    return html.listed([" ".join([LINK_SHOWS, *small])])


@dataclass(frozen=True)
class Lost:
    """Ids of facts to forget, as far as recorded. known: those that the original answers. asked:
    known facts that were put to the unlearned model too; none if some are lost and nothing but the
    trained question was asked. lost: facts whose trained question it no longer answers. back: lost
    facts that it answers in another form."""

    known: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    back: frozenset[str] = frozenset()

    @property
    def note(self) -> str:
        """A note that no fact comes back; "" if one does or nothing is recorded."""
        none_lost = NONE_BACK if self.lost else NONE_LOST
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
        others = [row for row in rows if row.fact_id in lost and row.kind not in (DIRECT, CHOICE)]
        back = frozenset(row.fact_id for row in others if verdict(row).kind == "leak")
        return Lost(answered, tested if others or not lost else frozenset(), lost, back)
    last = next((one for one in frames[1:] if one.epoch == run.chosen_epoch), None)
    if last is None:
        return Lost(answered)
    lost = answered - _first_guesses(ids, last, "forget")
    reworded = any(fact.paraphrases for fact in run.facts.forget)
    tested = answered if reworded or not lost else frozenset()
    return Lost(answered, tested, lost, lost & _first_guesses(ids, last, "reworded"))


def _first_guesses(ids: Sequence[str], frame: Frame, form: str) -> frozenset[str]:
    """The facts whose right answer is ranked first."""
    ranks = frame.scores[form].rank if form in frame.scores else ()
    return frozenset(one for one, rank in zip(ids, ranks) if rank == 1)
