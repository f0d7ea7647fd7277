"""`python -m adapop`, and the `adapop` command."""

import os
import signal
import sys
import threading


def main() -> int:
    """Runs the command line; returns the exit status. Ctrl-C ends it without a traceback, even
    during import or exit."""
    # so that a user's own method is found, by `adapop` as by `python -m adapop`
    sys.path.append(os.getcwd())
    handler = signal.getsignal(signal.SIGINT)
    # libraries in other languages panic if their import is interrupted
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from adapop import cli

    signal.signal(signal.SIGINT, handler)
    sys.unraisablehook = _interrupted_again
    try:
        return cli.main()
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupted_again(ignored) -> None:
    """Python ignores a Ctrl-C during a `__del__`: this sends the signal again 0.05 s later."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    sys.exit(main())
