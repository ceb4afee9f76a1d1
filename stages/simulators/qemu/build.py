"""Builds the counting plug-in for an emulator of this machine.

`python -m stages.simulators.qemu.build` does it now for those that are installed; otherwise the first simulation that
needs it does. The plug-in declares QEMU's interface by hand, so every new build, and every new QEMU, has to pass a
self-test before it is used.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from stages.base import StageError, Tool
from stages.simulators.once import built_once
from stages.simulators.qemu.selftest import self_test

SOURCES = Path(__file__).resolve().parent / "plugin"
CACHE = Path(__file__).resolve().parents[3] / ".firmline" / "qemu"
COMPILER = Tool(name="gcc", command="gcc", minimum="11", install="apt-get install gcc libc6-dev")
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-Wall", "-Wextra", "-Werror")
EMULATORS = ("qemu-system-arm", "qemu-aarch64")


@cache
def plugin_path(emulator: str) -> Path:
    """The plug-in `libcounter.so`, built when it is not there for this code, compiler and version of `emulator`.

    Raises StageError when gcc or the emulator is missing, the code does not compile or the self-test fails.
    """
    library = CACHE / _key(emulator) / "libcounter.so"
    return built_once(library, lambda path: _build(path, emulator))


def _key(emulator: str) -> str:
    """Digest of all that decides the plug-in's bytes, and of what it was tested with."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    compiler = _version(COMPILER.command, COMPILER.install)
    identity = (*FLAGS, compiler, emulator, _version(emulator, f"install {emulator}"))
    digest.update("\0".join(identity).encode())
    return digest.hexdigest()[:16]


def _version(command: str, install: str) -> str:
    try:
        finished = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise StageError(f"QEMU's counting plug-in needs {command}", hint=install) from None
    return finished.stdout.splitlines()[0]


def _build(library: Path, emulator: str) -> None:
    """Compile into a folder aside, test, and only then give it its name."""
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="build-") as name:
        built = Path(name) / "out" / library.name
        built.parent.mkdir()
        command = [COMPILER.command, *FLAGS, *map(str, sorted(SOURCES.glob("*.c"))), "-o", str(built)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            errors = [line for line in finished.stderr.splitlines() if "error" in line][:3]
            raise StageError("compiling QEMU's counting plug-in failed:\n" + "\n".join(errors))
        self_test(built, emulator)
        shutil.rmtree(library.parent, ignore_errors=True)
        built.parent.rename(library.parent)


if __name__ == "__main__":
    try:
        for installed in filter(shutil.which, EMULATORS):
            print(plugin_path(installed))
    except StageError as error:
        sys.exit(str(error))
