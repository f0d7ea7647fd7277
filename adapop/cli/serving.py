"""The commands that serve: the page, and agents on this machine by the Model Context Protocol.

The tools of agents read: they check, ask and report, and neither start a run nor write a file of
their own. They talk by stdin and stdout: nothing is reachable from another machine or a page.
"""

import argparse
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any

from adapop.errors import AdaPopError, ConfigError, RunError
from adapop.limits import check_port
from adapop.paths import version
from adapop.runs.examples import example_of
from adapop.runs.run import runs_root

if TYPE_CHECKING:
    from mcp.server import MCPServer

ABOUT = (
    "AdaPop Explorer unlearns facts from language models and measures whether they are forgotten. "
    "`check` says what a run would be, `beta` what exponent each fact gets; `status`, `probe` and "
    "`report` read runs of this machine. Nothing here starts a run: that is "
    "`python -m adapop run`, which a person calls."
)


def page(options: argparse.Namespace) -> None:
    """`page`: serves the app until Ctrl-C, as `python app.py` does; also from an installed package,
    which has no app.py."""
    check_port()
    from adapop.service.zerogpu import lender
    from adapop.ui.page import launch  # and with it Gradio, which reads the port

    launch(lender())
    sys.stdout.flush()
    os._exit(130)  # without waiting for the current run, which can be resumed


def mcp(options: argparse.Namespace) -> int:
    """`mcp`: serves the tools until stdin closes. Raises ConfigError: mcp is not installed."""
    server().run("stdio")
    return 0


def server() -> "MCPServer":
    """The tools over the runs of this machine. Raises ConfigError: mcp is not installed."""
    try:
        from mcp.server import MCPServer
    except ImportError:
        message = "Serving agents needs the package mcp (2 and up), which is not installed."
        raise ConfigError(message, 'pip install "mcp>=2,<3"') from None
    from adapop.service.worker import Worker
    from adapop.ui.api import Api
    from adapop.ui.api_scores import ScoresApi

    worker = Worker(runs_root())
    api, scores = Api(worker), ScoresApi(worker)
    tools = MCPServer("AdaPop Explorer", version=version(), instructions=ABOUT)
    for endpoint in (api.check, scores.beta, api.status, api.probe, report):
        about = " ".join(inspect.getdoc(endpoint).split())
        tools.add_tool(by_name(endpoint), endpoint.__name__, description=about)
    return tools


def report(run: str, redacted: bool = False) -> dict:
    """Every number of a run, as `python -m adapop report RUN --json` has them.

    Args:
        run: its id.
        redacted: facts by salted hashes.
    """
    from adapop.report.numbers import numbers_of
    from adapop.service.links import owned

    found = example_of(run) or owned(run, runs_root())
    if found is None:
        raise RunError(f"There is no run {run!r} here.", "`python -m adapop runs` lists them.")
    return asdict(numbers_of(found, redacted))


def by_name(endpoint: Callable) -> Callable:
    """An endpoint called with its arguments by name, as agents do; its errors as messages."""
    from mcp.server.mcpserver.exceptions import ToolError

    signature = inspect.signature(endpoint, eval_str=True)

    @wraps(endpoint)
    async def called(**values: Any) -> dict:
        arguments = signature.bind(**values)
        arguments.apply_defaults()
        try:
            result = endpoint(*arguments.args)
            return await result if inspect.isawaitable(result) else result
        except AdaPopError as error:
            raise ToolError(str(error)) from error

    called.__signature__ = signature
    return called
