"""Run a process with limits, and keep its output and the reason why it ended."""

import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.support.messages.stage_error import StageError
from stages.support.system.programs import cannot_start

_WATCH_SECONDS = 0.5


@dataclass(frozen=True)
class Finished:
    """A program that ended: exit status and all output (standard output, then standard error)."""

    exit_code: int
    output: str


class InstructionLimitReached(StageError):
    """A program stopped at its instruction limit; `where` is the function and source line."""

    def __init__(self, where: str) -> None:
        super().__init__(f"the instruction limit was reached: the firmware hangs, or takes more\nin {where}")
        self.where = where


class ProgramLimitReached(StageError):
    """A program exceeded its total of instructions, or the processor time for that number."""


def run_process(
    arguments: Sequence[str],
    folder: Path,
    *,
    timeout: float,
    watch: Callable[[], None],
    environment: Mapping[str, str] | None = None,
    cpu_seconds: int = 0,
) -> Finished:
    """Run a process to its end.

    Raises StageError if it does not start or exceeds `timeout` seconds.
    A process that exceeds the timeout is killed. After `cpu_seconds` of processor time (0: never) SIGXCPU ends it.
    """
    # Output goes to files: a pipe that nobody empties while we watch would stop the program.
    with (folder / ".stdout").open("w+b") as stdout, (folder / ".stderr").open("w+b") as stderr:
        try:
            process = subprocess.Popen(
                arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
        except OSError as error:
            raise cannot_start(arguments[0], error) from None
        if cpu_seconds:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        deadline = time.monotonic() + timeout
        try:
            while True:
                left = deadline - time.monotonic()
                try:
                    process.wait(max(0.0, min(_WATCH_SECONDS, left)))
                    break
                except subprocess.TimeoutExpired:
                    if left <= 0:
                        raise _too_long(timeout) from None
                    watch()
        finally:
            process.kill()
            process.wait()
        stdout.seek(0)
        stderr.seek(0)
        output = (stdout.read() + stderr.read()).decode(errors="replace")
    return Finished(process.returncode, output)


def _too_long(timeout: float) -> StageError:
    return StageError(
        f"the program was still running after {timeout:g} s",
        hint="raise simulate's timeout, or set instruction_limit to end a program that hangs",
    )
