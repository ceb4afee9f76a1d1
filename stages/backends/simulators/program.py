"""Run a program on a target's simulator: Spike, QEMU, or the build machine."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from stages.backends.simulators.outside import SimulatorPlugin, simulator_of
from stages.backends.simulators.process import Finished
from stages.backends.targets.spec import Target
from stages.support.tool import Tool

# The module of each kind of simulator, which has `run`.
_MODULES = {
    "spike": "stages.backends.riscv.spike.run",
    "qemu": "stages.backends.qemu.run",
    "native": "stages.backends.host.native",
}


def simulator_tools(target: Target) -> tuple[Tool, ...]:
    """Return the programs and packages that the target's simulator needs."""
    return _simulator(target).tools(target)


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
    """Run `elf` in `folder`; `watch` is called twice a second while it runs.

    `most_instructions` limits the whole program (0: no limit). Without a counter the limit is the processor time of
    that number of instructions at a slow pace.

    With `timed`, on Spike and QEMU, cycles are estimated by cycles.table in `folder` (backends/timing/table.py), and
    cycles.bin has a record for each reading of the counter (backends/timing/log.py).

    Raises StageError, with cause, function and source line, for a trap or a failed sanitizer check, and if the program
    still runs after `timeout` seconds; InstructionLimitReached if the program stopped itself; ProgramLimitReached at
    the limit of the whole program, except on Spike, which then ends the program as if it had finished.
    """
    simulator = _simulator(target)
    run: Callable[..., Finished] = partial(simulator.run, timed=True) if timed else simulator.run  # type: ignore[call-arg]
    return run(elf, target, folder, timeout=timeout, most_instructions=most_instructions, watch=watch)


def _simulator(target: Target) -> SimulatorPlugin:
    """Return the simulator's module.

    It is imported by name, so that a key has the code of one simulator.
    """
    module = _MODULES.get(target.simulator.kind)
    simulator: SimulatorPlugin = simulator_of(target) if module is None else import_module(module)
    return simulator


def code_patterns(target: Target) -> tuple[str, ...]:
    """Return globs, below Firmline's folder, of the code that runs a program for the target."""
    kind = target.simulator.kind
    module = _MODULES.get(kind)
    if module is None:
        return ()
    place = module.replace(".", "/")
    folder = place.rpartition("/")[0]
    plugin: tuple[str, ...] = (f"{folder}/plugin/*",) if module.endswith(".run") else ()
    plugin += (f"stages/backends/{target.family}/instructions/*.yaml",) if kind == "spike" else ()
    plugin += ("stages/backends/simulators/cycles/*",) if kind == "qemu" or target.timing_model else ()
    plugin += (f"{folder}/timing/*",) if kind == "spike" and target.timing_model else ()
    plugin += (f"stages/backends/{target.family}/decode_*.py",) if target.timing_model else ()
    beside = target.accelerator
    devices = (f"{folder}/devices/*", f"stages/backends/accelerators/{beside.kind}/device/*") if beside else ()
    return (f"{place}.py", *plugin, *devices)
