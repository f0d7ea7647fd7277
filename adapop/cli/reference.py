"""The command line as a page: every command and option in Markdown, read from the parser itself.

`python -m adapop.cli.reference > assets/docs/cli.md` writes the page that ships.
"""

import argparse

from adapop.cli import parser

INTRODUCTION = """\
# The command line

Made from the parser by `python -m adapop.cli.reference > assets/docs/cli.md`. `--help` behind a command says the same.

With `--json` a command prints one JSON object a line; `run` and `resume` one for each event. Runs live in
`~/.adapop/runs`, or where `ADAPOP_RUNS` points: configuration, facts with scores and β, an append-only
`events.jsonl`, and a checkpoint an epoch (a peft adapter). The exit status is 0, 1 for a run that failed, 2 for an
error in what was asked. What tries the app's promises is run from `tests/reliability`: see
[Reliability](reliability.md)."""


def reference(top: argparse.ArgumentParser) -> str:
    """The whole page, the same on every version of Python and for every width of a terminal."""
    sections = [_section(name, command) for name, command in commands(top).items()]
    return "\n\n".join([INTRODUCTION, *sections]) + "\n"


def commands(top: argparse.ArgumentParser | None = None) -> dict[str, argparse.ArgumentParser]:
    """Every command by its name, "sandbox build" too, in the parser's order; of the whole command line by default."""
    found = {}
    for action in (top or parser())._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                below = commands(command)
                found |= {f"{name} {part}": one for part, one in below.items()} or {name: command}
    return found


def _section(name: str, command: argparse.ArgumentParser) -> str:
    actions = [action for action in command._actions if not isinstance(action, argparse._HelpAction)]
    places = [_shown(action) for action in actions if not action.option_strings or action.required]
    example = f"For {command.epilog.replace(': ', ': `', 1)}`"
    lines = [f"## {name}", f"`{' '.join([command.prog, *places])}`", _sentence(command.description), example]
    rows = ["| | |", "|---|---|", *(f"| `{_shown(action)}` | {_about(action)} |" for action in actions)]
    return "\n\n".join([*lines, "\n".join(rows)] if actions else lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith("?") else ".")


def _shown(action: argparse.Action) -> str:
    """The option with what comes after it, or what stands in its place."""
    value = str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return {"?": f"[{value}]", "+": f"{value} ..."}.get(action.nargs, value)
    return action.option_strings[0] if action.nargs == 0 else f"{action.option_strings[0]} {value}"


def _about(action: argparse.Action) -> str:
    """What it is for, what it may be, and what it is where nobody says."""
    said = [action.help or ""]
    if action.choices:
        said.append(", ".join(f"`{choice}`" for choice in action.choices))
    if action.default not in (None, False, "") and "default" not in said[0]:
        said.append(f"default `{action.default}`")
    return "; ".join(filter(None, said)).replace("|", r"\|")


if __name__ == "__main__":
    print(reference(parser()), end="")
