"""`python -m adapop`, and the `adapop` command."""

import os
import signal
import sys
import threading


def main() -> int:
    """Runs the command line. Ctrl-C ends it without a traceback, even while it is loaded or while
    it ends."""
    # where a user's own method is looked for, whether by `adapop` or by `python -m adapop`
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
    """Python ignores a Ctrl-C that falls into a `__del__`: this sends it again after that."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(ignored)


if __name__ == "__main__":
    sys.exit(main())
