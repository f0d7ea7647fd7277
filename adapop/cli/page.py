"""The command that serves the page, for an installed package without app.py."""

import argparse
import os
import sys


def page(options: argparse.Namespace) -> None:
    """`page`: serves the app until Ctrl-C, as `python app.py` does."""
    from adapop.service.zerogpu import lender
    from adapop.ui.page import launch

    launch(lender())
    sys.stdout.flush()
    os._exit(130)  # without waiting for the current run, which can be resumed
