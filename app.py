"""Starts AdaPop Explorer: `python app.py`, or as a Hugging Face Space, where ZeroGPU lends the GPU by the call."""

import os

from adapop.ui.shell import launch


def lender():
    """What makes a function run on a GPU that is lent for so many seconds; None where nobody lends one."""
    if os.environ.get("SPACES_ZERO_GPU", "").lower() not in ("1", "t", "true"):
        return None
    import spaces  # before torch, which the worker imports, and after gradio was told to be silent

    return lambda work, seconds: spaces.GPU(duration=seconds)(work)


if __name__ == "__main__":
    launch(lender())
