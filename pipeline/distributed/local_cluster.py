"""A scheduler and workers on this machine, for as long as a command lasts.

They are programs of their own in a session of their own: what Ctrl-C means to a terminal's processes is this one's
affair, which kills its children. `local_process.py` has how they listen, and how they end when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from distributed.security import Security

from pipeline.distributed import local_process
from pipeline.distributed.connection import Connection
from pipeline.errors import PipelineError
from stages.support.messages import escape
from stages.support.system.installation import with_modules
from stages.support.system.scratch import make_folder, remove_folder

# Seconds for the scheduler to start, and for killed processes to be gone.
_START, _END = 30, 5


class LocalCluster:
    """So many workers; `connection` leads to their scheduler. Raises PipelineError."""

    def __init__(self, workers: int) -> None:
        made = Security.temporary(tls_ciphers=None, tls_min_version=None, tls_max_version=None)
        certificate, key = made.tls_client_cert, made.tls_client_key
        self._folder = make_folder("dask")
        self._log = self._folder / "log.txt"
        settings = local_process.Settings(certificate, key, str(self._folder), workers)
        with self._log.open("wb") as log:
            self._program = subprocess.Popen(
                # -P: a folder `pipeline` of the user's project is not Firmline's.
                [sys.executable, "-P", "-m", local_process.__name__, "scheduler"],
                env=with_modules(dict(os.environ)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            address = self._started(settings)
        except BaseException:
            self.close()
            raise
        self.connection = Connection("dask", address, local_process.security_of(certificate, key))

    @property
    def process(self) -> int:
        """The scheduler's process, whose children are the workers."""
        return self._program.pid

    def close(self) -> None:
        """Kill them, and wait until they are gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._program.pid, signal.SIGKILL)
        self._program.wait()
        given, printed = self._program.stdin, self._program.stdout
        assert given is not None
        assert printed is not None
        # At its end once the last process that has the pipe is gone; a worker has it too.
        select.select([printed], [], [], _END)
        for pipe in (given, printed):
            with contextlib.suppress(OSError):
                pipe.close()
        remove_folder(self._folder)

    def _started(self, settings: local_process.Settings) -> str:
        """Start the scheduler; returns its address."""
        given, printed = self._program.stdin, self._program.stdout
        assert given is not None
        assert printed is not None
        with contextlib.suppress(BrokenPipeError):
            given.write(settings.line())
            given.flush()
        address = b""
        if select.select([printed], [], [], _START)[0]:
            address = printed.readline()
        if not address:
            why = _last_line(self._log)
            raise PipelineError(f"executor=dask: its scheduler does not start{f': {why}' if why else ''}")
        return address.decode().strip()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return escape.line(next((line.strip() for line in reversed(lines) if line.strip()), ""))
