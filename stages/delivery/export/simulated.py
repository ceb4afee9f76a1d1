"""Start-up code, linker script and command to run an exported example in a simulator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.backends.riscv.spike.tree import UART
from stages.backends.targets.linker_script import own_section
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.compile.blocks import blocks_of

_SPDX = b"/* SPDX-License-Identifier: Apache-2.0 */\n"
_SCRIPT = "machine.ld"
#: CMake variable with the path of Spike's plug-in for the P extension.
_RVP = "FIRMLINE_RVP_PLUGIN"


@dataclass(frozen=True)
class Machine:
    """Files and flags to build a program for a simulator.

    files     start-up code, console, headers and linker script, by name
    sources   names of the compiled files
    flags     compiler flags of these files
    libc      flags that select the C library
    link      linker flags
    script    name of the linker script; '' for the toolchain's default
    sections  macros of the emitted sources, with the sections that the script places
    command   command that runs a program (appended); empty if the simulator needs devices or plug-ins
    plugin    CMake variable with the path of a plug-in in the command, or ''
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


def machine_of(target: Target, blocks: Sequence[Mapping[str, Any]]) -> Machine | None:
    """Return the machine that simulates the target; None for a native one.

    `blocks` as in model.json.
    """
    if target.is_native:
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
        sections=_sections(blocks, simulated),
        command=command,
        plugin=plugin if command else "",
    )


def _sections(blocks: Sequence[Mapping[str, Any]], target: Target) -> list[tuple[str, str]]:
    if target.memory is None:
        return []
    named = [
        (block["section_macro"], own_section(block["part"], block["region"], target.memory))
        for block in blocks_of({"blocks": blocks}, target)
    ]
    return [(macro, section) for macro, section in named if section]


def _command(target: Target, plugin: str) -> list[str]:
    """Return the command of a program, empty if it runs only with Firmline.

    Devices, other plug-ins and some files exist only there.
    """
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
