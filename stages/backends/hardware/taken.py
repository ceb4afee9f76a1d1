"""One lock for each board, so that only one process of this machine uses it at a time."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from stages.backends.hardware.place import address

_POLL = 0.1
_HERE = ("127.0.0.1", "[::1]")


@contextlib.contextmanager
def taken(place: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Lock a board. Calls `waiting` repeatedly while another run has it."""
    with _lock_file(place) as lock:
        while not _locked(lock):
            waiting()
            time.sleep(_POLL)
        yield


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _lock_file(place: str) -> Iterator[int]:
    """Open the lock file; another user's read-only, which suffices for locking."""
    host, _, port = address(place).rpartition(":")
    named = f"{'localhost' if host in _HERE else host.lower()}:{port}"
    path = Path(tempfile.gettempdir()) / f"firmline-board-{hashlib.sha256(named.encode()).hexdigest()[:16]}.lock"
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        lock = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        yield lock
    finally:
        os.close(lock)
