"""Plausible wrong answers, for methods that teach one in place of the right answer (AltPO).

A fact may bring its own alternates. Other facts take one from the answers of the same relation, or
the model writes one. It must differ from the right answer in words, neither contain it nor be
contained in it, and be about as long. A fact's own alternate need only not contain the answer.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, islice, product, starmap

import torch

from adapop.config.run import SEED_LIMIT
from adapop.errors import DataError
from adapop.facts.fact import Fact
from adapop.facts.pool import Pool
from adapop.facts.text import folded, mentions, word_count, words
from adapop.facts.weak import STOP_WORDS
from adapop.model.adapted import AdaptedModel
from adapop.model.generation import replies
from adapop.model.tokens import Row

SOURCES = ("second", "model", "relation")
NAMED = 5  # facts in a message
SHORT, MEDIUM = 3, 8  # most words of a name, and of a phrase
ROUNDS = 4
# sampling settings of the AdaPop paper's runs
DRAWN = {"max_new_tokens": 120, "temperature": 0.8, "top_p": 0.9, "top_k": 0}
REQUEST = (
    "Question: {question}\nRight answer: {answer}\nWrite one wrong answer that a reader could "
    "believe: of the same kind and about as long. Write the answer alone, with no explanation."
)
Draw = Callable[[Sequence[str], int], list[str]]
TRIED = 8  # likeliest first tokens of an answer
# the end of a clause; not the points of initials, "St." and numbers
CLAUSE = re.compile(r"[,;:!?،؛؟।，、。；：！？]|(?<=[^\s.(]{3})\.(?!\d)")
LONGER = 8  # most tokens by which an alternate may be longer than the right answer


def by_relation(
    facts: Sequence[Fact], others: Sequence[Fact], seed: int, count: int = 1
) -> list[Fact]:
    """The facts; each without an alternate gets up to `count` usable answers of its relation, never
    those of its own subject. others: further rows whose answers may be used."""
    pool, rng = Pool([*facts, *others]), random.Random(seed)
    completed = []
    for fact in facts:
        fitting = (answer for answer in pool.distractors(fact, rng) if usable(fact, answer))
        without = not fact.alternates and folded(fact.relation)
        wrong = tuple(islice(fitting, count)) if without else fact.alternates
        completed.append(replace(fact, alternates=wrong))
    return completed


def by_model(
    facts: Sequence[Fact],
    draw: Draw,
    seed: int,
    stopped: Callable[[], bool] = lambda: False,
    count: int = 1,
) -> list[Fact]:
    """The facts; each without an alternate gets up to `count` usable ones that the model writes.
    draw: (prompts, seed) -> the model's replies. It is called at most ROUNDS times for each
    alternate, for the facts that still lack one. stopped: asked before each round, which may take
    minutes."""
    completed, bare = list(facts), [i for i, fact in enumerate(facts) if not fact.alternates]
    for turn in range(ROUNDS * count):
        missing = [i for i in bare if len(completed[i].alternates) < min(count, 1 + turn // ROUNDS)]
        if stopped():
            break
        if not missing:
            continue
        lacking = [completed[i] for i in missing]
        prompts = [REQUEST.format(question=fact.question, answer=fact.answer) for fact in lacking]
        texts = draw(prompts, (seed * ROUNDS * count + turn) % SEED_LIMIT)
        for i, reply in zip(missing, texts, strict=True):
            completed[i] = _with_alternate(completed[i], first_line(reply))
    return completed


def _with_alternate(fact: Fact, alternate: str) -> Fact:
    """The fact with one more alternate, if it is new and usable."""
    if alternate in fact.alternates or not usable(fact, alternate):
        return fact
    return replace(fact, alternates=(*fact.alternates, alternate))


def usable(fact: Fact, alternate: str) -> bool:
    """Whether `alternate` is wrong, about as long, and no other spelling of the right answer."""
    if not folded(alternate) or any(_same(alternate, answer) for answer in fact.answers):
        return False
    return length_class(alternate) == length_class(fact.answer)


def _same(alternate: str, answer: str) -> bool:
    return _says(alternate, answer) or _says(answer, alternate) or _alike(alternate, answer)


def length_class(answer: str) -> str:
    """One of "name" (up to 3 words), "phrase" (up to 8) and "sentence"."""
    count = word_count(answer)
    return "name" if count <= SHORT else "phrase" if count <= MEDIUM else "sentence"


def check_alternates(facts: Sequence[Fact]) -> None:
    """Raises DataError: a fact has no alternate, or one that contains a right answer, which would
    be taught then."""
    right = [one.id for one in facts if any(starmap(_says, product(one.alternates, one.answers)))]
    if right:
        named = ", ".join(map(repr, right[:NAMED])) + (" …" if len(right) > NAMED else "")
        message = f"{len(right)} of {len(facts)} facts have their right answer among the wrong ones"
        raise DataError(f"{message}: {named}.", "Change or delete it in the column 'alternates'.")
    if missing := [fact for fact in facts if not fact.alternates]:
        fault = f"{len(missing)} of {len(facts)} facts have no plausible wrong answer"
        rows = "a column 'relation' whose rows have different answers of similar length"
        fix = f"Add a column 'alternates', or {rows}."
        raise DataError(f"{fault}, for example {missing[0].id!r}.", fix)


def _says(text: str, answer: str) -> bool:
    """Whether a text has the answer, ignoring case, accents, marks: "1000" is in "1,000"."""
    letters, written = "".join(words(answer)), "".join(words(text))
    if mentions(text, answer):
        return True
    if not letters or letters not in written:  # most often
        return False
    ends = {0, *accumulate(map(len, words(text)))}
    return any(end - len(letters) in ends and written.endswith(letters, 0, end) for end in ends)


def _alike(alternate: str, answer: str) -> bool:
    """Whether the alternate shares more than half of the answer's words, or half of them and the
    last word. "St Petersburg" may be Saint Petersburg; the United Kingdom is not the United States.
    Initials and stop words do not count."""
    own = [word for word in words(answer) if len(word) > 1 and word not in STOP_WORDS]
    shared = set(own) & set(words(alternate))
    half = len(set(own)) / 2
    return len(shared) > half or (len(shared) == half > 0 and own[-1] in shared)


def first_line(reply: str) -> str:
    """The first line of a reply, without quotation marks and full stop."""
    lines = reply.strip().splitlines()
    return lines[0].strip().strip("\"'“”.。।").strip() if lines else ""


@torch.no_grad()
def by_second_choice(
    facts: Sequence[Fact],
    model: AdaptedModel,
    count: int = 1,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Fact]:
    """The facts, with up to `count` alternates for each that has none: the model's greedy replies
    that begin with its likeliest first tokens other than the right answer's. At most `TRIED` first
    tokens are tried, until enough alternates are `usable`.

    Call it with the adapter off or untrained. stopped: asked before each round.
    """
    completed = list(facts)
    rows = model.rows(facts)
    model.network.eval()
    pieces = model.in_pieces(rows, model.at_once(rows), partial(_firsts, model))
    firsts = list(chain.from_iterable(pieces))
    most = LONGER + max(len(row.answer) for row in rows)
    for turn in range(TRIED):
        bare = [i for i, fact in enumerate(facts) if not fact.alternates]
        bare = [i for i in bare if len(completed[i].alternates) < count]
        if not bare or stopped():
            break
        begun = [Row((*rows[i].prompt, firsts[i][turn]), (), i) for i in bare]
        write = partial(_continued, model, most=most)
        written = model.in_pieces(begun, model.at_once(begun, most), write)
        for i, text in zip(bare, chain.from_iterable(written), strict=True):
            alternate = first_line(text)
            if facts[i].id in model.spoken:  # the answer stands in the middle of a sentence
                alternate = CLAUSE.split(alternate)[0].strip()
            completed[i] = _with_alternate(completed[i], alternate)
    return completed


def _firsts(model: AdaptedModel, rows: Sequence[Row]) -> list[list[int]]:
    """The likeliest first tokens of a wrong answer to each row's prompt."""
    batch = model.batch(rows)
    logits = model.score(batch, logits=True).logits[batch.place == 0]
    logits[:, model.tokenizer.all_special_ids] = float("-inf")
    logits[torch.arange(len(rows)), [row.answer[0] for row in rows]] = float("-inf")
    return logits.topk(TRIED, dim=-1).indices.tolist()


def _continued(model: AdaptedModel, rows: Sequence[Row], *, most: int) -> list[str]:
    """For each prompt, the text of its last token and of the model's continuation."""
    pad, prompts = model.pad_id, [row.prompt for row in rows]
    written = replies(model.network, prompts, most, pad, ends=model.ends)
    whole = [[row.prompt[-1], *map(int, ids)] for row, ids in zip(rows, written)]
    return model.tokenizer.batch_decode(whole, skip_special_tokens=True)
