"""Measurements during and after a run: recall and other metrics by group, tier and form.

`quick` runs after every epoch: recall of generated answers for the facts to forget and, on request,
to retain. `full` adds retain, holdout and utility, every rewording, and the teacher-forced metrics
against the original model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from statistics import fmean
from typing import TypeVar

import torch

from adapop.facts.fact import FACT_GROUPS, GROUPS, Fact, FactSet
from adapop.facts.text import word_count
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens, Row
from adapop.probes import metrics
from adapop.probes.distance import MIA_NAMES, auc, closer_to_1
from adapop.probes.plan import evenly, in_tiers
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import DIRECT, REWORDED, Prompt, direct
from adapop.probes.recall import recall, recall_of_fact
from adapop.progress import Progress

T = TypeVar("T")
EVAL_BATCH = 256
MOST = "most"  # the highest recall over a fact's questions
OTHERWISE_PER_TIER = 4  # facts of a group and tier that are asked in each other way


@dataclass(frozen=True)
class Measurement:
    """Means over a group's facts of one tier, asked in one form; None for what was not measured."""

    group: str
    """One of `facts.fact.GROUPS`."""
    tier: str
    """A tier of scores, or "all" for the whole group."""
    form: str
    """`DIRECT`, `REWORDED`, or another way to ask a real model, see `prompting.FORM_OF_WAY`."""
    facts: int
    """Number of facts, at least 1."""
    recall: float
    """ROUGE-L recall of the greedy reply, [0, 1]."""
    words: float
    """Length of a reply in words."""
    strict: float | None = None
    """The recall as `rouge_score` alone computes it, see `rouge_l_recall`."""
    cosine: float | None = None
    """MiniLM cosine with the gold answer, [-1, 1]."""
    nll: float | None = None
    """-log p of the gold answer, nats per token."""
    delta_logprob: float | None = None
    """Log-probability of the gold answer, unlearned minus original, nats per answer."""
    delta_rank: float | None = None
    """Rank of the gold tokens, unlearned minus original, mean over the answer."""
    hidden_cosine: float | None = None
    """Cosine between both models' hidden states at the answer, [-1, 1]."""
    kl: float | None = None
    """KL(original || unlearned), nats per token."""
    probability: float | None = None
    """p of the gold answer, geometric mean over its tokens, [0, 1]. From here on see
    `memorised`."""
    exact_memorization: float | None = None
    """Share of the gold answer's tokens that are likeliest, [0, 1]."""
    extraction_strength: float | None = None
    """1 - k/n: after its first k of n tokens, all others are likeliest; with the least k, [1/n,
    1]."""
    truth_ratio: float | None = None
    """Mean of `distance.closer_to_1` over the facts to forget that have wrong answers, [0, 1]."""
    mia_loss: float | None = None
    """AUC of an attack by the loss, facts to forget against held-out ones, [0, 1]; so are the next
    3."""
    mia_min_k: float | None = None
    """Attack by the least likely tokens."""
    mia_min_k_plus_plus: float | None = None
    """Attack by the tokens that are least likely in standard deviations over the vocabulary."""
    mia_zlib: float | None = None
    """Attack by the loss per compressed byte."""


@dataclass(frozen=True)
class Quick:
    """The measurement after an epoch: the own questions and first rewordings of the facts to forget
    and, if requested, the own questions of the retained facts."""

    rows: list[Measurement]
    answers: dict[str, str]
    """Id of a fact to forget -> the reply to its own question."""
    confidence: dict[str, list[tuple[float, int] | None]]
    """Form -> (p, rank) of each answer, from the replies' logits; None for an answer of several
    tokens, and where those logits are not in float32."""


@dataclass(frozen=True)
class Full:
    """The measurement at the end. rows: by group, tier and form. by_fact: id of a fact to forget ->
    its mean recall over all its rewordings; without facts that have none. direct_by_fact: the same
    for its own question. most_by_fact: its highest recall over its rewordings. held_out_by_fact: id
    of a held-out fact -> recall of its own question."""

    rows: list[Measurement]
    by_fact: dict[str, float]
    direct_by_fact: dict[str, float]
    most_by_fact: dict[str, float]
    held_out_by_fact: dict[str, float]


def thinned(facts: FactSet, per_tier: int) -> FactSet:
    """The set with at most `per_tier` facts of each group and tier, spread evenly over their
    scores; 0 keeps all. Facts to forget keep all rewordings; every other fact keeps one."""
    if not per_tier:
        return facts
    few = {group: evenly(getattr(facts, group), per_tier) for group in GROUPS}
    for group in {*GROUPS} - {"forget"}:
        for place, fact in enumerate(few[group]):
            at = place % max(1, len(fact.paraphrases))
            few[group][place] = replace(fact, paraphrases=fact.paraphrases[at : at + 1])
    return replace(facts, **{group: tuple(members) for group, members in few.items()})


def questions_of(facts: FactSet, whole: bool, ways: int = 1, retained: bool = False) -> int:
    """Number of questions that `full` asks if whole, else `quick`. ways: ways to ask the model."""
    if not whole:
        questions = sum(1 + bool(fact.paraphrases) for fact in facts.forget)
        return questions + retained * len(facts.retain)
    otherwise = (ways - 1) * sum(map(len, _asked_otherwise(facts).values()))
    members = chain.from_iterable(getattr(facts, group) for group in GROUPS)
    return otherwise + sum(1 + len(fact.paraphrases) for fact in members)


def other_ways(model: AdaptedModel) -> tuple[str, ...]:
    """The ways to ask the model, except the current one."""
    return tuple(way for way in model.ways if way != model.way)


def _asked_otherwise(facts: FactSet) -> dict[str, list[Fact]]:
    """A few facts of each group, which are also asked in the model's other ways."""
    return {group: evenly(getattr(facts, group), OTHERWISE_PER_TIER) for group in FACT_GROUPS}


def quick(model: AdaptedModel, facts: FactSet, tokens: int, retained: bool = False) -> Quick:
    """Recall of the forget facts by tier: the trained question, and each fact's first rewording.
    tokens: a reply's limit. retained: whether retained facts are asked too, as trained."""
    reworded_facts = [fact for fact in facts.forget if fact.paraphrases]
    reworded = [replace(fact, question=fact.paraphrases[0]) for fact in reworded_facts]
    measured, answers, confidences = [], {}, {}
    for form, members in ((DIRECT, facts.forget), (REWORDED, reworded)):
        rows, prompts = model.rows(members), model.prompts([fact.question for fact in members])
        # False if the model's own words, or a template's space, precede an answer.
        at_once = all(row.prompt == prompt.prompt for row, prompt in zip(rows, prompts))
        replies = model.replies(rows if at_once else prompts, tokens)
        answers[form] = [text.strip() for text, *_ in replies]
        confidences[form] = [
            tuple(first) if first and len(row.answer) == 1 and not model.narrow else None
            for row, (_, *first) in zip(rows, replies)
        ]
        judged = _per_reply(members, answers[form])
        measured += _by_tier("forget", form, members, judged)
    if retained:
        judged = _per_fact(model, facts.retain, tokens)
        measured += _by_tier("retain", DIRECT, facts.retain, judged)
    names = [fact.id for fact in facts.forget]
    return Quick(measured, dict(zip(names, answers[DIRECT])), confidences)


def full(model: AdaptedModel, facts: FactSet, tokens: int, cosine: bool = False) -> Full:
    """All measurements; direct rows also have teacher-forced metrics. tokens: a reply's limit."""
    rows, by_fact, direct_by_fact, most_by_fact, held_out_by_fact = [], {}, {}, {}, {}
    for way in other_ways(model):
        with model.asking_as(way):
            for group, members in _asked_otherwise(facts).items():
                values = _per_fact(model, members, tokens, cosine)
                rows += _by_tier(group, FORM_OF_WAY[way], members, values)
    internals = partial(_internals, model)
    inside = {group: metrics.by_fact(model, getattr(facts, group), internals) for group in GROUPS}
    scores = {group: {name: inside[group].pop(name, []) for name in MIA_NAMES} for group in GROUPS}
    if facts.forget:
        if facts.holdout:
            forgotten, held_out = scores["forget"], scores["holdout"]
            inside["forget"] |= {name: auc(forgotten[name], held_out[name]) for name in MIA_NAMES}
        wrong = metrics.wrong_answers(facts.forget, facts.every)
        ratios = metrics.truth_ratios(model, facts.forget, wrong)
        inside["forget"]["truth_ratio"] = [ratio and closer_to_1(ratio) for ratio in ratios]
    for group in GROUPS:
        members = getattr(facts, group)
        direct = _per_fact(model, members, tokens, cosine) | inside[group]
        rows += _by_tier(group, DIRECT, members, direct)
        reworded = [fact for fact in members if fact.paraphrases]
        values = _per_fact(
            model, reworded, tokens, cosine, lambda fact: fact.paraphrases, most=True
        )
        most = values.pop(MOST)
        rows += _by_tier(group, REWORDED, reworded, values)
        own = dict(zip((fact.id for fact in members), direct["recall"]))
        if group == "forget":
            names = [fact.id for fact in reworded]
            by_fact = dict(zip(names, values["recall"]))
            most_by_fact = dict(zip(names, most))
            direct_by_fact = own
        elif group == "holdout":
            held_out_by_fact = own
    return Full(rows, by_fact, direct_by_fact, most_by_fact, held_out_by_fact)


def recall_by_fact(
    model: AdaptedModel,
    facts: Sequence[Fact],
    max_new_tokens: int,
    progress: Progress,
    judge: Callable[[Prompt, str], float] = recall,
) -> dict[str, float]:
    """Fact id -> recall of its trained question by the current model. judge: `known_recall` to
    decide whether a fact is known. Raises Stopped: a stop was requested."""
    values: dict[str, float] = {}
    for start in range(0, len(facts), EVAL_BATCH):
        progress.say(f"Asked {start:,} of {len(facts):,} questions.")
        members = facts[start : start + EVAL_BATCH]
        replies = model.generate([fact.question for fact in members], max_new_tokens)
        for fact, text in zip(members, replies):
            values[fact.id] = judge(replace(direct(fact), accepted=fact.accepted), text)
    return values


def confidence(model: AdaptedModel, rows: Sequence[Row]) -> list[tuple[float, int]]:
    """`Scored.confidence` of each row, in eval mode."""
    return by_row(model, rows, partial(_confident, model))


@torch.no_grad()
def by_row(
    model: AdaptedModel, rows: Sequence[Row], of: Callable[[Sequence[Row]], Sequence[T]]
) -> list[T]:
    """A result for each row, in eval mode. of: the results of the rows of a pass. Sorts by prompt:
    twice as fast if many begin alike."""
    model.network.eval()
    order, size = sorted(range(len(rows)), key=lambda i: rows[i].prompt), model.at_once(rows)
    pieces = model.in_pieces([rows[i] for i in order], size, of)
    results = zip(order, chain.from_iterable(pieces))
    return [result for _, result in sorted(results, key=lambda pair: pair[0])]


def _confident(model: AdaptedModel, rows: Sequence[Row]) -> list[tuple[float, int]]:
    batch = model.batch(rows)
    return model.score(batch, logits=True).confidence(batch)


def _per_fact(
    model: AdaptedModel,
    facts: Sequence[Fact],
    tokens: int,
    cosine: bool = False,
    asks: Callable[[Fact], Sequence[str]] = lambda fact: (fact.question,),
    most: bool = False,
) -> dict[str, list[float]]:
    """Metrics of the generated answers, one value per fact: the mean over its questions. asks:
    these questions, by default the fact's own. most: with the highest recall too, as `MOST`."""
    pairs = [(fact, question) for fact in facts for question in asks(fact)]
    answers = model.generate([question for _, question in pairs], tokens)
    values = _per_reply([fact for fact, _ in pairs], answers)
    if cosine and pairs:
        values["cosine"] = metrics.cosines([fact.answer for fact, _ in pairs], answers)
    ends = list(accumulate(len(asks(fact)) for fact in facts))
    spans = list(zip([0, *ends], ends))
    means = {name: [fmean(column[i:end]) for i, end in spans] for name, column in values.items()}
    if most:
        means[MOST] = [max(values["recall"][i:end]) for i, end in spans]
    return means


def _per_reply(facts: Sequence[Fact], replies: Sequence[str]) -> dict[str, list[float]]:
    """Metrics of each generated reply, over all right answers of its fact."""
    pairs = list(zip(facts, replies))
    return {
        "recall": [recall_of_fact(fact, reply) for fact, reply in pairs],
        "strict": [recall_of_fact(fact, reply, fold=False) for fact, reply in pairs],
        "words": [word_count(reply) for reply in replies],
    }


def _by_tier(
    group: str, form: str, facts: Sequence[Fact], values: dict[str, list]
) -> list[Measurement]:
    """A row for all facts and one for each tier that has facts; some facts may be in no tier."""
    rows = []
    for tier, places in in_tiers(facts, range(len(facts))).items():
        means = {}
        for name, column in values.items():
            if known := [column[i] for i in places if column[i] is not None]:
                means[name] = fmean(known)
        rows.append(Measurement(group, tier, form, len(places), **means))
    return rows


def _internals(
    model: AdaptedModel, batch: AnswerTokens, answers: Sequence[str]
) -> dict[str, list[float]]:
    """The teacher-forced metrics of each row, unlearned against original. answers: their texts."""
    before = after = model.score(batch, logits=True, hidden=True)
    memory = metrics.memorised(after, batch, answers)
    if not model.compares:
        return {"nll": after.row_mean(after.nll).tolist()} | memory
    if not model.adapter_off:
        with model.original():
            before = model.score(batch, logits=True, hidden=True)
    columns = {
        "nll": after.row_mean(after.nll),
        "delta_logprob": metrics.delta_logprob(before, after),
        "delta_rank": metrics.delta_rank(before, after, batch.target),
        "hidden_cosine": metrics.hidden_cosine(before, after),
        "kl": metrics.kl(before, after),
    }
    return {name: values.tolist() for name, values in columns.items()} | memory
