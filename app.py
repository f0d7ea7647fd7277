"""Starts AdaPop Explorer: `python app.py`, or as a Hugging Face Space, where ZeroGPU lends the GPU
by the call."""

import gc
import os
import sys

from adapop.errors import AdaPopError
from adapop.limits import check_port
from adapop.service.zerogpu import lender

if __name__ == "__main__":
    gc.disable()  # until the page is served: what is imported and laid out stays, see `page.launch`
    try:
        check_port()
        from adapop.ui.page import launch  # and with it Gradio, which reads the port

        launch(lender())
    except AdaPopError as error:
        sys.exit(f"error: {error}")
    sys.stdout.flush()
    # Ctrl-C: do not wait for the run at work, which can be resumed whatever ends this process
    os._exit(130)
