"""The log.txt of a run."""

import contextlib
import platform
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.keys.planner import Plan
from stages.support.messages import escape


class RunLog:
    """log.txt: seconds since the start, stage, line. Not written if it cannot be opened."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self._plan = plan
        self._lock = threading.Lock()
        self._stream: Any = None
        self._broken = False
        self._start = time.monotonic()

    def write(self, kind: str, line: str) -> None:
        """Write a line; thread-safe."""
        with self._lock:
            if self._stream is None and not self._broken:
                self._open()
            if self._stream is not None:
                for part in line.rstrip("\n").split("\n"):
                    self._put(f"{time.monotonic() - self._start:9.3f} {kind:9} | {escape.log_line(part)}\n")

    def close(self) -> None:
        """End the log."""
        with self._lock, contextlib.suppress(OSError):
            if self._stream is not None:
                self._stream.close()
            self._stream, self._broken = None, True

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A new file: another run may still write to the old one.
            self.path.unlink(missing_ok=True)
            self._stream = self.path.open("w", encoding="utf-8", buffering=1)
        except OSError:
            self._broken = True
            return
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        self._put(f"recipe {escape.log_line(self._plan.recipe)}, target {self._plan.target}, {started}\n")
        self._put(f"{platform.platform()}, Python {platform.python_version()}\n")
        for action in self._plan:
            for tool in action.tools.values():
                uses = f"{action.kind} uses {tool.name} {tool.version} {tool.path}".rstrip()
                self._put(f"{escape.log_line(uses)}\n")

    def _put(self, text: str) -> None:
        # On a full disk, the message about it must still be printed.
        with contextlib.suppress(OSError):
            self._stream.write(text)
