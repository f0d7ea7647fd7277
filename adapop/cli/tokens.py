"""`tokens`: exactly which tokens of a question and its answer a model is scored on, and why the others are not."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from adapop.cli import printing
from adapop.cli.scores import chosen_columns
from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.facts.benchmarks import system_prompt
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet

PROMPT, CONTENT, TAIL = "prompt", "content", "tail"


def tokens(options: argparse.Namespace) -> None:
    """`tokens`: one fact that is typed, or some of a set's facts to forget. Loads the tokenizer, not the model."""
    from adapop.model.loading import load_tokenizer

    facts = _facts(options)
    config = RunConfig(model=options.model, include_tail=options.include_tail)
    asked = options.system if options.system is not None else system_prompt(config.model, facts)
    tokenizer = load_tokenizer(config)
    last = None
    for token in tokens_of(tokenizer, facts.forget, replace(config, system=asked)):
        if options.json:
            printing.say_json(token)
            continue
        if token["fact"] != last:
            last = token["fact"]
            printing.say(f"\n{last}\n{'place':>6}{'id':>9}  scored  why      text")
        scored = "yes" if token["scored"] else "-"
        printing.say(f"{token['place']:>6}{token['id']:>9}  {scored:<6}  {token['why']:<7}  {token['text']!r}")


def tokens_of(tokenizer, facts: tuple[Fact, ...], config: RunConfig) -> Iterator[dict]:
    """Every token of the facts, as a run of this configuration would have them, and the tail also where it is left
    out. why: of the prompt, the answer's content, or the tail that ends the turn. scored: whether it counts in the
    losses and metrics.

    Raises:
        DataError, ModelError: as for `tokens.encode_facts`.
    """
    from adapop.model.tokens import encode_facts

    for fact, row in zip(facts, encode_facts(tokenizer, facts, config.system, include_tail=True)):
        content = row.length - row.tail
        for place, number in enumerate(row.prompt + row.answer):
            why = PROMPT if place < len(row.prompt) else CONTENT if place < content else TAIL
            scored = why == CONTENT or (why == TAIL and config.include_tail)
            said = {"fact": fact.id, "place": place, "id": number, "text": tokenizer.decode([number])}
            yield said | {"why": why, "scored": scored}


def _facts(options: argparse.Namespace) -> FactSet:
    if options.question is None and options.answer is None:
        facts = load_facts(options.facts, options.model, columns=chosen_columns(options), drop_bad=options.drop_bad)
        return replace(facts, forget=facts.forget[: options.first])
    if options.question is None or options.answer is None:
        raise ConfigError("--question and --answer belong together.", "Give both, or neither and --facts.")
    return FactSet("typed", (Fact("typed", options.question, options.answer),))
