"""Run a firmware on QEMU.

Cortex-M: a machine with semihosting. AArch64: a static program in user mode.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from stages.backends.qemu.build import COMPILER, library_of, plugin_path
from stages.backends.qemu.fault import fault_message, limit_place
from stages.backends.qemu.machine import device_options, without_memory
from stages.backends.simulators.process import Finished, InstructionLimitReached, ProgramLimitReached, run_process
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.tool import Tool

MINIMUM = "6.0"  # the first with version 1 of the plug-in interface
_BAD_CPU = re.compile(r"unable to find CPU model .*|This board can only be used with CPU .*")


def tools(target: Target) -> tuple[Tool, ...]:
    """Return the target's emulator and the compiler of the counting plug-in."""
    simulator = target.simulator
    install = f"apt-get install {' '.join(simulator.packages) or simulator.command}"
    return (Tool(simulator.command, command=simulator.command, minimum=MINIMUM, install=install), COMPILER)


def qemu_command(
    elf: Path, target: Target, *, profile: Path | None = None, most_instructions: int = 0, timed: bool = False
) -> list[str]:
    """Return the command line that runs `elf` and counts.

    `profile` is a file for the runs of each block.
    With `timed` it estimates cycles too, as `run` says.

    The plug-in is built when it is missing. Raises StageError when the target names no emulator.
    """
    simulator = target.simulator
    if not simulator.command:
        message = f"target {target.name}: simulator qemu needs `command:`, such as qemu-system-arm"
        raise StageError(message, at=("target",))
    plugin = plugin_option(plugin_path(simulator.command), profile, most_instructions, timed=timed)
    cpu = ["-cpu", simulator.cpu] if simulator.cpu else []
    more = [*_outside(target), *simulator.arguments]
    if not simulator.machine:
        return [simulator.command, *cpu, "-plugin", plugin, *more, str(elf)]
    # Semihosting prints to a character device of its own: on the default one the text goes to standard error.
    console = ["-chardev", "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console"]
    devices = ["-nographic", "-monitor", "none", "-serial", "none", *console]
    return [simulator.command, "-M", simulator.machine, *cpu, *devices, "-plugin", plugin, *more, "-kernel", str(elf)]


def _outside(target: Target) -> Iterator[str]:
    """Return options for the target's own plug-ins and devices."""
    for plugin in target.simulator.plugins:
        if plugin not in target.places:
            message = f"target {target.name}: no QEMU plug-in '{plugin}'"
            raise StageError(message, hint="the path of a plug-in contains a /", at=("target",))
        yield from ("-plugin", plugin_option(library_of(target.places[plugin], target.simulator.command)))
    yield from device_options(target)


def plugin_option(
    library: Path, profile: Path | None = None, most_instructions: int = 0, *, timed: bool = False
) -> str:
    """Return the value of `-plugin`. Commas in values are doubled."""
    name = "file=" if "=" in str(library) else ""
    more = [] if profile is None else [f"profile={profile}".replace(",", ",,")]
    more += [f"most={most_instructions}"] if most_instructions else []
    more += ["timed=on"] if timed else []
    return ",".join([name + str(library).replace(",", ",,"), *more])


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

    Raises StageError for a fault or a hang, with the source line.

    `timed` is as `stages.backends.simulators.program.run_program` says.
    """
    called = qemu_command(elf.resolve(), target, most_instructions=most_instructions, timed=timed)
    finished = run_process(called, folder, timeout=timeout, watch=watch)
    if "unsupported machine type" in finished.output:
        command, machine = target.simulator.command, target.simulator.machine
        message = f"target {target.name}: {command} has no machine {machine}"
        at = ("cores", target.core, "simulator", "machine") if target.board is None else ("target",)
        raise StageError(message, hint=f"`{command} -machine help` lists those that it has", at=at)
    if refused := _BAD_CPU.search(finished.output):
        command, cpu = target.simulator.command, target.simulator.cpu
        message = f"{command} refuses simulator.cpu {cpu!r} of core {target.core}: {refused[0]}"
        hint = f"`{command} -cpu help` lists those that it has"
        raise StageError(message, hint=hint, at=("cores", target.core, "simulator", "cpu"))
    # Code, variables or a stack that are not there end in a fault. An arena reads as zeros.
    is_faultless = finished.exit_code == 0 and (target.memory is None or len(target.memory.regions) == 2)
    if not is_faultless and (missing := without_memory(target)):
        raise StageError(missing, hint=f"correct the memory of {target.name} in pipeline.yaml, or name another machine")
    if where := limit_place(finished, elf, target):
        raise InstructionLimitReached(where)
    if where := limit_place(finished, elf, target, whole=True):
        message = f"it took more than {most_instructions:,} instructions in all: it hangs outside of an inference"
        raise ProgramLimitReached(f"{message}\nin {where}")
    message = fault_message(finished, elf, target)
    if message:
        raise StageError(message)
    return finished
