"""A scheduler and workers on this machine, for as long as a command lasts.

They are programs of their own in a session of their own: what Ctrl-C means to a terminal's processes is this one's
affair, which kills its children, and nothing that ends in the middle has anything to say.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipeline.errors import PipelineError
from stages.system.installation import with_modules

_SECONDS = 30
# One that lost its command ends by itself.
_IDLE = "3600"


class LocalCluster:
    """So many workers; `address` is the scheduler's. Raises PipelineError."""

    def __init__(self, workers: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="firmline-dask-", ignore_cleanup_errors=True)
        self._programs: list[subprocess.Popen[bytes]] = []
        place = Path(self._folder.name) / "scheduler.json"
        common = ["--scheduler-file", str(place), "--no-dashboard"]
        self._start("scheduler", *common, "--host", "127.0.0.1", "--port", "0", "--idle-timeout", _IDLE)
        self.address = self._address(place)
        several = ["--nworkers", str(workers), "--nthreads", "1", "--memory-limit", "0", "--death-timeout", "60"]
        self._start("worker", *common, *several, "--local-directory", self._folder.name)

    def close(self) -> None:
        """End them."""
        for program in reversed(self._programs):
            program.terminate()
        for program in self._programs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(timeout=5)
            program.kill()
            program.wait()
        self._folder.cleanup()

    def _start(self, what: str, *words: str) -> None:
        self._programs.append(
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
                env=with_modules(dict(os.environ)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    def _address(self, place: Path) -> str:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and self._programs[0].poll() is None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                return str(json.loads(place.read_text(encoding="utf-8"))["address"])
            time.sleep(0.05)
        self.close()
        raise PipelineError("executor=dask: its scheduler does not start", hint="`dask scheduler` tells why")
