"""Wrong answers that the original model itself would give next, without being asked for one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import torch

from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.generation import replies
from adapop.model.tokens import Row
from adapop.objectives.alternates import first_line, usable

TRIED = 8  # of the likeliest first tokens
CLAUSE = re.compile(r"[,;:!?]|\.(?!\d)")
LONGER = 8  # tokens more than the right answer has


@torch.no_grad()
def by_second_choice(
    facts: Sequence[Fact], model: AdaptedModel, count: int = 1, stopped: Callable[[], bool] = lambda: False
) -> list[Fact]:
    """The facts; those without an alternate get up to `count`: the likeliest first token that the right answer does not
    begin with, and what the model greedily says after it; then the next such token, where that is not `usable`.

    Of `TRIED` tokens. Call it with the adapter off or untrained. stopped: asked before each round.
    """
    completed = list(facts)
    rows = model.rows(facts)
    model.network.eval()
    firsts = list(chain.from_iterable(model.in_pieces(rows, model.at_once(rows), partial(_firsts, model))))
    most = LONGER + max(len(row.answer) for row in rows)
    for turn in range(TRIED):
        bare = [i for i, fact in enumerate(facts) if not fact.alternates and len(completed[i].alternates) < count]
        if not bare or stopped():
            break
        begun = [Row((*rows[i].prompt, firsts[i][turn]), (), i) for i in bare]
        written = model.in_pieces(begun, model.at_once(begun, most), partial(_written, model, most=most))
        for i, text in zip(bare, chain.from_iterable(written), strict=True):
            alternate = first_line(text)
            if facts[i].id in model.spoken:  # in the middle of a sentence
                alternate = CLAUSE.split(alternate)[0].strip()
            if usable(completed[i], alternate) and alternate not in completed[i].alternates:
                completed[i] = replace(completed[i], alternates=(*completed[i].alternates, alternate))
    return completed


def _firsts(model: AdaptedModel, rows: Sequence[Row]) -> list[list[int]]:
    """The likeliest first tokens of a wrong answer to each row's prompt."""
    batch = model.batch(rows)
    logits = model.score(batch, logits=True).logits[batch.place == 0]
    logits[:, model.tokenizer.all_special_ids] = float("-inf")
    logits[torch.arange(len(rows)), [row.answer[0] for row in rows]] = float("-inf")
    return logits.topk(TRIED, dim=-1).indices.tolist()


def _written(model: AdaptedModel, rows: Sequence[Row], *, most: int) -> list[str]:
    """The last token of each prompt and what the model writes after it."""
    pad, prompts = model.tokenizer.pad_token_id, [row.prompt for row in rows]
    written = replies(model.network, prompts, most, pad, ends=model.ends)
    whole = [[row.prompt[-1], *map(int, ids)] for row, ids in zip(rows, written)]
    return model.tokenizer.batch_decode(whole, skip_special_tokens=True)
