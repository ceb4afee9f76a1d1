"""The machine of a target's simulator, for examples that run on it: start-up code, linker script, the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.backends.riscv.spike.tree import UART
from stages.backends.targets.linker_script import own_section
from stages.backends.targets.runtime import runtime_for
from stages.compile.blocks import blocks_of

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target

_SPDX = b"/* SPDX-License-Identifier: Apache-2.0 */\n"
_SCRIPT = "machine.ld"
#: The variable of CMake with the path of Spike's plug-in for the P extension.
_RVP = "FIRMLINE_RVP_PLUGIN"


@dataclass(frozen=True)
class Machine:
    """What turns a library and a `main` into a program for a simulator.

    files     start-up code, console and headers by their names, and the linker script
    sources   those that are compiled
    flags     the compiler's for these files, libc those that name the C library, link the linker's
    script    the linker script's name, '' where the tool chain's own serves
    sections  macros of the emitted sources with the sections that the script places
    command   what runs a program given behind it, empty where that takes more than a program
    plugin    the variable with the path of a plug-in that the command names, '' where it needs none
    """

    title: str
    files: Mapping[str, bytes]
    sources: Sequence[str]
    flags: Sequence[str]
    libc: Sequence[str]
    link: Sequence[str]
    script: str
    sections: Sequence[tuple[str, str]]
    command: Sequence[str]
    plugin: str


def machine_of(target: Target, model: Mapping[str, Any]) -> Machine | None:
    """The machine that the target is simulated on; None for programs of this machine."""
    if target.family == "host":
        return None
    simulated = target.in_simulator
    runtime = runtime_for(simulated)
    sources = [*runtime.sources, *(runtime.console if simulated.memory is not None else ())]
    headers = [path for folder in runtime.include for path in sorted(folder.glob("*.h"))]
    files = {path.name: _SPDX + path.read_bytes() for path in (*sources, *headers)}
    script = _SCRIPT if runtime.linker_script else ""
    if script:
        files[script] = _SPDX + runtime.linker_script.encode()
    plugin = _RVP if simulated.simulator.kind == "spike" and simulated.simulator.plugins == ("rvp",) else ""
    command = _command(simulated, plugin)
    specs = [flag for flag in runtime.compile_flags if flag.startswith("--specs")]
    return Machine(
        title=simulated.simulator.machine or simulated.simulator.isa or simulated.simulator.cpu,
        files=files,
        sources=[path.name for path in sources],
        flags=("-std=gnu11", *(flag for flag in runtime.compile_flags if flag not in specs)),
        libc=specs,
        link=[flag for flag in runtime.link_flags if flag not in specs],
        script=script,
        sections=_sections(model, simulated),
        command=command,
        plugin=plugin if command else "",
    )


def _sections(model: Mapping[str, Any], target: Target) -> list[tuple[str, str]]:
    if target.memory is None:
        return []
    named = [
        (block["section_macro"], own_section(block["part"], block["region"], target.memory))
        for block in blocks_of(model, target)
    ]
    return [(macro, section) for macro, section in named if section]


def _command(target: Target, plugin: str) -> list[str]:
    """What runs a program; nothing where that takes devices, plug-ins of others, or files that only Firmline makes."""
    simulator, memory = target.simulator, target.memory
    if simulator.devices or target.accelerator is not None or (simulator.plugins and not plugin):
        return []
    if simulator.kind == "spike" and memory is not None:
        places = memory.regions.values()
        if any(region.origin < UART[1] and UART[0] < region.end for region in places):
            return []
        regions = ",".join(f"{region.origin:#x}:{region.length:#x}" for region in places)
        library = [f"--extlib=${{{plugin}}}"] if plugin else []
        return ["spike", f"--isa={simulator.isa}", f"-m{regions}", *library, *simulator.arguments]
    if simulator.kind != "qemu":
        return []
    cpu = ("-cpu", simulator.cpu) if simulator.cpu else ()
    if not simulator.machine:
        return [simulator.command, *cpu, *simulator.arguments]
    console = ("-chardev", "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console")
    quiet = ("-nographic", "-monitor", "none", "-serial", "none")
    machine = ("-M", simulator.machine, *cpu)
    return [simulator.command, *machine, *quiet, *console, *simulator.arguments, "-kernel"]
