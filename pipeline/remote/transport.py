"""How the objects of a remote store are read and written: what its ways have in common.

An object is named `ac/<key>` or `cas/<sha256>`, the same in each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class RemoteError(Exception):
    """A remote store did not do what it was asked for; the message is why, in a few words and without credentials."""


class Denied(RemoteError):
    """It wants other credentials, or does not let these do that."""


class Unusable(RemoteError):
    """There is no way to it from here, now or later."""


class Transport(Protocol):
    """One remote store. Methods may be called from several threads; each raises RemoteError.

    They are called within an exchange (pipeline.remote.exchange), which says how long they may wait.
    """

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """Hand the bytes of an object to `take`, in order; False where there is no such object.

        What `take` raises passes through.
        """

    def has(self, name: str, size: int | None = None) -> bool:
        """Whether there is such an object, of this size where one is given and the store knows."""

    def write(self, name: str, content: Path | bytes) -> None:
        """Write an object, over one that is there: others see all of it or nothing."""
