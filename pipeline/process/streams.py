"""Standard streams that are open, accept any text, and handle write errors. Imports little."""

import contextlib
import os
import signal
import sys
from abc import ABC, abstractmethod
from typing import Any, NoReturn, TextIO


def open_streams() -> str:
    """Open the three standard streams if they are closed. Returns a problem, or ''.

    Otherwise, the next opened file would become standard output and get the printed text.
    """
    closed = []
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            closed.append(name)
            # This opens the lowest free number, which is this one.
            os.open(os.devnull, os.O_RDONLY if name == "stdin" else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - open until the process ends
    # Python's streams are None if the descriptor was closed at its start.
    sys.stdout = Output(sys.stdout or _devnull())
    sys.stderr = Messages(sys.stderr or _devnull())
    return "standard output is closed; `> /dev/null` discards it" if "stdout" in closed else ""


class _Stream(ABC):
    """A standard stream that accepts any text in any encoding."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def writelines(self, lines: Any) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    @abstractmethod
    def write(self, text: str) -> int:
        """Write a text; subclasses handle errors."""


class Output(_Stream):
    """Standard output: a write error (disk full, closed pipe) ends the process with a message."""

    def __init__(self, stream: TextIO, name: str = "standard output") -> None:
        super().__init__(stream)
        self._name = name

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self.stream.write(text)
        except OSError as error:
            _end_on_write_error(error, self._name)

    def flush(self) -> None:
        """Write buffered text."""
        try:
            self.stream.flush()
        except OSError as error:
            _end_on_write_error(error, self._name)

    def close(self) -> None:
        """Write buffered text and close."""
        try:
            self.stream.close()
        except OSError as error:
            _end_on_write_error(error, self._name)


class Messages(_Stream):
    """Standard error: write errors are ignored; the exit code remains."""

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self.stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        """Write buffered text."""
        with contextlib.suppress(OSError):
            self.stream.flush()


def _end_on_write_error(error: OSError, name: str) -> NoReturn:
    """End the process: silently with SIGPIPE's code for a closed pipe, else with an error."""
    if isinstance(error, BrokenPipeError):
        _end("", 128 + signal.SIGPIPE)
    _end(f"ERROR: {name} cannot be written: {error.strerror}\n", 1)


def _end(message: str, code: int) -> NoReturn:
    interruption = sys.modules.get("pipeline.process.interruption")
    if interruption is not None:
        interruption.end_now(message, code)
    sys.stderr.write(message)
    os._exit(code)


def _devnull() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - importing pathlib is slow
