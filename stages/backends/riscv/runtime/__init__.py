"""RISC-V, bare metal, one hart in machine mode: ROM and RAM of the target's memory map.

Simulated with host files through HTIF; on a board through a debugger.
"""

from collections.abc import Mapping
from pathlib import Path

from stages.backends.targets.attached import MONITOR
from stages.backends.targets.linker_script import start_flags
from stages.backends.targets.runtime import DEBUGGER, HARNESS, Runtime, linker_script
from stages.backends.targets.spec import Target
from stages.backends.targets.vectors import has_vector

FOLDER = Path(__file__).resolve().parent
FAULTS = "stages.backends.riscv.spike.fault"
COUNTERS = {3: "mcycle"}  # as cycles.c numbers it


def runtime(target: Target) -> Runtime:
    """Return start-up code, HTIF, counters and trap report.

    They are linked with picolibc without its start-up files.
    """
    beside = target.accelerator is not None
    monitor = (f"-DBOARD_MONITOR={MONITOR:#x}",) if beside else ()
    files = ("htif.c", "counters.c", *(("monitor.c",) if beside else ()))
    return _runtime(target, *(FOLDER / name for name in files), flags=monitor)


def debugged(target: Target) -> Runtime:
    """Return the run-time code for a board: files through a debugger, and a cycle counter."""
    return _runtime(target, HARNESS / "debugger.c", FOLDER / "cycles.c", flags=(DEBUGGER,))


def at_start(symbols: Mapping[str, int]) -> list[tuple[str, str, bool]]:
    """Return GDB's setting for the start of crt.S, which sets everything else."""
    return [("pc", f"{symbols['_start']:#x}", True)]


def _runtime(target: Target, *sources: Path, flags: tuple[str, ...] = ()) -> Runtime:
    own = (FOLDER / name for name in ("crt.S", "trap.c", "stack.c"))
    vector = ("-DCORE_HAS_VECTOR",) if has_vector(target.isa, target.extensions) else ()
    return Runtime(
        sources=(*own, *sources),
        console=(FOLDER / "stdio.c",),
        include=(HARNESS, FOLDER),
        compile_flags=("--specs=picolibc.specs", *start_flags(target.memory), *vector, *flags),
        link_flags=("--specs=picolibc.specs", "-nostartfiles", "-Wl,--no-warn-rwx-segments"),
        linker_script=linker_script(FOLDER / "link.ld.in", target),
    )
