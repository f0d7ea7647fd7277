"""`ask`: several models' replies to a question, token by token. `tokens`: which are scored."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace

from adapop.cli import printing
from adapop.cli.scores import reading_of
from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.facts.benchmarks import system_prompt
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.facts.retain import with_examples
from adapop.probes.inspection import ORACLE, Drawing, Question
from adapop.runs.columns import columns_of
from adapop.runs.inputs import check_inputs
from adapop.runs.run import find_run

PROMPT, LEAD, CONTENT, TAIL = "prompt", "lead", "content", "tail"


def ask(options: argparse.Namespace) -> None:
    """`ask`: one question to original, unlearned and further models, token by token or sampled."""
    from adapop.service import jobs

    if not options.prompt.strip():
        raise ConfigError("The prompt is empty.", "Type a question.")
    run = find_run(options.run)
    others = [None if name == ORACLE else find_run(name) for name in options.beside]
    named = [("Never knew" if one is None else one.id, one) for one in others]
    chosen = columns_of(run, named, options.epoch)
    earlier = tuple(options.earlier)
    question = Question(options.prompt, options.gold, options.begun, earlier=earlier)
    if options.samples is None:
        inspection = jobs.inspect_columns(run.folder, question, chosen)
        rows, texts = inspection.rows, map(printing.strip_text, inspection.rows)
    else:
        settings = options.temperature, options.top_p, options.seed, options.length
        drawing = Drawing(options.samples, *settings)
        drawn = jobs.sample_columns(run.folder, question, chosen, drawing)
        rows, texts = [one.row for one in drawn], map(printing.samples_text, drawn)
    for row, text in zip(rows, texts):
        if options.json:
            printing.say_json(row)
        else:
            printing.say(text)


def tokens(options: argparse.Namespace) -> None:
    """`tokens`: prints those of a typed fact, a set or a run. Loads only the tokenizer. Raises
    ConfigError."""
    from adapop.model.asking import template_of
    from adapop.model.loading import load_tokenizer
    from adapop.probes.ways import examples_of

    if options.run:
        check_inputs(run := find_run(options.run))
        config, facts, prompting = run.config, run.facts, run.prompting
        facts = replace(facts, forget=facts.forget[: options.first])
    else:
        facts, prompting = _facts(options), None
        config = RunConfig(options.model, include_tail=options.include_tail, asking=options.asking)
        default = system_prompt(config.model, facts)
        config = replace(config, system=default if options.system is None else options.system)
    tokenizer = load_tokenizer(config)
    way = prompting.asking if prompting else "chat" if options.run else config.asking
    examples = prompting.examples if prompting else examples_of(tokenizer, facts)
    if not examples and way != "chat":
        message = f"{facts.name} has fewer than three examples, which {way} needs."
        raise ConfigError(message, "Name --facts with more rows to retain.")
    tokenizer.chat_template = template_of(tokenizer, tokenizer.chat_template, way, examples)
    spoken, last = prompting.spoken if prompting else {}, None
    for token in tokens_of(tokenizer, facts.forget, config, spoken):
        if options.json:
            printing.say_json(token)
            continue
        if token["fact"] != last:
            last = token["fact"]
            printing.say(f"\n{last}\n{'place':>6}{'id':>9}  scored  why      text")
        scored = "yes" if token["scored"] else "-"
        line = f"{token['place']:>6}{token['id']:>9}  {scored:<6}  {token['why']:<7}"
        printing.say(f"{line}  {token['text']!r}")


def tokens_of(
    tokenizer, facts: tuple[Fact, ...], config: RunConfig, spoken: Mapping | None = None
) -> Iterator[dict]:
    """Every token of the facts as in a run of this configuration, with tails that are not scored.
    why: the part it belongs to: the prompt, the lead of the model's own reply, the answer's
    content, or the tail that ends the turn. scored: whether it counts in losses and metrics.
    spoken: as for `tokens.encode_facts`. Raises DataError, ModelError: as there."""
    from adapop.model.chat import encode_prompt
    from adapop.model.tokens import encode_facts

    rows = encode_facts(tokenizer, facts, config.system, include_tail=True, spoken=spoken)
    for fact, row in zip(facts, rows):
        content = row.length - row.tail
        prompt = len(encode_prompt(tokenizer, fact.question, config.system))
        for place, number in enumerate(row.prompt + row.answer):
            before = PROMPT if place < prompt else LEAD
            why = before if place < len(row.prompt) else CONTENT if place < content else TAIL
            scored = why == CONTENT or (why == TAIL and config.include_tail)
            text = tokenizer.decode([number])
            token = {"fact": fact.id, "place": place, "id": number, "text": text}
            yield token | {"why": why, "scored": scored}


def _facts(options: argparse.Namespace) -> FactSet:
    """The facts to show, as facts to forget, with their set's examples. Raises ConfigError."""
    if (options.question is None) != (options.answer is None):
        message = "--question and --answer belong together."
        raise ConfigError(message, "Give both, or only --facts.")
    typed = () if options.question is None else (Fact("typed", options.question, options.answer),)
    if typed and options.asking == "chat":
        return FactSet("typed", typed)
    facts = load_facts(options.facts, options.model, **reading_of(options))
    facts = facts if options.asking == "chat" else with_examples(facts, RunConfig().seed)
    return replace(facts, forget=typed or facts.forget[: options.first])
