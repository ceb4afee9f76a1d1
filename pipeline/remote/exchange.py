"""Limits of one exchange with a remote store: seconds, bytes, and a thread that can be left behind.

One rule holds for every way to a store. An exchange has SECONDS, and SECONDS again each time that STEP more bytes of a
file have moved; nothing else extends it. So connecting, headers, small answers and silence have SECONDS in all, and a
file may be as slow as STEP / SECONDS bytes a second, for SLOW_SECONDS beyond what it takes at FAST bytes a second.
Bytes that are not the file's (headers, redirections, pages of errors, frames of chunks) are at most OVERHEAD, and as
many again as the file may have.

The exchange runs in a thread. Sockets ask it before each wait (pipeline.remote.sockets). What cannot be interrupted,
such as a name server or a mounted disk, is left behind in its thread.
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
# Bytes that are read or sent at a time.
BLOCK = 1 << 16

Result = TypeVar("Result")

_current: ContextVar[Exchange] = ContextVar("exchange")


class Exchange:
    """What one exchange may still do.

    most       bytes that the object may have which it reads
    is_small   whether that object is no file of an artifact but what describes it: it has SECONDS, however it moves
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

    def left(self) -> float:
        """Seconds until it is over."""
        end = min(self._step_began + SECONDS, self.began + SLOW_SECONDS + self.moved_bytes / FAST)
        return end - time.monotonic()

    def patience(self) -> float:
        """Seconds that the next step may wait, more than 0. Raises RemoteError where there are none."""
        left = self.left()
        if left <= 0 or self._is_over:
            raise self.late()
        return left

    def moved(self, count: int) -> None:
        """Note so many bytes more of the object. Raises RemoteError when the exchange is over."""
        self.patience()
        self.moved_bytes += count
        self._step_bytes += count
        if self._step_bytes >= STEP and not self._is_small:
            self._step_bytes, self._step_began = 0, time.monotonic()

    def received(self, count: int) -> None:
        """Note bytes that came, whatever they are. Raises RemoteError for too many."""
        self._received += count
        if self._received > self._receives:
            raise RemoteError("its answer is larger than what was asked for")

    def expect_object(self) -> None:
        """Let the bytes of the object come from now on."""
        self._receives += 2 * self._most

    def handing(self, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """`take` for the blocks of the object; not called once the exchange is over."""

        def hand(block: bytes) -> None:
            with self._lock:
                if self._is_over:
                    raise self.late()
                take(block)
            self.moved(len(block))

        return hand

    def late(self) -> RemoteError:
        """Why it ends before it is done."""
        if self._is_small and self.moved_bytes:
            return RemoteError(f"it moves {self.moved_bytes:,} bytes of an entry in {SECONDS:g} seconds, and not all")
        if time.monotonic() - self.began > SLOW_SECONDS:
            return RemoteError(f"an object takes longer than {SLOW_SECONDS / 60:g} minutes")
        if self.moved_bytes:
            return RemoteError(f"it moves fewer than {STEP / SECONDS:,.0f} bytes a second")
        what = "its answer does not end" if self._received else "no answer"
        return RemoteError(f"{what} within {SECONDS:g} seconds")

    def give_up(self) -> None:
        """End it: nothing is handed on any more when this returns."""
        with self._lock:
            self._is_over = True


def current() -> Exchange:
    """The exchange of this thread."""
    return _current.get()


class Bounded:
    """A transport whose every call is an exchange with limits.

    A transport may have `alone`, a lock for one that has a single connection, and `abort()`, which makes what waits for
    that connection fail. `allowed` raises RemoteError where no exchange should begin; `spent` hears when one began and
    ended (of time.monotonic()) and how many bytes of an object moved.
    """

    def __init__(
        self, transport: Transport, allowed: Callable[[], None], spent: Callable[[float, float, int], None]
    ) -> None:
        self._transport = transport
        self._allowed = allowed
        self._spent = spent
        self._alone: AbstractContextManager[object] = getattr(transport, "alone", nullcontext())
        self._abort: Callable[[], None] = getattr(transport, "abort", lambda: None)

    def read(self, name: str, take: Callable[[bytes], None], most: int, *, is_small: bool = False) -> bool:
        """As Transport.read, of an object that may have `most` bytes; `take` refuses what is more."""
        read = self._transport.read
        return self._run(lambda exchange: read(name, exchange.handing(take)), most, is_small=is_small)

    def has(self, name: str, size: int | None = None) -> bool:
        """As Transport.has."""
        return self._run(lambda _: self._transport.has(name, size))

    def write(self, name: str, content: Path | bytes) -> None:
        """As Transport.write."""
        self._run(lambda _: self._transport.write(name, content))

    def _run(self, call: Callable[[Exchange], Result], most: int = 0, *, is_small: bool = False) -> Result:
        with self._alone:
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
                while not answer.done() and (left := exchange.left()) > 0:
                    wait([answer], left)
                if answer.done():
                    return answer.result()
                raise exchange.late()
            finally:
                if not answer.done():
                    exchange.give_up()
                    self._abort()
                self._spent(exchange.began, time.monotonic(), exchange.moved_bytes)
