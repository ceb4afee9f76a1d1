"""How the objects of a remote store are read and written: what its ways have in common.

An object is named `ac/<key>` or `cas/<sha256>`, the same in each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

# Bytes that are read or sent at a time.
BLOCK = 1 << 20
# Seconds to wait for a connection, and for the next bytes.
CONNECT, READ = 3.0, 10.0
# Bytes that an object has to move by in a second, once READ is over.
SLOWEST = 10_000


class RemoteError(Exception):
    """A remote store did not do what it was asked for; the message is why, in a few words and without credentials."""


class Denied(RemoteError):
    """It wants other credentials, or does not let these do that."""


class Unusable(RemoteError):
    """There is no way to it from here, now or later."""


class Pace:
    """How long an object may take, by its size: what drips is as good as silent."""

    def __init__(self, grace: float) -> None:
        self._began = time.monotonic()
        self._grace = grace
        self._bytes = 0

    def moved(self, count: int) -> None:
        """So many bytes more are read or sent. Raises RemoteError for too few."""
        self._bytes += count
        if time.monotonic() - self._began > self._grace + self._bytes / SLOWEST:
            raise RemoteError(f"it takes or gives fewer than {SLOWEST:,} bytes a second")


class Transport(Protocol):
    """One remote store. Methods may be called from several threads; each raises RemoteError."""

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """Hand the bytes of an object to `take`, in order; False where there is no such object.

        What `take` raises passes through.
        """

    def has(self, name: str, size: int | None = None) -> bool:
        """Whether there is such an object, of this size where one is given and the store knows."""

    def write(self, name: str, content: Path | bytes) -> None:
        """Write an object, over one that is there: others see all of it or nothing."""
