"""The interface of transports: read and write the objects of a remote store.

An object is named `ac/<key>` or `cas/<sha256>` in every transport.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

# Timeouts in seconds: of a connection, and of each step of a transfer.
CONNECT, SECONDS = 3.0, 10.0
# Bytes per read or write.
BLOCK = 1 << 16


class RemoteError(Exception):
    """A remote store failed; the message is short and without credentials."""


class Denied(RemoteError):
    """The remote store needs other credentials, or they do not permit the operation."""


class Unusable(RemoteError):
    """The remote store cannot be reached from this machine, now or later."""


class Transport(Protocol):
    """A remote store. Methods may be called from several threads; all raise RemoteError.

    Each step of a transfer takes at most SECONDS. Callers limit the bytes and the time of a whole object.
    """

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """Pass an object's bytes to `take`, in order; False if it is missing.

        Exceptions of `take` pass through.
        """

    def has(self, name: str, size: int | None = None) -> bool:
        """Return whether an object exists, with this size if given and known to the store."""

    def write(self, name: str, content: Path | bytes) -> None:
        """Write an object atomically, replacing an existing one."""
