"""The command line as a page: every command and option in Markdown, read from the parser itself.

`python -m adapop.cli.reference > assets/docs/cli.md` writes the page that ships.
"""

import argparse

from adapop.cli import parser
from adapop.paths import ASSETS


def reference(top: argparse.ArgumentParser) -> str:
    """The whole page, the same on every version of Python and for every width of a terminal."""
    introduction = (ASSETS / "templates" / "cli.md").read_text(encoding="utf-8")
    sections = [_section(name, command) for name, command in commands(top).items()]
    return "\n\n".join([introduction.strip(), *sections]) + "\n"


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
