"""Time and size limits of one exchange with a remote store.

One rule for all transports: an exchange has SECONDS, and again SECONDS after each STEP bytes of a file. Nothing else
extends it: connecting, headers, small answers and silence share SECONDS. A file may be as slow as STEP / SECONDS bytes
per second, for SLOW_SECONDS beyond the time it needs at FAST bytes per second.
Bytes that do not belong to the file (headers, redirections, error pages, chunk frames) are limited to OVERHEAD, plus
the size of the file.

The exchange runs in a thread. Sockets check its limits before each wait (pipeline.remote.sockets). A call that cannot
be interrupted, such as a name lookup or a mounted disk, is abandoned with its thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from pipeline.remote.transport import RemoteError, Transport

SECONDS = 10.0
STEP = 100_000
SLOW_SECONDS = 900.0
FAST = 1_000_000
OVERHEAD = 1 << 20
# Bytes per read or write.
BLOCK = 1 << 16

Result = TypeVar("Result")

_current: ContextVar[Exchange] = ContextVar("exchange")


class Exchange:
    """The remaining time and bytes of one exchange.

    most      limit of the object's bytes
    is_small  the object describes an artifact and is not a file of it: it has SECONDS in all
    """

    def __init__(self, most: int = 0, *, is_small: bool = False) -> None:
        self.began = self._step_began = time.monotonic()
        self.moved_bytes = 0
        self._step_bytes = 0
        self._most = most
        self._is_small = is_small
        self._received = 0
        self._receives = OVERHEAD
        self._lock = threading.Lock()
        self._is_over = False

    def remaining_seconds(self) -> float:
        """Return the seconds until the timeout."""
        end = min(self._step_began + SECONDS, self.began + SLOW_SECONDS + self.moved_bytes / FAST)
        return end - time.monotonic()

    def step_timeout(self) -> float:
        """Return the timeout of the next step in seconds. Raises RemoteError if time is over."""
        seconds = self.remaining_seconds()
        if seconds <= 0 or self._is_over:
            raise self.timeout_error()
        return seconds

    def moved(self, count: int) -> None:
        """Count transferred bytes of the object. Raises RemoteError after the timeout."""
        self.step_timeout()
        self.moved_bytes += count
        self._step_bytes += count
        if self._step_bytes >= STEP and not self._is_small:
            self._step_bytes, self._step_began = 0, time.monotonic()

    def received(self, count: int) -> None:
        """Count received bytes of any kind. Raises RemoteError for too many."""
        self._received += count
        if self._received > self._receives:
            raise RemoteError("its answer is too large")

    def expect_object(self) -> None:
        """Allow the object's bytes from now on."""
        self._receives += 2 * self._most

    def forwarder(self, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Return a function that passes blocks to `take` until the exchange is cancelled."""

        def hand(block: bytes) -> None:
            with self._lock:
                if self._is_over:
                    raise self.timeout_error()
                take(block)
            self.moved(len(block))

        return hand

    def timeout_error(self) -> RemoteError:
        """Return the error for a transfer that is too slow, with what was received."""
        if self._is_small and self.moved_bytes:
            return RemoteError(f"an entry is not complete after {SECONDS:g} seconds ({self.moved_bytes:,} bytes)")
        if time.monotonic() - self.began > SLOW_SECONDS:
            return RemoteError(f"an object takes longer than {SLOW_SECONDS / 60:g} minutes")
        if self.moved_bytes:
            return RemoteError(f"slower than {STEP / SECONDS:,.0f} bytes per second")
        what = "no complete answer" if self._received else "no answer"
        return RemoteError(f"{what} within {SECONDS:g} seconds")

    def cancel(self) -> None:
        """Cancel the exchange: no more blocks are passed on after this returns."""
        with self._lock:
            self._is_over = True


def current() -> Exchange:
    """Return this thread's exchange."""
    return _current.get()


class LimitedTransport:
    """Transport that limits time and bytes of each call.

    allowed: raises RemoteError if no exchange may start.
    spent: called after an exchange with start and end (time.monotonic()) and the transferred bytes of its object.

    A transport with a single connection also has `connection_lock`, and `abort()`, which fails calls on it.
    """

    def __init__(
        self, transport: Transport, allowed: Callable[[], None], spent: Callable[[float, float, int], None]
    ) -> None:
        self._transport = transport
        self._allowed = allowed
        self._spent = spent
        self._connection_lock: AbstractContextManager[object] = getattr(transport, "connection_lock", nullcontext())
        self._abort: Callable[[], None] = getattr(transport, "abort", lambda: None)

    def read(self, name: str, take: Callable[[bytes], None], most: int, *, is_small: bool = False) -> bool:
        """See Transport.read. The object may have `most` bytes; `take` rejects more."""
        read = self._transport.read
        return self._run(lambda exchange: read(name, exchange.forwarder(take)), most, is_small=is_small)

    def has(self, name: str, size: int | None = None) -> bool:
        """See Transport.has."""
        return self._run(lambda _: self._transport.has(name, size))

    def write(self, name: str, content: Path | bytes) -> None:
        """See Transport.write."""
        self._run(lambda _: self._transport.write(name, content))

    def _run(self, call: Callable[[Exchange], Result], most: int = 0, *, is_small: bool = False) -> Result:
        with self._connection_lock:
            self._allowed()
            exchange = Exchange(most, is_small=is_small)
            answer: Future[Result] = Future()

            def work() -> None:
                _current.set(exchange)
                try:
                    answer.set_result(call(exchange))
                except BaseException as error:
                    answer.set_exception(error)

            threading.Thread(target=work, name="firmline-exchange", daemon=True).start()
            try:
                while not answer.done() and (seconds := exchange.remaining_seconds()) > 0:
                    wait([answer], seconds)
                if answer.done():
                    return answer.result()
                raise exchange.timeout_error()
            finally:
                if not answer.done():
                    exchange.cancel()
                    self._abort()
                self._spent(exchange.began, time.monotonic(), exchange.moved_bytes)
