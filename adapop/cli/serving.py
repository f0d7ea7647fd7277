"""The commands that serve: the page, and agents on this machine by the Model Context Protocol."""

import argparse
import os
import sys

from adapop.limits import check_port
from adapop.runs.run import runs_root


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
    from adapop.service.worker import Worker
    from adapop.ui.agents import server

    server(Worker(runs_root())).run("stdio")
    return 0
