"""Every command of the command line with its options."""

import argparse
from collections.abc import Callable
from pathlib import Path

from adapop.cli import bench, printing, probes, runs, sandbox, scores, serving, tokens
from adapop.cli.options import MODELS, add_run_options
from adapop.config.run import SETTINGS
from adapop.facts.catalog import ENTRIES
from adapop.facts.fact import SANDBOX
from adapop.facts.retain import RETAIN
from adapop.facts.world.world import EXPOSURES_PER_SCORE, WRONG_ANSWER_SHARE
from adapop.paths import SHIPPED, version
from adapop.popularity.corpus import COMBINE
from adapop.popularity.infinigram import INDEXES
from adapop.popularity.wikidata import FORMULAS
from adapop.probes.inspection import MOST_SAMPLES, ORACLE, Drawing
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import ALIAS, CLUES, KINDS, TWO_HOPS
from adapop.probes.recovery.choice import RECOVERY
from adapop.runs.delivered import DTYPES
from adapop.runs.trackers import TRACKERS

FACTS = f"{', '.join(ENTRIES)}, or a CSV, TSV, JSON, JSONL or Parquet file of facts"
REFRESH = "look up again what is already cached"
DROP_BAD = "leave out facts whose score cannot be read"
JUDGE = "a local model (Hub id or folder) instead of $ADAPOP_JUDGE_MODEL"
ABOUT_ALL = (
    "COMMAND --help lists the options of a command. With --json a command prints one JSON object "
    "per line; run and resume print one per event. Runs live in ~/.adapop/runs, or where "
    "ADAPOP_RUNS points. Exit status: 0 for success; 1 for a run that failed or would be useless; "
    "2 for a wrong request; 3 for a run that did not unlearn."
)
EXIT_STATUS = (
    "Exit status: 0 if the run unlearned, that is, in each form of the question that was "
    "measured the model answers at most half of what the original answered (or nothing was "
    "measured); 3 if it finished and did not unlearn; 1 if it failed or would be useless. "
)
RUN = "run --facts facts.csv --model ./my-model --method adapop --lr 5e-4 --rank 16 --measure end"
EXAMPLES = {
    "score": "score facts.csv --proxy wikidata --out scored.csv",
    "reword": "reword facts.csv --out reworded.csv",
    "beta": "beta scored.csv --anchors quantiles",
    "agree": "agree wikidata.csv corpus.csv",
    "run": RUN,
    "check": "check facts.csv --model ./my-model --known-only --out known.jsonl",
    "adopt": "adopt --original ./my-model --unlearned ./unlearned --facts facts.csv",
    "resume": "resume adapop-0123456789abcdef",
    "runs": "runs --json",
    "probe": 'probe adapop-0123456789abcdef --prompt "Who wrote Emma?" --gold Austen',
    "ask": 'ask adapop-0123456789abcdef --prompt "Who wrote Emma?" --gold Austen --beside oracle',
    "tokens": "tokens --model ./my-model --facts facts.csv --first 3",
    "report": "report adapop-0123456789abcdef wga-0123456789abcdef --out report.html",
    "export": "export adapop-0123456789abcdef --merged --out my-model",
    "page": "page",
    "mcp": "mcp",
    "build": "sandbox build --seed 1 --out my-sandbox",
    "examples": "sandbox examples --out my-examples",
    "bench": "bench main --quick",
}
FLAG = {"action": "store_true"}


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        printing.say(f"adapop {version()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of all commands with their options."""
    about = "Unlearning that knows how famous a fact is."
    top = printing.Parser(prog="python -m adapop", description=about, epilog=ABOUT_ALL)
    which = "print the version and the commit"
    top.add_argument("--version", action=_Version, nargs=0, help=which)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _score_commands(commands)
    _run_commands(commands)
    _ask_commands(commands)
    _result_commands(commands)
    _sandbox_commands(commands)
    return top


def _score_commands(commands) -> None:
    score = _command(commands, "score", scores.score, "look up how popular each fact is")
    add = score.add_argument
    _facts(score)
    add("--proxy", default="wikidata", choices=tuple(scores.PROXIES), help="the source of scores")
    add("--out", type=Path, help="write the scored set to a .csv or .jsonl file, to use as FACTS")
    what = "wikidata: what is added up"
    add("--formula", default="sitelinks+statements", choices=tuple(FORMULAS), help=what)
    language = "wikidata, pageviews: language of the names and of Wikipedia"
    add("--language", default="en", help=language)
    add("--year", type=int, help="pageviews: the year to average over; default the last")
    corpus = "infinigram: the corpus"
    add("--index", default=next(iter(INDEXES)), choices=tuple(INDEXES), help=corpus)
    what = "infinigram, corpus: what is counted"
    add("--combine", default="subject+object", choices=tuple(COMBINE), help=what)
    add("--corpus", type=Path, help="corpus: a text file or folder, one document a line")
    add("--model", help=f"judge: {JUDGE}")
    add("--column", help="column: which column of the file holds the score")
    add("--value", type=float, default=100.0, help="constant: the score of every fact")
    add("--sigma", type=float, default=1.0, help="noisy: spread of the log-normal noise")
    share = "swapped, swapped-tiers: share of the pairs that trade scores"
    add("--share", type=float, default=0.5, help=share)
    add("--seed", type=int, default=0, help="seed of shuffled, noisy, swapped and swapped-tiers")
    add("--prompt", type=Path, help="judge: its instructions, from a file, instead of ours")
    add("--refresh", **FLAG, help=REFRESH)

    about = "let a language model (the judge) reword each question"
    reword = _command(commands, "reword", scores.reword, about, False)
    add = reword.add_argument
    _facts(reword)
    add("--out", type=Path, required=True, help="the set with its rewordings, .csv or .jsonl")
    add("--model", help=JUDGE)
    add("--refresh", **FLAG, help=REFRESH)

    beta = _command(commands, "beta", scores.beta, "show score, exponent and regime of every fact")
    _facts(beta, nargs="?", help=f"{FACTS}; default sandbox")
    anchors = "auto, paper, quantiles, or score:beta,score:beta"
    beta.add_argument("--anchors", default="auto", help=anchors)

    agree = _command(commands, "agree", scores.agree, "compare two scorings of the same facts")
    add = agree.add_argument
    add("first", help="a scored file, or a set by name")
    add("second")
    add("--drop-bad", **FLAG, help=DROP_BAD)
    add("--anchors", default="auto", help="as for beta")
    known = "also show this model's recall of the facts that differ most"
    add("--model", help=known)


def _run_commands(commands) -> None:
    about = "unlearn facts; by default the sandbox's, with AdaPop"
    run = _command(commands, "run", runs.run, about, ending=EXIT_STATUS)
    add = run.add_argument
    again = "a run's config.json: that run again, on the facts.jsonl beside it"
    add("--config", type=Path, help=again)
    _facts(run, "--facts", help=f"{FACTS}; default sandbox")
    add_run_options(run)
    add("--yes", **FLAG, help="start even if the check beforehand says it would be useless")
    tracker = "also log losses, measurements and replies to this tracker, which must be installed"
    add("--log", choices=tuple(TRACKERS), help=tracker)
    where = "where the run's folder is made; default $ADAPOP_RUNS or ~/.adapop/runs"
    add("--out", type=Path, help=where)

    about = "open a model that was unlearned elsewhere, beside its original, as a run"
    pair = _command(commands, "adopt", runs.adopt, about, ending=EXIT_STATUS)
    add = pair.add_argument
    base = "default for an adapter: its base"
    add("--original", default="", help=f"the model before unlearning: {MODELS}; {base}")
    place = "a folder, a Hub id (NAME@REVISION), a GGUF file, or an adapter's folder or Hub id"
    add("--unlearned", required=True, help=f"the model after unlearning: {place}")
    add("--oracle", default="", help=f"a model that never learned the facts to forget: {place}")
    _facts(pair, "--facts", required=True, help=FACTS)
    retain = f"the facts to retain: {', '.join(RETAIN)}, or a file of them; default own"
    add("--retain", help=retain)
    add("--log", choices=tuple(TRACKERS), help=tracker)
    how = "a setting of asking or measuring, as for run"
    add("--set", action="append", metavar="NAME=VALUE", help=how)
    where = "where the run's folder is made; default $ADAPOP_RUNS or ~/.adapop/runs"
    add("--out", type=Path, help=where)

    about = "check a run beforehand: what the model knows, and how long it would take"
    look = _command(commands, "check", runs.check, about)
    add = look.add_argument
    add("--config", type=Path, help="a run's config.json, for its settings")
    _facts(look, nargs="?", help=f"{FACTS}; default sandbox")
    add_run_options(look)
    add("--out", type=Path, help="write the facts, as a run would use them, to a .jsonl file")

    about = "continue a stopped or interrupted run"
    resume = _command(commands, "resume", runs.resume, about, ending=EXIT_STATUS)
    resume.add_argument("run")
    resume.add_argument("--log", choices=tuple(TRACKERS), help=tracker)
    listing = _command(commands, "runs", runs.runs, "list the runs, newest first, or delete some")
    gone = "delete the runs with these ids for good"
    listing.add_argument("--delete", nargs="+", metavar="RUN", help=gone)


def _ask_commands(commands) -> None:
    probe = _command(commands, "probe", probes.probe, "ask the original and the unlearned model")
    add = probe.add_argument
    add("run")
    add("--facts", help="fact ids, separated by commas; default: eight facts from rare to popular")
    add("--prompt", help="a prompt of your own instead")
    add("--gold", default="", help="its right answer, to show its rank and log-probability")
    kinds = ", ".join((*KINDS, ALIAS, TWO_HOPS, CLUES, *FORM_OF_WAY))
    add("--kinds", help=f"ask all groups of facts in these forms: all, or some of: {kinds}")
    add("--per-tier", type=int, help="with --kinds: at most this many facts of each group and tier")
    add("--cosine", **FLAG, help="with --kinds: also measure MiniLM cosine (needs its weights)")
    add("--recovery", help=f"all, or some of: {', '.join(RECOVERY)}")
    tasks = "mmlu, hellaswag (of lm-eval), or one of RWKU's, such as rwku-general"
    add("--capability", metavar="TASKS", help=tasks)
    limit = "with --capability: at most this many questions of each task"
    add("--limit", type=int, help=limit)

    about = "show several models' replies to one question token by token, or draw samples"
    one = _command(commands, "ask", tokens.ask, about)
    add = one.add_argument
    add("run")
    add("--prompt", required=True, help="the question")
    add("--gold", default="", help="its right answer")
    add("--begun", default="", help="the beginning of the answer, which every model continues")
    turn = "an earlier turn, which every model answers first; may be repeated"
    add("--earlier", action="append", default=[], metavar="TEXT", help=turn)
    beside = f"one more column: another run, or {ORACLE}; may be repeated"
    add("--beside", action="append", default=[], metavar="RUN", help=beside)
    add("--epoch", type=int, help="the epoch whose adapter is asked; default the run's result")
    drawn = f"draw this many replies of each model instead, up to {MOST_SAMPLES}"
    add("--samples", type=int, help=drawn)
    plain = Drawing()
    add("--temperature", type=float, default=plain.temperature, help="temperature of the samples")
    add("--top-p", type=float, default=plain.top_p, help="top-p of the samples")
    add("--seed", type=int, default=plain.seed, help="seed of the samples")
    add("--length", type=int, default=plain.most, help="maximum number of tokens of a sample")

    about = "show which tokens of a fact are scored, and why the others are not"
    token = _command(commands, "tokens", tokens.tokens, about)
    add = token.add_argument
    add("--model", default=SANDBOX, help=MODELS)
    _facts(token, "--facts", default=SANDBOX)
    first = "with --facts: show this many of its facts to forget; default 5"
    add("--first", type=int, default=5, help=first)
    add("--question", help="one question instead")
    add("--answer", help="its right answer")
    add("--system", help="system prompt, as for run")
    ways = tuple(way for way in SETTINGS["asking"].choices if way != "auto")
    where = "in chat, or after three examples of --facts"
    add("--asking", default="chat", choices=ways, help=where)
    own = "the first facts to forget of this run instead, asked and scored as the run does"
    add("--run", help=own)
    add("--include-tail", **FLAG, help="score the end of the turn as well")


def _result_commands(commands) -> None:
    about = "write one or several runs as a page, or one as a .zip"
    add = _command(commands, "report", probes.report, about).add_argument
    add("runs", nargs="+", metavar="RUN")
    add("--out", type=Path, default=Path("report.html"), help="an .html or .zip file")
    add("--title", default="", help="the title of the report")
    add("--by", default="", metavar="NAME", help="who made the run, for a line of the report")
    add("--redacted", **FLAG, help="show facts as salted hashes; no prompt or reply")
    unmeasured = "of a .zip: do not load and measure the adapter; its card says so"
    add("--unmeasured", **FLAG, help=unmeasured)

    about = "export a run's model: its adapter, or merged weights"
    taken = _command(commands, "export", probes.export, about)
    add, kind = taken.add_argument, taken.add_mutually_exclusive_group()
    add("run")
    kind.add_argument("--adapter", **FLAG, help="as peft loads it (the default)")
    whole = "the whole model, merged in float32, loaded again from its files and measured"
    kind.add_argument("--merged", **FLAG, help=whole)
    types = "type of merged weights; default bfloat16, or float32 if facts come back in bfloat16"
    add("--dtype", choices=DTYPES, help=types)
    add("--unmeasured", **FLAG, help="do not load and measure the files; the card says so")
    add("--out", type=Path, required=True, help="a folder that is new or empty")
    add("--push", default="", metavar="YOU/NAME", help="also send it to the Hub as a private model")


def _sandbox_commands(commands) -> None:
    about = "rebuild what is included"
    shipped = commands.add_parser("sandbox", help=about)
    parts = shipped.add_subparsers(required=True, metavar="build|examples")
    about = "build one included part from scratch, for example a world's model"
    build = _command(parts, "build", sandbox.build, about, False)
    add = build.add_argument
    which = "which of the included worlds"
    add("--world", default=SANDBOX, choices=tuple(SHIPPED), help=which)
    part = (
        "model (default), pretrained, with its card; corpus: its pretraining text, an example a "
        "line; states: those that the Story moves through, seed 0; cities: the set, from GeoNames; "
        "places: the facts of `bench survival`"
    )
    add("--part", default="model", choices=sandbox.PARTS, help=part)
    add("--seed", type=int, default=0)
    wrong = "share of exposures with a wrong answer"
    add("--wrong-share", type=float, default=WRONG_ANSWER_SHARE, help=wrong)
    add("--hidden", type=int, default=128, help="width of the model, a multiple of 8")
    add("--exposures", type=float, default=EXPOSURES_PER_SCORE, help="exposures per point of score")
    add("--spread", type=float, default=1.0, help="range of exposures: 1 as included, 0 all equal")
    add("--oracle", **FLAG, help="build it without the facts to forget")
    where = (
        "a folder, or a file for corpus and states; default: where the included one is, "
        "for corpus ./corpus.txt"
    )
    add("--out", type=Path, help=where)

    about = "make the six included example runs again, seed 0"
    examples = _command(parts, "examples", sandbox.examples, about, False)
    examples.add_argument("--out", type=Path, default=Path("assets/examples"))

    _command(commands, "page", serving.page, "serve the app for your browser", False)
    about = "serve tools to agents over the Model Context Protocol: to check, ask and report"
    _command(commands, "mcp", serving.mcp, about, False)
    about = "repeat the experiments, or measure speed"
    bench.add_options(_command(commands, "bench", bench.bench, about, False))


def _facts(command: argparse.ArgumentParser, name: str = "facts", **named: object) -> None:
    """The argument that names a set of facts, and the options that say how its file is read."""
    command.add_argument(name, **{"help": FACTS, **named})
    if named.get("nargs") == "?":
        command.add_argument(
            "--facts", dest="named_facts", help="another way to name the facts, as in `run`"
        )
    columns = "which column holds what, where the guess is wrong: question=prompt,answer=reply"
    command.add_argument("--columns", help=columns)
    command.add_argument("--drop-bad", **FLAG, help=DROP_BAD)


def _command(
    commands,
    name: str,
    function: Callable,
    about: str,
    speaks_json: bool = True,
    ending: str = "",
) -> argparse.ArgumentParser:
    epilog = f"{ending}example: python -m adapop {EXAMPLES[name]}"
    added = commands.add_parser(name, help=about, description=about, epilog=epilog)
    if speaks_json:
        added.add_argument("--json", **FLAG, help="one JSON object a line")
    added.set_defaults(command=function)
    return added
