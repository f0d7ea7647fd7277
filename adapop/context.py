"""Do the facts fit into the model's context? Asked before training: a model may answer what does not fit with nonsense
or with a crash."""

from __future__ import annotations

from adapop.chat import encode_prompt, plain
from adapop.errors import DataError
from adapop.facts import GROUPS, Fact, FactSet
from adapop.model import AdaptedModel

NAMED = 3


def check_context(model: AdaptedModel, facts: FactSet, max_new_tokens: int) -> None:
    """Every way a fact is asked must fit into the model's context together with its answer, or with as many tokens as
    an answer may have. Models that name no limit have none.

    Raises:
        DataError: it names the first rows that do not, by group, place and id, with their lengths in tokens.
    """
    limit = getattr(model.network.config, "max_position_embeddings", None)
    if limit is None:
        return
    lengths = [
        (f"{group} row {place} ({fact.id!r})", _longest(model, fact, max_new_tokens))
        for group in GROUPS
        for place, fact in enumerate(getattr(facts, group), start=1)
    ]
    if over := [(row, length) for row, length in lengths if length > limit]:
        named = ", ".join(f"{row} with {length:,}" for row, length in over[:NAMED])
        more = f" and {len(over) - NAMED:,} more" if len(over) > NAMED else ""
        raise DataError(
            f"Too long for the model's context of {limit:,} tokens: {named}{more}.",
            "Shorten or drop these rows, or use a model with a longer context.",
        )


def _longest(model: AdaptedModel, fact: Fact, max_new_tokens: int) -> int:
    """Tokens of the longest way to ask the fact, with the longest that may be said to it."""
    said = [len(plain(model.tokenizer, text)) for text in (fact.answer, *fact.alternates)]
    asked = [len(encode_prompt(model.tokenizer, text, model.system)) for text in (fact.question, *fact.paraphrases)]
    return max(asked) + max(*said, max_new_tokens)
