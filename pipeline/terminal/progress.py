"""Progress of running stages: on a terminal, one moving line per stage, with the time left."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from pipeline.terminal.table import Table, render
from stages.support.messages import escape

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LEAST_SECONDS = 5
# Columns of a table that is written to a file.
_FILE_WIDTH = 160


class ProgressDisplay:
    """Moving lines on a terminal (rich, imported on first use), permanent lines above them.

    Permanent lines go to `stream`. Thread-safe.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._bars: Progress | None = None
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._begun: dict[tuple[str, str], tuple[float, float]] = {}

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None = None) -> None:
        """Show what a stage does, with a bar and the time left if `fraction` (0 to 1) is known."""
        if not self._terminal:
            return
        message = escape.name(message)
        with self._lock:
            if self._bars is None:
                self._bars = _bars(self._stream)
                self._bars.start()
            task = self._tasks.get((recipe, kind))
            if task is None:
                task = self._tasks[recipe, kind] = self._bars.add_task(escape.name(kind), total=None, message="")
            total, done = (None, 0.0) if fraction is None else (1.0, fraction)
            if fraction is not None:
                when, before = self._begun.setdefault((recipe, kind), (time.monotonic(), fraction))
                remaining = time_left(time.monotonic() - when, fraction - before, 1 - fraction)
                message = f"{message}, {remaining}" if remaining else message
            self._bars.update(task, total=total, completed=done, message=message)

    def end(self, recipe: str, kind: str) -> None:
        """Remove the moving line of a finished or failed stage."""
        with self._lock:
            self._begun.pop((recipe, kind), None)
            task = self._tasks.pop((recipe, kind), None)
            if task is not None and self._bars is not None:
                self._bars.remove_task(task)

    def line(self, text: str) -> None:
        """Print permanent lines."""
        text = "\n".join(map(escape.line, text.split("\n")))
        with self._lock:
            if self._bars is not None:
                self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                self._stream.write(text + "\n")
                self._stream.flush()

    def show_table(self, table: Table, title: str) -> None:
        """Print a table."""
        self.show(lambda width: render(table, title))

    def show(self, render: Callable[[int], Any]) -> None:
        """Print the rich renderable `render(width)`; in a file, it may be wider than a terminal.

        In a file, prints the renderable's `plain()` text instead if it has one: importing rich takes tenths of a
        second.
        """
        shown = None if self._terminal else render(_FILE_WIDTH)
        plain = getattr(shown, "plain", None)
        text = None if plain is None else plain()
        with self._lock:
            if text is not None and _is_utf8(self._stream):
                self._stream.write(text)
                self._stream.flush()
                return
            from rich.console import Console

            console = self._bars.console if self._bars is not None else Console(file=self._stream)
            if not self._terminal:
                console.width = _FILE_WIDTH
            console.print(render(console.width) if shown is None else shown)

    def close(self) -> None:
        """Remove the moving lines."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
                self._bars = None
                self._tasks.clear()
                self._begun.clear()


def time_left(seconds: float, done: float, rest: float) -> str:
    """Return a text such as `5 min left`, extrapolated from `done` in `seconds`; '' if unknown."""
    if seconds < _LEAST_SECONDS or done <= 0 or rest <= 0:
        return ""
    remaining = seconds * rest / done
    if remaining < 60:
        return f"{max(1, round(remaining))} s left"
    hours, minutes = divmod(round(remaining / 60), 60)
    return f"{hours} h {minutes} min left" if hours else f"{minutes} min left"


def _is_utf8(stream: TextIO) -> bool:
    """Return whether the stream can write table lines; rich replaces them if not."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def _bars(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:10}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=Console(file=stream),
        transient=True,
        # Stages may print; rich must not redirect the streams that doit uses.
        redirect_stdout=False,
        redirect_stderr=False,
    )
