"""The command line, `python -m adapop`: runs a command. `--json` prints one object a line."""

import argparse
import os
import sys
from collections.abc import Sequence

from adapop.cli import printing
from adapop.cli.commands import parser
from adapop.errors import AdaPopError, ConfigError, truncated
from adapop.runs.files import FULL


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status: 0; 1 if a run failed or would be useless; 2 for a
    wrong request; 3 if a run did not unlearn (`runs.result`); 130 after Ctrl-C."""
    words = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(words)
    try:
        _settle_facts(options)
        _check_text(words, options)
        return options.command(options) or 0
    except AdaPopError as error:
        printing.say(printing.error_text(error), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None and error.errno not in FULL:
            raise  # not an error of a file or a full disk
        place = error.filename or "what is to be written"
        fix = "Check that it exists and that you may write to it, or choose another place."
        printing.say(f"error: {place} cannot be used ({error.strerror}).\n  {fix}", file=sys.stderr)
        return 2
    except BaseException as error:
        if not _was_interrupted(error):
            raise
        printing.say("\ninterrupted; finished epochs and look-ups are kept", file=sys.stderr)
        return 130


def _settle_facts(options: argparse.Namespace) -> None:
    """Takes --facts for the facts of a command that also has them without a name. Raises
    ConfigError: both are given."""
    named = getattr(options, "named_facts", None)
    if named is not None:
        if options.facts is not None:
            twice = f"{truncated(options.facts)!r} and --facts {truncated(named)!r}"
            raise ConfigError(f"The facts are given twice: {twice}.", "Leave one out.")
        options.facts = named


def _check_text(words: Sequence[str], options: argparse.Namespace) -> None:
    """Raises ConfigError: an argument is not valid UTF-8, or a name is empty (as "$M" may be)."""
    for name in ("facts", "model", "run"):
        if getattr(options, name, None) == "":
            raise ConfigError(f"{name} is empty.", "Name one, or leave it out.")
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            message = f"{truncated(word)!r} is not UTF-8."
            raise ConfigError(message, "Type it again, or rename the file.") from None


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether the error comes from Ctrl-C, even if an interrupted import turned it into another."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    return _was_interrupted(error.__cause__)
