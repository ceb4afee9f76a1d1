"""Build QEMU plug-ins for this machine: the counting one, and those of targets.

`python -m stages.backends.qemu.build` builds the counting plug-in now, for the installed emulators; otherwise the first
run that needs it builds it. The plug-in declares QEMU's interface by hand, so every new build, and every new QEMU, has
to pass a self-test before it is used.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from stages.backends.qemu.selftest import self_test
from stages.backends.simulators.once import built_once, first_line_of_version, key_of, read_sources
from stages.backends.targets.places import plugin_files
from stages.backends.toolchain.compiler import first_errors
from stages.support.messages.stage_error import StageError
from stages.support.system.installation import build_cache
from stages.support.system.programs import run_tool
from stages.support.tool import Tool

SOURCES = Path(__file__).resolve().parent / "plugin"
CYCLES = SOURCES.parents[1] / "simulators" / "cycles"
CACHE = build_cache("qemu")
COMPILER = Tool(name="gcc", command="gcc", minimum="11", install="apt-get install gcc libc6-dev")
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-Wall", "-Wextra", "-Werror")
_API = "qemu_api.h"
EMULATORS = ("qemu-system-arm", "qemu-aarch64")


def plugin_path(emulator: str) -> Path:
    """Return the plug-in `libcounter.so`. Builds it if it is missing.

    It depends on this code, the compiler and the version of `emulator`. Raises StageError when gcc or the emulator is
    missing, the code does not compile or the self-test fails.
    """
    sources = read_sources(SOURCES) | read_sources(CYCLES)
    return _built("counter", sources, emulator, lambda library: self_test(library, emulator))


def library_of(place: Path, emulator: str) -> Path:
    """Return another plug-in's library.

    `place` is the library itself, or C (a file or a folder), which is then built. The C may include our qemu_api.h.
    Raises StageError as `plugin_path` does.
    """
    if place.suffix == ".so":
        return place
    sources = {path.name: path.read_bytes() for path in plugin_files(place)}
    sources.setdefault(_API, (SOURCES / _API).read_bytes())
    return _built(place.stem, sources, emulator, lambda library: None)


def _built(name: str, sources: dict[str, bytes], emulator: str, test: Callable[[Path], None]) -> Path:
    compiler = _version(COMPILER.command, COMPILER.install)
    identity = (*FLAGS, compiler, emulator, _version(emulator, f"install {emulator}"))
    library = CACHE / key_of(sources, identity) / f"lib{name}.so"
    return built_once(library, sources, lambda folder, output: _build(folder, output, test))


def _version(command: str, install: str) -> str:
    """Return the first line of `--version`. With the sources it identifies a build."""
    path = shutil.which(command)
    if path is None:
        raise StageError(f"QEMU's counting plug-in needs {command}", hint=install)
    return first_line_of_version(path)


def _build(sources: Path, library: Path, test: Callable[[Path], None]) -> None:
    """Compile and test the plug-in."""
    finished = run_tool([COMPILER.command, *FLAGS, *map(str, sorted(sources.glob("*.c"))), "-o", str(library)])
    if finished.returncode != 0:
        raise StageError(f"compiling a QEMU plug-in failed:\n{first_errors(finished.stderr)}")
    test(library)


if __name__ == "__main__":
    try:
        for installed in filter(shutil.which, EMULATORS):
            print(plugin_path(installed))
    except StageError as error:
        sys.exit(str(error))
