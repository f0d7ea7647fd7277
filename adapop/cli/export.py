"""The command that takes a run's model home."""

import argparse
from dataclasses import asdict

from adapop.cli import printing
from adapop.progress import Progress
from adapop.report.card import gguf
from adapop.runs.run import find_run


def export(options: argparse.Namespace) -> None:
    """`export`: the adapter or the merged model with a model card, and what to do with it."""
    from adapop.report.export import export as written

    run = find_run(options.run)
    done = written(run, options.out, options.merged, options.push, Progress(printing.progress_line))
    printing.progress_line("")
    if options.json:
        printing.say_json({**asdict(done), "folder": str(done.folder)})
        return
    printing.say(f"{done.folder}: {'the merged model' if options.merged else 'the adapter'}; its README.md loads it")
    if done.remarks:
        printing.say(*done.remarks)
    printing.say(f"for llama.cpp, in its folder: {gguf(run.config, str(done.folder), options.merged)}")
    if done.address:
        printing.say(f"sent to {done.address}, a private repository")
