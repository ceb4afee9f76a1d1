"""The standard streams: open, able to take every text, and what happens when one cannot be written.

Imports next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from abc import ABC, abstractmethod
from typing import Any, NoReturn, TextIO


def open_streams() -> str:
    """Sees to it that the three standard streams are open, and that each text can be written; what is missing, or ''.

    A file that is opened where standard output should be would get what is printed.
    """
    closed = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            closed.append(name)
            # The lowest number that is free: this one.
            os.open(os.devnull, os.O_RDONLY if name == "stdin" else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - for as long as the process lives
    # Python itself gives none for a descriptor that was closed when it started.
    sys.stdout = Output(sys.stdout or _devnull())
    sys.stderr = Messages(sys.stderr or _devnull())
    return "standard output is closed; `> /dev/null` discards it" if "stdout" in closed else ""


class _Stream(ABC):
    """A standard stream that takes every text, on any encoding."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def writelines(self, lines: Any) -> None:
        """As `write` of each."""
        for line in lines:
            self.write(line)

    @abstractmethod
    def write(self, text: str) -> int:
        """Write a text; what happens when that fails is each stream's own."""


class Output(_Stream):
    """Standard output: when it cannot be written, as it is full or nobody reads it, the process ends and says so."""

    def __init__(self, stream: TextIO, name: str = "standard output") -> None:
        super().__init__(stream)
        self._name = name

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self.stream.write(text)
        except OSError as error:
            _end_lost(error, self._name)

    def flush(self) -> None:
        """Write what is still in memory."""
        try:
            self.stream.flush()
        except OSError as error:
            _end_lost(error, self._name)

    def close(self) -> None:
        """Write what is still in memory, and close."""
        try:
            self.stream.close()
        except OSError as error:
            _end_lost(error, self._name)


class Messages(_Stream):
    """Standard error: what cannot be written is nobody's to read; the exit code remains."""

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self.stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Write what is still in memory."""
        with contextlib.suppress(OSError):
            self.stream.flush()


def _end_lost(error: OSError, name: str) -> NoReturn:
    """As for a signal: SIGPIPE's exit code without a word when the reader is gone, else a line and 1."""
    if isinstance(error, BrokenPipeError):
        _end_by("", 128 + signal.SIGPIPE)
    _end_by(f"ERROR: {name} cannot be written: {error.strerror}\n", 1)


def _end_by(message: str, code: int) -> NoReturn:
    interruption = sys.modules.get("pipeline.process.interruption")
    if interruption is not None:
        interruption.end_now(message, code)
    sys.stderr.write(message)
    os._exit(code)


def _devnull() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - pathlib takes a while to import
