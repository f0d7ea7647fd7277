"""Reads several models' replies to one question token by token, or draws samples of them.

Every model writes its reply, and then all models that share its vocabulary read all replies: a
forward pass each, over the tokens that were written. What a token's share is in the others is so
read off the same text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import torch
from peft.helpers import rescale_adapter_scale
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

from adapop.errors import DataError, ModelError
from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_answer, encode_turns, plain
from adapop.model.generation import ends_of, replies
from adapop.model.paired import PairedModel
from adapop.model.tokens import Row
from adapop.probes.ask import Judged, answers, asked_of, check_room, judged_by
from adapop.probes.inspection import Drawing, Inspection, Likely, Question, Samples, Step, Strip
from adapop.probes.judge import gives_away
from adapop.probes.prompts import Answer, Asked
from adapop.probes.recall import part_said, recall_of_fact

LIKELY = 5
JOINERS = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"  # not printable, but part of words
CUT = "\ufffd"  # stands for the bytes of a letter that is not yet whole
LETTER = 12  # tokens of one letter at most; the longest emoji join several letters
SIGNS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}


@dataclass(frozen=True)
class Column:
    """A model that is asked. load: returns it, already in memory or not. strength: of its adapter,
    1 as trained, 0 for the original model."""

    name: str
    load: Callable[[], AdaptedModel]
    strength: float = 1.0

    @contextmanager
    def speaking(self) -> Iterator[AdaptedModel]:
        """A context in which the model is this column's."""
        model = self.load()
        with model.active(), at_strength(model, self.strength):
            yield model


@contextmanager
def at_strength(model: AdaptedModel, strength: float) -> Iterator[None]:
    """A context in which the adapter counts `strength` times; 0 is the original model."""
    if strength == 0:
        with model.original():
            yield
    elif strength == 1:
        yield
    elif isinstance(model, PairedModel):
        reason = "The unlearned model has no adapter to scale."
        raise ModelError(reason, "Choose strength 0 or 1.")
    else:
        with rescale_adapter_scale(model.network, strength):
            yield


@dataclass(frozen=True)
class Written:
    """A model's reply: its conversation, the ids it read, was given and wrote, and their text. end:
    the id that ended it, None if it was cut off."""

    earlier: tuple[tuple[str, str], ...]
    read: tuple[int, ...]
    begun: tuple[int, ...]
    written: tuple[int, ...]
    end: int | None
    text: str


def inspect(
    columns: Sequence[Column], question: Question, most: int, facts: FactSet | None = None
) -> Inspection:
    """All columns' greedy replies to a question, token by token, in the order of the columns; the
    first should be the original model, against which replies are judged.

    most: tokens of a reply. facts: as in `ask`. Raises DataError: the question does not fit into a
    model's context, or has an invalid character or id. ModelError: a model holds no conversation.
    """
    heard, measured, vocabularies = [], [], []
    judged = judged_by(question.prompt, question.gold, facts)
    for column, own in zip(columns, _in_own_tokens(columns, question)):
        with column.speaking() as model:
            reply = written(model, own, most)
            heard.append(reply)
            measured.append(_measured(model, judged, reply))
            vocabularies.append(model.tokenizer.get_vocab())  # a pair may have two tokenizers
    shares = _shares(columns, heard, vocabularies)
    with columns[0].speaking() as model:
        sent = model.tokenizer.decode(list(heard[0].read))
        comparisons = [asked_of(model, judged, sent, measured[0], answer) for answer in measured]
    strips = []
    for place, (column, reply) in enumerate(zip(columns, heard)):
        with column.speaking() as model:
            steps = _steps(model, shares[place], place, reply, _openings(model, question))
            others = range(1, len(columns)) if place == 0 else (0,)
            foreign = [heard[at].text for at in others if shares[place][at] is None]
            steps = _parting(model, steps, reply, foreign)
            begun = decoded(model, reply.begun)
        earlier = tuple(text for _, text in reply.earlier)
        strips.append(Strip(column.name, reply.text, len(reply.begun), steps, earlier, begun))
    return Inspection(question, tuple(strips), tuple(comparisons))


def _in_own_tokens(columns: Sequence[Column], question: Question) -> list[Question]:
    """The question to each column: where its vocabulary is another than that of the question's ids,
    with their text in place of them. Raises DataError: as `prompt_of`."""
    if not question.ids:
        return [question] * len(columns)
    with columns[question.ids_of].speaking() as model:
        prompt_of(model, question)  # checks the ids
        text, vocabulary = decoded(model, question.ids), model.tokenizer.get_vocab()
    own = []
    for column in columns:
        with column.speaking() as model:
            same = model.tokenizer.get_vocab() == vocabulary
        own.append(question if same else replace(question, ids=(), begun=text.rstrip(CUT)))
    return own


def asked_columns(
    columns: Sequence[Column],
    prompts: Sequence[str],
    golds: Sequence[str],
    most: int,
    facts: FactSet | None = None,
    earlier: Mapping[int, tuple[str, ...]] | None = None,
) -> list[list[Asked]]:
    """For each column its replies to prompts beside those of the first column, in their order. The
    first column should be the original. earlier: a prompt's place -> the turns before it, which
    every column answers itself. Raises as `inspect`."""
    judged = [judged_by(prompt, gold, facts) for prompt, gold in zip(prompts, golds)]
    measured = []
    for column in columns:
        with column.speaking() as model:
            measured.append(answers(model, judged, model.generate(prompts, most)))
            for place, turns in (earlier or {}).items():
                question = Question(prompts[place], golds[place], earlier=turns)
                reply = written(model, question, most)
                measured[-1][place] = _measured(model, judged[place], reply)
    with columns[0].speaking() as model:
        sent = [model.tokenizer.decode(row.prompt) for row in model.prompts(prompts)]
    return [
        [asked_of(model, *row) for row in zip(judged, sent, measured[0], own, strict=True)]
        for own in measured
    ]


@torch.no_grad()
def written(model: AdaptedModel, question: Question, most: int) -> Written:
    """The model's reply, after its own replies to the earlier turns."""
    model.network.eval()
    (earlier,) = conversations(model, [question.earlier], most)
    read, begun = prompt_of(model, question, earlier)
    check_room(model, question.prompt, len(read) + len(begun), max(1, most - len(begun)))
    left = max(1, most - len(begun))
    (ids,) = map(tuple, continued(model, (*read, *begun), left))
    text = decoded(model, (*begun, *ids)).strip().rstrip(CUT)
    end = _ended(model, (*read, *begun, *ids)) if len(ids) < left else None
    return Written(tuple(earlier), read, begun, ids, end, text)


def conversations(
    model: AdaptedModel, turns: Sequence[Sequence[str]], most: int
) -> list[list[tuple[str, str]]]:
    """The turns of each conversation, each with the model's own reply of at most `most` tokens.
    Raises as `inspect`."""
    earlier: list[list[tuple[str, str]]] = [[] for _ in turns]
    for place in range(max(map(len, turns), default=0)):
        going_on = [(turn[place], own) for turn, own in zip(turns, earlier) if place < len(turn)]
        rows = []
        for question, own in going_on:
            ids = encode_turns(model.tokenizer, own, question, model.system)
            check_room(model, question, len(ids), most)
            rows.append(Row(ids, (), len(rows)))
        for (question, own), (reply, *_) in zip(going_on, model.replies(rows, most)):
            own.append((question, reply.strip()))
    return earlier


def _ended(model: AdaptedModel, ids: Sequence[int]) -> int:
    """The id that the model ended a reply with: the likeliest of those that end one."""
    ends = sorted(ends_of(model.base) | model.ends) or [model.pad_id]
    batch = model.batch([Row(tuple(ids), (ends[0],), 0)])
    return ends[int(model.score(batch, logits=True).logits[0, ends].argmax())]


def continued(
    model: AdaptedModel, ids: Sequence[int], most: int, **drawn: float
) -> list[list[int]]:
    """How a text goes on: greedily, or `drawn` as transformers' `generate` takes it."""
    return list(replies(model.network, [ids], most, model.pad_id, ends=model.ends, **drawn))


def decoded(model: AdaptedModel, ids: Sequence[int]) -> str:
    """The ids as text, without control tokens."""
    return model.tokenizer.decode(ids, skip_special_tokens=True)


def prompt_of(
    model: AdaptedModel, question: Question, earlier: Sequence[tuple[str, str]] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(ids that the model reads, ids of the reply's given beginning). earlier: the conversation.
    Raises DataError: an id is not one of the vocabulary."""
    tokenizer, prompt = model.tokenizer, question.prompt
    size = model.base.get_input_embeddings().weight.shape[0]
    if any(type(token) is not int or not 0 <= token < size for token in question.ids):
        message = "The beginning of the answer has tokens that this model lacks."
        raise DataError(message, "Type the beginning, or ask again and press a token.")
    read = encode_turns(tokenizer, earlier, prompt, model.system)
    begun = question.begun.strip()
    if question.ids or not begun:
        return read, question.ids
    if earlier:
        return read, tuple(plain(tokenizer, begun).ids)
    encoded = encode_answer(tokenizer, prompt, begun, model.system)
    return encoded.prompt, encoded.answer


def _measured(model: AdaptedModel, judged: Judged, reply: Written) -> Answer:
    """A reply as it is judged; after a conversation without ranks, which are of the question by
    itself."""
    if not reply.earlier:
        return answers(model, [judged], [reply.text])[0]
    known = recall_of_fact(judged.right, reply.text) if judged.right else None
    return Answer(reply.text, (), known)


@torch.no_grad()
def _shares(
    columns: Sequence[Column], written: Sequence[Written], vocabularies: Sequence[dict[str, int]]
) -> list[list[Tensor | None]]:
    """For each reply the probabilities of its next tokens in each column, [steps, V]; None where a
    column's vocabulary is another."""
    shares: list[list[Tensor | None]] = [[None] * len(columns) for _ in written]
    for place, column in enumerate(columns):
        same = [at for at, _ in enumerate(written) if vocabularies[at] == vocabularies[place]]
        with column.speaking() as model:
            rows = []
            for at in same:
                reply = written[at]
                end = () if reply.end is None else (reply.end,)
                rows.append(Row(reply.read, (*reply.begun, *reply.written, *end), at))
            batch = model.batch(rows)
            probabilities = model.score(batch, logits=True).logits.softmax(-1).cpu()
            for row, at in enumerate(same):
                shares[at][place] = probabilities[batch.row.cpu() == row]
    return shares


def _openings(model: AdaptedModel, question: Question) -> tuple[int, ...]:
    """The ids with which the right answer may begin: right after the prompt, and after a word."""
    if not question.gold:
        return ()
    tokenizer, gold = model.tokenizer, question.gold
    spellings = (
        encode_answer(tokenizer, question.prompt, gold, model.system).answer,
        plain(tokenizer, gold).ids,
        plain(tokenizer, f" {gold}").ids,
    )
    first = (ids[0] for ids in spellings if ids)
    return tuple({token for token in first if tokenizer.decode([token]).strip()})


def _steps(
    model: AdaptedModel,
    shares: Sequence[Tensor | None],
    own: int,
    reply: Written,
    openings: Sequence[int],
) -> tuple[Step, ...]:
    """A reply's steps. own: the place of the column that wrote it. openings: see `_openings`."""
    tokenizer, ends = model.tokenizer, ends_of(model.base) | model.ends
    known = [table for table in shares if table is not None]
    tops = [table.topk(min(LIKELY, table.shape[-1])).indices.tolist() for table in known]
    at_column = {place: at for at, place in enumerate(_places(shares))}
    ids = [*reply.begun, *reply.written]
    if reply.end is not None:
        ids.append(reply.end)

    def likely(step: int, token: int) -> Likely:
        of = tuple(None if one is None else round(float(one[step, token]), 5) for one in shares)
        return Likely(token, readable(tokenizer, token), of, token in ends)

    def right(step: int) -> tuple[float | None, ...]:
        sums = (None if one is None else one[step, list(openings)].sum() for one in shares)
        return tuple(None if one is None else round(float(one), 5) for one in sums)

    steps, whole = [], _completed(tokenizer, ids)
    for step, token in enumerate(ids):
        first = [top[step][0] for top in tops]
        others = {other for top in tops for other in top[step]} - {*first}
        ordered = sorted((likely(step, other) for other in others), key=_greatest)
        ahead = sorted((likely(step, other) for other in {*first}), key=_greatest)
        five = sorted([*ahead, *ordered][: max(LIKELY, len(ahead))], key=_greatest)
        mine = first[at_column[own]]
        against = first[:1] if own else first
        parted = any(other != mine for other in against)
        gold = right(step) if openings else ()
        own_token = likely(step, token)
        if step in whole:
            own_token = replace(own_token, text=own_token.text + whole[step])
        steps.append(Step(own_token, tuple(five), gold, parted))
    if reply.end is not None:
        steps[-1] = replace(steps[-1], token=replace(steps[-1].token, end=True))
    return tuple(steps)


def _completed(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> dict[int, str]:
    """Place of each token that completes a letter of several tokens -> that letter, with what
    follows it in the token."""
    letters, pending = {}, []
    for place, token in enumerate(ids):
        pending.append(token)
        text = tokenizer.decode(pending)
        if CUT in text and len(pending) < LETTER:
            continue
        if len(pending) > 1 and CUT not in text:
            letters[place] = text.strip()
        pending = []
    return letters


def _parting(
    model: AdaptedModel, steps: tuple[Step, ...], reply: Written, others: Sequence[str]
) -> tuple[Step, ...]:
    """The steps, with the places marked at which the reply's text first differs from each of the
    others, of models with another vocabulary."""
    ids, marked = (*reply.begun, *reply.written), {}
    for other in others:
        for place in range(len(steps)):
            text = decoded(model, ids[: place + 1]).strip().rstrip(CUT)
            ended = place >= len(ids) and text != other  # its last step is the reply's end
            if ended or not other.startswith(text):
                marked[place] = True
                break
    return tuple(
        replace(step, parted=step.parted or place in marked) for place, step in enumerate(steps)
    )


def _places(shares: Sequence[Tensor | None]) -> list[int]:
    return [place for place, table in enumerate(shares) if table is not None]


def _greatest(one: Likely) -> float:
    return -max(share for share in one.shares if share is not None)


def readable(tokenizer: PreTrainedTokenizerBase, token: int) -> str:
    """A token as text that people can read: a space before a word stays, white space alone becomes
    signs, parts of a letter become bytes (⟨E2⟩), other invisible characters their code points."""
    raw = tokenizer.convert_ids_to_tokens(token)
    if raw is None:
        return f"⟨{token}⟩"  # a row of the output layer that no token uses
    if len(raw) == 6 and raw.startswith("<0x") and raw.endswith(">"):  # as sentencepiece has it
        number = int(raw[3:5], 16)
        return chr(number) if 32 < number < 127 else f"⟨{number:02X}⟩"
    text = tokenizer.decode([token])
    if spaces := len(raw) - len(raw.lstrip("▁")):  # a lone token is decoded without them
        text = " " * spaces + text.lstrip(" ")
    if CUT in text and CUT not in raw:
        values = _byte_values()
        return "".join(f"⟨{values[sign]:02X}⟩" if sign in values else sign for sign in raw)
    if not text.strip(" "):
        return "␣" * len(text) or "⟨empty⟩"
    worded = any(sign.isalnum() for sign in text)
    return "".join(_visible(sign, worded) for sign in text)


def _visible(sign: str, worded: bool) -> str:
    """A character, or a sign for it. worded: whether it stands beside letters."""
    if sign.isprintable() or (worded and sign in JOINERS):
        return sign
    return SIGNS.get(sign, f"⟨U+{ord(sign):04X}⟩")


@cache
def _byte_values() -> dict[str, int]:
    """The letters that stand for bytes in byte-level vocabularies."""
    return {sign: value for value, sign in bytes_to_unicode().items()}


def samples(
    columns: Sequence[Column], question: Question, drawing: Drawing, facts: FactSet | None = None
) -> tuple[Samples, ...]:
    """Each column's greedy reply, and samples of it, all drawn at once with the same seed. torch's
    random state stays as it is. facts: as in `ask`. Raises as `inspect`."""
    judged = judged_by(question.prompt, question.gold, facts)
    drawn = []
    for column in columns:
        with column.speaking() as model:
            greedy, *texts = _drawn(model, question, drawing)
            away = tuple(says(judged, text) for text in (greedy, *texts)) if question.gold else ()
            first = away[0] if away else None
            drawn.append(Samples(column.name, greedy, first, tuple(texts), away[1:]))
    return tuple(drawn)


@torch.no_grad()
def _drawn(model: AdaptedModel, question: Question, drawing: Drawing) -> list[str]:
    """The greedy reply, and then the samples."""
    model.network.eval()
    (earlier,) = conversations(model, [question.earlier], drawing.most)
    read, begun = prompt_of(model, question, earlier)
    check_room(model, question.prompt, len(read) + len(begun), drawing.most)
    ids = (*read, *begun)
    with torch.random.fork_rng(devices=model.gpus):
        torch.manual_seed(drawing.seed)
        options = {"temperature": drawing.temperature, "top_p": drawing.top_p, "top_k": 0}
        options["num_return_sequences"] = drawing.count
        drawn = continued(model, ids, drawing.most, **options)
    written = [*continued(model, ids, drawing.most), *drawn]
    return [decoded(model, (*begun, *one)).strip() for one in written]


def says(judged: Judged, text: str) -> bool:
    """Whether a reply gives the right answer away, as a verdict counts it."""
    if parts := judged.known.judged_parts:
        return part_said(parts, text) == 1.0
    return gives_away(judged.about.question, judged.known.answers, text)
