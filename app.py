"""Starts AdaPop Explorer: `python app.py`, or as a Hugging Face Space, where ZeroGPU lends the GPU by the call."""

import os
import sys

from adapop.errors import AdaPopError
from adapop.service.zerogpu import is_lent
from adapop.ui.page import launch


def lender():
    """What makes a function run on a GPU that is lent for so many seconds; None where nobody lends one."""
    if not is_lent():
        return None
    import spaces  # before torch, which the worker imports, and after gradio was told to be silent

    return lambda work, seconds: spaces.GPU(duration=seconds)(work)


if __name__ == "__main__":
    try:
        launch(lender())
    except AdaPopError as error:
        sys.exit(f"error: {error}")
    sys.stdout.flush()
    os._exit(130)  # Ctrl-C: do not wait for the run at work, which can be resumed whatever ends this process
