"""`python -m adapop`, and the `adapop` command."""

import os
import signal
import sys


def main() -> int:
    """Runs the command line. Ctrl-C ends it without a traceback also while it is loaded and while it ends."""
    sys.path.append(os.getcwd())  # where a method of one's own is looked for, by `adapop` as by `python -m adapop`
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # libraries in other languages panic when their import is interrupted
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from adapop import cli

    signal.signal(signal.SIGINT, handler)
    try:
        return cli.main()
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
