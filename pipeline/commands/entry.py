"""The first thing that runs of every `doit` command: signals, standard streams, then pipeline.commands.dispatch.

    .venv/bin/doit, written by bootstrap -> python -m pipeline -> main
    doit as its own package installs it  -> reads pyproject.toml, whose `loader` is TakeOver -> main
                                            in a project, its dodo.py -> firmline.dodo -> main
    firmline, which pip installs         -> firmline.__main__ -> main

The first starts Python with SIGINT, SIGTERM and SIGHUP blocked, so that they wait until there is something here to
receive them; with the second, what comes in the tenths of a second before is Python's own business. From here on to
`guarded` of pipeline.process.interruption a signal ends the process with its line and exit code; there is nothing to
clean up.

Imports next to nothing.
"""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from pipeline.process.signals import receive_signals
from pipeline.process.streams import open_streams


def main() -> NoReturn:
    """Run the command line of this process, and end it with the command's exit code."""
    receive_signals()
    # Of what a command loads nothing becomes garbage: looking for it again and again is a tenth of a short one's time.
    gc.set_threshold(100_000, 20, 20)
    lost = open_streams()
    if lost:
        sys.stderr.write(f"ERROR: {lost}\n")
        sys.exit(1)
    from pipeline.commands.dispatch import run

    code = run(sys.argv[1:])
    # What is printed while Python ends would fail without anybody to say so.
    sys.stdout.flush()
    receive_signals()
    # Python looks for garbage several times more while it ends, which takes longer than many a command.
    gc.freeze()
    sys.exit(code)


class TakeOver:
    """doit makes one of these to load tasks with: the project's own command line runs instead of doit's."""

    def __init__(self) -> None:
        main()
