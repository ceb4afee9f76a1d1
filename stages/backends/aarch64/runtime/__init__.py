"""Run-time code of AArch64: a static Linux program, counted by QEMU in user mode."""

from pathlib import Path

from stages.backends.targets.runtime import HARNESS, POSIX, Runtime
from stages.backends.targets.spec import Target

FOLDER = Path(__file__).resolve().parent
QEMU = FOLDER.parents[1] / "qemu" / "runtime"


def runtime(target: Target) -> Runtime:
    """Return POSIX files, counter, stack measure and fault report.

    They are linked statically with the GNU C library.
    """
    own = tuple(FOLDER / name for name in ("board.c", "stack.c", "fault.c"))
    return Runtime(
        sources=(*own, POSIX / "files.c", QEMU / "read_counter.S", QEMU / "counter.c"),
        include=(HARNESS, QEMU, FOLDER),
        link_flags=("-static",),
    )
