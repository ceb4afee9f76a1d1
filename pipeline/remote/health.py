"""Disable a failing remote store, so that it costs a run only some seconds and one warning.

All workspaces of a process share a store's state: a bench has a workspace per row.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Denied, RemoteError, Unusable
from stages.support.messages import escape

# Consecutive failures until the store is disabled.
MOST_FAILURES = 3
# Seconds after which a long-lived process tries a disabled store again.
_REST = 60.0

_known: dict[RemoteSettings, Health] = {}
_lock = threading.Lock()


class Health:
    """Whether a remote store is read and written, and which warnings were printed. Thread-safe."""

    def __init__(self, settings: RemoteSettings, print_warning: Callable[[str], None]) -> None:
        self._settings = settings
        self._print_warning = print_warning
        self._lock = threading.Lock()
        self._failures = 0
        self._warned: set[str] = set()
        self._failed_at = 0.0
        self.reads = not settings.wrong
        self.writes = not settings.wrong and not settings.read_only
        if settings.wrong:
            self.warn("wrong", f"{settings.wrong}; the run continues without a remote store")

    def worked(self) -> None:
        """Note a successful exchange."""
        self._failures = 0

    def failed(self, error: RemoteError, *, writing: bool = False) -> None:
        """Note a failed exchange; may disable the store."""
        reason = escape.shortened(str(error), 160)
        with self._lock:
            self._failed_at = time.monotonic()
            self._failures += 1
            if isinstance(error, Denied):
                self.writes = False
                self.reads &= writing
            elif isinstance(error, Unusable) or self._failures >= MOST_FAILURES:
                self.reads = self.writes = False
        shown = f"the remote store {self._settings.shown}"
        if isinstance(error, Denied) and writing:
            text = f"{shown} cannot be written: {reason}; it is used read-only\n{self._settings.credentials}"
            self.warn("denied", text)
        elif isinstance(error, Denied):
            text = f"{shown} cannot be read: {reason}; the run continues without it\n{self._settings.credentials}"
            self.warn("denied", text)
        elif isinstance(error, Unusable):
            self.warn("failed", f"{shown} cannot be used: {reason}; the run continues without it")
        else:
            self.warn("failed", f"{shown} fails: {reason}; missing artifacts are made here")

    def check(self) -> None:
        """Raise RemoteError if the store is disabled."""
        if not (self.reads or self.writes):
            raise RemoteError("it is disabled after failures")

    @property
    def can_retry(self) -> bool:
        """Whether the last failure was long ago."""
        return self._failed_at > 0 and time.monotonic() - self._failed_at > _REST

    def warn(self, what: str, text: str) -> None:
        """Print a warning, once per process for each `what`."""
        with self._lock:
            if what in self._warned:
                return
            self._warned.add(what)
        self._print_warning(text)


def health_of(settings: RemoteSettings) -> Health:
    """Return this process's state of a remote store."""
    with _lock:
        if settings not in _known:
            _known[settings] = Health(settings, _to_stderr)
        return _known[settings]


def retry_disabled_stores() -> None:
    """Enable stores again that failed long ago: a worker outlives many runs."""
    with _lock:
        for settings in [candidate for candidate, known in _known.items() if known.can_retry]:
            del _known[settings]


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"warning: {escape.message(text)}\n")
