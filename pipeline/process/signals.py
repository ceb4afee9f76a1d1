"""Signals that end a command, before there is anything to clean up. Imports little."""

import contextlib
import os
import signal
import sys
from types import FrameType

MESSAGE = "interrupted; finished stages are kept"
# Ctrl-C; a cancelled job; a closed terminal.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def receive_signals() -> None:
    """End the process on a signal from now on, also on one that was blocked until now."""
    for number in SIGNALS:
        # Keep signals ignored: SIGINT in a shell's background jobs, SIGHUP under nohup.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _end(number: int, _frame: FrameType | None) -> None:
    if sys.stderr is not None:
        # Not through the stream: this thread may hold its lock.
        with contextlib.suppress(OSError):
            os.write(2, f"{MESSAGE}\n".encode())
    os._exit(128 + number)
