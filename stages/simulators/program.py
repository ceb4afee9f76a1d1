"""Running one program on a target's simulator: the same call for Spike, QEMU and the machine that builds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stages.simulators.process import Finished

if TYPE_CHECKING:
    from stages.targets.spec import Target


def run_program(
    elf: Path,
    target: Target,
    folder: Path,
    *,
    timeout: float = 300,
    most_instructions: int = 0,
    watch: Callable[[], None] = lambda: None,
) -> Finished:
    """Run `elf` with `folder` as current directory; `watch` is called twice a second while it runs.

    Raises StageError for a trap or a failed sanitizer check, naming cause, function and source line, and when the
    program is still running after `timeout` seconds; InstructionLimitReached where it stopped itself.

    It is ended after `most_instructions` (0: never), from its first to its last; where nothing counts them, after the
    processor time that they take at a slow pace. ProgramLimitReached then, but for Spike, which ends a program as if it
    had come to its end.
    """
    match target.simulator.kind:
        case "spike":
            from stages.simulators.spike.run import run_spike

            return run_spike(elf, target, folder, timeout=timeout, most_instructions=most_instructions, watch=watch)
        case "native":
            from stages.simulators.native import run_native

            return run_native(elf, folder, timeout=timeout, most_instructions=most_instructions, watch=watch)
        case "qemu":
            from stages.simulators.qemu.run import run_qemu

            return run_qemu(elf, target, folder, timeout=timeout, most_instructions=most_instructions, watch=watch)
        case _:
            from stages.simulators.outside import simulator_of

            plugin = simulator_of(target)
            return plugin.run(elf, target, folder, timeout=timeout, most_instructions=most_instructions, watch=watch)
