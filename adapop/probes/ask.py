"""Both models' answers to any prompt, with rank and probability of the gold answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from adapop.errors import DataError, truncated
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.facts.text import mentions
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_prompt
from adapop.probes.metrics import gold_rank
from adapop.probes.prompts import Answer, Asked
from adapop.probes.recall import recall_of_fact

TOP = 5
WHOLE = 128  # tokens: replies that people read are not cut short, as measured ones are


def ask(
    model: AdaptedModel,
    prompts: Sequence[str],
    golds: Sequence[str],
    max_new_tokens: int,
    facts: FactSet | None = None,
) -> list[Asked]:
    """Both models' answers to every prompt, in their order, decoded greedily.

    golds: the right answer of each prompt, "" where none is known. max_new_tokens: budget of an
    answer, at least 1. facts: the run's facts. A prompt about one of them, with its answer as gold,
    also accepts the fact's other right answers.

    Raises DataError: a prompt with `max_new_tokens` or its answer exceeds the context, or a
    character is invalid."""
    read = [encode_prompt(model.tokenizer, prompt, model.system) for prompt in prompts]
    for prompt, gold, ids in zip(prompts, golds, read):
        check_room(model, prompt, len(ids), max(max_new_tokens, model.length(gold)))
    judged = [judged_by(prompt, gold, facts) for prompt, gold in zip(prompts, golds)]
    unlearned = answers(model, judged, model.generate(prompts, max_new_tokens))
    with model.original():
        original = answers(model, judged, model.generate(prompts, max_new_tokens))
    sent = [str(model.tokenizer.decode(list(ids))) for ids in read]
    columns = zip(judged, sent, original, unlearned)
    return [asked_of(model, one, text, *sides) for one, text, *sides in columns]


@dataclass(frozen=True)
class Judged:
    """A prompt as the facts that its answers are measured by."""

    gold: str
    """The right answer, "" if none is known."""
    about: Fact
    """The prompt with its gold answer; it has a fact's id if it is that fact's own question."""
    known: Fact
    """The fact that the prompt asks about, with all its right answers."""

    @property
    def right(self) -> Fact | None:
        """The fact that replies are judged by; None without a gold answer."""
        return self.known if self.gold else None


def judged_by(prompt: str, gold: str, facts: FactSet | None = None) -> Judged:
    """How replies to a prompt are measured. facts: as in `ask`."""
    groups = (getattr(facts, group, ()) for group in GROUPS)
    members = [fact for group in groups for fact in group if fact.accepted or fact.parts]
    return Judged(gold, _fact(prompt, gold, facts), _known(prompt, gold, members))


def asked_of(
    model: AdaptedModel, judged: Judged, sent: str, original: Answer, unlearned: Answer
) -> Asked:
    """Both models' answers to one prompt. sent: the exact text that they read."""
    about, known = judged.about, judged.known
    lead = model.spoken[about.id].lead if about.id in model.spoken else ""
    accepted, parts = known.accepted, known.judged_parts
    return Asked(about.question, judged.gold, sent, original, unlearned, accepted, lead, parts)


def check_room(model: AdaptedModel, prompt: str, read: int, answer: int) -> None:
    """Raises DataError: a prompt of `read` tokens and its answer exceed the model's context."""
    limit = model.context
    if limit is not None and read + answer > limit:
        reads = f"the model's context holds {limit:,}, {answer:,} of them for the answer"
        reason = f"{truncated(prompt)!r} has {read:,} tokens, but {reads}."
        raise DataError(reason, "Shorten it.")


def _fact(prompt: str, gold: str, facts: FactSet | None) -> Fact:
    """A prompt and its gold answer as a fact. If the prompt is the own question of a fact to forget
    or held out, the result has that fact's id, so that the model's own wording of the answer is
    found. Facts to retain give no id: their wording is a whole reply."""
    own = [fact for group in ("forget", "holdout") for fact in getattr(facts, group, ())]
    names = (fact.id for fact in own if (fact.question, fact.answer) == (prompt, gold))
    # Without a gold answer any text will do: only the prediction of its first token is used.
    return Fact(next(names, ""), prompt, gold or "?")


def _known(prompt: str, gold: str, facts: Sequence[Fact]) -> Fact:
    """The first fact with this answer that the prompt asks about; one of its own if there is
    none."""
    for fact in facts:
        if fact.answer != gold:
            continue
        is_question = any(text in prompt for text in (fact.question, *fact.paraphrases))
        if is_question or mentions(prompt, fact.subject):
            return fact
    return Fact("", prompt, gold)


def whole_reply(model: AdaptedModel, prompts: Sequence[str], least: int) -> int:
    """Tokens that a reply may have so that it is not cut short: `WHOLE`, or fewer if the longest
    prompt leaves less of the model's context, but never below `least`."""
    longest = max(len(encode_prompt(model.tokenizer, prompt, model.system)) for prompt in prompts)
    return max(least, min(WHOLE, (model.context or WHOLE + longest) - longest))


@torch.no_grad()
def answers(model: AdaptedModel, judged: Sequence[Judged], replies: Sequence[str]) -> list[Answer]:
    """One model's replies, measured. The adapter stays as it is."""
    measured = []
    for one, text in zip(judged, replies):
        batch = model.batch(model.rows([one.about]))
        scored = model.score(batch, logits=True)
        likely = scored.logits[0].softmax(-1).topk(TOP)
        names = (str(model.tokenizer.decode([one])).strip() for one in likely.indices.tolist())
        shares = (round(probability, 4) for probability in likely.values.tolist())
        known: tuple = ()
        if one.right:
            ranks = tuple(gold_rank(scored, batch.target.to(model.device)).tolist())
            known = recall_of_fact(one.right, text), ranks[0], -float(scored.nll.sum()), ranks
        measured.append(Answer(text, tuple(zip(names, shares)), *known))
    return measured
