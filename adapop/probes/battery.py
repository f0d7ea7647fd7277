"""The battery of probes: every form of the question, for every group, answered by both models.

Verdicts and the leak matrix are computed from its rows. Retained and held-out facts are asked in
every form as well; otherwise a form that the model no longer follows would look like forgotten
knowledge. A reply ends where the model ends it or at its budget, as in `measure`, and not at the
first line break: "Sure!" with the answer on the next line would look forgotten, and collapsed text
would look short.

Each chunk is run once with the adapter and once without. A single pass for both with peft's
`adapter_names` gives the same texts and bit-equal logits on the sandbox, but takes 1.0 to 1.5 times
as long, because it copies rows.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from adapop.errors import ModelError
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.facts.text import word_count
from adapop.model.adapted import AdaptedModel, Scored
from adapop.model.chat import encode_turns, plain
from adapop.model.tokens import AnswerTokens, Row
from adapop.probes.measure import other_ways
from adapop.probes.metrics import (
    Rivals,
    cosines,
    delta_rank,
    gold_rank,
    guess,
    hidden_cosine,
    kl,
    rivals,
)
from adapop.probes.plan import Plan, Question, asked_otherwise, chains, questions
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import CHOICE, CLUES, NotApplicable, ProbeRow, Reply
from adapop.probes.recall import recall, repetition
from adapop.probes.tokenwise import conversations
from adapop.progress import Progress

CHUNK = 128


def battery(
    model: AdaptedModel, facts: FactSet, plan: Plan, progress: Progress
) -> Iterator[ProbeRow | NotApplicable]:
    """A row for every prompt, and a reason for every form in which a fact cannot be asked, by kind.

    The rows so far stay valid if the battery ends early. The same model, facts and plan give the
    same rows. Raises Stopped: a stop was requested. ModelError: a number is not finite, or the
    embedding model for the plan's cosine is missing. DataError: an answer has no token."""
    progress.say("Probing: writing the prompts")
    own, every = model.way, [fact for group in GROUPS for fact in getattr(facts, group)]
    for way in (own, *other_ways(model)):
        other = FORM_OF_WAY[way] if way != own else ""
        kinds = asked_otherwise(facts, plan, other) if other else questions(facts, plan)
        with model.asking_as(way):  # an answer's first token depends on the text before it
            known = [rivals(model, every)] if kinds else []
            if kinds and not model.compares:
                with model.original():
                    known.append(rivals(model, every))
        for kind, results in kinds.items():
            yield from (result for result in results if isinstance(result, NotApplicable))
            questions_of_kind = [result for result in results if isinstance(result, Question)]
            for start in range(0, len(questions_of_kind), CHUNK):
                progress.say(f"Probing: {kind}, {start:,} of {len(questions_of_kind):,} prompts")
                with model.asking_as(way):
                    rows = _rows(model, questions_of_kind[start : start + CHUNK], plan, known)
                yield from rows
    yield from _in_chains(model, facts, plan, progress)


def _in_chains(
    model: AdaptedModel, facts: FactSet, plan: Plan, progress: Progress
) -> Iterator[ProbeRow | NotApplicable]:
    """The rows of the last turns of conversations, see `attacks.clues`."""

    def room(turns: Sequence[str]) -> bool:
        read = sum(map(len, (row.prompt for row in model.prompts(turns))))
        return read + len(turns) * plan.max_new_tokens <= (model.context or sys.maxsize)

    dialogues = []
    for question, turns in chains(facts, plan, room if model.converses else None):
        if isinstance(question, NotApplicable):
            yield question
        else:
            dialogues.append((question, turns))
    known: list[Rivals] = [{}]  # ranks among a relation's answers hold right after a question
    for start in range(0, len(dialogues), CHUNK):
        progress.say(f"Probing: {CLUES}, {start:,} of {len(dialogues):,} conversations")
        questions, turns = zip(*dialogues[start : start + CHUNK])
        yield from _rows(model, questions, plan, known, turns)


@torch.no_grad()
def _rows(
    model: AdaptedModel,
    questions: Sequence[Question],
    plan: Plan,
    known: Sequence[Rivals],
    turns: Sequence[Sequence[str]] = (),
) -> list[ProbeRow]:
    """The rows of one chunk, from both models. known: `rivals` in the unlearned model's vocabulary,
    and, if it is another one, in the original's. turns: before each question, if there are any."""
    prompts = [question.prompt for question in questions]
    texts_after, batch, after = _heard(model, questions, plan, turns)
    with model.original():
        texts_before, own_batch, before = _heard(model, questions, plan, turns)
    changes = {name: [None] * len(prompts) for name in ("delta_rank", "hidden_cosine", "kl")}
    if model.compares and not turns:
        compared = [delta_rank(before, after, batch.target), hidden_cosine(before, after)]
        compared.append(kl(before, after))
        _finite(*compared)
        changes = {name: values.tolist() for name, values in zip(changes, compared)}
    _finite(before.nll, after.nll)
    unlearned = _replies(questions, texts_after, after, batch, plan.cosine, known[0])
    original = _replies(questions, texts_before, before, own_batch, plan.cosine, known[-1])
    columns = zip(*changes.values())
    return [
        ProbeRow(
            fact_id=question.fact.id,
            group=question.group,
            tier=question.fact.tier,
            kind=prompt.kind,
            prompt=prompt.text,
            gold=prompt.gold,
            accepted=() if prompt.kind == CHOICE else prompt.accepted,
            parts=() if prompt.kind == CHOICE else prompt.parts,
            original=before,
            unlearned=after,
            score=question.fact.score,
            chance=prompt.chance,
            **dict(zip(changes, values)),
        )
        for question, prompt, before, after, values in zip(
            questions, prompts, original, unlearned, columns
        )
    ]


def _heard(
    model: AdaptedModel,
    questions: Sequence[Question],
    plan: Plan,
    turns: Sequence[Sequence[str]],
) -> tuple[list[str], AnswerTokens, Scored]:
    """One model's replies, and the right answers with their scores. turns: see `_rows`."""
    texts = [question.prompt.text for question in questions]
    golds = [question.prompt.gold for question in questions]
    if not turns:
        # an id stands for the fact's own answer, which the model may say in its own words
        own = [one.fact.answer == gold for one, gold in zip(questions, golds)]
        ids = [one.fact.id if whole else "" for one, whole in zip(questions, own)]
        batch = model.batch(model.rows(list(map(Fact, ids, texts, golds))))
        replies = model.generate(texts, plan.max_new_tokens, CHUNK)
        return replies, batch, model.score(batch, logits=True, hidden=True)
    rows = []
    for place, earlier in enumerate(conversations(model, turns, plan.max_new_tokens)):
        read = encode_turns(model.tokenizer, earlier, texts[place], model.system)
        rows.append(Row(read, tuple(plain(model.tokenizer, golds[place]).ids), place))
    prompts = [replace(row, answer=()) for row in rows]
    replies = [text.strip() for text, *_ in model.replies(prompts, plan.max_new_tokens, CHUNK)]
    return replies, (batch := model.batch(rows)), model.score(batch, logits=True, hidden=True)


def _replies(
    questions: Sequence[Question],
    texts: Sequence[str],
    scored: Scored,
    batch: AnswerTokens,
    cosine: bool,
    known: Rivals,
) -> list[Reply]:
    """One model's reply to each prompt of a chunk. known: as for `_second_guess`."""
    prompts = [question.prompt for question in questions]
    count = batch.row.bincount()
    first = count.cumsum(0) - count
    ranks = [one.tolist() for one in gold_rank(scored, batch.target).cpu().split(count.tolist())]
    golds, logits = batch.target[first].tolist(), scored.logits[first].cpu()
    logprobs = (-scored.per_row(scored.nll)).tolist()
    alike = cosines([prompt.gold for prompt in prompts], texts) if cosine else [None] * len(texts)
    return [
        Reply(
            text=text,
            recall=recall(prompt, text),
            strict=recall(prompt, text, fold=False),
            gold_rank=ranks[i][0],
            gold_ranks=tuple(ranks[i]),
            gold_logprob=logprobs[i],
            words=word_count(text),
            repetition=repetition(text),
            cosine=alike[i],
            **_second_guess(question, golds[i], logits[i], known),
        )
        for i, (question, prompt, text) in enumerate(zip(questions, prompts, texts))
    ]


def _second_guess(question: Question, gold: int, logits: Tensor, known: Rivals) -> dict[str, Any]:
    """`Reply.near` and `relation_rank`; {} if not measured. gold: the first gold token. logits:
    [V]. known: see `rivals`."""
    if question.prompt.kind == CHOICE or question.prompt.gold != question.fact.answer:
        return {}
    others = known.get(question.fact.relation)
    near, rank = guess(gold, others, logits)
    return {"near": near, "relation_rank": rank if others else None}


def _finite(*values: Tensor) -> None:
    if not all(bool(torch.isfinite(value).all()) for value in values):
        raise ModelError(
            "The model's scores of some answers are not finite numbers: its weights are broken.",
            "Probe an earlier epoch, or run again with a lower learning rate.",
        )
