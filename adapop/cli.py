"""The command line: `python -m adapop run`, and everything around it. `--json` prints one event a line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from adapop import console
from adapop.beta import BetaMap, regime
from adapop.catalog import load_facts
from adapop.config import METHODS, MISSING_SCORE, PRESETS, SANDBOX, make_config
from adapop.errors import AdaPopError, ConfigError
from adapop.events import Event, RunFailed, RunStarted, StepDone, to_json
from adapop.facts import Fact, FactSet
from adapop.runs import Run, all_runs, find_run, runs_root
from adapop.sandbox.world import WRONG_ANSWER_SHARE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status: 0, 1 for a run that failed, 2 for an error of the user's."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options) or 0
    except AdaPopError as error:
        print(console.error_text(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the last finished epoch is kept (python -m adapop runs)", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    from adapop.execution import execute, prepare

    changes = {"learning_rate": options.lr, "epochs": options.epochs, "seed": options.seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    config = make_config(
        options.method,
        options.preset,
        options.model,
        facts=options.facts,
        missing_score=options.missing_score,
        cosine=options.cosine,
        **changes,
    )
    facts = load_facts(options.facts, options.model)
    _print_notes(facts, options.json)
    run = prepare(config, facts, options.out)
    return _follow(run, execute(run), options.json)


def _resume(options: argparse.Namespace) -> int:
    from adapop.execution import execute

    run = find_run(options.run)
    if run.state == "done":
        raise ConfigError(f"Run {run.id} is complete.", "Start a new one, or probe this one.")
    run.clear_stop()
    return _follow(run, execute(run), options.json)


def _runs(options: argparse.Namespace) -> None:
    for run in all_runs():
        try:
            config, state = run.config, run.state
        except AdaPopError as error:
            print(f"{run.id}: {error}", file=sys.stderr)
            continue
        row = {
            "run": run.id,
            "state": state,
            "method": config.method,
            "preset": config.preset,
            "facts": config.facts,
            "model": config.model,
            "epoch": run.last_epoch or 0,
            "epochs": config.epochs,
        }
        print(json.dumps(row) if options.json else "  ".join(f"{value!s:<10}" for value in row.values()))


def _probe(options: argparse.Namespace) -> None:
    from adapop.execution import load_model
    from adapop.probes.ask import ask

    run = find_run(options.run)
    facts = run.facts
    if options.prompt is not None:
        prompts, golds = [options.prompt], [options.gold]
    else:
        chosen = _chosen(facts, options.facts)
        prompts = [question for fact in chosen for question in (fact.question, *fact.paraphrases)]
        golds = [fact.answer for fact in chosen for _ in (fact.question, *fact.paraphrases)]
    for asked in ask(load_model(run), prompts, golds, run.config.max_new_tokens):
        print(json.dumps(asdict(asked), ensure_ascii=False) if options.json else console.asked_text(asked) + "\n")


def _beta(options: argparse.Namespace) -> None:
    facts = load_facts(options.facts)
    _print_notes(facts, options.json)
    scores = [fact.score for fact in facts.forget if fact.score is not None]
    beta_map = BetaMap.from_quantiles(scores) if options.quantiles else BetaMap()
    for fact in facts.forget:
        beta = None if fact.score is None else beta_map(fact.score)
        word = "unknown score" if beta is None else regime(beta)
        row = {"id": fact.id, "score": fact.score, "beta": beta, "regime": word}
        shown = ("–" if value is None else f"{value:,.3f}" for value in (fact.score, beta))
        print(
            json.dumps(row, ensure_ascii=False) if options.json else "  ".join((*shown, f"{word:<20}", fact.question))
        )


def _sandbox_build(options: argparse.Namespace) -> None:
    from adapop.sandbox.card import write_card
    from adapop.sandbox.pretrain import PretrainConfig, build

    build(PretrainConfig(seed=options.seed, wrong_share=options.wrong_share), options.out)
    write_card(options.out)


def _sandbox_card(options: argparse.Namespace) -> None:
    from adapop.sandbox.card import card_text

    print(card_text(options.folder))


def _bench(options: argparse.Namespace) -> None:
    from adapop.bench import gap, rates, speed

    {"gap": gap.main, "speed": speed.main, "rates": rates.main}[options.name]()


def _follow(run: Run, events: Iterator[Event], as_json: bool) -> int:
    """Prints a run's events as they come and its table at the end. Exit status 1 if it failed."""
    failed, steps = False, 0
    for event in events:
        failed = failed or isinstance(event, RunFailed)
        steps = event.steps if isinstance(event, RunStarted) else steps
        if as_json:
            print(to_json(event), flush=True)
        elif isinstance(event, StepDone):
            if sys.stdout.isatty():
                print(f"\r{console.step_text(event, steps)}\033[K\r", end="", flush=True)
        elif text := console.event_text(event):
            print(text, flush=True)
    if not as_json and run.state == "stopped":
        print(f"go on with: python -m adapop resume {_shortest_name(run)}")
    if not as_json and run.state == "done":
        print(console.result_text(run))
        print(f"\nprobe it with: python -m adapop probe {_shortest_name(run)} --prompt 'Who wrote the book Hamlet?'")
    return int(failed)


def _shortest_name(run: Run) -> str:
    """What the other commands find the run by: its id, or its path if it is not where runs live."""
    return run.id if run.folder.parent == runs_root() else str(run.folder)


def _print_notes(facts: FactSet, as_json: bool) -> None:
    """Dropped rows and notes go to standard error, so that standard output stays what was asked for."""
    if facts.problems:
        print(f"{len(facts.problems)} rows were dropped:", file=sys.stderr)
        print("\n".join(console.problem_lines(facts.problems)), file=sys.stderr)
    if not as_json:
        for note in facts.notes:
            print(f"note: {note}", file=sys.stderr)


def _chosen(facts: FactSet, ids: str | None) -> list[Fact]:
    """The facts of the given ids, or eight forget facts from rare to famous."""
    every = {fact.id: fact for group in (facts.forget, facts.retain, facts.holdout) for fact in group}
    if ids is None:
        one_each = list({fact.score: fact for fact in sorted(facts.forget, key=lambda f: f.score or 0)}.values())
        return one_each[:: max(1, len(one_each) // 8)][:8]
    wanted = [name.strip() for name in ids.split(",")]
    if missing := [name for name in wanted if name not in every]:
        raise ConfigError(f"No fact has the id {missing[0]!r}.", "`python -m adapop beta FACTS --json` lists the ids.")
    return [every[name] for name in wanted]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m adapop", description="Unlearning that knows how famous a fact is.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "unlearn facts; by default the sandbox's, with AdaPop")
    run.add_argument("--facts", default=SANDBOX, help="sandbox, or a CSV, JSON, JSONL or Parquet file of facts")
    run.add_argument("--model", default=SANDBOX, help="sandbox, a Hub id, or a folder (safetensors only)")
    run.add_argument("--method", default="adapop", choices=tuple(METHODS))
    run.add_argument("--preset", default="paper", choices=tuple(PRESETS))
    run.add_argument("--lr", type=float, help="learning rate; default: the method's own for this model")
    run.add_argument("--epochs", type=int, help="passes over the forget set; default 5")
    run.add_argument("--seed", type=int, help="seed of adapter, order and pairing; default 0")
    run.add_argument("--missing-score", default="error", choices=MISSING_SCORE, help="what to do with unscored facts")
    run.add_argument("--cosine", action="store_true", help="also measure MiniLM cosine (needs its weights)")
    run.add_argument("--out", type=Path, help="where the run's folder is made; default $ADAPOP_RUNS or ~/.adapop/runs")

    resume = _command(commands, "resume", _resume, "go on with a stopped or interrupted run")
    resume.add_argument("run")
    _command(commands, "runs", _runs, "list the runs, newest first")

    probe = _command(commands, "probe", _probe, "ask the original and the unlearned model")
    probe.add_argument("run")
    probe.add_argument("--facts", help="fact ids, separated by commas; default: eight from rare to famous")
    probe.add_argument("--prompt", help="a prompt of your own instead")
    probe.add_argument("--gold", default="", help="its right answer, to see rank and log-probability")

    beta = _command(commands, "beta", _beta, "score, exponent and regime of every fact")
    beta.add_argument("facts", nargs="?", default=SANDBOX)
    beta.add_argument("--quantiles", action="store_true", help="anchor at the set's 5 %% and 95 %% quantiles")

    sandbox = commands.add_parser("sandbox", help="the model we ship: build it, or show what it knows")
    parts = sandbox.add_subparsers(required=True, metavar="build|card")
    build = _command(parts, "build", _sandbox_build, "pretrain the sandbox model from nothing", False)
    build.add_argument("--seed", type=int, default=0)
    build.add_argument(
        "--wrong-share", type=float, default=WRONG_ANSWER_SHARE, help="share of exposures with a wrong answer"
    )
    build.add_argument("--out", type=Path, default=Path("assets/sandbox"))
    card = _command(parts, "card", _sandbox_card, "recall by exposure level, template and wrapper", False)
    card.add_argument("--folder", type=Path, default=None, help="another build than the shipped one")

    bench = _command(commands, "bench", _bench, "measure the popularity gap, the speed, or the learning rates", False)
    bench.add_argument("name", choices=("gap", "speed", "rates"))
    bench.add_argument("--sandbox", action="store_true", help="measure the sandbox (the only size measured so far)")
    return parser


def _command(commands, name: str, function, text: str, speaks_json: bool = True) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    if speaks_json:
        parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(command=function)
    return parser
