"""The command line: `python -m adapop run`, and everything around it. `--json` prints one object a
line."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from adapop.cli import bench, listed, page, printing, probes, runs, sandbox, scores, tokens
from adapop.cli.options import MODELS, add_run_options
from adapop.config.run import SETTINGS
from adapop.errors import AdaPopError, ConfigError, truncated
from adapop.facts.catalog import ENTRIES
from adapop.facts.fact import SANDBOX
from adapop.facts.world.world import EXPOSURES_PER_SCORE, WRONG_ANSWER_SHARE
from adapop.paths import SHIPPED, version
from adapop.popularity.corpus import COMBINE
from adapop.popularity.infinigram import INDEXES
from adapop.popularity.wikidata import FORMULAS
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import ALIAS, KINDS
from adapop.probes.recovery.choice import RECOVERY
from adapop.runs.files import FULL

FACTS = f"{', '.join(ENTRIES)}, or a CSV, TSV, JSON, JSONL or Parquet file of facts"
DROP_BAD = "leave out facts whose score cannot be read"

ABOUT_ALL = (
    "COMMAND --help lists the options of a command. With --json a command prints one JSON object a "
    "line; run and resume one for each event. Runs live in ~/.adapop/runs, or where ADAPOP_RUNS "
    "points. Exit status: 0; 1 for a run that failed or would be in vain; 2 for an error in what "
    "was asked; 3 for a run that made nothing forgotten."
)
EXAMPLES = {
    "score": "score facts.csv --proxy wikidata --out scored.csv",
    "reword": "reword facts.csv --out reworded.csv",
    "beta": "beta scored.csv --anchors quantiles",
    "agree": "agree wikidata.csv corpus.csv",
    "run": "run --facts facts.csv --model ./my-model --method adapop --lr 5e-4 --rank 16 "
    "--measure end",
    "check": "check facts.csv --model ./my-model --known-only --out known.jsonl",
    "resume": "resume adapop-0123456789abcdef",
    "runs": "runs --json",
    "probe": 'probe adapop-0123456789abcdef --prompt "Who wrote Emma?" --gold Austen',
    "tokens": "tokens --model ./my-model --facts facts.csv --first 3",
    "report": "report adapop-0123456789abcdef wga-0123456789abcdef --out report.html",
    "export": "export adapop-0123456789abcdef --merged --out my-model",
    "page": "page",
    "build": "sandbox build --seed 1 --out my-sandbox",
    "card": "sandbox card --folder my-sandbox",
    "corpus": "sandbox corpus --out corpus.txt",
    "examples": "sandbox examples --out my-examples",
    "states": "sandbox states --out my-states.json",
    "cities": "cities --out my-cities",
    "bench": "bench main --quick",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status: 0; 1 if a run failed or would be in vain; 2 for a
    wrong request; 3 for one that made nothing forgotten; 130 after Ctrl-C."""
    words = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(words)
    try:
        _check_text(words)
        return options.command(options) or 0
    except AdaPopError as error:
        printing.say(printing.error_text(error), file=sys.stderr)
        return 2
    except BrokenPipeError:  # what reads our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # of no file, and so no refusal of a disk
        if error.filename is None and error.errno not in FULL:
            raise
        printing.say(
            f"error: {error.filename or 'what is to be written'} cannot be used "
            f"({error.strerror}).\n"
            "  Check that it is there and that you may write to it, or choose another place.",
            file=sys.stderr,
        )
        return 2
    except BaseException as error:
        if not _was_interrupted(error):
            raise
        printing.say("\ninterrupted; finished epochs and look-ups are kept", file=sys.stderr)
        return 130


def _check_text(words: Sequence[str]) -> None:
    """Refuses what was typed in another encoding than UTF-8, for it could be written nowhere:
    ConfigError."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{truncated(word)!r} is not UTF-8.", "Type it anew, or rename the file."
            ) from None


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether it comes from Ctrl-C. Python 3.11 and libraries make errors of their own of one that
    meets an import."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _was_interrupted(error.__cause__)
    )


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        printing.say(f"adapop {version()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Every command and option there is."""
    top = printing.Parser(
        prog="python -m adapop",
        description="Unlearning that knows how famous a fact is.",
        epilog=ABOUT_ALL,
    )
    top.add_argument(
        "--version", action=_Version, nargs=0, help="which version this is, and which commit"
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _score_commands(commands)
    _run_commands(commands)
    _look_commands(commands)
    _sandbox_commands(commands)
    return top


def _score_commands(commands) -> None:
    score = _command(commands, "score", scores.score, "ask a proxy how popular each fact is")
    score.add_argument("facts", help=FACTS)
    _reading(score)
    score.add_argument(
        "--proxy", default="wikidata", choices=tuple(scores.PROXIES), help="the source of scores"
    )
    score.add_argument(
        "--out", type=Path, help="write the scored set to a .csv or .jsonl file, to use as FACTS"
    )
    score.add_argument(
        "--formula", default="sitelinks+statements", choices=tuple(FORMULAS), help="wikidata"
    )
    score.add_argument(
        "--language", default="en", help="wikidata, pageviews: of the names and the Wikipedia"
    )
    score.add_argument(
        "--year", type=int, help="pageviews: whose months are averaged; default the last"
    )
    score.add_argument(
        "--index", default=next(iter(INDEXES)), choices=tuple(INDEXES), help="infinigram"
    )
    score.add_argument(
        "--combine", default="subject+object", choices=tuple(COMBINE), help="infinigram and corpus"
    )
    score.add_argument(
        "--corpus", type=Path, help="corpus: a text file or folder, one document a line"
    )
    score.add_argument(
        "--model", help="judge: a local model (Hub id or folder) instead of $ADAPOP_JUDGE_MODEL"
    )
    score.add_argument("--column", help="column: which column of the file holds the score")
    score.add_argument(
        "--value", type=float, default=100.0, help="constant: the score of every fact"
    )
    score.add_argument(
        "--sigma", type=float, default=1.0, help="noisy: spread of the log-normal noise"
    )
    score.add_argument(
        "--share",
        type=float,
        default=0.5,
        help="swapped, swapped-tiers: share of the pairs that trade scores",
    )
    score.add_argument(
        "--seed", type=int, default=0, help="shuffled, noisy, swapped, swapped-tiers"
    )
    score.add_argument(
        "--prompt", type=Path, help="judge: its instructions, from a file, instead of ours"
    )
    score.add_argument("--refresh", action="store_true", help="ask again what is already known")

    reword = _command(
        commands, "reword", scores.reword, "let the judge write other ways to ask each fact", False
    )
    reword.add_argument("facts", help=FACTS)
    _reading(reword)
    reword.add_argument(
        "--out", type=Path, required=True, help="the set with its rewordings, .csv or .jsonl"
    )
    reword.add_argument(
        "--model", help="a local model (Hub id or folder) instead of $ADAPOP_JUDGE_MODEL"
    )
    reword.add_argument("--refresh", action="store_true", help="ask again what is already known")

    beta = _command(commands, "beta", scores.beta, "score, exponent and regime of every fact")
    beta.add_argument("facts", nargs="?", default=SANDBOX, help=FACTS)
    _reading(beta)
    beta.add_argument(
        "--anchors", default="auto", help="auto, paper, quantiles, or score:beta,score:beta"
    )

    agree = _command(commands, "agree", scores.agree, "do two scorings of the same facts agree?")
    agree.add_argument("first", help="a scored file, or a set by name")
    agree.add_argument("second")
    agree.add_argument("--drop-bad", action="store_true", help=DROP_BAD)
    agree.add_argument("--anchors", default="auto", help="as for beta")
    agree.add_argument(
        "--model",
        help="say of the facts that differ most whether this model knows them: its recall",
    )


def _run_commands(commands) -> None:
    run = _command(
        commands, "run", runs.run, "unlearn facts; by default the sandbox's, with AdaPop"
    )
    run.add_argument(
        "--config",
        type=Path,
        help="a run's config.json: that run again, on the facts.jsonl beside it",
    )
    run.add_argument("--facts", help=f"{FACTS}; default sandbox")
    _reading(run)
    add_run_options(run)
    run.add_argument(
        "--yes",
        action="store_true",
        help="start also where the look beforehand says it would be in vain",
    )
    run.add_argument(
        "--out",
        type=Path,
        help="where the run's folder is made; default $ADAPOP_RUNS or ~/.adapop/runs",
    )

    look = _command(
        commands,
        "check",
        runs.check,
        "look before a run: what the model knows, how long it would take",
    )
    look.add_argument("facts", help=FACTS)
    look.add_argument("--config", type=Path, help="a run's config.json, for its settings")
    _reading(look)
    add_run_options(look)
    look.add_argument(
        "--out", type=Path, help="write the facts as they would be used to a .jsonl file"
    )

    resume = _command(commands, "resume", runs.resume, "go on with a stopped or interrupted run")
    resume.add_argument("run")
    listing = _command(commands, "runs", listed.runs, "list the runs, newest first, or delete some")
    listing.add_argument(
        "--delete", nargs="+", metavar="RUN", help="delete these for good, by name"
    )


def _look_commands(commands) -> None:
    probe = _command(commands, "probe", probes.probe, "ask the original and the unlearned model")
    probe.add_argument("run")
    probe.add_argument(
        "--facts", help="fact ids, separated by commas; default: eight from rare to famous"
    )
    probe.add_argument("--prompt", help="a prompt of your own instead")
    probe.add_argument(
        "--gold", default="", help="its right answer, to see rank and log-probability"
    )
    probe.add_argument(
        "--kinds",
        help=f"all, or some of: {', '.join((*KINDS, ALIAS, *FORM_OF_WAY))}; forget, retain and "
        f"holdout facts",
    )
    probe.add_argument(
        "--per-tier", type=int, help="with --kinds: at most so many facts of a group and tier"
    )
    probe.add_argument(
        "--cosine", action="store_true", help="with --kinds: also MiniLM cosine (needs its weights)"
    )
    probe.add_argument("--recovery", help=f"all, or some of: {', '.join(RECOVERY)}")
    probe.add_argument(
        "--capability",
        metavar="TASKS",
        help="mmlu, hellaswag (of lm-eval) and RWKU's, as rwku-general",
    )
    probe.add_argument(
        "--limit",
        type=int,
        help="with --capability: at most so many questions a task, for a quick look",
    )

    token = _command(
        commands,
        "tokens",
        tokens.tokens,
        "which tokens of a fact are scored, and why the others are not",
    )
    token.add_argument("--model", default=SANDBOX, help=MODELS)
    token.add_argument("--facts", default=SANDBOX, help=FACTS)
    _reading(token)
    token.add_argument(
        "--first",
        type=int,
        default=5,
        help="with --facts: how many of its facts to forget; default 5",
    )
    token.add_argument("--question", help="one question instead")
    token.add_argument("--answer", help="its right answer")
    token.add_argument("--system", help="system prompt, as for run")
    ways = tuple(way for way in SETTINGS["asking"].choices if way != "auto")
    token.add_argument(
        "--asking", default="chat", choices=ways, help="in chat, or after three examples of --facts"
    )
    token.add_argument(
        "--run",
        help="some facts of this run instead, asked as it asks, answers where it scores them",
    )
    token.add_argument(
        "--include-tail", action="store_true", help="score the end of the turn as well"
    )

    report = _command(
        commands, "report", probes.report, "one run or several as a page, or one as a .zip", False
    )
    report.add_argument("runs", nargs="+", metavar="RUN")
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), help="an .html or .zip file"
    )
    report.add_argument("--title", default="", help="a title of your own")

    taken = _command(
        commands, "export", probes.export, "take a run's model home: its adapter, or merged weights"
    )
    taken.add_argument("run")
    kind = taken.add_mutually_exclusive_group()
    kind.add_argument("--adapter", action="store_true", help="as peft loads it (the default)")
    kind.add_argument(
        "--merged",
        action="store_true",
        help="the whole model, checked against the adapter beside it",
    )
    taken.add_argument("--out", type=Path, required=True, help="a folder that is new or empty")
    taken.add_argument(
        "--push", default="", metavar="YOU/NAME", help="also send it to the Hub, as a private one"
    )


def _sandbox_commands(commands) -> None:
    shipped = commands.add_parser(
        "sandbox", help="the models we ship: build one, or show what it knows"
    )
    parts = shipped.add_subparsers(required=True, metavar="build|card|corpus|examples|states")
    build = _command(
        parts, "build", sandbox.build, "pretrain the model of a world from nothing", False
    )
    _of_world(build)
    build.add_argument("--seed", type=int, default=0)
    build.add_argument(
        "--wrong-share",
        type=float,
        default=WRONG_ANSWER_SHARE,
        help="share of exposures with a wrong answer",
    )
    build.add_argument(
        "--hidden", type=int, default=128, help="width of the model, a multiple of 4"
    )
    build.add_argument(
        "--exposures", type=float, default=EXPOSURES_PER_SCORE, help="exposures per point of score"
    )
    build.add_argument(
        "--spread", type=float, default=1.0, help="range of exposures: 1 as shipped, 0 all alike"
    )
    build.add_argument("--oracle", action="store_true", help="without the facts to forget")
    build.add_argument("--out", type=Path, help="default: where the shipped one lies")
    card = _command(
        parts, "card", sandbox.card, "recall by exposure level, template and wrapper", False
    )
    _of_world(card)
    card.add_argument(
        "--folder", type=Path, default=None, help="another build than the shipped one"
    )

    corpus = _command(
        parts,
        "corpus",
        sandbox.corpus,
        "write the pretraining corpus as text, an example a line",
        False,
    )
    _of_world(corpus)
    corpus.add_argument("--out", type=Path, required=True)
    corpus.add_argument("--seed", type=int, default=0)

    examples = _command(
        parts, "examples", sandbox.examples, "make the six runs that ship again, seed 0", False
    )
    examples.add_argument("--out", type=Path, default=Path("assets/examples"))

    about = "record the end states that the Story moves between, seed 0"
    states = _command(parts, "states", sandbox.states, about, False)
    states.add_argument("--out", type=Path, default=Path("assets/states.json"))

    cities = _command(
        commands, "cities", sandbox.cities, "draw the set of cities again from GeoNames", False
    )
    cities.add_argument("--seed", type=int, default=0)
    cities.add_argument(
        "--out", type=Path, default=Path("assets/sets"), help="a folder; default assets/sets"
    )

    _command(commands, "page", page.page, "open the app: the same on a page of your browser", False)
    bench.add_options(
        _command(commands, "bench", bench.bench, "experiments on the sandbox, and its speed", False)
    )


def _of_world(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--world", default=SANDBOX, choices=tuple(SHIPPED), help="which of the shipped worlds"
    )


def _reading(command: argparse.ArgumentParser) -> None:
    """The options on how a file of facts is read."""
    command.add_argument(
        "--columns", help="which column holds what, if not guessed: question=prompt,answer=reply"
    )
    command.add_argument("--drop-bad", action="store_true", help=DROP_BAD)


def _command(
    commands, name: str, function, text: str, speaks_json: bool = True
) -> argparse.ArgumentParser:
    epilog = f"example: python -m adapop {EXAMPLES[name]}"
    added = commands.add_parser(name, help=text, description=text, epilog=epilog)
    if speaks_json:
        added.add_argument("--json", action="store_true", help="one JSON object a line")
    added.set_defaults(command=function)
    return added
