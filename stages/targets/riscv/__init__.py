"""RISC-V, bare metal, one hart in machine mode: ROM and RAM of the target's memory map, host files through HTIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stages.targets.attached import MONITOR
from stages.targets.linker_script import start_flags
from stages.targets.runtime import HARNESS, Runtime, linker_script

if TYPE_CHECKING:
    from stages.targets.spec import Target

FOLDER = Path(__file__).resolve().parent


def runtime(target: Target) -> Runtime:
    """Start-up code, HTIF, counters and trap report, linked with picolibc and without its start-up files."""
    beside = target.accelerator is not None
    files = ("crt.S", "htif.c", "counters.c", "trap.c", *(("monitor.c",) if beside else ()))
    monitor = (f"-DBOARD_MONITOR={MONITOR:#x}",) if beside else ()
    return Runtime(
        sources=tuple(FOLDER / name for name in files),
        console=(FOLDER / "stdio.c",),
        include=(HARNESS, FOLDER),
        compile_flags=("--specs=picolibc.specs", *start_flags(target.memory), *monitor),
        link_flags=("--specs=picolibc.specs", "-nostartfiles", "-Wl,--no-warn-rwx-segments"),
        linker_script=linker_script(FOLDER / "link.ld.in", target),
    )
