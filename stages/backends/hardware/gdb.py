"""GDB as a subprocess with its machine interface (MI), connected to one board."""

import contextlib
import os
import re
import resource
import select
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from stages.support.messages.stage_error import StageError
from stages.support.tool import Tool

COMMAND = "gdb-multiarch"
TOOL = Tool(COMMAND, command=COMMAND, minimum="12", install=f"apt-get install {COMMAND}")
#: Seconds that a server may take for what is not a transfer.
PATIENCE = 15.0
#: What a slow probe moves.
BYTES_PER_SECOND = 2_000
# Bytes that GDB may print until the next command, and in one line: a server prints by way of it, and may have no end.
MOST_PRINTED, _MOST_LINE = 4 << 20, 1 << 20
# Bytes that GDB itself may use: it keeps what a server sends in one answer.
_MOST_MEMORY = 2 << 30
# GDB's own, for one answer of a server: of one that may be none, and of one that may be busy.
_FIRST_SECONDS, _ANSWER_SECONDS = 2, 10


class GdbError(Exception):
    """A GDB command failed, with the reason."""


class GdbSilent(Exception):
    """GDB or the server did not answer in time."""


class GdbClosed(Exception):
    """The server closed the connection."""


class GdbFlood(Exception):
    """GDB printed more than the limit."""


# What GDB says then.
_CLOSED = re.compile("connection closed|target disconnected|reset by peer|broken pipe", re.IGNORECASE)
# Of one that answers something else, as a page of HTML, or nothing.
_NO_ANSWER = re.compile("replied unexpectedly")


class Gdb:
    """One GDB process with one program.

    `command` sends a command, `stopped` waits until the target stops.
    No wait exceeds `deadline`, a time of time.monotonic().
    """

    def __init__(self, path: str, folder: Path, elf: Path) -> None:
        """Start GDB with `folder` as its current directory. Raises StageError if it does not start."""
        started = [path, "--nx", "--quiet", "--interpreter=mi3", f"--cd={folder}", str(elf)]
        try:
            self._process = subprocess.Popen(
                started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
            )
        except (OSError, ValueError) as error:
            raise StageError(f"{path} does not start: {error}", hint=TOOL.install) from None
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
        self.deadline = inf
        self._token = 0
        self._results: deque[Mapping[str, Any]] = deque()
        self._stops: deque[Mapping[str, Any]] = deque()
        self._said: list[str] = []
        self._printed = 0
        self._line = b""
        for setting in (
            "mi-async on",
            "confirm off",
            "pagination off",
            "print entry-values no",
            "print frame-arguments none",
            f"remotetimeout {_FIRST_SECONDS}",
        ):
            self.command(f"-gdb-set {setting}")
        self.command(f"-gdb-set tcp connect-timeout {_FIRST_SECONDS}")

    def connect(self, address: str) -> str:
        """Connect to the server at HOST:PORT and return GDB's answer. Raises as `command`."""
        self.command(f"-target-select extended-remote {address}", 2 * PATIENCE)
        said = "".join(self._said)
        self.command(f"-gdb-set remotetimeout {_ANSWER_SECONDS}")
        return said

    def command(self, text: str, seconds: float = PATIENCE) -> Mapping[str, Any]:
        """Return the result of a GDB/MI command.

        Raises GdbError with the reason, GdbClosed, GdbSilent after the timeout, GdbFlood.
        """
        self._token += 1
        self._said.clear()
        self._printed = 0
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{self._token}{text}\n".encode())
        except OSError as error:
            raise GdbError(f"GDB has ended: {error}") from None
        for result in self._wait(seconds, self._results):
            if result.get("token") == self._token:
                payload = result.get("payload") or {}
                if result["message"] == "error":
                    raise _error(payload)
                return payload
        raise GdbSilent

    def console(self, text: str, seconds: float = PATIENCE) -> str:
        """Return the output of a console command, or of a command of the server (`monitor …`).

        Raises as `command`.
        """
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        self.command(f'-interpreter-exec console "{quoted}"', seconds)
        return "".join(self._said)

    def stopped(self, seconds: float) -> Mapping[str, Any]:
        """Return why the target stopped: `reason`, `frame`.

        Raises as `command`; GdbSilent if it runs on.
        """
        for stop in self._wait(seconds, self._stops):
            if stop["type"] == "result":
                raise _error(stop.get("payload") or {})
            if stop["message"] == "thread-group-exited":
                raise GdbClosed
            return stop.get("payload") or {}
        raise GdbSilent

    def forget_stops(self) -> None:
        """Discard earlier stop records."""
        self._stops.clear()

    def value(self, expression: str) -> int:
        """Return the value of an expression as an unsigned 64-bit number. Raises GdbError."""
        shown = self.command(f'-data-evaluate-expression "(unsigned long long)({expression})"').get("value", "")
        match = re.match(r"\d+", str(shown))
        if match is None:
            raise GdbError(f"{expression} is not a number")
        return int(match[0])

    def memory(self, address: int, count: int) -> bytes:
        """Read bytes of the target. Raises GdbError."""
        blocks = self.command(f"-data-read-memory-bytes {address:#x} {count}")["memory"]
        return b"".join(bytes.fromhex(part["contents"]) for part in blocks)

    def put(self, address: int, content: bytes) -> None:
        """Write bytes of the target. Raises GdbError."""
        self.command(f"-data-write-memory-bytes {address:#x} {content.hex()}")

    def close(self) -> None:
        """End GDB; the target stays as it is."""
        with contextlib.suppress(Exception):
            self._process.kill()
            self._process.communicate(timeout=5)

    def _wait(self, seconds: float, queue: deque[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Return the next item of one of the queues."""
        deadline = min(time.monotonic() + seconds, self.deadline)
        while True:
            while queue:
                yield queue.popleft()
            left = deadline - time.monotonic()
            if left <= 0:
                return
            for record in self._records(left):
                if record["type"] == "result":
                    # What cannot run is told once more, after it was said to run.
                    is_late = queue is self._stops and record["message"] == "error"
                    (self._stops if is_late else self._results).append(record)
                elif record["type"] == "notify" and record["message"] in ("stopped", "thread-group-exited"):
                    self._stops.append(record)
                elif record["type"] in ("console", "target", "log", "output"):
                    self._said.append(str(record.get("payload") or ""))

    def _records(self, seconds: float) -> Iterator[Mapping[str, Any]]:
        """Yield GDB's next records until a timeout in seconds. Raises GdbError, GdbFlood."""
        from pygdbmi import gdbmiparser

        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], seconds)[0]:
            return
        printed = os.read(output.fileno(), 1 << 16)
        if not printed:
            raise GdbError("GDB has ended")
        self._printed += len(printed)
        *lines, self._line = (self._line + printed).split(b"\n")
        if self._printed > MOST_PRINTED or len(self._line) > _MOST_LINE:
            raise GdbFlood
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            # `+` tells how far a download is.
            if text and not text.startswith("+") and not gdbmiparser.response_is_finished(text):
                yield gdbmiparser.parse_response(text)


def _error(payload: Mapping[str, Any]) -> Exception:
    said = str(payload.get("msg", "")).strip()
    if _NO_ANSWER.search(said):
        return GdbSilent(said)
    return GdbClosed(said) if _CLOSED.search(said) else GdbError(said or "it gave no reason")
