"""Run programs, and report those that cannot start or that a signal ended."""

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from stages.support.messages.stage_error import StageError
from stages.support.system.system_limits import system_limit

_HINTS: dict[int, str] = {
    signal.SIGKILL: "another process killed it; the system does so when memory runs out",
    signal.SIGXFSZ: "a file reached the largest size that may be written: raise it with ulimit -f",
    signal.SIGXCPU: "it reached the limit of processor time: raise it with ulimit -t",
}


def run_tool(
    command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None, timeout: float = 0
) -> subprocess.CompletedProcess[str]:
    """Run a program without input and return its exit code and output.

    Raises StageError if it cannot be started, if a signal ended it, and after `timeout` seconds (0: no limit).
    """
    try:
        process = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout or None,
            check=False,
        )
    except OSError as error:
        raise cannot_start(command[0], error) from None
    except subprocess.TimeoutExpired:
        raise StageError(f"{program_name(command[0])} did not end within {timeout:g} s") from None
    if process.returncode < 0:
        raise ended_by_signal(f"{program_name(command[0])} was", process.returncode)
    return process


def cannot_start(program: str, error: OSError) -> StageError:
    """Return the error for a program that the system cannot start."""
    # Popen names the folder if it is missing, and the program if its interpreter is.
    where = f" in {error.filename}" if error.filename not in (None, program) else ""
    reason, hint = system_limit(error) or (error.strerror or str(error), "")
    if error.errno == errno.ENOEXEC:
        reason = "it is not a program for this machine"
    if error.errno == errno.ENOENT and not where:
        if not Path(program).is_file():
            return StageError(f"{program} is not installed or not on PATH")
        reason = "the interpreter in its first line, or its loader, is missing"
    return StageError(f"{program_name(program)} cannot be started{where}: {reason}", hint=hint)


def ended_by_signal(subject: str, returncode: int) -> StageError:
    """Return the error for a program that a signal ended.

    `subject` begins the message, such as `spike was`.
    """
    number = -returncode
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return StageError(f"{subject} ended by {name}", hint=_HINTS.get(number, ""))


def program_name(program: str) -> str:
    """Return a program's name without its folder."""
    return os.path.basename(program)  # noqa: PTH119 - any text
