"""Arm Cortex-M, bare metal: ROM and RAM of the target's memory map, host files through semihosting, counted by QEMU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stages.targets.linker_script import start_flags
from stages.targets.runtime import HARNESS, Runtime, linker_script

if TYPE_CHECKING:
    from stages.targets.spec import Target

FOLDER = Path(__file__).resolve().parent
QEMU = FOLDER.parent / "qemu"


def runtime(target: Target) -> Runtime:
    """Start-up code, semihosting, counter and fault report, linked with newlib and without its start-up files."""
    own = tuple(FOLDER / name for name in ("startup.S", "semihosting.c", "memory.c", "fault.c"))
    return Runtime(
        sources=(*own, QEMU / "read_counter.S", QEMU / "counter.c"),
        console=(FOLDER / "stdio.c",),
        include=(HARNESS, QEMU, FOLDER),
        compile_flags=start_flags(target.memory),
        link_flags=("-nostartfiles", "-Wl,--no-warn-rwx-segments"),
        linker_script=linker_script(FOLDER / "link.ld.in", target),
    )
