"""Every command of the command line, read from its parser."""

import argparse

from adapop.cli import parser


def commands(top: argparse.ArgumentParser | None = None) -> dict[str, argparse.ArgumentParser]:
    """Each command by its name, "sandbox build" too, in the parser's order; of the whole command
    line by default."""
    by_name = {}
    for action in (top or parser())._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                below = commands(command)
                parts = {f"{name} {part}": one for part, one in below.items()}
                by_name |= parts or {name: command}
    return by_name
