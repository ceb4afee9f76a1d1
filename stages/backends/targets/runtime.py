"""The run-time code of an architecture family: start-up, host I/O, linker script.

A family is a folder `stages/backends/<family>/` with a package `runtime` that has `runtime(target) -> Runtime`. A new
family changes nothing else. A family that runs on boards has for these

    debugged(target)        its Runtime
    at_start(symbols)       settings for GDB before the program runs: (register, expression, whether every core has it)
    FAULTS                  name of the module with fault_message(finished, elf, target), which explains the output of
                            the fault handler
    COUNTERS                names of the cycle counters, by their number in requests to the debugger

FAULTS is a name, so that a simulation's key has no code of another family.
"""

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from stages.backends.targets.linker_script import fill
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.system.installation import INSTALLATION

BACKENDS = Path(__file__).resolve().parents[1]
HARNESS = BACKENDS / "harness"
POSIX = HARNESS / "posix"
#: Tells start-up code that a debugger is the host, not a simulator.
DEBUGGER = "-DBOARD_DEBUGGER"


@dataclass(frozen=True)
class Runtime:
    """Files and flags that turn C files with a `main` into a program for one target.

    sources         start-up code and the implementation of harness/board.h
    console         sources with printf; for benchmarks and tests, never in firmware
    compile_flags   for every file, in addition to the target's
    link_flags      for the link, in addition to the target's
    linker_script   its text, '' for the toolchain's default
    """

    sources: tuple[Path, ...]
    console: tuple[Path, ...] = ()
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    linker_script: str = ""
    include: tuple[Path, ...] = field(default=(HARNESS,))


def runtime_for(target: Target, *, debugged: bool = False) -> Runtime:
    """Return the runtime of the target's family, for a simulator or (`debugged`) a board.

    Raises StageError if the family has no folder here, or with `debugged` if it does not run on boards.
    """
    family = family_of(target)
    if debugged and not hasattr(family, "debugged"):
        message = f"target {target.name}: programs of the family {target.family} run on no board with a GDB server"
        raise StageError(message, hint=f"families that do: {', '.join(_on_boards())}", at=("target",))
    runtime: Runtime = family.debugged(target) if debugged else family.runtime(target)
    return runtime


def _on_boards() -> list[str]:
    families = {name: import_module(f"stages.backends.{name}.runtime") for name in _families()}
    return [name for name, family in families.items() if hasattr(family, "debugged")]


def _families() -> list[str]:
    return sorted(path.parents[1].name for path in BACKENDS.glob("*/runtime/__init__.py"))


def family_of(target: Target) -> Any:
    """Return the runtime package of the target's family. Raises StageError if there is none."""
    try:
        return import_module(f"stages.backends.{target.family}.runtime")
    except ModuleNotFoundError as error:
        package = f"stages.backends.{target.family}"
        if error.name not in (package, f"{package}.runtime"):
            raise
        folders = _families()
        raise StageError(
            f"target {target.name}: no family '{target.family}' in stages/backends",
            hint=f"there are: {', '.join(folders)}",
            at=("target",),
        ) from None


def code_patterns(target: Target) -> tuple[str, ...]:
    """Return globs, relative to Firmline's folder, of the run-time code of the target's family."""
    runtime = runtime_for(target)
    folders = {path.parent for path in (*runtime.sources, *runtime.console)} | {*runtime.include}
    shared = sorted(f"{folder.relative_to(INSTALLATION)}" for folder in folders if folder.is_relative_to(BACKENDS))
    names = dict.fromkeys([f"stages/backends/{target.family}/runtime", *shared])
    return tuple(f"{name}/*.*" for name in names)


def linker_script(template: Path, target: Target) -> str:
    """Return a family's linker script for the target's memory map.

    Raises StageError without a map.
    """
    if target.memory is None:
        message = f"target {target.name}: family {target.family} needs `memory:` with rom, ram and stack"
        raise StageError(message, at=("target",))
    return fill(template, target.memory)
