"""A scheduler and workers on this machine while a command runs.

They are processes in a separate session: Ctrl-C reaches only this process, which kills its children.
`local_process.py` defines how they listen, and how they end if this process is killed.
"""

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

# Timeouts in seconds: start of the scheduler, end of killed processes.
_START, _END = 30, 5


class LocalCluster:
    """A cluster of `workers` processes; `connection` is its scheduler. Raises PipelineError."""

    def __init__(self, workers: int) -> None:
        security = Security.temporary(tls_ciphers=None, tls_min_version=None, tls_max_version=None)
        certificate, key = security.tls_client_cert, security.tls_client_key
        self._folder = make_folder("dask")
        self._log = self._folder / "log.txt"
        settings = local_process.Settings(certificate, key, str(self._folder), workers)
        with self._log.open("wb") as log:
            self._program = subprocess.Popen(
                # -P: do not import a folder `pipeline` of the user's project.
                [sys.executable, "-P", "-m", local_process.__name__, "scheduler"],
                env=with_modules(dict(os.environ)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            address = self._start(settings)
        except BaseException:
            self.close()
            raise
        self.connection = Connection("dask", address, local_process.security_of(certificate, key))

    @property
    def process(self) -> int:
        """The scheduler's process id; the workers are its children."""
        return self._program.pid

    def close(self) -> None:
        """Kill the processes and wait for their end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._program.pid, signal.SIGKILL)
        self._program.wait()
        stdin, stdout = self._program.stdin, self._program.stdout
        assert stdin is not None
        assert stdout is not None
        # End of file when the last process with this pipe has ended; workers have it too.
        select.select([stdout], [], [], _END)
        for pipe in (stdin, stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        remove_folder(self._folder)

    def _start(self, settings: local_process.Settings) -> str:
        """Start the scheduler and return its address."""
        stdin, stdout = self._program.stdin, self._program.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(settings.line())
            stdin.flush()
        address = b""
        if select.select([stdout], [], [], _START)[0]:
            address = stdout.readline()
        if not address:
            reason = _last_line(self._log)
            raise PipelineError(f"executor=dask: the scheduler does not start{f': {reason}' if reason else ''}")
        return address.decode().strip()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return escape.line(next((line.strip() for line in reversed(lines) if line.strip()), ""))
