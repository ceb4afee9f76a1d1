"""When a remote store is given up: a server that does not answer costs a run some seconds, and one line.

What is known of one counts for the whole process: a bench has a workspace for each row.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from pipeline.remote.exchange import FAST, SECONDS, SLOW_SECONDS, STEP
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Denied, RemoteError, Unusable
from stages.support.messages import escape

# So many failures one after another are the last.
MOST_FAILURES = 3
# Seconds that a run spends on waiting: what exchanges take beyond FREE_SECONDS each and what their bytes take at
# SLOWEST bytes a second. A slow link, or many late answers, has SLOW_SECONDS: with FAST in its place, and nothing free.
MOST_WAITING = 30.0
SLOWEST = STEP / SECONDS
FREE_SECONDS = 1.0
# Seconds after which a process that outlives many runs tries one again.
_REST = 60.0

_known: dict[RemoteSettings, Health] = {}
_lock = threading.Lock()


class _Spent:
    """Seconds that exchanges took beyond `free` and what their bytes take at `rate` a second.

    Simultaneous ones count once.
    """

    def __init__(self, most: float, rate: float, free: float) -> None:
        self.most, self._rate, self._free = most, rate, free
        self.seconds = self._until = 0.0

    def add(self, began: float, ended: float, moved: int) -> None:
        since = max(began + self._free + moved / self._rate, self._until)
        if ended > since:
            self.seconds += ended - since
            self._until = ended


class Health:
    """Whether a remote store is read and written, and which warnings were given. Safe to use from threads."""

    def __init__(self, settings: RemoteSettings, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._tell = tell
        self._lock = threading.Lock()
        self._failures = 0
        self._told: set[str] = set()
        self._failed_at = 0.0
        self._waited = [_Spent(MOST_WAITING, SLOWEST, FREE_SECONDS), _Spent(SLOW_SECONDS, FAST, 0.0)]
        self.reads = not settings.wrong
        self.writes = not settings.wrong and not settings.read_only
        if settings.wrong:
            self.warn("wrong", f"{settings.wrong}; the run goes on without a remote store")

    def worked(self) -> None:
        """It did what it was asked for."""
        self._failures = 0

    def failed(self, error: RemoteError, *, writing: bool = False) -> None:
        """It did not."""
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
            text = f"{shown} cannot be written: {reason}; it is only read\n{self._settings.credentials}"
            self.warn("denied", text)
        elif isinstance(error, Denied):
            text = f"{shown} cannot be read: {reason}; the run goes on without it\n{self._settings.credentials}"
            self.warn("denied", text)
        elif isinstance(error, Unusable):
            self.warn("failed", f"{shown} cannot be used: {reason}; the run goes on without it")
        else:
            self.warn("failed", f"{shown} fails: {reason}; what does not come from it is made here")

    def check(self) -> None:
        """Raises RemoteError where it is neither read nor written any more."""
        if not (self.reads or self.writes):
            raise RemoteError("it is given up")

    def spent(self, began: float, ended: float, moved: int) -> None:
        """Note an exchange by when it began and ended, of time.monotonic(), and the bytes that it moved."""
        with self._lock:
            for one in self._waited:
                one.add(began, ended, moved)
            over = [one for one in self._waited if one.seconds > one.most]
            if not over or not (self.reads or self.writes):
                return
            self._failed_at = ended
            self.reads = self.writes = False
        text = (
            f"the remote store {self._settings.shown} is slow: the run has waited {over[0].seconds:.0f} seconds for it"
        )
        self.warn("failed", f"{text}, and goes on without it")

    @property
    def rested(self) -> bool:
        """Whether its last failure was a while ago."""
        return self._failed_at > 0 and time.monotonic() - self._failed_at > _REST

    def warn(self, what: str, text: str) -> None:
        """Warn, once in a process for each `what`."""
        with self._lock:
            if what in self._told:
                return
            self._told.add(what)
        self._tell(text)


def health_of(settings: RemoteSettings) -> Health:
    """What this process knows of a remote store."""
    with _lock:
        if settings not in _known:
            _known[settings] = Health(settings, _to_stderr)
        return _known[settings]


def forget_failures() -> None:
    """Have those tried again that failed a while ago: a worker outlives many runs."""
    with _lock:
        for settings in [one for one, known in _known.items() if known.rested]:
            del _known[settings]


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"warning: {escape.message(text)}\n")
