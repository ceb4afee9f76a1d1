"""Arm Cortex-M, bare metal: ROM and RAM of the target's memory map.

In QEMU, semihosting reads and writes host files, and QEMU counts; on a board, a debugger does both.
"""

from collections.abc import Mapping
from pathlib import Path

from stages.backends.targets.linker_script import start_flags
from stages.backends.targets.runtime import DEBUGGER, HARNESS, Runtime, linker_script
from stages.backends.targets.spec import Target

FOLDER = Path(__file__).resolve().parent
QEMU = FOLDER.parents[1] / "qemu" / "runtime"
FAULTS = "stages.backends.qemu.fault"
COUNTERS = {1: "DWT", 2: "SysTick"}  # as cycles.c numbers them


def runtime(target: Target) -> Runtime:
    """Return start-up code, semihosting, counter and fault report.

    They are linked with newlib without its start-up files.
    """
    return _runtime(target, FOLDER / "semihosting.c", QEMU / "read_counter.S", QEMU / "counter.c")


def debugged(target: Target) -> Runtime:
    """Return the run-time code for a board: files through a debugger, and a cycle counter."""
    return _runtime(target, HARNESS / "debugger.c", FOLDER / "cycles.c", flags=(DEBUGGER,))


def at_start(symbols: Mapping[str, int]) -> list[tuple[str, str, bool]]:
    """Return GDB's settings for the state after a reset.

    Thumb state, interrupts enabled, main stack, and the values of the vector table.
    """
    masks = [(name, "0", False) for name in ("primask", "faultmask", "basepri", "control")]
    return [
        ("xpsr", "0x01000000", False),
        *masks,
        ("sp", f"*(unsigned int *){symbols['vectors']:#x}", True),
        ("pc", f"{symbols['reset'] & ~1:#x}", True),
    ]


def _runtime(target: Target, *sources: Path, flags: tuple[str, ...] = ()) -> Runtime:
    own = (FOLDER / name for name in ("startup.S", "memory.c", "fault.c"))
    return Runtime(
        sources=(*own, *sources),
        console=(FOLDER / "stdio.c",),
        include=(HARNESS, QEMU, FOLDER),
        compile_flags=(*start_flags(target.memory), *flags),
        link_flags=("-nostartfiles", "-Wl,--no-warn-rwx-segments"),
        linker_script=linker_script(FOLDER / "link.ld.in", target),
    )
