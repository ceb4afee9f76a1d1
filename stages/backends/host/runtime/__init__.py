"""Run-time code for the build machine: an ordinary program for tests under sanitizers."""

from pathlib import Path

from stages.backends.targets.runtime import POSIX, Runtime
from stages.backends.targets.spec import Target

FOLDER = Path(__file__).resolve().parent


def runtime(target: Target) -> Runtime:
    """Return POSIX files for the harness; no linker script, no counter."""
    return Runtime(sources=(FOLDER / "board.c", POSIX / "files.c"))
