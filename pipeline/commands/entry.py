"""Entry point of every `doit` command: signals, standard streams, then dispatch.

    .venv/bin/doit, written by bootstrap -> python -m pipeline -> main
    doit as its own package installs it  -> reads pyproject.toml, whose `loader` is TakeOver -> main
                                            in a project, its dodo.py -> firmline.dodo -> main
    firmline, which pip installs         -> firmline.__main__ -> main

The first one starts Python with SIGINT, SIGTERM and SIGHUP blocked, until the handlers here are installed. With the
second one, Python handles signals of the first tenths of a second. From here to `interruptible` of
pipeline.process.interruption, a signal ends the process with a message and its exit code; nothing needs cleaning up.

This module imports as little as possible.
"""

import gc
import sys
from typing import NoReturn

from pipeline.process.signals import receive_signals
from pipeline.process.streams import open_streams


def main() -> NoReturn:
    """Run this process's command line and exit with the command's exit code."""
    receive_signals()
    # Of what a command loads nothing becomes garbage: looking for it again and again is a tenth of a short one's time.
    gc.set_threshold(100_000, 20, 20)
    problem = open_streams()
    if problem:
        sys.stderr.write(f"ERROR: {problem}\n")
        sys.exit(1)
    from pipeline.commands.dispatch import run

    code = run(sys.argv[1:])
    # A write error during Python's shutdown would not be reported.
    sys.stdout.flush()
    receive_signals()
    # Skip the garbage collections of Python's shutdown: they take longer than many commands.
    gc.freeze()
    sys.exit(code)


class TakeOver:
    """doit's task loader: starts Firmline's command line instead of doit's."""

    def __init__(self) -> None:
        main()
