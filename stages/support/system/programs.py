"""Programs that cannot be started, or that a signal ends, in words: compilers, simulators, whatever stages run."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from stages.support.messages.stage_error import StageError
from stages.support.system.system_limits import system_limit

_HINTS: dict[int, str] = {
    signal.SIGKILL: "something else killed it; the system does when memory runs out",
    signal.SIGXFSZ: "a file reached the largest size that may be written: raise it with ulimit -f",
    signal.SIGXCPU: "it used all the time that it may: raise it with ulimit -t",
}


def run_tool(
    command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None, timeout: float = 0
) -> subprocess.CompletedProcess[str]:
    """A program's end, whatever its exit code, with what it printed.

    Nothing is typed into it. Raises StageError when it cannot be started, when a signal ended it, and after `timeout`
    seconds (0: none).
    """
    try:
        done = subprocess.run(
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
        raise StageError(f"{shown(command[0])} did not end within {timeout:g} s") from None
    if done.returncode < 0:
        raise ended_by(f"{shown(command[0])} was", done.returncode)
    return done


def cannot_start(program: str, error: OSError) -> StageError:
    """What to tell of a program that the system does not start."""
    # Popen names the folder when that is what is not there, and the program where its interpreter is not.
    where = f" in {error.filename}" if error.filename not in (None, program) else ""
    reason, hint = system_limit(error) or (error.strerror or str(error), "")
    if error.errno == errno.ENOEXEC:
        reason = "it is no program for this machine"
    if error.errno == errno.ENOENT and not where:
        if not Path(program).is_file():
            return StageError(f"{program} is not installed or not on PATH")
        reason = "the interpreter in its first line, or its loader, is not there"
    return StageError(f"{shown(program)} cannot be started{where}: {reason}", hint=hint)


def ended_by(who: str, returncode: int) -> StageError:
    """What to tell of a program that a signal ended: `who` is such as `spike was`."""
    number = -returncode
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return StageError(f"{who} ended by {name}", hint=_HINTS.get(number, ""))


def shown(program: str) -> str:
    """A program's name for people, without its folder."""
    return os.path.basename(program)  # noqa: PTH119 - of any text
