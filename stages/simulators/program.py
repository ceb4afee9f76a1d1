"""Running one program on a target's simulator: the same call for Spike, QEMU and the machine that builds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from stages.simulators.outside import simulator_of

if TYPE_CHECKING:
    from stages.simulators.outside import SimulatorPlugin
    from stages.simulators.process import Finished
    from stages.targets.spec import Target


# The module of each kind of simulator, which has `run`.
_MODULES = {
    "spike": "stages.simulators.spike.run",
    "qemu": "stages.simulators.qemu.run",
    "native": "stages.simulators.native",
}


def run_program(
    elf: Path,
    target: Target,
    folder: Path,
    *,
    timeout: float = 300,
    most_instructions: int = 0,
    watch: Callable[[], None] = lambda: None,
    timed: bool = False,
) -> Finished:
    """Run `elf` with `folder` as current directory; `watch` is called twice a second while it runs.

    Raises StageError for a trap or a failed sanitizer check, naming cause, function and source line, and when the
    program is still running after `timeout` seconds; InstructionLimitReached where it stopped itself.

    It is ended after `most_instructions` (0: never), from its first to its last; where nothing counts them, after the
    processor time that they take at a slow pace. ProgramLimitReached then, but for Spike, which ends a program as if it
    had come to its end.

    With `timed`, on Spike and QEMU, cycles are estimated by cycles.table in `folder` (stages/timing/table.py), and
    cycles.bin has a record for each reading of the counter (stages/timing/log.py).
    """
    kind = target.simulator.kind
    # By its name, so that a run's key has the code of one simulator.
    simulator: SimulatorPlugin = import_module(_MODULES[kind]) if kind in _MODULES else simulator_of(target)
    run: Callable[..., Finished] = partial(simulator.run, timed=True) if timed else simulator.run  # type: ignore[call-arg]
    return run(elf, target, folder, timeout=timeout, most_instructions=most_instructions, watch=watch)


def code_patterns(target: Target) -> tuple[str, ...]:
    """Globs, relative to Firmline's folder, of the code that runs a program for the target."""
    kind = target.simulator.kind
    module = _MODULES.get(kind)
    if module is None:
        return ()
    place = module.replace(".", "/")
    folder = place.rpartition("/")[0]
    plugin: tuple[str, ...] = (f"{folder}/plugin/*",) if module.endswith(".run") else ()
    plugin += ("stages/simulators/cycles/*",) if kind == "qemu" or target.timing_model else ()
    plugin += (f"{folder}/timing/*",) if kind == "spike" and target.timing_model else ()
    beside = target.accelerator
    devices = (f"{folder}/devices/*", f"stages/accelerators/{beside.kind}/device/*") if beside else ()
    return (f"{place}.py", *plugin, *devices)
