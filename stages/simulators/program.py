"""Running one program on a target's simulator: the same call for Spike, QEMU and the machine that builds."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.programs import cannot_start

if TYPE_CHECKING:
    from stages.targets.spec import Target


_WATCH_SECONDS = 0.5


@dataclass(frozen=True)
class Finished:
    """A program that came to its end: exit status and all it printed (standard output, then standard error)."""

    exit_code: int
    output: str


class InstructionLimitReached(StageError):
    """A program was stopped at the limit it was given; `where` is the function and source line it was at."""

    def __init__(self, where: str) -> None:
        super().__init__(f"the instruction limit was reached: the firmware hangs, or takes more\nin {where}")
        self.where = where


def run_program(
    elf: Path, target: Target, folder: Path, *, timeout: float = 300, watch: Callable[[], None] = lambda: None
) -> Finished:
    """Run `elf` with `folder` as current directory; `watch` is called twice a second while it runs.

    Raises StageError for a trap or a failed sanitizer check, naming cause, function and source line, and when the
    program is still running after `timeout` seconds; InstructionLimitReached where it stopped itself.
    """
    match target.simulator.kind:
        case "spike":
            from stages.simulators.spike.run import run_spike

            return run_spike(elf, target, folder, timeout=timeout, watch=watch)
        case "native":
            from stages.simulators.native import run_native

            return run_native(elf, folder, timeout=timeout, watch=watch)
        case "qemu":
            from stages.simulators.qemu.run import run_qemu

            return run_qemu(elf, target, folder, timeout=timeout, watch=watch)


def run_process(
    arguments: Sequence[str],
    folder: Path,
    *,
    timeout: float,
    watch: Callable[[], None],
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """A finished process. Raises StageError when it cannot be started, or takes longer than `timeout` seconds; it is
    killed then."""
    # Output goes to files: a pipe that nobody empties while we watch would stop the program.
    with (folder / ".stdout").open("w+b") as stdout, (folder / ".stderr").open("w+b") as stderr:
        try:
            process = subprocess.Popen(
                arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
        except OSError as error:
            raise cannot_start(arguments[0], error) from None
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
        hint="raise simulate's timeout, or set its instruction_limit to learn where the program hangs",
    )
