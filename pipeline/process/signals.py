"""The signals that end a command, before there is anything to clean up. Imports next to nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

MESSAGE = "interrupted; what is finished is kept"
# Ctrl-C; a cancelled job; a terminal that was closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def receive_signals() -> None:
    """From now on a signal ends the process at once; one that was blocked and waits, now."""
    for number in SIGNALS:
        # A shell starts background jobs with SIGINT ignored, nohup its command with SIGHUP; so they stay.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _end(number: int, _frame: FrameType | None) -> None:
    if sys.stderr is not None:
        # Not through the stream, in whose lock this thread may be.
        with contextlib.suppress(OSError):
            os.write(2, f"{MESSAGE}\n".encode())
    os._exit(128 + number)
