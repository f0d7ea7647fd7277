"""The command that serves the page, for an installed package without app.py."""

import argparse
import os
import sys

from adapop.limits import check_port


def page(options: argparse.Namespace) -> None:
    """`page`: serves the app until Ctrl-C, as `python app.py` does."""
    check_port()
    from adapop.service.zerogpu import lender
    from adapop.ui.page import launch  # and with it Gradio, which reads the port

    launch(lender())
    sys.stdout.flush()
    os._exit(130)  # without waiting for the current run, which can be resumed
