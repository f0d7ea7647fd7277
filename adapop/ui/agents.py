"""Tools for agents, by the Model Context Protocol: on stdin and stdout, or beside the page.

They read: they check, ask and report, and neither start a run nor write a file of their own. Over
stdin and stdout nothing is reachable from another machine or a page. Beside the page the gate looks
at their requests as at all others, and an app that strangers use serves none.
"""

import inspect
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Any

from adapop.errors import AdaPopError, ConfigError, RunError
from adapop.limits import is_public
from adapop.paths import version
from adapop.report.numbers import numbers_of
from adapop.runs.examples import example_of
from adapop.runs.run import runs_root
from adapop.service.links import owned
from adapop.service.worker import Worker
from adapop.ui.api import Api
from adapop.ui.api_scores import beta

if TYPE_CHECKING:
    from mcp.server import MCPServer

PATH = "/mcp"  # beside the page
ABOUT = (
    "AdaPop Explorer unlearns facts from language models and measures whether they are forgotten. "
    "`check` says what to expect of a run, `beta` what exponent each fact gets; `status`, `probe` "
    "and `report` read runs of this machine. Nothing here starts a run; a person does that with "
    "`python -m adapop run`."
)


def served_beside_page(worker: Worker) -> dict[str, Any]:
    """What the page's own server needs to serve the tools at `PATH`, as arguments of FastAPI;
    nothing unless ADAPOP_MCP is 1. Raises ConfigError: it is neither 0 nor 1, strangers use this
    app, or mcp is not installed."""
    text = os.environ.get("ADAPOP_MCP", "") or "0"
    if text not in ("0", "1"):
        raise ConfigError(f"ADAPOP_MCP is {text!r}.", "Set it to 0 or 1, or unset it.")
    if text == "0":
        return {}
    if is_public():
        message = "ADAPOP_MCP is for agents of this machine's owner, but strangers use this app."
        raise ConfigError(message, "Unset it, or run the app without ADAPOP_PUBLIC.")
    tools = server(worker)
    from mcp.server.transport_security import TransportSecuritySettings

    # the gate compares hosts and origins already
    open_to_all = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = tools.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=open_to_all,
    )
    return {"routes": app.routes, "lifespan": app.router.lifespan_context}


def server(worker: Worker) -> "MCPServer":
    """The tools over the runs of this machine. Raises ConfigError: mcp is not installed."""
    try:
        from mcp.server import MCPServer
    except ImportError:
        message = "Serving agents needs the package mcp (2 and up), which is not installed."
        raise ConfigError(message, 'pip install "mcp>=2,<3"') from None
    api = Api(worker)
    tools = MCPServer("AdaPop Explorer", version=version(), instructions=ABOUT)
    for endpoint in (api.check, beta, api.status, api.probe, report):
        about = " ".join(inspect.getdoc(endpoint).split())
        tools.add_tool(by_name(endpoint), endpoint.__name__, description=about)
    return tools


def report(run: str, redacted: bool = False) -> dict:
    """Every number of a run, as `python -m adapop report RUN --json` has them.

    Args:
        run: its id.
        redacted: facts by salted hashes.
    """
    its_run = example_of(run) or owned(run, runs_root())
    if its_run is None:
        raise RunError(f"There is no run {run!r} here.", "`python -m adapop runs` lists them.")
    return asdict(numbers_of(its_run, redacted))


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
